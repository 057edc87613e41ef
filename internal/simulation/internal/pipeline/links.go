package pipeline

// links is a core's memory of the stores whose data loads read. If a load has read from one
// store several times, the core takes its data before knowing either address.
//
// How a core learns this is not published. This is what was found on Zen 4, with loops of
// several loads and stores. It distinguishes loads by the outcomes of the last two
// conditional branches, and trusts a load again after seven times.
type links struct {
	entries [1 << linkBits]link
	age     uint32 // entries of another age are forgotten
	history uint64 // outcomes of the latest conditional branches
}

// link is the store of a load.
type link struct {
	load, store uint64 // addresses of the instructions
	age         uint32
	seen        uint8 // consecutive times that it was this one, up to trusted
}

const (
	linkBits     = 12
	linkBranches = 2
	trusted      = 7
)

// branch notes the outcome of a conditional branch.
func (l *links) branch(taken bool) {
	l.history <<= 1
	if taken {
		l.history |= 1
	}
}

// learn reports whether a load takes its value from a store without waiting, and notes that
// store; 0 is none.
func (l *links) learn(load, store uint64) bool {
	key := load<<linkBranches | l.history&(1<<linkBranches-1)
	e := &l.entries[mix(key)>>(64-linkBits)]
	if e.age != l.age {
		*e = link{age: l.age}
	}
	switch {
	case e.load == key && e.store == store:
		if e.seen < trusted {
			e.seen++
			return false
		}
		return store != 0
	case store != 0 || e.load == key:
		*e = link{load: key, store: store, age: l.age}
	}
	return false
}

// forget forgets all stores.
func (l *links) forget() { l.age, l.history = l.age+1, 0 }

// names are the names of addresses: the same for the same registers, unchanged meanwhile, and
// the same displacement. A core compares names before it knows addresses.
type names struct {
	versions [RAX + 16]uint32 // of general registers: how often each was written
	pushed   int64            // what pushes and pops added to RSP since it was written
}

// of returns the name of the address that an op accesses, in its operand or on the stack.
func (n *names) of(op *Op, stack bool) uint64 {
	base, index, disp := op.Base, op.Index, op.Disp
	if stack {
		base, index, disp = RSP, NoRegister, 0
	}
	if base >= RAX+16 || index >= RAX+16 {
		return 0
	}
	if base == RSP {
		disp += n.pushed
	}
	v := uint64(n.versions[base])<<32 | uint64(n.versions[index])
	return mix(v+uint64(disp)<<20) ^ uint64(base)<<16 ^ uint64(index)<<8 ^ uint64(op.Scale)
}

// write notes that an op has written a register.
func (n *names) write(r Register) {
	if r >= RAX+16 {
		return
	}
	if n.versions[r]++; r == RSP {
		n.pushed = 0
	}
}
