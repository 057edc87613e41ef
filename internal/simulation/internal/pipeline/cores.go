package pipeline

import "strings"

// families are the cores by the beginnings of processors' names; the longest counts.
// Processors of which no core is known have that which is nearest to theirs: newer
// ones of a vendor the newest. What is older than these, or no amd64, is "generic".
var families = map[string]func() *Core{
	"amdzen1": zen1, "amdzen2": zen2, "amdzen3": zen3, "amdzen4": zen4, "amdzen5": zen5, "amdzen6": zen5,
	"haswell": haswell, "broadwell": haswell,
	"skylake": skylake, "cascadelakex": skylake,
	"icelake": iceLake, "tigerlake": iceLake, "rocketlake": iceLake,
	"alderlake:core": goldenCove, "sapphirerapids": goldenCove, "emeraldrapids": goldenCove, "meteorlake:core": goldenCove,
	"graniterapids": goldenCove, "lunarlake:core": goldenCove, "arrowlake:core": goldenCove, "pantherlake:core": goldenCove,
	"novalake:core": goldenCove,
}

// CoreOf returns the core of a processor by its name in the catalogue of processors,
// such as amdzen4. What is not known has the core "generic".
func CoreOf(cpu string) *Core {
	best := ""
	for name := range families {
		if strings.HasPrefix(cpu, name) && len(name) > len(best) {
			best = name
		}
	}
	if best == "" {
		return generic()
	}
	return families[best]()
}

// set sets what classes cost.
func (c *Core) set(k cost, list ...Class) {
	for _, class := range list {
		c.costs[class] = k
	}
}

// Conditions under which a comparison and a jump become one, as sets of the
// conditions' numbers.
const (
	anyCondition = 0xffff
	// withCarry are all but those on overflow, sign and parity, and withoutCarry those
	// of them that do not read the carry flag.
	withCarry    = anyCondition &^ (1<<0 | 1<<1 | 1<<8 | 1<<9 | 1<<10 | 1<<11)
	withoutCarry = withCarry &^ (1<<2 | 1<<3 | 1<<6 | 1<<7)
)

// generic is no core that exists: what is usual, and nothing that only some have.
func generic() *Core {
	c := zen3()
	c.Name, c.nops, c.renames, c.forward, c.line, c.indexed = "generic", false, 0, 5, 0, 0
	return c
}

// The ports of AMD's cores.
const (
	zenALU0 ports = 1 << iota
	zenALU1
	zenALU2
	zenALU3
	zenAGU0
	zenAGU1
	zenAGU2
	zenBranch
	zenData0
	zenData1
	zenFP0
	zenFP1
	zenFP2
	zenFP3
	zenFPStore
	zenDivider
	zenAGU3 // from Zen 5 on, as the following
	zenALU4
	zenALU5

	zenALU = zenALU0 | zenALU1 | zenALU2 | zenALU3
	zenAGU = zenAGU0 | zenAGU1 | zenAGU2
	zenFP  = zenFP0 | zenFP1 | zenFP2 | zenFP3

	alu03 = zenALU0 | zenALU3
	alu12 = zenALU1 | zenALU2
	fp01  = zenFP0 | zenFP1
	fp12  = zenFP1 | zenFP2
	fp03  = zenFP0 | zenFP3
	fp23  = zenFP2 | zenFP3
)

// zen4 is AMD's Zen 4. Widths and sizes: AMD, Software Optimization Guide for the AMD
// Zen4 Microarchitecture (57647). Latencies, and how many of a kind are executed in a
// cycle, are measured, with loops as in loops_test.go; where that can be compared they
// are those of uops.info and of A. Fog's instruction tables.
//
// That a load can have the data of a store before its address is known is Predictive
// Store Forwarding: AMD, Security Analysis of AMD Predictive Store Forwarding (2021). It
// was seen to find stores up to 14 stores back, for loads that copy 32 or 64 bits to a
// general register, and for instructions that modify memory.
//
// What the functions of AMD's other cores do not set is taken to be as here, such as
// ahead, callBubble and refill.
func zen4() *Core {
	c := &Core{Name: "amdzen4", fetch: 9, line: 64, queue: 64, dispatch: 6, retire: 8, reorder: 320,
		loadQueue: 136, storeQueue: 64, misses: 24, refill: 14,
		loads: zenAGU, vectorLoads: zenAGU0 | zenAGU1, addresses: zenAGU,
		data: zenData0 | zenData1, vectorData: zenFPStore,
		load: 4, vectorLoad: 7, indexed: 1, forward: 6, vectorForward: 9, blocked: 18, renames: 14,
		callBubble: 2, ahead: 16, nops: true, vector: 32}
	c.zenSchedulers(24, 32, 64)
	for i := range c.costs {
		c.costs[i] = cost{1, 1, zenFP, 1, 0}
	}
	for i := range c.fuses {
		c.fuses[i] = anyCondition
	}
	c.fuses[noFusion] = 0
	c.zenIntegers()
	c.zenVectors()
	c.zenRest()
	return c
}

// zenSchedulers sets four schedulers for integers, each with one ALU and three with an
// address, and two for vectors, with the queue in front of them.
func (c *Core) zenSchedulers(integers, vectors, queue int) {
	c.schedulers = []scheduler{
		{integers, zenALU0 | zenAGU0 | zenBranch | zenDivider},
		{integers, zenALU1 | zenAGU1},
		{integers, zenALU2 | zenAGU2},
		{integers, zenALU3},
	}
	c.vectorSchedulers = []scheduler{{vectors, zenFP0 | zenFP2 | zenFPStore}, {vectors, zenFP1 | zenFP3 | zenFPStore}}
	c.vectorQueue, c.vectorPorts = queue, zenFP|zenFPStore
}

func (c *Core) zenIntegers() {
	c.set(cost{1, 0, 0, 0, 0}, Nop, Zero, Move, VecMove, Load, VecLoad, Store, VecStore)
	c.set(cost{1, 0, 0, 1, 0}, LoadSigned)
	c.set(cost{1, 1, zenALU, 1, 0}, ALU, ALUCarry, LEA, BitCount, BitScan, BMI, ByteSwap)
	c.set(cost{1, 1, alu03, 1, 0}, CMov, CMovBE, SetCC, SignFill, BitTest)
	c.set(cost{1, 1, alu12, 1, 0}, Shift, ShiftVar, ShiftBMI, RotateCarry, BitExtract)
	c.set(cost{1, 1, alu03, 2, 0}, LEAComplex)
	c.set(cost{2, 2, alu12, 2, 0}, BitSet)
	c.set(cost{6, 3, alu12, 2, 0}, ShiftDouble)
	c.set(cost{1, 1, zenALU1, 3, 0}, IMul, CRC, Deposit)
	c.set(cost{2, 1, zenALU1, 4, 0}, MulWide)
	c.set(cost{2, 0, 0, 0, 0}, Exchange)
	c.set(cost{5, 1, zenALU0, 3, 3}, CompareExchange)
	// The more the quotient has bits, the longer: 9 cycles to 11 for divisors of 32
	// bits, and 9 to 17 for those of 64.
	c.set(cost{2, 1, zenDivider, 10, 6}, Div8, IDiv8, Div16, IDiv16, Div32, IDiv32)
	c.set(cost{2, 1, zenDivider, 12, 8}, Div64, IDiv64)
	c.set(cost{1, 1, zenBranch | zenALU0, 1, 0}, CondJump, Jump, IndirectJump, Return, Call, IndirectCall)
	c.set(cost{2, 0, 0, 0, 0}, Leave)
}

func (c *Core) zenVectors() {
	c.set(cost{1, 1, fp23, 3, 0}, FAdd, FRound, Convert, ConvertWide)
	c.set(cost{1, 1, fp01, 2, 0}, FMinMax, FCompare)
	c.set(cost{1, 1, fp01, 3, 0}, FMul)
	c.set(cost{1, 1, fp01, 4, 0}, FMA, FRcp)
	c.set(cost{1, 1, zenFP1, 11, 3}, FDivS)
	c.set(cost{1, 1, zenFP1, 13, 5}, FDivD)
	c.set(cost{1, 1, zenFP1, 15, 5}, FSqrtS)
	c.set(cost{1, 1, zenFP1, 21, 8}, FSqrtD)
	c.set(cost{2, 2, fp01, 3, 0}, FTest)
	c.set(cost{4, 4, fp12, 4, 0}, FHAdd)
	c.set(cost{8, 8, fp12, 11, 0}, FDot)
	c.set(cost{4, 4, fp12, 2, 0}, VHAdd)
	c.set(cost{1, 1, fp12 | zenFP0, 1, 0}, Shuffle)
	c.set(cost{1, 1, fp12, 1, 0}, VShift, VShiftVar, InsertHalf, Broadcast)
	c.set(cost{1, 1, fp12, 2, 0}, VShiftReg, ShuffleBytes)
	c.set(cost{1, 1, fp12, 3, 0}, ShuffleHalves)
	c.set(cost{1, 1, fp12, 4, 0}, ShuffleAcross)
	c.set(cost{1, 1, fp03, 3, 0}, VMul, VMul32, VSad)
	c.set(cost{1, 1, fp03, 2, 0}, VAbs)
	c.set(cost{1, 1, fp01, 1, 0}, BlendVar)
	c.set(cost{1, 1, fp01, 4, 0}, AES)
	c.set(cost{4, 1, zenFP0, 4, 2}, CLMul)
	c.set(cost{1, 1, zenFP0, 4, 0}, SHARounds)
	c.set(cost{1, 1, zenFPStore, 5, 0}, FromGPR)
	c.set(cost{1, 1, zenFPStore, 2, 0}, ToGPR, MaskToGPR, Extract)
	c.set(cost{2, 1, zenFPStore, 6, 0}, Insert)
	c.set(cost{2, 1, zenFPStore, 7, 0}, ConvertFromGPR)
	c.set(cost{2, 1, zenFPStore, 5, 0}, ConvertToGPR)
	c.set(cost{2, 1, zenFPStore, 4, 0}, VTest)
	c.set(cost{1, 1, zenFPStore, 1, 0}, Emms)
	c.set(cost{3, 1, zenFP0, 8, 2}, VString)
	c.set(cost{16, 8, fp12 | fp03, 14, 0}, Gather)
}

func (c *Core) zenRest() {
	c.set(cost{1, 1, fp01, 1, 0}, FPStack)
	c.set(cost{1, 1, zenFP2, 6, 0}, FPStackAdd)
	c.set(cost{1, 1, zenFP0, 7, 0}, FPStackMul)
	c.set(cost{1, 1, zenFP1, 15, 6}, FPStackDiv)
	c.set(cost{40, 1, zenFP1, 60, 60}, FPStackSlow)
	c.set(cost{3, 1, zenALU0, 0, 3}, String)
	c.set(cost{20, 1, zenALU0, 10, 9}, RepString)
	c.set(cost{6, 1, zenDivider, 7, 7}, Locked)
	c.set(cost{4, 1, zenDivider, 35, 35}, Timer)
	c.set(cost{4, 1, zenDivider, 17, 17}, LoadFence)
	c.set(cost{4, 1, zenDivider, 58, 58}, Fence)
	c.set(cost{8, 1, zenDivider, 90, 90}, Pause, System)
	c.set(cost{8, 1, zenDivider, 8, 8}, Microcode)
}

// zen3 is AMD's Zen 3, where it is not as Zen 4: Software Optimization Guide for AMD
// Family 19h Processors (56665); uops.info; A. Fog, Instruction tables.
func zen3() *Core {
	c := zen4()
	c.Name, c.fetch, c.reorder, c.loadQueue = "amdzen3", 8, 256, 116
	c.set(cost{1, 1, fp01, 1, 0}, FMinMax, FCompare)
	c.set(cost{1, 1, alu12, 1, 0}, BitCount)
	c.set(cost{4, 4, zenALU, 3, 0}, BitScan)
	c.set(cost{1, 1, fp12, 1, 0}, Shuffle, ShuffleBytes, VShiftReg)
	c.set(cost{1, 1, fp03, 1, 0}, VAbs)
	return c
}

// zen2 is AMD's Zen 2: Software Optimization Guide for AMD Family 17h Models 30h and
// Greater Processors (56305); uops.info. Its memory file, which finds stores by the
// registers that their addresses are made of, is A. Fog's discovery: The
// microarchitecture of Intel, AMD and VIA CPUs, chapter on Zen. What it finds at other
// addresses is here too.
func zen2() *Core {
	c := zen3()
	c.Name, c.reorder, c.storeQueue = "amdzen2", 224, 48
	c.forward, c.vectorForward = 7, 10
	c.schedulers = []scheduler{{16, zenALU0 | zenBranch | zenDivider}, {16, zenALU1}, {16, zenALU2}, {16, zenALU3}, {28, zenAGU}}
	c.vectorSchedulers = []scheduler{{36, zenFP | zenFPStore}}
	c.loads, c.vectorLoads, c.data = zenAGU0|zenAGU1, zenAGU0|zenAGU1, zenData0
	for i := range c.fuses {
		if f := fusion(i); f != fuseTest && f != fuseCompare {
			c.fuses[i] = 0
		}
	}
	c.set(cost{1, 1, fp01, 5, 0}, FMA)
	c.set(cost{1, 1, zenFP0 | zenFP1 | zenFP3, 1, 0}, VInt)
	c.set(cost{1, 1, zenFP0, 3, 0}, VMul)
	c.set(cost{1, 1, zenFP0, 4, 2}, VMul32)
	c.set(cost{2, 1, zenDivider, 16, 16}, Div8, IDiv8, Div16, IDiv16)
	c.set(cost{2, 1, zenDivider, 20, 20}, Div32, IDiv32)
	c.set(cost{2, 1, zenDivider, 30, 30}, Div64, IDiv64)
	c.set(cost{1, 1, zenALU, 1, 0}, Shift, ShiftVar, ShiftBMI, BitCount)
	c.set(cost{8, 8, zenALU, 18, 18}, Deposit)
	return c
}

// zen1 is AMD's first Zen: as Zen 2 with vector units of half the width, and fewer of
// most things. AMD, Software Optimization Guide for AMD Family 17h Processors (55723).
func zen1() *Core {
	c := zen2()
	c.Name, c.vector, c.reorder, c.storeQueue, c.fetch, c.renames = "amdzen1", 16, 192, 44, 6, 0
	c.schedulers = []scheduler{{14, zenALU0 | zenBranch | zenDivider}, {14, zenALU1}, {14, zenALU2}, {14, zenALU3}, {28, zenAGU}}
	return c
}

// zen5 is AMD's Zen 5: Software Optimization Guide for the AMD Zen5 Microarchitecture
// (58455); uops.info.
func zen5() *Core {
	c := zen4()
	c.Name, c.fetch, c.dispatch, c.reorder = "amdzen5", 12, 8, 448
	c.loadQueue, c.storeQueue, c.vector = 200, 104, 64
	const alu, agu = zenALU | zenALU4 | zenALU5, zenAGU | zenAGU3
	c.loads, c.vectorLoads, c.addresses = agu, agu&^(zenAGU2|zenAGU3), zenAGU0|zenAGU1
	c.schedulers = []scheduler{{88, alu | zenBranch | zenDivider}, {56, agu}}
	c.vectorSchedulers = []scheduler{{38, zenFP0 | zenFPStore}, {38, zenFP1 | zenFP3}, {38, zenFP2}}
	c.vectorQueue = 96
	c.set(cost{1, 1, alu, 1, 0}, ALU, ALUCarry, LEA, BMI, ByteSwap)
	c.set(cost{1, 1, alu12 | zenALU4, 1, 0}, Shift, ShiftVar, ShiftBMI, RotateCarry, BitExtract, BitCount, BitScan)
	c.set(cost{1, 1, alu03 | zenALU5, 1, 0}, CMov, CMovBE, SetCC, SignFill, BitTest)
	c.set(cost{1, 1, alu12 | zenALU4, 3, 0}, IMul)
	c.set(cost{1, 1, alu03 | zenALU5, 1, 0}, CondJump, Jump, IndirectJump, Return, Call, IndirectCall)
	c.set(cost{1, 1, fp23, 3, 0}, FAdd)
	c.set(cost{1, 1, zenFP, 2, 0}, VInt)
	return c
}

// The ports of Intel's cores, by their numbers.
const (
	p0 ports = 1 << iota
	p1
	p2
	p3
	p4
	p5
	p6
	p7
	p8
	p9
	p10
	p11
	intelDivider

	p01, p05, p06, p15 = p0 | p1, p0 | p5, p0 | p6, p1 | p5
	p015, p0156        = p0 | p1 | p5, p0 | p1 | p5 | p6
	anyPort            = ^ports(0)
)

// skylake is Intel's Skylake, in servers and clients, and what followed it until Ice
// Lake. Widths and sizes: Intel 64 and IA-32 Architectures Optimization Reference
// Manual, volume 1, chapter on Skylake; ports and latencies: uops.info; the blocked
// forwarding: A. Fog, The microarchitecture of Intel, AMD and VIA CPUs.
func skylake() *Core {
	c := &Core{Name: "skylake", fetch: 6, queue: 64, dispatch: 4, retire: 4, reorder: 224,
		schedulers: []scheduler{{97, anyPort}}, loadQueue: 72, storeQueue: 56, misses: 12, refill: 15,
		loads: p2 | p3, vectorLoads: p2 | p3, addresses: p2 | p3 | p7, data: p4, vectorData: p4,
		load: 5, vectorLoad: 6, forward: 5, vectorForward: 6, blocked: 10,
		ahead: 16, vector: 64}
	for i := range c.costs {
		c.costs[i] = cost{1, 1, p015, 1, 0}
	}
	c.fuses = [len(c.fuses)]uint16{fuseTest: anyCondition, fuseAnd: anyCondition, fuseCompare: withCarry, fuseAdd: withCarry, fuseIncrement: withoutCarry}
	c.intelIntegers()
	c.intelVectors()
	c.intelRest()
	return c
}

func (c *Core) intelIntegers() {
	c.set(cost{1, 0, 0, 0, 0}, Nop, Zero, Move, VecMove, Load, LoadSigned, VecLoad, Store, VecStore)
	c.set(cost{1, 1, p0156, 1, 0}, ALU)
	c.set(cost{1, 1, p06, 1, 0}, ALUCarry, CMov, SetCC, Shift, ShiftBMI, SignFill, BitTest, BitSet)
	c.set(cost{2, 2, p06, 2, 0}, CMovBE, ShiftVar)
	c.set(cost{3, 3, p06, 2, 0}, RotateCarry)
	c.set(cost{1, 1, p1, 3, 0}, ShiftDouble, BitScan, BitCount, IMul, CRC, Deposit)
	c.set(cost{1, 1, p15, 1, 0}, LEA, BMI, ByteSwap)
	c.set(cost{1, 1, p1, 3, 0}, LEAComplex)
	c.set(cost{2, 2, p15 | p06, 2, 0}, BitExtract)
	c.set(cost{3, 3, p0156, 2, 0}, Exchange)
	c.set(cost{5, 5, p0156, 5, 0}, CompareExchange)
	c.set(cost{2, 2, p15, 4, 0}, MulWide)
	c.set(cost{10, 1, intelDivider, 25, 6}, Div8, IDiv8, Div16, IDiv16, Div32, IDiv32)
	c.set(cost{36, 1, intelDivider, 38, 22}, Div64)
	c.set(cost{57, 1, intelDivider, 45, 25}, IDiv64)
	c.set(cost{1, 1, p06, 1, 0}, CondJump)
	c.set(cost{1, 1, p6, 1, 0}, Jump, IndirectJump, Return)
	c.set(cost{2, 1, p6, 1, 0}, Call, IndirectCall)
	c.set(cost{3, 1, p0156, 1, 0}, Leave)
}

func (c *Core) intelVectors() {
	c.set(cost{1, 1, p01, 4, 0}, FAdd, FMinMax, FCompare, FMul, FMA, Convert)
	c.set(cost{1, 1, p0, 11, 3}, FDivS)
	c.set(cost{1, 1, p0, 14, 4}, FDivD)
	c.set(cost{1, 1, p0, 12, 3}, FSqrtS)
	c.set(cost{1, 1, p0, 18, 6}, FSqrtD)
	c.set(cost{1, 1, p0, 4, 0}, FRcp, AES)
	c.set(cost{1, 1, p0, 2, 0}, FTest, ToGPR, MaskToGPR)
	c.set(cost{2, 2, p01, 8, 0}, FRound)
	c.set(cost{3, 3, p15, 6, 0}, FHAdd)
	c.set(cost{4, 4, p015, 13, 0}, FDot)
	c.set(cost{2, 2, p015, 5, 0}, ConvertWide, ConvertFromGPR)
	c.set(cost{2, 2, p01, 6, 0}, ConvertToGPR)
	c.set(cost{1, 1, p5, 2, 0}, FromGPR)
	c.set(cost{2, 2, p5, 3, 0}, Insert)
	c.set(cost{2, 2, p05, 3, 0}, Extract)
	c.set(cost{1, 1, p01, 1, 0}, VAbs, VShift, VShiftVar)
	c.set(cost{2, 2, p015, 2, 0}, VShiftReg, BlendVar)
	c.set(cost{1, 1, p01, 5, 0}, VMul)
	c.set(cost{2, 2, p01, 10, 0}, VMul32)
	c.set(cost{1, 1, p5, 3, 0}, VSad, ShuffleAcross, ShuffleHalves, InsertHalf, Broadcast)
	c.set(cost{3, 3, p15, 3, 0}, VHAdd)
	c.set(cost{1, 1, p5, 1, 0}, Shuffle, ShuffleBytes)
	c.set(cost{2, 2, p05, 3, 0}, VTest)
	c.set(cost{3, 3, p05, 10, 0}, VString)
	c.set(cost{1, 1, p5, 7, 0}, CLMul)
	c.set(cost{1, 1, p5, 4, 0}, SHA, SHARounds)
	c.set(cost{1, 1, p05, 3, 0}, MaskMove)
	c.set(cost{1, 1, p0, 1, 0}, MaskOp)
	c.set(cost{8, 8, p015, 18, 0}, Gather)
	c.set(cost{4, 0, 0, 0, 0}, Emms)
}

func (c *Core) intelRest() {
	c.set(cost{1, 1, p05, 1, 0}, FPStack)
	c.set(cost{1, 1, p5, 3, 0}, FPStackAdd)
	c.set(cost{1, 1, p0, 4, 0}, FPStackMul)
	c.set(cost{1, 1, p0, 15, 5}, FPStackDiv)
	c.set(cost{40, 1, p0, 60, 60}, FPStackSlow)
	c.set(cost{3, 1, p0156, 0, 0}, String)
	c.set(cost{20, 1, p6, 14, 14}, RepString)
	c.set(cost{8, 1, intelDivider, 18, 18}, Locked)
	c.set(cost{4, 1, intelDivider, 6, 6}, LoadFence)
	c.set(cost{4, 1, intelDivider, 33, 33}, Fence)
	c.set(cost{20, 1, intelDivider, 25, 25}, Timer)
	c.set(cost{8, 1, intelDivider, 140, 140}, Pause, System)
	c.set(cost{8, 1, intelDivider, 8, 8}, Microcode)
}

// haswell is Intel's Haswell, and Broadwell, where they are not as Skylake; sources as
// there.
func haswell() *Core {
	c := skylake()
	c.Name, c.fetch, c.queue, c.reorder, c.storeQueue, c.misses = "haswell", 4, 56, 192, 42, 10
	c.schedulers = []scheduler{{60, anyPort}}
	c.vector = 32
	c.set(cost{1, 1, p1, 3, 0}, FAdd, FMinMax, FCompare, Convert)
	c.set(cost{1, 1, p01, 5, 0}, FMul, FMA)
	c.set(cost{2, 2, p06, 2, 0}, ALUCarry, CMov)
	c.set(cost{1, 1, p0, 13, 7}, FDivS)
	c.set(cost{1, 1, p0, 20, 14}, FDivD, FSqrtD)
	c.set(cost{1, 1, p15, 1, 0}, VInt)
	c.set(cost{1, 1, p0, 1, 0}, VShift)
	c.set(cost{1, 1, p0, 5, 0}, VMul, FRcp)
	return c
}

// iceLake is Intel's Ice Lake, where it is not as Skylake: Sunny Cove, and Cypress and
// Willow Cove. Sources as there. Its moves between general registers are executed since
// a microcode update.
func iceLake() *Core {
	c := skylake()
	c.Name, c.queue, c.dispatch, c.retire, c.reorder = "icelake", 70, 5, 8, 352
	c.schedulers, c.loadQueue, c.storeQueue = []scheduler{{160, anyPort}}, 128, 72
	c.addresses, c.data, c.vectorData = p7|p8, p4|p9, p4|p9
	c.set(cost{1, 1, p0156, 1, 0}, Move, LEA)
	c.set(cost{1, 1, p15, 1, 0}, LEAComplex, Shuffle, ShuffleBytes)
	c.set(cost{4, 1, intelDivider, 12, 6}, Div8, IDiv8, Div16, IDiv16, Div32, IDiv32)
	c.set(cost{4, 1, intelDivider, 15, 10}, Div64, IDiv64)
	return c
}

// goldenCove is Intel's Golden Cove, where it is not as Ice Lake: Alder Lake's large
// core and Sapphire Rapids. Sources as there, and Chips and Cheese, Popping the Hood on
// Golden Cove (2021). That loads can have a store's data before their address is known
// is Intel, Fast Store Forwarding Predictor (2022); how far back is assumed to be as
// on Zen 4.
func goldenCove() *Core {
	c := iceLake()
	c.Name, c.fetch, c.queue, c.dispatch, c.reorder = "goldencove", 8, 72, 6, 512
	c.schedulers = []scheduler{{97, anyPort &^ (p2 | p3 | p11 | p7 | p8)}, {70, p2 | p3 | p11}, {38, p7 | p8}}
	c.loadQueue, c.storeQueue, c.misses = 192, 114, 16
	c.loads, c.vectorLoads, c.renames = p2|p3|p11, p2|p3|p11, 14
	c.set(cost{1, 1, p0156 | p10, 1, 0}, ALU, LEA)
	c.set(cost{1, 0, 0, 0, 0}, Move)
	c.set(cost{1, 1, p15, 3, 0}, FAdd)
	c.set(cost{4, 1, intelDivider, 10, 6}, Div64, IDiv64)
	return c
}
