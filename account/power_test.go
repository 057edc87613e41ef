package account_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// TestFourRunsNameNodes checks that four runs of each side suffice for a large change of
// a node to be named.
func TestFourRunsNameNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	found, trials := 0, 40
	for range trials {
		d := account.Compare(comparable, someRuns(rng, 4, 0), someRuns(rng, 4, 0.08), account.Design{})
		if d.Nodes[1].Verdict == account.More && d.Nodes[2].Verdict == account.More && d.Nodes[3].Verdict != account.More && d.Nodes[3].Verdict != account.Less {
			found++
		}
	}
	if found < trials*9/10 {
		t.Errorf("the node was named in %d of %d trials", found, trials)
	}
}

// TestSeen plants changes of the size that runs are said to show, and expects about four of
// five found: and few of a third of the size.
func TestSeen(t *testing.T) {
	testlong.Alone(t)
	rng := rand.New(rand.NewPCG(5, 6))
	trials := testlong.Size(100, 400)
	for _, runs := range []int{5, 10}[:testlong.Size(1, 2)] {
		size := 0.0
		for range trials {
			size += account.Compare(comparable, someRuns(rng, runs, 0), someRuns(rng, runs, 0), account.Design{}).Total.Seen / float64(trials)
		}
		for _, tt := range []struct{ part, least, most float64 }{{1, 0.65, 0.92}, {1.0 / 3, 0, 0.35}} {
			found := 0.0
			for range trials {
				if account.Compare(comparable, someRuns(rng, runs, 0), someRuns(rng, runs, tt.part*size), account.Design{}).Total.Verdict == account.More {
					found += 1 / float64(trials)
				}
			}
			if found < tt.least || found > tt.most {
				t.Errorf("%d runs: a change of %.2f times what they show was found in %.0f %% of the trials, want %.0f to %.0f %%", runs, tt.part, 100*found, 100*tt.least, 100*tt.most)
			}
		}
	}
}

// TestExactChanges: in a simulated program ten of 1950 are a change, and a little more in
// the loader is none.
func TestExactChanges(t *testing.T) {
	run := func(own, loader float64) []account.PlaceReading {
		r := account.PlaceReading{Total: 1e6, Program: "app"}
		r.Add(account.PlaceName{Module: "app", Name: "work"}, account.Amount{Value: own})
		r.Add(account.PlaceName{Module: "ld-linux.so", Name: "_dl_relocate"}, account.Amount{Value: loader})
		return []account.PlaceReading{r}
	}
	d := account.ComparePlaces(run(1950, 50000), run(1960, 50200), account.Design{Exact: true})
	want := map[string]account.Verdict{"work": account.More, "_dl_relocate": account.Same}
	for i := range d.Places {
		c := &d.Places[i]
		if c.Verdict != want[c.Name] {
			t.Errorf("%s: %v of %v is %v, want %v", c.Name, c.Delta, c.Old, c.Verdict, want[c.Name])
		}
	}
	if len(d.Places) != 2 || d.Places[1].Delta != 10 {
		t.Errorf("%+v", d.Places)
	}
}
