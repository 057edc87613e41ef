package pipeline

import "slices"

// A Machine executes ops on a core. It allocates nothing meanwhile.
type Machine struct {
	core *Core

	fetchState
	legacy    legacyState
	uncached  bool // the code comes from the legacy decoders
	queued    bool // it comes from the queue
	streaming bool // likewise, and the end of an iteration ends no cycle: see streams
	dispatchState
	accessState
	retireState
	units units
	bound binding

	recorder *Recorder // nil for none
	freedom  Freedom
	rounds   int // executions of the latest block

	ready   [registers]int64 // when the value of each register is known
	summed  uint64           // registers with a sum of floating point
	values  values
	aliases aliases
	banks   banks
	crowded []uint64 // windows of code that are not cached: see findCrowded
	before  previous
	stacked bool     // RSP has been changed by pushes and pops since it was used
	leader  *Machine // see Follow
	told    told
	shift   uint64 // from the addresses of ops to those of the copy that is executed
}

// fetchState is the state of the front end.
type fetchState struct {
	fetched   int64  // the cycle of the latest op's coming out of the cache of decoded ones
	fetches   int    // how many did in that cycle
	width     int    // how many may
	predicted int64  // when the address of the latest op's code was predicted
	paired    bool   // the latest op was a nop that took no room
	line      uint64 // of the latest op's code
	queue     ring
}

// dispatchState is the state of dispatch and of the schedulers.
type dispatchState struct {
	now              int64 // the cycle of the latest dispatch
	dispatches       int   // in that cycle
	slot             int   // of the current op in its cycle
	reorder          ring
	waiting, vectors queues
	vectorQueue      ring
	within           ports // of the scheduler of the current op's computation
	access           int   // the scheduler of its access to memory
	accessWithin     ports // of that one
	accessed         int64 // when it leaves that one
	pending          int64 // until when the current op is a pending load
	entered          int64 // when the latest op left the queue of vectors for a scheduler
}

// accessState is the state of loads and stores.
type accessState struct {
	loads, stores, misses ring
	memory                memory
	links                 links
	names                 names
	linkedNow             int64  // how many loads were, in that cycle
	linkedAt              int64  // when a load was linked to a store last
	unlocked              int64  // when the next locked instruction can be executed
	fills                 int64  // the lines on their way since the one before
	filled                int64  // see Filled
	loaded                uint32 // general registers that hold a loaded value
	given                 access
}

// retireState is the state of retirement.
type retireState struct {
	retired int64 // the cycle of the latest retirement
	retires int   // in that cycle
	waited  int64 // for the latest op, to be seen at the next one
}

// previous is the instruction before, for a jump that fuses with it.
type previous struct {
	fuses        fusion
	ready, issue int64
	port, within ports
}

// NewMachine returns a machine that has executed nothing.
func NewMachine(c *Core) *Machine {
	m := &Machine{}
	m.Start(c)
	return m
}

// Start makes it a machine that has executed nothing, on another core.
func (m *Machine) Start(c *Core) {
	*m = Machine{core: c}
	m.queue, m.reorder, m.vectorQueue = newRing(c.queue), newRing(c.reorder), newRing(c.vectorQueue)
	m.loads, m.stores, m.misses = newRing(c.loadQueue), newRing(c.storeQueue), newRing(c.misses)
	m.legacy.waiting = newRing(c.predecoded)
	m.values.start()
	m.width = c.fetch
}

// A told is what a machine tells those that follow it of its latest op: the addresses, and the stores that the load
// overlaps with, or would but for their page. Both are numbers of stores; 0 is none.
type told struct{ load, store, found, alias uint64 }

// Follow makes it a machine that executes what another one has executed just before. That does not
// depend on time, so the other one alone follows values and addresses.
func (m *Machine) Follow(leader *Machine) { m.leader = leader }

// leading is the machine that follows values.
func (m *Machine) leading() *Machine {
	if m.leader != nil {
		return m.leader
	}
	return m
}

// Reset ends all execution in progress, and forgets the contents of registers, as if much time
// had passed. It keeps what the core has learned of the program.
func (m *Machine) Reset() {
	m.advance(max(m.retired, m.memory.committed) + 1)
	m.fetched, m.predicted, m.retired, m.fetches = m.now, m.now, m.now, 0
	m.legacy.opened, m.legacy.cycle, m.uncached = m.now, m.now, false
	m.before, m.paired, m.given, m.waited = previous{}, false, access{}, 0
	m.aliases, m.waiting.first = aliases{}, 0
	m.values.start()
}

// Execute executes an instruction and returns the cycles that a sampler would see at it:
// their sum is the time that passes. Cycles of waiting for an instruction's execution are
// seen at the next one. taken says that a branch was taken, and mispredicted that it was
// mispredicted.
func (m *Machine) Execute(op *Op, taken, mispredicted bool) float64 {
	k := m.costOf(op)
	fused, slots := m.slots(op, k)
	if m.recorder != nil {
		m.recorder.begin(slots, fused)
	}
	m.fetch(op, slots, fused)
	fetched := m.fetched
	slots += m.core.unlaminated(op, k)
	scheduler := m.dispatch(op, k, slots)
	done := m.execute(op, k, fused, scheduler)
	retired := m.retire(op, done, slots)
	m.given = access{}
	if m.recorder != nil {
		m.recorder.end(fetched, m.now, done, m.retired)
	}
	if op.conditional {
		m.links.branch(taken)
	}
	m.follow(op, done, taken, mispredicted)
	return retired
}

// slots returns whether an op is one with the op before, and the micro-ops that it is at
// dispatch.
func (m *Machine) slots(op *Op, k *cost) (fused bool, slots int) {
	fused = op.conditional && m.core.fuses[m.before.fuses]&(1<<op.cond) != 0
	slots = int(k.slots) + m.synchronize(op)
	if fused {
		slots = 0
	}
	if op.Class == Nop && m.core.nops {
		if m.paired = !m.paired; m.paired {
			slots = 0
		}
	} else {
		m.paired = false
	}
	return fused, slots
}

// synchronize returns the micro-ops that correct RSP before an op that uses it. Pushes and
// pops count it apart: Intel's optimization manual, section 2.5.2.5 on the stack
// pointer tracker.
func (m *Machine) synchronize(op *Op) int {
	if !m.core.syncs {
		return 0
	}
	if op.stack != 0 {
		m.stacked = true
		return 0
	}
	if !m.stacked || op.Class == Leave || !op.uses(RSP) {
		return 0
	}
	m.stacked = false
	m.ready[RSP] = max(m.ready[RSP], m.now) + 1
	return 1
}

// uses says whether an op reads or writes a register, or has it in an address.
func (o *Op) uses(register Register) bool {
	return (o.Loads || o.Stores) && (o.Base == register || o.Index == register) ||
		slices.Contains(o.reads[:], register) || slices.Contains(o.writes[:], register)
}

// fetch finds when the op comes out of the cache of decoded ones. A cycle gives ops of one
// line of code.
func (m *Machine) fetch(op *Op, slots int, fused bool) {
	if m.core.decoders > 0 && (m.uncached || m.decodes(op)) {
		if at := m.decode(op, slots, fused); at > m.fetched {
			m.fetched = at
		}
		if slots > 0 {
			m.fetched = max(m.fetched, m.queue.next(1))
		}
		m.legacy.cycle = max(m.legacy.cycle, m.fetched)
		return
	}
	line := (op.addr + m.shift) >> m.core.line
	if m.fetches += slots; m.fetches > m.width || line != m.line && !m.queued {
		if m.fetches > slots { // not the first in this cycle
			m.fetched++
		}
		m.fetches = slots
	}
	m.line = line
	if slots == 0 {
		return
	}
	if room := m.queue.next(1); room > m.fetched {
		m.fetched, m.fetches = room, slots
	}
}

// follow finds when the next code can be fetched.
func (m *Machine) follow(op *Op, done int64, taken, mispredicted bool) {
	c := m.core
	switch {
	case mispredicted:
		m.fetched, m.fetches = done+int64(c.refill), 0
		m.predicted = m.fetched
	case taken && m.streaming: // one branch in a cycle, but no break
		if m.predicted = max(m.predicted+1, m.fetched); m.predicted > m.fetched {
			m.fetched, m.fetches = m.predicted, 0
		}
	case taken:
		m.legacy.on = false
		m.paired = true // a nop behind it takes room
		m.predicted = max(m.predicted+1, m.fetched-int64(c.ahead))
		if op.Class == Call || op.Class == IndirectCall {
			m.predicted += int64(c.callBubble)
		}
		m.fetched, m.fetches = max(m.fetched+1, m.predicted), 0
	}
}

// dispatch finds when the reorder buffer, the queues and a scheduler have room for the op, and
// returns the scheduler.
func (m *Machine) dispatch(op *Op, k *cost, slots int) (scheduler int) {
	at := m.fetched
	if slots > 0 {
		at = max(at, m.reorder.next(slots))
	}
	if op.Loads {
		at = max(at, m.loads.next(1))
	}
	if op.Stores {
		at = max(at, m.stores.next(1))
	}
	home := ports(0)
	if slots > 0 { // else it is fused with the op before
		home = m.core.home(op, k)
	}
	apart := home&m.core.vectorPorts != 0
	if apart {
		at = max(at, m.vectorQueue.next(1))
	}
	if m.recorder != nil {
		m.recorder.record().Wait = m.waits(op, slots, at, apart)
	}
	m.advance(at)
	if op.Loads {
		m.pend()
	}
	scheduler, m.access = noScheduler, noScheduler
	if home != 0 && !apart {
		before := m.now
		if m.core.inTurn {
			scheduler = m.takeTurn(op, k, home)
		} else {
			scheduler = m.schedule(home)
		}
		if m.recorder != nil && m.now > before {
			m.recorder.record().Wait = WaitScheduler
		}
	}
	m.slot = m.dispatches
	m.dispatches += slots
	for m.dispatches > m.core.dispatch {
		left := m.dispatches - m.core.dispatch
		m.advance(m.now + 1)
		m.dispatches = left
	}
	if slots > 0 {
		m.queue.put(m.now)
	}
	if apart {
		scheduler = m.enter(home)
	}
	return scheduler
}

// pend waits for room for one more load that has no address or data yet.
func (m *Machine) pend() {
	for m.core.pendingLoads > 0 && m.waiting.used[pending] >= m.core.pendingLoads {
		m.advance(m.now + 1)
		if m.recorder != nil {
			m.recorder.record().Wait = WaitLoadQueue
		}
	}
}

// waits returns what an op waits for that can be dispatched at a cycle.
func (m *Machine) waits(op *Op, slots int, at int64, apart bool) Wait {
	switch {
	case at <= m.now:
		return WaitDispatch
	case at == m.fetched:
		return WaitFetch
	case slots > 0 && at == m.reorder.next(slots):
		return WaitReorder
	case op.Loads && at == m.loads.next(1):
		return WaitLoadQueue
	case op.Stores && at == m.stores.next(1):
		return WaitStoreQueue
	case apart && at == m.vectorQueue.next(1):
		return WaitVectorQueue
	}
	return WaitDispatch
}

// noScheduler is that of ops that need no port.
const noScheduler = -1

// schedule returns a scheduler that feeds some of a set of ports, and waits until it has room.
func (m *Machine) schedule(home ports) int {
	for {
		if i := m.waiting.choose(m.core.schedulers, home); i != noScheduler {
			return i
		}
		m.advance(m.now + 1)
	}
}

// takeTurn returns the scheduler of an op's computation: the next in turn, after it waited for
// room there. It finds one for the access to memory, too.
func (m *Machine) takeTurn(op *Op, k *cost, home ports) int {
	if op.Loads || op.Stores {
		m.access = m.schedule(m.core.accessPorts(op))
	}
	if k.ops == 0 {
		return noScheduler
	}
	for {
		if i := m.waiting.next(m.core.schedulers, home); i != noScheduler {
			return i
		}
		m.advance(m.now + 1)
	}
}

// enter returns the scheduler that an op enters from the queue of vectors, after it waited
// for room.
func (m *Machine) enter(home ports) int {
	at := max(m.entered, m.now)
	m.vectors.advance(m.entered, at)
	m.entered = at
	for {
		if i := m.vectors.choose(m.core.vectorSchedulers, home); i != noScheduler {
			m.vectorQueue.put(m.entered)
			return i
		}
		m.vectors.advance(m.entered, m.entered+1)
		m.entered++
	}
}

// advance lets time pass until a cycle.
func (m *Machine) advance(to int64) {
	if to <= m.now {
		return
	}
	m.waiting.advance(m.now, to)
	m.units.advance(m.now, to)
	if m.core.binds {
		m.bound.advance(m.now, to)
	}
	m.now, m.dispatches = to, 0
}

// execute finds when the op is done, and when its result is known.
func (m *Machine) execute(op *Op, k *cost, fused bool, scheduler int) (done int64) {
	start := m.now + m.core.delay
	apart := k.ports&m.core.vectorPorts != 0 && scheduler != noScheduler
	ready := m.operands(op, k, apart, scheduler)
	issue, value := max(start, ready), int64(0)
	if op.Loads {
		issue, value, done = m.load(op, start)
		if op.calc != calcString { // string instructions: the pointers move on without it
			ready = max(ready, value)
		}
	}
	if k.leastLatency > 0 {
		d := m.divided(op, k)
		k = &d
	}
	latency := int64(k.latency)
	if op.Scale > 1 && op.Index != NoRegister && (op.Class == LEA || op.Class == LEAComplex) {
		latency += m.core.scaled
	}
	result := ready + latency
	if m.recorder != nil {
		m.recorder.computes(m, op, k)
	}
	if k.ops > 0 {
		var last int64
		issue, last = m.issue(op, k, ready, fused)
		result = max(issue+latency, last+1)
		issue = max(issue, last)
		if m.recorder != nil {
			m.recorder.done(Computes, result)
		}
	} else {
		m.before.port = 0 // the port of an earlier op, which the jump must not give back
	}
	m.before.fuses, m.before.within = op.fuses, m.within
	if op.Loads && m.core.loadsApart {
		m.before.fuses = 0
	}
	m.noteLoaded(op)
	m.noteSum(op)
	known := max(result, value) // later than result of string instructions only
	for _, r := range op.writes {
		if r == NoRegister {
			break
		}
		m.ready[r] = known
		m.names.write(r)
		if m.recorder != nil {
			m.recorder.write(r)
		}
		if op.calc == calcString && pointer(r) {
			m.ready[r] = result
		}
	}
	done = max(done, result)
	if op.Stores {
		data := known
		if op.Class == IndirectCall { // the return address is known before the target
			data = start
		}
		placed, stored := m.store(op, start, data)
		issue, done = max(issue, placed), max(done, stored)
	} else if m.leader == nil {
		m.values.compute(op)
	}
	m.leave(apart, scheduler, issue)
	if op.back != NoRegister {
		m.writeBack(op, start)
	}
	return done
}

// leave notes when an op leaves its schedulers.
func (m *Machine) leave(apart bool, scheduler int, issue int64) {
	switch {
	case apart:
		m.vectors.add(scheduler, m.entered, issue)
	case scheduler != noScheduler:
		m.waiting.add(scheduler, m.now, issue+m.core.held)
	}
	if m.access != noScheduler {
		m.waiting.add(m.access, m.now, m.accessed+m.core.held)
	}
	if m.pending > 0 && m.core.pendingLoads > 0 {
		m.waiting.add(pending, m.now, m.pending+m.core.held)
	}
	m.pending = 0
}

// writeBack changes the base of an op's address: a cycle after the base is known.
func (m *Machine) writeBack(op *Op, start int64) {
	if m.recorder != nil {
		m.recorder.value(false)
		m.recorder.wait(op.back, 1)
		m.recorder.write(op.back)
	}
	m.ready[op.back] = m.known(op, op.back, start) + 1
	m.values.registers[op.back] += uint64(op.backBy)
}

// lateness returns how much later an op needs a register than its other operands.
func (m *Machine) lateness(op *Op, r Register) int64 {
	late := m.core.lateness(op, r)
	if op.Class == FAdd && m.summed>>r&1 != 0 {
		late += m.core.sums
	}
	return late
}

// noteSum notes which vector registers hold sums of floating point.
func (m *Machine) noteSum(op *Op) {
	if m.core.sums == 0 {
		return
	}
	for _, r := range op.writes {
		switch {
		case r == NoRegister:
			return
		case op.Class == FAdd && r >= XMM0 && r < 64:
			m.summed |= 1 << r
		default:
			m.summed &^= 1 << r
		}
	}
}

// noteLoaded notes which general registers hold what was loaded and not changed since.
func (m *Machine) noteLoaded(op *Op) {
	if m.core.chased == 0 {
		return
	}
	for _, r := range op.writes {
		switch {
		case r == NoRegister:
			return
		case r > RAX+15:
		case op.Class == Load && r != RSP:
			m.loaded |= 1 << r
		case op.Class == Move && m.loaded&(1<<op.second) != 0:
			m.loaded |= 1 << r
		default:
			m.loaded &^= 1 << r
		}
	}
}

// pointer says whether a register is one that string instructions count with.
func pointer(r Register) bool { return r == RSI || r == RDI || r == RCX }

// operands finds when the op's source registers are known, and the ports of the scheduler that
// it waits in.
func (m *Machine) operands(op *Op, k *cost, apart bool, scheduler int) (ready int64) {
	ready, m.within = m.now+m.core.delay, 0
	switch {
	case apart:
		ready, m.within = m.entered+1, m.core.vectorSchedulers[scheduler].ports
	case scheduler != noScheduler:
		m.within = m.core.schedulers[scheduler].ports
	}
	if m.accessWithin = m.within; m.access != noScheduler {
		m.accessWithin = m.core.schedulers[m.access].ports
	}
	if k.ops == 0 {
		ready = m.now // done while it is renamed
	}
	for _, r := range op.reads {
		if r == NoRegister {
			break
		}
		if m.waitsFor(op, r) {
			ready = max(ready, m.ready[r]-m.lateness(op, r))
		}
	}
	return ready
}

// issue finds when the first and the last micro-op go to an execution port.
func (m *Machine) issue(op *Op, k *cost, ready int64, fused bool) (first, last int64) {
	p := &m.before
	if fused && p.port != 0 {
		m.units.release(p.issue, p.port)
		if m.core.binds {
			m.bound.remove(p.port, m.now, p.issue)
		}
		ready = p.ready
		if m.recorder != nil {
			m.recorder.fuse()
		}
	}
	hold := int64(max(k.hold, 1))
	hold *= m.passes(op)
	p.ready = ready
	reached := reach(k.ports, m.within)
	if fused && m.core.fused != 0 && p.fuses != fuseTest && p.fuses != fuseCompare {
		reached = reach(m.core.fused, p.within)
	}
	if k.unit != 0 {
		ready, _ = m.reserve(Computes, ready, k.unit, k.unit, hold)
		hold = 1
	}
	if op.Class == Locked {
		ready = max(ready, m.unlocked+min(m.fills, mostFills)*m.core.lockFill)
		m.fills = 0
	}
	p.issue, p.port = m.reserve(Computes, ready, k.ports, reached, hold)
	if op.Class == Locked {
		if m.unlocked = p.issue + hold; op.writes[0] != NoRegister && op.writes[0] < Carry {
			m.unlocked += m.core.lockValue
		}
	}
	for i := 1; i < int(k.ops); i++ {
		m.slot++
		reached := k.portsOf(i)
		if m.core.inTurn && reached&m.core.vectorPorts == 0 {
			if s := m.waiting.next(m.core.schedulers, reached); s != noScheduler {
				reached = reach(reached, m.core.schedulers[s].ports)
			}
		}
		at, _ := m.reserve(Computes, ready, k.portsOf(i), reached, hold)
		last = max(last, at)
	}
	return p.issue, last
}

// reserve reserves a port for a micro-op, of those that its scheduler reaches. If the core
// binds micro-ops at dispatch, the port does not depend on when ports are free.
func (m *Machine) reserve(kind UopKind, ready int64, of, reached ports, hold int64) (issue int64, port ports) {
	if m.core.binds {
		if kind == LoadsData {
			reached = m.bound.alternate(reached)
		} else {
			reached = m.bound.choose(reached, m.slot)
		}
	}
	issue, port = m.units.reserve(ready, reached, hold)
	if m.core.binds {
		m.bound.add(reached, m.now, issue)
	}
	if m.recorder != nil {
		m.recorder.uop(kind, of, port, ready, issue, hold)
	}
	return issue, port
}

// reach returns those of some ports that a scheduler feeds, or all if it feeds none.
func reach(of, within ports) ports {
	if of&within != 0 {
		return of & within
	}
	return of
}

// passes returns how often an op goes through a port that is narrower than it.
func (m *Machine) passes(op *Op) int64 {
	if op.vector && op.Width > m.core.vector {
		return int64(op.Width / m.core.vector)
	}
	return 1
}

// load finds when a load is executed, when its value is known to its users, and when it is
// done.
func (m *Machine) load(op *Op, start int64) (issue, value, done int64) {
	c := m.core
	addr, known := m.address(op, start, op.stack < 0)
	ports, latency := c.loads, c.load
	if op.vector {
		ports, latency = c.vectorLoads, c.vectorLoad
	}
	if c.chased > 0 && op.stack == 0 && !op.vector && op.Index == NoRegister && op.Disp >= 0 && op.Disp < 2048 && m.loaded&(1<<op.Base) != 0 {
		latency = c.chased
	}
	if op.Index != NoRegister && (op.Scale > 1 || op.Disp != 0 && op.Base != NoRegister) {
		latency += c.indexed
	}
	issue, _ = m.reserve(LoadsData, known, ports, reach(ports, m.accessWithin), m.passes(op))
	m.accessed, m.pending = issue, issue
	if m.leader != nil {
		addr = m.leader.told.load
	} else if m.given.load != 0 {
		addr = m.given.load
		m.values.locate(op, addr, op.stack < 0)
	}
	m.told.load = addr
	if c.banked {
		issue = m.replayed(issue, addr, ports)
	}
	value = issue + int64(latency)
	if late := m.given.late; late > 0 {
		value = max(value, m.misses.next(1)) + late
		m.misses.put(value)
		m.fills++
	}
	if at := m.given.until[0] + int64(latency); at > value {
		value = max(at, m.misses.next(1))
		m.misses.put(value)
		m.fills++
	}
	m.filled = value - int64(latency)
	value = max(value, m.given.join+int64(latency))
	late := m.aliasing(op, addr, issue)
	value += late
	done = value
	if m.recorder != nil {
		if m.recorder.loads(op, value-issue, op.stack < 0); late > 0 {
			m.recorder.aliased()
		}
	}
	value, done = m.receive(op, addr, issue, value, done)
	if m.recorder != nil {
		m.recorder.done(LoadsData, value)
	}
	if op.Class == Leave {
		m.ready[RSP] = known
	}
	if m.leader == nil {
		m.values.receive(op, addr, &m.given)
	}
	return issue, value, done
}

// aliasing returns how much later a load is that meets a store to the same place of another page.
func (m *Machine) aliasing(op *Op, addr uint64, issue int64) int64 {
	if m.core.alias > 0 {
		if m.told.alias = m.leading().told.alias; m.leader == nil {
			m.told.alias = m.memory.alias(addr, op.Size)
		}
		if s, _ := m.memory.at(m.told.alias); s != nil && issue-1 <= s.placed && s.placed <= issue+1 {
			return m.core.alias
		}
	}
	return 0
}

// receive finds when a load's value is known, and when it is done, if it is a recent store's.
func (m *Machine) receive(op *Op, addr uint64, issue, value, done int64) (int64, int64) {
	if m.told.found = m.leading().told.found; m.leader == nil {
		m.told.found = m.memory.find(addr, op.Size)
	}
	s, after := m.memory.at(m.told.found)
	linked := m.linked(op, s, addr, after)
	if op.stack < 0 {
		m.names.pushed -= int64(op.stack)
	}
	if s == nil || !m.forwards(op) {
		return value, done
	}
	if s.commit > issue && op.Class != Locked { // what those take has it in it
		value = m.forward(op, s, addr, value)
		if m.core.forwarding != 0 && !linked && !op.vector {
			value, _ = m.units.reserve(value, m.core.forwarding, 1)
		}
		done = max(done, value)
	}
	if linked {
		value = m.link(op, s)
		if m.recorder != nil {
			m.recorder.forwarded(s.value, 0, true, false)
		}
	}
	return value, done
}

// address returns the address that an op accesses, in its operand or on the stack,
// and when it is known.
func (m *Machine) address(op *Op, start int64, stack bool) (addr uint64, known int64) {
	if stack {
		return m.values.registers[RSP], m.known(op, RSP, start)
	}
	return m.values.address(op), m.known(op, op.Index, m.known(op, op.Base, start))
}

// known returns when an op knows a register, from a cycle on.
func (m *Machine) known(op *Op, r Register, from int64) int64 {
	if m.waitsFor(op, r) {
		return max(from, m.ready[r])
	}
	return from
}

// linked reports whether the core uses a store's data for a load before it knows the
// addresses. It does so for whole general registers.
func (m *Machine) linked(op *Op, s *storeEntry, addr, after uint64) bool {
	if m.core.renames == 0 || op.vector || op.Size < 4 && (op.Size != 1 || !m.core.renamesBytes) || op.Index != NoRegister && !m.core.renamesIndexed || op.calc == calcString || op.Class != Load && op.Class != Leave && !op.Stores {
		return false
	}
	if s == nil || s.commit <= m.now || after >= m.core.renames || s.addr != addr || s.vector || !s.covers(addr, op.Size) {
		return m.links.learn(op.addr, 0)
	}
	if m.uncached && m.core.named {
		return s.name == m.names.of(op, op.stack < 0)
	}
	return m.links.learn(op.addr, s.by)
}

// link finds when a load has the data of a store that it is linked to.
func (m *Machine) link(op *Op, s *storeEntry) int64 {
	if op.Stores {
		return max(m.now, s.data)
	}
	if m.linkedNow++; m.linkedNow >= m.core.links || m.now > m.linkedAt {
		m.linkedAt, m.linkedNow = max(m.linkedAt+1, m.now), 0
	}
	return max(m.linkedAt, s.data)
}

// forward finds when a load's value is known that overlaps with a store on its way to the
// cache.
func (m *Machine) forward(op *Op, s *storeEntry, addr uint64, value int64) int64 {
	c := m.core
	latency, known := int64(c.forward), max(s.data, s.placed)
	m.pending = max(m.pending, known)
	covers := s.covers(addr, op.Size)
	switch {
	case !covers:
		latency = max(s.commit+int64(c.blocked)-known, 0)
	case op.vector:
		latency = int64(c.vectorForward)
	}
	if m.recorder != nil && covers {
		m.recorder.forwarded(s.value, latency, false, false)
		for _, v := range s.from {
			m.recorder.edge(Edge{From: v - 1, Latency: int32(latency) + 1, Memory: true})
		}
	} else if m.recorder != nil {
		m.recorder.forwarded(s.value, known-s.data+latency, false, true)
	}
	return max(value, known+latency)
}

// store finds when a store's address is computed, and when it and the data are known.
func (m *Machine) store(op *Op, start, data int64) (placed, done int64) {
	c := m.core
	if op.stack > 0 {
		m.values.registers[RSP] -= uint64(op.stack)
		m.names.pushed -= int64(op.stack)
	}
	addr, known := m.address(op, start, op.stack > 0)
	if op.calc == calcString {
		addr, known = m.values.registers[RDI], max(start, m.ready[RDI])
	}
	if m.leader != nil {
		addr = m.leader.told.store
	} else if m.given.store != 0 {
		addr = m.given.store
		m.values.locate(op, addr, op.stack > 0)
	}
	m.told.store = addr
	ports := c.data
	if op.vector {
		ports = c.vectorData
	}
	addresses := c.addresses
	if op.Index != NoRegister && c.indexedAddresses != 0 {
		addresses = c.indexedAddresses
	}
	a, _ := m.reserve(StoresAddress, known, addresses, reach(addresses, m.accessWithin), 1)
	d, _ := m.reserve(StoresData, max(start, data), ports, ports, m.passes(op))
	s := storeEntry{by: op.addr, addr: addr, size: op.Size, vector: op.vector, data: data}
	if m.recorder != nil {
		s.value, s.from = m.recorder.latest(), m.recorder.addressed(op)
	}
	s.placed = a
	if !op.Loads {
		m.accessed = a
		if !op.vector { // it gives its data as well, of a general register
			m.accessed = max(a, d)
		}
	}
	if m.uncached && c.named {
		s.name = m.names.of(op, op.stack > 0)
	}
	s.joins = !op.vector || c.vectorData&(c.vectorData-1) != 0
	if m.memory.add(s); m.leader == nil {
		m.memory.note()
		m.values.store(addr, m.values.compute(op)&low(op.Size), op.Size)
	}
	return a, max(a, d) + 1
}

// retire finds when the op is retired, and returns the cycles that are seen at it.
func (m *Machine) retire(op *Op, done int64, slots int) float64 {
	before := m.retired
	if done+1 > m.retired {
		m.retired, m.retires = done+1, 0
	}
	for m.retires += slots; m.retires > m.core.retire; m.retires -= m.core.retire {
		m.retired++
	}
	if m.core.callEnds && (op.Class == Call || op.Class == IndirectCall) {
		m.retires = m.core.retire
	}
	for range min(slots, len(m.reorder.times)) {
		m.reorder.put(m.retired)
	}
	if op.Loads {
		m.loads.put(m.retired)
	}
	if op.Stores {
		m.stores.put(m.memory.enters(&m.core.memoryUnits, m.retired, m.arrives()) + m.core.storeHeld)
	}
	return float64(m.seen(m.retired-before, before, slots))
}

// arrives finds when the line of a store that misses is in the cache. Stores in the queue
// ask for their lines early, as many at a time as there is room for misses.
func (m *Machine) arrives() int64 {
	if m.given.lateStore == 0 && m.given.until[1] <= m.retired {
		return 0
	}
	at := max(m.given.until[1], max(m.retired, m.misses.next(1))+m.given.lateStore)
	m.misses.put(at)
	m.fills++
	return at
}

// mostFills is how many lines a locked instruction waits for at most. Those before have arrived.
const mostFills = 4

// seen returns the cycles that a sampler would see at the op, of those since the retirement
// before. An interrupt waits for the oldest op in execution, and is seen at the next one.
// If there is none, as after a mispredicted branch, it is seen at the next op to come.
func (m *Machine) seen(passed, before int64, slots int) int64 {
	if slots == 0 { // fused with the op before
		m.waited += passed
		return 0
	}
	idle := min(max(m.now-before, 0), passed)
	seen := idle + m.waited
	m.waited = passed - idle
	return seen
}
