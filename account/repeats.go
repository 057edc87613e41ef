package account

import (
	"errors"
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// leftOutMost is how many times runs are left out to see what that changes: each
// run by itself, or of more runs each of so many groups.
const leftOutMost = 50

// Aggregate returns the account of runs of the same thing together: its counts are
// the means of the runs', and ratios are formed of these. The errors are those of
// the delete-one jackknife (B. Efron and R. J. Tibshirani, An Introduction to the
// Bootstrap, chapter 11): from how each value changes if a run is left out. As a
// run is left out with all its counts, it does not matter how these are
// correlated. They are about another run like these.
func (c *Method) Aggregate(runs []*counts.Table) (*Account, error) {
	if len(runs) == 0 {
		return nil, errors.New("no runs")
	}
	all, err := meanTable(runs, -1, 1)
	if err != nil {
		return nil, err
	}
	a := c.Bind(all.Layout).Evaluate(all, Place{}, nil).Clone()
	if len(runs) == 1 {
		return a, nil
	}
	a.Runs = len(runs)
	groups := min(len(runs), leftOutMost)
	values := make([][]float64, len(a.Nodes)) // by node, without each group
	var one *Account
	var binding *Binding
	for g := range groups {
		t, err := meanTable(runs, g, groups)
		if err != nil {
			return nil, err
		}
		if binding == nil || binding.Layout != t.Layout {
			binding, one = c.Bind(t.Layout), nil
		}
		one = binding.Evaluate(t, Place{}, one)
		for i := range values {
			values[i] = append(values[i], one.Nodes[i].Value)
		}
	}
	for i := range a.Nodes {
		v := &a.Nodes[i]
		if !v.Known() {
			continue
		}
		v.Error = jackknife(values[i])
		if v.Error >= math.Abs(v.Value) && v.Error > 0 && (v.Doubt == DoubtNone || v.Doubt == DoubtCoverage) {
			v.Doubt = DoubtError
		}
	}
	return a, nil
}

// jackknife is the half-width of a value's 95 % interval, given what it is without each group
// of the data.
func jackknife(values []float64) float64 {
	n := float64(len(values))
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return studentQuantile(n-1) * math.Sqrt((n-1)/n*sum)
}

// meanTable is the mean of runs, without those of one group; -1 is none.
func meanTable(runs []*counts.Table, without, groups int) (*counts.Table, error) {
	total := counts.NewTotal(0)
	n := 0.0
	elapsed := 0.0
	for i, t := range runs {
		if i%groups == without {
			continue
		}
		if err := total.Add(t); err != nil {
			return nil, err
		}
		n++
		elapsed += t.Duration
	}
	sum := total.Table().Clone()
	sum.Duration = elapsed / n
	for i := range sum.Scopes {
		row := sum.Row(i)
		for j := range row {
			c := &row[j]
			c.Value /= n
			c.Enabled /= n
			c.Running /= n
			c.Lost /= n
			c.Variance /= n * n
			c.Repeats = int32(n)
		}
	}
	return sum, nil
}
