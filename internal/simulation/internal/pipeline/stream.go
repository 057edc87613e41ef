package pipeline

// A core may keep the micro-ops of a short loop in the queue in front of dispatch. Then they
// are not fetched again, and the end of an iteration does not end a cycle's micro-ops.

// streams reports whether a block is a loop that comes from the queue.
func (m *Machine) streams(b *Block) bool {
	if !b.loop || b.Jumps() != 1 || m.core.streamed == 0 {
		return false
	}
	return m.core.microOps(b) <= m.core.streamed
}

// Queue says that the code is a loop of so many micro-ops that comes from the queue; 0 is none.
func (m *Machine) Queue(ops int) {
	m.queued, m.streaming = ops > 0, ops > 0 && ops <= m.core.streamed
}

// microOps returns the micro-ops of a block.
func (c *Core) microOps(b *Block) (n int) {
	for i := range b.ops {
		op := &b.ops[i]
		if i == 0 || !op.conditional || c.fuses[b.ops[i-1].fuses]&(1<<op.cond) == 0 {
			n += int(c.costs[op.form].slots)
		}
	}
	return n
}

// Streams returns how many micro-ops a loop from the queue has at most. Its end is mispredicted
// after some taken branches; 0 is never.
func (c *Core) Streams() (ops, taken int) {
	if c == nil {
		return 0, 0
	}
	return c.streams, c.streamEnds
}
