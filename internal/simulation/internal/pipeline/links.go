package pipeline

// links is a core's memory of the stores whose data loads read. If a load has read from the
// same store several times, the core takes that store's data for the load's value before it
// knows either address.
//
// How a core learns this is not published. This is what was found on Zen 4, with loops of
// several loads and stores. It distinguishes loads by the outcomes of the last two
// conditional branches, and trusts a load again after seven times.
type links struct {
	entries [1 << linkBits]link
	history uint64 // outcomes of the latest conditional branches
}

// link is the store of a load.
type link struct {
	load, store uint64 // addresses of the instructions
	seen        uint8  // consecutive times that it was this one, up to trusted
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

// learn reports whether a load's value is taken from a store without waiting, and notes the
// store that it came from; 0 is none.
func (l *links) learn(load, store uint64) bool {
	key := load<<linkBranches | l.history&(1<<linkBranches-1)
	e := &l.entries[mix(key)>>(64-linkBits)]
	switch {
	case e.load == key && e.store == store:
		if e.seen < trusted {
			e.seen++
			return false
		}
		return store != 0
	case store != 0 || e.load == key:
		*e = link{load: key, store: store}
	}
	return false
}

// forget forgets all stores.
func (l *links) forget() { *l = links{} }
