package annotate

import (
	"math"
	"slices"
	"strings"

	"github.com/aclements/go-moremath/mathx"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/model"
)

// A Cost is a node that estimates stalled cycles from events, each at its usual cost. It
// belongs to a node of the first level, whose stalled cycles these would be.
type Cost struct {
	Node, Stalls int     // nodes of the model
	Events       []int   // columns of the events
	Measured     []int   // columns that count the stalled cycles
	Hidden       float64 // estimated cycles at places where they are hidden, as a part of the function's

	late bool    // samples of the events are behind their cause
	each float64 // stalled cycles that a sample of them stands for
}

// A Verdict says whether the cost of an event at a place is hidden. Events without stalled
// cycles near them cost nothing, whatever they usually cost, since the processor did other
// work meanwhile (D. Levinthal, Cycle Accounting Analysis on Intel Core 2 Processors,
// Estimating Penalties).
//
// Near an instruction is the code executed up to flow.Skid instructions later: a sample of
// stalled cycles follows the instruction that stalled; see [flow.Vicinity]. Imprecise samples
// of an event are behind their cause as well, so that code before them is near too. For an
// instruction in a loop only the loop is near. A loop with few iterations is an exception, as
// samples often follow its end. Let n samples of the events stand for m cycles at their cost,
// and s stall samples for c cycles. The events are hidden if
//
//   - c is at most a tenth of m: there are hardly any stalled cycles, and
//   - so few would be there by chance in less than 5 % of cases if the events cost
//     their usual penalty. Of n + s samples no more than s would be of stalled
//     cycles. Each sample is one with the probability r/(1+r). r is the
//     number of samples of stalled cycles for one of the events. It is the
//     conditional test of two Poisson rates (J. Przyborowski and H. Wilenski,
//     Biometrika 31, 1940). If samples stand for equally many cycles, as
//     sample-after values make it, five events without a stall suffice.
//
// They stall if c is more than a tenth of m. Otherwise there are too few samples to decide.
type Verdict uint8

// The verdicts.
const (
	None        Verdict = iota // no event here
	Few                        // too few samples to decide
	Stalling                   // stalled cycles near it
	Hidden                     // none
	HiddenSoFar                // none in this function; but it is left, or calls another one, within the window
)

func (v Verdict) String() string {
	return [...]string{"", "too few samples", "stalls", "hidden", "hidden here"}[v]
}

// IsHidden says whether no stalled cycles are near.
func (v Verdict) IsHidden() bool { return v == Hidden || v == HiddenSoFar }

const (
	hiddenMost   = 0.1  // of the events' cost may be stalled cycles
	hiddenChance = 0.05 // the probability of so few, if the events had cost it
)

// hidden finds the costs and judges each instruction, line, block and loop.
func (b *builder) hidden() {
	if b.Account == nil || b.ByLine {
		return
	}
	b.findCosts()
	if len(b.Costs) == 0 {
		return
	}
	around := b.vicinities()
	t := counts.NewTable(&counts.Layout{Columns: b.Table.Columns, Scopes: b.Table.Scopes[:1]})
	for i := range b.Parts {
		p := &b.Parts[i]
		if p.Row == 0 {
			continue
		}
		p.Hidden = make([]Verdict, len(b.Costs))
		for _, late := range []bool{false, true} { // the same code is near for the costs of either kind
			b.judgeCosts(p, late, func() (*counts.Table, bool) {
				s := around(i, late)
				b.sum(t.Row(0), b.of(s.Insts))
				return t, s.Leaves
			})
		}
	}
	b.summarize()
}

// judgeCosts judges the late or the other costs at a part, by the counts near it. It is
// told whether the function is left there.
func (b *builder) judgeCosts(p *Part, late bool, near func() (t *counts.Table, leaves bool)) {
	var t *counts.Table
	var amounts []float64
	leaves := false
	for k := range b.Costs {
		c := &b.Costs[k]
		if c.late != late || sampled(b.Table, p.Row, c.Events) == 0 {
			continue
		}
		if t == nil {
			t, leaves = near()
			_, amounts = b.values(t, 0)
		}
		p.Hidden[k] = judge(t, amounts, c)
		if p.Hidden[k] == Hidden && leaves {
			p.Hidden[k] = HiddenSoFar
		}
	}
}

// findCosts finds the nodes below the first level whose formula multiplies events by a
// parameter in cycles. It also finds their first-level ancestors.
func (b *builder) findCosts() {
	m := b.Account.Model()
	for i := range m.Nodes {
		if !m.Share(i) || m.Nodes[i].Level < 2 || !b.Account.Nodes[i].Known() || math.IsNaN(b.Account.Nodes[i].Amount) || !b.costs(i, 0) {
			continue
		}
		up := i
		for up >= 0 && m.Nodes[up].Level > 1 {
			up = m.Nodes[up].Above
		}
		if up < 0 || !b.Account.Nodes[up].Known() || len(b.named[i]) == 0 || len(b.named[up]) == 0 {
			continue
		}
		c := Cost{Node: i, Stalls: up, Events: b.named[i], Measured: b.named[up]}
		c.late, c.each = b.late(&c), b.each(&c)
		b.Costs = append(b.Costs, c)
	}
}

// costs says whether a node's formula has an event and a parameter in cycles per event, perhaps
// through deeper nodes.
func (b *builder) costs(node, depth int) bool {
	m := b.Account.Model()
	event, cycles := false, false
	for _, op := range b.Account.Operands(node) {
		switch op.Kind {
		case "event":
			event = true
		case "parameter":
			i := slices.IndexFunc(m.Parameters, func(p model.Parameter) bool { return p.Name == op.Name })
			cycles = cycles || i >= 0 && strings.HasPrefix(m.Parameters[i].Unit, "cycles/") && m.Parameters[i].Unit != "cycles/second"
		case "node":
			if i, ok := b.Account.Node(op.Name); ok && i != node && depth < deepest && m.Nodes[i].Level > 1 && b.costs(i, depth+1) {
				return true
			}
		}
	}
	return event && cycles
}

// vicinities returns the code near instructions. Without the code it is an equal distance
// in bytes, and it is not known whether the function is left.
func (b *builder) vicinities() func(i int, late bool) flow.Surrounding {
	window := b.o.Window
	if window == 0 {
		window = flow.Skid
	}
	if b.Graph != nil {
		return flow.NewVicinity(b.Graph, window, b.short(window)).Of
	}
	const instruction = 4 // bytes
	reach := uint64(instruction * window)
	return func(i int, late bool) flow.Surrounding {
		first, last := i, i
		for late && first > 0 && b.Insts[i].Addr-b.Insts[first-1].Addr <= reach {
			first--
		}
		for last+1 < len(b.Insts) && b.Insts[last+1].Addr-b.Insts[i].Addr <= reach {
			last++
		}
		return flow.Surrounding{Insts: span(first, last), Leaves: true}
	}
}

// short says of each loop whether it is left so soon that many of its samples are outside: its
// executed instructions are less than ten windows.
func (b *builder) short(window int) []bool {
	const windows = 10
	list := make([]bool, len(b.Loops))
	for i := range b.Loops {
		n := 0
		for _, block := range b.Graph.Loops[i].Blocks {
			n += len(b.Graph.Blocks[block].Insts)
		}
		e := &b.Loops[i].Executed
		list[i] = b.Executions != "" && e.Trips*float64(n) < float64(windows*window)
	}
	return list
}

// late says whether samples of a cost's events are behind their cause.
func (b *builder) late(c *Cost) bool {
	return slices.ContainsFunc(c.Events, func(col int) bool {
		return col >= len(b.o.Exact) || !b.o.Exact[col]
	})
}

func sampled(t *counts.Table, row int, columns []int) int64 {
	n := int64(0)
	for _, col := range columns {
		n += t.Cell(row, col).Samples
	}
	return n
}

// judge decides about a cost's events by the counts near them, in one row, and the nodes'
// values.
func judge(t *counts.Table, amounts []float64, c *Cost) Verdict {
	cost, stalled := amounts[c.Node], amounts[c.Stalls]
	n, s := float64(sampled(t, 0, c.Events)), float64(sampled(t, 0, c.Measured))
	switch {
	case math.IsNaN(cost) || math.IsNaN(stalled) || cost <= 0 || math.IsNaN(c.each):
		return Few
	case stalled > hiddenMost*cost:
		return Stalling
	case chance(n, s, cost/n/c.each) < hiddenChance:
		return Hidden
	}
	return Few
}

// each is how many stalled cycles a sample of a cost's stalled cycles stands for: in this
// function, or in the run if the function has none.
func (b *builder) each(c *Cost) float64 {
	for _, row := range []int{b.Whole.Row, 0} {
		if n := sampled(b.Table, row, c.Measured); n > 0 {
			_, amounts := b.values(b.Table, row)
			return amounts[c.Stalls] / float64(n)
		}
	}
	return math.NaN()
}

// chance is the probability of at most s stall samples for n event samples, with r for each on
// average.
func chance(n, s, r float64) float64 {
	if !(r > 0) {
		return 1
	}
	return mathx.BetaInc(1/(1+r), n, s+1)
}

// summarize judges lines, blocks and loops by their instructions, and adds up the hidden
// cycles.
func (b *builder) summarize() {
	for k := range b.Costs {
		for i := range b.Parts {
			if p := &b.Parts[i]; p.Hidden != nil && p.Hidden[k].IsHidden() && p.Figures[b.Costs[k].Node].Value > 0 {
				b.Costs[k].Hidden += p.Figures[b.Costs[k].Node].Value
			}
		}
	}
	b.judgeBy(&b.Whole, span(0, len(b.Insts)-1))
	for i := range b.Lines {
		b.judgeBy(&b.Lines[i].Part, b.Lines[i].Insts)
	}
	for i := range b.Blocks {
		b.judgeBy(&b.Blocks[i].Part, span(b.Blocks[i].First, b.Blocks[i].Last))
	}
	for i := range b.Loops {
		b.judgeBy(&b.Loops[i].Part, b.instsOf(i))
	}
}

// judgeBy judges a part by its instructions: a verdict needs nine tenths of the samples of
// the events.
func (b *builder) judgeBy(p *Part, insts []int) {
	const most = 0.9
	if p.Row == 0 {
		return
	}
	p.Hidden = make([]Verdict, len(b.Costs))
	for k := range b.Costs {
		var by [HiddenSoFar + 1]int64
		all := int64(0)
		for _, i := range insts {
			if q := &b.Parts[i]; q.Hidden != nil {
				n := sampled(b.Table, q.Row, b.Costs[k].Events)
				by[q.Hidden[k]] += n
				all += n
			}
		}
		enough := func(n int64) bool { return float64(n) >= most*float64(all) }
		switch {
		case all == 0:
		case enough(by[Hidden]):
			p.Hidden[k] = Hidden
		case enough(by[Hidden] + by[HiddenSoFar]):
			p.Hidden[k] = HiddenSoFar
		case by[Stalling] > 0:
			p.Hidden[k] = Stalling
		default:
			p.Hidden[k] = Few
		}
	}
}
