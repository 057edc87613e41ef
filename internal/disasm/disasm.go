// Package disasm decodes machine code into instructions with their successors, and finds the
// basic blocks and loops of a function.
//
// The lengths of instructions come from decoders of this package. So it steps over
// instructions without a known text, and the instructions behind them keep their addresses.
// The text comes from golang.org/x/arch if it agrees on the length, and is the
// instruction's bytes otherwise.
//
//	d, err := disasm.New(disasm.AMD64, disasm.ATT)
//	for len(code) > 0 {
//		i := d.Decode(code, addr)
//		fmt.Printf("%x: %s\n", i.Addr, d.Text(i, code))
//		code, addr = code[i.Len:], i.Next()
//	}
//
// The package knows no files: code comes from the caller.
package disasm

import (
	"errors"
	"fmt"
	"strings"
)

// An Arch is an instruction set, by Go's name for it.
type Arch string

// The instruction sets that can be decoded.
const (
	AMD64   Arch = "amd64"
	I386    Arch = "386"
	ARM64   Arch = "arm64"
	PPC64   Arch = "ppc64"   // big endian
	PPC64LE Arch = "ppc64le" // little endian
	RISCV64 Arch = "riscv64"
)

// A Syntax is a way to write x86 instructions. The other instruction sets have
// one syntax only.
type Syntax int

// The syntaxes.
const (
	ATT   Syntax = iota // source before destination, as GNU's tools do by default
	Intel               // destination first, as Intel's manuals do
)

// String is the syntax as Set takes it.
func (s Syntax) String() string {
	if s == Intel {
		return "intel"
	}
	return "att"
}

// Set makes the syntax that of a name.
func (s *Syntax) Set(name string) error {
	for _, known := range []Syntax{ATT, Intel} {
		if known.String() == name {
			*s = known
			return nil
		}
	}
	return errors.New("must be att or intel")
}

// Type is for flags.
func (s *Syntax) Type() string { return "syntax" }

// A Flow says where an instruction may go next.
type Flow uint8

// The kinds of flow.
const (
	Next         Flow = iota // the next instruction
	Jump                     // Target
	CondJump                 // Target or the next instruction
	IndirectJump             // an address that the instruction does not hold
	Call                     // Target, and back to the next instruction
	IndirectCall             // elsewhere, and back to the next instruction
	Return                   // the caller
	CondReturn               // the caller or the next instruction
	Trap                     // nowhere: an instruction that is there to fail
)

var flowNames = [...]string{"next", "jump", "conditional jump", "indirect jump", "call", "indirect call", "return", "conditional return", "trap"}

func (f Flow) String() string {
	if int(f) < len(flowNames) {
		return flowNames[f]
	}
	return fmt.Sprintf("Flow(%d)", f)
}

// Ends says whether the next instruction is never reached from this one.
func (f Flow) Ends() bool {
	return f == Jump || f == IndirectJump || f == Return || f == Trap
}

// Branches says whether the flow may leave the straight line within a function, so that a
// basic block ends here. Calls return and do not end a block.
func (f Flow) Branches() bool {
	return f.Ends() || f == CondJump || f == CondReturn
}

// An Inst is an instruction.
type Inst struct {
	Addr uint64 // of its first byte
	Len  int    // bytes, at least 1
	Flow Flow
	// Target is where Jump, CondJump and Call go.
	Target uint64
	// Ref is the address of the data that the instruction names relative to
	// itself (x86's %rip), if HasRef.
	Ref    uint64
	HasRef bool
	// Bad says that the bytes are no instruction, or are truncated. Len is then the
	// smallest step of the instruction set, or the length of the code if that is less.
	Bad bool
}

// HasTarget says whether the instruction holds the address that it goes to.
func (i Inst) HasTarget() bool { return i.Flow == Jump || i.Flow == CondJump || i.Flow == Call }

// Next returns the address behind the instruction.
func (i Inst) Next() uint64 { return i.Addr + uint64(i.Len) }

// A Decoder reads the instructions of one instruction set. Decoders have no
// state and may be used concurrently.
type Decoder interface {
	// Decode reads the instruction at the start of code, which lies at addr. It never reads
	// past the end of code. Empty code is a bad instruction of length 0.
	Decode(code []byte, addr uint64) Inst
	// Text writes an instruction whose bytes code starts with. Targets are
	// absolute addresses in hexadecimal.
	Text(i Inst, code []byte) string
}

// New returns the decoder of an instruction set.
func New(arch Arch, syntax Syntax) (Decoder, error) {
	switch arch {
	case AMD64:
		return x86{bits: 64, syntax: syntax}, nil
	case I386:
		return x86{bits: 32, syntax: syntax}, nil
	case ARM64:
		return arm64{}, nil
	case PPC64:
		return ppc64{big: true}, nil
	case PPC64LE:
		return ppc64{}, nil
	case RISCV64:
		return riscv64{}, nil
	}
	return nil, fmt.Errorf("no disassembler for %q", string(arch))
}

// A SymbolAt names the function or object at an address, and says how far the address is
// from its start. It returns "" if there is none.
type SymbolAt func(addr uint64) (name string, offset uint64)

// Annotate returns what GNU's objdump writes behind an instruction: the symbol of its
// target, as <name+0x10>, or the data that it refers to, as # 2010 <name>. It is "" for
// most instructions.
func Annotate(i Inst, symbol SymbolAt) string {
	switch {
	case i.HasTarget():
		return bracket(i.Target, symbol)
	case i.HasRef:
		return strings.TrimRight(fmt.Sprintf("# %x %s", i.Ref, bracket(i.Ref, symbol)), " ")
	}
	return ""
}

func bracket(addr uint64, symbol SymbolAt) string {
	if symbol == nil {
		return ""
	}
	switch name, off := symbol(addr); {
	case name == "":
		return ""
	case off == 0:
		return "<" + name + ">"
	default:
		return fmt.Sprintf("<%s+%#x>", name, off)
	}
}

// bytesText writes an instruction without a known text.
func bytesText(code []byte, n int) string {
	var b strings.Builder
	b.WriteString(".byte")
	for k, c := range code[:min(n, len(code))] {
		if k > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %#02x", c)
	}
	return b.String()
}
