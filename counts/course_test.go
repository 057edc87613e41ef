package counts

import (
	"math"
	"math/rand/v2"
	"testing"
)

// course returns how a series of counts, one for each interval, came about.
func course(values ...float64) *Course {
	l := &Layout{Columns: []Column{{Event: "a"}}, Scopes: []Scope{RunScope("x")}}
	total := NewTotal(0)
	for i, v := range values {
		t := NewTable(l)
		t.Start, t.Duration, t.Interval = float64(i), 1, true
		*t.Cell(0, 0) = Cell{Value: v, Enabled: 1e9, Running: 1e9, State: Counted}
		if err := total.Add(t); err != nil {
			panic(err)
		}
	}
	return total.Table().Course(0, 0)
}

func TestCourse(t *testing.T) {
	c := course(5, 7, 7, 7, 8, 0, 0)
	if c.Intervals != 7 || c.Still != 3 || c.Idle != 2 {
		t.Errorf("got %+v", *c)
	}
	if c := course(0, 0, 3); c.Idle != 0 || c.Still != 1 {
		t.Errorf("got %+v", *c)
	}
	if got := course(1, 1.1, 0.9, 1, 1, 50, 1, 1, 1.05, 1).Outlier(); got < 5 {
		t.Errorf("an interval of 50 among ones of 1 is %v times the mean", got)
	}
	if got := course(1, 2, 1, 2, 1, 3, 1, 2, 1, 2).Outlier(); got != 0 {
		t.Errorf("an outlier of %v among noise", got)
	}
}

// TestTrend checks that a rise is found, and that of series of noise, plain or
// slow, hardly one has one.
func TestTrend(t *testing.T) {
	var rising []float64
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 50 {
		rising = append(rising, 1e6*(1+float64(i)/49+0.05*r.NormFloat64()))
	}
	if rise, sd := course(rising...).Trend(); math.Abs(rise-0.667) > 0.05 || rise < 3.5*sd {
		t.Errorf("from 1 to 2: rose by %v ± %v of its mean", rise, sd)
	}
	alarms := 0
	const trials = 500
	for trial := range trials {
		values, slow := make([]float64, 60), 0.0
		for i := range values {
			if trial%2 == 0 {
				slow = 0
			}
			slow = 0.7*slow + 0.05*r.NormFloat64()
			values[i] = 1e6 * (1 + slow)
		}
		if rise, sd := course(values...).Trend(); math.Abs(rise) > 3.5*sd {
			alarms++
		}
	}
	if alarms > trials/50 {
		t.Errorf("%d of %d series of noise have a trend", alarms, trials)
	}
	if rise, _ := course(1, 2, 3).Trend(); !math.IsNaN(rise) {
		t.Errorf("a trend of %v in three intervals", rise)
	}
}
