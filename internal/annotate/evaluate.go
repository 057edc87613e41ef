package annotate

import (
	"math"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// evaluate makes the shares and figures of all parts.
func (b *builder) evaluate() {
	if b.o.Method != nil {
		b.binding = b.o.Method.Bind(b.Table.Layout)
		b.Account = b.binding.Evaluate(b.Table, account.Place{Self: b.Whole.Row}, nil)
		b.reuse = b.Account.Clone()
		for i := range b.Account.Nodes {
			b.named = append(b.named, b.columns(i, 0))
		}
	}
	b.part(&b.Whole)
	b.unnamed()
	binding := b.binding
	if b.o.LoopsOnly {
		b.binding = nil
	}
	for i := range b.Parts {
		b.part(&b.Parts[i])
	}
	for i := range b.Lines {
		b.part(&b.Lines[i].Part)
	}
	for i := range b.Blocks {
		b.part(&b.Blocks[i].Part)
	}
	b.binding = binding
	for i := range b.Loops {
		b.part(&b.Loops[i].Part)
	}
	for i := range b.Loops {
		b.Loops[i].Inner = b.Loops[i].Share
	}
	for i := range b.Loops {
		if p := b.Graph.Loops[i].Parent; p >= 0 {
			b.Loops[p].Inner -= b.Loops[i].Share
		}
	}
}

// unnamed finds the events that no node names.
func (b *builder) unnamed() {
	named := make([]bool, len(b.Table.Columns))
	named[b.Clock] = true
	for i, f := range b.Whole.Figures {
		for _, col := range b.named[i] {
			named[col] = named[col] || !math.IsNaN(f.Value)
		}
	}
	for col := range named {
		if c := b.Table.Cell(b.Whole.Row, col); !named[col] && c.Ok() && happened(c) {
			b.Unnamed = append(b.Unnamed, col)
		}
	}
}

// part fills in a part from its row.
func (b *builder) part(p *Part) {
	if p.Row == 0 {
		return
	}
	clock := b.Table.Cell(p.Row, b.Clock)
	function := b.Table.Cell(b.Whole.Row, b.Clock)
	p.Samples = clock.Samples
	p.Share = ratio(clock.Value, function.Value)
	p.OfRun = ratio(clock.Value, b.Table.Cell(0, b.Clock).Value)
	p.Error = ratio(counts.Confidence*math.Sqrt(clock.Variance), function.Value)
	if b.binding == nil {
		return
	}
	p.Figures = b.figures(b.Table, p.Row)
}

// ratio divides; it is 0 for a whole of 0.
func ratio(x, of float64) float64 {
	if of == 0 {
		return math.NaN()
	}
	return x / of
}

// step is how far a count is moved to find an error's effect, as a part of its standard error.
// It is small enough for the change to be that of the tangent.
const step = 1.0 / 64

// figures evaluates a row of a table that has the layout of b.Table. The errors are
// propagated by the delta method: samples of different events arrive independently, so the
// squares of their effects add up. Unlike those of an account they are errors of the
// amounts, divided by the function's whole: the uncertainty of the part's own cycles does
// not matter.
func (b *builder) figures(t *counts.Table, row int) []Figure {
	cells := t.Row(row)
	variance := make([]float64, len(cells))
	for col := range cells {
		variance[col], cells[col].Variance = cells[col].Variance, 0
	}
	keep, amounts := b.values(t, row)
	squares := make([]float64, len(keep))
	for col := range cells {
		c := &cells[col]
		if !c.Ok() || variance[col] <= 0 {
			continue
		}
		was := c.Value
		c.Value += step * math.Sqrt(variance[col])
		moved, _ := b.values(t, row)
		c.Value = was
		for i := range moved {
			effect := (moved[i] - keep[i]) / step
			squares[i] += effect * effect
		}
	}
	for col := range cells {
		cells[col].Variance = variance[col]
	}
	list := make([]Figure, len(keep))
	for i, v := range keep {
		e := counts.Confidence * math.Sqrt(squares[i])
		list[i] = Figure{Value: v, Error: e, Amount: amounts[i], Reliable: !math.IsNaN(v) && e < math.Abs(v), Samples: sampled(t, row, b.named[i])}
	}
	return list
}

// values evaluates a row: the parts of the function's whole that nodes have there, and
// their amounts.
func (b *builder) values(t *counts.Table, row int) (parts, amounts []float64) {
	b.reuse = b.binding.Evaluate(t, account.Place{Self: row}, b.reuse)
	m := b.Account.Model()
	weight := ratio(t.Cell(row, b.Clock).Value, b.Table.Cell(b.Whole.Row, b.Clock).Value)
	parts, amounts = make([]float64, len(m.Nodes)), make([]float64, len(m.Nodes))
	for i := range m.Nodes {
		v := &b.reuse.Nodes[i]
		parts[i], amounts[i] = v.Value, math.NaN()
		switch {
		case !m.Share(i):
		case m.Of != "":
			amounts[i] = v.Amount
			parts[i] = ratio(v.Amount, b.whole(i))
		default:
			parts[i] = v.Value * weight
		}
	}
	return parts, amounts
}

// whole is the function's amount that a node is a share of.
func (b *builder) whole(node int) float64 {
	if v := &b.Account.Nodes[node]; v.Known() && v.Value != 0 {
		return v.Amount / v.Value
	}
	for i := range b.Account.Nodes {
		if v := &b.Account.Nodes[i]; b.Account.Model().Share(i) && v.Known() && v.Value != 0 {
			return v.Amount / v.Value
		}
	}
	return math.NaN()
}

// deepest bounds the depth of formulas that name each other.
const deepest = 8

// columns are the columns that a node's formula names, directly or through other nodes.
func (b *builder) columns(node, depth int) []int {
	var list []int
	if depth > deepest {
		return nil
	}
	for _, op := range b.Account.Operands(node) {
		switch op.Kind {
		case "event":
			for col := range b.Table.Columns {
				if op.Event != "" && b.Table.Columns[col].Event == op.Event {
					list = append(list, col)
				}
			}
		case "node":
			if i, ok := b.Account.Node(op.Name); ok && i != node {
				list = append(list, b.columns(i, depth+1)...)
			}
		}
	}
	return list
}
