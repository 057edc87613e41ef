package perfdata

import (
	"errors"
	"fmt"
)

// ErrFormat is wrapped by the error of a file that is no perf.data.
var ErrFormat = errors.New("not a perf.data file")

// An Error says what is wrong with a file, and where.
type Error struct {
	File   string
	Offset int64 // in the file; of a record that was compressed, that of the record it was in; what a header says may be any 64 bits
	Msg    string
	Err    error // what the input failed with, or ErrFormat; nil otherwise
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: at 0x%x: %s", e.File, uint64(e.Offset), e.Msg)
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }
