package counts

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestJoint compares the covariances of runs with those worked out from all of
// them at once.
func TestJoint(t *testing.T) {
	l := &Layout{Columns: []Column{{Event: "a"}, {Event: "b"}, {Event: "never"}}, Scopes: []Scope{RunScope("x")}}
	r := rand.New(rand.NewPCG(3, 4))
	var runs Runs
	var xs, ys []float64
	for range 12 {
		table := NewTable(l)
		x := 1e6 * (1 + r.Float64())
		y := 3*x + 1e4*r.Float64()
		xs, ys = append(xs, x), append(ys, y)
		*table.Cell(0, 0) = Cell{Value: x, Enabled: 1e9, Running: 1e9, State: Counted}
		*table.Cell(0, 1) = Cell{Value: y, Enabled: 1e9, Running: 1e9, State: Counted}
		table.Cell(0, 2).State = NotCounted
		runs.Add(table)
	}
	mean := NewTable(l)
	runs.Put(mean)
	j := mean.Joint(0)
	if j == nil || j.Runs != 12 {
		t.Fatalf("got %+v", j)
	}
	for _, w := range [][]float64{{1, 0, 0}, {0, 1, 0}, {3, -1, 0}, {1, 1, 0}} {
		got, want := j.Variance(w), varianceOfMean(xs, ys, w)
		if math.Abs(got/want-1) > 1e-6 {
			t.Errorf("weights %v: variance %v, want %v", w, got, want)
		}
	}
	if v := j.Variance([]float64{0, 0, 1}); !math.IsNaN(v) {
		t.Errorf("the variance of what was never counted is %v", v)
	}
	// A total of one table keeps it, and one of intervals does not. A part of the columns has
	// its part.
	total := NewTotal(0)
	if err := total.Add(mean); err != nil || total.Table().Joint(0) == nil {
		t.Errorf("lost by a total: %v", err)
	}
	part := NewTable(&Layout{Columns: l.Columns[1:2], Scopes: l.Scopes})
	part.TakeRuns(mean, []int{1})
	if got, want := part.Joint(0).Variance([]float64{1}), j.Variance([]float64{0, 1, 0}); got != want {
		t.Errorf("part: %v, want %v", got, want)
	}
	if c := part.Course(0, 0); c == nil || !c.Runs || c.Intervals != 12 {
		t.Errorf("the runs came about as %+v", c)
	}
	if mean.Joint(1) != nil || NewTable(l).Joint(0) != nil {
		t.Error("known where nothing is")
	}
}

// varianceOfMean is the variance of the mean of w₀x + w₁y.
func varianceOfMean(xs, ys, w []float64) float64 {
	n := float64(len(xs))
	mean, sum := 0.0, 0.0
	for i := range xs {
		mean += (w[0]*xs[i] + w[1]*ys[i]) / n
	}
	for i := range xs {
		d := w[0]*xs[i] + w[1]*ys[i] - mean
		sum += d * d
	}
	return sum / (n - 1) / n
}
