package simulated

import (
	"math"
	"testing"
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
		now := simulation.Progress{Cycles: cycles * max(spent-start, 0) / each, Elapsed: time.Duration(after * 1e9), Spent: time.Duration(spent * 1e9), Rest: rest * 1e9}
		if got := p.at(time.Duration(after*1e9), now); got.Tell {
			told = append(told, got)
		}
	}
	if len(told) != 2 {
		t.Fatalf("told %+v, want two predictions", told)
	}
	near := func(got time.Duration, want float64) bool { return math.Abs(got.Seconds()/want-1) < 0.1 }
	if first := told[0]; first.Share < paceLeast || first.Share > 0.42 || !near(first.Total, 9) || !near(first.Spend, 9) {
		t.Errorf("first %+v, want 9 s", first)
	}
	if second := told[1]; !near(second.Spend, 9) || second.Total < 11*time.Second || second.Total > 14*time.Second {
		t.Errorf("then %+v, want 9 s of processor time in 11 to 14", second)
	}
}

// TestPaceBeside predicts a simulation by two processes that run side by side. The plugin was built before it, and one
// process goes on behind it.
func TestPaceBeside(t *testing.T) {
	const cycles, built, each, rest = 1e9, 3.0, 8.0, 2.0 // seconds
	p := pace{cycles: cycles}
	for elapsed := 0.0; elapsed < each; elapsed += 0.01 {
		now := simulation.Progress{Cycles: cycles * elapsed / each, Elapsed: time.Duration(elapsed * 1e9), Spent: time.Duration(2 * elapsed * 1e9), Rest: rest * 1e9}
		got := p.at(time.Duration((built+elapsed)*1e9), now)
		if !got.Tell {
			continue
		}
		if math.Abs(got.Total.Seconds()-(built+each+rest)) > 0.2 || math.Abs(got.Spend.Seconds()-(2*each+rest)) > 0.2 {
			t.Errorf("%+v, want %v s with %v s of processor time", got, built+each+rest, 2*each+rest)
		}
		return
	}
	t.Error("no prediction")
}

// TestPaceLater predicts a simulation by one process at first, and by two side by side from a tenth on.
func TestPaceLater(t *testing.T) {
	const cycles, each = 1e9, 20.0 // seconds of processor time
	p := pace{cycles: cycles}
	for spent := 0.0; spent < each; spent += 0.02 {
		elapsed := min(spent, each/10) + max(spent-each/10, 0)/2
		now := simulation.Progress{Cycles: cycles * spent / each, Elapsed: time.Duration(elapsed * 1e9), Spent: time.Duration(spent * 1e9)}
		got := p.at(time.Duration(elapsed*1e9), now)
		if !got.Tell {
			continue
		}
		if want := each/10 + each*0.9/2; math.Abs(got.Total.Seconds()/want-1) > 0.02 {
			t.Errorf("%+v, want %v s", got, want)
		}
		return
	}
	t.Error("no prediction")
}

// TestPaceFirst predicts by two marks that have the same processor time.
func TestPaceFirst(t *testing.T) {
	p := pace{cycles: 1e9}
	now := simulation.Progress{Cycles: 3e8, Elapsed: 3 * time.Second, Spent: 3 * time.Second, Rest: time.Second}
	p.at(now.Elapsed, now)
	now.Cycles, now.Elapsed = 4e8, now.Elapsed+10*time.Millisecond
	if got := p.at(now.Elapsed, now); !got.Tell || math.Abs(got.Total.Seconds()-8.5) > 0.1 {
		t.Errorf("%+v, want 8.5 s", got)
	}
}

// TestPaceCode predicts a program whose code is new mostly at its beginning: each doubling of its length has as
// many new instructions.
func TestPaceCode(t *testing.T) {
	const perCycle, perCode, cycles = 5e-9, 60e-6, 1e9 // seconds
	p := pace{cycles: cycles}
	spent, known := 0.0, 0.0
	for done := 1e5; ; done *= 1.01 {
		fresh := perCode * 10000 * math.Log2(1.01)
		known += fresh
		spent += perCycle*done*0.01/1.01 + fresh
		got := p.at(time.Duration(spent*1e9), simulation.Progress{Cycles: done, Spent: time.Duration(spent * 1e9), Known: time.Duration(known * 1e9)})
		if got.Tell {
			want := spent + perCycle*(cycles-done) + perCode*10000*math.Log2(cycles/done)
			if math.Abs(got.Spend.Seconds()/want-1) > 0.02 {
				t.Errorf("%+v, want %.1f s of processor time", got, want)
			}
			return
		}
	}
}

// TestPaceKnown predicts a program whose windows and code should take longer than all of it does.
func TestPaceKnown(t *testing.T) {
	const cycles = 1e9
	p := pace{cycles: cycles}
	for i := 1; i <= 1000; i++ {
		spent := time.Duration(i) * 10 * time.Millisecond
		got := p.at(spent, simulation.Progress{Cycles: cycles * float64(i) / 1000, Spent: spent, Known: 2 * spent})
		if !got.Tell {
			continue
		}
		if rest := got.Spend - spent; rest < spent || rest > 5*spent {
			t.Errorf("%v after %v", got.Spend, spent)
		}
		return
	}
	t.Error("no prediction")
}

// TestPaceMoved predicts runs that read steadily, and have other cycles than expected.
func TestPaceMoved(t *testing.T) {
	const cycles, bytes = 1e9, 4e6
	for longer, want := range map[float64]float64{5: 5, 0.64: 0.8, 20: 1} {
		p := pace{cycles: cycles, moved: bytes}
		for done := 0.0; ; done += 1e6 {
			spent := time.Duration(done * 10)
			got := p.at(spent, simulation.Progress{Cycles: done, Spent: spent, Moved: int64(done / longer / cycles * bytes)})
			if !got.Tell {
				continue
			}
			if math.Abs(got.Spend.Seconds()/(10*want)-1) > 0.02 {
				t.Errorf("%v times the cycles: %+v, want %v s", longer, got, 10*want)
			}
			break
		}
	}
}

// TestPaceMarks keeps few marks of a long simulation, and predicts it as well.
func TestPaceMarks(t *testing.T) {
	p := pace{cycles: 1e5}
	var last Progress
	for i := range 90_000 {
		spent := time.Duration(i) * 20 * time.Millisecond
		last = p.at(spent, simulation.Progress{Cycles: float64(i), Elapsed: spent, Spent: spent})
	}
	if len(p.marks) > paceMarks || math.Abs(last.Total.Seconds()/2000-1) > 0.01 {
		t.Errorf("%d marks, %+v, want 2000 s", len(p.marks), last)
	}
}
