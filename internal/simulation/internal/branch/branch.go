// Package branch predicts branches as current processors do, where nothing can be counted.
//
// It gets a program's branches in the order executed, says of each whether it is mispredicted,
// and learns from it:
//
//	p := branch.New()
//	if p.Conditional(addr, taken) {
//		mispredicted[addr]++
//	}
//
// The structures are those of the literature and of what is known of vendors' cores: a TAGE
// predictor for conditional branches [1], its relative ITTAGE for indirect targets [2], and a
// stack of return addresses. Both predictors have the path of taken branches as their history,
// as Intel's cores do [3]. The package knows kinds of branches, addresses and outcomes only, no
// files and no instructions.
//
// Branch target buffers are not modelled: a direct branch that is missing there costs some
// cycles of fetching and is no misprediction. Neither are the loop predictor and the
// statistical corrector of [1]: the core below showed no trace of them.
//
// A [Loop] has what a core mispredicts because it predicts nothing in short loops.
//
// # What it was compared with
//
// Sizes and lengths were chosen so that it learns, forgets and fails as an AMD Zen 4 does. That
// was measured by time, without counters: the time per branch of loops with given outcomes,
// less that with constant outcomes, in times of a random branch. A chain of dependent additions
// in each iteration hid the cost of fetching. The share mispredicted:
//
//	                                                            Zen 4            here
//	taken at random, with 0.1, 0.3                              0.09 0.31        0.10 0.32
//	a random pattern of 1000, second and third time             0.02 0.00        0.03 0.00
//	of 10,000, time 2, 3, 5                                     0.09 0.02 0.00   0.12 0.02 0.00
//	of 30,000, time 2, 5, 10                                    0.35 0.10 0.01   0.37 0.11 0.00
//	of 60,000, time 2, 10, 40                                   0.43 0.33 0.29   0.47 0.37 0.34
//	does as another one 480, 640 taken branches before          0.00 lost        0.00 0.50
//	does as another one, 3, 5, 8 random ones between            0.10 0.31 0.45   0.11 0.35 0.42
//	the same, taken with 0.2; 4, 6, 8 between                   0.05 0.10 0.17   0.21 0.23 0.23
//	ends a loop of 5, 8, 12 with a random branch in it          0.19 0.30 1.00   0.00 0.48 0.93
//	calls one of four methods in a loop, 20, 50, 500 objects    0.1  0.41 0.70   0.00 0.00 0.67
//	one of eight, 100 objects                                   0.47             0.28
//	a switch of 16 in a loop, programs of 100, 1000             0.27 0.88        0.43 0.94
//	  and each case jumps to it, 300, 1000                      0.00 0.01        0.02 0.33
//	  and each case has one of its own, 300, 1000               0.00 0.00        0.00 0.04
//	returns from deeper than 32 calls, of one place, two        0.00 0.5         0.00 0.50
//
// Lost means that the time was no longer that of a prediction, and too uneven for a figure.
// Short correlations among branches that are mostly not taken are predicted worse than by
// the core. Other cores differ: Intel's have paths of 93 to 194 taken branches [3], and
// none of them has been measured.
//
//	[1] A. Seznec, P. Michaud: A case for (partially) tagged geometric history length
//	    branch prediction, Journal of Instruction-Level Parallelism 8, 2006;
//	    A. Seznec: TAGE-SC-L branch predictors again, CBP-5, 2016.
//	[2] A. Seznec: A 64-Kbytes ITTAGE indirect branch predictor, JWAC-2, 2011.
//	[3] H. Yavarzadeh and others: Half&Half: demystifying Intel's directional branch
//	    predictors for fast, secure partitioned execution, IEEE S&P 2023.
package branch

import "github.com/cyclestack/cyclestack/internal/disasm"

// A Predictor is the branch predictor of one core. Its memory does not grow, and its
// predictions depend only on the branches that it was given. It is not for concurrent use.
type Predictor struct {
	history     history
	conditional conditional
	indirect    indirect
	returns     returns
}

// New returns a predictor that has seen no branch.
func New() *Predictor {
	p := &Predictor{}
	p.history.init()
	return p
}

// Conditional predicts the conditional branch at addr and learns its outcome.
func (p *Predictor) Conditional(addr uint64, taken bool) (mispredicted bool) {
	mispredicted = p.conditional.predict(addr, &p.history) != taken
	p.conditional.learn(taken)
	if taken {
		p.history.add(addr, 0)
	}
	return mispredicted
}

// Indirect predicts the target of the indirect jump or call at addr and learns the target.
// After a call, give the return address to Call.
func (p *Predictor) Indirect(addr, target uint64) (mispredicted bool) {
	mispredicted = p.indirect.predict(addr, &p.history) != target
	p.indirect.learn(target)
	p.history.add(addr, target)
	return mispredicted
}

// Jump notes a direct unconditional branch, including a call. It cannot be mispredicted,
// and is a part of the path that predicts others.
func (p *Predictor) Jump(addr, target uint64) {
	p.history.add(addr, target)
}

// Call notes that the call at addr, direct or not, is expected to return to next. It is no
// branch by itself: Jump or Indirect comes first.
func (p *Predictor) Call(addr, next uint64) {
	p.returns.push(next)
}

// Return predicts the target of the return at addr and learns it.
func (p *Predictor) Return(addr, target uint64) (mispredicted bool) {
	mispredicted = p.returns.pop() != target
	p.history.add(addr, target)
	return mispredicted
}

// An Exit is how the execution of a block ends.
type Exit struct {
	Flow   disasm.Flow // of the block's last instruction
	Addr   uint64      // of that instruction
	End    uint64      // behind it
	Target uint64      // its operand
	Next   uint64      // what was executed next
	Taken  bool        // a conditional jump was taken
}

// A Branches predicts branches, as [Predictor] does.
type Branches interface {
	Conditional(addr uint64, taken bool) (mispredicted bool)
	Indirect(addr, target uint64) (mispredicted bool)
	Jump(addr, target uint64)
	Call(addr, next uint64)
	Return(addr, target uint64) (mispredicted bool)
}

// Predict has p predict how the block ends, and learn how it did.
func (x Exit) Predict(p Branches) (mispredicted bool) {
	switch x.Flow {
	case disasm.CondJump:
		return p.Conditional(x.Addr, x.Taken)
	case disasm.Jump:
		p.Jump(x.Addr, x.Target)
	case disasm.Call:
		p.Jump(x.Addr, x.Target)
		p.Call(x.Addr, x.End)
	case disasm.IndirectJump:
		return p.Indirect(x.Addr, x.Next)
	case disasm.IndirectCall:
		mispredicted = p.Indirect(x.Addr, x.Next)
		p.Call(x.Addr, x.End)
	case disasm.Return:
		return p.Return(x.Addr, x.Next)
	}
	return mispredicted
}
