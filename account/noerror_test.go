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
			got = got || strings.Contains(n.Text, "Intervals of 20 ms") && a.Finer == 0.02
		}
		if got != tt.want {
			t.Errorf("intervals of %v s with a swing of %v: notes %q", tt.seconds, tt.swing, a.Notes)
		}
	}
}

// TestNarrowerSlots checks the same of a method of slots, whose formulas are shares.
func TestNarrowerSlots(t *testing.T) {
	method, err := account.Load("skylake", "", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}, Columns: []counts.Column{
		{Event: "CPU_CLK_UNHALTED.THREAD", Group: 1}, {Event: "IDQ_UOPS_NOT_DELIVERED.CORE", Group: 1}, {Event: "INST_RETIRED.ANY", Group: 2}}}
	for _, intervals := range []int{1, 30} {
		total, table := counts.NewTotal(0), counts.NewTable(l)
		for i := range intervals {
			table.Reset(l)
			table.Interval, table.Start, table.Duration = intervals > 1, float64(i), 1
			for col, v := range []float64{1e9, 1e9 * (1 + 0.5*float64(i*i%3)), 1e9} {
				*table.Cell(0, col) = counts.Cell{State: counts.Counted, Value: v, Enabled: 1e9, Running: 5e8}
			}
			if err := total.Add(table); err != nil {
				t.Fatal(err)
			}
		}
		sum := total.Table()
		a := method.Bind(sum.Layout).Evaluate(sum, account.Place{}, nil)
		node, _ := a.Node("Frontend_Bound")
		why, bound := a.NoError(node)
		told := false
		for _, n := range a.Notes {
			told = told || strings.Contains(n.Text, "errors may be too large")
		}
		if one := intervals == 1; told == one || (why != "") != one || math.IsNaN(bound) == one {
			t.Errorf("%d intervals: error %v, reason %q, bound %v, notes %q", intervals, a.Nodes[node].Error, why, bound, a.Notes)
		}
	}
}

// TestNoErrorOfEstimates checks that estimates without variances say what their source says of it.
func TestNoErrorOfEstimates(t *testing.T) {
	method := toy(t, account.Options{})
	table := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "CYC"}, {Event: "STALL"}}, Scopes: []counts.Scope{counts.RunScope("")}})
	table.NoError = "there is one sample"
	for col, v := range []float64{100, 40} {
		*table.Cell(0, col) = counts.Cell{State: counts.Counted, Value: v}
	}
	a := method.Bind(table.Layout).Evaluate(table, account.Place{}, nil)
	i, _ := a.Node("Stalled")
	if why, _ := a.NoError(i); why != "not known, because there is one sample" {
		t.Errorf("without an error: %q", why)
	}
}
