package simulated

import (
	"math"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cyclestack/cyclestack/internal/simulation"
)

// TestPace predicts a simulation whose beginning brings nothing. From the middle on another program
// has the processor for half of the time.
func TestPace(t *testing.T) {
	const cycles, start, each, rest = 1e9, 0.5, 8.0, 0.5 // seconds of processor time
	p := pace{cycles: cycles}
	var told []Progress
	for after := 0.0; after <= 20; after += 0.01 {
		spent := after
		if after > 4 {
			spent = 4 + (after-4)/2
		}
		now := simulation.Progress{Cycles: cycles * max(spent-start, 0) / each, Spent: time.Duration(spent * 1e9), Rest: rest * 1e9}
		if got := p.at(time.Duration(after*1e9), now); got.Tell {
			told = append(told, got)
		}
	}
	if len(told) != 2 {
		t.Fatalf("told %+v, want two predictions", told)
	}
	near := func(got time.Duration, want float64) bool { return math.Abs(got.Seconds()/want-1) < 0.1 }
	if first := told[0]; first.Share < paceLeast || first.Share > 0.25 || !near(first.Total, 9) || !near(first.Spend, 9) {
		t.Errorf("first %+v, want 9 s", first)
	}
	if second := told[1]; !near(second.Spend, 9) || second.Total < 11*time.Second || second.Total > 14*time.Second {
		t.Errorf("then %+v, want 9 s of processor time in 11 to 14", second)
	}
}

// TestPaceMarks keeps few marks of a long simulation, and predicts it as well.
func TestPaceMarks(t *testing.T) {
	p := pace{cycles: 1e5}
	var last Progress
	for i := range 90_000 {
		spent := time.Duration(i) * 20 * time.Millisecond
		last = p.at(spent, simulation.Progress{Cycles: float64(i), Spent: spent})
	}
	if len(p.marks) > paceMarks || math.Abs(last.Total.Seconds()/2000-1) > 0.01 {
		t.Errorf("%d marks, %+v, want 2000 s", len(p.marks), last)
	}
}

// TestSimulatedCycles expects fewer cycles when other programs run.
func TestSimulatedCycles(t *testing.T) {
	for text, want := range map[string]float64{"0.00 0.10 0.20 1/100 5\n": 100, "9999.00 0.10 0.20 1/100 5\n": 72, "x": 100} {
		if got := simulatedCycles(100, fstest.MapFS{"proc/loadavg": {Data: []byte(text)}}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
