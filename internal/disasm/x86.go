package disasm

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// x86 decodes 32-bit and 64-bit code of Intel and AMD processors.
type x86 struct {
	bits   int
	syntax Syntax
}

func (d x86) Decode(code []byte, addr uint64) Inst {
	i := Inst{Addr: addr, Len: min(1, len(code)), Bad: true}
	x := decodeX86(code, d.bits)
	if x.bad {
		return i
	}
	i.Len, i.Bad = x.pos, false
	i.Flow = x.flow()
	if i.HasTarget() {
		i.Target = d.wrap(i.Next() + uint64(x.rel))
	}
	if x.hasRef {
		i.HasRef, i.Ref = true, i.Next()+uint64(int64(x.ref))
	}
	return i
}

// wrap cuts an address to the width of the instruction pointer.
func (d x86) wrap(addr uint64) uint64 {
	if d.bits == 32 {
		return uint64(uint32(addr))
	}
	return addr
}

func (x *x86Code) flow() Flow {
	if x.enc != legacy {
		return Next
	}
	switch x.opmap {
	case map0:
		return x.oneByteFlow()
	case map0F:
		return x.twoByteFlow()
	}
	return Next
}

func (x *x86Code) oneByteFlow() Flow {
	switch c := x.opcode; {
	case c >= 0x70 && c <= 0x7f, c >= 0xe0 && c <= 0xe3:
		return CondJump
	case c == 0xe8:
		return Call
	case c == 0xe9, c == 0xeb:
		return Jump
	case c == 0xc2, c == 0xc3, c == 0xca, c == 0xcb, c == 0xcf:
		return Return
	case c == 0xc7 && x.modrm == 0xf8: // XBEGIN: on abort, to its target
		return Next
	case c == 0xff:
		switch x.modrm >> 3 & 7 {
		case 2, 3:
			return IndirectCall
		case 4, 5:
			return IndirectJump
		}
	case c == 0x9a:
		return IndirectCall
	case c == 0xea:
		return IndirectJump
	}
	return Next
}

func (x *x86Code) twoByteFlow() Flow {
	switch c := x.opcode; {
	case c >= 0x80 && c <= 0x8f:
		return CondJump
	case c == 0x07, c == 0x35: // SYSRET, SYSEXIT
		return Return
	case c == 0x0b, c == 0xb9, c == 0xff: // UD2, UD1, UD0
		return Trap
	}
	return Next
}

func (d x86) Text(i Inst, code []byte) string {
	if i.Len > len(code) {
		return bytesText(code, len(code))
	}
	code = code[:i.Len]
	if text, ok := corrections[string(code)]; ok {
		return text
	}
	if d.bits == 64 {
		if text, ok := d.standIn(i, code); ok {
			return text
		}
	}
	if text, ok := d.known(i, code); ok && !i.Bad {
		return text
	}
	return bytesText(code, i.Len)
}

// known returns the text of an instruction from x86asm, if x86asm finds the same length.
func (d x86) known(i Inst, code []byte) (string, bool) {
	inst, err := x86asm.Decode(code, d.bits)
	if err != nil || inst.Len != len(code) {
		return "", false
	}
	if d.syntax == Intel {
		return d.tidy(x86asm.IntelSyntax(inst, i.Addr, nil), code), true
	}
	return d.tidy(x86asm.GNUSyntax(inst, i.Addr, nil), code), true
}

// corrections are instructions without operands that x86asm does not know or
// takes for others.
var corrections = map[string]string{
	"\xf3\x0f\x1e\xfa": "endbr64",
	"\xf3\x0f\x1e\xfb": "endbr32",
	"\x0f\x01\xee":     "rdpkru",
	"\x0f\x01\xef":     "wrpkru",
	"\xf3\x0f\x01\xea": "saveprevssp",
	"\xf3\x0f\x01\xe8": "setssbsy",
	"\x0f\x01\xe8":     "serialize",
}

// A substitute is an instruction that x86asm knows, with the operands of one that it does not
// know or mistakes.
type substitute struct {
	prefix byte   // 0: none
	opcode string // of the unknown instruction
	reg    int    // the part of its opcode in the ModRM byte, or -1
	memory bool   // whether its operand is in memory, unless reg is -1
	name   string // to write; q or d is appended for % by the width
	like   string // the name that x86asm writes for the substitute
	to     string // opcode of the substitute
	toReg  byte   // its part of the ModRM byte, unless reg is -1
	wide   bool   // operands have 64 bits without REX.W
	keep   bool   // the prefix is one of the substitute as well
}

var substitutes = []substitute{
	{prefix: 0x66, opcode: "\x0f\x38\xf6", reg: -1, name: "adcx", like: "imul", to: "\x0f\xaf"},
	{prefix: 0xf3, opcode: "\x0f\x38\xf6", reg: -1, name: "adox", like: "imul", to: "\x0f\xaf"},
	{opcode: "\x0f\xc7", reg: 6, name: "rdrand", like: "inc", to: "\xff"},
	{prefix: 0x66, opcode: "\x0f\xc7", reg: 6, name: "rdrand", like: "inc", to: "\xff", keep: true},
	{opcode: "\x0f\xc7", reg: 7, name: "rdseed", like: "inc", to: "\xff"},
	{prefix: 0x66, opcode: "\x0f\xc7", reg: 7, name: "rdseed", like: "inc", to: "\xff", keep: true},
	{prefix: 0xf3, opcode: "\x0f\xc7", reg: 7, name: "rdpid", like: "inc", to: "\xff", wide: true},
	{prefix: 0xf3, opcode: "\x0f\x1e", reg: 1, name: "rdssp%", like: "inc", to: "\xff"},
	{prefix: 0xf3, opcode: "\x0f\xae", reg: 5, name: "incssp%", like: "inc", to: "\xff"},
	{prefix: 0x66, opcode: "\x0f\xae", reg: 6, name: "tpause", like: "inc", to: "\xff"},
	{prefix: 0xf2, opcode: "\x0f\xae", reg: 6, name: "umwait", like: "inc", to: "\xff"},
	{prefix: 0xf3, opcode: "\x0f\xae", reg: 6, name: "umonitor", like: "inc", to: "\xff", wide: true},
	{prefix: 0x66, opcode: "\x0f\xae", reg: 6, memory: true, name: "clwb", like: "xsaveopt", to: "\x0f\xae", toReg: 6},
}

// standIn writes an instruction that has a substitute.
func (d x86) standIn(i Inst, code []byte) (string, bool) {
	rest, prefix, rex := code, byte(0), byte(0)
	if rest[0] == 0x66 || rest[0] == 0xf2 || rest[0] == 0xf3 {
		prefix, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 && rest[0]&0xf0 == 0x40 {
		rex, rest = rest[0], rest[1:]
	}
	for _, s := range substitutes {
		operands, ok := strings.CutPrefix(string(rest), s.opcode)
		if !ok || s.prefix != prefix || operands == "" || !s.matches(operands[0]) {
			continue
		}
		text, ok := d.known(i, s.encode(rex, operands))
		return s.spell(rex) + strings.TrimPrefix(text, s.like), ok && strings.HasPrefix(text, s.like)
	}
	return "", false
}

// matches says whether a ModRM byte is the unknown instruction's.
func (s *substitute) matches(modrm byte) bool {
	return s.reg < 0 || int(modrm>>3&7) == s.reg && modrm < 0xc0 == s.memory
}

// encode makes the substitute.
func (s *substitute) encode(rex byte, operands string) []byte {
	var b []byte
	if s.keep {
		b = append(b, s.prefix)
	}
	if s.wide {
		rex |= 0x48
	}
	if rex != 0 {
		b = append(b, rex)
	}
	b = append(append(b, s.to...), operands...)
	if s.reg >= 0 {
		at := len(b) - len(operands)
		b[at] = b[at]&^0x38 | s.toReg<<3
	}
	return b
}

func (s *substitute) spell(rex byte) string {
	name, ok := strings.CutSuffix(s.name, "%")
	switch {
	case !ok:
		return name
	case rex&8 != 0:
		return name + "q"
	}
	return name + "d"
}
