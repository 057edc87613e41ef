// Package pipeline estimates how long a processor takes for a sequence of instructions in
// the order of their execution. They wait for each other's results, for a free execution
// unit, and for room in queues.
//
// An Op is what an instruction needs, which a Decoder reads from its code once. A Machine
// executes ops on a model of a Core: it dispatches and retires in order, and executes out of
// order. It returns for how many cycles a sampler would see each op. Caches are perfect, and
// branches are predicted, unless the caller says otherwise.
//
//	d, err := pipeline.NewDecoder(disasm.AMD64)
//	m := pipeline.NewMachine(pipeline.CoreOf("amdzen4"))
//	op := d.Op(inst, code)
//	cycles += m.Execute(&op, taken, false)
//
// The addresses of memory accesses are not known. To find loads that read a recent store, the
// machine computes with random numbers for unknown registers and memory.
package pipeline

import "math/bits"

// A Register is one that instructions wait for: a whole general or vector register,
// whatever part of it is used; a group of flags; a mask; the x87 stack as a whole.
type Register uint8

// The registers. General registers are RAX+0 to RAX+15 in their encoding's order, vector
// registers XMM0+0 to XMM0+31, masks K0+0 to K0+7.
const (
	NoRegister Register = iota
	RAX
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
)

const (
	// Carry is the carry flag, and Flags are the others, which instructions such as
	// INC write without it.
	Carry Register = 17 + iota
	Flags
	// X87 is the x87 stack, which MMX shares.
	X87
	K0
)

// XMM0 is the first vector register.
const (
	XMM0      Register = 32
	registers          = int(XMM0) + 32 + 2 + 16 // two that only operands name, and more of arm64
)

// A Class is a kind of instruction that a core executes at one speed.
type Class uint8

// The classes. Those of memory accesses are for instructions that do nothing else. Others
// that also load or store have the class of their computation.
const (
	Nop        Class = iota
	Zero             // register := 0, known before execution
	Move             // general register to another
	MoveRSP          // the stack pointer to another
	VecMove          // vector register to another
	Load             // to a general register, without change or extended with zeros
	LoadSigned       // to a general register, extended with its sign
	VecLoad          // to a vector register
	Store
	StoreConstant
	VecStore
	ALU         // add, and, compare, …
	AddConstant // ALU: a small number to 64 bits
	ALUCarry    // with carry
	CMov        // conditional move
	CMovBE      // on two groups of flags
	SetCC       // flag to register
	Shift       // by a constant
	ShiftVar    // by CL
	ShiftBMI    // by another register, without flags
	RotateCarry
	ShiftDouble
	LEA
	LEAConstant // of a base and a small displacement
	LEAComplex  // of a base, an index and a displacement
	BitTest
	BitSet
	BitScan    // BSF, BSR
	BitCount   // POPCNT, LZCNT, TZCNT
	BMI        // ANDN, BLSR, …
	BitExtract // BEXTR
	BitZero    // BZHI
	Deposit    // PDEP, PEXT
	ByteSwap
	SignFill // CQO
	Exchange // XCHG of registers, XADD
	CompareExchange
	CRC
	IMul    // to one register
	IMulAdd // the same, and an addition
	MulWide // to two
	Div8    // by the width of the divisor
	Div16
	Div32
	Div64
	IDiv8
	IDiv16
	IDiv32
	IDiv64
	Jump
	CondJump
	IndirectJump
	Call
	IndirectCall
	Return
	Leave
	FAdd
	FMinMax
	FMul
	FMA
	FDivS // single precision
	FDivD
	FSqrtS
	FSqrtD
	FRcp     // approximations
	FCompare // to a register or mask
	FTest    // to the flags
	FRound
	FHAdd
	FDot
	Convert     // between formats of one width
	ConvertWide // between widths
	FromGPR     // general to vector register
	ToGPR
	ConvertFromGPR
	ConvertToGPR
	Insert // a general register into a part
	Extract
	MaskToGPR // MOVMSK
	VInt
	VCompare     // and minima, maxima, means, sums that saturate
	VCompareWide // greater, of 64 bits
	VAbs         // and others that are slower on some
	VLogic
	VShift    // by a constant
	VShiftReg // by a register, the same for all elements
	VShiftVar
	VMul
	VMul32
	VSad
	VHAdd
	Shuffle
	ShuffleFloat // UNPCKLPS, VPERMILPS, INSERTPS
	ShuffleBytes
	ShuffleAlign  // PALIGNR
	Pack          // to elements of half the width
	Widen         // to wider elements
	ShuffleAcross // between halves of 128 bits
	ShuffleHalves // whole ones
	InsertHalf
	Broadcast
	Blend
	BlendVar
	VTest
	VString // PCMPxSTRx
	AES
	SHA
	SHARounds
	CLMul
	MaskOp
	MaskMove // between masks and other registers
	Gather
	FPStack // loads, stores and exchanges of the old floating point unit
	FPStackAdd
	FPStackMul
	FPStackDiv
	FPStackSlow   // its functions
	FPControl     // FNSTCW, FLDCW, FNSTSW
	ExtendedState // XGETBV
	Emms
	RepString
	String
	Locked // an atomic access
	LoadFence
	Fence
	Timer // RDTSC, RDRAND
	Pause
	System // CPUID, SYSCALL, …
	Microcode
	classes
)

// classNames are the names of the classes in the files of cores.
var classNames = [classes]string{
	Nop: "Nop", Zero: "Zero", Move: "Move", MoveRSP: "MoveRSP", VecMove: "VecMove", Load: "Load", LoadSigned: "LoadSigned",
	VecLoad: "VecLoad", Store: "Store", StoreConstant: "StoreConstant", VecStore: "VecStore", ALU: "ALU", AddConstant: "AddConstant", ALUCarry: "ALUCarry",
	CMov: "CMov", CMovBE: "CMovBE", SetCC: "SetCC", Shift: "Shift", ShiftVar: "ShiftVar",
	ShiftBMI: "ShiftBMI", RotateCarry: "RotateCarry", ShiftDouble: "ShiftDouble", LEA: "LEA", LEAConstant: "LEAConstant",
	LEAComplex: "LEAComplex", BitTest: "BitTest", BitSet: "BitSet", BitScan: "BitScan",
	BitCount: "BitCount", BMI: "BMI", BitExtract: "BitExtract", BitZero: "BitZero", Deposit: "Deposit", ByteSwap: "ByteSwap",
	SignFill: "SignFill", Exchange: "Exchange", CompareExchange: "CompareExchange", CRC: "CRC",
	IMul: "IMul", IMulAdd: "IMulAdd", MulWide: "MulWide", Div8: "Div8", Div16: "Div16", Div32: "Div32", Div64: "Div64",
	IDiv8: "IDiv8", IDiv16: "IDiv16", IDiv32: "IDiv32", IDiv64: "IDiv64", Jump: "Jump",
	CondJump: "CondJump", IndirectJump: "IndirectJump", Call: "Call", IndirectCall: "IndirectCall",
	Return: "Return", Leave: "Leave", FAdd: "FAdd", FMinMax: "FMinMax", FMul: "FMul", FMA: "FMA",
	FDivS: "FDivS", FDivD: "FDivD", FSqrtS: "FSqrtS", FSqrtD: "FSqrtD", FRcp: "FRcp", FCompare: "FCompare",
	FTest: "FTest", FRound: "FRound", FHAdd: "FHAdd", FDot: "FDot", Convert: "Convert",
	ConvertWide: "ConvertWide", FromGPR: "FromGPR", ToGPR: "ToGPR", ConvertFromGPR: "ConvertFromGPR",
	ConvertToGPR: "ConvertToGPR", Insert: "Insert", Extract: "Extract", MaskToGPR: "MaskToGPR",
	VInt: "VInt", VCompare: "VCompare", VCompareWide: "VCompareWide", VAbs: "VAbs", VLogic: "VLogic", VShift: "VShift", VShiftReg: "VShiftReg",
	VShiftVar: "VShiftVar", VMul: "VMul", VMul32: "VMul32", VSad: "VSad", VHAdd: "VHAdd",
	ShuffleFloat: "ShuffleFloat", ShuffleAlign: "ShuffleAlign", Pack: "Pack", Widen: "Widen",
	Shuffle: "Shuffle", ShuffleBytes: "ShuffleBytes", ShuffleAcross: "ShuffleAcross",
	ShuffleHalves: "ShuffleHalves", InsertHalf: "InsertHalf", Broadcast: "Broadcast", Blend: "Blend",
	BlendVar: "BlendVar", VTest: "VTest", VString: "VString", AES: "AES", SHA: "SHA",
	SHARounds: "SHARounds", CLMul: "CLMul", MaskOp: "MaskOp", MaskMove: "MaskMove", Gather: "Gather",
	FPStack: "FPStack", FPStackAdd: "FPStackAdd", FPStackMul: "FPStackMul", FPStackDiv: "FPStackDiv",
	FPStackSlow: "FPStackSlow", FPControl: "FPControl", ExtendedState: "ExtendedState", Emms: "Emms", RepString: "RepString", String: "String", Locked: "Locked",
	LoadFence: "LoadFence", Fence: "Fence", Timer: "Timer", Pause: "Pause", System: "System",
	Microcode: "Microcode",
}

// An Op is what a static instruction needs to be executed.
type Op struct {
	Class Class
	// Width is the bytes of its operands: the whole vector for vectors, and 4 or 8 for
	// scalars in vector registers. Size is the bytes of memory that it accesses.
	Width, Size uint8
	// Loads and Stores say whether it reads and writes memory, at the sum of Base, Index
	// times Scale, and Disp.
	Loads, Stores bool
	Base, Index   Register
	Scale         uint8
	Segment       bool // the address is relative to FS or GS
	Disp          int64

	addr     uint64 // of the instruction
	form     uint16 // of the class, the width and whether it accesses memory: see formOf
	uncached bool   // a jump keeps its 32 bytes from being cached: see findJumps
	code     codeShape
	reads    [5]Register // NoRegister behind the last
	writes   [5]Register
	formula
	// stack is how many bytes it pushes; below 0, how many it pops.
	stack int8
	// conditional says that it is a branch that may not be taken. cond is its condition as
	// in the opcode, or noCondition.
	conditional bool
	cond        uint8
	fuses       fusion
	vector      bool     // executed by the vector part of the core
	unknown     bool     // the decoder does not know the opcode
	scalar      bool     // it works on one element of a vector register
	late        Register // it is needed later than the other operands: an index, or what is kept of a vector register
	pair        bool     // it loads or stores two registers or more
	back        Register // the base of the address, which is written back changed
	backBy      int64
	partial     bool // it keeps a part of the general register that it writes, and needs nothing of it
}

// A codeShape is what fetch and decode see of an instruction.
type codeShape struct {
	length uint8 // bytes
	opcode uint8 // offset of the opcode behind prefixes
	lcp    bool  // a prefix changes its length
}

// Forms are classes by the width of operands and by whether an operand is in memory.
const (
	widths = 7 // 1 byte to 64
	forms  = int(classes) * widths * 2
)

// formOf returns the form of an op.
func formOf(class Class, width uint8, memory bool) uint16 {
	n := (int(class)*widths + min(bits.Len8(max(width, 1))-1, widths-1)) * 2
	if memory {
		n++
	}
	return uint16(n)
}

// A formula computes an instruction's result.
type formula struct {
	calc          calculation
	first, second Register // the operands
	imm           int64
}

// noCondition is the condition of LOOP and JRCXZ, which never fuse: no set of conditions
// has its bit.
const noCondition = 16

// A fusion says how an instruction can fuse with a following conditional jump.
type fusion uint8

const (
	noFusion      fusion = iota
	fuseTest             // TEST
	fuseCompare          // CMP
	fuseAnd              // AND
	fuseOr               // OR, XOR
	fuseAdd              // ADD, SUB
	fuseIncrement        // INC, DEC
)

// String returns the name of a class in the files of cores.
func (c Class) String() string { return classNames[c] }
