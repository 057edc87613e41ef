package valgrind

import (
	"fmt"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// An Error is damage in a file.
type Error struct {
	File string
	Line int // of the damage
	Msg  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// quote quotes text of a file for a message.
func quote(b []byte) string { return strconv.Quote(spelling.Clip(string(b))) }
