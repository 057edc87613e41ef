package account_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// TestCourse checks what is said of recordings in intervals: who is behind a
// counter that stands still, one that stops, rates that rise, and an interval that
// stands out.
func TestCourse(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	const intervals = 30
	noise := rand.New(rand.NewPCG(7, 8))
	for _, tt := range []struct {
		name  string
		of    func(i int) float64 // instructions in an interval
		check string
		side  account.Side
		wrong bool // the recording contradicts itself
	}{
		{"steady", func(int) float64 { return 2e8 * (1 + 0.05*noise.Float64()) }, "", account.Machine, false},
		{"still", func(i int) float64 { return 2e8 }, "counts change from interval to interval", account.Measurement, true},
		{"stopped", func(i int) float64 {
			if i > 20 {
				return 0
			}
			return 2e8 * (1 + 0.05*noise.Float64())
		}, "counters count to the end", account.Measurement, false},
		{"rising", func(i int) float64 { return 1e8 * (1 + float64(i)/30 + 0.02*noise.Float64()) }, "the rates stay the same over the recording", account.Machine, false},
		{"one peak", func(i int) float64 {
			if i == 12 {
				return 2e9
			}
			return 2e8 * (1 + 0.05*noise.Float64())
		}, "no interval stands out", account.Machine, false},
	} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}, Columns: []counts.Column{{Event: "cycles"}, {Event: "instructions"}}}
		total := counts.NewTotal(0)
		for i := range intervals {
			one := counts.NewTable(l)
			one.Start, one.Duration, one.Interval = float64(i), 1, true
			*one.Cell(0, 0) = all(4e8 * (1 + 0.05*noise.Float64()))
			*one.Cell(0, 1) = all(tt.of(i))
			if err := total.Add(one); err != nil {
				t.Fatal(err)
			}
		}
		table := total.Table()
		a := bindBest(t, cat, tt.name, "skylake", table).audit(table)
		if a.Contradicted() != tt.wrong {
			t.Errorf("%s: contradicted %v, by %v", tt.name, a.Contradicted(), a.Suspects())
		}
		failing := 0
		for i := range a.Checks {
			c := &a.Checks[i]
			if c.State != account.Fails {
				continue
			}
			failing++
			if c.Name != tt.check || c.Side != tt.side || !slices.ContainsFunc(c.Events, func(e string) bool { return e != "" && e[0] == 'I' }) {
				t.Errorf("%s: %s fails, by the %v: %v", tt.name, c.Name, c.Side, c.Events)
			}
		}
		if (failing > 0) != (tt.check != "") {
			t.Errorf("%s: %d checks fail", tt.name, failing)
		}
	}
}
