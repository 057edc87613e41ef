package render_test

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/report"
)

// pictured returns the picture of the list of the examples.
func pictured(t *testing.T, iterations int) render.Pictures {
	t.Helper()
	cores := []*simulation.Core{simulation.ModelledCore("skylake")}
	p := &core.Program{File: "../../examples/annotate/bin/solve", Function: "solve", Loop: 1, Cores: cores}
	d, err := p.Analyse()
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := d.Trace(iterations)
	if err != nil {
		t.Fatal(err)
	}
	return render.Pictures{Pictures: pictures}
}

func pictureText(t *testing.T, d render.Pictures, format string, width int) string {
	t.Helper()
	var out strings.Builder
	if err := report.Write(&out, format, d, report.Options{Width: width}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestPicture checks that stages follow each other in every row, and that pages fit.
func TestPicture(t *testing.T) {
	d := pictured(t, 30)
	p := d.List[0]
	if got := p.Rows[len(p.Rows)-1].Iteration; got != 29 {
		t.Errorf("the last iteration is %d", got)
	}
	starts := map[int]int{} // issue of the load that the next address comes from, by iteration
	for i := range p.Rows {
		r := &p.Rows[i]
		if !(r.Fetched < r.Dispatched && r.Dispatched <= r.Issued && r.Ready <= r.Issued && r.Issued < r.Done && r.Done < r.Retired && r.Retired < p.End) {
			t.Errorf("row %d: %+v", i, r)
		}
		if i > 0 && r.Retired < p.Rows[i-1].Retired {
			t.Errorf("row %d retires before the one in front of it", i)
		}
		if r.Instruction == 1 {
			starts[r.Iteration] = r.Issued
		}
	}
	chain := 0
	for _, l := range p.Main().Chain {
		chain += int(l.Latency)
	}
	if got := starts[29] - starts[28]; got < chain {
		t.Errorf("loads start %d cycles apart, and take %d", got, chain)
	}
	text := pictureText(t, d, "text", 100)
	pages := 0
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(line) > 101 {
			t.Errorf("over 100 columns: %q", line)
		}
		if strings.HasPrefix(line, "1  add") || strings.HasPrefix(line, "30 add") {
			pages++
		}
	}
	if pages < 2 || strings.Count(text, "R\n") != len(p.Rows) {
		t.Errorf("%d pages, %d rows retire, of %d:\n%s", pages, strings.Count(text, "R\n"), len(p.Rows), text)
	}
}

// TestKonata reads the log as the format is documented: an instruction is introduced before
// it has stages, and ends once.
func TestKonata(t *testing.T) {
	d := pictured(t, 3)
	lines := strings.Split(strings.TrimSuffix(pictureText(t, d, "konata", 100), "\n"), "\n")
	if lines[0] != "Kanata\t0004" || lines[1] != "C=\t0" {
		t.Errorf("the log begins with %q", lines[:2])
	}
	open, ended, cycle := map[string]bool{}, 0, 0
	for i, line := range lines[2:] {
		f := strings.Split(line, "\t")
		switch f[0] {
		case "C":
			n, err := strconv.Atoi(f[1])
			if err != nil || n < 1 {
				t.Errorf("line %d: %q", i+3, line)
			}
			cycle += n
		case "I":
			open[f[1]] = true
		case "L", "S":
			if !open[f[1]] || len(f) != 4 {
				t.Errorf("line %d: %q of no instruction", i+3, line)
			}
		case "R":
			if !open[f[1]] || f[3] != "0" {
				t.Errorf("line %d: %q", i+3, line)
			}
			delete(open, f[1])
			ended++
		default:
			t.Errorf("line %d: %q", i+3, line)
		}
	}
	if p := d.List[0]; ended != len(p.Rows) || len(open) > 0 || cycle != p.End-1 {
		t.Errorf("%d of %d rows ended by cycle %d of %d", ended, len(p.Rows), cycle, p.End)
	}
}

// TestO3PipeView reads the trace as gem5's viewer does: seven lines for each micro-op, and
// the text has no colon.
func TestO3PipeView(t *testing.T) {
	d := pictured(t, 3)
	lines := strings.Split(strings.TrimSuffix(pictureText(t, d, "o3pipeview", 100), "\n"), "\n")
	if len(lines) != 7*len(d.List[0].Rows) {
		t.Fatalf("%d lines", len(lines))
	}
	for i := 0; i < len(lines); i += 7 {
		before := 0
		for k, stage := range []string{"fetch", "decode", "rename", "dispatch", "issue", "complete", "retire"} {
			f := strings.Split(lines[i+k], ":")
			tick, err := strconv.Atoi(f[2])
			want := map[int]int{0: 7, 6: 5}[k]
			if f[0] != "O3PipeView" || f[1] != stage || err != nil || want > 0 && len(f) != want {
				t.Fatalf("line %d: %q", i+k+1, lines[i+k])
			}
			if tick != 0 && tick < before {
				t.Errorf("line %d: %q comes before the stage in front of it", i+k+1, lines[i+k])
			}
			before = max(before, tick)
		}
	}
}

// TestPictureSVG checks that the picture is XML with a rectangle for every state.
func TestPictureSVG(t *testing.T) {
	d := pictured(t, 3)
	text := pictureText(t, d, "svg", 100)
	if err := xml.Unmarshal([]byte(text), new(struct{})); err != nil {
		t.Error(err)
	}
	if n, rows := strings.Count(text, "<rect"), len(d.List[0].Rows); n < 4*rows {
		t.Errorf("%d rectangles for %d rows", n, rows)
	}
	if !strings.Contains(text, fmt.Sprintf("executes, cycle %d", d.List[0].Rows[0].Issued)) {
		t.Errorf("no execution at cycle %d", d.List[0].Rows[0].Issued)
	}
	if rows := strings.Count(pictureText(t, d, "csv", 100), "\n"); rows != len(d.List[0].Rows)+1 {
		t.Errorf("%d rows of CSV", rows)
	}
}
