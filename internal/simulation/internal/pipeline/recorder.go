package pipeline

import (
	"math/bits"
	"strconv"
)

// A Recorder keeps what a [Machine] did with each instruction: its way through the
// pipeline, the ports that its micro-ops used, and the values that it waited for.
type Recorder struct {
	Records []Record
	Uops    []Uop
	Values  []Value
	Edges   []Edge

	writer [registers]int32 // by register: 1 + the value in it, 0 if it is older
	loaded int32            // the value that the current op has loaded, or none
}

// A Record is an instruction that was executed. Its lists are ranges of the recorder's.
type Record struct {
	Fetched    int64 // out of the cache of decoded instructions
	Dispatched int64
	Executed   int64 // all of it
	Retired    int64

	Slots   int  // at dispatch
	Fused   bool // with the instruction before
	Wait    Wait // what dispatch waited for last
	Blocked bool // a load that a store could not forward to

	Uops   Range
	Values Range
}

// A Range is a part of a list: from First, up to and without End.
type Range struct{ First, End int32 }

// A Uop is a micro-op that used a port.
type Uop struct {
	Kind  UopKind
	Ports Ports // any of these would do
	Port  int8  // the number of the one that it used; -1 if none was reserved
	Ready int64 // its operands were known
	Issue int64
	Hold  int64 // cycles until the port was free again
	Done  int64
}

// A UopKind is what a micro-op does.
type UopKind uint8

// The kinds of micro-ops.
const (
	Computes UopKind = iota
	LoadsData
	StoresAddress
	StoresData
)

// A Wait is what an instruction waited for before dispatch.
type Wait uint8

// What an instruction can wait for. WaitFetch is the front end.
const (
	WaitFetch Wait = iota
	WaitDispatch
	WaitReorder
	WaitLoadQueue
	WaitStoreQueue
	WaitScheduler
	WaitVectorQueue
)

// A Value is a result that later instructions may wait for. It depends on what its Edges
// name.
type Value struct {
	Record int32 // whose it is
	Loaded bool  // by a load; an instruction that also computes has a second value
	Edges  Range
}

// An Edge says that a value is known Latency cycles after another one, at the earliest.
type Edge struct {
	From    int32 // the other value
	Latency int32
	By      Register // that the other value was read from
	Memory  bool     // it was read from memory, where a store put it
	Blocked bool     // and had to reach the cache first
	Aliased bool     // a load of it met a store to the same place of another page
}

// NewRecorder returns a recorder. [Machine.Record] makes a machine use it.
func NewRecorder() *Recorder { return &Recorder{} }

// Reset forgets what was recorded.
func (r *Recorder) Reset() {
	r.Records, r.Uops, r.Values, r.Edges = r.Records[:0], r.Uops[:0], r.Values[:0], r.Edges[:0]
	r.writer = [registers]int32{}
}

// Record lets a recorder see what the machine does from now on; nil ends that.
func (m *Machine) Record(r *Recorder) {
	if m.recorder = r; r == nil {
		return
	}
	for i := range m.memory.queue { // these stores were not recorded
		m.memory.queue[i].value, m.memory.queue[i].from = 0, [2]int32{}
	}
}

// begin starts the record of an instruction.
func (r *Recorder) begin(slots int, fused bool) {
	u, v := int32(len(r.Uops)), int32(len(r.Values))
	r.Records = append(r.Records, Record{Slots: slots, Fused: fused, Uops: Range{u, u}, Values: Range{v, v}})
	r.loaded = 0
}

// end completes it.
func (r *Recorder) end(fetched, dispatched, executed, retired int64) {
	p := r.record()
	p.Fetched, p.Dispatched, p.Executed, p.Retired = fetched, dispatched, executed, retired
	p.Uops.End, p.Values.End = int32(len(r.Uops)), int32(len(r.Values))
}

func (r *Recorder) record() *Record { return &r.Records[len(r.Records)-1] }

// fuse takes back the micro-op of the instruction before, which the current one has fused
// with.
func (r *Recorder) fuse() {
	n := len(r.Records) - 2
	if n < 0 {
		return
	}
	if p := &r.Records[n]; p.Uops.End > p.Uops.First {
		p.Uops.End--
		r.Uops = r.Uops[:p.Uops.End]
		r.record().Uops = Range{p.Uops.End, p.Uops.End}
	}
}

// uop adds a micro-op.
func (r *Recorder) uop(kind UopKind, of, port ports, ready, issue, hold int64) {
	number := int8(-1)
	if port != 0 {
		number = int8(bits.TrailingZeros32(uint32(port)))
	}
	r.Uops = append(r.Uops, Uop{Kind: kind, Ports: of, Port: number, Ready: ready, Issue: issue, Hold: hold, Done: issue + hold})
}

// done sets when the latest micro-op of a kind was done.
func (r *Recorder) done(kind UopKind, at int64) {
	for i := len(r.Uops) - 1; i >= int(r.record().Uops.First); i-- {
		if r.Uops[i].Kind == kind {
			r.Uops[i].Done = at
			return
		}
	}
}

// value starts a value.
func (r *Recorder) value(loaded bool) {
	e := int32(len(r.Edges))
	r.Values = append(r.Values, Value{Record: int32(len(r.Records) - 1), Loaded: loaded, Edges: Range{e, e}})
	if loaded {
		r.loaded = int32(len(r.Values))
	}
}

// wait lets the latest value wait for a register.
func (r *Recorder) wait(by Register, latency int64) {
	if by != NoRegister {
		r.edge(Edge{From: r.writer[by] - 1, Latency: int32(latency), By: by})
	}
}

// edge lets the latest value wait for another one, unless that is older than the record.
func (r *Recorder) edge(e Edge) {
	if e.From < 0 {
		return
	}
	r.Edges = append(r.Edges, e)
	r.Values[len(r.Values)-1].Edges.End = int32(len(r.Edges))
}

// waitLoaded lets the latest value wait for what its instruction has loaded.
func (r *Recorder) waitLoaded(latency int64) {
	r.edge(Edge{From: r.loaded - 1, Latency: int32(latency)})
}

// write says that a register has the latest value.
func (r *Recorder) write(to Register) { r.writer[to] = int32(len(r.Values)) }

// forwarded lets the loaded value wait for a store's. If the load is linked to that store,
// it waits for nothing else.
func (r *Recorder) forwarded(value int32, latency int64, linked, blocked bool) {
	v := &r.Values[len(r.Values)-1]
	if linked {
		r.Edges = r.Edges[:v.Edges.First]
		v.Edges.End = v.Edges.First
	}
	r.edge(Edge{From: value - 1, Latency: int32(latency), Memory: true, Blocked: blocked})
	r.record().Blocked = blocked
}

// Ports is a set of ports, a bit for each of their numbers.
type Ports = ports

// Numbers returns the numbers of the ports, ascending.
func (p Ports) Numbers() []int {
	var list []int
	for rest := p; rest != 0; rest &= rest - 1 {
		list = append(list, bits.TrailingZeros32(uint32(rest)))
	}
	return list
}

// Len returns the number of ports.
func (p Ports) Len() int { return bits.OnesCount32(uint32(p)) }

// PortNames returns the names of the core's ports, in the order of their numbers.
func (c *Core) PortNames() []string { return c.portNames }

// String returns a register's name, as in AT&T's syntax without the sign.
func (r Register) String() string {
	switch {
	case r == NoRegister:
		return ""
	case r <= RDI:
		return [...]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"}[r-RAX]
	case r < Carry:
		return "r" + strconv.Itoa(int(r-RAX))
	case r == Carry:
		return "carry"
	case r == Flags:
		return "flags"
	case r == X87:
		return "st"
	case r < XMM0:
		return "k" + strconv.Itoa(int(r-K0))
	}
	return "xmm" + strconv.Itoa(int(r-XMM0))
}

// computes starts the value that an op computes of the registers that it reads and of what
// it has loaded.
func (r *Recorder) computes(m *Machine, op *Op, k *cost) {
	r.value(false)
	for _, by := range op.reads {
		if by == NoRegister {
			break
		}
		if late := m.lateness(op, by); late < never {
			r.wait(by, int64(k.latency)-late)
		}
	}
	if op.Loads && op.calc != calcString {
		r.waitLoaded(int64(k.latency))
	}
}

// loads starts the value that an op loads.
func (r *Recorder) loads(op *Op, latency int64, stack bool) {
	r.value(true)
	if stack {
		r.wait(RSP, latency)
		return
	}
	r.wait(op.Base, latency)
	r.wait(op.Index, latency)
}

// aliased notes that the latest value's load met a store to the same place of another page.
func (r *Recorder) aliased() {
	v := &r.Values[len(r.Values)-1]
	for i := v.Edges.First; i < v.Edges.End; i++ {
		r.Edges[i].Aliased = true
	}
}

// latest returns 1 + the number of the latest value.
func (r *Recorder) latest() int32 { return int32(len(r.Values)) }

// addressed returns 1 + the numbers of the values in the registers of an op's address.
func (r *Recorder) addressed(op *Op) [2]int32 {
	if op.stack > 0 {
		return [2]int32{r.writer[RSP]}
	}
	return [2]int32{r.writer[op.Base], r.writer[op.Index]}
}
