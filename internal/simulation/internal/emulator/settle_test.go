package emulator

import (
	"math"
	"testing"
)

// TestSettle checks that costs below 0 of a function are taken from those of others: a function
// whose cycles pass while another one waits.
func TestSettle(t *testing.T) {
	l := &library{}
	add := func(waits ...float64) *function {
		f := &function{}
		for _, w := range waits {
			f.insts = append(f.insts, &instruction{sample: &sample{windowed: &windowed{timed: 10, ideal: 100, waits: w, late: [parts]float64{lateL2: 1}}}})
		}
		l.functions = append(l.functions, f)
		return f
	}
	waiting, hidden := add(700, 300), add(-400, 0)
	l.settleAll()
	sum := func(f *function) (all float64) {
		for _, in := range f.insts {
			all += in.timed * in.settled.waits[lateL2]
		}
		return all
	}
	if a, b := sum(waiting), sum(hidden); math.Abs(a-600) > 1e-9 || b != 0 {
		t.Errorf("%v and %v cycles of waiting, want 600 and 0", a, b)
	}
}
