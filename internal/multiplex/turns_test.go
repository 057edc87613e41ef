package multiplex

import (
	"math"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// simulation returns counts of the plan for the first levels of a processor's first method, in
// intervals of 20 ms.
func simulation(t *testing.T, cpu string, level, intervals int) *Counting {
	t.Helper()
	s := Setting{CPU: cpu, Level: level, Turn: 0.004, Interval: 0.02, Intervals: intervals}
	c, err := NewCounting(s, 7)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// changing is a program whose phases never come again, with bursts.
var changing = Kind{Name: "phases and bursts", Dwell: 0.2, Burst: 0.05}

// nodesWithError are the nodes of the first two levels that have an error.
func nodesWithError(a *account.Account) []int {
	var list []int
	for i := range a.Nodes {
		if n := &a.Model().Nodes[i]; n.Section == "" && n.Level <= 2 && a.Nodes[i].Error > 0 {
			list = append(list, i)
		}
	}
	return list
}

// TestTurnsCoverTruth checks that the 95 % interval of multiplexed counts holds the
// truth in 92 to 98 of 100 runs. It is no less for nodes whose counts are of several
// groups, as it is a bound there.
func TestTurnsCoverTruth(t *testing.T) {
	least, most := 0.92, 0.98
	if !testlong.Enabled() {
		least, most = 0.8, 1
	}
	for _, tt := range []struct {
		name   string
		trials int
		cpu    string
		level  int
		kind   Kind
	}{
		{"noise", 1000, "skylakex", 2, Kind{}},
		{"phases and bursts", 2000, "skylakex", 2, changing},
		{"phases and bursts, many groups", 2000, "skylakex", 3, changing},
		{"phases and bursts, slots", 1000, "icelakex", 2, changing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			trials := testlong.Size(30, tt.trials)
			s := simulation(t, tt.cpu, tt.level, 210)
			covered, of, together := map[int]int{}, map[int]int{}, map[int]bool{}
			for range trials {
				counted, truth, err := s.Run(tt.kind)
				if err != nil {
					t.Fatal(err)
				}
				for _, i := range nodesWithError(counted) {
					of[i]++
					together[i] = counted.Nodes[i].Together
					if math.Abs(counted.Nodes[i].Value-truth.Nodes[i].Value) <= counted.Nodes[i].Error {
						covered[i]++
					}
				}
			}
			if len(of) < 6 {
				t.Fatalf("%d nodes have an error", len(of))
			}
			for i, n := range of {
				if n < trials/2 {
					continue // it is mostly 0
				}
				share := float64(covered[i]) / float64(n)
				node := &s.Method.Model.Nodes[i]
				t.Logf("%-20s %.1f %% of %d, together: %v", node.Name, 100*share, n, together[i])
				if share < least || together[i] && share > most {
					t.Errorf("%s: the interval holds the truth in %.1f %% of %d runs, want %.0f to %.0f %%", node.Name, 100*share, n, 100*least, 100*most)
				}
			}
		})
	}
}

// TestTurnsErrorShrinks checks that four times the time halves the error.
func TestTurnsErrorShrinks(t *testing.T) {
	mean := func(intervals int) (sum float64) {
		s := simulation(t, "skylakex", 2, intervals)
		for range 50 {
			a, _, err := s.Run(changing)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range nodesWithError(a) {
				sum += a.Nodes[i].Error
			}
		}
		return sum
	}
	if ratio := mean(200) / mean(800); ratio < 1.7 || ratio > 2.3 {
		t.Errorf("the error of a run is %.2f times that of one four times as long, want 2", ratio)
	}
}
