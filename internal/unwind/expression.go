package unwind

import "encoding/binary"

// Operations of DWARF expressions (DWARF 5, 7.7.1) that call frame information may have.
const (
	opAddr       = 0x03
	opDeref      = 0x06
	opConst1u    = 0x08
	opConst1s    = 0x09
	opConst2u    = 0x0a
	opConst2s    = 0x0b
	opConst4u    = 0x0c
	opConst4s    = 0x0d
	opConst8u    = 0x0e
	opConst8s    = 0x0f
	opConstu     = 0x10
	opConsts     = 0x11
	opDup        = 0x12
	opDrop       = 0x13
	opOver       = 0x14
	opPick       = 0x15
	opSwap       = 0x16
	opRot        = 0x17
	opAbs        = 0x19
	opAnd        = 0x1a
	opDiv        = 0x1b
	opMinus      = 0x1c
	opMod        = 0x1d
	opMul        = 0x1e
	opNeg        = 0x1f
	opNot        = 0x20
	opOr         = 0x21
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opShr        = 0x25
	opShra       = 0x26
	opXor        = 0x27
	opBra        = 0x28
	opEq         = 0x29
	opGe         = 0x2a
	opGt         = 0x2b
	opLe         = 0x2c
	opLt         = 0x2d
	opNe         = 0x2e
	opSkip       = 0x2f
	opLit0       = 0x30
	opLit31      = 0x4f
	opBreg0      = 0x70
	opBreg31     = 0x8f
	opBregx      = 0x92
	opDerefSize  = 0x94
	opNop        = 0x96
)

// Bounds of an expression at work: a branch can go back.
const (
	mostOperations = 1 << 10
	mostStacked    = 64
)

// An evaluation is a DWARF expression at work.
type evaluation struct {
	cursor
	r     *Registers
	m     *Memory
	bias  uint64
	pc    int // the register that stands for the program counter
	stack *[mostStacked]uint64
	n     int
}

// evaluate returns what an expression leaves on its stack. The stack begins with first, if
// that is given.
func evaluate(expr []byte, k *Machine, r *Registers, m *Memory, first *uint64, bias uint64) (uint64, bool) {
	e := evaluation{cursor: cursor{data: expr, order: binary.LittleEndian}, r: r, m: m, bias: bias, pc: -1, stack: &m.scratch}
	if k == nil || !k.arm64 {
		e.pc = amd64RIP
	}
	if first != nil {
		e.push(*first)
	}
	for range mostOperations {
		if e.at >= len(e.data) || e.bad {
			break
		}
		e.operation(e.u8())
	}
	if e.bad || e.n == 0 || e.at < len(e.data) {
		return 0, false
	}
	return e.stack[e.n-1], true
}

func (e *evaluation) push(v uint64) {
	if e.n == mostStacked {
		e.bad = true
		return
	}
	e.stack[e.n] = v
	e.n++
}

func (e *evaluation) pop() uint64 {
	if e.n == 0 {
		e.bad = true
		return 0
	}
	e.n--
	return e.stack[e.n]
}

// pick pushes the value below so many others again.
func (e *evaluation) pick(below int) {
	if below >= e.n {
		e.bad = true
		return
	}
	e.push(e.stack[e.n-1-below])
}

// register pushes a register plus an offset.
func (e *evaluation) register(n int, offset int64) {
	v, ok := e.r.get(n)
	if n == e.pc {
		v, ok = e.r.PC, true
	}
	e.bad = e.bad || !ok
	e.push(v + uint64(offset))
}

// operation executes one operation.
func (e *evaluation) operation(op byte) {
	switch {
	case op >= opLit0 && op <= opLit31:
		e.push(uint64(op - opLit0))
	case op >= opBreg0 && op <= opBreg31:
		e.register(int(op-opBreg0), e.sleb())
	case op == opBregx:
		n := e.uleb()
		e.register(int(min(n, registers)), e.sleb())
	case op >= opConst1u && op <= opConst8s:
		size := 1 << ((op - opConst1u) / 2)
		if op&1 == 0 {
			e.push(e.number(size))
		} else {
			e.push(uint64(e.signed(size)))
		}
	case op == opDeref, op == opDerefSize:
		e.deref(op)
	case op >= opDup && op <= opRot:
		e.shuffle(op)
	case op == opAbs, op == opNeg, op == opNot, op == opPlusUconst:
		e.unary(op)
	case op == opSkip, op == opBra:
		e.branch(op)
	case op >= opAnd && op <= opNe:
		b, a := e.pop(), e.pop()
		e.push(e.binary(op, a, b))
	default:
		e.other(op)
	}
}

// other executes the operations that are of no kind.
func (e *evaluation) other(op byte) {
	switch op {
	case opAddr:
		e.push(e.number(8) + e.bias)
	case opConstu:
		e.push(e.uleb())
	case opConsts:
		e.push(uint64(e.sleb()))
	case opNop:
	default:
		e.bad = true
	}
}

func (e *evaluation) deref(op byte) {
	size := 8
	if op == opDerefSize {
		size = int(e.u8())
	}
	v, ok := e.m.Word(e.pop())
	e.bad = e.bad || !ok || size < 1 || size > 8
	e.push(v << (64 - 8*uint(min(size, 8))) >> (64 - 8*uint(min(size, 8))))
}

func (e *evaluation) shuffle(op byte) {
	switch op {
	case opDup:
		e.pick(0)
	case opDrop:
		e.pop()
	case opOver:
		e.pick(1)
	case opPick:
		e.pick(int(e.u8()))
	case opSwap:
		b, a := e.pop(), e.pop()
		e.push(b)
		e.push(a)
	case opRot:
		c, b, a := e.pop(), e.pop(), e.pop()
		e.push(c)
		e.push(a)
		e.push(b)
	}
}

func (e *evaluation) unary(op byte) {
	v := e.pop()
	switch op {
	case opAbs:
		if int64(v) < 0 {
			v = -v
		}
	case opNeg:
		v = -v
	case opNot:
		v = ^v
	case opPlusUconst:
		v += e.uleb()
	}
	e.push(v)
}

func (e *evaluation) branch(op byte) {
	to := int(e.signed(2))
	if op == opBra && e.pop() == 0 {
		return
	}
	if to += e.at; to < 0 || to > len(e.data) {
		e.bad = true
		return
	}
	e.at = to
}

func (e *evaluation) binary(op byte, a, b uint64) uint64 {
	truth := func(yes bool) uint64 {
		if yes {
			return 1
		}
		return 0
	}
	switch op {
	case opAnd:
		return a & b
	case opOr:
		return a | b
	case opXor:
		return a ^ b
	case opPlus:
		return a + b
	case opMinus:
		return a - b
	case opMul:
		return a * b
	case opDiv, opMod:
		return e.divide(op, a, b)
	case opShl:
		return a << b
	case opShr:
		return a >> b
	case opShra:
		return uint64(int64(a) >> b)
	case opEq:
		return truth(a == b)
	case opNe:
		return truth(a != b)
	case opGe:
		return truth(int64(a) >= int64(b))
	case opGt:
		return truth(int64(a) > int64(b))
	case opLe:
		return truth(int64(a) <= int64(b))
	case opLt:
		return truth(int64(a) < int64(b))
	}
	e.bad = true
	return 0
}

func (e *evaluation) divide(op byte, a, b uint64) uint64 {
	switch {
	case b == 0:
		e.bad = true
		return 0
	case op == opMod:
		return a % b
	case b == ^uint64(0): // the quotient of the least integer by -1 is none
		return -a
	}
	return uint64(int64(a) / int64(b))
}
