package cyclestack_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack"
)

func Example() {
	numbers := []int{3, 1, 2}
	a, err := cyclestack.Measure(func() { slices.Sort(numbers) }, cyclestack.Options{Level: 1})
	switch {
	case errors.Is(err, cyclestack.ErrNoPMU):
		fmt.Fprintln(os.Stderr, err) // as in most virtual machines
	case err != nil:
		panic(err)
	default:
		_ = cyclestack.Print(os.Stderr, a)
	}
	fmt.Println("done")
	// Output: done
}

// TestMeasure measures where there is something to measure with, and expects to be
// told why where there is not. What the figures are worth is tested in guests
// (internal/guest), whose counters are known.
func TestMeasure(t *testing.T) {
	calls := 0
	a, err := cyclestack.Measure(func() { calls++ }, cyclestack.Options{})
	if err != nil {
		if !errors.Is(err, cyclestack.ErrNoPMU) || calls != 0 {
			t.Fatalf("%v, after %d calls", err, calls)
		}
		t.Skip(err)
	}
	if calls != 1 || !(a.Count("cycles") > 0) {
		t.Errorf("%d calls, %g cycles", calls, a.Count("cycles"))
	}
}

// TestMeasureUnknownModel checks that what is wrong with the options is said.
func TestMeasureUnknownModel(t *testing.T) {
	_, err := cyclestack.Measure(func() {}, cyclestack.Options{Model: "nosuch"})
	if errors.Is(err, cyclestack.ErrNoPMU) {
		t.Skip(err) // which comes first
	}
	if err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("got %v, want an error that names the model", err)
	}
}

// TestBenchmarkTimer checks that a benchmark's time excludes the start of counting,
// and that the timer runs afterwards: testing.B.Loop fails otherwise.
func TestBenchmarkTimer(t *testing.T) {
	share := 1.0 // of the time that a call takes
	testing.Benchmark(func(b *testing.B) {
		begin, before := time.Now(), b.Elapsed()
		cyclestack.Benchmark(b, cyclestack.Options{})
		timed, took := b.Elapsed()-before, time.Since(begin)
		share = min(share, timed.Seconds()/took.Seconds())
		after := b.Elapsed()
		if time.Sleep(time.Millisecond); b.Elapsed()-after < time.Millisecond {
			t.Error("the timer does not run")
		}
	})
	if share > 0.25 {
		t.Errorf("%.0f %% of what it took to begin is in the time", 100*share)
	}
}

// BenchmarkSort reports where the cycles of sorting go, where it can.
func BenchmarkSort(b *testing.B) {
	numbers := make([]int, 1000)
	cyclestack.Benchmark(b, cyclestack.Options{})
	for b.Loop() {
		for i := range numbers {
			numbers[i] = i * 7919 % 1009
		}
		slices.Sort(numbers)
	}
}
