package account_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/model"
)

// comparable is a model of four nodes: two parts of the whole, one of them with
// two parts.
var comparable = &model.Model{Nodes: []model.Node{
	{Name: "Busy", Level: 1},
	{Name: "Stalled", Level: 1, Children: []int{2, 3}},
	{Name: "Memory", Parent: "Stalled", Level: 2},
	{Name: "Core", Parent: "Stalled", Level: 2},
}}

// someRuns are runs whose parts scatter by 1 %, with more cycles in Memory.
func someRuns(rng *rand.Rand, n int, more float64) []account.Reading {
	list := make([]account.Reading, n)
	for i := range list {
		noise := func() float64 { return 1 + 0.01*rng.NormFloat64() }
		busy, memory, core := 0.5*noise(), 0.3*noise()+more, 0.2*noise()
		list[i] = account.Reading{Total: busy + memory + core, Nodes: []float64{busy, memory + core, memory, core}}
	}
	return list
}

// TestCompareFindsChange adds 5 % of all cycles to one node. In nearly all trials only this
// node and its ancestors may be named.
func TestCompareFindsChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	trials := testlong.Size(60, 200)
	found, wrong := 0, 0
	for range trials {
		d := account.Compare(comparable, someRuns(rng, 6, 0), someRuns(rng, 6, 0.05), account.Design{})
		if d.Total.Verdict == account.More && d.Nodes[1].Verdict == account.More && d.Nodes[2].Verdict == account.More {
			found++
		}
		for _, i := range []int{0, 3} {
			if v := d.Nodes[i].Verdict; v == account.More || v == account.Less {
				wrong++
				break
			}
		}
		if sum := d.Nodes[0].Delta + d.Nodes[2].Delta + d.Nodes[3].Delta; math.Abs(sum-d.Total.Delta) > 1e-12 {
			t.Fatalf("the changes add up to %g, want %g", sum, d.Total.Delta)
		}
	}
	if found < trials*19/20 {
		t.Errorf("the change was found in %d of %d trials", found, trials)
	}
	if wrong > trials/10 {
		t.Errorf("another node was blamed in %d of %d trials", wrong, trials)
	}
}

// TestCompareEqual compares runs of the same: a change of the total may be seen
// in 5 % of the trials.
func TestCompareEqual(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	trials := testlong.Size(100, 400)
	alarms := 0
	for range trials {
		d := account.Compare(comparable, someRuns(rng, 6, 0), someRuns(rng, 6, 0), account.Design{})
		if d.Total.Verdict == account.More || d.Total.Verdict == account.Less {
			alarms++
		}
	}
	if most := testlong.Size(10, 28); alarms > most { // 5 and 20 are expected
		t.Errorf("%d alarms in %d trials", alarms, trials)
	}
}

// TestCompareFewRuns checks that nothing is claimed of what cannot be known.
func TestCompareFewRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	d := account.Compare(comparable, someRuns(rng, 3, 0), someRuns(rng, 9, 1), account.Design{})
	if c := d.Total; c.Verdict != account.CannotTell || !math.IsNaN(c.P) || !math.IsNaN(c.Low) || !(c.Delta > 0.9) {
		t.Errorf("three runs against nine: got %+v, want no verdict", c)
	}
	old, new := someRuns(rng, 5, 0), someRuns(rng, 5, 0)
	old[2].Nodes[0] = math.NaN()
	if c := account.Compare(comparable, old, new, account.Design{}).Nodes[0]; !math.IsNaN(c.Delta) || c.Verdict != account.CannotTell {
		t.Errorf("a node that one run lacks: got %+v, want nothing", c)
	}
}
