//go:build linux

package calibrate

import (
	"bytes"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// costsHere are the figures that only x86 has.
func costsHere() []cost {
	return []cost{{
		name: "length-changing-prefix", title: "prefix that changes an instruction's length: extra", unit: "cycles/stall",
		programs: prefixes,
	}}
}

// Instructions of four bytes for the decoders. The operand-size prefix of the first changes
// its length: its constant has two bytes instead of four. The second has a prefix as well,
// which leaves the length as it is.
var (
	testWord = []byte{0x66, 0xa9, 0x34, 0x12} // test ax, 0x1234
	cmpQuad  = []byte{0x48, 0x83, 0xf8, 0x12} // cmp rax, 0x12
)

// decoded is the number of instructions: more than any cache of decoded instructions holds
// (Zen 4 has the largest, 6750), so that the decoders are needed. They fit the first
// instruction cache of 32 KiB.
const decoded = 7500

// prefixes returns programs for code that is written when it is needed. It would make the
// executable larger by 60 kB.
func prefixes(*places) (program, []program, error) {
	with, err := code(bytes.Repeat(testWord, decoded))
	if err != nil {
		return program{}, nil, err
	}
	without, err := code(bytes.Repeat(cmpQuad, decoded))
	if err != nil {
		return program{}, nil, err
	}
	return program{run: loopCode, a: with, ops: decoded}, []program{{run: loopCode, a: without, ops: decoded}}, nil
}

// code returns executable memory with instructions, followed by a return. The process keeps
// it until its end.
func code(instructions []byte) (unsafe.Pointer, error) {
	const ret = 0xc3
	m, err := unix.Mmap(-1, 0, len(instructions)+1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err == nil {
		copy(m, instructions)
		m[len(instructions)] = ret
		err = unix.Mprotect(m, unix.PROT_READ|unix.PROT_EXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("no memory for code: %w", err)
	}
	return unsafe.Pointer(&m[0]), nil
}
