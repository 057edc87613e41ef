package perfstat_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

var update = flag.Bool("update", false, "rewrite what the files under testdata want")

// TestForms reads the inputs under testdata, one file for each form. A file has a
// description, the input and what is to be read from it.
func TestForms(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no forms: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) != 2 || archive.Files[0].Name != "input" || archive.Files[1].Name != "want" {
				t.Fatal("wants the two files input and want")
			}
			got := describe(archive.Files[0].Data, perfstat.Options{})
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// describe reads an input and writes down everything that the tables say.
func describe(input []byte, opts perfstat.Options) string {
	var b strings.Builder
	r := perfstat.NewReader(bytes.NewReader(input), "input", opts)
	for r.Next() {
		describeTable(&b, r.Kind(), r.Table())
	}
	for _, n := range r.Notes() {
		fmt.Fprintf(&b, "at the end: %s\n", n)
	}
	if err := r.Err(); err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	return b.String()
}

func describeTable(b *strings.Builder, kind string, t *counts.Table) {
	fmt.Fprintf(b, "%s line %d label %q", kind, t.Line, t.Label)
	if t.Interval {
		fmt.Fprintf(b, " interval from %v s", t.Start)
	}
	if !math.IsNaN(t.Duration) {
		fmt.Fprintf(b, " %v s", t.Duration)
	}
	if t.Elapsed > 0 {
		fmt.Fprintf(b, " ± %.3g", t.Elapsed)
	}
	if t.CPU != "" {
		fmt.Fprintf(b, " cpu %s", t.CPU)
	}
	b.WriteByte('\n')
	for i, s := range t.Scopes {
		fmt.Fprintf(b, "  %s\n", describeScope(s))
		for j, c := range t.Columns {
			if cell := t.Cell(i, j); cell.State != counts.Absent {
				fmt.Fprintf(b, "    %s\n", describeCell(c, cell))
			}
		}
	}
	for _, n := range t.Notes {
		fmt.Fprintf(b, "  note: %s\n", n)
	}
}

func describeScope(s counts.Scope) string {
	text := fmt.Sprintf("%s %q", s.Kind, s.Label)
	for _, f := range []struct {
		name   string
		number int
	}{{"cpu", s.CPU}, {"core", s.Core}, {"die", s.Die}, {"socket", s.Socket}, {"node", s.Node}, {"tid", s.TID}} {
		if f.number != counts.Unknown {
			text += fmt.Sprintf(" %s=%d", f.name, f.number)
		}
	}
	if s.CPUs > 0 {
		text += fmt.Sprintf(" of %d CPUs", s.CPUs)
	}
	if s.Cgroup != "" {
		text += fmt.Sprintf(" cgroup %q", s.Cgroup)
	}
	return text
}

func describeCell(c counts.Column, cell *counts.Cell) string {
	text := c.Event + ": " + cell.State.String()
	if cell.Ok() {
		text = c.Event + ": " + strconv.FormatFloat(cell.Value, 'f', -1, 64)
	}
	if c.Unit != "" {
		text += " " + c.Unit
	}
	if cell.Ok() && math.IsNaN(cell.Coverage()) {
		text += ", coverage unknown"
	} else if v := cell.Coverage(); cell.Ok() && v < 1 {
		text += fmt.Sprintf(", %.4g %% of %.6g s", v*100, cell.Enabled/1e9)
	}
	if cell.Lost > 0 {
		text += fmt.Sprintf(", lost %.6g s", cell.Lost/1e9)
	}
	if cell.Variance > 0 {
		text += fmt.Sprintf(", ± %.4g", math.Sqrt(cell.Variance))
	}
	if cell.Repeats > 0 {
		text += fmt.Sprintf(", %d runs", cell.Repeats)
	}
	if c.Group > 0 {
		text += fmt.Sprintf(", group %d", c.Group)
	}
	return text
}
