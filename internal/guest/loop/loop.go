// Package loop has work of known length: its machine code says how many instructions it takes,
// and a counter can be held to that.
package loop

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
)

// A Program is an executable file that does nothing but run a loop and exit. It
// has no libraries and no runtime: what it executes in user mode is known to the
// instruction.
type Program struct {
	Loops  uint32 // at least 1, at most [MaxLoops]
	Status uint8  // it exits with
}

// MaxLoops is the most loops that a [Program] can have.
const MaxLoops = math.MaxInt32

// Instructions is how many instructions the program executes on this architecture, the system
// call at its end included.
func (p Program) Instructions() uint64 {
	code, ok := machines[runtime.GOARCH]
	if !ok {
		return 0
	}
	return uint64(code.before+code.after) + 2*uint64(p.Loops)
}

// ELF returns the file for an architecture.
func (p Program) ELF(goarch string) ([]byte, error) {
	m, ok := machines[goarch]
	if !ok {
		return nil, fmt.Errorf("loop: there is no program for %q", goarch)
	}
	if p.Loops == 0 || p.Loops > MaxLoops {
		return nil, fmt.Errorf("loop: %d loops are not from 1 to %d", p.Loops, MaxLoops)
	}
	return m.file(m.code(p)), nil
}

// A machine is an architecture's part of a [Program].
type machine struct {
	elf    uint16 // e_machine
	flags  uint32 // e_flags
	code   func(Program) []byte
	before int // instructions before the loop of two
	after  int
}

var machines = map[string]machine{
	"amd64":   {elf: 62, code: amd64, before: 1, after: 3},
	"arm64":   {elf: 183, code: arm64, before: 2, after: 3},
	"ppc64le": {elf: 21, flags: 2 /* ELFv2 */, code: ppc64le, before: 3, after: 3},
	"riscv64": {elf: 243, code: riscv64, before: 2, after: 3},
}

// file makes an executable of code: a header, one segment that has the whole file,
// and the code. See the System V ABI's "Object Files", or elf(5).
func (m machine) file(code []byte) []byte {
	const (
		header  = 64
		segment = 56
		start   = header + segment
		address = 0x400000
	)
	var b []byte
	u16 := func(n uint16) { b = binary.LittleEndian.AppendUint16(b, n) }
	u32 := func(n uint32) { b = binary.LittleEndian.AppendUint32(b, n) }
	u64 := func(n uint64) { b = binary.LittleEndian.AppendUint64(b, n) }

	b = append(b, "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"...) // 64 bits, little-endian
	u16(2)                                                                      // executable
	u16(m.elf)
	u32(1)
	u64(address + start) // where it begins
	u64(header)          // where the segments are listed
	u64(0)               // no sections
	u32(m.flags)
	u16(header)
	u16(segment)
	u16(1) // segments
	u16(0)
	u16(0)
	u16(0)

	size := uint64(start + len(code))
	u32(1)       // to be loaded
	u32(1 | 4)   // to be read and executed
	u64(0)       // from here in the file
	u64(address) // to there
	u64(address)
	u64(size)
	u64(size)
	u64(0x10000) // no page is larger
	return append(b, code...)
}

func amd64(p Program) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{0xb9}, p.Loops) // mov ecx, loops
	b = append(b, 0x48, 0xff, 0xc9)                              // dec rcx
	b = append(b, 0x75, 0xfb)                                    // jnz -5
	b = append(b, 0xbf, p.Status, 0, 0, 0)                       // mov edi, status
	b = append(b, 0xb8, 60, 0, 0, 0)                             // mov eax, SYS_exit
	return append(b, 0x0f, 0x05)                                 // syscall
}

func arm64(p Program) []byte {
	return words(
		0xd2800000|p.Loops&0xffff<<5,   // mov x0, low half
		0xf2a00000|p.Loops>>16<<5,      // movk x0, high half, lsl 16
		0xf1000400,                     // subs x0, x0, 1
		0x54ffffe1,                     // b.ne -4
		0xd2800000|uint32(p.Status)<<5, // mov x0, status
		0xd2800000|93<<5|8,             // mov x8, SYS_exit
		0xd4000001,                     // svc 0
	)
}

func ppc64le(p Program) []byte {
	return words(
		0x3c600000|p.Loops>>16,      // lis r3, high half
		0x60630000|p.Loops&0xffff,   // ori r3, r3, low half
		0x7c6903a6,                  // mtctr r3
		0x38630001,                  // addi r3, r3, 1
		0x4200fffc,                  // bdnz -4
		0x38600000|uint32(p.Status), // li r3, status
		0x38000001,                  // li r0, SYS_exit
		0x44000002,                  // sc
	)
}

func riscv64(p Program) []byte {
	// The lower 12 bits are added as a signed number.
	return words(
		(p.Loops+0x800)&^0xfff|5<<7|0x37,    // lui t0, upper 20 bits
		p.Loops<<20|5<<15|5<<7|0x1b,         // addiw t0, t0, lower 12 bits
		0xfff00000|5<<15|5<<7|0x13,          // addi t0, t0, -1
		0xfe000000|5<<15|1<<12|0x1d<<7|0x63, // bnez t0, -4
		uint32(p.Status)<<20|10<<7|0x13,     // li a0, status
		93<<20|17<<7|0x13,                   // li a7, SYS_exit
		0x00000073,                          // ecall
	)
}

func words(code ...uint32) []byte {
	var b []byte
	for _, w := range code {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}
