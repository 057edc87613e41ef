package pipeline

import (
	"encoding/binary"
	"fmt"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// A Decoder reads from the code of instructions what they need. It has no state and may be
// used concurrently.
type Decoder struct{ arm bool }

// NewDecoder returns the decoder of an instruction set: amd64 or arm64.
func NewDecoder(arch disasm.Arch) (*Decoder, error) {
	if arch != disasm.AMD64 && arch != disasm.ARM64 {
		return nil, fmt.Errorf("pipeline: %s: instructions of amd64 and arm64 only are modelled", arch)
	}
	return &Decoder{arm: arch == disasm.ARM64}, nil
}

// Op returns what the instruction i needs. Code starts with its bytes. Bytes that are no
// instruction need nothing.
func (d *Decoder) Op(i disasm.Inst, code []byte) Op {
	if i.Bad || i.Len > len(code) {
		return Op{Class: Nop, addr: i.Addr, unknown: true}
	}
	if d.arm {
		if i.Len < 4 {
			return Op{Class: Nop, addr: i.Addr, unknown: true}
		}
		op := armOp(code)
		op.addr, op.code.length = i.Addr, 4
		return op
	}
	x := encode(i, code)
	if x.cut {
		return Op{Class: Nop, addr: i.Addr, unknown: true}
	}
	op := x.op()
	op.addr = i.Addr
	op.code = codeShape{length: uint8(i.Len), opcode: x.opcodeAt, lcp: x.lengthChanging()}
	return op
}

// Accesses returns what an op loads and stores, in less time than Op.
func (d *Decoder) Accesses(i disasm.Inst, code []byte) (loads, stores bool) {
	if d.arm || i.Bad || i.Len > len(code) {
		op := d.Op(i, code)
		return op.Loads, op.Stores
	}
	x := encode(i, code)
	if x.cut {
		return false, false
	}
	var op Op
	s := x.spec()
	x.memoryOperand(&op, &s)
	return op.Loads, op.Stores
}

// encode reads the parts of an x86 instruction.
func encode(i disasm.Inst, code []byte) encodedInstruction {
	x := encodedInstruction{code: code[:i.Len], end: i.Next()}
	x.prefixes()
	x.operands()
	return x
}

// lengthChanging says whether the operand-size prefix changes the number of bytes behind
// the opcode: that slows down the predecoders of Intel's cores.
func (x *encodedInstruction) lengthChanging() bool {
	if !x.opsize || x.enc != legacy || x.opmap != map0 || x.w {
		return false
	}
	switch c := x.opcode; {
	case c < 0x40:
		return c&7 == 5
	case c == 0xf7:
		return x.reg&7 < 2
	case c == 0x68, c == 0x69, c == 0x81, c == 0xa9, c == 0xc7:
		return true
	default:
		return c >= 0xb8 && c <= 0xbf
	}
}

// The opcode maps. See Intel's manual volume 2, chapter 2.
const (
	map0  = 0
	map0F = 1
	map38 = 2
	map3A = 3
)

// An encoding is the kind of prefix before the opcode.
type encoding uint8

const (
	legacy encoding = iota
	vex
	evex
	xop
)

// An encodedInstruction is an instruction as it is encoded: Intel's manual volume 2, chapter 2.
type encodedInstruction struct {
	code []byte
	pos  int
	cut  bool // the code ends before the instruction does
	// unknown says that the opcode is in no table: its costs are a guess.
	unknown bool
	end     uint64

	prefixBits
	opmap    uint8
	opcodeAt uint8 // offset of the opcode, with its escape
	opcode   byte
	modRM
}

// prefixBits are what the prefixes of an instruction say.
type prefixBits struct {
	enc      encoding
	opsize   bool // 66
	rep      byte // F2 or F3, or 0
	lock     bool
	segment  bool // FS or GS
	rex      byte // 0: none
	w        bool
	r, x, b  uint8 // the high bits of registers, as numbers to add
	v        uint8 // the register in VEX and EVEX
	length   uint8 // bytes of a vector
	mask     uint8
	bcast    bool // EVEX.b
	zeroing  bool
	vsibHigh uint8 // the highest bit of an index that is a vector register
}

// modRM is the ModRM byte with its SIB byte and displacement.
type modRM struct {
	hasModrm     bool
	mod, reg, rm uint8 // reg and rm with their high bits
	memory       bool
	base, index  Register
	scale        uint8
	disp         int64
	short8       bool // disp was one byte
}

// next returns the next byte, or 0 at the end.
func (x *encodedInstruction) next() byte {
	if x.pos >= len(x.code) {
		x.cut = true
		return 0
	}
	x.pos++
	return x.code[x.pos-1]
}

// prefixes reads up to and including the opcode.
func (x *encodedInstruction) prefixes() {
	x.length = 16
	for !x.cut {
		b := x.next()
		if b&0xf0 == 0x40 {
			x.rex = b
			continue
		}
		switch b {
		case 0x66:
			x.opsize = true
		case 0xf2, 0xf3:
			x.rep = b
		case 0x64, 0x65:
			x.segment = true
		case 0xf0:
			x.lock = true
		case 0x26, 0x2e, 0x36, 0x3e, 0x67:
		default:
			x.extend(x.rex)
			x.opcodeAt = uint8(x.pos - 1)
			x.escape(b)
			return
		}
		x.rex = 0
	}
}

// extend reads the bits of a REX prefix.
func (x *encodedInstruction) extend(rex byte) {
	x.w = rex&8 != 0
	x.r, x.x, x.b = rex<<1&8, rex<<2&8, rex<<3&8
}

func (x *encodedInstruction) escape(b byte) {
	switch {
	case b == 0x0f:
		x.opmap, x.opcode = map0F, x.next()
		switch x.opcode {
		case 0x38:
			x.opmap, x.opcode = map38, x.next()
		case 0x3a:
			x.opmap, x.opcode = map3A, x.next()
		}
	case b == 0xc5:
		p := x.next()
		x.enc, x.opmap = vex, map0F
		x.r = ^p >> 4 & 8
		x.vexTail(p)
	case b == 0xc4:
		x.enc = vex
		p := x.next()
		x.opmap = p & 0x1f
		x.extend(^p >> 5)
		p = x.next()
		x.w = p&0x80 != 0
		x.vexTail(p)
	case b == 0x62:
		x.evexPrefix()
	case b == 0x8f && x.pos < len(x.code) && x.code[x.pos]&0x1f >= 8:
		x.enc = xop
		p := x.next()
		x.opmap = p & 0x1f
		x.extend(^p >> 5)
		x.vexTail(x.next())
	default:
		x.opmap, x.opcode = map0, b
	}
}

// vexTail reads the last byte of a VEX prefix, and the opcode.
func (x *encodedInstruction) vexTail(p byte) {
	x.v = ^p >> 3 & 15
	if p&4 != 0 {
		x.length = 32
	}
	x.mandatory(p & 3)
	x.opcode = x.next()
}

// mandatory reads the prefix that is part of the opcode.
func (x *encodedInstruction) mandatory(pp byte) {
	x.opsize = pp == 1
	x.rep = [4]byte{0, 0, 0xf3, 0xf2}[pp]
}

func (x *encodedInstruction) evexPrefix() {
	p0, p1, p2 := x.next(), x.next(), x.next()
	x.enc, x.opmap = evex, p0&7
	x.extend(^p0 >> 5)
	x.r |= ^p0 & 0x10
	x.w = p1&0x80 != 0
	x.v = ^p1>>3&15 | ^p2<<1&0x10
	x.vsibHigh = ^p2 << 1 & 0x10
	x.mandatory(p1 & 3)
	x.mask, x.bcast, x.zeroing = p2&7, p2&0x10 != 0, p2&0x80 != 0
	x.length = 16 << min(p2>>5&3, 2)
	x.opcode = x.next()
}

// operands reads the ModRM byte and the address.
func (x *encodedInstruction) operands() {
	if x.cut || !x.modrmFollows() {
		return
	}
	m := x.next()
	x.hasModrm = true
	x.mod, x.reg, x.rm = m>>6, m>>3&7|x.r, m&7
	if x.mod == 3 {
		x.rm |= x.b
		if x.enc == evex {
			x.rm |= x.x << 1
		}
		return
	}
	x.memory = true
	x.address()
}

// modrmFollows says whether the opcode has a ModRM byte.
func (x *encodedInstruction) modrmFollows() bool {
	if x.enc != legacy {
		return !(x.enc == vex && x.opmap == map0F && x.opcode == 0x77) // VZEROUPPER
	}
	switch c := x.opcode; x.opmap {
	case map0:
		switch {
		case c < 0x40:
			return c&7 < 4
		case c == 0x63, c == 0x69, c == 0x6b, c >= 0x80 && c <= 0x8f, c == 0xc0, c == 0xc1, c == 0xc6, c == 0xc7,
			c >= 0xd0 && c <= 0xd3, c >= 0xd8 && c <= 0xdf, c == 0xf6, c == 0xf7, c >= 0xfe:
			return true
		}
		return false
	case map0F:
		switch {
		case c >= 0x05 && c <= 0x0b, c == 0x0e, c >= 0x30 && c <= 0x37, c == 0x77, c >= 0x80 && c <= 0x8f,
			c >= 0xa0 && c <= 0xa2, c >= 0xa8 && c <= 0xaa, c >= 0xc8 && c <= 0xcf:
			return false
		}
	}
	return true
}

// address reads the SIB byte and the displacement.
func (x *encodedInstruction) address() {
	x.scale = 1
	rm := x.rm
	x.base = RAX + Register(rm|x.b)
	if rm == 4 {
		sib := x.next()
		rm = sib & 7
		x.base = RAX + Register(rm|x.b)
		if i := sib>>3&7 | x.x; i != 4 {
			x.index, x.scale = RAX+Register(i), 1<<(sib>>6)
		} else {
			x.scale = 1 << (sib >> 6)
		}
		if rm == 5 && x.mod == 0 {
			x.base = NoRegister
			x.disp = x.signed(4)
			return
		}
	} else if rm == 5 && x.mod == 0 {
		x.base = NoRegister
		x.disp = int64(x.end) + x.signed(4)
		return
	}
	switch x.mod {
	case 1:
		x.disp, x.short8 = x.signed(1), true
	case 2:
		x.disp = x.signed(4)
	}
}

// signed reads a little-endian number of 1, 2 or 4 bytes.
func (x *encodedInstruction) signed(n int) int64 {
	at := x.pos
	if at+n > len(x.code) {
		x.cut = true
		return 0
	}
	x.pos += n
	return little(x.code[at : at+n])
}

// little reads a signed little-endian number of 1, 2, 4 or 8 bytes.
func little(b []byte) int64 {
	switch len(b) {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case 8:
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// immediate returns the number behind the operands, which fills the rest of the
// instruction, or 0 if there is none.
func (x *encodedInstruction) immediate() int64 { return little(x.code[min(x.pos, len(x.code)):]) }

// operandSize returns the bytes of its general registers.
func (x *encodedInstruction) operandSize() uint8 {
	switch {
	case x.w:
		return 8
	case x.opsize && x.enc == legacy:
		return 2
	}
	return 4
}
