package counts_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
)

// halves sums intervals with one group of two events, counted half of the time. The function
// rate gives each interval's rates.
func halves(t *testing.T, intervals int, group int, rate func(i int) (x, y float64)) *counts.Table {
	t.Helper()
	l := &counts.Layout{
		Columns: []counts.Column{{Event: "x", Group: group}, {Event: "y", Group: group}},
		Scopes:  []counts.Scope{counts.RunScope("")},
	}
	total, table := counts.NewTotal(0), counts.NewTable(l)
	for i := range intervals {
		table.Reset(l)
		table.Interval, table.Start, table.Duration = true, float64(i), 1
		x, y := rate(i)
		*table.Cell(0, 0) = counts.Cell{State: counts.Counted, Value: x, Enabled: 1e9, Running: 5e8}
		*table.Cell(0, 1) = counts.Cell{State: counts.Counted, Value: y, Enabled: 1e9, Running: 5e8}
		if err := total.Add(table); err != nil {
			t.Fatal(err)
		}
	}
	return total.Table()
}

// TestSpreadOfNoise compares the variance of a sum with that of known noise. The difference of
// equals must have none.
func TestSpreadOfNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, sd = 4000, 10.0
	s := halves(t, n, 1, func(int) (float64, float64) {
		v := 1000 + sd*rng.NormFloat64()
		return v, v
	}).Spreads(0)
	if len(s) != 1 || !s[0].Group || s[0].Share != 0.5 || s[0].Steps != n-2 {
		t.Fatalf("got %+v, want one spread of a group", s)
	}
	want := n * sd * sd
	if got, _ := s[0].Variance([]float64{1, 0}); math.Abs(got-want) > 0.1*want {
		t.Errorf("variance %g, want %g", got, want)
	}
	if got, _ := s[0].Variance([]float64{1, -1}); got > 1e-9*want {
		t.Errorf("variance of x − y %g, want 0", got)
	}
}

// TestSpreadOfChange checks that a slow change of a program is not taken for an
// error.
func TestSpreadOfChange(t *testing.T) {
	const n = 1000
	s := halves(t, n, 1, func(i int) (float64, float64) {
		x := 1000 * math.Sin(float64(i)/100)
		return 2000 + x, 2000 - x
	}).Spreads(0)
	v, _ := s[0].Variance([]float64{1, 0})
	if sd := math.Sqrt(v); sd > 1e-4*n*2000 {
		t.Errorf("standard deviation %g of a sum of %d", sd, n*2000)
	}
}

// TestSpreadOfUnknownGroups checks that columns of unknown groups count as uncorrelated, and
// that only sums of intervals have a spread.
func TestSpreadOfUnknownGroups(t *testing.T) {
	table := halves(t, 10, 0, func(i int) (float64, float64) { return float64(i % 3), 1 })
	if s := table.Spreads(0); len(s) != 2 || s[0].Group || s[1].Group {
		t.Errorf("got %+v, want two spreads of a column each", s)
	}
	table.Reset(table.Layout)
	if s := table.Spreads(0); s != nil {
		t.Errorf("got %+v of an empty table", s)
	}
	if s := halves(t, 2, 1, func(int) (float64, float64) { return 1, 1 }).Spreads(0); s != nil {
		t.Errorf("got %+v of two intervals", s)
	}
}
