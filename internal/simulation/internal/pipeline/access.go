package pipeline

// access is what the caller knows of an instruction's accesses to memory.
type access struct {
	late, lateStore int64  // how much longer the next load, or store, takes
	load, store     uint64 // the addresses of the next load and store; 0 if they are not known
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

// Now returns the cycle of the latest dispatch.
func (m *Machine) Now() int64 { return m.now }
