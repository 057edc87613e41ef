package pipeline

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// A Block is code that is executed again and again: as a loop, whose last instruction jumps
// back, or as copies one behind the other.
type Block struct {
	ops   []Op
	taken []bool // by instruction: the path jumps there; nil if only the last one does
	size  uint64 // bytes of a copy
	loop  bool
}

// blockStart is the address of a block's code.
const blockStart = 0x10000

// NewBlock decodes the code of a block. The error names the first byte that is no
// instruction.
func NewBlock(code []byte, loop bool) (*Block, error) {
	b := &Block{size: uint64(len(code)), loop: loop}
	list, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		return nil, err
	}
	d, err := NewDecoder(disasm.AMD64)
	if err != nil {
		return nil, err
	}
	for at := 0; at < len(code); {
		i := list.Decode(code[at:], blockStart+uint64(at))
		if i.Bad {
			return nil, fmt.Errorf("byte %d is no instruction", at)
		}
		b.ops = append(b.ops, d.Op(i, code[at:]))
		at += i.Len
	}
	if len(b.ops) == 0 {
		return nil, fmt.Errorf("the block has no instruction")
	}
	return b, nil
}

// Ops returns the instructions of a block.
func (b *Block) Ops() []Op { return b.ops }

// Instructions executed before a block is timed, and while it is timed, at least.
const (
	warmOps  = 1000
	timedOps = 800
)

// Alias lets all general registers and all memory hold the same number when a block starts,
// as in the measurements of BHive: Y. Chen and others, "BHive: a benchmark suite and
// measurement framework for validating x86-64 basic block performance models" (IISWC 2019).
// Otherwise different registers are taken to point to different memory.
func (m *Machine) Alias(same bool) {
	if m.values.same = 0; same {
		m.values.same = 0x2324000
	}
}

// Cycles returns the cycles per execution of a block that is executed for long.
func (m *Machine) Cycles(b *Block) float64 {
	m.Reset()
	m.links.forget()
	m.uncached = !b.loop
	warm, timed := rounds(b)
	for n := range warm {
		m.round(b, uint64(n))
	}
	start := m.retired
	for n := range timed {
		m.round(b, uint64(warm+n))
	}
	return float64(m.retired-start) / float64(timed)
}

// rounds returns how often a block is executed before it is timed, and while it is timed.
func rounds(b *Block) (warm, timed int) { return warmOps/len(b.ops) + 8, timedOps/len(b.ops) + 24 }

// round executes a block once. Copies of unrolled code have addresses of their own.
func (m *Machine) round(b *Block, n uint64) {
	m.shift = 0
	if !b.loop {
		m.shift = n * b.size
	}
	for i := range b.ops {
		m.Execute(&b.ops[i], b.jumps(i), false)
	}
	m.shift = 0
}
