package pipeline

// access is what the caller knows of an instruction's accesses to memory.
type access struct {
	late, lateStore int64    // how much longer the next load, or store, takes
	load, store     uint64   // the addresses of the next load and store; 0 if they are not known
	until           [2]int64 // when their lines arrive that are on their way
	join            int64    // when the line arrives that a load before has asked for
	loads           bool     // value is what the next load has loaded
	value           uint64
}

// Late makes the next load take so many cycles longer, as if it missed the first-level
// cache.
func (m *Machine) Late(cycles int) { m.given.late = int64(cycles) }

// LateStore makes the next store take so many cycles longer, as if it missed the first-level
// cache. The core asks for its line when it has retired.
func (m *Machine) LateStore(cycles int) { m.given.lateStore = int64(cycles) }

// At gives the addresses that the next instruction loads from and stores to; 0 if it does
// not, or if they are not known.
func (m *Machine) At(load, store uint64) { m.given.load, m.given.store = load, store }

// Loads gives what the next instruction loads.
func (m *Machine) Loads(value uint64) { m.given.loads, m.given.value = true, value }

// Until makes the next load and store wait for lines that arrive at some cycle.
func (m *Machine) Until(load, store int64) { m.given.until = [2]int64{load, store} }

// Join makes the next load wait for the line of a load before it, which arrives at some cycle.
func (m *Machine) Join(at int64) { m.given.join = at }

// Filled returns when the line of the latest load arrives that had to wait for one.
func (m *Machine) Filled() int64 { return m.filled }

// Asks returns the address that a prefetch instruction asks for, if its registers are known, and when
// it is.
func (m *Machine) Asks(op *Op) (addr uint64, at int64, ok bool) {
	if op.Base == NoRegister && op.Index == NoRegister || !m.leading().values.knows(op) {
		return 0, 0, false
	}
	return m.leading().values.address(op), m.Addressed(op), true
}

// Addressed returns when the address of an op's load is known, if it were dispatched now.
func (m *Machine) Addressed(op *Op) int64 {
	_, at := m.address(op, m.now+m.core.delay, op.stack < 0)
	return at
}

// Room returns when one fewer line is on its way than the core has room for.
func (m *Machine) Room() int64 { return m.misses.next(1) }

// Miss fetches a line from some cycle on, or as soon as one fewer is on its way. It returns when the
// line arrives.
func (m *Machine) Miss(from, late int64) (arrives int64) {
	arrives = max(from, m.misses.next(1)) + late
	m.misses.put(arrives)
	return arrives
}

// Now returns the cycle of the latest dispatch.
func (m *Machine) Now() int64 { return m.now }

// Stored returns when the latest store reaches the cache.
func (m *Machine) Stored() int64 { return m.memory.committed }

// StoresFrom makes later stores reach the cache at some cycle or later.
func (m *Machine) StoresFrom(at int64) { m.memory.committed = max(m.memory.committed, at) }

// A SameSet is how many cycles pass until a set of the first level of data takes another line; zeros if that
// is not known.
type SameSet struct {
	Line  int64 // after a line
	Dirty int64 // more after one that replaced a line that was written
	Again int64 // more after one that replaced a line which a store in the queue has to write yet
}

// SameSet returns how long lines of a set wait for each other.
func (c *Core) SameSet() SameSet {
	if c == nil {
		return SameSet{}
	}
	return c.sameSet
}

// Past returns the cycles between two stores past the caches. It also returns how many times as long as a line
// that is read theirs takes. Zeros if they are not known.
func (c *Core) Past() (each, line float64) {
	if c == nil {
		return 0, 0
	}
	return c.past[0], c.past[1]
}

// Walkers returns how many page walks the core does at a time. Intel's cores have two since Broadwell, and
// four since Golden Cove. On a Redwood Cove in a virtual machine a load of a page in no TLB took 33 cycles.
// One that waits for the load before took 60.
func (c *Core) Walkers() int {
	if c == nil || c.walkers == 0 {
		return 2
	}
	return c.walkers
}

// AheadLines returns how many lines the prefetcher of the second level looks ahead; 0 if that is not known.
func (c *Core) AheadLines() int {
	if c == nil {
		return 0
	}
	return c.aheadLines
}

// NextLine reports whether the second level fetches the line behind each one of the third.
func (c *Core) NextLine() bool { return c != nil && c.nextLine }

// TLBs returns the entries of the first TLB of data, and of the second one. Next to each is how many a set
// has. They are 0 if they are not known.
func (c *Core) TLBs() (sizes [2][2]int) {
	if c == nil {
		return sizes
	}
	return c.tlbs
}
