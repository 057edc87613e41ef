package perfstat

import (
	"fmt"
	"strconv"
)

// maxNotes bounds the notes of one table.
const maxNotes = 20

// notes collects what is to be said of a table besides its counts.
type notes struct {
	list []string
	more int
}

func (n *notes) add(format string, args ...any) {
	if len(n.list) >= maxNotes {
		n.more++
		return
	}
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

// take moves the notes into a table's, whose memory it uses.
func (n *notes) take(into []string) []string {
	into = append(into[:0], n.list...)
	if n.more > 0 {
		into = append(into, fmt.Sprintf("and %d more such lines", n.more))
	}
	n.list, n.more = n.list[:0], 0
	return into
}

// quote returns text for a message: in quotation marks, and not too long.
func quote(b []byte) string {
	const most = 60
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "…"
	}
	return strconv.Quote(string(b))
}
