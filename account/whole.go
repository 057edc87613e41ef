package account

import (
	"iter"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// WithWhole returns a copy of a table with a further column: the whole that the model divides,
// in each scope. Scopes can then be compared by it as by an event, although it is none, as with
// simulated cycles. It is nil for a model without a whole, or where it is not known of the
// first scope.
func (c *Method) WithWhole(t *counts.Table, event string) *counts.Table {
	l := &counts.Layout{Columns: append(slices.Clone(t.Columns), counts.Column{Event: event}), Scopes: t.Scopes}
	head := *t
	head.Reset(&counts.Layout{})
	out := head.Clone()
	out.Reset(l)
	known := false
	for i, whole := range c.Wholes(t) {
		if known = known || whole.Ok(); !known {
			return nil
		}
		row := out.Row(i)
		row[copy(row, t.Row(i))] = whole
	}
	if !known {
		return nil
	}
	return out
}

// Wholes yields the whole that the model divides, in each scope of a table. It is missing where it is
// not known. It yields nothing for a model without a whole.
func (c *Method) Wholes(t *counts.Table) iter.Seq2[int, counts.Cell] {
	b := c.Bind(t.Layout)
	b.live = slices.DeleteFunc(b.live, func(k int) bool { return !slices.Contains(b.ofDeps, k) })
	return func(yield func(int, counts.Cell) bool) {
		if b.of == nil {
			return
		}
		plain := *t
		plain.Notes = nil
		var a *Account
		for i := range t.Scopes {
			a = b.prepare(&plain, Place{Self: i}, a)
			b.readSlots(&plain, Place{Self: i}, a)
			whole := counts.Cell{}
			if v := b.of.Eval(a.in); !math.IsNaN(v) {
				whole = counts.Cell{Value: v, Variance: b.varianceOfWhole(&plain, Place{Self: i}, a, v), State: counts.Counted}
			}
			if !yield(i, whole) {
				return
			}
		}
	}
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
