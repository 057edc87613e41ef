package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
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
	d.findings(&b, title, d.Findings, o)
	d.findings(&b, "", d.Works, o)
	if s := o.Hint("", counts.Fix{Action: counts.ShowFindings}); s != "" && !o.All {
		b.WriteString("  " + s + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// findings writes a list of findings, without the minor ones unless all are asked for.
func (d Diagnosis) findings(b *strings.Builder, title string, list []doctor.Finding, o report.Options) {
	const least = 40 // characters in a line
	marks := map[doctor.State]string{doctor.Good: "yes ", doctor.Bad: "no  ", doctor.Fair: "note"}
	if d.Symbols {
		marks = map[doctor.State]string{doctor.Good: "✓", doctor.Bad: "✗", doctor.Fair: "·"}
	}
	name := 0
	for _, f := range slices.Concat(d.Findings, d.Works) {
		if !f.Minor || o.All {
			name = max(name, len(f.Name))
		}
	}
	if title != "" {
		b.WriteString(title + "\n")
	}
	for _, f := range list {
		if f.Minor && !o.All {
			continue
		}
		lead := fmt.Sprintf("  %s  %-*s  ", marks[f.State], name, f.Name)
		hang := strings.Repeat(" ", len([]rune(lead)))
		for i, line := range page.Wrap(f.Text, max(least, o.Width-len(hang))) {
			if i > 0 {
				lead = hang
			}
			b.WriteString(lead + line + "\n")
		}
		for i, mend := range f.Mend {
			if i == 0 || o.All {
				b.WriteString(hang + "→ " + mend + "\n")
			}
		}
	}
}
