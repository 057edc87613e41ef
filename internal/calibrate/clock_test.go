package calibrate

import (
	"context"
	"errors"
	"testing"
	"time"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// TestClock checks that the clock is one that processors have.
func TestClock(t *testing.T) {
	f, err := Clock(t.Context(), 100*time.Millisecond)
	if err != nil {
		t.Skipf("cannot be measured here: %v", err)
	}
	if !f.Known() || f.Value < 2e8 || f.Value > 1e10 || f.Unit != "Hz" {
		t.Errorf("%+v", f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Clock(ctx, time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}
