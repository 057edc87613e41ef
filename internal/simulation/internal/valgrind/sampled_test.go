package valgrind

import (
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
)

// TestFormerNames reads a file of a former version, whose page walks had another name.
func TestFormerNames(t *testing.T) {
	text := "# callgrind format\ndesc: Sampling error: Ct 0.01\npositions: line\nevents: Ir Dw DW DWu Ct\n\nfn=main\n1 100 7 3 1 50\n"
	r := NewReader(strings.NewReader(text), "former", Options{})
	if !r.Next() {
		t.Fatal(r.Err())
	}
	got := map[string]float64{}
	for i, c := range r.Table().Columns {
		got[c.Event] = r.Table().Cell(0, i).Value
	}
	if got["Dw"] != 7 || got["Wd"] != 3 || got["Wdu"] != 1 {
		t.Errorf("counts are %v", got)
	}
}

// TestSampled reads variances. A function has those of its instructions, and the run has the error
// of the header. In a file without variances, parts have that too.
func TestSampled(t *testing.T) {
	text := `# callgrind format
version: 1
creator: cyclestack
cmd: ./app
desc: Sampling error: Ct 0.01 C3t 0.1 Cmt 0.1
positions: line
events: Ir Ct C3t Cmt Vt Vbt Vwt

fn=main
1 100 1000000 300000 100000 400 0 900
2 100 1000000 0 0 500 0 0
fn=work
3 100 2000000 0 0 0 0 0

totals: 300 4000000 300000 100000 900 0 900
`
	without := strings.NewReplacer(" Vt Vbt Vwt", "", " 400 0 900\n", "\n", " 500 0 0\n", "\n", " 0 0 0\n", "\n", " 900 0 900\n", "\n").Replace(text)
	for name, test := range map[string]struct {
		text string
		want []float64 // standard deviations: of Ct in the run and in main, of C3t and Cmt in main
	}{
		"variances": {text, []float64{0.01 * 4e6, 30e3, 30e3 * 0.75, 30e3 * 0.25}},
		"few":       {strings.Replace(text, "Ct 0.01 C3t 0.1 Cmt 0.1", FewWindows+" 2", 1), []float64{0, 0, 0, 0}},
		"none":      {without, []float64{0.01 * 4e6, 0.01 * math.Sqrt(4e6*2e6), 0.1 * 3e5, 0.1 * 1e5}},
	} {
		r := NewReader(strings.NewReader(test.text), name, Options{By: counts.Function})
		if !r.Next() {
			t.Fatal(r.Err())
		}
		table := r.Table()
		column := func(event string) int {
			for i, c := range table.Columns {
				if c.Event == event {
					return i
				}
			}
			return -1
		}
		if few := name == "few"; strings.Contains(table.NoError, "in 2 windows") != few {
			t.Errorf("%s: without an error, because %q", name, table.NoError)
		}
		if column("Vt") >= 0 {
			t.Errorf("%s: a variance is a count", name)
		}
		if len(table.Scopes) != 3 || table.Scopes[1].Code.Function != "main" {
			t.Fatalf("%s: %d scopes", name, len(table.Scopes))
		}
		for i, c := range []*counts.Cell{table.Cell(0, column("Ct")), table.Cell(1, column("Ct")), table.Cell(1, column("C3t")), table.Cell(1, column("Cmt"))} {
			if got := math.Sqrt(c.Variance); math.Abs(got-test.want[i]) > 1e-6*test.want[i] {
				t.Errorf("%s: %d: a deviation of %g, want %g", name, i, got, test.want[i])
			}
		}
	}
}
