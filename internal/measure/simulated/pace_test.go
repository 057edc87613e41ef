package simulated

import (
	"testing"
	"testing/fstest"
	"time"
)

// TestPace predicts the time of a simulation whose first half second brings nothing.
func TestPace(t *testing.T) {
	var p pace
	told := 0
	for after := time.Duration(0); after <= 4*time.Second; after += 10 * time.Millisecond {
		share := max(0, (after.Seconds()-0.5)/8.5)
		got := p.at(after, share)
		switch {
		case got.First && (got.Total < 9*time.Second || got.Total > 11*time.Second):
			t.Errorf("after %v: %v in all, want 10 s", after, got.Total)
		case got.First != (got.Total > 0 && told == 0):
			t.Errorf("after %v: %+v", after, got)
		}
		if got.First {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// TestSimulatedCycles expects fewer cycles when other programs run.
func TestSimulatedCycles(t *testing.T) {
	for text, want := range map[string]float64{"0.00 0.10 0.20 1/100 5\n": 100, "9999.00 0.10 0.20 1/100 5\n": 65, "x": 100} {
		if got := simulatedCycles(100, fstest.MapFS{"proc/loadavg": {Data: []byte(text)}}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
