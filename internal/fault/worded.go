package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Name is the name of an option in the text of an error. How it is spelled is up to the
// caller: see [Spell].
type Name string

// worded is an error whose text names options.
type worded struct {
	error
	format string
	args   []any
}

func (w *worded) Unwrap() error { return w.error }

// Errorf is fmt.Errorf, and remembers the options among the arguments.
func Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if slices.ContainsFunc(args, isName) {
		return &worded{err, format, args}
	}
	return err
}

func isName(arg any) bool { _, ok := arg.(Name); return ok }

// Spell returns a text that has an error's in it, with its options as spell writes them.
func Spell(text string, err error, spell func(Name) string) string {
	var w *worded
	if !errors.As(err, &w) {
		return text
	}
	args := slices.Clone(w.args)
	for i, arg := range args {
		if n, ok := arg.(Name); ok {
			args[i] = spell(n)
		}
	}
	return strings.Replace(text, w.Error(), fmt.Errorf(w.format, args...).Error(), 1)
}
