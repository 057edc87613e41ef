package pipeline

// spec returns what the opcode does.
func (x *encodedInstruction) spec() spec {
	switch {
	case x.enc == xop:
		x.unknown = true
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
	x.unknown = true
	return spec{class: VInt, use: dyadic, calc: calcMix}
}

// op makes the op of the instruction.
func (x *encodedInstruction) op() Op {
	s := x.spec()
	b := builder{op: Op{Class: s.class, fuses: s.fuses, formula: formula{calc: s.calc, imm: x.immediate()}}}
	o := &b.op
	o.Width, o.Size = x.widths(&s)
	if s.class == CondJump {
		o.conditional, o.cond = true, x.opcode&15
		if x.opmap == map0 && x.opcode >= 0xe0 {
			o.cond = noCondition
		}
	}
	x.memoryOperand(o, &s)
	if o.Stores {
		o.fuses = noFusion // only instructions without stores fuse with a jump
	}
	x.reads(&b, &s)
	x.writes(&b, &s)
	o.vector, o.unknown, o.scalar = b.vector(), x.unknown, x.scalar()
	o.partial = x.keeps(o, s.use) && x.written(o, s.use) != NoRegister && (s.calc == calcSecond || s.class == SetCC)
	o.Class = x.class(o)
	x.calculation(o, &s)
	x.idiom(o)
	o.form = formOf(o.Class, o.Width, x.memory)
	o.late = x.lateOperand(o, &s)
	return *o
}

// lateOperand returns the operand that some cores need later than the others.
func (x *encodedInstruction) lateOperand(o *Op, s *spec) Register {
	late := NoRegister
	switch c := x.opcode; {
	case o.Class == LEAComplex && o.Index != o.Base:
		return o.Index
	case o.Class == Insert && x.enc == legacy:
		return x.regOperand(o, s.use)
	case o.Class == Insert:
		return x.vOperand(s.use)
	case o.Class == BlendVar:
		return x.fourthOperand(o, s.use)
	case o.Class == VShiftReg && !x.memory:
		return x.rmOperand(o, s.use)
	case x.opmap != map0F || x.rep == 0 || c != 0x2a && (c < 0x51 || c > 0x53 && c != 0x5a):
	case x.enc == legacy:
		late = x.regOperand(o, s.use)
	default:
		late = x.vOperand(s.use)
	}
	if late == x.rmOperand(o, s.use) {
		return NoRegister
	}
	return late
}

// fourthOperand returns the vector register that is in the immediate, or XMM0.
func (x *encodedInstruction) fourthOperand(o *Op, u use) Register {
	switch {
	case u&fourth == 0:
		return NoRegister
	case x.enc == legacy:
		return XMM0
	}
	return XMM0 + Register(o.imm>>4&15)
}

// A builder collects the registers of an op.
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

// vector reports whether the op is for the vector part of the core.
func (b *builder) vector() bool {
	is := func(r Register) bool { return r >= X87 && r < moreGeneral }
	for _, r := range b.op.reads[:b.reads] {
		if is(r) {
			return true
		}
	}
	return b.written > 0 && (is(b.op.writes[0]) || is(b.op.writes[b.written-1]))
}

// widths returns the bytes that the instruction works on, and those of its memory
// operand.
func (x *encodedInstruction) widths(s *spec) (width, size uint8) {
	switch {
	case s.use&bytes != 0:
		width = 1
	case s.use&(vectorReg|vectorRM|maskReg|maskRM) != 0:
		width = x.length
	case s.use&wide != 0:
		width = 8
	default:
		width = x.operandSize()
	}
	if x.bcast && x.memory && x.enc == evex {
		return width, scalar(x.w)
	}
	switch s.size {
	case 0:
		return width, width
	case half:
		return width, width / 2
	case quarter:
		return width, width / 4
	case eighth:
		return width, width / 8
	case element:
		return width, scalar(x.w)
	}
	return width, s.size
}

// memoryOperand sets the address of what the instruction accesses.
func (x *encodedInstruction) memoryOperand(o *Op, s *spec) {
	switch {
	case x.memory:
		o.Base, o.Index, o.Scale, o.Disp, o.Segment = x.base, x.index, x.scale, x.disp, x.segment
		if s.class == Gather {
			o.Index = x.vectorIndex()
		}
		if x.short8 && x.enc == evex {
			o.Disp *= int64(max(o.Size, 1))
		}
		o.Loads = s.use&readRM != 0 && s.class != LEA
		o.Stores = s.use&writeRM != 0
	case s.class == Leave:
		o.Base = RBP
	case s.class == String, s.class == RepString:
		o.Base = RSI
		if !x.hasSource() {
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

// vectorIndex returns the vector register with the addresses of a gather.
func (x *encodedInstruction) vectorIndex() Register {
	n := uint8(4) // the number that means no index if it is a general register
	if x.index != NoRegister {
		n = uint8(x.index - RAX)
	}
	return XMM0 + Register(n|x.vsibHigh)
}

// upper says whether a general register is the second byte of another one, as AH is.
func (x *encodedInstruction) upper(n, width uint8) bool {
	return width == 1 && x.rex == 0 && x.enc == legacy && n >= 4 && n < 8
}

// general returns a general register by its number.
func (x *encodedInstruction) general(n, width uint8) Register {
	if x.upper(n, width) {
		n -= 4
	}
	return RAX + Register(n&15)
}

// register returns a register of the file that an operand is in.
func (x *encodedInstruction) register(n uint8, isVector, isMask bool, width uint8) Register {
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
func (x *encodedInstruction) multimedia() bool {
	c := x.opcode
	switch x.opmap {
	case map0F:
		return c >= 0x60 && c <= 0x7f || c >= 0xd0
	case map38:
		return c < 0x20
	}
	return x.opmap == map3A && c == 0x0f
}

func (x *encodedInstruction) regOperand(o *Op, u use) Register {
	return x.register(x.reg, u&vectorReg != 0, u&maskReg != 0, o.Width)
}

// rmOperand returns the register of ModRM's lower part, if it is one.
func (x *encodedInstruction) rmOperand(o *Op, u use) Register {
	if x.memory || !x.hasModrm {
		return NoRegister
	}
	return x.register(x.rm, u&vectorRM != 0, u&maskRM != 0, rmWidth(o, u))
}

// rmWidth returns the bytes of the register in ModRM's lower part. It has at least 4 bytes
// if the other operand is a vector, however few are used.
func rmWidth(o *Op, u use) uint8 {
	if u&vectorReg != 0 {
		return o.Width
	}
	return min(o.Width, o.Size)
}

// usesUpper says whether a register of the instruction is the second byte of another one.
func (x *encodedInstruction) usesUpper(o *Op, u use) bool {
	return u&(readReg|writeReg) != 0 && x.upper(x.reg, o.Width) ||
		u&(readRM|writeRM) != 0 && !x.memory && x.upper(x.rm, rmWidth(o, u)) ||
		u&(readLow|writeLow) != 0 && x.upper(x.opcode&7|x.b, o.Width)
}

// vOperand returns the register of the VEX prefix.
func (x *encodedInstruction) vOperand(u use) Register {
	return x.register(x.v, u&general == 0 && u&maskV == 0, u&maskV != 0, 8)
}

// lowOperand returns the register in the opcode.
func (x *encodedInstruction) lowOperand(o *Op) Register { return x.general(x.opcode&7|x.b, o.Width) }

// implied are the registers that instructions use without naming them.
var implied = []struct {
	reads, writes use
	register      Register
}{
	{readA, writeA, RAX}, {readD, writeD, RDX}, {readC, writeC, RCX},
	{readCarry, writeCarry, Carry}, {readFlags, writeFlags, Flags}, {readX87, writeX87, X87},
}

func (x *encodedInstruction) reads(b *builder, s *spec) {
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
		b.read(x.lowOperand(o))
	}
	for _, i := range implied {
		if u&i.reads != 0 {
			b.read(i.register)
		}
	}
	b.read(x.fourthOperand(o, u))
	if x.mask != 0 {
		b.read(K0 + Register(x.mask))
		if !x.zeroing && u&maskReg == 0 && u&writeReg != 0 {
			b.read(x.regOperand(o, u))
		}
	}
	if s.class == LEA {
		b.read(x.base)
		b.read(x.index)
	}
	if x.keeps(o, u) {
		b.read(x.written(o, u))
	}
}

// keeps says whether a write leaves the rest of a general register as it was.
func (x *encodedInstruction) keeps(o *Op, u use) bool {
	return o.Width < 4 && u&(vectorReg|vectorRM) == 0 && o.Class != String && o.Class != RepString
}

// written returns the general register that an instruction on bytes or words writes.
func (x *encodedInstruction) written(o *Op, u use) Register {
	switch {
	case u&writeReg != 0:
		return x.regOperand(o, u)
	case u&writeRM != 0:
		return x.rmOperand(o, u)
	case u&writeLow != 0:
		return x.lowOperand(o)
	case u&writeA != 0:
		return RAX
	}
	return NoRegister
}

func (x *encodedInstruction) writes(b *builder, s *spec) {
	o, u := &b.op, s.use
	if u&writeReg != 0 {
		b.write(x.regOperand(o, u))
	}
	if u&writeRM != 0 || u&writeV != 0 && x.enc == legacy {
		b.write(x.rmOperand(o, u))
	}
	if u&writeV != 0 && x.enc != legacy {
		b.write(x.vOperand(u))
	}
	if u&writeLow != 0 {
		b.write(x.lowOperand(o))
	}
	for _, i := range implied {
		if u&i.writes != 0 {
			b.write(i.register)
		}
	}
	switch s.class {
	case String, RepString:
		x.pointers(b)
	case Leave:
		b.write(RBP)
	case VString:
		if x.opcode&1 == 0 { // a mask, and otherwise a position
			b.write(XMM0)
		} else {
			b.write(RCX)
		}
	}
}

// hasSource and hasDestination say which of its two pointers a string instruction has.
func (x *encodedInstruction) hasSource() bool { c := x.opcode &^ 1; return c != 0xaa && c != 0xae }

func (x *encodedInstruction) hasDestination() bool { return x.opcode&^1 != 0xac }

// pointers lets a string instruction advance the registers that it counts with.
func (x *encodedInstruction) pointers(b *builder) {
	if x.hasSource() {
		b.read(RSI)
		b.write(RSI)
	}
	if x.hasDestination() {
		b.read(RDI)
		b.write(RDI)
	}
	if x.rep != 0 {
		b.read(RCX)
		b.write(RCX)
	}
}

// class returns the class of the instruction. It depends on the operands if the opcode has
// several classes.
func (x *encodedInstruction) class(o *Op) Class {
	if x.lock || x.opmap == map0 && x.memory && (x.opcode == 0x86 || x.opcode == 0x87) {
		return Locked
	}
	switch o.Class {
	case ALU:
		if x.addsConstant(o) {
			return AddConstant
		}
	case Move:
		return moveClass(o)
	case Store:
		constant := x.opmap == map0 && (x.opcode&^1 == 0xc6 || x.opcode == 0x68 || x.opcode == 0x6a)
		switch {
		case !o.Stores:
			return ALU
		case constant:
			return StoreConstant
		}
	case VecLoad, VecStore:
		if !x.memory {
			return VecMove
		}
	case FromGPR, Broadcast:
		if x.memory {
			return VecLoad
		}
	case ToGPR:
		if x.memory {
			return VecStore
		}
	case LEA:
		return x.leaClass(o)
	}
	return o.Class
}

// small says whether a number is one that Golden Cove adds when it renames registers.
func small(n int64) bool { return n >= -1024 && n < 1024 }

// addsConstant says whether the instruction adds a small number to a register of 64 bits.
func (x *encodedInstruction) addsConstant(o *Op) bool {
	if x.memory || o.Width != 8 || x.enc != legacy || x.opmap != map0 {
		return false
	}
	switch c, part := x.opcode, x.reg&7; {
	case c == 0x81 || c == 0x83:
		return (part == 0 || part == 5) && small(o.imm)
	case c == 0xff:
		return part < 2
	}
	return false
}

// leaClass returns the class of a lea. A base of RBP or R13 has a displacement in the code, if only
// of 0.
func (x *encodedInstruction) leaClass(o *Op) Class {
	switch {
	case o.Index != NoRegister && o.Base != NoRegister && x.mod != 0:
		return LEAComplex
	case o.Index == NoRegister && o.Disp == 0 && o.Width >= 4:
		return Move
	case o.Index == NoRegister && o.Base != NoRegister && o.Width == 8 && small(o.Disp):
		return LEAConstant
	}
	return LEA
}

func moveClass(o *Op) Class {
	switch {
	case o.Loads && o.calc == calcSignExtend:
		return LoadSigned
	case o.Loads:
		return Load
	case o.Stores:
		return Store
	case o.calc == calcSignExtend || o.Size < 4:
		return ALU
	case o.reads[0] == RSP:
		return MoveRSP
	}
	return Move
}

// calculation sets how the result is computed.
func (x *encodedInstruction) calculation(o *Op, s *spec) {
	u, rm, reg := s.use, x.rmOperand(o, s.use), x.regOperand(o, s.use)
	if s.calc != calcNone && x.usesUpper(o, u) { // values have no second byte
		o.calc = calcMix
		return
	}
	if x.memory {
		rm = inMemory
	}
	if s.calc == calcSecond || s.calc == calcSignExtend {
		o.second = x.source(o, u, rm, reg)
		return
	}
	o.first, o.second = rm, constant
	switch {
	case u&readA != 0:
		o.first = RAX
	case u&readC != 0:
		o.second = RCX
	case u&readReg != 0 && u&writeReg != 0:
		o.first, o.second = reg, rm
	case u&readReg != 0:
		o.second = reg
	}
	if x.opmap == map0 && x.enc == legacy && (x.opcode == 0xd0 || x.opcode == 0xd1 || x.opcode >= 0xfe) {
		o.imm = 1 // of shifts by one, INC and DEC
	}
}

// source returns the operand that an instruction moves.
func (x *encodedInstruction) source(o *Op, u use, rm, reg Register) Register {
	switch {
	case u&readRM != 0:
		return rm
	case u&readReg != 0:
		return reg
	case u&readLow != 0:
		return x.lowOperand(o)
	case u&loads != 0:
		return inMemory
	case u&readA != 0:
		return RAX
	}
	return constant
}

// idiom recognises instructions whose result does not depend on their operands.
func (x *encodedInstruction) idiom(o *Op) {
	if x.memory || !x.hasModrm || x.rep != 0 || x.mask != 0 {
		return
	}
	same := x.reg == x.rm
	if x.enc != legacy {
		same = x.v == x.rm
	}
	c := x.opcode
	switch {
	case !same:
	case x.opmap == map0 && (c == 0x31 || c == 0x33 || c == 0x29 || c == 0x2b) && o.Width >= 4,
		x.opmap == map0F && zeroing[c] && !(x.enc == evex && c < 0x70):
		o.Class, o.calc, o.second, o.imm = Zero, calcSecond, constant, 0
		o.reads = [len(o.reads)]Register{}
	case x.opmap == map0F && c >= 0x74 && c <= 0x76 && x.enc != evex:
		o.reads = [len(o.reads)]Register{} // all ones, which is computed but waits for nothing
	}
}

// zeroing are the opcodes behind 0F that clear a register if both operands are it: XORPS,
// PXOR, PSUB, PCMPGT.
var zeroing = map[byte]bool{0x57: true, 0xef: true, 0xf8: true, 0xf9: true, 0xfa: true, 0xfb: true,
	0x64: true, 0x65: true, 0x66: true}
