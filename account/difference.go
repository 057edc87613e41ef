package account

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// certain is the number of standard errors in the half-width of a 99 % interval:
// what a contradiction must exceed.
const certain = 2.575829

// Where counts took turns and nothing shows how they varied, they are taken to
// vary from one turn to the next by unknownVariation of themselves, and rare
// events, which come in bursts, by burstVariation. Rare are those of which there
// is less than a part in rareBelow of the largest count. A turn is taken to last
// turnSeconds: the kernel's, which is the tick of its timer, at most 10 ms and
// mostly 4. Without a duration the turns are taken to be unknownTurns.
const (
	unknownVariation = 1.0
	burstVariation   = 3.0
	rareBelow        = 100
	turnSeconds      = 0.004
	unknownTurns     = 25
)

// relationError is half the width of the 99 % interval of the difference between
// the sides of a relation, were they equal: what is asked is whether the smaller
// could be the true size of both, so the errors are those of counts of its size.
func (b *Binding) relationError(a *Account, r *boundRule, left, right float64) float64 {
	if b.oneWindow(a, r.deps) {
		return 0
	}
	least, sum := min(math.Abs(left), math.Abs(right)), 0.0
	for _, at := range r.deps {
		e, fewest := b.slotError(a, at)
		if !(e > 0) {
			continue
		}
		value := a.in[at]
		a.in[at] = value + e
		x, y := r.left.Eval(a.in)-left, r.right.Eval(a.in)-right
		a.in[at] = value
		sum += max(math.Abs(ratio(x*least, left)-ratio(y*least, right)), min(fewest/e, 1)*math.Abs(x-y))
	}
	return certain * sum
}

// ratio is x/y, 0 if that is not defined.
func ratio(x, y float64) float64 {
	if y == 0 {
		return 0
	}
	return x / y
}

// perturb returns half the width of the 99 % interval of what f makes of slots,
// as far as these are uncertain because they were counted for a part of the time
// or sampled. The effects of counts of one group, or of several, are added as if
// they were fully correlated, which is a bound. A group that was on the counters
// by itself has no error: what holds at each moment holds for its counts.
func (b *Binding) perturb(a *Account, slots []int, f func() float64) float64 {
	if b.oneWindow(a, slots) {
		return 0
	}
	began, was, sum := false, 0.0, 0.0
	for _, at := range slots {
		e, _ := b.slotError(a, at)
		if !(e > 0) {
			continue
		}
		if !began {
			a.kept = append(a.kept[:0], a.Nodes...)
			began, was = true, f()
		}
		value := a.in[at]
		a.in[at] = value + e
		sum += math.Abs(f() - was)
		a.in[at] = value
	}
	if began {
		b.compute(a)
		copy(a.Nodes, a.kept)
	}
	return certain * sum
}

// oneWindow reports whether slots were counted over the same windows, so that
// what holds of events holds of their counts, and none was sampled.
func (b *Binding) oneWindow(a *Account, slots []int) bool {
	group := 0
	for i, at := range slots {
		if c, ok := b.cell(a.table, a.place, b.slotAt(at)); ok && c.Samples > 0 {
			return false
		}
		g := b.groups[at]
		if i > 0 && g != group || g == 0 {
			return false
		}
		group = g
	}
	return true
}

// slotError is the standard error of a slot's count, and the part of it that
// chance leaves however small the count is.
func (b *Binding) slotError(a *Account, at int) (e, fewest float64) {
	s := b.slotAt(at)
	c, ok := b.cell(a.table, a.place, s)
	if !ok {
		return 0, 0
	}
	column := -1
	if cols := b.columnsOf(s); len(cols) == 1 {
		column = cols[0]
	}
	return b.columnError(a, a.place.Self, column, &c)
}

// columnError is slotError for a count of a column in a row; -1 is a count of
// several columns.
func (b *Binding) columnError(a *Account, row, column int, c *counts.Cell) (e, fewest float64) {
	if c.Samples > 0 {
		e = math.Sqrt(max(c.Variance, c.Value*c.Value/float64(c.Samples)))
		return e, e
	}
	share := c.Coverage()
	if math.IsNaN(share) || share >= alwaysCounted || share <= 0 {
		return 0, 0
	}
	value := math.Abs(c.Estimate())
	fewest = math.Sqrt((value*share+1)*(1-share)) / share
	if column >= 0 {
		if e := spreadError(a.table.Spreads(row), column); e > 0 {
			return max(e*b.scale[column], fewest), fewest
		}
	}
	variation := unknownVariation
	if value*rareBelow < b.sizeOf(a, row).most {
		variation = burstVariation
	}
	e = value * variation * math.Sqrt((1-share)/b.turns(a, c, share))
	return max(e, math.Sqrt(c.Variance), fewest), fewest
}

// spreadError is the standard error of a column's count that comes of its group
// having taken turns; 0 if that is not known.
func spreadError(spreads []counts.Spread, column int) float64 {
	for i := range spreads {
		s := &spreads[i]
		k := slices.Index(s.Columns, column)
		if k < 0 || s.Freedom() < freedomEnough {
			continue
		}
		weights := make([]float64, len(s.Columns))
		weights[k] = 1
		return math.Sqrt((1-s.Share)*s.Variance(weights)) * quantile(s.Freedom()) / confidence
	}
	return 0
}

// turns is how many turns a count rests on, at least 1.
func (b *Binding) turns(a *Account, c *counts.Cell, share float64) float64 {
	n := math.Inf(1)
	if a.Duration > 0 {
		n = share * a.Duration / turnSeconds
	}
	if s := seconds(a.table, a.Scope, c); s > 0 {
		n = min(n, s/turnSeconds)
	}
	if math.IsInf(n, 1) {
		n = unknownTurns
	}
	return max(n, 1)
}
