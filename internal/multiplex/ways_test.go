package multiplex

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// A way is one of making a node's value and 95 % interval of intervals.
type way struct {
	off, squares float64 // sums of the differences to the truth, and of their squares
	covered      int
}

func (w *way) add(value, half, truth float64) {
	d := value - truth
	w.off += d
	w.squares += d * d
	if math.Abs(d) <= half {
		w.covered++
	}
}

// row is what a table says of a way: bias, typical error, and how often its
// interval held the truth.
func (w *way) row(runs int, interval bool) string {
	n := float64(runs)
	s := fmt.Sprintf("%+.2f %% | %.2f %%", 100*w.off/n, 100*math.Sqrt(w.squares/n))
	if !interval {
		return s + " | none"
	}
	return s + fmt.Sprintf(" | %.0f %%", 100*float64(w.covered)/n)
}

// TestWays compares what is made here of intervals with what is made elsewhere: scaled sums as
// perf prints them, with the error of counting, √n, alone; and means of each interval's ratios,
// as PerfSpect averages them. The table is in docs/error.md.
func TestWays(t *testing.T) {
	runs := testlong.Size(40, 400)
	s := simulation(t, "skylakex", 2, 210)
	names := []string{"Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring", "Fetch_Latency", "Branch_Mispredicts"}
	ours, plain, means := map[string]*way{}, map[string]*way{}, map[string]*way{}
	for _, n := range names {
		ours[n], plain[n], means[n] = &way{}, &way{}, &way{}
	}
	for range runs {
		total, of := counts.NewTotal(0), map[string][]float64{}
		var one *account.Account
		all, err := s.Tables(changing, func(table *counts.Table) error {
			one = s.Binding.Evaluate(table, account.Place{}, one)
			for _, n := range names {
				of[n] = append(of[n], one.Value(n))
			}
			return total.Add(table)
		})
		if err != nil {
			t.Fatal(err)
		}
		sum := total.Table()
		counted := s.Method.Bind(sum.Layout).Evaluate(sum, account.Place{}, nil)
		truth := s.Binding.Evaluate(all, account.Place{}, nil)
		for _, n := range names {
			i, _ := counted.Node(n)
			v := &counted.Nodes[i]
			ours[n].add(v.Value, v.Error, truth.Value(n))
			plain[n].add(v.Value, 0, truth.Value(n))
			mean, half := meanOf(of[n])
			means[n].add(mean, half, truth.Value(n))
		}
	}
	if !testlong.Enabled() { // for the table there are too few: 38 of 40 are expected
		for _, n := range names {
			if ours[n].covered < 33 {
				t.Errorf("%s: the interval holds the truth in %d of %d runs", n, ours[n].covered, runs)
			}
		}
		return
	}
	var b strings.Builder
	b.WriteString("| node | method | bias | typical error | 95 % interval contains the truth |\n|---|---|---|---|---|\n")
	for _, n := range names {
		fmt.Fprintf(&b, "| %s | cyclestack | %s |\n", n, ours[n].row(runs, true))
		fmt.Fprintf(&b, "| | sums, scaled | %s |\n", plain[n].row(runs, false))
		fmt.Fprintf(&b, "| | mean of intervals | %s |\n", means[n].row(runs, true))
	}
	inDocument(t, "../../docs/error.md", b.String())
}

// meanOf returns the mean of values with the half-width of its 95 % interval as
// if they were independent.
func meanOf(values []float64) (mean, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, 1.96 * math.Sqrt(squares/(n-1)/n)
}
