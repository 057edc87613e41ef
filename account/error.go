package account

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// errorBounds propagates the variances of counts: of repeats, or of samples.
//
// How the counts of repeats are correlated is known where the runs were kept
// apart. perf does not record it, so there the bound is the one that holds for any
// correlation: the effects of all inputs' errors add up.
func (b *Binding) errorBounds(t *counts.Table, place Place, a *Account) {
	if a.sampled = b.sampled(t, place); a.sampled {
		b.errorsOfSamples(t, place, a)
		return
	}
	if j := t.Joint(place.Self); j != nil && len(place.LP) == 0 {
		b.errorsOfRuns(t, place, a, j)
		return
	}
	a.amounts = nil
	keep, bound := append(a.keep[:0], a.Nodes...), append(a.bound[:0], make([]float64, len(a.Nodes))...)
	a.keep, a.bound = keep, bound
	varied := false // from one repeat to the next
	for _, k := range b.live {
		cell, ok := b.cell(t, place, &b.slots[k])
		if !ok || cell.Variance <= 0 || b.isPart(t, &b.slots[k]) {
			continue
		}
		varied = true
		at := b.slotIndex(k)
		value := a.in[at]
		a.in[at] = value + math.Sqrt(cell.Variance)
		b.compute(a)
		for i := range a.Nodes {
			bound[i] += math.Abs(a.Nodes[i].Value - keep[i].Value)
		}
		if b.of != nil {
			moved := b.of.Eval(a.in)
			a.in[at] = value
			b.amountBounds(a, keep, moved/b.of.Eval(a.in))
		}
		a.in[at] = value
	}
	b.divisions(t, place.Self, 1, func() {
		b.readSlots(t, place, a)
		b.compute(a)
		for i := range a.Nodes {
			bound[i] += math.Abs(a.Nodes[i].Value - keep[i].Value)
		}
	})
	b.readSlots(t, place, a)
	b.compute(a)
	copy(a.Nodes, keep)
	for i := range a.Nodes {
		if a.Nodes[i].Known() && (varied || bound[i] > 0) {
			a.Nodes[i].Error = counts.Confidence * bound[i]
		}
	}
}

// amountBounds adds the effects of a moved input to the errors of amounts. The whole is then
// so many times itself.
func (b *Binding) amountBounds(a *Account, keep []Value, moved float64) {
	if a.amounts == nil {
		a.amounts = make([]float64, len(keep)+1)
	}
	for i := range keep { // all are shares, where there is a whole
		a.amounts[i] += math.Abs(a.Nodes[i].Value*moved - keep[i].Value)
	}
	a.amounts[len(keep)] += math.Abs(moved - 1)
}

// isPart reports whether a slot is a part of a whole that is known exactly.
func (b *Binding) isPart(t *counts.Table, s *slot) bool {
	return slices.ContainsFunc(b.columnsOf(s), func(col int) bool { return t.Columns[col].Whole > 0 })
}

// divisions calls effect for each whole of a row, with some standard errors moved between its
// two parts.
func (b *Binding) divisions(t *counts.Table, row int, by float64, effect func()) {
	cells := t.Row(row)
	for i := range cells {
		one, whole := &cells[i], t.Columns[i].Whole
		if whole <= 0 || !one.Ok() || !(one.Variance > 0) {
			continue
		}
		for j := i + 1; j < len(cells); j++ {
			if other := &cells[j]; t.Columns[j].Whole == whole && other.Ok() && (b.used[i] || b.used[j]) {
				was, sd := [2]float64{one.Value, other.Value}, by*math.Sqrt(one.Variance)
				one.Value, other.Value = one.Value+sd, other.Value-sd
				effect()
				one.Value, other.Value = was[0], was[1]
			}
		}
	}
}

// errorsOfRuns propagates how the counts vary together from run to run, by the
// delta method. Multiplexing is part of how the runs differ: in each
// the groups had other time slices. The cells of the place are changed while it works.
func (b *Binding) errorsOfRuns(t *counts.Table, place Place, a *Account, j *counts.Joint) {
	keep := slices.Clone(a.Nodes)
	slopes := make([][]float64, len(a.Nodes))
	for i := range slopes {
		slopes[i] = make([]float64, len(t.Columns))
	}
	cells := t.Row(place.Self)
	for col := range cells {
		c := &cells[col]
		if !b.used[col] || !c.Ok() || !(c.Variance > 0) {
			continue
		}
		was, step := c.Value, math.Sqrt(c.Variance)
		for _, sign := range []float64{1, -1} {
			c.Value = was + sign*step
			b.readSlots(t, place, a)
			b.compute(a)
			for i := range a.Nodes {
				slopes[i][col] += sign * a.Nodes[i].Value / (2 * step)
			}
		}
		c.Value = was
	}
	b.readSlots(t, place, a)
	b.compute(a)
	copy(a.Nodes, keep)
	half := studentQuantile(float64(j.Runs - 1))
	for i := range keep {
		if a.Nodes[i].Known() {
			a.Nodes[i].Error = half * math.Sqrt(j.Variance(slopes[i]))
		}
	}
}

// sampled reports whether the counts of a place are sums of samples.
func (b *Binding) sampled(t *counts.Table, place Place) bool {
	for _, row := range append([]int{place.Self}, place.LP...) {
		for _, c := range t.Row(row) {
			if c.Samples > 0 && c.Repeats <= 1 {
				return true
			}
		}
	}
	return false
}

// errorsOfSamples propagates the variances of samples by the delta method.
// Samples of different events arrive independently of each other, so the squares
// of their effects add up. The cells of the place are changed while it works.
func (b *Binding) errorsOfSamples(t *counts.Table, place Place, a *Account) {
	keep := make([]Value, len(a.Nodes))
	copy(keep, a.Nodes)
	variance := make([]float64, len(a.Nodes))
	effect := func() {
		b.readSlots(t, place, a)
		b.compute(a)
		for i := range a.Nodes {
			effect := (a.Nodes[i].Value - keep[i].Value) / sampleStep
			variance[i] += effect * effect
		}
	}
	for k, row := range append([]int{place.Self}, place.LP...) {
		if k > 0 && row == place.Self {
			continue
		}
		cells := t.Row(row)
		for col := range cells {
			if c := &cells[col]; b.used[col] && c.Ok() && c.Variance > 0 && t.Columns[col].Whole == 0 {
				was := c.Value
				c.Value += sampleStep * math.Sqrt(c.Variance)
				effect()
				c.Value = was
			}
		}
		b.divisions(t, row, sampleStep, effect)
	}
	b.readSlots(t, place, a)
	b.compute(a)
	copy(a.Nodes, keep)
	for i := range a.Nodes {
		if a.Nodes[i].Known() {
			a.Nodes[i].Error = counts.Confidence * math.Sqrt(variance[i])
		}
	}
}

// sampleStep is by how much of its standard error a count is moved: little
// enough for the change to be that of the tangent.
const sampleStep = 1.0 / 64

// freedomEnough is the least degrees of freedom that an error must rest on:
// with fewer, the error itself is not known.
const freedomEnough = 1

// errorsOfTurns propagates the error of multiplexing: a
// group was not counted in the rest of the time. The counts of one group are
// correlated as its intervals show.
func (b *Binding) errorsOfTurns(t *counts.Table, place Place, a *Account) {
	keep := make([]Value, len(a.Nodes))
	copy(keep, a.Nodes)
	effects := b.effects(t.Clone(), place, a)
	b.readSlots(t, place, a)
	b.compute(a)
	copy(a.Nodes, keep)
	for i := range a.Nodes {
		if a.Nodes[i].Known() {
			a.Nodes[i].Error = turnsError(effects, i)
		}
	}
}

// An effect is what the counts of a group do to the nodes.
type effect struct {
	*counts.Spread
	slopes [][]float64 // by node, by column of the spread: the change of the node's value for one count more
}

// effects finds what a change of each count of each group does.
func (b *Binding) effects(t *counts.Table, place Place, a *Account) []effect {
	var list []effect
	rows := append([]int{place.Self}, place.LP...)
	for k, row := range rows {
		if k > 0 && row == place.Self {
			continue
		}
		spreads := t.Spreads(row)
		for i := range spreads {
			list = append(list, b.effect(t, place, a, row, &spreads[i]))
		}
	}
	return list
}

// effect moves the count of each column of a group by a standard error up and
// down.
func (b *Binding) effect(t *counts.Table, place Place, a *Account, row int, s *counts.Spread) effect {
	n := len(s.Columns)
	e := effect{s, make([][]float64, len(a.Nodes))}
	slopes := make([]float64, n*len(a.Nodes))
	for i := range e.slopes {
		e.slopes[i] = slopes[i*n : (i+1)*n]
	}
	weights := make([]float64, n)
	for k, column := range s.Columns {
		weights[k] = 1
		variance, _ := s.Variance(weights)
		sd := math.Sqrt(variance)
		weights[k] = 0
		c := t.Cell(row, column)
		estimate := c.Estimate()
		if !(sd > 0 && estimate > 0) {
			continue
		}
		was := *c
		for _, sign := range []float64{1, -1} {
			c.Value = was.Value * (1 + sign*sd/estimate)
			b.readSlots(t, place, a)
			b.compute(a)
			for i := range a.Nodes {
				e.slopes[i][k] += sign * a.Nodes[i].Value / (2 * sd)
			}
		}
		*c = was
	}
	return e
}

// turnsError is the half-width of a node's 95 % interval. It is 0 for what was always counted,
// and NaN if there are too few intervals to tell.
func turnsError(effects []effect, node int) float64 {
	variance := 0.0
	freedom := math.Inf(1)
	for k := range effects {
		e := &effects[k]
		v, free := e.Variance(e.slopes[node])
		if v == 0 {
			continue
		}
		freedom = min(freedom, free)
		variance += (1 - e.Share) * v
		for l := range k {
			variance += 2 * e.Covariance(effects[l].Spread, e.slopes[node], effects[l].slopes[node])
		}
	}
	switch {
	case variance == 0:
		return 0
	case freedom < freedomEnough:
		return math.NaN()
	}
	return quantile(freedom) * math.Sqrt(variance)
}

// quantile is the 97.5 % quantile of Student's t distribution: from 3 degrees of freedom
// on by its expansion (M. Abramowitz and I. A. Stegun, Handbook of Mathematical
// Functions, 26.7.5), which is right within 1 %.
func quantile(freedom float64) float64 {
	const x = counts.Confidence
	const x2 = x * x
	if freedom < 3 {
		return studentQuantile(freedom)
	}
	return x + x*(x2+1)/4/freedom +
		x*((5*x2+16)*x2+3)/96/(freedom*freedom) +
		x*(((3*x2+19)*x2+17)*x2-15)/384/(freedom*freedom*freedom)
}
