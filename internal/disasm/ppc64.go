package disasm

import (
	"encoding/binary"

	"golang.org/x/arch/ppc64/ppc64asm"
)

// ppc64 decodes Power code: words of four bytes, and since POWER10 pairs of
// words whose first is a prefix.
type ppc64 struct{ big bool }

func (d ppc64) order() binary.ByteOrder {
	if d.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (d ppc64) Decode(code []byte, addr uint64) Inst {
	if len(code) < 4 {
		return Inst{Addr: addr, Len: len(code), Bad: true}
	}
	i := Inst{Addr: addr, Len: 4}
	w := d.order().Uint32(code)
	if w>>26 == 1 {
		if len(code) < 8 {
			i.Bad = true
			return i
		}
		i.Len = 8
		return i
	}
	i.Flow, i.Target = ppc64Flow(w, addr)
	return i
}

// ppc64Flow returns the flow of an instruction and the target of a direct
// branch. Source: Power ISA 3.1, Book I, chapter 2 (branch facility) and 3.3.11
// (trap).
func ppc64Flow(w uint32, addr uint64) (Flow, uint64) {
	always := w>>21&0x14 == 0x14 // BO: neither the condition nor the counter matters
	link := w&1 != 0
	base := addr
	if w&2 != 0 { // AA: the displacement is the address
		base = 0
	}
	switch w >> 26 {
	case 18:
		if link {
			return Call, base + uint64(signed(w&^3, 26))
		}
		return Jump, base + uint64(signed(w&^3, 26))
	case 16:
		return ppc64Conditional(base+uint64(signed(w&^3, 16)), addr, always, link)
	case 19:
		return ppc64Register(w>>1&0x3ff, always, link), 0
	case 31:
		if w == 0x7fe00008 { // tw 31,0,0: trap always
			return Trap, 0
		}
	}
	return Next, 0
}

func ppc64Conditional(target, addr uint64, always, link bool) (Flow, uint64) {
	switch {
	case link && target == addr+4: // reads the address of the next instruction
		return Next, 0
	case link:
		return Call, target
	case always:
		return Jump, target
	}
	return CondJump, target
}

// ppc64Register returns the flow of a branch to a register, by its extended opcode: link
// (bclr), count (bcctr) or target (bctar).
func ppc64Register(xo uint32, always, link bool) Flow {
	switch {
	case xo != 16 && xo != 528 && xo != 560:
		return Next
	case link:
		return IndirectCall
	case xo == 16 && always:
		return Return
	case xo == 16:
		return CondReturn
	case always:
		return IndirectJump
	}
	return CondReturn // a conditional jump to a register: elsewhere, or next
}

func (d ppc64) Text(i Inst, code []byte) string {
	if i.Bad || len(code) < i.Len {
		return bytesText(code, i.Len)
	}
	inst, err := ppc64asm.Decode(code[:i.Len], d.order())
	if err != nil || inst.Len != i.Len {
		return d.longText(i, code)
	}
	return ppc64asm.GNUSyntax(inst, i.Addr)
}

func (d ppc64) longText(i Inst, code []byte) string {
	text := wordText(d.order().Uint32(code))
	if i.Len == 8 {
		text += "; " + wordText(d.order().Uint32(code[4:]))
	}
	return text
}
