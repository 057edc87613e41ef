package branch

import "github.com/cyclestack/cyclestack/internal/disasm"

// A Loop follows the loop that the core is in. Some cores keep the micro-ops of a short loop in
// the queue in front of dispatch. They predict no branches meanwhile, and mispredict the end.
type Loop struct {
	mostOps, leastTaken int

	head, tail uint64 // the addresses of its first block and of the branch back
	ops, taken int    // in the current iteration; in all
	size       int    // micro-ops of the one before
	large      bool   // it does not fit
}

// NewLoop returns that of a core. The queue has loops of so many micro-ops at most, after so many
// taken branches; 0 is never.
func NewLoop(ops, taken int) Loop { return Loop{mostOps: ops, leastTaken: taken} }

// PredictIn has p predict how a block of some instructions ends, which may be the end of a loop.
func (x Exit) PredictIn(l *Loop, p Branches, instructions int) (mispredicted bool) {
	if x.Flow == disasm.CondJump { // most are one micro-op with the comparison before
		instructions--
	}
	mispredicted = x.Predict(p)
	return l.ends(x, instructions) || mispredicted
}

// Queued returns the micro-ops of the loop that now comes from the queue; 0 if none does.
func (l *Loop) Queued() int {
	if l.leastTaken == 0 || l.large || l.taken < l.leastTaken {
		return 0
	}
	return l.size
}

// ends reports whether a block of some micro-ops ends a loop from the queue.
func (l *Loop) ends(x Exit, ops int) bool {
	if l.leastTaken == 0 {
		return false
	}
	l.ops += ops
	jumped := x.Next != x.End
	direct := x.Flow == disasm.CondJump || x.Flow == disasm.Jump || !jumped
	back := jumped && direct && x.Next <= x.Addr
	switch inside := l.head <= x.Addr && x.Addr <= l.tail; {
	case back && x.Next == l.head && inside:
		l.large = l.large || l.ops > l.mostOps
		l.size, l.ops = l.ops, 0
		l.taken++
		return false
	case !back && inside && direct && l.head <= x.Next && x.Next <= l.tail:
		if jumped {
			l.taken++
		}
		return false
	}
	ends := x.Flow == disasm.CondJump && !l.large && l.taken >= l.leastTaken
	l.head, l.tail, l.ops, l.taken, l.large = 0, 0, 0, 0, false
	if back {
		l.head, l.tail, l.taken = x.Next, x.Addr, 1
	}
	return ends
}
