package pipeline

import "math/bits"

// A calculation is how an instruction computes its result from two operands, as far as values
// are followed.
type calculation uint8

const (
	calcNone calculation = iota // no result
	calcMix                     // some function of all that it reads
	calcSecond
	calcSignExtend
	calcAdd
	calcSub
	calcAnd
	calcOr
	calcXor
	calcNot
	calcNeg
	calcShl
	calcShr
	calcSar
	calcIMul
	calcLEA
	calcLeave
	calcString
	calcSignFill
	calcShlBy // by a register: as calcMix, unless the operands are real
	calcShrBy
	calcSarBy
)

// Two registers that only operands name.
const (
	inMemory Register = XMM0 + 32 + iota // what has been loaded
	constant                             // what is in the instruction
)

// values are the values of registers and memory. The real ones are not known. So each
// starts as a random number, and instructions compute with them. Two addresses that are
// equal for all real values are then equal here, and others differ, except by chance:
// random interpretation, as in Gulwani and Necula, "Discovering affine equalities using
// random interpretation" (POPL 2003).
type values struct {
	registers [registers]uint64
	memory    [memoryEntries]memoryValue
	starts    uint64 // random numbers that registers had at first
	same      uint64 // what all general registers and all memory hold at first, unless it is 0
	real      uint32 // general registers with their real contents, by what was loaded
	loaded    bool   // what has been loaded is real, too
}

// A memoryValue is 8 bytes of memory that a store changed.
type memoryValue struct {
	granule, value uint64 // the address is 8 times granule
}

const memoryEntries = 1 << 11

// start gives the registers new values.
func (v *values) start() {
	for i := range v.registers {
		v.starts++
		v.registers[i] = mix(v.starts)
	}
	v.registers[NoRegister], v.real = 0, 0
	for r := RAX; r < RAX+16; r++ {
		v.registers[r] &^= 63 // pointers are assumed to be aligned
	}
	if v.same == 0 {
		return
	}
	v.memory = [memoryEntries]memoryValue{}
	for r := RAX; r < RAX+16; r++ {
		v.registers[r] = v.same
	}
	v.registers[RSP] += 2048
}

// mix returns a random number that depends on x only: the finaliser of SplitMix64
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// address returns the address of the op's operand in memory.
func (v *values) address(op *Op) uint64 {
	a := v.registers[op.Base] + v.registers[op.Index]*uint64(op.Scale) + uint64(op.Disp)
	if op.Segment {
		a += 1 << 62
	}
	return a
}

// load returns the contents of memory, up to 8 bytes: what was stored there, or a number that
// belongs to the address.
func (v *values) load(addr uint64, size uint8) uint64 {
	x := v.granule(addr >> 3)
	shift := 8 * (addr & 7)
	if x >>= shift; addr&7+uint64(min(size, 8)) > 8 {
		x |= v.granule(addr>>3+1) << (64 - shift)
	}
	return x & low(size)
}

// receive loads the contents of an op's operand in memory, or pops them.
func (v *values) receive(op *Op, addr uint64, given *access) {
	if v.loaded = given.loads; given.loads {
		v.registers[inMemory] = given.value
	} else {
		v.registers[inMemory] = v.load(addr, op.Size)
	}
	if op.stack < 0 {
		v.registers[RSP] -= uint64(op.stack)
	}
}

// granule returns the 8 bytes of memory at 8 times a number.
func (v *values) granule(number uint64) uint64 {
	if e := &v.memory[mix(number)%memoryEntries]; e.granule == number {
		return e.value
	}
	if v.same != 0 {
		return v.same
	}
	return mix(number ^ 1<<63)
}

// store changes memory. Of more than 8 bytes all are some function of the value.
func (v *values) store(addr, value uint64, size uint8) {
	for ; size > 8; size -= 8 {
		v.change(addr, value, 8)
		addr, value = addr+8, mix(value)
	}
	v.change(addr, value, size)
}

func (v *values) change(addr, value uint64, size uint8) {
	mask, shift := low(size), 8*(addr&7)
	v.merge(addr>>3, value<<shift, mask<<shift)
	if addr&7+uint64(size) > 8 {
		v.merge(addr>>3+1, value>>(64-shift), mask>>(64-shift))
	}
}

// merge changes some bits of a granule.
func (v *values) merge(number, value, mask uint64) {
	x := v.granule(number)&^mask | value&mask
	v.memory[mix(number)%memoryEntries] = memoryValue{number, x}
}

// compute sets the op's results, and returns the value that it stores.
func (v *values) compute(op *Op) uint64 {
	real := v.exact(op)
	v.forget(op)
	switch op.calc {
	case calcNone:
		return 0
	case calcLeave:
		v.registers[RSP], v.registers[RBP] = v.registers[RBP]+8, v.registers[inMemory]
		return 0
	case calcString:
		return v.advance(op)
	}
	v.registers[constant] = uint64(op.imm)
	x := uint64(0)
	if real && op.calc >= calcShlBy {
		by := *op
		by.calc -= calcShlBy - calcShl
		x = v.result(&by, v.registers[op.first], v.registers[op.second]&(max(uint64(op.Width), 4)*8-1))
	} else {
		x = v.result(op, v.registers[op.first], v.registers[op.second])
	}
	for i, r := range op.writes {
		if r == NoRegister {
			break
		}
		if r == Carry || r == Flags {
			continue
		}
		if i > 0 || op.Stores {
			x = mix(x + uint64(i))
		}
		v.registers[r] = v.written(op, r, x)
		if real && i == 0 {
			v.real |= 1 << r
		}
	}
	return x
}

// isReal reports whether a register has its real contents.
func (v *values) isReal(r Register) bool {
	switch r {
	case NoRegister, constant:
		return true
	case inMemory:
		return v.loaded
	}
	return r <= RAX+15 && v.real>>r&1 != 0
}

// knows reports whether the real address of an operand in memory is known.
func (v *values) knows(op *Op) bool { return !op.Segment && v.isReal(op.Base) && v.isReal(op.Index) }

// exact reports whether the first result of an op is what the processor computes.
func (v *values) exact(op *Op) bool {
	r := op.writes[0]
	if op.Stores || r == NoRegister || r > RAX+15 || op.Width < 4 && !v.isReal(r) {
		return false
	}
	switch op.calc {
	case calcNone, calcMix, calcLeave, calcString:
		return false
	case calcLEA: // addresses relative to the instruction are those in the file
		return v.knows(op) && (op.Base != NoRegister || op.Index != NoRegister)
	case calcSignFill:
		return v.isReal(RAX)
	case calcSecond, calcSignExtend:
		return v.isReal(op.second)
	}
	return v.isReal(op.first) && v.isReal(op.second)
}

// forget forgets which registers have their real contents, of those that an op writes.
func (v *values) forget(op *Op) {
	if op.Class >= System || op.unknown {
		v.real = 0
	}
	for _, r := range op.writes {
		if r <= RAX+15 {
			v.real &^= 1 << r
		}
	}
}

// locate finds the register of an operand in memory, or of the stack, by its real address.
func (v *values) locate(op *Op, addr uint64, stack bool) {
	base, index := v.isReal(op.Base), v.isReal(op.Index)
	r, x := NoRegister, uint64(0)
	switch {
	case stack:
		r, x = RSP, addr
	case op.Segment || op.calc == calcString || op.Base == NoRegister && op.Index == NoRegister:
		return
	case base && index && v.address(op) != addr: // something else has changed them
		v.real = 0
		return
	case !base && index:
		r, x = op.Base, addr-uint64(op.Disp)-v.registers[op.Index]*uint64(op.Scale)
	case base && !index && op.Scale > 0:
		r, x = op.Index, uint64(int64(addr-uint64(op.Disp)-v.registers[op.Base])/int64(op.Scale))
	}
	if r != NoRegister && r <= RAX+15 {
		v.registers[r] = x
		v.real |= 1 << r
	}
}

// advance advances the pointers of a string instruction, and returns the value that it
// stores.
func (v *values) advance(op *Op) uint64 {
	n := uint64(1)
	if op.Class == RepString {
		n = v.registers[RCX]
	}
	for _, r := range op.writes {
		switch r {
		case RAX:
			v.registers[r] = v.written(op, r, v.registers[inMemory])
		case RSI, RDI:
			v.registers[r] += n * uint64(op.Width)
		case RCX:
			v.registers[r] = 0
		}
	}
	if op.Loads {
		return v.registers[inMemory]
	}
	return v.registers[RAX]
}

// result returns what the op computes from its operands.
func (v *values) result(op *Op, a, b uint64) uint64 {
	switch op.calc {
	case calcSecond:
		return b & low(op.Size)
	case calcSignExtend:
		shift := 64 - 8*uint(op.Size)
		return uint64(int64(b<<shift) >> shift)
	case calcSignFill:
		return uint64(int64(v.registers[RAX]<<(64-8*uint(min(op.Width, 8)))) >> 63)
	case calcAdd:
		return a + b
	case calcSub:
		return a - b
	case calcAnd:
		return a & b
	case calcOr:
		return a | b
	case calcXor:
		return a ^ b
	case calcNot:
		return ^a
	case calcNeg:
		return -a
	case calcShl:
		return a << (b & 63)
	case calcShr:
		return a & low(op.Width) >> (b & 63)
	case calcSar:
		shift := 64 - 8*uint(min(op.Width, 8))
		return uint64(int64(a<<shift) >> shift >> (b & 63))
	case calcIMul:
		return a * b
	case calcLEA:
		return v.address(op)
	}
	x := uint64(op.imm) ^ uint64(op.Class)<<56
	for _, r := range op.reads {
		if r == NoRegister {
			break
		}
		x = mix(bits.RotateLeft64(x, 7) ^ v.registers[r])
	}
	if op.Loads {
		x = mix(x ^ v.registers[inMemory])
	}
	return x
}

// written returns what a register holds after x was written to it.
func (v *values) written(op *Op, r Register, x uint64) uint64 {
	if r >= X87 && r < moreGeneral || op.Width >= 8 {
		return x
	}
	if op.Width == 4 {
		return uint64(uint32(x))
	}
	mask := low(op.Width)
	return v.registers[r]&^mask | x&mask
}

// low returns the bits of so many bytes.
func low(width uint8) uint64 { return ^uint64(0) >> (64 - 8*uint(min(width, 8))) }
