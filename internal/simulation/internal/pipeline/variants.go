package pipeline

import "slices"

// A Freedom is what a machine need not wait for: the answer to "what if". The zero value
// changes nothing.
type Freedom struct {
	Ports      bool // every micro-op finds its port free
	Forwarding bool // every load that reads a recent store has its data at once
	// Dependence is a register that the instruction at an address does not wait for.
	Dependence Dependence
}

// A Dependence is that of an instruction on a register, or on the data that it loads.
type Dependence struct {
	Addr     uint64
	Register Register
	Memory   bool
}

// Free lets the machine not wait for something.
func (m *Machine) Free(f Freedom) { m.freedom, m.units.ideal = f, f.Ports }

// waitsFor says whether an op has to wait for a register.
func (m *Machine) waitsFor(op *Op, r Register) bool {
	d := &m.freedom.Dependence
	return r != NoRegister && (d.Register != r || d.Addr != op.addr)
}

// forwards says whether a load has to wait for the data of a store.
func (m *Machine) forwards(op *Op) bool {
	d := &m.freedom.Dependence
	return !m.freedom.Forwarding && (!d.Memory || d.Addr != op.addr)
}

// Fetch lets the front end alone fetch an op, and returns its cycle from the cache of decoded
// instructions. taken says that a branch was taken.
func (m *Machine) Fetch(op *Op, taken bool) int64 {
	fused, slots := m.slots(op, &m.core.costs[op.form])
	m.fetch(op, slots, fused)
	m.before.fuses = op.fuses
	m.follow(op, m.fetched, taken, false)
	return m.fetched
}

// Retired returns the cycle of the latest retirement.
func (m *Machine) Retired() int64 { return m.retired }

// Dispatch and Retire return how many micro-ops the core dispatches and retires in a cycle.
func (c *Core) Dispatch() int { return c.dispatch }

// Retire returns how many micro-ops the core retires in a cycle.
func (c *Core) Retire() int { return c.retire }

// Reorder returns the micro-ops between dispatch and retirement.
func (c *Core) Reorder() int { return c.reorder }

// ample is how often larger a queue is that never fills.
const ample = 64

// WithQueue returns the core with a much larger queue: the one that an op waits for.
func (c *Core) WithQueue(w Wait) *Core {
	d := *c
	switch w {
	case WaitReorder:
		d.reorder *= ample
	case WaitLoadQueue:
		d.loadQueue *= ample
		d.pendingLoads = 0
	case WaitStoreQueue:
		d.storeQueue *= ample
	case WaitVectorQueue:
		d.vectorQueue *= ample
		d.vectorSchedulers = larger(c.vectorSchedulers)
	case WaitScheduler:
		d.schedulers = larger(c.schedulers)
	}
	return &d
}

func larger(list []scheduler) []scheduler {
	list = slices.Clone(list)
	for i := range list {
		list[i].size *= ample
	}
	return list
}

// WithPort returns the core with one more port, called name, for all that a port of some
// can do. It returns nil if a core cannot have more ports.
func (c *Core) WithPort(twins Ports, name string) *Core {
	if len(c.portNames) >= 32 || c.binds && len(c.portNames) >= maxBound {
		return nil
	}
	d, more := *c, ports(1)<<len(c.portNames)
	d.portNames = append(slices.Clone(c.portNames), name)
	add := func(p *ports) {
		if *p&twins != 0 {
			*p |= more
		}
	}
	for i := range d.costs {
		add(&d.costs[i].ports)
		if len(c.costs[i].others) > 0 {
			d.costs[i].others = slices.Clone(c.costs[i].others)
		}
		for j := range d.costs[i].others {
			add(&d.costs[i].others[j])
		}
	}
	for _, p := range []*ports{&d.loads, &d.vectorLoads, &d.addresses, &d.indexedAddresses, &d.fused, &d.data, &d.vectorData, &d.vectorPorts} {
		add(p)
	}
	d.schedulers, d.vectorSchedulers = slices.Clone(c.schedulers), slices.Clone(c.vectorSchedulers)
	for i := range d.schedulers {
		add(&d.schedulers[i].ports)
	}
	for i := range d.vectorSchedulers {
		add(&d.vectorSchedulers[i].ports)
	}
	return &d
}
