package account_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestErrorOfRuns counts a program again and again. Its runs differ in length by a tenth and in
// what they do by a hundredth. Where the runs are kept apart, a share's error is that of what
// they do. It covers the truth in 95 % of repetitions; the bound for any correlation, which is
// all that perf's output allows, is ten times as wide.
func TestErrorOfRuns(t *testing.T) {
	const trials, runs, share = 2000, 6, 0.4
	method := toy(t, account.Options{})
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}, Columns: []counts.Column{{Event: "CYC"}, {Event: "STALL"}}}
	b := method.Bind(l)
	r := rand.New(rand.NewPCG(5, 6))
	covered, apart, bound := 0, 0.0, 0.0
	for range trials {
		var joint counts.Runs
		mean := counts.NewTable(l)
		var cyc, stall []float64
		for range runs {
			one := counts.NewTable(l)
			x := 1e9 * (1 + 0.1*r.NormFloat64())
			y := x * share * (1 + 0.01*r.NormFloat64())
			cyc, stall = append(cyc, x), append(stall, y)
			*one.Cell(0, 0) = counts.Cell{Value: x, Enabled: 1, Running: 1, State: counts.Counted}
			*one.Cell(0, 1) = counts.Cell{Value: y, Enabled: 1, Running: 1, State: counts.Counted}
			joint.Add(one)
		}
		for k, v := range [][]float64{cyc, stall} {
			m, variance := meanAndVariance(v)
			*mean.Cell(0, k) = counts.Cell{Value: m, Variance: variance, Repeats: runs, Enabled: 1, Running: 1, State: counts.Counted}
		}
		i, _ := b.Evaluate(mean, account.Place{}, nil).Node("Stalled")
		bound += b.Evaluate(mean, account.Place{}, nil).Nodes[i].Error / trials
		joint.Put(mean)
		v := b.Evaluate(mean, account.Place{}, nil).Nodes[i]
		apart += v.Error / trials
		if math.Abs(v.Value-share) <= v.Error {
			covered++
		}
	}
	if got := float64(covered) / trials; got < 0.93 || got > 0.97 {
		t.Errorf("the 95 %% interval holds the truth in %.1f %% of repetitions", 100*got)
	}
	if bound < 5*apart {
		t.Errorf("±%.4f with the runs kept apart, ±%.4f without", apart, bound)
	}
}

// meanAndVariance is the mean of values and its variance.
func meanAndVariance(v []float64) (mean, variance float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x / n
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean) / (n - 1) / n
	}
	return mean, variance
}
