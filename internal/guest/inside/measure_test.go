//go:build linux && guest

package inside

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cyclestack/cyclestack"
	"github.com/cyclestack/cyclestack/internal/guest/loop"
)

// user is what the library is asked to count. The truth is known if the emulated counters can
// leave the kernel out.
var user = cyclestack.Options{User: true}

// leastOf returns the least of several counts of the same work. The runtime's own work,
// such as a collection of garbage, only adds to a count, and not to each.
func leastOf(count func() float64) float64 {
	least := math.Inf(1)
	for range 5 {
		least = min(least, count())
	}
	return least
}

// measured returns the instructions of a function.
func measured(t *testing.T, f func(), o cyclestack.Options) float64 {
	t.Helper()
	a, err := cyclestack.Measure(f, o)
	if err != nil {
		t.Fatal(err)
	}
	if cycles := a.Count("cycles"); !(cycles > 0) {
		t.Errorf("%g cycles", cycles)
	}
	return a.Instructions()
}

// TestPMUMeasure measures a function of known length, for the whole process and
// for its own thread.
func TestPMUMeasure(t *testing.T) {
	// The count includes the runtime's own work. Multiplexed groups need several
	// rotations, and these differ a little.
	n, turns := 2*instructions, 0.0
	if !exact {
		n, turns = 10*instructions, 0.01
	}
	for name, o := range map[string]cyclestack.Options{"process": user, "thread": {User: true, Thread: true}} {
		got := leastOf(func() float64 { return measured(t, func() { loop.Run(n / 2) }, o) })
		between(t, name, got, float64(n), -turns, 0.01+turns+kernel)
	}
}

// TestPMUMeasureUnknownModel expects what is wrong with the options to be said, and
// nothing to be called.
func TestPMUMeasureUnknownModel(t *testing.T) {
	called := false
	_, err := cyclestack.Measure(func() { called = true }, cyclestack.Options{Model: "nosuch"})
	if err == nil || !strings.Contains(err.Error(), "nosuch") || called {
		t.Errorf("got %v, called: %v", err, called)
	}
}

// TestPMUMeasureThreads measures goroutines on threads of their own; some start
// while it counts. With Options.Thread only the calling goroutine's work counts.
// It must do some: a goroutine that only waits has almost no count, as if its events
// had never been scheduled.
func TestPMUMeasureThreads(t *testing.T) {
	const threads = 5
	work := func() {
		var all sync.WaitGroup
		for range threads {
			all.Go(func() {
				runtime.LockOSThread() // and never unlocked: the thread ends with it
				loop.Run(instructions / 2)
			})
		}
		all.Wait()
	}
	got := leastOf(func() float64 { return measured(t, work, user) })
	between(t, "all threads", got, threads*float64(instructions), -0.01, 0.05+kernel) // starting threads takes some
	n := 5 * instructions
	got = leastOf(func() float64 {
		return measured(t, func() {
			loop.Run(n / 2)
			work()
		}, cyclestack.Options{User: true, Thread: true})
	})
	between(t, "the calling thread", got, float64(n), -0.1, 0.2+kernel) // as much as the others do
}

// TestPMUBenchmark runs a benchmark whose operations are of known length.
func TestPMUBenchmark(t *testing.T) {
	const n = million
	r := testing.Benchmark(func(b *testing.B) {
		cyclestack.Benchmark(b, user)
		for b.Loop() {
			loop.Run(n / 2)
		}
	})
	if r.N < 10 {
		t.Fatalf("%d operations", r.N)
	}
	between(t, "instructions/op", r.Extra["instructions/op"], n, 0, 0.02+kernel)
	if c := r.Extra["cycles/op"]; !(c > 0) || math.IsInf(c, 0) {
		t.Errorf("%g cycles/op", c)
	}
	t.Log(r)
}

// TestNoPMUMeasure expects an error that says why, and nothing to be called.
func TestNoPMUMeasure(t *testing.T) {
	called := false
	_, err := cyclestack.Measure(func() { called = true }, cyclestack.Options{})
	if !errors.Is(err, cyclestack.ErrNoPMU) || called {
		t.Errorf("got %v, called: %v", err, called)
	}
}
