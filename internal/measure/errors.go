package measure

import (
	"fmt"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// A NoPMUError says that the processor's counters cannot be used. Its kind is
// fault.Machine.
type NoPMUError struct{ Why string }

func (e *NoPMUError) Error() string { return e.Why }
func (e *NoPMUError) Unwrap() error { return fault.Machinef("%s", e.Why) }

// An EndedEarlyError says that nothing was counted because the target ended before
// counting began.
type EndedEarlyError struct{ Note string }

func (e *EndedEarlyError) Error() string { return e.Note }

// A CoreTypesError says that the machine has several types of cores where one is needed.
// Its kind is fault.Usage.
type CoreTypesError struct{ Processors []string }

func (e *CoreTypesError) Error() string {
	return fmt.Sprintf("the machine has several types of cores; choose one: %s", strings.Join(e.Processors, ", "))
}

func (e *CoreTypesError) Unwrap() error { return fault.Usagef("several types of cores") }
