package pipeline

import "encoding/binary"

// General registers of arm64 above the fifteenth have numbers of their own, behind all others.
const (
	moreGeneral = XMM0 + 34 // X16 to X30, and SP
	armSP       = moreGeneral + 15
)

// An armWord is an instruction of arm64. Its fields are those of the Arm Architecture
// Reference Manual for A-profile (DDI 0487), section C4.1.
type armWord uint32

// bits returns so many bits from a position on.
func (w armWord) bits(from, n uint) uint32 { return uint32(w) >> from & (1<<n - 1) }

func (w armWord) is(mask, value uint32) bool { return uint32(w)&mask == value }

// signed returns bits as a signed number.
func (w armWord) signed(from, n uint) int64 { return int64(int32(w.bits(from, n)<<(32-n)) >> (32 - n)) }

// armGeneral returns a general register by its number: 31 is SP, or the zero register.
func armGeneral(n uint32, sp bool) Register {
	switch {
	case n < 16:
		return RAX + Register(n)
	case n < 31:
		return moreGeneral + Register(n-16)
	case sp:
		return armSP
	}
	return NoRegister
}

func armVector(n uint32) Register { return XMM0 + Register(n) }

// An armBuilder makes the op of an instruction.
type armBuilder struct {
	builder
	w armWord
}

// rd, rn and rm are the registers of the usual fields. SP is that of additions to it.
func (b *armBuilder) rd(sp bool) { b.write(armGeneral(b.w.bits(0, 5), sp)) }
func (b *armBuilder) rn(sp bool) { b.read(armGeneral(b.w.bits(5, 5), sp)) }
func (b *armBuilder) rm()        { b.read(armGeneral(b.w.bits(16, 5), false)) }

func (b *armBuilder) flags() { b.write(Carry); b.write(Flags) }

func (b *armBuilder) readFlags() { b.read(Carry); b.read(Flags) }

// of sets the class, and mixes the operands for the value.
func (b *armBuilder) of(c Class) { b.op.Class, b.op.calc = c, calcMix }

// armOp returns what an instruction of arm64 needs.
func armOp(code []byte) Op {
	b := &armBuilder{w: armWord(binary.LittleEndian.Uint32(code))}
	b.op.Width, b.op.Size = 4, 4
	if b.w>>31 == 1 {
		b.op.Width, b.op.Size = 8, 8
	}
	known := false
	switch group := b.w.bits(25, 4); {
	case group&^1 == 0b1000:
		known = b.immediate()
	case group&^1 == 0b1010:
		known = b.branch()
	case group&0b0101 == 0b0100:
		known = b.memory()
	case group&0b0111 == 0b0101:
		known = b.registers()
	case group&0b0111 == 0b0111:
		known = b.vectors()
	}
	o := &b.op
	if !known { // SVE among them
		*o = Op{Class: VInt, Width: 16, vector: true, unknown: true}
		b.reads, b.written = 0, 0
		b.read(armVector(b.w.bits(5, 5)))
		b.write(armVector(b.w.bits(0, 5)))
	}
	o.vector = o.vector || b.vector()
	o.form = formOf(o.Class, o.Width, o.Loads || o.Stores)
	return *o
}

// immediate decodes data processing with an immediate number.
func (b *armBuilder) immediate() bool {
	w := b.w
	switch w.bits(23, 3) {
	case 0, 1: // ADR, ADRP
		b.of(LEA)
		b.op.calc, b.op.second = calcSecond, constant
		b.rd(false)
	case 2: // ADD, SUB
		b.of(ALU)
		setsFlags := w.bits(29, 1) == 1
		b.rn(true)
		b.rd(!setsFlags)
		b.op.first, b.op.second, b.op.imm = armGeneral(w.bits(5, 5), true), constant, int64(w.bits(10, 12)<<(12*w.bits(22, 1)))
		if b.op.calc = calcAdd; w.bits(30, 1) == 1 {
			b.op.calc = calcSub
		}
		if setsFlags {
			b.flags()
			b.comparison()
		}
	case 4: // AND, ORR, EOR
		b.of(ALU)
		setsFlags := w.bits(29, 2) == 3
		b.rn(false)
		b.rd(!setsFlags)
		if setsFlags {
			b.flags()
			b.comparison()
		}
	case 5: // MOVN, MOVZ, MOVK
		b.of(ALU)
		if b.rd(false); w.bits(29, 2) == 3 {
			b.read(armGeneral(w.bits(0, 5), false))
		} else {
			b.op.calc, b.op.second, b.op.imm = calcSecond, constant, int64(w.bits(5, 16))<<(16*w.bits(21, 2))
		}
	case 6: // SBFM, BFM, UBFM: shifts and extensions
		b.of(Shift)
		b.rn(false)
		if b.rd(false); w.bits(29, 2) == 1 {
			b.of(BitExtract)
			b.read(armGeneral(w.bits(0, 5), false))
		}
	case 7: // EXTR
		b.of(ShiftDouble)
		b.rn(false)
		b.rm()
		b.rd(false)
	default:
		return false
	}
	return true
}

// comparison lets an instruction that writes nothing but flags fuse with a branch.
func (b *armBuilder) comparison() {
	if b.w.bits(0, 5) == 31 {
		b.op.fuses = fuseCompare
	}
}

// branch decodes branches, and instructions of the system.
func (b *armBuilder) branch() bool {
	w, o := b.w, &b.op
	switch {
	case w.is(0xff000010, 0x54000000): // B.cond
		o.Class, o.conditional, o.cond = CondJump, true, uint8(w.bits(0, 4))
		b.readFlags()
	case w.is(0x7e000000, 0x34000000), w.is(0x7e000000, 0x36000000): // CBZ, TBZ
		o.Class, o.conditional, o.cond = CondJump, true, noCondition
		b.read(armGeneral(w.bits(0, 5), false))
	case w.is(0xfc000000, 0x14000000): // B
		o.Class = Jump
	case w.is(0xfc000000, 0x94000000): // BL
		o.Class = Call
		b.write(armGeneral(30, false))
	case w.is(0xfe000000, 0xd6000000): // BR, BLR, RET
		b.rn(false)
		switch o.Class = IndirectJump; w.bits(21, 4) {
		case 1, 9:
			o.Class = IndirectCall
			b.write(armGeneral(30, false))
		case 2:
			o.Class = Return
		}
	case w.is(0xfffff01f, 0xd503201f): // NOP and hints
		o.Class = Nop
	case w.is(0xfffff000, 0xd5033000): // DMB, DSB, ISB
		o.Class = Fence
	case w.is(0xffd00000, 0xd5100000): // MSR, MRS
		o.Class, o.calc = System, calcMix
		if w.bits(21, 1) == 1 {
			b.rd(false)
		}
	default:
		o.Class = System
	}
	return true
}

// registers decodes data processing of registers.
func (b *armBuilder) registers() bool {
	w := b.w
	switch {
	case w.is(0x1f000000, 0x0a000000): // AND, ORR, EOR, ANDS, with a shift
		setsFlags := w.bits(29, 2) == 3
		b.shifted(setsFlags, calcMix)
		if w.bits(10, 6) != 0 {
			b.op.Class = LEA
			if setsFlags {
				b.op.Class = LEAComplex
			}
		}
		if w.is(0x7fe0ffe0, 0x2a0003e0) { // MOV
			b.op.Class, b.op.calc, b.op.second = Move, calcSecond, armGeneral(w.bits(16, 5), false)
			if b.op.second == NoRegister {
				b.op.Class = Zero
			}
		}
	case w.is(0x1f200000, 0x0b000000): // ADD, SUB, with a shift
		b.added()
		if by := w.bits(10, 6); by != 0 {
			b.op.Class, b.op.calc = LEAComplex, calcMix
			if w.bits(22, 2) == 0 && by <= 4 { // short shifts to the left cost nothing
				b.op.Class = LEA
			}
		}
	case w.is(0x1f200000, 0x0b200000): // with an extension
		b.added()
		b.op.Class, b.op.calc = LEAComplex, calcMix
	case w.is(0x1fe00000, 0x1a000000): // ADC, SBC
		b.of(ALUCarry)
		b.rn(false)
		b.rm()
		b.read(Carry)
		b.rd(false)
		if w.bits(29, 1) == 1 {
			b.flags()
		}
	case w.is(0x1fe00000, 0x1a400000): // CCMP, CCMN
		b.of(ALUCarry)
		b.rn(false)
		if w.bits(11, 1) == 0 {
			b.rm()
		}
		b.readFlags()
		b.flags()
	case w.is(0x1fe00000, 0x1a800000): // CSEL and others
		b.of(CMov)
		b.rn(false)
		b.rm()
		b.readFlags()
		b.rd(false)
	case w.is(0x5fe00000, 0x1ac00000):
		return b.twoSources()
	case w.is(0x5fe00000, 0x5ac00000): // RBIT, REV, CLZ
		b.of(ByteSwap)
		b.rn(false)
		b.rd(false)
	case w.is(0x1f000000, 0x1b000000):
		b.multiplied()
	default:
		return false
	}
	return true
}

// shifted decodes an operation on two registers, the second of them shifted.
func (b *armBuilder) shifted(setsFlags bool, calc calculation) {
	b.of(ALU)
	b.op.calc = calc
	b.rn(false)
	b.rm()
	b.rd(false)
	if setsFlags {
		b.flags()
		b.comparison()
	}
}

// added decodes an addition or subtraction of two registers.
func (b *armBuilder) added() {
	calc := calcAdd
	if b.w.bits(30, 1) == 1 {
		calc = calcSub
	}
	b.shifted(b.w.bits(29, 1) == 1, calc)
	b.op.first, b.op.second = armGeneral(b.w.bits(5, 5), false), armGeneral(b.w.bits(16, 5), false)
}

// twoSources decodes divisions, shifts by a register, and checksums.
func (b *armBuilder) twoSources() bool {
	b.rn(false)
	b.rm()
	b.rd(false)
	switch code := b.w.bits(10, 6); {
	case code == 2 && b.op.Width == 4:
		b.of(Div32)
	case code == 2:
		b.of(Div64)
	case code == 3 && b.op.Width == 4:
		b.of(IDiv32)
	case code == 3:
		b.of(IDiv64)
	case code>>2 == 2:
		b.of(ShiftVar)
	case code>>3 == 2:
		b.of(CRC)
	default:
		return false
	}
	return true
}

// multiplied decodes a multiplication, with an addition unless that is of zero.
func (b *armBuilder) multiplied() {
	switch addend := b.w.bits(10, 5); {
	case b.w.is(0x00400000, 0x00400000): // SMULH, UMULH
		b.of(MulWide)
	case addend == 31: // of zero
		b.of(IMul)
	default:
		b.of(IMulAdd)
	}
	b.rn(false)
	b.rm()
	b.read(armGeneral(b.w.bits(10, 5), false))
	b.op.late = armGeneral(b.w.bits(10, 5), false)
	b.rd(false)
}
