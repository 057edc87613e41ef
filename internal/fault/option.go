package fault

import "fmt"

// An OptionError is about the value of an option. Its kind is Usage. How options are
// spelled is up to the caller.
type OptionError struct {
	Option string // in lower case: "cpu", "param"
	Value  string // the value; "" if Err has it
	Err    error
}

func (e *OptionError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %v", e.Option, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Option, e.Value, e.Err)
}

func (e *OptionError) Unwrap() error { return &Error{Kind: Usage, Err: e.Err} }

// Optionf returns an error about the value of an option.
func Optionf(option, value, format string, args ...any) error {
	return &OptionError{Option: option, Value: value, Err: Errorf(format, args...)}
}
