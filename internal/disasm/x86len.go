package disasm

import "encoding/binary"

// maxX86 is the longest instruction that a processor accepts.
const maxX86 = 15

// The opcode maps of x86: those reached by 0F, 0F 38 and 0F 3A, the maps that
// only EVEX reaches, and AMD's XOP maps.
const (
	map0   = 0
	map0F  = 1
	map38  = 2
	map3A  = 3
	mapAPX = 4  // EVEX: legacy instructions with APX's extensions
	mapFP5 = 5  // EVEX: half precision
	mapFP6 = 6  // EVEX: half precision
	map7   = 7  // VEX and EVEX: model-specific registers by 32-bit immediate
	mapX8  = 8  // XOP with an 8-bit immediate
	mapX9  = 9  // XOP without an immediate
	mapXA  = 10 // XOP with a 32-bit immediate
)

// An encoding is how the opcode was reached.
type encoding uint8

const (
	legacy encoding = iota
	vex
	evex
	xop
)

// x86Code is an instruction's encoding, as far as its length and its flow need
// it. Sources of the format: Intel's manual volume 2 (chapter 2, and the opcode
// maps of appendix A); the APX and AVX10 architecture specifications;
// AMD's manual volume 3 (XOP, 3DNow!, SSE4a).
type x86Code struct {
	bits     int // 64 or 32
	code     []byte
	pos      int // bytes read so far
	enc      encoding
	opsize   bool // 66
	adsize   bool // 67
	rep      byte // the last of F2 and F3, or 0
	segment  byte // 64 or 65, or 0
	rexW     bool
	opmap    int
	opcode   byte
	modrm    byte
	hasModrm bool
	// ref is the displacement of a %rip-relative operand.
	ref    int32
	hasRef bool
	// rel is the displacement of a relative branch.
	rel int64
	bad bool
}

// next returns the next byte, or 0 with bad set at the end.
func (x *x86Code) next() byte {
	if x.pos >= len(x.code) || x.pos >= maxX86 {
		x.bad = true
		return 0
	}
	x.pos++
	return x.code[x.pos-1]
}

// skip passes n bytes by.
func (x *x86Code) skip(n int) {
	if x.pos+n > len(x.code) || x.pos+n > maxX86 {
		x.bad = true
		return
	}
	x.pos += n
}

// signed reads a little-endian number of 1, 2 or 4 bytes.
func (x *x86Code) signed(n int) int64 {
	at := x.pos
	x.skip(n)
	if x.bad {
		return 0
	}
	switch b := x.code[at:]; n {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	default:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
}

// decodeX86 finds the extent of the instruction that code starts with.
func decodeX86(code []byte, bits int) x86Code {
	x := x86Code{bits: bits, code: code}
	x.prefixes()
	if !x.bad {
		x.operands()
	}
	return x
}

// prefixes reads up to and including the opcode.
func (x *x86Code) prefixes() {
	rex := byte(0)
	for !x.bad {
		b := x.next()
		if x.bad {
			return
		}
		if x.bits == 64 && b&0xf0 == 0x40 {
			rex = b
			continue
		}
		switch b {
		case 0x66:
			x.opsize = true
		case 0x67:
			x.adsize = true
		case 0xf2, 0xf3:
			x.rep = b
		case 0x64, 0x65:
			x.segment = b
		case 0xf0, 0x26, 0x2e, 0x36, 0x3e:
		default:
			x.rexW = rex&8 != 0
			x.escape(b)
			return
		}
		rex = 0 // a REX counts only directly before the opcode
	}
}

// escape reads the opcode that starts with b, behind the prefixes.
func (x *x86Code) escape(b byte) {
	switch {
	case b == 0x0f:
		x.twoByte()
	case b == 0xd5 && x.bits == 64:
		payload := x.next()
		x.rexW = payload&8 != 0
		x.opmap = int(payload >> 7)
		x.opcode = x.next()
	case b == 0xc5 && x.vector():
		x.next()
		x.enc, x.opmap = vex, map0F
		x.opcode = x.next()
	case b == 0xc4 && x.vector():
		x.enc, x.opmap = vex, int(x.next()&0x1f)
		x.rexW = x.next()&0x80 != 0
		x.opcode = x.next()
	case b == 0x62 && x.vector():
		x.evex()
	case b == 0x8f && x.pos < len(x.code) && x.code[x.pos]&0x1f >= 8:
		x.enc, x.opmap = xop, int(x.next()&0x1f)
		x.next()
		x.opcode = x.next()
	default:
		x.opmap, x.opcode = map0, b
	}
}

// vector says whether C4, C5 or 62 starts a vector instruction: always in 64-bit code, and
// elsewhere if the next byte is no memory operand. The old instructions of these opcodes need
// one.
func (x *x86Code) vector() bool {
	return x.bits == 64 || x.pos < len(x.code) && x.code[x.pos]>>6 == 3
}

func (x *x86Code) twoByte() {
	x.opmap, x.opcode = map0F, x.next()
	switch x.opcode {
	case 0x38:
		x.opmap, x.opcode = map38, x.next()
	case 0x3a:
		x.opmap, x.opcode = map3A, x.next()
	}
}

func (x *x86Code) evex() {
	p0, p1 := x.next(), x.next()
	x.next()
	x.enc, x.opmap = evex, int(p0&7)
	x.rexW = p1&0x80 != 0
	x.opsize = p1&3 == 1
	x.opcode = x.next()
}

// A form is what follows an opcode: flags that are combined.
type form uint8

const (
	noForm   form = 0
	modrm    form = 1 << iota // a ModRM byte, and what belongs to it
	imm8                      // one byte
	imm16                     // two bytes
	immZ                      // two bytes with 66, otherwise four
	relative                  // the immediate is a branch's displacement
	group3                    // an immediate (imm8 or immZ) only for /0 and /1
	invalid
)

// operands reads what follows the opcode.
func (x *x86Code) operands() {
	f, ok := x.form()
	if !ok || f&invalid != 0 {
		x.bad = true
		return
	}
	if f&modrm != 0 {
		x.memory()
	}
	x.immediates(f)
}

func (x *x86Code) form() (form, bool) {
	switch x.enc {
	case legacy:
		return x.legacyForm()
	case xop:
		switch x.opmap {
		case mapX8:
			return modrm | imm8, true
		case mapX9:
			return modrm, true
		case mapXA:
			x.opsize = false
			return modrm | immZ, true
		}
		return 0, false
	}
	return x.vectorForm()
}

func (x *x86Code) legacyForm() (form, bool) {
	switch x.opmap {
	case map0:
		if x.bits == 64 {
			return one64[x.opcode], true
		}
		return one32[x.opcode], true
	case map0F:
		f := two[x.opcode]
		if x.opcode == 0x78 && (x.opsize || x.rep == 0xf2) {
			f = modrm | imm16 // EXTRQ, INSERTQ: two bytes of immediates
		}
		return f, true
	case map38:
		return modrm, true
	case map3A:
		return modrm | imm8, true
	}
	return 0, false
}

// vectorForm returns the form of an opcode with VEX or EVEX.
func (x *x86Code) vectorForm() (form, bool) {
	switch x.opmap {
	case map0F:
		switch c := x.opcode; {
		case c == 0x77 && x.enc == vex:
			return noForm, true // VZEROUPPER
		case c >= 0x70 && c <= 0x73, c == 0xc2, c >= 0xc4 && c <= 0xc6:
			return modrm | imm8, true
		}
		return modrm, true
	case map38, mapFP5, mapFP6:
		if x.enc == vex && x.opmap != map38 {
			// AMX's complex and transposing instructions are in map 5.
			return modrm, x.opmap == mapFP5
		}
		return modrm, true
	case map3A:
		return modrm | imm8, true
	case mapAPX:
		return apxForm(x.opcode), x.enc == evex
	case map7:
		x.opsize = false
		return modrm | immZ, true
	}
	return 0, false
}

// apxForm returns the form of an opcode of EVEX map 4. APX has moved instructions of the first
// two maps there.
func apxForm(c byte) form {
	switch c {
	case 0x24, 0x2c: // SHLD, SHRD
		return modrm | imm8
	case 0x69, 0x81:
		return modrm | immZ
	case 0x6b, 0x80, 0x83, 0xc0, 0xc1:
		return modrm | imm8
	case 0xf6:
		return modrm | group3 | imm8
	case 0xf7:
		return modrm | group3 | immZ
	}
	return modrm
}

// memory reads a ModRM byte with its SIB byte and displacement.
func (x *x86Code) memory() {
	x.hasModrm, x.modrm = true, x.next()
	mod, rm := x.modrm>>6, x.modrm&7
	// Moves to control and debug registers ignore the mode.
	if mod == 3 || x.enc == legacy && x.opmap == map0F && x.opcode >= 0x20 && x.opcode <= 0x23 {
		return
	}
	if x.bits == 32 && x.adsize {
		x.memory16(mod, rm)
		return
	}
	base := rm
	if rm == 4 {
		base = x.next() & 7
	}
	switch {
	case mod == 0 && rm == 5 && x.bits == 64:
		x.ref, x.hasRef = int32(x.signed(4)), true
	case mod == 0 && base == 5, mod == 2:
		x.skip(4)
	case mod == 1:
		x.skip(1)
	}
}

// memory16 reads the displacement of a 16-bit address.
func (x *x86Code) memory16(mod, rm byte) {
	switch {
	case mod == 0 && rm == 6, mod == 2:
		x.skip(2)
	case mod == 1:
		x.skip(1)
	}
}

func (x *x86Code) immediates(f form) {
	if f&group3 != 0 && x.modrm>>3&7 > 1 {
		return
	}
	if f&relative != 0 {
		x.rel = x.signed(x.relativeSize(f))
		return
	}
	if f&imm8 != 0 {
		x.skip(1)
	}
	if f&imm16 != 0 {
		x.skip(2)
	}
	if f&immZ != 0 {
		x.skip(x.immSize())
	}
	if x.enc == legacy && x.opmap == map0 {
		x.oddImmediates()
	}
}

// relativeSize returns the bytes of a branch's displacement. In 64-bit code 66
// does not make it shorter (on AMD's processors it does; no compiler emits it).
func (x *x86Code) relativeSize(f form) int {
	switch {
	case f&imm8 != 0:
		return 1
	case x.opsize && x.bits == 32:
		return 2
	}
	return 4
}

func (x *x86Code) immSize() int {
	if x.opsize && !x.rexW {
		return 2
	}
	return 4
}

// oddImmediates reads the immediates that only one or two opcodes have.
func (x *x86Code) oddImmediates() {
	switch c := x.opcode; {
	case c >= 0xa0 && c <= 0xa3: // MOV with a whole address; with REX2, JMPABS
		switch {
		case x.bits == 64 && x.adsize, x.bits == 32 && !x.adsize:
			x.skip(4)
		case x.bits == 64:
			x.skip(8)
		default:
			x.skip(2)
		}
	case c >= 0xb8 && c <= 0xbf: // MOV of a whole register
		if x.rexW {
			x.skip(8)
		} else {
			x.skip(x.immSize())
		}
	case c == 0x9a || c == 0xea: // far CALL and JMP
		x.skip(2)
	}
}

// one64 and one32 are the forms of the opcodes of one byte, and two those
// behind 0F.
var one64, one32, two = oneByte(64), oneByte(32), twoBytes()

// oneByte makes the table of one-byte opcodes. Prefixes and escapes do not get
// here, and immediates that few opcodes have are in oddImmediates.
func oneByte(bits int) (t [256]form) {
	set := func(from, to byte, f form) {
		for c := int(from); c <= int(to); c++ {
			t[c] = f
		}
	}
	for c := 0; c < 0x40; c += 8 {
		copy(t[c:], []form{modrm, modrm, modrm, modrm, imm8, immZ, 0, 0})
	}
	t[0x63] = modrm
	t[0x68], t[0x69] = immZ, modrm|immZ
	t[0x6a], t[0x6b] = imm8, modrm|imm8
	set(0x70, 0x7f, imm8|relative)
	t[0x80], t[0x81], t[0x82], t[0x83] = modrm|imm8, modrm|immZ, modrm|imm8, modrm|imm8
	set(0x84, 0x8f, modrm)
	t[0xa8], t[0xa9] = imm8, immZ
	set(0xb0, 0xb7, imm8)
	t[0xc0], t[0xc1], t[0xc2] = modrm|imm8, modrm|imm8, imm16
	t[0xc6], t[0xc7] = modrm|imm8, modrm|immZ
	t[0xc8], t[0xca], t[0xcd] = imm16|imm8, imm16, imm8
	set(0xd0, 0xd3, modrm)
	set(0xd8, 0xdf, modrm)
	set(0xe0, 0xe3, imm8|relative)
	set(0xe4, 0xe7, imm8)
	t[0xe8], t[0xe9], t[0xeb] = immZ|relative, immZ|relative, imm8|relative
	t[0xf6], t[0xf7] = modrm|group3|imm8, modrm|group3|immZ
	t[0xfe], t[0xff] = modrm, modrm
	if bits == 32 {
		t[0x62], t[0xc4], t[0xc5] = modrm, modrm, modrm
		t[0x9a], t[0xea] = immZ, immZ
		t[0xd4], t[0xd5] = imm8, imm8
		return t
	}
	for _, c := range []byte{0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f,
		0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd6, 0xea} {
		t[c] = invalid
	}
	set(0x40, 0x4f, invalid) // prefixes, which REX2 does not precede
	return t
}

// twoBytes makes the table of the opcodes behind 0F.
func twoBytes() (t [256]form) {
	for c := range t {
		t[c] = modrm
	}
	set := func(f form, codes ...byte) {
		for _, c := range codes {
			t[c] = f
		}
	}
	set(noForm, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x0e,
		0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x37, 0x77,
		0xa0, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa,
		0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf)
	set(invalid, 0x04, 0x0a, 0x0c, 0x25, 0x27, 0x36, 0x39, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f)
	set(modrm|imm8, 0x0f, 0x70, 0x71, 0x72, 0x73, 0xa4, 0xac, 0xba, 0xc2, 0xc4, 0xc5, 0xc6)
	for c := 0x80; c <= 0x8f; c++ {
		t[c] = immZ | relative
	}
	return t
}
