package multiplex

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

var (
	update = flag.Bool("update", false, "rewrite the tables in docs/error.md")
	level  = flag.Int("level", 2, "the level of the plan in the table: more levels have more groups")
)

// unknowable are recordings that do not show how wrong their counts are: the program
// changes within an interval, and what other groups counted does not predict that. There
// the error is an upper bound, however wide.
func unknowable(k Kind, interval float64) bool {
	return interval >= 0.1 && (k.Dwell > 0 && k.Recurring == 0 || k.Drift > 0)
}

// TestErrorsHold fails if the nodes' mean coverage leaves 90 to 99 %, or their mean width
// exceeds twice the ideal. What cannot be known may be wider, if the account then recommends
// shorter intervals.
func TestErrorsHold(t *testing.T) {
	runs, turns, least, most := 200, Turns, 0.90, 0.99
	if !testlong.Enabled() { // the nodes of a run depend on each other: ten runs are few
		runs, turns, least, most = 10, Turns[1:], 0.85, 1
	}
	const rounding = 0.005
	rows, err := Rows("skylakex", *level, runs, turns)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for k, list := range row.Cells {
			interval := Recordings[k].Interval
			covered, width := Mean(list)
			if len(list) < 10 || covered < least || !unknowable(row.Kind, interval) && (covered >= most+rounding || width > 2) {
				t.Errorf("%s, -I %.0f, turns of %.0f ms: %d nodes, %.1f %% covered, %.2f times the ideal width; want %.0f to %.0f %% and at most 2",
					row.Kind.Name, 1000*interval, 1000*row.Turn, len(list), 100*covered, width, 100*least, 100*most)
			}
			for _, n := range list {
				if unknowable(row.Kind, interval) && width > 2 && float64(n.Finer) < 0.8*float64(n.Runs) {
					t.Errorf("%s, -I %.0f: %.1f times the ideal width, and shorter intervals are recommended in %d of %d runs", row.Kind.Name, 1000*interval, width, n.Finer, n.Runs)
				}
				if n.None > 0 {
					t.Errorf("%s, -I %.0f: %s has no error in %d of %d runs", row.Kind.Name, 1000*interval, n.Node, n.None, n.Runs)
				}
			}
		}
	}
	if *level != 2 {
		t.Log(Table(rows))
	} else if testlong.Enabled() {
		inDocument(t, "../../docs/error.md", Table(rows))
	}
}

// inDocument checks that a document has a table, or puts it there.
func inDocument(t *testing.T, file, table string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(table, "\n")
	before, rest, ok := strings.Cut(string(text), head)
	if !ok {
		t.Fatalf("%s has no table with the head %s", file, head)
	}
	old, after, _ := strings.Cut(head+rest, "\n\n")
	switch {
	case old+"\n" == table:
	case !*update:
		t.Errorf("%s has another table than\n%s(-update puts it there)", file, table)
	default:
		if err := os.WriteFile(file, []byte(before+table+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFewIntervals checks that three intervals have an error already, and that it holds.
func TestFewIntervals(t *testing.T) {
	for _, intervals := range []int{3, 10} {
		for _, interval := range []float64{0.016, 1} {
			c, err := NewCounting(Setting{CPU: "skylakex", Level: 2, Turn: 0.004, Interval: interval, Intervals: intervals}, 7)
			if err != nil {
				t.Fatal(err)
			}
			list, err := c.Try(Kinds[0], testlong.Size(40, 300))
			if err != nil {
				t.Fatal(err)
			}
			if covered, width := Mean(list); covered < 0.9 || width > 4 {
				t.Errorf("%d intervals of %v s: %.1f %% covered, %.2f times the ideal width, want 90 and at most 4", intervals, interval, 100*covered, width)
			}
			for _, n := range list {
				if n.None > 0 {
					t.Errorf("%d intervals: %s has no error in %d of %d runs", intervals, n.Node, n.None, n.Runs)
				}
			}
		}
	}
}

// TestAlternation counts programs with two states that alternate about as fast as the groups.
// Such a program is nearly a loop in step with them, and the intervals hold less often.
func TestAlternation(t *testing.T) {
	least := 0.85
	if !testlong.Enabled() {
		least = 0.75 // of ten runs
	}
	for _, level := range []int{2, 3} {
		for _, swap := range []float64{0.009, 0.034} {
			for _, interval := range []float64{0.028, 0.1, 1}[:testlong.Size(2, 3)] { // the steps of the last are the most
				c, err := NewCounting(Setting{CPU: "skylakex", Level: level, Turn: 0.004, Interval: interval, Intervals: 50}, 7)
				if err != nil {
					t.Fatal(err)
				}
				list, err := c.Try(Kind{Name: "alternation", Swap: swap}, testlong.Size(10, 60))
				if err != nil {
					t.Fatal(err)
				}
				covered, width := Mean(list)
				t.Logf("%d groups, states of up to %.0f ms, -I %.0f: %.1f %% covered, %.2f times the ideal width", c.Groups, 1000*swap, 1000*interval, 100*covered, width)
				if covered < least || width > 2 {
					t.Errorf("%d groups, states of up to %.0f ms, -I %.0f: %.1f %% covered, %.2f times the ideal width", c.Groups, 1000*swap, 1000*interval, 100*covered, width)
				}
			}
		}
	}
}
