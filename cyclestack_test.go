package cyclestack_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
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

// TestMeasure measures this machine if it has a PMU, and otherwise checks the error.
// TestMeasureFake runs everywhere. Guests, whose counters are known, test the figures
// (internal/guest).
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
