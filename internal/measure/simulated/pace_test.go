package simulated

import (
	"testing"
	"time"
)

// TestPace predicts the time of a simulation whose first half second brings nothing.
func TestPace(t *testing.T) {
	var p pace
	told := 0
	for after := time.Duration(0); after <= 4*time.Second; after += 10 * time.Millisecond {
		share := max(0, (after.Seconds()-0.5)/9.5)
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
