package recorded

import (
	"fmt"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
)

// The errors have fields for what would change them. How options are spelled is up to
// the caller.

// A SamplesError says that a recording has no samples, and what they are needed for.
type SamplesError struct {
	Err error
	By  []counts.Kind // the places that were asked for
	For Purpose
}

// A Purpose is what samples are needed for.
type Purpose uint8

// The purposes.
const (
	ForPlaces   Purpose = iota // accounts of places
	ForOptions                 // options that choose samples
	ForStacks                  // profiles of stacks
	ForAnnotate                // annotated code
)

func (e *SamplesError) Error() string { return e.Err.Error() }

func (e *SamplesError) Unwrap() []error {
	kind := fault.Input
	if e.For == ForOptions {
		kind = fault.Usage
	}
	return []error{e.Err, &fault.Error{Kind: kind, Err: e.Err}}
}

// A MixtureError says that recordings of different programs were to be summed. Its kind
// is fault.Usage.
type MixtureError struct{ File, Program, OtherFile, OtherProgram string }

func (e *MixtureError) Error() string {
	return fmt.Sprintf("%s is of %q, but %s of %q", e.File, e.Program, e.OtherFile, e.OtherProgram)
}

func (e *MixtureError) Unwrap() error { return fault.Usagef("recordings of different programs") }
