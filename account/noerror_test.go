package account_test

import (
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// multiplexed sums intervals of a recording of the toy. Its events were counted for a quarter
// of the time, in two groups.
func multiplexed(t *testing.T, intervals int, seconds float64, stalls func(i int) float64) *account.Account {
	t.Helper()
	m := toy(t, account.Options{})
	l := &counts.Layout{
		Columns: []counts.Column{{Event: "CYC", Group: 1}, {Event: "STALL", Group: 1}, {Event: "MISS", Group: 2}},
		Scopes:  []counts.Scope{counts.RunScope("")},
	}
	total, table := counts.NewTotal(0), counts.NewTable(l)
	for i := range intervals {
		table.Reset(l)
		table.Interval, table.Start, table.Duration = intervals > 1, float64(i)*seconds, seconds
		for col, v := range []float64{1e6, 1e6 * stalls(i), 1e4} {
			*table.Cell(0, col) = counts.Cell{State: counts.Counted, Value: v, Enabled: seconds * 1e9, Running: seconds * 25e7}
		}
		if err := total.Add(table); err != nil {
			t.Fatal(err)
		}
	}
	sum := total.Table()
	return m.Bind(sum.Layout).Evaluate(sum, account.Place{}, nil)
}

// TestNoError checks that a value of multiplexed counts has an error, or a reason for
// none and a bound.
func TestNoError(t *testing.T) {
	stalls := func(i int) float64 { return 0.4 + 0.1*float64(i*i%3) }
	for _, tt := range []struct {
		intervals int
		reason    string // that it begins with
	}{
		{1, "not known, because one block of multiplexed counts"},
		{2, "not known, because 2 intervals"},
		{3, ""},
		{10, ""},
	} {
		a := multiplexed(t, tt.intervals, 1, stalls)
		i, _ := a.Node("Stalled")
		v := &a.Nodes[i]
		why, bound := a.NoError(i)
		if tt.reason == "" {
			if why != "" || !(v.Error > 0) || !math.IsNaN(bound) {
				t.Errorf("%d intervals: error %v, reason %q, bound %v", tt.intervals, v.Error, why, bound)
			}
			continue
		}
		if want := 0.75 * max(v.Value, 1-v.Value); !strings.HasPrefix(why, tt.reason) || math.Abs(bound-want) > 1e-12 || !math.IsNaN(v.Error) {
			t.Errorf("%d intervals: error %v, reason %q, bound %v, want %q and %v", tt.intervals, v.Error, why, bound, tt.reason, want)
		}
	}
}

// TestNarrower checks that long intervals with a large error recommend shorter ones, and
// that short intervals do not.
func TestNarrower(t *testing.T) {
	for _, tt := range []struct {
		seconds, swing float64
		want           bool
	}{{1, 0.3, true}, {1, 0.001, false}, {0.02, 0.3, false}} {
		a := multiplexed(t, 30, tt.seconds, func(i int) float64 { return 0.4 + tt.swing*float64(i*i%3) })
		got := false
		for _, n := range a.Notes {
			got = got || strings.Contains(n.Text, "Intervals of 20 ms")
		}
		if got != tt.want {
			t.Errorf("intervals of %v s with a swing of %v: notes %q", tt.seconds, tt.swing, a.Notes)
		}
	}
}
