package report

import "github.com/cyclestack/cyclestack/counts"

// note is the text of a note.
func (o Options) note(n counts.Note) string {
	if o.Note == nil {
		return n.Text
	}
	return o.Note(n)
}

// Hint returns a text that names flags or commands, "" if the reader has none.
func (o Options) Hint(text string) string {
	if !o.Hints {
		return ""
	}
	return text
}

// Texts returns the texts of notes, nil for none.
func (o Options) Texts(list []counts.Note) []string {
	var texts []string
	for _, n := range list {
		texts = append(texts, o.note(n))
	}
	return texts
}
