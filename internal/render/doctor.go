package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/cyclestack/cyclestack/internal/doctor"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

// A Diagnosis is a document: what can be counted on a machine.
type Diagnosis struct {
	*doctor.Diagnosis
	// Symbols says that the text may have symbols for the states of findings: the
	// terminal shows Unicode.
	Symbols bool
}

func init() {
	report.Register("text", writeDiagnosis)
	report.Register("json", func(w io.Writer, d Diagnosis, _ report.Options) error { return page.JSON(w, d.Diagnosis) })
}

func writeDiagnosis(w io.Writer, d Diagnosis, o report.Options) error {
	var b strings.Builder
	title := "This machine"
	if d.CPU != "" {
		title += ", " + d.CPU
	}
	d.findings(&b, title, d.Findings, "", o.Width)
	b.WriteByte('\n')
	d.findings(&b, "As things are", d.Works, "cyclestack ", o.Width)
	_, err := io.WriteString(w, b.String())
	return err
}

// findings writes a list of findings, each with the front of its name.
func (d Diagnosis) findings(b *strings.Builder, title string, list []doctor.Finding, front string, width int) {
	marks := map[doctor.State]string{doctor.Good: "yes ", doctor.Bad: "no  ", doctor.Fair: "note"}
	if d.Symbols {
		marks = map[doctor.State]string{doctor.Good: "✓", doctor.Bad: "✗", doctor.Fair: "·"}
	}
	name := 0
	for _, f := range list {
		name = max(name, len(front)+len(f.Name))
	}
	fmt.Fprintf(b, "%s\n", title)
	for _, f := range list {
		const least = 40 // characters in a line
		lead := fmt.Sprintf("  %s  %-*s  ", marks[f.State], name, front+f.Name)
		hang := strings.Repeat(" ", len([]rune(lead)))
		for i, line := range page.Wrap(f.Text, max(least, width-len(hang))) {
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
