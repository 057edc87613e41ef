package pipeline

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// A Step is an instruction on a path through code, with its bytes.
type Step struct {
	Inst disasm.Inst
	Code []byte
	// Taken says that the next step is not the next instruction.
	Taken bool
}

// NewPath returns a loop of an instruction set. Each of its iterations executes the same
// instructions.
func NewPath(arch disasm.Arch, steps []Step) (*Block, error) {
	d, err := NewDecoder(arch)
	if err != nil {
		return nil, err
	}
	b := &Block{loop: true, arm: d.arm}
	for i := range steps {
		s := &steps[i]
		if s.Inst.Bad {
			return nil, fmt.Errorf("%#x is not an instruction", s.Inst.Addr)
		}
		b.ops = append(b.ops, d.Op(s.Inst, s.Code))
		b.taken = append(b.taken, s.Taken)
	}
	if len(b.ops) == 0 {
		return nil, fmt.Errorf("the path has no instruction")
	}
	b.findJumps()
	return b, nil
}

// jumps says whether an instruction of the block leads to another than the next one.
func (b *Block) jumps(i int) bool {
	if b.taken != nil {
		return b.taken[i]
	}
	return b.loop && i == len(b.ops)-1
}

// Jumps returns how many branches an execution of the block takes.
func (b *Block) Jumps() int {
	n := 0
	for i := range b.ops {
		if b.jumps(i) {
			n++
		}
	}
	return n
}

// Rounds executes a block some more times, after [Machine.Cycles]. from is how often it
// was executed before.
func (m *Machine) Rounds(b *Block, from, count int) {
	for n := range count {
		m.round(b, uint64(from+n))
	}
}

// FetchCycles returns the cycles that the front end alone takes for an execution of a block.
func (m *Machine) FetchCycles(b *Block) float64 {
	const warm, timed = 4, 24
	start := int64(0)
	m.begin(b)
	for n := range warm + timed {
		if n == warm {
			start = m.fetched
		}
		m.shift = 0
		if !b.loop {
			m.shift = uint64(n) * b.size
		}
		for i := range b.ops {
			m.Fetch(&b.ops[i], b.jumps(i))
		}
	}
	m.shift = 0
	return float64(m.fetched-start) / timed
}

// Executions returns how often [Machine.Cycles] has executed its block.
func (m *Machine) Executions() int { return m.rounds }

// Restart makes the machine as new.
func (m *Machine) Restart() {
	core, rings := m.core, [...]ring{m.queue, m.reorder, m.vectorQueue, m.loads, m.stores, m.misses, m.legacy.waiting}
	*m = Machine{core: core}
	for i := range rings {
		clear(rings[i].times)
		rings[i].at = 0
	}
	m.queue, m.reorder, m.vectorQueue, m.loads, m.stores, m.misses, m.legacy.waiting = rings[0], rings[1], rings[2], rings[3], rings[4], rings[5], rings[6]
	m.values.start()
}
