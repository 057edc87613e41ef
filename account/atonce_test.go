package account_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestAtOnce binds and evaluates one method in several goroutines, and compares with what one
// alone evaluates. The race detector sees what they share.
func TestAtOnce(t *testing.T) {
	for _, cpu := range []string{"skylakex", "icelakex", "power9", "neoverse-n1"} {
		method, err := account.Load(cpu, "", account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		layout := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
		for i, event := range method.Inputs() {
			layout.Columns = append(layout.Columns, counts.Column{Event: event, Group: 1 + i%3})
		}
		table := counts.NewTable(layout)
		table.Duration = 1
		for i := range layout.Columns {
			*table.Cell(0, i) = counts.Cell{Value: float64(1000 + 37*i), Enabled: 1e9, Running: 5e8, State: counts.Counted}
		}
		evaluate := func(b *account.Binding) string {
			a := b.Evaluate(table, account.Place{}, nil)
			return fmt.Sprintf("%+v %+v %v", a.Nodes, a.Checks, a.Bottleneck)
		}
		shared := method.Bind(layout)
		want := evaluate(shared)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				binding := shared
				if i%2 == 0 {
					binding = method.Bind(layout)
				}
				if got := evaluate(binding); got != want {
					t.Errorf("%s: goroutine %d has another account", cpu, i)
				}
			})
		}
		all.Wait()
	}
}
