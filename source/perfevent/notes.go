package perfevent

import (
	"fmt"
	"slices"
	"strings"
)

// notes are what tables have to say beside their counts: each once, and not
// more than a person would read.
type notes struct{ list []string }

const maxNotes = 50

// EndedEarly begins the note of a table of which nothing was counted, as what was to be
// counted, or the counting, ended before Spec.Delay was over.
const EndedEarly = "nothing was counted: it ended before the delay"

func (n *notes) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(n.list) < maxNotes && !slices.Contains(n.list, text) {
		n.list = append(n.list, text)
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
