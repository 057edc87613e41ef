package pipeline

import "slices"

// Traits say what an instruction is for, as far as advice depends on it.
type Traits struct {
	Loads, Stores bool
	Divides       bool
	Shuffles      bool
	Multiplies    bool
	Adds          bool // also logic, comparisons, minima
	Selects       bool // a conditional move, or a minimum
	Carries       bool // an addition with carry
	Float         bool // it computes with floating point numbers
	Scalar        bool // with one element of a vector register
	Vector        bool // with several
	Partial       bool // it writes a part of a general register and keeps the rest
	// Merges says that it keeps a part of its vector register. Its result needs
	// nothing of it.
	Merges bool
	// Counts says that it adds a constant to a register, as loops count.
	Counts bool
	Calls  bool
	Jumps  bool
}

// Traits returns what the instruction is for.
func (o *Op) Traits() Traits {
	c := o.Class
	in := func(list ...Class) bool { return slices.Contains(list, c) }
	t := Traits{Loads: o.Loads, Stores: o.Stores, Divides: o.Divides(),
		Calls: in(Call, IndirectCall), Jumps: o.conditional || in(Jump, IndirectJump, Return)}
	t.Shuffles = in(Shuffle, ShuffleFloat, ShuffleBytes, ShuffleAlign, Pack, Widen, ShuffleAcross, ShuffleHalves, InsertHalf, Broadcast)
	t.Multiplies = in(IMul, IMulAdd, MulWide, FMul, FMA, VMul, VMul32)
	t.Adds = in(ALU, LEA, LEAComplex, FAdd, FMinMax, VInt, VCompare, VCompareWide, VLogic, VAbs)
	t.Selects = in(CMov, CMovBE, FMinMax, BlendVar)
	t.Carries = in(ALUCarry)
	t.Float = c >= FAdd && c <= FHAdd || in(FDot)
	t.Scalar = o.vector && t.Float && o.scalar
	t.Vector = o.vector && !o.scalar && !in(FromGPR, ToGPR, ConvertFromGPR, ConvertToGPR)
	t.Partial = o.partial
	t.Counts = (o.calc == calcAdd || o.calc == calcSub) && o.second == constant && !o.Loads && !o.Stores
	t.Merges = o.scalar && o.vector && in(FSqrtS, FSqrtD, FRcp, FRound, Convert, ConvertFromGPR)
	return t
}

// scalar says whether the instruction works on one element of a vector register.
func (x *encodedInstruction) scalar() bool {
	switch c := x.opcode; x.opmap {
	case map0F:
		return scalarOps[c] && x.rep != 0 || c == 0x2e || c == 0x2f || (c == 0x10 || c == 0x11 || c == 0x2a || c == 0x2c || c == 0x2d) && x.rep != 0
	case map38:
		return x.enc != legacy && c >= 0x99 && c <= 0xbf && c&15 >= 9 && c&1 == 1
	case map3A:
		return c == 0x0a || c == 0x0b
	}
	return false
}
