package account_test

import (
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestSkids finds the imprecisely sampled events of a node, also those of other nodes that it
// rests on.
func TestSkids(t *testing.T) {
	method, err := account.Load("skylakex", "tma", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}, Columns: []counts.Column{
		{Event: "CPU_CLK_UNHALTED.THREAD"}, {Event: "IDQ_UOPS_NOT_DELIVERED.CORE"}, {Event: "UOPS_ISSUED.ANY"},
		{Event: "UOPS_RETIRED.RETIRE_SLOTS"}, {Event: "INT_MISC.RECOVERY_CYCLES", Skids: true},
	}}
	table := counts.NewTable(l)
	for i := range l.Columns {
		*table.Cell(0, i) = counts.Cell{Value: 1e6, State: counts.Counted}
	}
	a := method.Bind(l).Evaluate(table, account.Place{}, nil)
	for name, want := range map[string][]string{"Frontend_Bound": nil, "Retiring": nil,
		"Bad_Speculation": {"INT_MISC.RECOVERY_CYCLES"}, "Backend_Bound": {"INT_MISC.RECOVERY_CYCLES"}} {
		i, ok := a.Node(name)
		if !ok {
			t.Fatal("no node", name)
		}
		if got := a.Skids(i); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
