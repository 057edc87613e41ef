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

// TestExplain checks the reasons of waiting. An instruction's own accesses come first, as far as they are late. Then come
// those of its function, and of the program. What no access explains counts as the second level's.
func TestExplain(t *testing.T) {
	l := &library{}
	in := func(waits float64, late lateness) *instruction {
		return &instruction{sample: &sample{windowed: &windowed{timed: 1, waits: waits, late: late}}}
	}
	insts := []*instruction{in(100, lateness{lateL3: 300}), in(80, lateness{lateL2: 20, latePages: 20}), in(60, lateness{})}
	l.functions = []*function{{insts: insts[:2]}, {insts: insts[2:]}, {insts: []*instruction{in(0, lateness{lateMemory: 660})}}}
	l.settleAll()
	first, second, third := insts[0].settled.waits, lateness(insts[1].settled.waits), insts[2].settled.waits
	if first != [parts]float64{lateL3: 100} {
		t.Errorf("the first instruction waits %v, want 100 for the third level", first)
	}
	if math.Abs(second.sum()-80) > 1e-9 || math.Abs(second[lateL3]-40*300./340) > 1e-9 { // 40 of its own, and 40 of its function
		t.Errorf("the second instruction waits %v", second)
	}
	if math.Abs(third[lateMemory]-60*0.66) > 1e-9 || math.Abs(third[lateL2]-60*0.02) > 1e-9 {
		t.Errorf("the third instruction waits %v", third)
	}
	var none lateness
	if got := none.explain(5, none); got != (lateness{lateL2: 5}) {
		t.Errorf("without late accesses: %v", got)
	}
}
