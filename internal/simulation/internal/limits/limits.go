// Package limits says how long a block of code takes when executed again and again, and what
// limits it: the front end, the width of dispatch or retirement, ports, the divider, a chain of
// dependences, or a full queue.
//
//	b, err := pipeline.NewBlock(code, true)
//	a := limits.Analyse(pipeline.CoreOf("amdzen4"), b, limits.Options{})
//	fmt.Println(a.Cycles, a.Limits[0])
//
// The cycles come from executing the block on a [pipeline.Machine]. The limits come from
// what the machine did in some iterations of the steady state. Each limit has cycles of its
// own: the time of an iteration if there were no other limit. So the second one says what an
// improvement of the first can gain at most.
package limits

import (
	"cmp"
	"slices"
	"sync"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A Kind is what limits a block.
type Kind string

// The kinds of limits.
const (
	FrontEnd Kind = "front end"
	// Branches are taken branches: the front end goes through one in a cycle.
	Branches   Kind = "taken branches"
	Dispatch   Kind = "dispatch"
	Retirement Kind = "retirement"
	Ports      Kind = "ports"
	Divider    Kind = "divider"
	Chain      Kind = "chain"
	// Forwarding is loads that wait until a store has reached the cache, which cannot
	// forward its data to them.
	Forwarding Kind = "store forwarding"
	Queue      Kind = "queue"
	// Conflicts are micro-ops that get a port later than an ideal order would give it.
	Conflicts Kind = "port conflicts"
	// Together says that several limits delay each other.
	Together Kind = "several together"
)

// rank is the order of limits with the same cycles: first the one that code can change.
var rank = []Kind{Chain, Forwarding, Divider, Ports, Dispatch, Retirement, FrontEnd, Branches}

// rank orders limits with the same cycles. A chain of nothing but a loop's counter is the
// last: to unroll the loop removes it.
func (a *analyser) rank(k Kind) int {
	if k == Chain && !slices.ContainsFunc(a.out.Chain, func(l Link) bool { return !a.out.Instructions[l.Instruction].Traits.Counts }) {
		return len(rank)
	}
	return slices.Index(rank, k)
}

// A Limit is a bound on the cycles of an iteration.
type Limit struct {
	Kind   Kind
	Cycles float64 // of an iteration, if nothing else limited it
	Ports  []string
	Queue  string // that is full
}

// A Link is an instruction of a chain: it waits for the one before in the list, the first
// for the last.
type Link struct {
	Instruction int
	Latency     float64 // cycles that it adds
	By          string  // the register that it waits for, or "memory"
	Blocked     bool    // it waits until a store has reached the cache
	Aliased     bool    // it meets a store to the same place of another page
	Address     bool    // it waits for the address of a load
	Dependence  pipeline.Dependence
}

// An Instruction is an instruction of the block on the core. Counts are of one iteration.
type Instruction struct {
	Slots   float64
	Fused   bool      // with the instruction before
	Ports   []float64 // use of each port
	Latency float64   // from its operands to its result; of loads included
	Trust   pipeline.Trust
	Traits  pipeline.Traits
	Chained bool // it is in the chain
}

// An Analysis is what the model says about a block on a core.
type Analysis struct {
	Core   string
	Cycles float64 // of an iteration
	// Limits are in descending order of their cycles, but for the first: it is what
	// limits the block.
	Limits       []Limit
	Chain        []Link
	ChainSpan    int // iterations that the chain goes through before it repeats
	Ports        []string
	PortUse      []float64 // busy cycles of each port in an iteration
	Slots        float64   // micro-ops dispatched in an iteration
	Instructions []Instruction
	Blocked      int // loads that a store cannot forward to
}

// Options say how much to analyse.
type Options struct {
	Freedom pipeline.Freedom // what instructions need not wait for
	// Explain finds out by further runs why a block takes longer than any one limit.
	// Without it, the largest limit is named.
	Explain bool
}

// An analyser analyses blocks one after the other.
type analyser struct {
	core  *pipeline.Core
	block *pipeline.Block
	rec   *pipeline.Recorder
	n     int     // instructions of the block
	iters int     // recorded iterations
	fetch float64 // cycles of the front end alone
	out   *Analysis
	spare *pipeline.Machine
}

// recorded is how many instructions are recorded, about, and the least and most iterations.
const (
	recordedOps   = 160
	leastRecorded = 4
	mostRecorded  = 12
)

// Analyse executes a block on a core and says what limits it.
func Analyse(core *pipeline.Core, b *pipeline.Block, o Options) *Analysis {
	n := unused.Get().(*Analyser)
	defer unused.Put(n)
	n.start(core)
	return n.Analyse(b, o)
}

// unused are analysers between two uses: a machine has 330 kB.
var unused = sync.Pool{New: func() any {
	return &Analyser{machine: &pipeline.Machine{}, spare: &pipeline.Machine{}, rec: pipeline.NewRecorder()}
}}

// An Analyser analyses blocks on a core, one after the other. The result for a block does
// not depend on those before.
type Analyser struct {
	core    *pipeline.Core
	machine *pipeline.Machine
	spare   *pipeline.Machine // of further runs
	rec     *pipeline.Recorder
	used    bool
}

// New returns an analyser for a core.
func New(core *pipeline.Core) *Analyser {
	n := unused.New().(*Analyser)
	n.start(core)
	return n
}

func (n *Analyser) start(core *pipeline.Core) {
	n.core, n.used = core, false
	n.machine.Start(core)
}

// Analyse executes a block and says what limits it.
func (n *Analyser) Analyse(b *pipeline.Block, o Options) *Analysis {
	m := n.machine
	if n.used {
		m.Restart()
	}
	n.used = true
	m.Free(o.Freedom)
	n.rec.Reset()
	a := &analyser{core: n.core, block: b, rec: n.rec, n: len(b.Ops()), out: &Analysis{Core: n.core.Name, Ports: n.core.PortNames()}, spare: n.spare}
	a.out.Cycles = m.Cycles(b)
	a.iters = min(max(recordedOps/a.n, leastRecorded), mostRecorded)
	m.Record(a.rec)
	m.Rounds(b, m.Executions(), a.iters)
	m.Record(nil)
	m.Free(pipeline.Freedom{})
	m.Reset()
	a.fetch = m.FetchCycles(b)
	a.instructions()
	a.bounds()
	a.chain(o.Freedom)
	sorting.Stable(a.out.Limits, func(x, y Limit) int {
		return cmp.Or(cmp.Compare(y.Cycles, x.Cycles), a.rank(x.Kind)-a.rank(y.Kind))
	})
	a.explain(o)
	return a.out
}

// instructions sums up what each instruction used.
func (a *analyser) instructions() {
	out, rec, per := a.out, a.rec, 1/float64(a.iters)
	out.Instructions = make([]Instruction, a.n)
	out.PortUse = make([]float64, len(out.Ports))
	blocked := make([]bool, a.n)
	for i := range rec.Records {
		r, k := &rec.Records[i], &out.Instructions[i%a.n]
		if k.Ports == nil {
			k.Ports = make([]float64, len(out.Ports))
		}
		k.Slots += float64(r.Slots) * per
		k.Fused = k.Fused || r.Fused
		out.Slots += float64(r.Slots) * per
		blocked[i%a.n] = blocked[i%a.n] || r.Blocked
		for _, u := range rec.Uops[r.Uops.First:r.Uops.End] {
			if u.Port >= 0 {
				k.Ports[u.Port] += float64(u.Hold) * per
				out.PortUse[u.Port] += float64(u.Hold) * per
			}
		}
		k.Latency = max(k.Latency, a.latency(r))
	}
	ops := a.block.Ops()
	for i := range ops {
		out.Instructions[i].Trust, out.Instructions[i].Traits = a.core.Trust(&ops[i]), ops[i].Traits()
		if blocked[i] {
			out.Blocked++
		}
	}
}

// latency returns the longest way from an operand of an instruction to its result.
func (a *analyser) latency(r *pipeline.Record) float64 {
	loaded, most := int32(0), int32(0)
	for _, v := range a.rec.Values[r.Values.First:r.Values.End] {
		slowest := int32(0)
		for _, e := range a.rec.Edges[v.Edges.First:v.Edges.End] {
			slowest = max(slowest, e.Latency)
		}
		if v.Loaded {
			loaded = slowest
		} else {
			most = max(most, loaded+slowest)
		}
	}
	return float64(max(most, loaded))
}

// bounds finds the limits that are rates.
func (a *analyser) bounds() {
	out := a.out
	add := func(k Kind, cycles float64) {
		if cycles > 0 {
			out.Limits = append(out.Limits, Limit{Kind: k, Cycles: cycles})
		}
	}
	fetch := a.fetch
	if fetch <= float64(a.block.Jumps()) {
		add(Branches, fetch)
	} else {
		add(FrontEnd, fetch)
	}
	add(Dispatch, out.Slots/float64(a.core.Dispatch()))
	add(Retirement, out.Slots/float64(a.core.Retire()))
	if l := a.portLimit(); l.Cycles > 0 {
		out.Limits = append(out.Limits, l)
	}
}

// maxUnions bounds the sets of ports that are looked at.
const maxUnions = 1 << 12

// portLimit finds the group of ports that takes longest: the micro-ops that can only go to
// ports of the group, divided by its size.
func (a *analyser) portLimit() Limit {
	type demand struct{ hold, divides float64 }
	uses := map[pipeline.Ports]demand{}
	ops := a.block.Ops()
	for i := range a.rec.Records {
		r := &a.rec.Records[i]
		for _, u := range a.rec.Uops[r.Uops.First:r.Uops.End] {
			d := uses[u.Ports]
			d.hold += float64(u.Hold)
			if ops[i%a.n].Divides() && u.Kind == pipeline.Computes {
				d.divides += float64(u.Hold)
			}
			uses[u.Ports] = d
		}
	}
	unions := map[pipeline.Ports]bool{}
	for p := range uses {
		for u := range unions {
			if len(unions) < maxUnions {
				unions[u|p] = true
			}
		}
		unions[p] = true
	}
	best, limit := pipeline.Ports(0), Limit{Kind: Ports}
	for u := range unions {
		sum, divides := 0.0, 0.0
		for p, d := range uses {
			if p&^u == 0 {
				sum, divides = sum+d.hold, divides+d.divides
			}
		}
		cycles := sum / float64(u.Len()) / float64(a.iters)
		if cycles > limit.Cycles+1e-9 || cycles > limit.Cycles-1e-9 && smaller(u, best) {
			best, limit.Cycles, limit.Kind = u, cycles, Ports
			if divides > sum/2 {
				limit.Kind = Divider
			}
		}
	}
	for _, n := range best.Numbers() {
		limit.Ports = append(limit.Ports, a.out.Ports[n])
	}
	return limit
}

// smaller orders groups of ports that take equally long.
func smaller(a, b pipeline.Ports) bool {
	if a.Len() != b.Len() {
		return a.Len() < b.Len()
	}
	return a < b
}

// near is by how much a block may take longer than a limit that explains it.
const near = 1.03

// longest is the least part of the cycles of a chain that is the limit. Micro-ops may wait
// for ports too.
const longest = 0.8

// explain puts the limit first that explains the cycles. If none does, what removes the
// wait in a further run is it.
func (a *analyser) explain(o Options) {
	out := a.out
	if len(out.Limits) > 0 && out.Cycles <= near*out.Limits[0].Cycles || !o.Explain {
		return
	}
	m := a.spare
	without := func(core *pipeline.Core, f pipeline.Freedom) float64 {
		m.Start(core)
		m.Free(f)
		return m.Cycles(a.block)
	}
	best := Limit{Kind: Together, Cycles: out.Cycles}
	least := out.Cycles / near
	try := func(l Limit, cycles float64) {
		if cycles < least-1e-9 {
			least, best = cycles, l
		}
	}
	for _, q := range queues {
		try(Limit{Kind: Queue, Cycles: out.Cycles, Queue: q.name}, without(a.core.WithQueue(q.wait), o.Freedom))
	}
	f := o.Freedom
	f.Ports = true
	try(Limit{Kind: Conflicts, Cycles: out.Cycles}, without(a.core, f))
	if out.Blocked > 0 {
		f = o.Freedom
		f.Forwarding = true
		try(Limit{Kind: Forwarding, Cycles: out.Cycles}, without(a.core, f))
	}
	at := 0
	if best.Kind == Conflicts && len(out.Limits) > 0 && out.Limits[0].Kind == Chain && out.Limits[0].Cycles >= longest*out.Cycles {
		at = 1 // the chain is what takes the time, conflicts lengthen it
	}
	out.Limits = sorting.Insert(out.Limits, at, best)
}

// queues are those that can be full.
var queues = []struct {
	wait pipeline.Wait
	name string
}{
	{pipeline.WaitReorder, "reorder buffer"},
	{pipeline.WaitScheduler, "scheduler"},
	{pipeline.WaitVectorQueue, "vector scheduler"},
	{pipeline.WaitLoadQueue, "load queue"},
	{pipeline.WaitStoreQueue, "store queue"},
}
