package perfstat

import (
	"strconv"

	"github.com/cyclestack/cyclestack/counts"
)

// maxNotes bounds the notes of one table.
const maxNotes = 20

// notes collects what is to be said of a table besides its counts.
type notes struct {
	list []counts.Note
	more int
}

func (n *notes) add(format string, args ...any) {
	if len(n.list) >= maxNotes {
		n.more++
		return
	}
	n.list = append(n.list, counts.Notef(format, args...))
}

// prepend moves earlier notes before these.
func (n *notes) prepend(earlier *notes) {
	if len(earlier.list) > 0 {
		later := *n
		*n = notes{list: earlier.list, more: earlier.more + later.more}
		for _, note := range later.list {
			n.add("%s", note.Text)
		}
	}
	*earlier = notes{}
}

// all appends the notes to a list.
func (n *notes) all(list []counts.Note) []counts.Note {
	list = append(list, n.list...)
	if n.more > 0 {
		list = append(list, counts.Notef("and %d more notes", n.more))
	}
	return list
}

// take moves the notes into a table's, whose memory it uses.
func (n *notes) take(into []counts.Note) []counts.Note {
	into = n.all(into[:0])
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
