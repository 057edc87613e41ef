package recorded

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// The errors have fields for what would change them. How options are spelled is up to
// the caller.

// A SamplesError says that a recording has none of the samples that options are about.
// Its kind is fault.Usage.
type SamplesError struct{ Err error }

func (e *SamplesError) Error() string { return e.Err.Error() }

func (e *SamplesError) Unwrap() []error {
	return []error{e.Err, &fault.Error{Kind: fault.Usage, Err: e.Err}}
}

// needsSamples is the error of a recording that lacks them.
func needsSamples(err error, what string) error {
	return fault.Inputf("%w; %s needs samples, as perf record takes them", err, what)
}

// A MixtureError says that recordings of different programs were to be summed. Its kind
// is fault.Usage.
type MixtureError struct{ File, Program, OtherFile, OtherProgram string }

func (e *MixtureError) Error() string {
	return fmt.Sprintf("%s is of %q, but %s of %q", e.File, e.Program, e.OtherFile, e.OtherProgram)
}

func (e *MixtureError) Unwrap() error { return fault.Usagef("recordings of different programs") }
