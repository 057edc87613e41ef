package account

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// WithWhole returns a copy of a table with a further column: the whole that the model divides,
// in each scope. Scopes can then be compared by it as by an event, although it is none, as with
// simulated cycles. Of other columns it has those of the events to keep; without any it has all. It
// is nil for a model without a whole, or where it is not known of the first scope.
func (c *Method) WithWhole(t *counts.Table, event string, keep ...string) *counts.Table {
	b := c.Bind(t.Layout)
	if b.of == nil {
		return nil
	}
	b.live = slices.DeleteFunc(b.live, func(k int) bool { return !slices.Contains(b.ofDeps, k) })
	l := &counts.Layout{Scopes: t.Scopes}
	var from []int
	for i, column := range t.Columns {
		if len(keep) == 0 || slices.Contains(keep, column.Event) {
			l.Columns, from = append(l.Columns, column), append(from, i)
		}
	}
	l.Columns = append(l.Columns, counts.Column{Event: event})
	head := *t
	head.Reset(&counts.Layout{})
	out := head.Clone()
	out.Reset(l)
	plain := *t
	plain.Notes = nil
	var a *Account
	for i := range t.Scopes {
		row, old := out.Row(i), t.Row(i)
		for to, at := range from {
			row[to] = old[at]
		}
		a = b.prepare(&plain, Place{Self: i}, a)
		b.readSlots(&plain, Place{Self: i}, a)
		switch v := b.of.Eval(a.in); {
		case !math.IsNaN(v):
			row[len(row)-1] = counts.Cell{Value: v, Variance: b.varianceOfWhole(&plain, Place{Self: i}, a, v), State: counts.Counted}
		case i == 0:
			return nil
		}
	}
	return out
}

// varianceOfWhole propagates the variances of counts that are no samples: the bound that holds for
// any correlation, as that of errorBounds.
func (b *Binding) varianceOfWhole(t *counts.Table, place Place, a *Account, whole float64) float64 {
	sum := 0.0
	for _, k := range b.live {
		cell, ok := b.cell(t, place, &b.slots[k])
		if !ok || !(cell.Variance > 0) || cell.Samples > 0 || b.isPart(t, &b.slots[k]) {
			continue
		}
		at := b.slotIndex(k)
		was := a.in[at]
		a.in[at] += math.Sqrt(cell.Variance)
		if v := b.of.Eval(a.in); !math.IsNaN(v) {
			sum += math.Abs(v - whole)
		}
		a.in[at] = was
	}
	return sum * sum
}
