package pipeline

// The operands of a vector instruction, in the usual fields.
func (b *armBuilder) vd() { b.write(armVector(b.w.bits(0, 5))) }
func (b *armBuilder) vn() { b.read(armVector(b.w.bits(5, 5))) }
func (b *armBuilder) vm() { b.read(armVector(b.w.bits(16, 5))) }

// vectors decodes floating point and Advanced SIMD.
func (b *armBuilder) vectors() bool {
	w, o := b.w, &b.op
	o.vector = true
	if w.is(0x5e000000, 0x1e000000) {
		o.Width, o.scalar = 4, true
		if w.bits(22, 1) == 1 {
			o.Width = 8
		}
		return b.scalars()
	}
	o.Width = 8 << w.bits(30, 1)
	if w.is(0xde000000, 0x5e000000) {
		o.Width, o.scalar = 8, true
	}
	b.of(VInt)
	if w.bits(24, 1) == 1 {
		return b.withConstants()
	}
	switch {
	case w.is(0x8f200400, 0x0e200400): // three of one kind
		b.threeSame()
	case w.is(0x8f3e0c00, 0x0e200800): // two
		b.twoMisc()
	case w.is(0x8f3e0c00, 0x0e300800): // across lanes
		b.of(VHAdd)
		b.vn()
		b.vd()
	case w.is(0x8f200c00, 0x0e200000): // three of different widths
		if c := w.bits(12, 4); c >= 8 {
			b.of(VMul)
			if c < 12 {
				b.accumulates()
			}
		}
		b.three()
	case w.is(0xff3e0c00, 0x4e280800):
		b.of(AES)
		b.vn()
		b.read(armVector(w.bits(0, 5)))
		b.vd()
	case w.is(0x9fe08400, 0x0e000400), w.is(0xdfe08400, 0x5e000400):
		b.copied()
	case w.is(0xbf208c00, 0x0e000000): // TBL, TBX
		b.of(ShuffleBytes)
		b.three()
	case w.is(0xbf208c00, 0x0e000800), w.is(0xbf208400, 0x2e000000): // ZIP and others, EXT
		b.of(Shuffle)
		b.three()
	case w.is(0x9f208400, 0x0e008400): // dot products
		b.of(VMul)
		b.accumulates()
		b.three()
	default:
		return false
	}
	return true
}

// three has the usual two operands and result.
func (b *armBuilder) three() {
	b.vn()
	b.vm()
	b.vd()
}

// withConstants decodes instructions with a number in them: that of an element, or of bits.
func (b *armBuilder) withConstants() bool {
	w := b.w
	switch {
	case w.bits(10, 1) == 0:
		b.byElement()
	case w.is(0x9ff80400, 0x0f000400): // a constant
		b.of(VLogic)
		if b.vd(); w.bits(12, 1) == 1 && w.bits(14, 2) != 3 { // ORR, BIC
			b.read(armVector(w.bits(0, 5)))
		}
	case w.is(0x8f000400, 0x0f000400): // shifts by a constant
		b.of(VShift)
		b.vn()
		c := w.bits(11, 5)
		if b.vd(); c == 2 || c == 6 || c == 8 && w.bits(29, 1) == 1 { // SSRA, SRSRA, SRI
			b.read(armVector(w.bits(0, 5)))
		}
		if c >= 0x1c {
			b.of(Convert)
		}
	default:
		return false
	}
	return true
}

// accumulates lets the op add to its destination, which cores need later.
func (b *armBuilder) accumulates() {
	d := armVector(b.w.bits(0, 5))
	b.read(d)
	b.op.late = d
}

// threeSame decodes operations on three registers of one kind.
func (b *armBuilder) threeSame() {
	w := b.w
	unsigned, double := w.bits(29, 1) == 1, w.bits(22, 1) == 1
	switch c := w.bits(11, 5); c {
	case 0x03:
		b.of(VLogic)
		if unsigned && w.bits(22, 2) != 0 { // BSL, BIT, BIF
			b.read(armVector(w.bits(0, 5)))
		}
	case 0x08, 0x09, 0x0a, 0x0b:
		b.of(VShiftVar)
	case 0x0f, 0x12: // SABA, MLA
		b.accumulates()
		if c == 0x12 {
			b.of(VMul)
		}
	case 0x13, 0x16:
		b.of(VMul)
	case 0x14, 0x15, 0x17:
		b.of(VInt)
	case 0x19:
		b.of(FMA)
		b.accumulates()
	case 0x1a:
		b.of(FAdd)
	case 0x1b:
		b.of(FMul)
	case 0x1c, 0x1d:
		b.of(FCompare)
	case 0x18, 0x1e:
		b.of(FMinMax)
	case 0x1f:
		switch b.of(FMA); {
		case unsigned && double:
			b.of(FDivD)
		case unsigned:
			b.of(FDivS)
		}
	}
	b.vn()
	b.vm()
	b.vd()
	if w.is(0xbfe0fc00, 0x0ea01c00) && w.bits(5, 5) == w.bits(16, 5) { // MOV
		b.op.Class, b.op.calc = VecMove, calcMix
	}
}

// twoMisc decodes operations on two registers.
func (b *armBuilder) twoMisc() {
	w := b.w
	b.vn()
	b.vd()
	switch c := w.bits(12, 5); {
	case c == 0x1f && w.bits(29, 1) == 1 && w.bits(22, 1) == 1:
		b.of(FSqrtD)
	case c == 0x1f && w.bits(29, 1) == 1:
		b.of(FSqrtS)
	case c == 0x12, c == 0x14:
		b.of(ShuffleBytes)
		if w.bits(30, 1) == 1 {
			b.read(armVector(w.bits(0, 5)))
		}
	case c == 0x16, c == 0x17:
		b.of(ConvertWide)
	case c >= 0x18 && c <= 0x1d && c != 0x1c || c == 0x1c:
		b.of(Convert)
	case c >= 0x0c && c <= 0x0e && w.bits(23, 1) == 1:
		b.of(FCompare)
	}
}

// copied decodes copies between elements and general registers.
func (b *armBuilder) copied() {
	w := b.w
	switch c := w.bits(11, 4); {
	case w.bits(29, 1) == 1, w.bits(28, 1) == 1 && w.bits(30, 1) == 1 && c == 0, c == 0: // elements
		b.of(Shuffle)
		b.vn()
		if b.vd(); w.bits(29, 1) == 1 {
			b.read(armVector(w.bits(0, 5)))
		}
	case c == 1: // DUP
		b.of(FromGPR)
		b.rn(false)
		b.vd()
	case c == 3: // INS
		b.of(Insert)
		b.rn(false)
		b.read(armVector(w.bits(0, 5)))
		b.vd()
	default: // SMOV, UMOV
		b.of(Extract)
		b.vn()
		b.rd(false)
	}
}

// byElement decodes multiplications by one element.
func (b *armBuilder) byElement() {
	b.vn()
	b.read(armVector(b.w.bits(16, 5)))
	b.vd()
	switch c := b.w.bits(12, 4); c {
	case 1, 5:
		b.of(FMA)
		b.accumulates()
	case 9:
		b.of(FMul)
	case 8, 10, 11, 12, 13:
		b.of(VMul)
	default:
		b.of(VMul)
		b.accumulates()
	}
}

// scalars decodes floating point of single numbers.
func (b *armBuilder) scalars() bool {
	w := b.w
	double := w.bits(22, 1) == 1
	switch {
	case w.is(0x5f000000, 0x1f000000): // FMADD and others
		b.of(FMA)
		b.vn()
		b.vm()
		b.read(armVector(w.bits(10, 5)))
		b.op.late = armVector(w.bits(10, 5))
		b.vd()
	case w.is(0x5f20fc00, 0x1e200000):
		b.converted()
	case w.is(0x5f200000, 0x1e000000): // numbers with a fixed point
		b.converted()
	case w.is(0x5f207c00, 0x1e204000): // one operand
		b.of(VLogic)
		switch c := w.bits(15, 6); {
		case c == 0:
			b.of(VecMove)
		case c == 3 && double:
			b.of(FSqrtD)
		case c == 3:
			b.of(FSqrtS)
		case c == 4, c == 5, c == 7:
			b.of(ConvertWide)
		case c >= 8:
			b.of(FRound)
		}
		b.vn()
		b.vd()
	case w.is(0x5f203c00, 0x1e202000): // FCMP
		b.of(FTest)
		b.vn()
		if w.bits(3, 1) == 0 {
			b.vm()
		}
		b.flags()
	case w.is(0x5f201c00, 0x1e201000): // a constant
		b.of(VLogic)
		b.vd()
	case w.is(0x5f200c00, 0x1e200400): // FCCMP
		b.of(FTest)
		b.vn()
		b.vm()
		b.readFlags()
		b.flags()
	case w.is(0x5f200c00, 0x1e200800):
		b.of(FAdd)
		switch c := w.bits(12, 4); {
		case c == 0, c == 8:
			b.of(FMul)
		case c == 1 && double:
			b.of(FDivD)
		case c == 1:
			b.of(FDivS)
		case c >= 4:
			b.of(FMinMax)
		}
		b.vn()
		b.vm()
		b.vd()
	case w.is(0x5f200c00, 0x1e200c00): // FCSEL
		b.of(BlendVar)
		b.vn()
		b.vm()
		b.readFlags()
		b.vd()
	default:
		return false
	}
	return true
}

// converted decodes conversions between floating point and general registers.
func (b *armBuilder) converted() {
	switch c := b.w.bits(16, 3); {
	case c == 6 && b.w.bits(21, 1) == 1:
		b.of(ToGPR)
		b.vn()
		b.rd(false)
	case c == 7 && b.w.bits(21, 1) == 1:
		b.of(FromGPR)
		b.rn(false)
		b.vd()
	case c == 2, c == 3:
		b.of(ConvertFromGPR)
		b.rn(false)
		b.vd()
	default:
		b.of(ConvertToGPR)
		b.vn()
		b.rd(false)
	}
}
