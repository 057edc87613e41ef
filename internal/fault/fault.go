// Package fault gives errors a kind. Packages return such errors; only the
// command line turns the kind into an exit status.
package fault

import (
	"errors"
	"fmt"
)

// Kind says who can mend an error.
type Kind uint8

// The kinds of errors.
const (
	Usage   Kind = iota + 1 // what was asked for makes no sense
	Input                   // a file that cannot be read, or holds nothing usable
	Machine                 // this machine cannot do it
	No                      // nothing is wrong, but the answer is "no"
)

// An Error is an error with its kind.
type Error struct {
	Kind Kind
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// A LineError is what is wrong with a line of a file.
type LineError struct {
	File string
	Line int // 1-based
	Msg  string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// At returns an error about a line of a file.
func At(file string, line int, format string, args ...any) error {
	return &LineError{file, line, fmt.Sprintf(format, args...)}
}

// Usagef returns an error of the kind Usage.
func Usagef(format string, args ...any) error { return &Error{Usage, Errorf(format, args...)} }

// Inputf returns an error of the kind Input.
func Inputf(format string, args ...any) error { return &Error{Input, Errorf(format, args...)} }

// Machinef returns an error of the kind Machine.
func Machinef(format string, args ...any) error { return &Error{Machine, Errorf(format, args...)} }

// Nof returns an error of the kind No.
func Nof(format string, args ...any) error { return &Error{No, Errorf(format, args...)} }

// As gives an error a kind. An error that has one keeps it; nil stays nil.
func As(kind Kind, err error) error {
	if err == nil || Of(err) != 0 {
		return err
	}
	return &Error{kind, err}
}

// Of returns the kind of an error, 0 if it has none.
func Of(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}
