package counts_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
)

// runOf is a run with one scope, its cells counted all of the time unless share says
// otherwise.
func runOf(duration float64, columns []counts.Column, values []float64, share float64) *counts.Table {
	t := counts.NewTable(&counts.Layout{Columns: columns, Scopes: []counts.Scope{counts.RunScope("")}})
	t.Duration, t.CPU = duration, "skylakex"
	for i, v := range values {
		*t.Cell(0, i) = counts.Cell{State: counts.Counted, Value: v, Enabled: 1e9, Running: 1e9 * share, Variance: 4}
	}
	return t
}

// TestJoinRuns checks that runs with different events become one table. Counts of
// different runs are in different groups, for a part of the time.
func TestJoinRuns(t *testing.T) {
	one := runOf(10, []counts.Column{{Event: "cycles"}, {Event: "loads", Group: 3, Whole: 1}}, []float64{1000, 50}, 1)
	two := runOf(12, []counts.Column{{Event: "cycles", Group: 1}, {Event: "stores", Group: 1, Whole: 1}}, []float64{1100, 70}, 1)
	three := runOf(14, []counts.Column{{Event: "branches", Group: 1}, {Event: "cycles", Group: 2}, {Event: "faults"}}, []float64{9, 1050, 1}, 0.5)
	three.Scopes[0].CPUs = 8
	three.Notes = []counts.Note{counts.Notef("a note")}
	*one.Cell(0, 1) = counts.Cell{State: counts.NotCounted, Enabled: 1e9}

	all, err := counts.JoinRuns([]*counts.Table{one, two, three})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var groups, wholes []int
	for _, c := range all.Columns {
		names, groups, wholes = append(names, c.Event), append(groups, c.Group), append(wholes, c.Whole)
	}
	if want := []string{"cycles", "loads", "cycles", "stores", "branches", "cycles", "faults"}; !slices.Equal(names, want) {
		t.Errorf("columns %v, want %v", names, want)
	}
	// The multiplexed events of the third run keep their groups, and faults are unknown.
	if g := groups; g[0] == 0 || g[2] != g[3] || g[0] == g[2] || g[4] == 0 || g[5] == 0 || g[4] == g[5] || g[4] == g[2] || g[5] == g[2] || g[6] != 0 {
		t.Errorf("groups %v", groups)
	}
	if w := wholes; w[1] == 0 || w[1] == w[3] || w[0] != 0 {
		t.Errorf("wholes %v", wholes)
	}
	for i, want := range []float64{1000, math.NaN(), 1100, 70, 9, 1050, 1} {
		c := all.Cell(0, i)
		coverage := 1.0 / 3
		if i > 3 {
			coverage = 0.5 / 3
		}
		if i == 1 {
			if c.State != counts.NotCounted {
				t.Errorf("loads are %v", c)
			}
			continue
		}
		if c.Estimate() != want || math.Abs(c.Coverage()-coverage) > 1e-12 || c.Variance != 4 {
			t.Errorf("%s is %v, of coverage %v; want %v, %v", names[i], c.Estimate(), c.Coverage(), want, coverage)
		}
	}
	if all.Duration != 12 || all.CPU != "skylakex" || all.Scopes[0].CPUs != 8 || one.Scopes[0].CPUs != 0 {
		t.Errorf("%v s on %d of %s", all.Duration, all.Scopes[0].CPUs, all.CPU)
	}
	if len(all.Notes) != 2 || all.Notes[0] != counts.Notef("a note") || !strings.Contains(all.Notes[1].Text, "counted in 3 runs") {
		t.Errorf("notes %q", all.Notes)
	}
	if got, want := counts.Apart([]*counts.Table{one, two, three}), "cycles was counted in 3 of the runs, and differs by 9.1 % at most"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if one.Cell(0, 0).Coverage() != 1 {
		t.Error("the run was changed")
	}
}

// TestJoinRunsWithAlways checks that what was counted all of a run is together with the
// one group that just was not.
func TestJoinRunsWithAlways(t *testing.T) {
	one := runOf(10, []counts.Column{{Event: "cycles", Group: 1}, {Event: "loads", Group: 1}, {Event: "duration_time"}}, []float64{1000, 50, 10}, 0.99)
	one.Cell(0, 2).Running = 1e9
	two := runOf(10, []counts.Column{{Event: "stores"}}, []float64{7}, 1)
	all, err := counts.JoinRuns([]*counts.Table{one, two})
	if err != nil {
		t.Fatal(err)
	}
	if c := all.Columns; c[0].Group == 0 || c[0].Group != c[1].Group || c[0].Group != c[2].Group || c[3].Group == c[0].Group {
		t.Errorf("columns %v", c)
	}
	if got := counts.Apart([]*counts.Table{one, two}); got != "" {
		t.Errorf("no event is in both runs: %s", got)
	}
}

// TestJoinRunsOfScopes checks that runs of different places are not joined.
func TestJoinRunsOfScopes(t *testing.T) {
	one := runOf(10, []counts.Column{{Event: "cycles"}}, []float64{1}, 1)
	two := runOf(10, []counts.Column{{Event: "loads"}}, []float64{1}, 1)
	two.Scopes[0].Socket = 1
	if _, err := counts.JoinRuns([]*counts.Table{one, two}); !errors.Is(err, counts.ErrLayout) {
		t.Errorf("%v", err)
	}
}
