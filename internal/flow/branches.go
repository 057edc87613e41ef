package flow

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/disasm"
)

// Branches counts executions of a function's blocks and edges from branch stacks. Between
// two consecutive taken branches, the code from the target of the first to the second was
// executed once.
type Branches struct {
	graph   *disasm.Graph
	samples int64
	blocks  []tally
	loops   []ratioTally
	times   []timeTally // by loop
	alone   []timeTally // by block: cycles of a block that a taken branch led to and another ended
	ends    []End       // by block
	scale   float64

	once []float64 // by block: executions in the sample at hand
	in   []float64 // by loop: entries in it
}

// A tally adds up a number by samples.
type tally struct{ sum, squares float64 }

// A ratioTally adds up two numbers of each sample.
type ratioTally struct {
	header, entries tally
	product         float64
}

// A timeTally adds up the cycles of iterations. since is those of the one at hand, if open.
type timeTally struct {
	tally
	n     int64
	since float64
	open  bool
}

// NewBranches returns counts of a function's branches, of none as yet.
func NewBranches(g *disasm.Graph) *Branches {
	return &Branches{graph: g, blocks: make([]tally, len(g.Blocks)), loops: make([]ratioTally, len(g.Loops)), scale: 1,
		times: make([]timeTally, len(g.Loops)), alone: make([]timeTally, len(g.Blocks)), ends: make([]End, len(g.Blocks)), once: make([]float64, len(g.Blocks)), in: make([]float64, len(g.Loops))}
}

// A Branch is a branch that was taken, by addresses of the function's object. All addresses
// outside the function mean the same.
type Branch struct {
	From, To uint64
	Cycles   uint16 // since the branch before; 0 if it is not known

	Mispredicted, Predicted bool // neither is set if it is not known
}

// An End is what branch stacks say of the branch at the end of a block. The numbers are of
// branches in stacks, and not scaled.
type End struct {
	Taken        int64
	Known        int64 // those that say whether they were predicted
	Mispredicted int64
}

// Share is the part of the taken branches that were mispredicted, with the half-width of its
// 95 % interval; NaN if it is not known.
func (e End) Share() (share, err float64) {
	if e.Known == 0 {
		return math.NaN(), math.NaN()
	}
	n := float64(e.Known)
	share = float64(e.Mispredicted) / n
	z := counts.Confidence // E. B. Wilson (1927)
	return share, z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
}

// Add adds the branch stack of a sample, the latest branch first. It stands for weight
// executions.
func (b *Branches) Add(stack []Branch, weight float64) {
	clear(b.once)
	clear(b.in)
	any := false
	for i := len(stack) - 1; i > 0; i-- {
		any = b.run(stack[i], stack[i-1].From, weight) || any
	}
	if !any {
		return
	}
	b.samples++
	b.time(stack)
	b.end(stack)
	for i, x := range b.once {
		b.blocks[i].add(x)
	}
	for i := range b.loops {
		l, h := &b.loops[i], b.once[b.graph.Loops[i].Header]
		l.header.add(h)
		l.entries.add(b.in[i])
		l.product += h * b.in[i]
	}
}

func (t *tally) add(x float64) {
	t.sum += x
	t.squares += x * x
}

// run follows the code from the target of a branch to the next branch.
func (b *Branches) run(branch Branch, end uint64, weight float64) bool {
	at := b.graph.BlockAt(branch.To)
	if at < 0 || end < branch.To || b.graph.BlockAt(end) < at {
		return false
	}
	from := b.graph.BlockAt(branch.From)
	if b.graph.Blocks[at].Start() != branch.To {
		from = at // back from a call: the block goes on
		if at++; at >= len(b.graph.Blocks) || b.graph.Blocks[at].Start() > end {
			return true
		}
	}
	for ; at < len(b.graph.Blocks) && b.graph.Blocks[at].Start() <= end; at++ {
		b.once[at] += weight
		b.enter(from, at, weight)
		from = at
	}
	return true
}

// enter notes that a block was reached from another; -1 is one outside.
func (b *Branches) enter(from, to int, weight float64) {
	for l := b.graph.Blocks[to].Loop; l >= 0; l = b.graph.Loops[l].Parent {
		if loop := &b.graph.Loops[l]; loop.Header == to && (from < 0 || !inside(b.graph, from, l)) {
			b.in[l] += weight
		}
	}
}

// inside says whether a block is in a loop.
func inside(g *disasm.Graph, block, loop int) bool {
	for l := g.Blocks[block].Loop; l >= 0; l = g.Loops[l].Parent {
		if l == loop {
			return true
		}
	}
	return false
}

// time adds the cycles from one jump back to a loop's header to the next.
func (b *Branches) time(stack []Branch) {
	if !slices.ContainsFunc(stack, func(e Branch) bool { return e.Cycles > 0 }) {
		return
	}
	for i := range b.times {
		b.times[i].open = false
	}
	for i := len(stack) - 1; i >= 0; i-- {
		from, to := b.graph.BlockAt(stack[i].From), b.graph.BlockAt(stack[i].To)
		for l := range b.times {
			t, loop := &b.times[l], &b.graph.Loops[l]
			known := stack[i].Cycles > 0 && stack[i].Cycles < 1<<16-1
			t.open = t.open && known && (from < 0 || inside(b.graph, from, l)) && (to < 0 || inside(b.graph, to, l))
			t.since += float64(stack[i].Cycles)
			if from < 0 || to != loop.Header || stack[i].To != b.graph.Blocks[to].Start() || !inside(b.graph, from, l) {
				continue
			}
			if t.open {
				t.add(t.since)
				t.n++
			}
			t.open, t.since = true, 0
		}
	}
}

// end notes how the branches of a stack ended their blocks, and the cycles of blocks between
// two branches.
func (b *Branches) end(stack []Branch) {
	for i := range stack {
		x := &stack[i]
		at := b.graph.BlockAt(x.From)
		if at < 0 {
			continue
		}
		e := &b.ends[at]
		e.Taken++
		if x.Mispredicted || x.Predicted {
			e.Known++
		}
		if x.Mispredicted {
			e.Mispredicted++
		}
		known := x.Cycles > 0 && x.Cycles < 1<<16-1
		if known && i+1 < len(stack) && stack[i+1].To == b.graph.Blocks[at].Start() && x.From >= stack[i+1].To {
			t := &b.alone[at]
			t.add(float64(x.Cycles))
			t.n++
		}
	}
}

// Ends returns what is known of the branch at the end of each block.
func (b *Branches) Ends() []End { return b.ends }

// Cycles returns the mean cycles of each block between two taken branches, if the branches
// have their cycles; Unknown if not.
func (b *Branches) Cycles() []Count { return means(b.alone) }

// Iterations returns the mean cycles of an iteration of each loop, if the branches have
// their cycles; Unknown if not.
func (b *Branches) Iterations() []Count {
	return means(b.times)
}

// means are the means of cycles with the variances of these.
func means(times []timeTally) []Count {
	list := make([]Count, len(times))
	for i, t := range times {
		if list[i] = Unknown; t.n > 1 {
			n := float64(t.n)
			mean := t.sum / n
			list[i] = Count{Value: mean, Variance: max(0, t.squares/n-mean*mean) / (n - 1), Samples: t.n}
		}
	}
	return list
}

// Samples returns how many samples have branches of the function.
func (b *Branches) Samples() int64 { return b.samples }

// Scale multiplies all executions, if their weight is known later.
func (b *Branches) Scale(by float64) { b.scale *= by }

// Blocks returns how often each block was executed. The samples are independent draws; the
// branches of a sample are not.
func (b *Branches) Blocks() []Count {
	list := make([]Count, len(b.blocks))
	for i, t := range b.blocks {
		list[i] = b.count(t)
	}
	return list
}

func (b *Branches) count(t tally) Count {
	c := Count{Value: t.sum * b.scale, Variance: t.squares * b.scale * b.scale}
	if t.sum > 0 {
		c.Samples = b.samples
	}
	return c
}

// Loops returns how often each loop was run through, and its trip count. The error is that
// of a ratio of two sums over samples (W. G. Cochran, Sampling Techniques, section 6.4).
func (b *Branches) Loops() []Loop {
	list := make([]Loop, len(b.loops))
	for i := range b.loops {
		t := &b.loops[i]
		l := Loop{Iterations: b.count(t.header), Entries: b.count(t.entries), Trips: math.NaN(), Error: math.NaN(), Least: math.NaN()}
		switch {
		case t.header.sum == 0:
			l.Why = "no branch stack has it"
		case t.entries.sum == 0:
			l.Why = "no branch stack has an entry"
		default:
			l.Trips = t.header.sum / t.entries.sum
			residual := t.header.squares - 2*l.Trips*t.product + l.Trips*l.Trips*t.entries.squares
			l.Error = counts.Confidence * math.Sqrt(max(0, residual)) / t.entries.sum
		}
		list[i] = l
	}
	return list
}
