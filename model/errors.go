package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// An Error is a fault in a file of the catalogue.
type Error struct {
	File string
	Line int // counted from 1; 0 where the fault has no line
	Msg  string

	syntax bool // the file is not TOML
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Errors are all the faults found in a file, in the order of its lines. The
// text is one line: the first fault and the number of the others.
type Errors []*Error

func (e Errors) Error() string {
	switch len(e) {
	case 0:
		return "no faults"
	case 1:
		return e[0].Error()
	}
	return fmt.Sprintf("%s (and %d more)", e[0], len(e)-1)
}

// asFaults returns the faults that an error holds, nil for another error.
func asFaults(err error) Errors {
	var all Errors
	if one := (*Error)(nil); !errors.As(err, &all) && errors.As(err, &one) {
		all = Errors{one}
	}
	return all
}

// with returns faults and those of an error as one error; an error of another kind alone.
func (e Errors) with(err error) error {
	more := asFaults(err)
	if more == nil {
		return err
	}
	all := slices.Concat(e, more)
	all.sort()
	return all
}

// An UnknownCPUError says that no processor of the catalogue answers to a name
// or an identification.
type UnknownCPUError struct {
	Query string
	Near  []string // names that are spelt much like it, or that it may have been meant for
	Hint  string   // what is wrong with the query, where that can be said
}

func (e *UnknownCPUError) Error() string {
	msg := fmt.Sprintf("unknown processor %q", spelling.Clip(e.Query))
	if e.Hint != "" {
		msg += ": " + e.Hint
	}
	if len(e.Near) > 0 {
		return msg + "; did you mean " + orList(e.Near) + "?"
	}
	return msg
}

// A CoreTypeError says that a hybrid processor's name lacks the core type, or has one
// that the processor lacks.
type CoreTypeError struct {
	Query   string   // as given
	Type    string   // the core type asked for, "" for none
	Choices []string // the spellings that choose one: "alderlake:core", "alderlake:atom"
}

func (e *CoreTypeError) Error() string {
	if e.Type != "" {
		return fmt.Sprintf("processor %q has no core type %q: write %s", spelling.Clip(e.Query), spelling.Clip(e.Type), orList(e.Choices))
	}
	return fmt.Sprintf("%q is a hybrid processor with an account for each core type: write %s", spelling.Clip(e.Query), orList(e.Choices))
}

// An UnknownModelError says that there is no model of that name for a
// processor.
type UnknownModelError struct {
	Name string // "" where the processor has no model at all
	CPU  string
	Have []string // the models that the processor has
}

func (e *UnknownModelError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("there is no model for processor %s", e.CPU)
	}
	return fmt.Sprintf("there is no model %q for processor %s; it has %s", spelling.Clip(e.Name), e.CPU, strings.Join(e.Have, ", "))
}

// orList joins words as a sentence does: "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
