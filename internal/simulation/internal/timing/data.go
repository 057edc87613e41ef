package timing

import (
	"slices"
	"sync"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// Data says how often a program's loads and stores miss caches, by a cache simulator, and how
// long they wait.
type Data struct {
	Misses map[valgrind.DataPlace]valgrind.DataMisses
	// Beyond is the share of the misses of the last simulated cache that a further one
	// answers, and not memory.
	Beyond float64
	// Least is the least share of these cycles that loads wait. A core with many misses in
	// flight still moves one line for each, and translates its address.
	Least float64
	// Second, Third and Memory are how many cycles longer than for the first-level cache a
	// load waits: for the cache behind it, for the one behind the last simulated cache, and
	// for memory.
	Second, Third, Memory float64
}

// misses are those of an instruction that loads or stores.
type misses struct {
	valgrind.DataMisses
	// of are the accesses that miss: the loads, or the stores of an instruction that does
	// not load. What modifies memory waits for its load, wherever the simulator counts it.
	of valgrind.Accesses
	// due is how many misses are to come: of the first level, of the last, and to memory.
	due [3]float64
}

// waits are the waiting times of loads, by level.
type waits struct {
	beyond float64
	least  float64
	cycles [3]float64 // that a load waits longer if it is answered there
	mean   [3]float64 // shares of all loads of the program
	scale  float64    // steps of all windows for one that was recorded
}

// Wait finds out how long the program waits for data. It executes the windows once more,
// with loads that miss as often and take as much longer as Data says. Misses are spread
// evenly over a load's executions. At and Line include the waiting times afterwards. A
// further call replaces the earlier Data. Do not call Wait at the same time as At and Line.
func (p *Rates) Wait(d Data) {
	p.waits = waits{beyond: d.Beyond, least: d.Least, cycles: [3]float64{d.Second, d.Third, d.Memory}}
	p.settled = sync.Once{}
	insts := p.code.ordered()
	for i, in := range insts {
		in.number, in.waited, in.misses = i, 0, misses{}
	}
	for at, m := range d.Misses {
		for _, in := range p.accesses(at) {
			in.misses.Loads.Add(m.Loads)
			in.misses.Stores.Add(m.Stores)
			in.misses.due = [3]float64{0.5, 0.5, 0.5}
			in.misses.of = in.accesses()
		}
	}
	p.waits.mean = p.waits.shares(insts...)
	// The machines learn, and misses are dealt out, in the order of records.
	slices.SortFunc(p.records.list, (*record).compare)
	var counted int64
	usual, late := p.machine(), p.machine()
	for _, r := range p.records.list {
		counted += p.repeat(usual, late, r.steps)
	}
	if counted > 0 {
		p.waits.scale = float64(p.records.counted) / float64(counted)
	}
}

// accesses returns which accesses of an instruction miss.
func (in *instruction) accesses() valgrind.Accesses {
	m := &in.misses
	switch {
	case in.op.Loads && in.op.Stores:
		return valgrind.Accesses{Number: max(m.Loads.Number, m.Stores.Number), First: m.Loads.First + m.Stores.First, Last: m.Loads.Last + m.Stores.Last}
	case in.op.Loads:
		return m.Loads
	case in.op.Stores:
		return m.Stores
	}
	return valgrind.Accesses{}
}

// accesses returns the instructions of a place.
func (p *Rates) accesses(at valgrind.DataPlace) []*instruction {
	if at.Object == "" {
		return p.line(at.File, at.Line)
	}
	if i := p.code.images[at.Object]; i != nil && i.at[at.Addr] != nil {
		return []*instruction{i.at[at.Addr]}
	}
	return nil
}

// repeat executes steps once more on two machines, one with accesses that miss, and returns how
// many count. Both machines execute the recorded windows only, so that they differ by the
// misses alone: the windows of the first pass were others.
func (p *Rates) repeat(usual, late machine, steps []step) (counted int64) {
	for _, s := range steps {
		if s.begins {
			usual.Reset()
			late.Reset()
		}
		if s.counts {
			counted++
		}
		for i, in := range s.insts().all() {
			if in.misses.of.First > 0 {
				cycles := int(p.waits.next(&in.misses) + 0.5)
				if in.op.Loads {
					late.Late(cycles)
				} else {
					late.LateStore(cycles)
				}
			}
			last := i == int(s.n)-1
			a := usual.Execute(&in.op, s.taken && last, s.missed && last)
			b := late.Execute(&in.op, s.taken && last, s.missed && last)
			if s.counts {
				in.waited += ticksOf(b) - ticksOf(a)
			}
		}
	}
	return counted
}

// next returns how many cycles the next access of an instruction takes longer.
func (w *waits) next(m *misses) (cycles float64) {
	for i, share := range [...]float64{m.of.First / m.of.Number, m.of.Last / m.of.First, 1 - w.beyond} {
		if m.due[i] += share; m.due[i] < 1 {
			break
		}
		m.due[i]--
		cycles = w.cycles[i]
	}
	return cycles
}

// alone returns how long an execution of an instruction waits at each level if nothing
// hides it.
func (w *waits) alone(in *instruction) (list [3]float64) {
	m := &in.misses.of
	if m.First == 0 {
		return list
	}
	memory := (1 - w.beyond) * m.Last
	for i, n := range [...]float64{m.First - m.Last, m.Last - memory, memory} {
		list[i] = n / m.Number * w.cycles[i]
	}
	return list
}

// atLeast raises the waiting time of a function's instructions to the least, where they
// miss.
func (w *waits) atLeast(insts []*instruction) {
	waited, alone := 0.0, 0.0
	each := func(in *instruction) float64 {
		list := w.alone(in)
		return (list[0] + list[1] + list[2]) * float64(in.timed)
	}
	for _, in := range insts {
		waited += in.parts.waited
		alone += each(in)
	}
	if short := w.least*alone - waited; short > 0 {
		for _, in := range insts {
			in.parts.waited += short * each(in) / alone
		}
	}
}

// shares returns how the waiting time of loads divides among the levels if nothing hides
// it; zeros if none misses.
func (w *waits) shares(loads ...*instruction) (list [3]float64) {
	all := 0.0
	for _, in := range loads {
		for i, cycles := range w.alone(in) {
			list[i] += cycles * float64(in.executed)
			all += cycles * float64(in.executed)
		}
	}
	for i := range list {
		if all > 0 {
			list[i] /= all
		}
	}
	return list
}

// divide divides the waiting time of a function's instructions, which are in order, among the
// levels. Each takes the shares of the last load at or before it, or else the function's or
// program's.
func (w *waits) divide(insts []*instruction) {
	latest := w.shares(insts...)
	if latest == [3]float64{} {
		latest = w.mean
	}
	for _, in := range insts {
		if own := w.shares(in); own != [3]float64{} {
			latest = own
		}
		in.parts.shares = latest
	}
}
