// Package branch predicts branches as current processors do: it stands for the
// predictor of a core of which nothing can be counted.
//
// The branches of a program are given to it in the order executed, and it says of
// each whether it would have been mispredicted, and learns from it:
//
//	p := branch.New()
//	if p.Conditional(addr, taken) {
//		mispredicted[addr]++
//	}
//
// The structures are those that the literature describes and that vendors say, or
// others have found out, their cores to have: a TAGE predictor for conditional
// branches [1], its relative ITTAGE for the targets of indirect ones [2], both with
// the path of taken branches as their history, as cores of Intel have [3], and a
// stack of return addresses. It knows addresses and outcomes only, no files and no
// instructions.
//
// Branch target buffers are not modelled: that a core has forgotten where a direct
// branch goes costs it some cycles of fetching and is no misprediction.
//
//	[1] A. Seznec, P. Michaud: A case for (partially) tagged geometric history length
//	    branch prediction, Journal of Instruction-Level Parallelism 8, 2006;
//	    A. Seznec: TAGE-SC-L branch predictors again, CBP-5, 2016.
//	[2] A. Seznec: A 64-Kbytes ITTAGE indirect branch predictor, JWAC-2, 2011.
//	[3] H. Yavarzadeh and others: Half&Half: demystifying Intel's directional branch
//	    predictors for fast, secure partitioned execution, IEEE S&P 2023.
package branch

// A Predictor is the branch predictor of one core. Its memory does not grow, and
// what it says depends on the branches given to it alone. It is not for concurrent use.
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

// Conditional predicts the conditional branch at addr and learns which way it went.
func (p *Predictor) Conditional(addr uint64, taken bool) (mispredicted bool) {
	mispredicted = p.conditional.predict(addr, &p.history) != taken
	p.conditional.learn(taken)
	if taken {
		p.history.add(addr, 0)
	}
	return mispredicted
}

// Indirect predicts where the indirect jump or call at addr goes and learns where it
// went. Of a call the return address is still to be given to Call.
func (p *Predictor) Indirect(addr, target uint64) (mispredicted bool) {
	mispredicted = p.indirect.predict(addr, &p.history) != target
	p.indirect.learn(target)
	p.history.add(addr, target)
	return mispredicted
}

// Jump notes a branch that is direct and unconditional, a call as well. It cannot be
// mispredicted, and is a part of the path by which others are predicted.
func (p *Predictor) Jump(addr, target uint64) {
	p.history.add(addr, target)
}

// Call notes that the call at addr, direct or not, is expected to return to next. It
// is no branch by itself: Jump or Indirect comes first.
func (p *Predictor) Call(addr, next uint64) {
	p.returns.push(next)
}

// Return predicts where the return at addr goes and learns where it went.
func (p *Predictor) Return(addr, target uint64) (mispredicted bool) {
	mispredicted = p.returns.pop() != target
	p.history.add(addr, target)
	return mispredicted
}
