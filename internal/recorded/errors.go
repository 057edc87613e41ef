package recorded

import (
	"fmt"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
)

// The errors have fields for what would change them. How options are spelled is up to
// the caller.

// A RunsError says that no node is known of several recordings. Samples have places
// all the same. Its kind is fault.Input.
type RunsError struct{ Err error }

func (e *RunsError) Error() string { return e.Err.Error() }
func (e *RunsError) Unwrap() []error {
	return []error{e.Err, &fault.Error{Kind: fault.Input, Err: e.Err}}
}

// A SiblingsError says that nobody knows which logical processors share a core. Its
// kind is fault.Usage.
type SiblingsError struct{ CPUs int }

func (e *SiblingsError) Error() string {
	return fmt.Sprintf("the recording has counts of %d, not 2, CPUs", e.CPUs)
}

func (e *SiblingsError) Unwrap() error { return fault.Usagef("the cores are not known") }

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

// A FloorError says that the latency of the fastest load is not known. Its kind is
// fault.Usage.
type FloorError struct {
	File string // the recording that does not say its processor
	CPU  string // or the processor whose fastest load is not known
}

func (e *FloorError) Error() string {
	if e.CPU == "" {
		return e.File + " does not say which processor it is from"
	}
	return fmt.Sprintf("the fastest load of %s is not known here", e.CPU)
}

func (e *FloorError) Unwrap() error { return fault.Usagef("the fastest load is not known") }
