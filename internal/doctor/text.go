package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Print writes a diagnosis for people, in lines of about so many characters. Symbols
// stand for the states of findings if they can be shown, else words.
func (d *Diagnosis) Print(w io.Writer, symbols bool, width int) error {
	marks := map[State]string{Good: "yes ", Bad: "no  ", Fair: "note"}
	if symbols {
		marks = map[State]string{Good: "✓", Bad: "✗", Fair: "·"}
	}
	var b strings.Builder
	list := func(title string, findings []Finding, front string) {
		name := 0
		for _, f := range findings {
			name = max(name, len(front)+len(f.Name))
		}
		fmt.Fprintf(&b, "%s\n", title)
		for _, f := range findings {
			lead := fmt.Sprintf("  %s  %-*s  ", marks[f.State], name, front+f.Name)
			hang := strings.Repeat(" ", len([]rune(lead)))
			for i, line := range fold(f.Text, width-len(hang)) {
				if i > 0 {
					lead = hang
				}
				b.WriteString(lead + line + "\n")
			}
			for _, mend := range f.Mend {
				b.WriteString(hang + "→ " + mend + "\n")
			}
		}
	}
	title := "This machine"
	if d.CPU != "" {
		title += ", " + d.CPU
	}
	list(title, d.Findings, "")
	b.WriteByte('\n')
	list("As things are", d.Works, "cyclestack ")
	_, err := io.WriteString(w, b.String())
	return err
}

// fold breaks a text into lines of at most so many characters.
func fold(text string, width int) []string {
	const least = 40
	width = max(least, width)
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
