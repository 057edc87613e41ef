package perfevent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
)

// notes are the remarks of a table: each once, and not more than a person would read.
type notes struct{ list []counts.Note }

const maxNotes = 50

func (n *notes) add(format string, args ...any) { n.append(counts.Notef(format, args...)) }

func (n *notes) append(note counts.Note) {
	if len(n.list) < maxNotes && !slices.Contains(n.list, note) {
		n.list = append(n.list, note)
	}
}

// some lists names, the first few of many.
func some(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
