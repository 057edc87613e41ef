package annotate

import (
	"math"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/flow"
)

// executions finds how often blocks and loops were executed.
func (b *builder) executions() {
	if b.Graph == nil {
		return
	}
	b.measured()
	retired := b.Retired >= 0 && (b.o.Counted || b.Table.Cell(0, b.Retired).Samples > 0)
	stacks := b.o.Branches != nil && b.o.Branches.Samples() > 0
	switch {
	case retired && (!stacks || b.Retired < len(b.o.Exact) && b.o.Exact[b.Retired]):
		b.byInstructions()
	case stacks:
		b.byBranches(retired)
	}
}

// byInstructions takes the executions from samples of retired instructions.
func (b *builder) byInstructions() {
	one := math.Sqrt(b.one[b.Retired])
	if one == 0 && !b.o.Counted { // all rows have samples
		c := b.Table.Cell(0, b.Retired)
		one = c.Value / float64(c.Samples)
	}
	at := map[uint64]int{}
	for i := range b.Insts {
		at[b.Insts[i].Addr] = b.Parts[i].Row
	}
	blocks := flow.FromInstructions(b.Graph, func(addr uint64) flow.Count {
		row := at[addr]
		if row == 0 {
			return flow.Count{}
		}
		c := b.Table.Cell(row, b.Retired)
		if b.o.Counted {
			return flow.Count{Value: c.Value, Samples: 1}
		}
		return flow.Count{Value: c.Value, Variance: c.Variance, Samples: c.Samples}
	}, one)
	b.Executions = b.Table.Columns[b.Retired].Event
	if b.Retired >= len(b.o.Exact) || !b.o.Exact[b.Retired] {
		b.Executions += ", which was not sampled precisely: blocks may have samples of those before them"
	}
	b.take(blocks, flow.Trips(b.Graph, blocks))
}

// byBranches takes them from branch stacks. If their weight is not known, the function's
// retired instructions give it: they may be sampled some instructions late.
func (b *builder) byBranches(retired bool) {
	b.Executions, b.Relative = "branch stacks", b.o.Relative
	if b.Relative && retired {
		insts := 0.0
		for i, c := range b.o.Branches.Blocks() {
			insts += c.Value * float64(len(b.Graph.Blocks[i].Insts))
		}
		if c := b.Table.Cell(b.Whole.Row, b.Retired); insts > 0 && c.Value > 0 {
			b.o.Branches.Scale(c.Value / insts)
			b.Executions, b.Relative = "branch stacks, scaled to "+b.Table.Columns[b.Retired].Event, false
		}
	}
	b.take(b.o.Branches.Blocks(), b.o.Branches.Loops())
}

// measured takes the cycles and outcomes of branches from branch stacks.
func (b *builder) measured() {
	for i := range b.Blocks {
		b.Blocks[i].Cycles = flow.Unknown
	}
	for i := range b.Loops {
		b.Loops[i].Cycles = flow.Unknown
	}
	if s := b.o.Branches; s != nil && s.Samples() > 0 {
		cycles, ends, iterations := s.Cycles(), s.Ends(), s.Iterations()
		for i := range b.Blocks {
			b.Blocks[i].Cycles, b.Blocks[i].End = cycles[i], ends[i]
		}
		for i := range b.Loops {
			b.Loops[i].Cycles = iterations[i]
		}
	}
}

func (b *builder) take(blocks []flow.Count, loops []flow.Loop) {
	for i := range b.Blocks {
		b.Blocks[i].Executions = blocks[i]
	}
	for i := range b.Loops {
		b.Loops[i].Executed = loops[i]
		if !b.Relative {
			b.perIteration(&b.Loops[i])
		}
	}
}

// perIteration divides the events of a loop by its iterations.
func (b *builder) perIteration(l *Loop) {
	it := l.Executed.Iterations
	if l.Row == 0 || !(it.Value > 0) || it.Samples == 0 {
		return
	}
	for col := range b.Table.Columns {
		c := b.Table.Cell(l.Row, col)
		if !c.Ok() || c.Samples == 0 {
			continue
		}
		v := c.Value / it.Value
		rel := c.Variance/(c.Value*c.Value) + it.Variance/(it.Value*it.Value)
		l.PerIter = append(l.PerIter, PerIteration{b.Table.Columns[col].Event, v, counts.Confidence * v * math.Sqrt(rel), c.Samples})
	}
}
