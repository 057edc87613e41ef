package valgrind

import "fmt"

// An Error is damage in a file.
type Error struct {
	File string
	Line int // at which it was found
	Msg  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// clip shortens quoted text for a message.
func clip(b []byte) string {
	const most = 40
	if len(b) > most {
		return fmt.Sprintf("%q…", b[:most])
	}
	return fmt.Sprintf("%q", b)
}
