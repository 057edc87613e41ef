package pipeline

import "slices"

// The cache of decoded micro-ops holds a few lines for 32 aligned bytes of code. Code that
// needs more comes from the legacy decoders: Intel 64 and IA-32 Architectures Optimization
// Reference Manual, on the decoded instruction cache of Sandy Bridge. A line holds so many
// micro-ops, and two branches at most. An instruction is in one line whole, and one of the
// microcode has a line of its own. Constants of 64 bits, which need two places, are not known here.

// microcoded is the least number of micro-ops of an instruction that has a line of its own.
const microcoded = 5

// findCrowded finds the windows of a loop's code that do not fit into the cache.
func (m *Machine) findCrowded(b *Block) {
	m.crowded = m.crowded[:0]
	c := m.core
	if c.lines == 0 || !b.loop {
		return
	}
	var fill lineFill
	before := fusion(noFusion)
	for i := range b.ops {
		op := &b.ops[i]
		window := op.addr / jumpWindow
		if i > 0 && (window != b.ops[i-1].addr/jumpWindow || b.jumps(i-1)) {
			if b.jumps(i-1) || window != fill.window {
				fill = lineFill{}
			}
		}
		fill.window = window
		slots := int(c.costs[op.form].slots)
		if op.conditional && c.fuses[before]&(1<<op.cond) != 0 {
			slots = 0
		}
		before = op.fuses
		if fill.add(slots, op.jumps(), c.lineOps); fill.lines > c.lines && !slices.Contains(m.crowded, window) {
			m.crowded = append(m.crowded, window)
		}
	}
}

// A lineFill is the lines that a window of code has filled so far.
type lineFill struct {
	window               uint64
	lines, ops, branches int
}

// add adds an instruction of some micro-ops to the latest line, or to a new one.
func (f *lineFill) add(slots int, jumps bool, lineOps int) {
	branches := 0
	if jumps {
		branches = 1
	}
	if f.lines == 0 || f.ops+slots > lineOps || f.branches+branches > 2 || slots >= microcoded {
		f.lines, f.ops, f.branches = f.lines+1, 0, 0
	}
	f.ops, f.branches = f.ops+slots, f.branches+branches
	if slots >= microcoded {
		f.ops = lineOps
	}
}
