package plan_test

import (
	"math"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/plan"
)

// TestRotation checks that the first levels are seen most, and at even
// distances.
func TestRotation(t *testing.T) {
	p := planFor(t, "skylakex", "tma", plan.Options{})
	first := &p.Groups[0]
	for i := range p.Groups {
		if p.Groups[i].Turns > first.Turns {
			t.Errorf("group %d has %d turns, the first %d", i+1, p.Groups[i].Turns, first.Turns)
		}
	}
	if first.Turns < 2 {
		t.Errorf("the first group has %d turns", first.Turns)
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; p.Model.Nodes[n.Index].Level == 1 && (!n.Together || p.Groups[n.Groups[0]].Turns != first.Turns) {
			t.Errorf("%s of the first level is in groups %v", p.Model.Nodes[n.Index].Name, n.Groups)
		}
	}
	last, gap := -1, 0
	for i, g := range append(append([]int{}, p.Rotation...), p.Rotation...) {
		if g != 0 {
			continue
		}
		if last >= 0 {
			gap = max(gap, i-last)
		}
		last = i
	}
	if even := float64(len(p.Rotation)) / float64(first.Turns); float64(gap) > even+2 {
		t.Errorf("the first group waits for %d turns, evenly it would be %.1f: %v", gap, even, p.Rotation)
	}
}

// TestTimes checks coverage, shortest run and error on plans small enough to
// reckon by hand.
func TestTimes(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	one := planFor(t, "skylakex", "tma", plan.Options{Level: 1})
	near("coverage of one group", one.Coverage(&one.Nodes[0]), 1)
	near("shortest run of one group", one.ShortestRun(true), 0)
	near("error of one group", one.Error(&one.Nodes[0], 10), 0)
	two := planFor(t, "skylakex", "tma", plan.Options{Level: 2})
	near("coverage of two groups", two.Coverage(&two.Nodes[0]), 0.5)
	near("shortest run of two groups", two.ShortestRun(true), 0)
	// Half of 2500 turns in 10 s, and half of the variance.
	near("error of two groups", two.Error(&two.Nodes[0], 10), counts.Confidence*math.Sqrt(0.5/1250))
	ten := planFor(t, "power7", "power7-cpi", plan.Options{})
	near("equal coverage of ten groups", ten.EqualCoverage(&ten.Nodes[0]), 0.1)
	near("shortest run of ten groups", ten.ShortestRun(true), 4)
	if own := ten.ShortestRun(false); own <= 4 {
		t.Errorf("with more turns for some groups others need %v s, want more than 4", own)
	}
}
