package multiplex_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/internal/multiplex"
)

// TestResonance counts a loop of 8 ms with two groups and turns of 4 ms: the real error of
// a regular kernel is large, and groups that are disabled at random make it small.
func TestResonance(t *testing.T) {
	loop := multiplex.Kind{Name: "loop of 8 ms", Loop: 0.008}
	var ideal [2]float64
	for i, vary := range []bool{false, true} {
		c, err := multiplex.NewCounting(multiplex.Setting{CPU: "skylakex", Level: 2, Turn: 0.004, Interval: 0.1, Intervals: 60, Vary: vary}, 7)
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.Try(loop, 20)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			ideal[i] += r.Ideal / float64(len(list))
		}
	}
	t.Logf("the real errors are %.2f %% with the kernel's order, and %.2f %% with a varied one", 100*ideal[0], 100*ideal[1])
	if ideal[0] < 4*ideal[1] {
		t.Errorf("real errors of %.2f %% with the kernel's order and %.2f %% with a varied one, want a quarter", 100*ideal[0], 100*ideal[1])
	}
}
