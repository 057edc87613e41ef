package pipeline

// spec returns what the opcode does.
func (x *encoded) spec() spec {
	switch {
	case x.enc == xop:
		return spec{class: VInt, use: dyadic, calc: calcMix}
	case x.opmap == map0:
		return x.one()
	case x.opmap == map0F && x.enc == legacy:
		return x.two()
	case x.opmap == map0F:
		if s, ok := x.vector(); ok {
			return s
		}
	case x.opmap == map38, x.opmap == map3A:
		if s, ok := x.three(); ok {
			return s
		}
		return x.vectorThree()
	}
	return spec{class: VInt, use: dyadic, calc: calcMix}
}

// A builder gathers the registers of an op.
type builder struct {
	op             Op
	reads, written int
}

func (b *builder) read(r Register) {
	if r == NoRegister || b.reads == len(b.op.reads) {
		return
	}
	for _, have := range b.op.reads[:b.reads] {
		if have == r {
			return
		}
	}
	b.op.reads[b.reads] = r
	b.reads++
}

func (b *builder) write(r Register) {
	if r != NoRegister && b.written < len(b.op.writes) {
		b.op.writes[b.written] = r
		b.written++
	}
}

// op makes the op of the instruction.
func (x *encoded) op() Op {
	s := x.spec()
	b := builder{op: Op{Class: s.class, calc: s.calc, fuses: s.fuses, imm: x.immediate()}}
	b.op.Width, b.op.Size = x.widths(&s)
	if s.class == CondJump {
		b.op.conditional, b.op.cond = true, x.opcode&15
	}
	x.memoryOperand(&b, &s)
	x.readOperands(&b, &s)
	x.writeOperands(&b, &s)
	x.settle(&b, &s)
	x.operandValues(&b.op, &s)
	return b.op
}

// widths returns the bytes that the instruction works on, and those of its memory
// operand.
func (x *encoded) widths(s *spec) (width, size uint8) {
	isVector := s.use&(vectorReg|vectorRM|maskReg|maskRM) != 0
	switch {
	case s.use&bytes != 0:
		width = 1
	case isVector:
		width = x.length
	case s.use&wide != 0:
		width = 8
	default:
		width = x.operandSize()
	}
	size = s.size
	switch s.size {
	case 0:
		size = width
	case half:
		size = width / 2
	case quarter:
		size = width / 4
	case eighth:
		size = width / 8
	case element:
		size = scalar(x.w)
	}
	if isVector && s.size != 0 && s.size != half && size <= 8 && s.class != Broadcast && s.class != Shuffle && s.class != InsertHalf && s.class != ShuffleHalves {
		width = size
	}
	if x.bcast && x.memory && x.enc == evex {
		size = scalar(x.w)
	}
	return width, size
}

// memoryOperand sets the address of what the instruction accesses.
func (x *encoded) memoryOperand(b *builder, s *spec) {
	o := &b.op
	switch {
	case x.memory:
		o.Base, o.Index, o.Scale, o.Disp, o.Segment = x.base, x.index, x.scale, x.disp, x.segment
		if x.short8 && x.enc == evex {
			o.Disp *= int64(max(o.Size, 1))
		}
		o.Loads = s.use&readRM != 0 && s.class != LEA
		o.Stores = s.use&writeRM != 0
	case s.class == Leave:
		o.Base = RBP
	case s.class == String, s.class == RepString:
		o.Base = RSI
		if s.use&loads == 0 || s.use&readA != 0 {
			o.Base = RDI
		}
	case x.opmap == map0 && x.opcode >= 0xa0 && x.opcode <= 0xa3:
		o.Disp = o.imm
	}
	if s.use&stack != 0 {
		o.stack = int8(o.Width)
		if s.use&loads != 0 {
			o.stack = -o.stack
		}
	}
	o.Loads = o.Loads || s.use&loads != 0
	o.Stores = o.Stores || s.use&stores != 0
}

// general returns a general register by its number; of one byte, some are the upper
// halves of others.
func (x *encoded) general(n uint8, width uint8) Register {
	if width == 1 && x.rex == 0 && x.enc == legacy && n >= 4 && n < 8 {
		n -= 4
	}
	return RAX + Register(n&15)
}

// register returns a register of the file that an operand is in.
func (x *encoded) register(n uint8, isVector, isMask bool, width uint8) Register {
	switch {
	case isMask:
		return K0 + Register(n&7)
	case isVector && x.enc == legacy && !x.opsize && x.rep == 0 && x.multimedia():
		return X87
	case isVector:
		return XMM0 + Register(n&31)
	}
	return x.general(n, width)
}

// multimedia says whether an opcode without a prefix is one of MMX.
func (x *encoded) multimedia() bool {
	c := x.opcode
	switch x.opmap {
	case map0F:
		return c >= 0x60 && c <= 0x7f || c >= 0xd0 && c != 0xe7
	case map38:
		return c < 0x20
	}
	return x.opmap == map3A && c == 0x0f
}

func (x *encoded) regOperand(o *Op, u use) Register {
	return x.register(x.reg, u&vectorReg != 0, u&maskReg != 0, o.Width)
}

// rmOperand returns the register of ModRM's lower part, if it is one.
func (x *encoded) rmOperand(o *Op, u use) Register {
	if x.memory || !x.hasModrm {
		return NoRegister
	}
	width := o.Width
	if o.Size == 1 {
		width = 1
	}
	return x.register(x.rm, u&vectorRM != 0, u&maskRM != 0, width)
}

// vOperand returns the register of the VEX prefix.
func (x *encoded) vOperand(u use) Register {
	return x.register(x.v, u&general == 0 && u&maskV == 0, u&maskV != 0, 8)
}

func (x *encoded) readOperands(b *builder, s *spec) {
	o, u := &b.op, s.use
	if u&readV != 0 && x.enc != legacy {
		b.read(x.vOperand(u))
	}
	if u&readReg != 0 || u&readV != 0 && x.enc == legacy {
		b.read(x.regOperand(o, u))
	}
	if u&readRM != 0 {
		b.read(x.rmOperand(o, u))
	}
	if u&readLow != 0 {
		b.read(RAX + Register(x.opcode&7|x.b))
	}
	for _, r := range []struct {
		use use
		r   Register
	}{{readA, RAX}, {readD, RDX}, {readC, RCX}, {readCarry, Carry}, {readFlags, Flags}, {x87, X87}} {
		if u&r.use != 0 {
			b.read(r.r)
		}
	}
	if u&fourth != 0 {
		b.read(XMM0 + Register(o.imm>>4&15))
	}
	if x.mask != 0 {
		b.read(K0 + Register(x.mask))
		if !x.zeroing {
			b.read(x.regOperand(o, u))
		}
	}
}

func (x *encoded) writeOperands(b *builder, s *spec) {
	o, u := &b.op, s.use
	if u&writeReg != 0 {
		b.write(x.regOperand(o, u))
	}
	if u&writeRM != 0 {
		b.write(x.rmOperand(o, u))
	}
	if u&writeV != 0 {
		if x.enc == legacy {
			b.write(x.rmOperand(o, u))
		} else {
			b.write(x.vOperand(u))
		}
	}
	if u&writeLow != 0 {
		width := o.Width
		n := x.opcode&7 | x.b
		b.write(x.general(n, width))
	}
	for _, r := range []struct {
		use use
		r   Register
	}{{writeA, RAX}, {writeD, RDX}, {writeCarry, Carry}, {writeFlags, Flags}, {x87, X87}} {
		if u&r.use != 0 {
			b.write(r.r)
		}
	}
	if s.class == String || s.class == RepString {
		b.write(RSI)
		b.write(RDI)
	}
	if s.class == Leave {
		b.write(RBP)
	}
}

// settle turns the general class of an opcode into that of the instruction at hand,
// by its operands.
func (x *encoded) settle(b *builder, s *spec) {
	o := &b.op
	merges := o.Width < 4 && s.use&(vectorReg|vectorRM) == 0 || s.class == SetCC
	if merges && b.written > 0 && o.writes[0] <= RAX+15 && o.Class != Div8 && o.Class != IDiv8 {
		b.read(o.writes[0]) // a write to a part of a register keeps the rest
	}
	switch o.Class {
	case Move:
		switch {
		case o.Loads && s.calc == calcSignExtend:
			o.Class = LoadSigned
		case o.Loads:
			o.Class = Load
		case o.Stores:
			o.Class = Store
		case merges || s.calc == calcSignExtend || o.Size < 4:
			o.Class = ALU
		}
	case Store:
		if !o.Stores { // MOV of a constant to a register
			o.Class = ALU
		}
	case VecLoad:
		if !x.memory {
			o.Class = VecMove
		}
	case VecStore:
		if !x.memory {
			o.Class = VecMove
		}
	case FromGPR:
		if x.memory {
			o.Class = VecLoad
		}
	case ToGPR:
		if x.memory {
			o.Class = VecStore
		}
	case LEA:
		if o.Index == NoRegister && o.Disp == 0 && o.Width >= 4 {
			o.Class = Move
		} else if o.Index != NoRegister && o.Base != NoRegister && o.Disp != 0 {
			o.Class = LEAComplex
		}
		b.read(o.Base)
		b.read(o.Index)
		o.Loads, o.Stores = false, false
	case Broadcast:
		if x.memory {
			o.Class = VecLoad
		}
	}
	if x.lock || x.opmap == map0 && x.memory && (x.opcode == 0x86 || x.opcode == 0x87) {
		o.Class = Locked
	}
	o.vector = vectorClass(o, b)
	x.idiom(b)
}

// vectorClass reports whether an op is for the vector part of the core.
func vectorClass(o *Op, b *builder) bool {
	for _, r := range append(o.reads[:b.reads:b.reads], o.writes[:b.written]...) {
		if r >= X87 {
			return true
		}
	}
	return false
}

// idiom recognises instructions whose result does not depend on their operands.
func (x *encoded) idiom(b *builder) {
	o := &b.op
	if x.memory || !x.hasModrm {
		return
	}
	same := x.reg == x.rm
	switch {
	case x.opmap == map0 && (x.opcode == 0x31 || x.opcode == 0x33 || x.opcode == 0x29 || x.opcode == 0x2b) && same && o.Width >= 4:
	case x.opmap == map0F && x.enc == legacy && zeroing[x.opcode] && same && x.rep == 0:
	case x.opmap == map0F && (x.enc == vex || x.enc == evex && x.mask == 0) && zeroing[x.opcode] && x.v == x.rm && x.rep == 0:
	case x.opmap == map0F && x.enc == legacy && x.opcode >= 0x74 && x.opcode <= 0x76 && same,
		x.opmap == map0F && x.enc == vex && x.opcode >= 0x74 && x.opcode <= 0x76 && x.v == x.rm:
		o.reads = [5]Register{} // all ones, which is computed but waits for nothing
		return
	default:
		return
	}
	o.Class, o.calc, o.second, o.imm = Zero, calcSecond, constant, 0
	o.reads = [5]Register{}
}

// zeroing are the opcodes behind 0F that make zero of a register and itself: XORPS,
// PXOR, PSUB, PCMPGT.
var zeroing = map[byte]bool{0x57: true, 0xef: true, 0xf8: true, 0xf9: true, 0xfa: true, 0xfb: true,
	0x64: true, 0x65: true, 0x66: true}

// operandValues sets what the result is computed of.
func (x *encoded) operandValues(o *Op, s *spec) {
	if o.Class == Zero {
		return
	}
	rm, reg := x.rmOperand(o, s.use), x.regOperand(o, s.use)
	if x.memory {
		rm = inMemory
	}
	u := s.use
	if s.calc == calcSecond || s.calc == calcSignExtend {
		o.second = x.source(u, rm, reg)
		return
	}
	o.first, o.second = rm, constant
	switch {
	case u&readA != 0:
		o.first = RAX
	case u&readReg != 0 && u&writeReg != 0:
		o.first, o.second = reg, rm
	case u&readReg != 0:
		o.second = reg
	}
	if x.opmap == map0 && x.enc == legacy && (x.opcode == 0xd0 || x.opcode == 0xd1 || x.opcode >= 0xfe) {
		o.imm = 1
	}
}

// source returns the operand that an instruction moves.
func (x *encoded) source(u use, rm, reg Register) Register {
	switch {
	case u&readRM != 0:
		return rm
	case u&readReg != 0:
		return reg
	case u&readLow != 0:
		return RAX + Register(x.opcode&7|x.b)
	case u&loads != 0:
		return inMemory
	case u&readA != 0:
		return RAX
	}
	return constant
}
