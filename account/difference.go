package account

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// certain is the number of standard errors in the half-width of a 99 % interval:
// what a contradiction must exceed.
const certain = 2.575829

// Where nothing shows how multiplexed counts varied, each time slice is assumed to differ by
// unknownVariation of the count. Rare events come in bursts and vary by burstVariation; rare is
// less than a part in rareBelow of the largest count. A slice is assumed to last turnSeconds,
// the tick of the kernel's timer: at most 10 ms and mostly 4. Without a duration there are
// unknownTurns slices.
const (
	unknownVariation = 1.0
	burstVariation   = 3.0
	rareBelow        = 100
	turnSeconds      = 0.004
	unknownTurns     = 25
)

// relationError is half the width of the 99 % interval of a relation's difference, were its
// sides equal: the question is whether the smaller could be the true size of both. So the
// errors are those of counts of its size.
func (b *Binding) relationError(a *Account, r *boundRule, left, right float64) float64 {
	if b.oneWindow(a, r.deps) {
		return 0
	}
	least, sum := min(math.Abs(left), math.Abs(right)), 0.0
	for k, at := range r.deps {
		e, fewest := b.slotError(a, at)
		if !(e > 0) {
			continue
		}
		value, x, y := a.in[at], 0.0, 0.0
		a.in[at] = value + e
		if r.uses[k].left {
			x = r.left.Eval(a.in) - left
		}
		if r.uses[k].right {
			y = r.right.Eval(a.in) - right
		}
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

// balanceError is half the width of the 99 % interval of a balance. Its slots are uncertain if
// they were sampled, or counted for a part of the time. The effects of counts are added as if
// they were fully correlated, in one group or several. That is a bound. A group that was on the
// counters by itself has no error: what holds at each moment holds for its counts.
func (b *Binding) balanceError(a *Account, l *balance) float64 {
	if b.oneWindow(a, l.deps) {
		return 0
	}
	moved, was, sum := false, l.of(a.values), 0.0
	for _, at := range l.deps {
		e, _ := b.slotError(a, at)
		if !(e > 0) {
			continue
		}
		value := a.in[at]
		a.in[at] = value + e
		b.evaluate(a, l.order)
		a.in[at] = value
		moved = true
		sum += math.Abs(l.of(a.values) - was)
	}
	if moved {
		b.evaluate(a, l.order)
	}
	return certain * sum
}

// A balance is what the values of some nodes sum to, less that of another.
type balance struct {
	nodes []int
	less  int   // -1 for none
	deps  []int // slots that it rests on
	order []int // the nodes to evaluate for it
}

// balanceOf makes a balance. named is all of its nodes, in the order
// of their events' names in a text.
func (b *Binding) balanceOf(nodes []int, less int, named []int) balance {
	l := balance{nodes: nodes, less: less, order: b.evaluated(named)}
	for _, i := range named {
		l.deps = union(l.deps, b.nodes[i].deps)
	}
	return l
}

// evaluated lists the nodes to evaluate for the values of some, in order.
func (b *Binding) evaluated(nodes []int) []int {
	needed := make([]bool, len(b.nodes))
	var need func(i int)
	need = func(i int) {
		if needed[i] {
			return
		}
		needed[i] = true
		if b.nodes[i].coherent {
			return // its formula was written out
		}
		for _, j := range b.Method.nodesBefore(i) {
			need(j)
		}
	}
	for _, i := range nodes {
		need(i)
	}
	var order []int
	for _, i := range b.Method.order {
		if needed[i] {
			order = append(order, i)
		}
	}
	return order
}

// of is the balance of values by node.
func (l *balance) of(values []float64) float64 {
	sum := 0.0
	for _, i := range l.nodes {
		sum += values[i]
	}
	if l.less >= 0 {
		sum -= values[l.less]
	}
	return sum
}

// oneWindow reports whether slots were counted over the same windows, and none was sampled.
// Then what holds of events holds of their counts.
func (b *Binding) oneWindow(a *Account, slots []int) bool {
	group := 0
	for i, at := range slots {
		g := b.groups[at]
		if a.seen[at].sampled {
			return false
		}
		if i > 0 && g != group || g == 0 {
			return false
		}
		group = g
	}
	return true
}

// slotError is the standard error of a slot's count, and the part that chance leaves for any
// small count. It is worked out once.
func (b *Binding) slotError(a *Account, at int) (e, fewest float64) {
	seen := &a.seen[at]
	if seen.judged {
		return seen.deviation, seen.fewest
	}
	seen.judged = true
	s := b.slotAt(at)
	if c, ok := b.cell(a.table, a.place, s); ok {
		column := -1
		if cols := b.columnsOf(s); len(cols) == 1 {
			column = cols[0]
		}
		seen.deviation, seen.fewest = b.columnError(a, a.place.Self, column, &c)
	}
	return seen.deviation, seen.fewest
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

// spreadError is the standard error of a column's count from the multiplexing
// of its group; 0 if that is not known.
func spreadError(spreads []counts.Spread, column int) float64 {
	for i := range spreads {
		s := &spreads[i]
		k := slices.Index(s.Columns, column)
		if k < 0 {
			continue
		}
		weights := make([]float64, len(s.Columns))
		weights[k] = 1
		if v, freedom := s.Variance(weights); freedom >= freedomEnough {
			return math.Sqrt((1-s.Share)*v) * quantile(freedom) / counts.Confidence
		}
	}
	return 0
}

// turns is how many slices of the multiplexing rotation a count rests on, at least 1.
func (b *Binding) turns(a *Account, c *counts.Cell, share float64) float64 {
	n := math.Inf(1)
	if a.Duration > 0 {
		n = share * a.Duration / turnSeconds
	}
	if s := seconds(a.table, a.Scope.CPUs, c); s > 0 {
		n = min(n, s/turnSeconds)
	}
	if math.IsInf(n, 1) {
		n = unknownTurns
	}
	return max(n, 1)
}
