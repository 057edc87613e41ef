package disasm

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/riscv64/riscv64asm"
)

// riscv64 decodes 64-bit RISC-V code with compressed instructions.
type riscv64 struct{}

func (riscv64) Decode(code []byte, addr uint64) Inst {
	i := Inst{Addr: addr, Len: riscvLen(code)}
	if i.Len == 0 || i.Len > len(code) {
		return Inst{Addr: addr, Len: min(2, len(code)), Bad: true}
	}
	switch i.Len {
	case 2:
		i.Flow, i.Target = riscvCompressed(binary.LittleEndian.Uint16(code), addr)
	case 4:
		i.Flow, i.Target = riscvWord(binary.LittleEndian.Uint32(code), addr)
	}
	return i
}

// riscvLen returns the length that the first bits of an instruction state, or 0
// for those reserved. Source: RISC-V unprivileged specification, 1.5 (expanded
// instruction-length encoding).
func riscvLen(code []byte) int {
	if len(code) < 2 {
		return 0
	}
	switch w := code[0]; {
	case w&3 != 3:
		return 2
	case w&0x1c != 0x1c:
		return 4
	case w&0x3f == 0x1f:
		return 6
	case w&0x7f == 0x3f:
		return 8
	}
	return 0
}

// linkRegister says whether a register holds a return address by convention: ra
// or t0, the alternate one.
func linkRegister(r uint32) bool { return r == 1 || r == 5 }

// riscvWord returns the flow of an instruction of four bytes, and its target.
func riscvWord(w uint32, addr uint64) (Flow, uint64) {
	rd, rs1 := w>>7&31, w>>15&31
	switch w & 0x7f {
	case 0x63:
		return CondJump, addr + uint64(riscvBranch(w))
	case 0x6f:
		if rd == 0 {
			return Jump, addr + uint64(riscvJump(w))
		}
		return Call, addr + uint64(riscvJump(w))
	case 0x67:
		switch {
		case rd != 0:
			return IndirectCall, 0
		case linkRegister(rs1):
			return Return, 0
		}
		return IndirectJump, 0
	case 0x73:
		switch w {
		case 0x00100073: // EBREAK
			return Trap, 0
		case 0x10200073, 0x30200073: // SRET, MRET
			return Return, 0
		}
	}
	return Next, 0
}

// riscvBranch and riscvJump put the bits of the B and J formats in order.
func riscvBranch(w uint32) int64 {
	return signed(w>>31<<12|w>>7&1<<11|w>>25&0x3f<<5|w>>8&0xf<<1, 13)
}

func riscvJump(w uint32) int64 {
	return signed(w>>31<<20|w>>12&0xff<<12|w>>20&1<<11|w>>21&0x3ff<<1, 21)
}

// riscvCompressed returns the flow of an instruction of two bytes.
func riscvCompressed(h uint16, addr uint64) (Flow, uint64) {
	w := uint32(h)
	switch w&3<<3&0x18 | w>>13 {
	case 1<<3 | 5: // C.J
		return Jump, addr + uint64(signed(w>>12&1<<11|w>>11&1<<4|w>>9&3<<8|w>>8&1<<10|w>>7&1<<6|w>>6&1<<7|w>>3&7<<1|w>>2&1<<5, 12))
	case 1<<3 | 6, 1<<3 | 7: // C.BEQZ, C.BNEZ
		return CondJump, addr + uint64(signed(w>>12&1<<8|w>>10&3<<3|w>>5&3<<6|w>>3&3<<1|w>>2&1<<5, 9))
	case 2<<3 | 4:
		return riscvCompressedRegister(w), 0
	}
	if w == 0 { // defined to be illegal
		return Trap, 0
	}
	return Next, 0
}

// riscvCompressedRegister returns the flow of C.JR, C.JALR and C.EBREAK, which
// share their opcode with C.MV and C.ADD.
func riscvCompressedRegister(w uint32) Flow {
	rs1, rs2, link := w>>7&31, w>>2&31, w>>12&1 != 0
	switch {
	case rs2 != 0:
		return Next
	case rs1 == 0 && link:
		return Trap
	case link:
		return IndirectCall
	case linkRegister(rs1):
		return Return
	}
	return IndirectJump
}

func (riscv64) Text(i Inst, code []byte) string {
	if i.Bad || len(code) < i.Len || i.Len > 4 {
		return bytesText(code, i.Len)
	}
	inst, err := riscv64asm.Decode(code[:i.Len])
	if err != nil || inst.Len != i.Len {
		return bytesText(code, i.Len)
	}
	text := riscv64asm.GNUSyntax(inst)
	if i.HasTarget() { // the displacement is the last operand
		if at := strings.LastIndexAny(text, ", "); at >= 0 {
			return text[:at+1] + fmt.Sprintf("%#x", i.Target)
		}
	}
	return text
}
