package pipeline

import "sync"

// twoByte are the opcodes behind 0F for general registers, and those of groups with uniform
// members.
var twoByte = sync.OnceValue(twoByteSpecs)

func twoByteSpecs() map[byte]spec {
	t := map[byte]spec{
		0x05: {class: System},
		0x0b: {class: System},
		0x0d: {class: Load, use: readRM},
		0x18: {class: Load, use: readRM},
		0x31: {class: Timer, use: writeA | writeD, calc: calcMix},
		0xa2: {class: System, use: readA | writeA | writeD, calc: calcMix},
		0xa3: {class: BitTest, use: readRM | readReg | writeCarry},
		0xab: {class: BitSet, use: readRM | writeRM | readReg | writeCarry, calc: calcMix},
		0xb3: {class: BitSet, use: readRM | writeRM | readReg | writeCarry, calc: calcMix},
		0xbb: {class: BitSet, use: readRM | writeRM | readReg | writeCarry, calc: calcMix},
		0xa4: {class: ShiftDouble, use: modifyRM | readReg, calc: calcMix},
		0xac: {class: ShiftDouble, use: modifyRM | readReg, calc: calcMix},
		0xa5: {class: ShiftDouble, use: modifyRM | readReg | readC, calc: calcMix},
		0xad: {class: ShiftDouble, use: modifyRM | readReg | readC, calc: calcMix},
		0xaf: {class: IMul, use: modifyReg, calc: calcIMul},
		0xb0: {class: CompareExchange, use: modifyRM | bytes | readReg | readA | writeA, calc: calcMix},
		0xb1: {class: CompareExchange, use: modifyRM | readReg | readA | writeA, calc: calcMix},
		0xb6: {class: Move, use: convertReg, size: 1, calc: calcSecond},
		0xb7: {class: Move, use: convertReg, size: 2, calc: calcSecond},
		0xbe: {class: Move, use: convertReg, size: 1, calc: calcSignExtend},
		0xbf: {class: Move, use: convertReg, size: 2, calc: calcSignExtend},
		0xbc: {class: BitScan, use: convertReg | bothFlags, calc: calcMix},
		0xbd: {class: BitScan, use: convertReg | bothFlags, calc: calcMix},
		0xc0: {class: Exchange, use: modifyRM | bytes | readReg | writeReg, calc: calcMix},
		0xc1: {class: Exchange, use: modifyRM | readReg | writeReg, calc: calcMix},
		0xc3: {class: Store, use: readReg | writeRM, calc: calcSecond},
	}
	for c := byte(0x19); c < 0x20; c++ {
		t[c] = spec{class: Nop}
	}
	for c := byte(0); c < 16; c++ {
		t[0x40+c] = spec{class: CMov, use: conditions[c] | readReg | convertReg, calc: calcMix}
		if conditions[c] == readBoth {
			s := t[0x40+c]
			s.class = CMovBE
			t[0x40+c] = s
		}
		t[0x80+c] = spec{class: CondJump, use: conditions[c]}
		t[0x90+c] = spec{class: SetCC, use: conditions[c] | writeRM | bytes, calc: calcMix}
	}
	for c := byte(0xc8); c < 0xd0; c++ {
		t[c] = spec{class: ByteSwap, use: readLow | writeLow, calc: calcMix}
	}
	return t
}

// two returns the effect of an opcode behind 0F.
func (x *encodedInstruction) two() spec {
	switch c, part := x.opcode, x.reg&7; c {
	case 0x01:
		if x.mod == 3 && part == 2 && x.rm&7 == 0 {
			return spec{class: ExtendedState, use: readC | writeA | writeD, calc: calcMix}
		}
		return spec{class: System}
	case 0xae:
		return x.group15(part)
	case 0xba:
		s := spec{class: BitTest, use: readRM | writeCarry}
		if part > 4 {
			s = spec{class: BitSet, use: readRM | writeRM | writeCarry, calc: calcMix}
		}
		return s
	case 0xb8, 0xbc, 0xbd:
		if x.rep == 0xf3 {
			return spec{class: BitCount, use: convertReg | bothFlags, calc: calcMix}
		}
	case 0xc7:
		return x.group9(part)
	}
	if s, ok := twoByte()[x.opcode]; ok {
		return s
	}
	if s, ok := x.vector(); ok {
		return s
	}
	x.unknown = true
	return spec{class: System}
}

// group15 returns fences, and instructions that save the state of the vector registers.
func (x *encodedInstruction) group15(part uint8) spec {
	switch {
	case !x.memory && part == 5 && x.rep == 0:
		return spec{class: LoadFence}
	case !x.memory && part == 6 && x.rep == 0:
		return spec{class: Fence}
	case part == 7: // SFENCE, CLFLUSH
		return spec{class: Nop}
	case x.memory && part == 2:
		return spec{class: Microcode, use: readRM, size: 4}
	case x.memory && part == 3:
		return spec{class: Microcode, use: writeRM, size: 4, calc: calcMix}
	}
	return spec{class: Microcode}
}

// group9 returns CMPXCHG16B and random numbers.
func (x *encodedInstruction) group9(part uint8) spec {
	if x.memory && part == 1 {
		return spec{class: CompareExchange, use: readRM | writeRM | readA | readD | writeA | writeD | writeFlags, size: 2 * max(x.operandSize(), 4), calc: calcMix}
	}
	if !x.memory {
		return spec{class: Timer, use: writeRM | bothFlags, calc: calcMix}
	}
	return spec{class: System}
}

// three returns the effect of an opcode behind 0F 38 or 0F 3A for general registers.
func (x *encodedInstruction) three() (spec, bool) {
	if x.opmap == map3A {
		if x.opcode == 0xf0 && x.enc == vex { // RORX
			return spec{class: Shift, use: general | convertReg, calc: calcMix}, true
		}
		return spec{}, false
	}
	if x.enc == legacy {
		return x.threeLegacy()
	}
	if x.enc != vex {
		return spec{}, false
	}
	const dyadic = general | readV | readRM | writeReg
	switch x.opcode {
	case 0xf2:
		return spec{class: BMI, use: dyadic | bothFlags, calc: calcMix}, true
	case 0xf3:
		return spec{class: BMI, use: general | readRM | writeV | bothFlags, calc: calcMix}, true
	case 0xf5:
		if x.rep != 0 {
			return spec{class: Deposit, use: dyadic, calc: calcMix}, true
		}
		return spec{class: BitZero, use: dyadic | bothFlags, calc: calcMix}, true
	case 0xf6:
		return spec{class: MulWide, use: general | readRM | readD | writeReg | writeV, calc: calcMix}, true
	case 0xf7:
		if x.rep == 0 && !x.opsize {
			return spec{class: BitExtract, use: dyadic | bothFlags, calc: calcMix}, true
		}
		return spec{class: ShiftBMI, use: dyadic, calc: calcMix}, true
	}
	return spec{}, false
}

func (x *encodedInstruction) threeLegacy() (spec, bool) {
	switch x.opcode {
	case 0xf0:
		if x.rep == 0xf2 {
			return spec{class: CRC, use: readReg | convertReg, size: 1, calc: calcMix}, true
		}
		return spec{class: ByteSwap, use: convertReg, calc: calcMix}, true
	case 0xf1:
		if x.rep == 0xf2 {
			return spec{class: CRC, use: readReg | convertReg, calc: calcMix}, true
		}
		return spec{class: ByteSwap, use: readReg | writeRM, calc: calcMix}, true
	case 0xf6:
		if x.rep == 0xf3 {
			return spec{class: ALUCarry, use: readFlags | writeFlags | readReg | convertReg, calc: calcMix}, true
		}
		return spec{class: ALUCarry, use: readCarry | writeCarry | readReg | convertReg, calc: calcMix}, true
	}
	return spec{}, false
}
