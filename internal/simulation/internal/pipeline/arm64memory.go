package pipeline

// memory decodes loads and stores.
func (b *armBuilder) memory() bool {
	w := b.w
	switch {
	case w.is(0x3b000000, 0x18000000): // of an address relative to the instruction
		b.loads(w.bits(0, 5), w.bits(26, 1) == 1, 4<<w.bits(30, 2))
		b.op.Disp = w.signed(5, 19) * 4
	case w.is(0x3a000000, 0x28000000): // pairs
		b.pair()
	case w.is(0x3b000000, 0x39000000): // unsigned offset
		size := b.single()
		b.op.Disp = int64(w.bits(10, 12)) * int64(size)
	case w.is(0x3b200c00, 0x38200800): // register offset
		b.single()
		b.op.Index, b.op.Scale = armGeneral(w.bits(16, 5), false), 1
		if w.bits(12, 1) == 1 {
			b.op.Scale = b.op.Size
		}
	case w.is(0x3b200000, 0x38000000): // signed offset of nine bits
		b.single()
		switch w.bits(10, 2) {
		case 1:
			b.back(w.signed(12, 9))
		case 3:
			b.op.Disp = w.signed(12, 9)
			b.back(b.op.Disp)
		default:
			b.op.Disp = w.signed(12, 9)
		}
	case w.is(0x3b200c00, 0x38200000), w.is(0x3f000000, 0x08000000): // atomic, exclusive
		b.of(Locked)
		b.address()
		b.op.Loads, b.op.Stores, b.op.Size = true, true, 1<<w.bits(30, 2)
		b.rm()
		b.write(armGeneral(w.bits(0, 5), false))
	case w.is(0xbe000000, 0x0c000000): // structures of vectors
		b.structure()
	default:
		return false
	}
	return true
}

// address sets the base register.
func (b *armBuilder) address() { b.op.Base, b.op.Scale = armGeneral(b.w.bits(5, 5), true), 1 }

// back writes the address, changed by some bytes, back to its register.
func (b *armBuilder) back(by int64) { b.op.back, b.op.backBy = b.op.Base, by }

// loads makes the op a load of a register.
func (b *armBuilder) loads(to uint32, vector bool, size uint8) {
	o := &b.op
	o.Loads, o.Size, o.Width = true, size, max(size, 4)
	if vector {
		o.Class, o.calc = VecLoad, calcMix
		b.write(armVector(to))
		return
	}
	o.Class, o.calc, o.second = Load, calcSecond, inMemory
	b.write(armGeneral(to, false))
}

// stores makes the op a store of a register.
func (b *armBuilder) stores(from uint32, vector bool, size uint8) {
	o := &b.op
	o.Stores, o.Size, o.Width = true, size, max(size, 4)
	if vector {
		o.Class, o.calc = VecStore, calcMix
		b.read(armVector(from))
		return
	}
	o.Class, o.calc, o.second = Store, calcSecond, armGeneral(from, false)
	if o.second == NoRegister {
		o.second = constant
	}
	b.read(armGeneral(from, false))
}

// single decodes the register and the size of a load or store, and returns the bytes.
func (b *armBuilder) single() uint8 {
	w := b.w
	b.address()
	vector, opc, to := w.bits(26, 1) == 1, w.bits(22, 2), w.bits(0, 5)
	size := uint8(1) << w.bits(30, 2)
	switch {
	case vector && opc >= 2:
		size = 16
		fallthrough
	case vector:
		if opc&1 == 1 {
			b.loads(to, true, size)
		} else {
			b.stores(to, true, size)
		}
	case opc == 0:
		b.stores(to, false, size)
	case size == 8 && opc == 2: // PRFM
		b.op.Class, b.op.Loads, b.op.Size = Load, true, 8
	default:
		b.loads(to, false, size)
		if opc >= 2 {
			b.op.Class, b.op.calc = LoadSigned, calcSignExtend
		}
	}
	return size
}

// pair decodes a load or store of two registers.
func (b *armBuilder) pair() {
	w := b.w
	b.address()
	vector := w.bits(26, 1) == 1
	size := uint8(4) << (w.bits(30, 2) >> 1)
	if vector {
		size = 4 << w.bits(30, 2)
	}
	first, second := w.bits(0, 5), w.bits(10, 5)
	of := func(n uint32) Register {
		if vector {
			return armVector(n)
		}
		return armGeneral(n, false)
	}
	if w.bits(22, 1) == 1 {
		b.loads(first, vector, 2*size)
		b.op.calc = calcMix
		b.write(of(second))
	} else {
		b.stores(first, vector, 2*size)
		b.op.calc = calcMix
		b.read(of(second))
	}
	b.op.pair = true
	offset := w.signed(15, 7) * int64(size)
	switch w.bits(23, 2) {
	case 1:
		b.back(offset)
	case 3:
		b.op.Disp = offset
		b.back(offset)
	default:
		b.op.Disp = offset
	}
}

// structure decodes LD1 to LD4 and ST1 to ST4, as one access to up to four registers.
func (b *armBuilder) structure() {
	w := b.w
	b.address()
	count := map[uint32]uint32{0: 4, 2: 4, 4: 3, 6: 3, 7: 1, 8: 2, 10: 2}[w.bits(12, 4)]
	if w.bits(24, 1) == 1 || count == 0 { // of one element
		count = 1
	}
	size := uint8(8 << w.bits(30, 1))
	load := w.bits(22, 1) == 1
	for i := range count {
		n := (w.bits(0, 5) + i) % 32
		switch {
		case i > 0 && load:
			b.write(armVector(n))
		case i > 0:
			b.read(armVector(n))
		case load:
			b.loads(n, true, size)
		default:
			b.stores(n, true, size)
		}
	}
	b.op.Size = size * uint8(count)
	b.op.Width = 16
	b.op.pair = count > 1
	if w.bits(23, 1) == 1 {
		b.back(int64(b.op.Size))
	}
}
