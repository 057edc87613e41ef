package multiplex_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/internal/multiplex"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// unknowable are recordings that do not show how wrong their counts are: whole phases
// are within an interval, and no other group's counts predict them. There the error is
// an upper bound.
func unknowable(k multiplex.Kind, interval float64) bool {
	return k.Dwell > 0 && k.Recurring == 0 && interval >= 0.1 || k.Drift > 0 && interval >= 0.1
}

// TestErrorsHold fails if the mean coverage of all nodes leaves 90 to 99 %, or their mean
// width is above twice the ideal, for a program and an interval where both can be known.
func TestErrorsHold(t *testing.T) {
	runs := testlong.Size(10, 200)
	least, most := 0.9, 0.995
	if !testlong.Enabled() { // a run of the small size has 120 nodes, that depend on each other
		least, most = 0.85, 1
	}
	for _, r := range multiplex.Recordings {
		for _, turn := range multiplex.Turns {
			for _, k := range multiplex.Kinds {
				if !testlong.Enabled() && turn != 0.004 {
					continue
				}
				c, err := multiplex.NewCounting(multiplex.Setting{CPU: "skylakex", Level: 2, Turn: turn, Interval: r.Interval, Intervals: r.Intervals}, 7)
				if err != nil {
					t.Fatal(err)
				}
				list, err := c.Try(k, runs)
				if err != nil {
					t.Fatal(err)
				}
				covered, width := multiplex.Mean(list)
				t.Logf("-I %4.0f, turns of %.0f ms, %-18s %5.1f %%, %.2f times the ideal", 1000*r.Interval, 1000*turn, k.Name, 100*covered, width)
				if len(list) < 10 || covered < least || !unknowable(k, r.Interval) && (covered > most || width > 2) {
					t.Errorf("%s, -I %.0f, turns of %.0f ms: %.1f %% covered, %.2f times the ideal width, want %.0f to %.1f %% and at most 2",
						k.Name, 1000*r.Interval, 1000*turn, 100*covered, width, 100*least, 100*most)
				}
				for _, n := range list {
					if n.None > 0 {
						t.Errorf("%s, -I %.0f: %s has no error in %d of %d runs", k.Name, 1000*r.Interval, n.Node, n.None, n.Runs)
					}
				}
			}
		}
	}
}
