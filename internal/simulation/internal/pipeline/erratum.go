package pipeline

import "slices"

// A microcode update of 2019 avoids the erratum of conditional jumps on Skylake and its
// successors until Ice Lake. With it, 32 bytes of code are not cached if a jump crosses
// their end or ends there. A comparison that fuses with the jump is a part of it.
// Source: Intel, Mitigations for Jump Conditional Code Erratum (2019).

// jumpWindow is the bytes of code that are not cached.
const jumpWindow = 32

// findJumps marks the instructions of a path that are in such 32 bytes.
func (b *Block) findJumps() {
	for i := range b.ops {
		op := &b.ops[i]
		if !op.jumps() {
			continue
		}
		start := op.addr
		if i > 0 && op.conditional && b.ops[i-1].fuses != 0 && b.ops[i-1].next() == start {
			start = b.ops[i-1].addr
		}
		if window := start / jumpWindow; op.next()/jumpWindow != window {
			b.crossed = true
			for j := range b.ops {
				b.ops[j].uncached = b.ops[j].uncached || b.ops[j].addr/jumpWindow == window
			}
		}
	}
}

// jumps says whether an op is a jump, a call or a return.
func (o *Op) jumps() bool {
	switch o.Class {
	case CondJump, Jump, IndirectJump, Return, Call, IndirectCall:
		return true
	}
	return false
}

// next returns the address behind an op.
func (o *Op) next() uint64 { return o.addr + uint64(o.code.length) }

// CrossesJumps reports whether a path has a jump that crosses the end of 32 bytes, or ends
// there.
func (b *Block) CrossesJumps() bool { return b.crossed }

// WithErratum returns the core with the microcode update that does not cache such jumps; nil
// if there is none for the core.
func (c *Core) WithErratum() *Core {
	if !c.erratum {
		return nil
	}
	d := *c
	d.uncachesJumps = true
	return &d
}

// decodes says whether an op in a loop comes from the legacy decoders. Once one does, all do
// until a branch is taken.
func (m *Machine) decodes(op *Op) bool {
	crowded := len(m.crowded) > 0
	if !m.core.uncachesJumps && !crowded {
		return false
	}
	if !m.legacy.on && (m.core.uncachesJumps && op.uncached || crowded && slices.Contains(m.crowded, op.addr/jumpWindow)) {
		m.legacy.on = true
		m.legacy.opened, m.legacy.block = max(m.legacy.opened, m.fetched), op.addr>>4
		m.legacy.count, m.legacy.lcps = 0, 0
	}
	return m.legacy.on
}
