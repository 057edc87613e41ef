package pipeline

// cores are the cores that are known, by family.
var cores = map[string]*Core{}

func init() {
	zen4 := zen4Core()
	cores["amdzen4"] = zen4
	generic := *zen4
	generic.Name = "generic"
	cores["generic"] = &generic
}

func family(cpu string) string { return cpu }

// The ports of AMD's cores from Zen 3 on.
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
	zenFPStore0
	zenFPStore1
	zenDivider

	zenALU = zenALU0 | zenALU1 | zenALU2 | zenALU3
	zenFP  = zenFP0 | zenFP1 | zenFP2 | zenFP3
)

func zen4Core() *Core {
	c := &Core{Name: "amdzen4", fetch: 9, queue: 64, dispatch: 6, retire: 8, reorder: 320,
		schedule: 96, vectorSchedule: 128, loadQueue: 88, storeQueue: 64, refill: 14,
		loads: zenAGU0 | zenAGU1 | zenAGU2, vectorLoads: zenAGU0 | zenAGU1, addresses: zenAGU0 | zenAGU1 | zenAGU2,
		data: zenData0 | zenData1, vectorData: zenFPStore0 | zenFPStore1,
		load: 4, vectorLoad: 7, indexed: 1, forward: 6, vectorForward: 9, blocked: 11, renames: 14, callBubble: 1, ahead: 16, nops: true, vector: 32}
	for i := range c.costs {
		c.costs[i] = cost{1, 1, zenFP, 1, 0}
	}
	for i := range c.fuses {
		c.fuses[i] = anyCondition
	}
	c.fuses[noFusion] = 0
	set := func(k cost, list ...Class) {
		for _, class := range list {
			c.costs[class] = k
		}
	}
	const (
		alu03 = zenALU0 | zenALU3
		alu12 = zenALU1 | zenALU2
		fp01  = zenFP0 | zenFP1
		fp12  = zenFP1 | zenFP2
		fp03  = zenFP0 | zenFP3
		fp23  = zenFP2 | zenFP3
		fpx   = zenFPStore0
	)
	set(cost{1, 0, 0, 0, 0}, Nop, Zero, Move, VecMove, Load, VecLoad, Store, VecStore)
	set(cost{1, 0, 0, 1, 0}, LoadSigned)
	set(cost{1, 1, zenALU, 1, 0}, ALU, ALUCarry, LEA, BitCount, BitScan, BMI, ByteSwap)
	set(cost{1, 1, alu03, 1, 0}, CMov, CMovBE, SetCC, SignFill, BitTest)
	set(cost{1, 1, alu12, 1, 0}, Shift, ShiftVar, ShiftBMI, RotateCarry, BitExtract)
	set(cost{1, 1, alu03, 2, 0}, LEAComplex)
	set(cost{2, 2, alu12, 2, 0}, BitSet)
	set(cost{6, 3, alu12, 2, 0}, ShiftDouble)
	set(cost{1, 1, zenALU1, 3, 0}, IMul, CRC, Deposit)
	set(cost{2, 1, zenALU1, 4, 0}, MulWide)
	set(cost{2, 0, 0, 0, 0}, Exchange)
	set(cost{5, 1, zenALU0, 3, 3}, CompareExchange)
	set(cost{2, 1, zenDivider, 10, 6}, Div8, IDiv8, Div16, IDiv16, Div32, IDiv32)
	set(cost{2, 1, zenDivider, 12, 8}, Div64, IDiv64)
	set(cost{1, 1, zenBranch | zenALU0, 1, 0}, CondJump, Jump, IndirectJump, Return, Call, IndirectCall)
	set(cost{2, 0, 0, 0, 0}, Leave)
	set(cost{1, 1, fp23, 3, 0}, FAdd, FRound, Convert, ConvertWide)
	set(cost{1, 1, fp01, 2, 0}, FMinMax, FCompare)
	set(cost{1, 1, fp01, 3, 0}, FMul)
	set(cost{1, 1, fp01, 4, 0}, FMA, FRcp)
	set(cost{1, 1, zenFP1, 11, 3}, FDivS)
	set(cost{1, 1, zenFP1, 13, 5}, FDivD)
	set(cost{1, 1, zenFP1, 15, 5}, FSqrtS)
	set(cost{1, 1, zenFP1, 21, 8}, FSqrtD)
	set(cost{2, 1, fp01, 3, 0}, FTest)
	set(cost{4, 4, fp12, 4, 0}, FHAdd)
	set(cost{8, 8, fp12, 11, 0}, FDot)
	set(cost{4, 4, fp12, 2, 0}, VHAdd)
	set(cost{1, 1, fp12 | zenFP0, 1, 0}, Shuffle)
	set(cost{1, 1, fp12, 1, 0}, VShift, VShiftVar, InsertHalf, Broadcast)
	set(cost{1, 1, fp12, 2, 0}, VShiftReg, ShuffleBytes)
	set(cost{1, 1, fp12, 3, 0}, ShuffleHalves)
	set(cost{1, 1, fp12, 4, 0}, ShuffleAcross)
	set(cost{1, 1, fp03, 3, 0}, VMul, VMul32, VSad)
	set(cost{1, 1, fp03, 2, 0}, VAbs)
	set(cost{1, 1, fp01, 1, 0}, BlendVar)
	set(cost{1, 1, fp01, 4, 0}, AES)
	set(cost{4, 1, zenFP0, 4, 2}, CLMul)
	set(cost{1, 1, zenFP0, 4, 0}, SHARounds)
	set(cost{1, 1, fpx, 5, 0}, FromGPR)
	set(cost{1, 1, fpx, 2, 0}, ToGPR, MaskToGPR, Extract)
	set(cost{2, 1, fpx, 6, 0}, Insert)
	set(cost{2, 1, fpx, 7, 0}, ConvertFromGPR)
	set(cost{2, 1, fpx, 5, 0}, ConvertToGPR)
	set(cost{2, 1, fpx, 4, 0}, VTest)
	set(cost{1, 1, fpx, 1, 0}, Emms)
	set(cost{3, 1, zenFP0, 8, 2}, VString)
	set(cost{24, 8, fp12, 14, 0}, Gather)
	set(cost{1, 1, fp01, 1, 0}, FPStack)
	set(cost{1, 1, zenFP2, 6, 0}, FPStackAdd)
	set(cost{1, 1, zenFP0, 7, 0}, FPStackMul)
	set(cost{1, 1, zenFP1, 15, 6}, FPStackDiv)
	set(cost{40, 1, zenFP1, 60, 60}, FPStackSlow)
	set(cost{3, 1, zenALU0, 0, 3}, String)
	set(cost{20, 1, zenALU0, 10, 9}, RepString)
	set(cost{6, 1, zenDivider, 8, 7}, Locked)
	set(cost{4, 1, zenDivider, 35, 35}, Timer)
	set(cost{4, 1, zenDivider, 17, 17}, LoadFence)
	set(cost{4, 1, zenDivider, 58, 58}, Fence)
	set(cost{8, 1, zenDivider, 90, 90}, Pause, System)
	set(cost{8, 1, zenDivider, 8, 8}, Microcode)
	return c
}
