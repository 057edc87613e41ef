package account_test

import (
	"maps"
	"math"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// related is a method with one relation: there are no more misses than hits.
func related(t *testing.T) *account.Method {
	t.Helper()
	own := maps.Clone(files)
	own["models/toy.toml"] = &fstest.MapFile{Data: []byte(`
name = "related"
unit = "cycles"
cpus = ["toy"]
[[node]]
name = "Cycles"
formula = "CYC"
[[relation]]
name = "misses are hits"
left = "MISS"
op = "<="
right = "HIT"
tolerance = 0.02
identity = true
fails = "They are not."
source = "a test"
`)}
	return compile(t, own, account.Options{})
}

// slack computes the allowed difference of two counts from their deviations, and from what
// small counts leave of these.
func slack(left, right float64, deviation, fewest [2]float64) float64 {
	sum := 0.0
	for i, v := range []float64{left, right} {
		sum += max(deviation[i]*min(left, right)/v, min(deviation[i], fewest[i]))
	}
	return 2.575829 * sum / max(left, right)
}

// TestErrorOfRelation compares the allowed error of a relation with the rules for multiplexed
// counts and for samples.
func TestErrorOfRelation(t *testing.T) {
	turns := func(v, share, turns, variation float64) (deviation, fewest float64) {
		fewest = math.Sqrt((v*share+1)*(1-share)) / share
		return max(v*variation*math.Sqrt((1-share)/turns), fewest), fewest
	}
	both := func(left, right float64, f func(v float64) (float64, float64)) float64 {
		d0, f0 := f(left)
		d1, f1 := f(right)
		return slack(left, right, [2]float64{d0, d1}, [2]float64{f0, f1})
	}
	of := func(share, n, variation float64) func(float64) (float64, float64) {
		return func(v float64) (float64, float64) { return turns(v, share, n, variation) }
	}
	const second = 1e9
	for _, tt := range []struct {
		name        string
		duration    float64
		relative    bool
		groups      [2]int
		left, right counts.Cell
		want        float64
	}{
		{"all of the time", 10, false, [2]int{0, 0}, all(1.2e8), all(1e8), 0},
		{"in one group", 10, false, [2]int{1, 1}, part(1.2e8, 0.25), part(1e8, 0.25), 0},
		{"in turns", 10, false, [2]int{1, 2}, part(1.2e8, 0.25), part(1e8, 0.25), both(1.2e8, 1e8, of(0.25, 62.5, 1))}, // of a quarter of a second
		{"in groups that are not known", 10, false, [2]int{0, 0}, part(1.2e8, 0.25), part(1e8, 0.25), both(1.2e8, 1e8, of(0.25, 62.5, 1))},
		{"in few turns", 0.1, false, [2]int{1, 2}, part(1.2e8, 0.25), part(1e8, 0.25), both(1.2e8, 1e8, of(0.25, 6.25, 1))},
		{"in less than one", 0.001, false, [2]int{1, 2}, part(1.2e8, 0.25), part(1e8, 0.25), both(1.2e8, 1e8, of(0.25, 1, 1))},
		{"for no known time", math.NaN(), true, [2]int{1, 2}, part(1.2e8, 0.25), part(1e8, 0.25), both(1.2e8, 1e8, of(0.25, 25, 1))},
		{"one of them in turns", 10, false, [2]int{1, 2}, part(1.2e8, 0.25), all(1e8), both(1.2e8, 1e8, func(v float64) (float64, float64) {
			if v == 1e8 {
				return 0, 0
			}
			return turns(v, 0.25, 62.5, 1)
		})},
		{"rare", 10, false, [2]int{1, 2}, part(1.2e6, 0.25), part(1e6, 0.25), both(1.2e6, 1e6, of(0.25, 62.5, 3))}, // a part in a thousand of the cycles
		{"next to nothing", 10, false, [2]int{1, 2}, part(40, 0.25), part(4, 0.25), both(40, 4, of(0.25, 62.5, 3))},
		{"repeats that vary more than turns", 10, false, [2]int{1, 2}, counts.Cell{Value: 1.2e8, Enabled: second, Running: second / 4, Variance: 25e14, State: counts.Counted},
			part(1e8, 0.25), both(1.2e8, 1e8, func(v float64) (float64, float64) {
				d, f := turns(v, 0.25, 62.5, 1)
				if v == 1.2e8 {
					d = 5e7
				}
				return d, f
			})},
		{"samples", 10, false, [2]int{1, 1}, counts.Cell{Value: 1.2e8, Samples: 400, State: counts.Counted}, counts.Cell{Value: 1e8, Samples: 100, Variance: 1e14, State: counts.Counted},
			both(1.2e8, 1e8, func(v float64) (float64, float64) {
				if v == 1e8 {
					return 1e7, 1e7
				}
				return v / 20, v / 20
			})},
		{"samples that vary more than by chance", 10, false, [2]int{1, 1}, counts.Cell{Value: 1.2e8, Samples: 400, Variance: 4e14, State: counts.Counted},
			counts.Cell{Value: 1e8, Samples: 1e6, State: counts.Counted}, both(1.2e8, 1e8, func(v float64) (float64, float64) {
				if v == 1e8 {
					return 1e5, 1e5
				}
				return 2e7, 2e7
			})},
	} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")},
			Columns: []counts.Column{{Event: "CYC"}, {Event: "MISS", Group: tt.groups[0]}, {Event: "HIT", Group: tt.groups[1]}}}
		table := counts.NewTable(l)
		table.Duration, table.Relative = tt.duration, tt.relative
		*table.Cell(0, 0), *table.Cell(0, 1), *table.Cell(0, 2) = all(1e9), tt.left, tt.right
		b := related(t).Bind(l)
		var a *account.Account
		for range 2 { // the second time with what the first has left
			a = b.Evaluate(table, account.Place{}, a)
			c := &a.Checks[0]
			residual := (tt.left.Value - tt.right.Value) / tt.left.Value
			if math.Abs(c.Error-tt.want) > 1e-9*tt.want || !near(c.Residual, residual) || (c.State == account.Fails) != (residual > 0.02+tt.want) {
				t.Errorf("%s: %v off, error %v, %v; want %v off, error %v", tt.name, c.Residual, c.Error, c.State, residual, tt.want)
			}
		}
	}
}
