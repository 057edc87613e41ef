package counts_test

import (
	"fmt"

	"github.com/cyclestack/cyclestack/counts"
)

// Two intervals of one event. In the second it was never on a counter.
func ExampleTotal() {
	layout := &counts.Layout{
		Columns: []counts.Column{{Event: "cycles"}},
		Scopes:  []counts.Scope{counts.RunScope("./app")},
	}
	total := counts.NewTotal(0)
	for i, cell := range []counts.Cell{
		{Value: 1000, Enabled: 1e9, Running: 1e9, State: counts.Counted},
		{Enabled: 1e9, State: counts.NotCounted},
	} {
		t := counts.NewTable(layout)
		t.Start, t.Duration, t.Interval = float64(i), 1, true
		*t.Cell(0, 0) = cell
		if err := total.Add(t); err != nil {
			panic(err)
		}
	}
	c := total.Table().Cell(0, 0)
	fmt.Printf("%.0f counted, %.0f estimated, counted %.0f %% of the time\n", c.Value, c.Estimate(), 100*c.Coverage())
	// Output: 1000 counted, 2000 estimated, counted 50 % of the time
}
