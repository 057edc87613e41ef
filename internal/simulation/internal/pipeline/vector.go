package pipeline

import "sync"

// How vector instructions use their operands.
const (
	monadic = vectorReg | vectorRM | readRM | writeReg
	dyadic  = monadic | readV
	triadic = dyadic | readReg
	storing = vectorReg | vectorRM | readReg | writeRM
	toMask  = maskReg | vectorRM | readRM | readV | writeReg
)

// Sizes of memory operands that depend on the width of the vector.
const (
	half = 0x80 + iota
	quarter
	eighth
	element // 4 bytes, or 8 with W
)

// vector0F are the opcodes behind 0F, whatever the mandatory prefix is; see vectorTwo for
// those that depend on it. Sources of this and the following: Intel's manual volume 2
// appendix A and the pages of the instructions.
var vector0F = sync.OnceValue(func() *[256]spec {
	t := vector0FSpecs()
	return &t
})

func vector0FSpecs() (t [256]spec) {
	set := func(class Class, u use, codes ...byte) {
		for _, c := range codes {
			t[c] = spec{class: class, use: u, calc: calcMix}
		}
	}
	set(VecLoad, monadic, 0x10, 0x28, 0x6f, 0xf0)
	set(VecStore, storing, 0x11, 0x29, 0x2b, 0x7f, 0xe7)
	set(ShuffleFloat, dyadic, 0x14, 0x15)
	set(Shuffle, dyadic, 0x12, 0x16, 0x60, 0x61, 0x62, 0x68, 0x69, 0x6a, 0x6c, 0x6d, 0xc6)
	set(Pack, dyadic, 0x63, 0x67, 0x6b)
	set(VecStore, storing, 0x13, 0x17, 0xd6)
	set(FTest, vectorReg|vectorRM|readReg|readRM|bothFlags, 0x2e, 0x2f)
	set(MaskToGPR, vectorRM|readRM|writeReg, 0x50, 0xd7)
	set(FSqrtS, monadic, 0x51)
	set(FRcp, monadic, 0x52, 0x53)
	set(VLogic, dyadic, 0x54, 0x55, 0x56, 0x57, 0xdb, 0xdf, 0xeb, 0xef)
	set(FAdd, dyadic, 0x58, 0x5c, 0xd0)
	set(FMinMax, dyadic, 0x5d, 0x5f)
	set(FMul, dyadic, 0x59)
	set(FDivS, dyadic, 0x5e)
	set(ConvertWide, monadic, 0x5a, 0xe6)
	set(Convert, monadic, 0x5b, 0x2a, 0x2c, 0x2d)
	set(VInt, dyadic, 0xd4, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe)
	set(VCompare, dyadic, 0x64, 0x65, 0x66, 0x74, 0x75, 0x76, 0xd8, 0xd9, 0xda, 0xdc, 0xdd, 0xde, 0xe0, 0xe3, 0xe8, 0xe9, 0xea, 0xec, 0xed, 0xee)
	set(FromGPR, vectorReg|readRM|writeReg, 0x6e)
	set(ToGPR, vectorReg|readReg|writeRM, 0x7e)
	set(Shuffle, monadic, 0x70)
	set(VShift, vectorRM|readRM|writeV, 0x71, 0x72, 0x73)
	set(Emms, 0, 0x77)
	set(FHAdd, dyadic, 0x7c, 0x7d)
	set(FCompare, dyadic, 0xc2)
	set(Insert, vectorReg|readV|readRM|writeReg, 0xc4)
	set(Extract, vectorRM|readRM|writeReg, 0xc5)
	set(VShiftReg, dyadic, 0xd1, 0xd2, 0xd3, 0xe1, 0xe2, 0xf1, 0xf2, 0xf3)
	set(VMul, dyadic, 0xd5, 0xe4, 0xe5, 0xf4, 0xf5)
	set(VSad, dyadic, 0xf6)
	set(Microcode, vectorReg|vectorRM|readReg|readRM, 0xf7)
	for c, size := range map[byte]uint8{0x12: 8, 0x13: 8, 0x16: 8, 0x17: 8, 0xd6: 8, 0x2e: 4, 0x2f: 4, 0xc4: 2,
		0xd1: 16, 0xd2: 16, 0xd3: 16, 0xe1: 16, 0xe2: 16, 0xf1: 16, 0xf2: 16, 0xf3: 16} {
		t[c].size = size
	}
	for _, c := range []byte{0x10, 0x28, 0x6f, 0xf0, 0x11, 0x29, 0x2b, 0x7f, 0xe7, 0xd6, 0x6e, 0x7e} {
		t[c].calc = calcSecond
	}
	return t
}

// scalarOps are the opcodes behind 0F that are scalar with F3 and F2, and leave the register's
// rest unchanged.
var scalarOps = map[byte]bool{0x51: true, 0x52: true, 0x53: true, 0x58: true, 0x59: true, 0x5a: true,
	0x5c: true, 0x5d: true, 0x5e: true, 0x5f: true, 0xc2: true}

// vector returns the effect of an opcode behind 0F on vectors.
func (x *encodedInstruction) vector() (spec, bool) {
	if x.enc != legacy {
		if s, ok := x.masks(); ok {
			return s, true
		}
	}
	s := vector0F()[x.opcode]
	if s.use == 0 && s.class == Nop {
		return s, false
	}
	double := x.opsize || x.rep == 0xf2
	if s.class == FSqrtS && double || s.class == FDivS && double {
		s.class++
	}
	if scalarOps[x.opcode] && x.rep != 0 {
		s.use |= readV
		s.size = scalar(double)
		return x.compared(s), true
	}
	return x.compared(x.prefixed(s, double)), true
}

func scalar(double bool) uint8 {
	if double {
		return 8
	}
	return 4
}

// compared lets comparisons with EVEX write a mask.
func (x *encodedInstruction) compared(s spec) spec {
	if x.enc != evex {
		return s
	}
	switch c := x.opcode; {
	case c == 0xc2, c >= 0x64 && c <= 0x66, c >= 0x74 && c <= 0x76:
		s.class, s.use = FCompare, toMask
	}
	return s
}

// prefixed changes a spec by the mandatory prefix, if the prefix does more than choose
// between formats.
func (x *encodedInstruction) prefixed(s spec, double bool) spec {
	switch x.opcode {
	case 0x10, 0x11:
		if x.rep != 0 {
			s.size = scalar(double)
			if !x.memory {
				s = spec{class: VLogic, use: dyadic, calc: calcMix}
			}
		}
	case 0x12, 0x16:
		if x.rep != 0 {
			s = spec{class: Shuffle, use: monadic, calc: calcMix}
			if x.rep == 0xf2 && x.length == 16 {
				s.size = 8
			}
		}
	case 0x2a:
		if x.rep != 0 {
			s = spec{class: ConvertFromGPR, use: vectorReg | readV | readRM | writeReg, size: x.operandSize(), calc: calcMix}
		}
	case 0x2c, 0x2d:
		if x.rep != 0 {
			s = spec{class: ConvertToGPR, use: vectorRM | readRM | writeReg, size: scalar(double), calc: calcMix}
		}
	case 0x2e, 0x2f:
		s.size = scalar(double)
	case 0x5a, 0xe6:
		if x.opcode == 0x5a && !x.opsize || x.rep == 0xf3 {
			s.size = half
		}
	case 0x6e, 0x7e:
		s.size = x.operandSize()
		if s.size == 2 {
			s.size = 4
		}
		if x.opcode == 0x7e && x.rep == 0xf3 {
			s = spec{class: VecLoad, use: monadic, size: 8, calc: calcSecond}
		}
	}
	return s
}

// masks returns instructions of mask registers, and vector instructions that only EVEX has.
func (x *encodedInstruction) masks() (spec, bool) {
	const both = maskReg | maskRM
	c := x.opcode
	if x.enc == evex {
		if c == 0x78 || c == 0x79 || c == 0x7a || c == 0x7b {
			return x.unsigned(), true
		}
		return spec{}, false
	}
	switch {
	case c >= 0x41 && c <= 0x4b:
		s := spec{class: MaskOp, use: both | readRM | writeReg | maskV | readV, calc: calcMix}
		if c == 0x44 {
			s.use &^= readV
		}
		return s, true
	case c == 0x90:
		return spec{class: MaskOp, use: both | readRM | writeReg, size: 8, calc: calcMix}, true
	case c == 0x91:
		return spec{class: MaskOp, use: both | readReg | writeRM, size: 8, calc: calcMix}, true
	case c == 0x92:
		return spec{class: MaskMove, use: maskReg | readRM | writeReg, calc: calcMix}, true
	case c == 0x93:
		return spec{class: MaskMove, use: maskRM | readRM | writeReg, calc: calcMix}, true
	case c == 0x98, c == 0x99:
		return spec{class: MaskMove, use: both | readReg | readRM | bothFlags}, true
	}
	return spec{}, false
}

// unsigned returns conversions of unsigned numbers.
func (x *encodedInstruction) unsigned() spec {
	scalars := x.rep != 0
	switch {
	case scalars && x.opcode == 0x7b:
		return spec{class: ConvertFromGPR, use: vectorReg | readRM | writeReg, size: x.operandSize(), calc: calcMix}
	case scalars && x.opcode < 0x7a:
		return spec{class: ConvertToGPR, use: vectorRM | readRM | writeReg, size: scalar(x.rep == 0xf2), calc: calcMix}
	}
	return spec{class: Convert, use: monadic, calc: calcMix}
}

// vector38 and vector3A are the opcodes behind 0F 38 and 0F 3A that are not dyadic
// and VInt.
var vector38, vector3A = sync.OnceValue(vector38Specs), sync.OnceValue(vector3ASpecs)

func vector38Specs() map[byte]spec {
	t := map[byte]spec{}
	set := func(class Class, u use, size uint8, codes ...byte) {
		for _, c := range codes {
			t[c] = spec{class: class, use: u, size: size, calc: calcMix}
		}
	}
	set(ShuffleBytes, dyadic, 0, 0x00)
	set(Pack, dyadic, 0, 0x2b)
	set(ShuffleFloat, dyadic, 0, 0x0c, 0x0d)
	set(VCompare, dyadic, 0, 0x08, 0x09, 0x0a, 0x29, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f)
	set(VHAdd, dyadic, 0, 0x01, 0x02, 0x03, 0x05, 0x06, 0x07)
	set(VMul, dyadic, 0, 0x04, 0x0b, 0x28)
	set(VTest, vectorReg|vectorRM|readReg|readRM|bothFlags, 0, 0x0e, 0x0f, 0x17)
	set(BlendVar, dyadic|fourth, 0, 0x10, 0x14, 0x15)
	set(ConvertWide, monadic, half, 0x13)
	set(ShuffleAcross, dyadic, 0, 0x16, 0x36, 0x8d)
	set(Broadcast, monadic, 4, 0x18, 0x58)
	set(Broadcast, monadic, 8, 0x19, 0x59)
	set(Broadcast, monadic, 16, 0x1a, 0x5a)
	set(Broadcast, monadic, 32, 0x1b, 0x5b)
	set(Broadcast, monadic, 1, 0x78)
	set(Broadcast, monadic, 2, 0x79)
	set(Broadcast, vectorReg|readRM|writeReg, 0, 0x7a, 0x7b, 0x7c)
	set(VAbs, monadic, 0, 0x1c, 0x1d, 0x1e, 0x1f, 0x44, 0x54, 0x55, 0xc4)
	set(VCompareWide, dyadic, 0, 0x37)
	set(Widen, monadic, half, 0x20, 0x23, 0x25, 0x30, 0x33, 0x35)
	set(Widen, monadic, quarter, 0x21, 0x24, 0x31, 0x34)
	set(Widen, monadic, eighth, 0x22, 0x32)
	set(VecLoad, monadic, 0, 0x2a)
	set(VecLoad, monadic|readV, 0, 0x2c, 0x2d, 0x8c)
	set(VecStore, storing|readV, 0, 0x2e, 0x2f, 0x8e)
	set(VMul32, dyadic, 0, 0x40)
	set(VMul, monadic, 0, 0x41)
	set(VShiftVar, dyadic, 0, 0x45, 0x46, 0x47)
	set(FRcp, monadic, 0, 0x42, 0x4c, 0x4e)
	set(FRcp, dyadic, element, 0x43, 0x4d, 0x4f)
	set(VMul, triadic, 0, 0x50, 0x51, 0x52, 0x53, 0xb4, 0xb5)
	set(Blend, dyadic, 0, 0x64, 0x65, 0x66)
	set(ShuffleAcross, storing, 0, 0x63, 0x8a, 0x8b)
	set(ShuffleAcross, monadic, 0, 0x62, 0x88, 0x89)
	set(ShuffleAcross, triadic, 0, 0x75, 0x76, 0x77, 0x7d, 0x7e, 0x7f)
	set(Gather, triadic, 0, 0x90, 0x91, 0x92, 0x93)
	set(Gather, storing, 0, 0xa0, 0xa1, 0xa2, 0xa3)
	for _, c := range []byte{0x96, 0xa6, 0xb6} {
		for i := range byte(10) {
			size := uint8(0)
			if i >= 3 && i%2 == 1 { // of scalars
				size = element
			}
			set(FMA, triadic, size, c+i)
		}
	}
	set(SHA, dyadic, 0, 0xc8, 0xc9, 0xca, 0xcc, 0xcd)
	set(SHARounds, dyadic|fourth, 0, 0xcb)
	set(AES, monadic, 0, 0xdb)
	set(AES, dyadic, 0, 0xdc, 0xdd, 0xde, 0xdf)
	return t
}

func vector3ASpecs() map[byte]spec {
	t := map[byte]spec{}
	set := func(class Class, u use, size uint8, codes ...byte) {
		for _, c := range codes {
			t[c] = spec{class: class, use: u, size: size, calc: calcMix}
		}
	}
	set(ShuffleAcross, monadic, 0, 0x00, 0x01)
	set(Blend, dyadic, 0, 0x02, 0x0c, 0x0d, 0x0e)
	set(ShuffleAcross, dyadic, 0, 0x03)
	set(ShuffleHalves, dyadic, 0, 0x06, 0x23, 0x43, 0x46)
	set(ShuffleFloat, monadic, 0, 0x04, 0x05)
	set(FRound, monadic, 0, 0x08, 0x09)
	set(FRound, dyadic, 4, 0x0a)
	set(FRound, dyadic, 8, 0x0b)
	set(ShuffleAlign, dyadic, 0, 0x0f)
	set(Extract, vectorReg|readReg|writeRM, 1, 0x14)
	set(Extract, vectorReg|readReg|writeRM, 2, 0x15)
	set(Extract, vectorReg|readReg|writeRM, element, 0x16)
	set(Extract, vectorReg|readReg|writeRM, 4, 0x17)
	set(InsertHalf, dyadic, 16, 0x18, 0x38)
	set(InsertHalf, dyadic, 32, 0x1a, 0x3a)
	set(ShuffleHalves, storing, 16, 0x19, 0x39)
	set(ShuffleHalves, storing, 32, 0x1b, 0x3b)
	set(ConvertWide, storing, half, 0x1d)
	set(FCompare, toMask, 0, 0x1e, 0x1f, 0x3e, 0x3f)
	set(Insert, vectorReg|readV|readRM|writeReg, 1, 0x20)
	set(ShuffleFloat, dyadic, 4, 0x21)
	set(Insert, vectorReg|readV|readRM|writeReg, element, 0x22)
	set(VLogic, triadic, 0, 0x25)
	set(FDot, dyadic, 0, 0x40, 0x41)
	set(VSad, dyadic, 0, 0x42)
	set(CLMul, dyadic, 0, 0x44)
	set(BlendVar, dyadic|fourth, 0, 0x4a, 0x4b, 0x4c)
	set(VString, vectorReg|vectorRM|readReg|readRM|readA|readD|bothFlags, 0, 0x60, 0x61)
	set(VString, vectorReg|vectorRM|readReg|readRM|bothFlags, 0, 0x62, 0x63)
	set(SHARounds, dyadic, 0, 0xcc)
	set(AES, monadic, 0, 0xdf)
	return t
}

// vectorThree returns the effect of an opcode behind 0F 38 or 0F 3A on vectors.
func (x *encodedInstruction) vectorThree() spec {
	table := vector38()
	if x.opmap == map3A {
		table = vector3A()
	}
	s, ok := table[x.opcode]
	if !ok {
		s = spec{class: VInt, use: dyadic, calc: calcMix}
	}
	if x.enc == evex && x.opmap == map38 {
		return x.narrowed(s)
	}
	return s
}

// narrowed changes a spec if EVEX has given the opcode another meaning.
func (x *encodedInstruction) narrowed(s spec) spec {
	switch c := x.opcode; {
	case c == 0x26, c == 0x27, c == 0x29 && x.rep == 0, c == 0x37:
		return spec{class: FCompare, use: toMask, calc: calcMix}
	case c == 0x28 && x.rep == 0xf3, c == 0x38 && x.rep == 0xf3, c == 0x2a && x.rep == 0xf3, c == 0x3a && x.rep == 0xf3:
		return spec{class: MaskMove, use: maskRM | readRM | vectorReg | writeReg, calc: calcMix}
	case c == 0x29 || c == 0x39:
		if x.rep == 0xf3 {
			return spec{class: MaskMove, use: vectorRM | readRM | maskReg | writeReg, calc: calcMix}
		}
	case c >= 0x10 && c <= 0x15, c >= 0x20 && c <= 0x25, c >= 0x30 && c <= 0x35:
		if x.rep == 0xf3 {
			return spec{class: ShuffleAcross, use: storing, size: [6]uint8{half, quarter, eighth, half, quarter, half}[c&15], calc: calcMix}
		}
		if c < 0x16 && c > 0x0f {
			return spec{class: VShiftVar, use: dyadic, calc: calcMix}
		}
	}
	return s
}
