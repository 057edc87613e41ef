package branch_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/branch"
)

// TestLoop executes a loop again and again, within a longer one. The core keeps loops of up to
// 41 micro-ops in its queue, and mispredicts the end after 34 taken branches. The predictor has
// learned all of them.
func TestLoop(t *testing.T) {
	const head, middle, back, end, start = 0x1010, 0x1014, 0x1020, 0x1022, 0x1000
	for _, test := range []struct {
		rounds, ops, inner int
		want               bool
	}{
		{rounds: 20, ops: 5}, {rounds: 34, ops: 5}, {rounds: 35, ops: 5, want: true}, {rounds: 80, ops: 5, want: true},
		{rounds: 80, ops: 41, want: true}, {rounds: 80, ops: 42},
		{rounds: 10, ops: 5, inner: 1}, {rounds: 20, ops: 5, inner: 1, want: true}, // two branches in a round
	} {
		l, p := branch.NewLoop(41, 34), branch.New()
		missed := false
		for range 2000 {
			for i := range test.rounds {
				if test.inner > 0 {
					branch.Exit{Flow: disasm.Jump, Addr: head, End: head + 2, Target: middle, Next: middle}.PredictIn(&l, p, 0)
				}
				x := branch.Exit{Flow: disasm.CondJump, Addr: back, End: end, Target: head, Next: head, Taken: true}
				if i == test.rounds-1 {
					x.Next, x.Taken = end, false
				}
				queued := l.Queued()
				if missed = x.PredictIn(&l, p, test.ops+1); test.inner == 0 && i > 0 && (queued == test.ops) != (i >= 34 && test.ops <= 41) {
					t.Fatalf("%+v: %d micro-ops in the queue after %d rounds", test, queued, i)
				}
			}
			branch.Exit{Flow: disasm.Jump, Addr: end, End: end + 2, Target: start, Next: start}.PredictIn(&l, p, 1)
		}
		if missed != test.want {
			t.Errorf("%+v: the end is mispredicted: %t", test, missed)
		}
	}
}
