package disasm

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"sync"

	"golang.org/x/arch/arm64/arm64asm"
)

// arm64 decodes AArch64 code, whose instructions have four bytes, little endian
// on every system.
type arm64 struct{}

func (arm64) Decode(code []byte, addr uint64) Inst {
	if len(code) < 4 {
		return Inst{Addr: addr, Len: len(code), Bad: true}
	}
	i := Inst{Addr: addr, Len: 4}
	w := binary.LittleEndian.Uint32(code)
	var offset int64
	i.Flow, offset = arm64Flow(w)
	if i.HasTarget() {
		i.Target = addr + uint64(offset)
	}
	return i
}

// arm64Flow returns the flow of an instruction, and how far a direct branch
// goes. Source: Arm Architecture Reference Manual, C4.1 (branches, exception
// generating and system instructions).
func arm64Flow(w uint32) (Flow, int64) {
	switch {
	case w>>26 == 0x05:
		return Jump, signed(w, 26) * 4
	case w>>26 == 0x25:
		return Call, signed(w, 26) * 4
	case w>>24 == 0x54, w>>25&0x3f == 0x1a: // B.cond, CBZ, CBNZ
		return CondJump, signed(w>>5, 19) * 4
	case w>>25&0x3f == 0x1b: // TBZ, TBNZ
		return CondJump, signed(w>>5, 14) * 4
	case w>>24 == 0x74: // CB<cond> of two registers or an immediate
		return CondJump, signed(w>>5, 9) * 4
	case w>>25 == 0x6b:
		return arm64Register(w), 0
	case w>>16 == 0, w&0xffe0001f == 0xd4200000: // UDF, BRK
		return Trap, 0
	}
	return Next, 0
}

// arm64Register returns the flow of a branch to a register. Those that
// authenticate the pointer first have another bit 24.
func arm64Register(w uint32) Flow {
	switch w >> 21 & 7 {
	case 0:
		return IndirectJump
	case 1:
		return IndirectCall
	case 2, 4: // RET, ERET
		return Return
	}
	return Next
}

// signed returns the number in the low bits of w.
func signed(w uint32, bits int) int64 {
	return int64(int32(w<<(32-bits)) >> (32 - bits))
}

// arm64Relative is how arm64asm writes an address relative to the instruction.
var arm64Relative = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.[+-]0x[0-9a-f]+$`) })

func (arm64) Text(i Inst, code []byte) string {
	if len(code) < 4 {
		return bytesText(code, len(code))
	}
	inst, err := arm64asm.Decode(code[:4])
	if err != nil {
		return wordText(binary.LittleEndian.Uint32(code))
	}
	text := arm64asm.GNUSyntax(inst)
	for _, a := range inst.Args {
		if rel, ok := a.(arm64asm.PCRel); ok {
			return arm64Relative().ReplaceAllLiteralString(text, fmt.Sprintf("%#x", arm64Target(inst.Op, i.Addr, int64(rel))))
		}
	}
	return text
}

// arm64Target returns the address that an instruction names. ADRP's is of a page.
func arm64Target(op arm64asm.Op, addr uint64, rel int64) uint64 {
	if op == arm64asm.ADRP {
		addr &^= 0xfff
	}
	return addr + uint64(rel)
}

// wordText writes an instruction of four bytes without a known text.
func wordText(w uint32) string { return fmt.Sprintf(".inst %#08x", w) }
