package account_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestStarvationByPlace checks that starvation of the front end is judged for functions:
// one stalls with full buffers, and the other with room in them. Over the run the two
// cancel, and the run is not judged.
func TestStarvationByPlace(t *testing.T) {
	method, err := account.Load("core2", "core2-cycles", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	columns := []counts.Column{{Event: "CPU_CLK_UNHALTED.CORE"}, {Event: "RS_UOPS_DISPATCHED.CYCLES_NONE"}, {Event: "RESOURCE_STALLS.ANY"}}
	scopes := []counts.Scope{counts.RunScope("all")}
	for _, name := range []string{"waits", "starves"} {
		scopes = append(scopes, counts.Scope{Kind: counts.Function, Label: name, Code: &counts.Code{Function: name}})
	}
	table := counts.NewTable(&counts.Layout{Columns: columns, Scopes: scopes})
	for row, values := range [][]float64{{2e9, 1.3e9, 0.8e9}, {1e9, 0.7e9, 0.75e9}, {1e9, 0.6e9, 0.05e9}} {
		for col, v := range values {
			*table.Cell(row, col) = counts.Cell{State: counts.Counted, Value: v, Samples: int64(v / 1e6)}
		}
	}
	b := method.Bind(table.Layout)
	i := -1
	for k := range method.Model.Nodes {
		if method.Model.Nodes[k].Name == "Starvation_Hint" {
			i = k
		}
	}
	for row, want := range []bool{false, false, true} {
		a := b.Evaluate(table, account.Place{Self: row}, nil)
		if v := a.Nodes[i]; !v.Known() || v.Flagged != want {
			t.Errorf("%s: %v flagged %v, want %v", scopes[row].Label, v.Value, v.Flagged, want)
		}
	}
}
