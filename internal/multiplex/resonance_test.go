package multiplex

import (
	"slices"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// TestResonance counts a loop of 8 ms with two groups and turns of 4 ms: the real error of
// a regular kernel is large, and groups that are disabled at random make it small.
func TestResonance(t *testing.T) {
	loop := Kind{Name: "loop of 8 ms", Loop: 0.008}
	var ideal [2]float64
	for i, vary := range []bool{false, true} {
		c, err := NewCounting(Setting{CPU: "skylakex", Level: 2, Turn: 0.004, Interval: 0.1, Intervals: 60, Vary: vary}, 7)
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

// TestResonanceOfSeven counts a loop as long as the rotation of seven groups, with the
// intervals that stat reads. Varied turns make the real error a fifth, and the stated errors
// hold it.
func TestResonanceOfSeven(t *testing.T) {
	loop := Kind{Name: "loop of 28 ms", Loop: 0.028}
	interval := measure.Interval(7, 7, 1, 4*time.Millisecond).Seconds()
	var ideal, covered [2]float64
	for i, vary := range []bool{false, true} {
		c, err := NewCounting(Setting{CPU: "skylakex", Level: 3, Turn: 0.004, Interval: interval, Intervals: int(6 / interval), Vary: vary}, 7)
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.Try(loop, testlong.Size(8, 60))
		if err != nil {
			t.Fatal(err)
		}
		covered[i], _ = Mean(list)
		for _, r := range list {
			ideal[i] += r.Ideal / float64(len(list))
		}
	}
	t.Logf("in the kernel's order the real errors are %.2f %%, and %.0f %% of the intervals hold; varied %.2f %% and %.0f %%", 100*ideal[0], 100*covered[0], 100*ideal[1], 100*covered[1])
	if ideal[0] < 5*ideal[1] || covered[1] < 0.85 {
		t.Error("want a fifth of the error, and that 85 % of the intervals hold")
	}
}

// TestResonanceInRecordings counts a loop as long as the rotation of seven groups. Some
// events are in several of them, and their readings disagree: the audit says so, of every
// run, whatever the interval. It says it of no other program.
func TestResonanceInRecordings(t *testing.T) {
	runs := testlong.Size(1, 4)
	kinds := append([]Kind{{Name: "loop of 28 ms", Loop: 0.028}}, Kinds...)
	for _, kind := range kinds {
		for _, interval := range []float64{0.1, 1}[:testlong.Size(1, 2)] {
			c, err := NewCounting(Setting{CPU: "skylakex", Level: 3, Turn: 0.004, Interval: interval, Intervals: 40}, 7)
			if err != nil {
				t.Fatal(err)
			}
			if c.Groups != 7 {
				t.Fatalf("the plan has %d groups, want 7", c.Groups)
			}
			found := 0
			for range runs {
				a, _, err := c.Run(kind)
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(a.Checks, func(c account.Check) bool {
					return c.Name == "readings of one event agree" && c.State == account.Fails
				}) {
					found++
				}
			}
			if want := map[bool]int{true: runs}[kind.Loop > 0]; found != want {
				t.Errorf("%s, -I %.0f: found in %d of %d runs, want %d", kind.Name, 1000*interval, found, runs, want)
			}
		}
	}
}

// TestVariedOthers compares the real errors of programs without such a loop, in the
// kernel's order and in the varied one. The intervals are those that stat reads.
func TestVariedOthers(t *testing.T) {
	sum := 0.0
	for _, kind := range Kinds {
		var ideal [2]float64
		for i, vary := range []bool{false, true} {
			c, err := NewCounting(Setting{CPU: "skylakex", Level: 2, Turn: 0.004, Interval: 0.024, Intervals: 200, Vary: vary}, 7)
			if err != nil {
				t.Fatal(err)
			}
			list, err := c.Try(kind, testlong.Size(8, 100))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				ideal[i] += r.Ideal / float64(len(list))
			}
		}
		t.Logf("%s: %.2f times the error of the kernel's order", kind.Name, ideal[1]/ideal[0])
		sum += ideal[1] / ideal[0] / float64(len(Kinds))
	}
	t.Logf("%.2f times on average", sum)
	if sum > 1.5 {
		t.Errorf("varied groups have %.2f times the error, want 1.5 at most", sum)
	}
}
