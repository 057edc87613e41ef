package account_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestOneProcessorsClock checks that one processor's time-stamp counter contradicts no sum of
// reference cycles over several. On one processor it still does.
func TestOneProcessorsClock(t *testing.T) {
	method, err := account.Load("skylakex", "", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name                string
		ref, tsc, enabled   float64 // enabled: of the reference cycles, in seconds
		contradicted, given bool
	}{
		{"eight processors, by their times", 12e9, 2.5e9, 8, false, true},
		{"eight processors, by the amount", 18e9, 2.5e9, 0, false, false},
		{"two processors, half idle", 3.7e9, 2.5e9, 0, false, false},
		{"one processor", 2.4e9, 2.5e9, 1, false, true},
		{"one processor, too many", 2.4e9, 1e9, 1, true, true},
		{"eight processors, too many", 50e9, 20e9, 8, true, false},
	} {
		l := &counts.Layout{Columns: []counts.Column{{Event: "ref-cycles"}, {Event: "msr/tsc/"}}, Scopes: []counts.Scope{counts.RunScope("")}}
		table := counts.NewTable(l)
		table.Duration = 1
		for col, v := range []float64{tt.ref, tt.tsc} {
			c := counts.Cell{State: counts.Counted, Value: v}
			if tt.given {
				c.Enabled = 1e9
				if col == 0 {
					c.Enabled = tt.enabled * 1e9
				}
				c.Running = c.Enabled
			}
			*table.Cell(0, col) = c
		}
		if a := method.Bind(l).Evaluate(table, account.Place{}, nil); a.Contradicted() != tt.contradicted {
			t.Errorf("%s: contradicted %v, by %v", tt.name, a.Contradicted(), a.Suspects())
		}
	}
}
