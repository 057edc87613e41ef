package report

import "github.com/cyclestack/cyclestack/counts"

// note is the text of a note.
func (o Options) note(n counts.Note) string {
	if o.Note == nil {
		return n.Text
	}
	return o.Note(n)
}

// Hint returns a text with what shows more, in the reader's words.
func (o Options) Hint(text string, f counts.Fix) string {
	return o.note(counts.Note{Text: text, Fix: f})
}

// Texts returns the texts of notes, nil for none.
func (o Options) Texts(list []counts.Note) []string {
	var texts []string
	for _, n := range list {
		texts = append(texts, o.note(n))
	}
	return texts
}
