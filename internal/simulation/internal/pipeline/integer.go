package pipeline

import "sync"

// A use says which operands an instruction reads and writes.
type use uint32

const (
	readRM use = 1 << iota // the register or memory of ModRM's lower part
	writeRM
	readReg // the register of its middle part
	writeReg
	readV // the register in a VEX prefix; for vectors without one, Reg
	writeV
	readLow // the register in the opcode's lower three bits
	writeLow
	readA // RAX
	writeA
	readD
	writeD
	readC
	writeC
	stack // RSP goes up or down
	readCarry
	writeCarry
	readFlags
	writeFlags
	vectorRM // RM is a vector register
	vectorReg
	maskRM
	maskReg
	maskV
	bytes // operands of one byte
	wide  // operands of 64 bits without REX.W
	loads // memory that ModRM does not name
	stores
	general // VEX, but of general registers
	readX87 // the stack of the old floating point unit
	writeX87
	fourth // a vector register in the immediate, and without VEX XMM0

	bothFlags  = writeCarry | writeFlags
	readBoth   = readCarry | readFlags
	modifyRM   = readRM | writeRM | bothFlags
	modifyReg  = readReg | writeReg | readRM | bothFlags
	convertReg = readRM | writeReg
	x87        = readX87 | writeX87
)

// A spec is the effect of an opcode. size is the bytes of memory, if they differ from the
// width of the operands.
type spec struct {
	class Class
	use   use
	size  uint8
	calc  calculation
	fuses fusion
}

// arithmetic are the instructions of opcodes below 40, in order, and of group 1.
var arithmetic = [8]spec{
	{ALU, bothFlags, 0, calcAdd, fuseAdd},
	{ALU, bothFlags, 0, calcOr, fuseOr},
	{ALUCarry, bothFlags | readCarry, 0, calcMix, noFusion},
	{ALUCarry, bothFlags | readCarry, 0, calcMix, noFusion},
	{ALU, bothFlags, 0, calcAnd, fuseAnd},
	{ALU, bothFlags, 0, calcSub, fuseAdd},
	{ALU, bothFlags, 0, calcXor, fuseOr},
	{ALU, bothFlags, 0, calcNone, fuseCompare},
}

const compare = 7 // in arithmetic

// shifts are those of group 2.
var shifts = [8]spec{
	{Shift, writeCarry, 0, calcMix, noFusion}, // ROL
	{Shift, writeCarry, 0, calcMix, noFusion}, // ROR
	{RotateCarry, readCarry | writeCarry, 0, calcMix, noFusion},
	{RotateCarry, readCarry | writeCarry, 0, calcMix, noFusion},
	{Shift, bothFlags, 0, calcShl, noFusion},
	{Shift, bothFlags, 0, calcShr, noFusion},
	{Shift, bothFlags, 0, calcShl, noFusion},
	{Shift, bothFlags, 0, calcSar, noFusion},
}

// oneByte are the opcodes without an escape; those of groups are in group.
var oneByte = sync.OnceValue(func() *[256]spec {
	t := oneByteSpecs()
	return &t
})

func oneByteSpecs() (t [256]spec) {
	for i, s := range arithmetic {
		write := writeRM | writeReg | writeA
		if i == compare {
			write = 0
		}
		for form, u := range []use{
			bytes | readRM | readReg | writeRM&write, readRM | readReg | writeRM&write,
			bytes | readRM | readReg | writeReg&write, readRM | readReg | writeReg&write,
			bytes | readA | writeA&write, readA | writeA&write,
		} {
			t[i<<3+form] = s
			t[i<<3+form].use |= u
		}
	}
	for c := range 8 {
		t[0x50+c] = spec{class: Store, use: readLow | stores | stack | wide, calc: calcSecond}
		t[0x58+c] = spec{class: Load, use: writeLow | loads | stack | wide, calc: calcSecond}
		t[0x90+c] = spec{class: Exchange, use: readLow | writeLow | readA | writeA, calc: calcMix}
		t[0xb0+c] = spec{class: ALU, use: writeLow | bytes, calc: calcSecond}
		t[0xb8+c] = spec{class: ALU, use: writeLow, calc: calcSecond}
	}
	for c := range 16 {
		t[0x70+c] = spec{class: CondJump, use: conditions[c]}
	}
	for c, s := range map[byte]spec{
		0x63: {Move, convertReg, 4, calcSignExtend, noFusion},
		0x68: {Store, stores | stack | wide, 0, calcSecond, noFusion},
		0x6a: {Store, stores | stack | wide, 0, calcSecond, noFusion},
		0x69: {IMul, convertReg | bothFlags, 0, calcIMul, noFusion},
		0x6b: {IMul, convertReg | bothFlags, 0, calcIMul, noFusion},
		0x84: {ALU, bytes | readRM | readReg | bothFlags, 0, calcNone, fuseTest},
		0x85: {ALU, readRM | readReg | bothFlags, 0, calcNone, fuseTest},
		0x86: {Exchange, bytes | readRM | writeRM | readReg | writeReg, 0, calcMix, noFusion},
		0x87: {Exchange, readRM | writeRM | readReg | writeReg, 0, calcMix, noFusion},
		0x88: {Move, bytes | readReg | writeRM, 0, calcSecond, noFusion},
		0x89: {Move, readReg | writeRM, 0, calcSecond, noFusion},
		0x8a: {Move, bytes | convertReg, 0, calcSecond, noFusion},
		0x8b: {Move, convertReg, 0, calcSecond, noFusion},
		0x8c: {ALU, writeRM, 2, calcMix, noFusion},
		0x8d: {LEA, writeReg, 0, calcLEA, noFusion},
		0x8e: {System, readRM, 2, calcNone, noFusion},
		0x8f: {Load, writeRM | loads | stack | wide, 0, calcSecond, noFusion},
		0x98: {ALU, readA | writeA, half, calcSignExtend, noFusion},
		0x99: {SignFill, readA | writeD, 0, calcSignFill, noFusion},
		0x9b: {Nop, 0, 0, calcNone, noFusion},
		0x9c: {Microcode, readBoth | stores | stack | wide, 0, calcMix, noFusion},
		0x9d: {Microcode, bothFlags | loads | stack | wide, 0, calcMix, noFusion},
		0x9e: {ALU, readA | bothFlags, 0, calcNone, noFusion},
		0x9f: {ALU, readBoth | readA | writeA, 0, calcMix, noFusion},
		0xa0: {Load, bytes | writeA | loads, 0, calcMix, noFusion},
		0xa1: {Load, writeA | loads, 0, calcMix, noFusion},
		0xa2: {Store, bytes | readA | stores, 0, calcSecond, noFusion},
		0xa3: {Store, readA | stores, 0, calcSecond, noFusion},
		0xa8: {ALU, bytes | readA | bothFlags, 0, calcNone, fuseTest},
		0xa9: {ALU, readA | bothFlags, 0, calcNone, fuseTest},
		0xc2: {Return, loads | stack | wide, 0, calcSecond, noFusion},
		0xc3: {Return, loads | stack | wide, 0, calcSecond, noFusion},
		0xc6: {Store, bytes | writeRM, 0, calcSecond, noFusion},
		0xc7: {Store, writeRM, 0, calcSecond, noFusion},
		0xc8: {Microcode, stores | stack | wide, 0, calcMix, noFusion},
		0xc9: {Leave, loads | wide, 0, calcLeave, noFusion},
		0xcc: {System, 0, 0, calcNone, noFusion},
		0xcd: {System, 0, 0, calcNone, noFusion},
		0xcf: {System, 0, 0, calcNone, noFusion},
		0xd7: {Load, bytes | readA | writeA | loads, 0, calcMix, noFusion},
		0xe0: {CondJump, readC | writeC | readFlags | wide, 0, calcMix, noFusion},
		0xe1: {CondJump, readC | writeC | readFlags | wide, 0, calcMix, noFusion},
		0xe2: {CondJump, readC | writeC | wide, 0, calcMix, noFusion},
		0xe3: {CondJump, readC, 0, calcNone, noFusion},
		0xe8: {Call, stores | stack | wide, 0, calcMix, noFusion},
		0xe9: {Jump, 0, 0, calcNone, noFusion},
		0xeb: {Jump, 0, 0, calcNone, noFusion},
		0xf4: {System, 0, 0, calcNone, noFusion},
		0xf5: {ALU, readCarry | writeCarry, 0, calcNone, noFusion},
		0xf8: {ALU, writeCarry, 0, calcNone, noFusion},
		0xf9: {ALU, writeCarry, 0, calcNone, noFusion},
		0xfa: {System, 0, 0, calcNone, noFusion},
		0xfb: {System, 0, 0, calcNone, noFusion},
		0xfc: {Microcode, 0, 0, calcNone, noFusion},
		0xfd: {Microcode, 0, 0, calcNone, noFusion},
	} {
		t[c] = s
	}
	return t
}

// conditions are the flags that conditions depend on, by the opcode's low bits:
// Intel's manual volume 1, appendix B.
var conditions = [16]use{
	readFlags, readFlags, // overflow
	readCarry, readCarry, // below
	readFlags, readFlags, // equal
	readBoth, readBoth, // below or equal
	readFlags, readFlags, // sign
	readFlags, readFlags, // parity
	readFlags, readFlags, // less
	readFlags, readFlags, // less or equal
}

// one returns the effect of an opcode without an escape.
func (x *encodedInstruction) one() spec {
	s := oneByte()[x.opcode]
	switch c, part := x.opcode, x.reg&7; {
	case c >= 0x80 && c <= 0x83:
		s = arithmetic[part]
		s.use |= readRM
		if part != compare {
			s.use |= writeRM
		}
		s.use |= byteForm(c != 0x81 && c != 0x83)
	case c == 0xc0, c == 0xc1, c >= 0xd0 && c <= 0xd3:
		s = shifts[part]
		s.use |= readRM | writeRM | byteForm(c&1 == 0)
		if c >= 0xd2 {
			s.use |= readC
			if s.calc != calcMix {
				s.calc += calcShlBy - calcShl
			}
			if s.class == Shift {
				s.class = ShiftVar
			}
		}
	case c >= 0xd8 && c <= 0xdf:
		return x.floatingPoint()
	case c == 0xf6, c == 0xf7:
		s = x.unary(part)
		s.use |= byteForm(c == 0xf6)
	case c == 0xfe, c == 0xff:
		s = x.incrementOrJump(part)
		s.use |= byteForm(c == 0xfe)
	case c == 0x90 && x.b == 0:
		s = spec{class: Nop}
		if x.rep == 0xf3 {
			s.class = Pause
		}
	case c >= 0xa4 && c <= 0xa7, c >= 0xaa && c <= 0xaf:
		s = x.str()
	}
	return s
}

func byteForm(is bool) use {
	if is {
		return bytes
	}
	return 0
}

// unary returns an instruction of group 3.
func (x *encodedInstruction) unary(part uint8) spec {
	size := x.operandSize()
	if x.opcode == 0xf6 {
		size = 1
	}
	high := readD | writeD // the upper half of a product or dividend
	if size == 1 {
		high = 0
	}
	switch part {
	case 2:
		return spec{ALU, readRM | writeRM, 0, calcNot, noFusion}
	case 3:
		return spec{ALU, modifyRM, 0, calcNeg, noFusion}
	case 4, 5:
		class := IMul
		if size == 8 {
			class = MulWide
		}
		return spec{class, readRM | readA | writeA | high&writeD | bothFlags, 0, calcMix, noFusion}
	case 6, 7:
		class := map[uint8]Class{1: Div8, 2: Div16, 4: Div32, 8: Div64}[size]
		if part == 7 {
			class += IDiv8 - Div8
		}
		return spec{class, readRM | readA | writeA | high | bothFlags, 0, calcMix, noFusion}
	}
	return spec{ALU, readRM | bothFlags, 0, calcNone, fuseTest}
}

// incrementOrJump returns an instruction of groups 4 and 5.
func (x *encodedInstruction) incrementOrJump(part uint8) spec {
	switch part {
	case 0:
		return spec{ALU, readRM | writeRM | writeFlags, 0, calcAdd, fuseIncrement}
	case 1:
		return spec{ALU, readRM | writeRM | writeFlags, 0, calcSub, fuseIncrement}
	case 2:
		return spec{IndirectCall, readRM | stores | stack | wide, 0, calcMix, noFusion}
	case 4:
		return spec{IndirectJump, readRM | wide, 0, calcNone, noFusion}
	case 6:
		return spec{Store, readRM | stores | stack | wide, 0, calcSecond, noFusion}
	}
	return spec{System, 0, 0, calcNone, noFusion}
}

// str returns a string instruction.
func (x *encodedInstruction) str() spec {
	s := spec{class: String, use: byteForm(x.opcode&1 == 0), calc: calcString}
	if x.rep != 0 {
		s.class = RepString
	}
	switch x.opcode &^ 1 {
	case 0xa4:
		s.use |= loads | stores
	case 0xaa:
		s.use |= readA | stores
	case 0xac:
		s.use |= writeA | loads
	case 0xa6:
		s.use |= loads | bothFlags
	case 0xae:
		s.use |= readA | loads | bothFlags
	}
	return s
}

// floatingPoint returns an instruction of the old floating point unit: Intel's
// manual volume 2, tables.
func (x *encodedInstruction) floatingPoint() spec {
	part := x.reg & 7
	size := [8]uint8{4, 4, 4, 4, 8, 8, 2, 2}[x.opcode&7]
	if !x.memory {
		return x.floatingPointRegister(part)
	}
	if x.opcode&1 == 0 { // arithmetic with memory
		return spec{[8]Class{FPStackAdd, FPStackMul, FPStackAdd, FPStackAdd, FPStackAdd, FPStackAdd, FPStackDiv, FPStackDiv}[part],
			x87 | readRM, size, calcNone, noFusion}
	}
	switch {
	case part == 0, x.opcode == 0xdf && part == 5:
		return spec{FPStack, writeX87 | readRM, size, calcNone, noFusion}
	case x.opcode == 0xdb && part == 5:
		return spec{FPStack, writeX87 | readRM, 10, calcNone, noFusion}
	case x.opcode == 0xdb && part == 7:
		return spec{FPStack, readX87 | writeRM, 10, calcMix, noFusion}
	case x.opcode == 0xd9 && part == 5:
		return spec{FPControl, readRM, 2, calcNone, noFusion} // FLDCW
	case x.opcode == 0xd9 && part == 7, x.opcode == 0xdd && part == 7:
		return spec{FPControl, writeRM, 2, calcMix, noFusion} // FNSTCW, FNSTSW
	case part < 4, x.opcode == 0xdf && part == 7:
		return spec{FPStack, readX87 | writeRM, size, calcMix, noFusion}
	}
	return spec{Microcode, x87, 0, calcNone, noFusion}
}

func (x *encodedInstruction) floatingPointRegister(part uint8) spec {
	s := spec{class: FPStackAdd, use: x87}
	switch x.opcode {
	case 0xd8, 0xdc, 0xde:
		s.class = [8]Class{FPStackAdd, FPStackMul, FPStackAdd, FPStackAdd, FPStackAdd, FPStackAdd, FPStackDiv, FPStackDiv}[part]
	case 0xd9:
		switch {
		case part < 4:
			s.class = FPStack
		case part >= 6:
			s.class = FPStackSlow
		}
	case 0xdb, 0xdf:
		switch {
		case part == 5 || part == 6: // FCOMI, FUCOMI
			s.use = readX87 | bothFlags
			if x.opcode == 0xdf { // and they pop
				s.use |= writeX87
			}
		case x.opcode == 0xdf: // FNSTSW
			s.use |= writeA
		default:
			s.use |= readBoth // FCMOV
		}
	case 0xda:
		s.use |= readBoth
	case 0xdd:
		s.class = FPStack
	}
	return s
}
