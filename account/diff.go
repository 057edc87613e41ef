package account

import (
	"errors"
	"fmt"
	"math"

	"github.com/aclements/go-moremath/stats"

	"github.com/cyclestack/cyclestack/model"
)

// A Resource is what runs are compared by.
type Resource uint8

// The resources. Time is the processor's, Elapsed that of a clock on the wall, both in
// nanoseconds. Slots are parts of all slots, where another tool published no more.
const (
	Cycles Resource = iota
	Time
	Elapsed
	Slots
)

func (r Resource) String() string {
	return [...]string{"cycles", "time", "elapsed time", "slots"}[r]
}

// A Reading is what one run adds to a comparison: what it took of a resource for
// each unit of work, in all and by node.
type Reading struct {
	Total float64
	Nodes []float64 // NaN for what is not known, or is no part of the resource
	// Errors are the standard errors of the nodes, and of Total behind them. They are nil
	// unless counts were estimated, as from a simulator's windows.
	Errors []float64
}

// Reading returns the cycles that the account's run took for each of so many
// units of work. It is an error if its cycles were not counted.
func (a *Account) Reading(work float64) (Reading, error) { return a.ReadingOf(Cycles, work) }

// ReadingOf is the same for any resource.
func (a *Account) ReadingOf(of Resource, work float64) (Reading, error) {
	total := a.amount(of)
	switch {
	case !(total > 0) && of != Cycles:
		return Reading{}, errors.New("neither its cycles nor any time were counted")
	case !(total > 0):
		return Reading{}, errors.New("its cycles were not counted")
	case !(work > 0):
		return Reading{}, fmt.Errorf("%g units of work", work)
	}
	r := Reading{Total: total / work, Nodes: make([]float64, len(a.Nodes))}
	for i := range a.Nodes {
		r.Nodes[i] = a.Nodes[i].Value * a.whole(of, i) / work
	}
	for _, e := range a.amounts {
		r.Errors = append(r.Errors, e*r.Total)
	}
	return r, nil
}

// Per returns the reading for each of so many units of work, of one for the run.
func (r Reading) Per(work float64) Reading {
	out := Reading{Total: r.Total / work, Nodes: make([]float64, len(r.Nodes))}
	for i, v := range r.Nodes {
		out.Nodes[i] = v / work
	}
	return out
}

// whole is what a node's value has to be multiplied by to be an amount of a
// resource; NaN if it is none.
func (a *Account) whole(of Resource, node int) float64 {
	m := a.Model()
	n := &m.Nodes[node]
	switch {
	case n.Section != "":
	case of == Slots && m.Share(node):
		return 1
	case of == Time && n.Unit == "" && m.Unit == "processors":
		if a.waits(node) {
			return math.NaN()
		}
		return a.Duration * 1e9
	case of != Cycles:
	case m.Share(node):
		return a.amount(of)
	case n.Unit == cyclesPerInstruction || n.Unit == "" && m.Unit == cyclesPerInstruction:
		return a.Instructions()
	}
	return math.NaN()
}

// waits says whether a node is time without a processor: it is next to the node that is all
// processor time.
func (a *Account) waits(node int) bool {
	m, all := a.Model(), a.amount(Time)
	top := 0
	for top < len(m.Nodes) && !(m.Nodes[top].Section == "" && math.Abs(a.Nodes[top].Value*a.Duration*1e9-all) <= 1e-6*all) {
		top++
	}
	if top == len(m.Nodes) {
		return false
	}
	for i := node; i >= 0; i = m.Nodes[i].Above {
		switch {
		case i == top:
			return false
		case m.Nodes[i].Above == m.Nodes[top].Above:
			return true
		}
	}
	return false
}

const cyclesPerInstruction = "cycles/instruction"

// amount is what the account's scope took of a resource; NaN if it was not counted.
func (a *Account) amount(of Resource) float64 {
	switch of {
	case Cycles:
		return a.cycles()
	case Elapsed:
		return a.Duration * 1e9
	case Slots:
		if a.Binding.published || a.Model().Unit == "slots" && a.cycles() > 0 {
			return 1
		}
		return math.NaN()
	}
	if v := a.firstCount("task-clock", "cpu-clock"); !math.IsNaN(v) {
		return v
	}
	return a.firstCount("user_time") + a.firstCount("system_time")
}

// cycles are the core's cycles in the account's scope; NaN if they were not
// counted.
func (a *Account) cycles() float64 {
	if of := a.Binding.of; of != nil && a.Model().Unit == "cycles" {
		return of.Eval(a.in)
	}
	if v := a.firstCount(model.RoleCycles.Events()...); !math.IsNaN(v) {
		return v
	}
	return a.firstCount("slots") / float64(a.CPU().Width)
}

// Instructions are the instructions retired in the account's scope; NaN if they
// were not counted.
func (a *Account) Instructions() float64 {
	return a.firstCount(model.RoleInstructions.Events()...)
}

// Count returns the count of an event in the account's scope, by any spelling
// that the processor's table knows; NaN if it was not counted.
func (a *Account) Count(spelling string) float64 {
	events := a.Binding.Method.Events
	ref, err := model.ParseEvent(spelling)
	if err != nil {
		return math.NaN()
	}
	id := events.Resolve(ref).Event()
	for col, c := range a.Binding.Layout.Columns {
		other, err := model.ParseEvent(c.Event)
		if err != nil || events.Resolve(other).Event() != id {
			continue
		}
		if cell, ok := a.Binding.scaled(a.table, a.place.Self, col); ok {
			return cell.Estimate()
		}
	}
	return math.NaN()
}

func (a *Account) firstCount(spellings ...string) float64 {
	for _, s := range spellings {
		if v := a.Count(s); !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// A Verdict is what a comparison says of one figure.
type Verdict uint8

// The verdicts. Whether more cycles are worse is for the reader to say.
const (
	CannotTell Verdict = iota // too few runs, or too much between them
	Same                      // a change as large as 1 % of all cycles is ruled out
	More
	Less
)

func (v Verdict) String() string {
	return [...]string{"cannot tell", "no change", "more", "less"}[v]
}

// A Change is how one figure differs between two sets of runs.
type Change struct {
	Old, New  float64 // means, in cycles for each unit of work, so that changes add up; NaN if not known
	Delta     float64 // New − Old
	Low, High float64 // 95 % interval of Delta; NaN if there are too few runs
	P         float64 // of a two-sided test, corrected for testing several; NaN if there are too few runs, or it was not tested
	Effect    float64 // Cliff's delta: the chance that a new run takes more than an old one, less that of the opposite, −1…1
	Verdict   Verdict
	// Seen is the least change of four of five that such runs would show, in the same
	// unit; NaN if there are too few runs.
	Seen float64
}

// Relative returns the change in parts of the old value.
func (c *Change) Relative() float64 { return c.Delta / c.Old }

// A Difference compares two sets of runs that were accounted for by one method.
type Difference struct {
	Model *model.Model
	Runs  [2]int // old and new
	Basis Basis
	Total Change
	Nodes []Change // by node of the model
}

// Compare compares two sets of runs. The total is tested by itself. Nodes are tested level by
// level, with a correction among siblings. A node's children are tested only if it has changed
// or stands for the whole: so the chance that any of a set of siblings is called changed though
// none is, is at most 5 %. The test is that of [ComparePlaces].
func Compare(m *model.Model, old, new []Reading, design Design) *Difference {
	d := &Difference{Model: m, Runs: [2]int{len(old), len(new)}, Nodes: make([]Change, len(m.Nodes)),
		Basis: design.basis(len(old), len(new))}
	c := newComparison(design, d.Basis, column(old, -1), column(new, -1))
	t := nodeTester{c, d, old, new}
	t.widen(&c.total, -1)
	c.test([]*Change{&c.total}, c.whole[0:1], c.whole[1:2])
	d.Total = c.total
	var roots []int
	for i := range m.Nodes {
		d.Nodes[i] = c.change(column(old, i), column(new, i))
		t.widen(&d.Nodes[i], i)
		if m.Nodes[i].Parent == "" && m.Nodes[i].Section == "" {
			roots = append(roots, i)
		}
	}
	t.siblings(roots)
	return d
}

// A nodeTester tests the nodes of a tree.
type nodeTester struct {
	*comparison
	d        *Difference
	old, new []Reading
}

// widen gives the change of a node, or the total for -1, the errors of its readings.
func (t *nodeTester) widen(x *Change, node int) {
	variance := 0.0
	for _, list := range [][]Reading{t.old, t.new} {
		for i := range list {
			if errs := list[i].Errors; len(errs) > 0 {
				e := errs[(node+len(errs))%len(errs)] / float64(len(list))
				variance += e * e
			}
		}
	}
	t.comparison.widen(x, variance)
}

// siblings judges siblings, and below those that have changed their children.
func (t *nodeTester) siblings(nodes []int) {
	var list []*Change
	var old, new [][]float64
	for _, i := range nodes {
		if c := &t.d.Nodes[i]; !math.IsNaN(c.Delta) {
			list = append(list, c)
			old, new = append(old, column(t.old, i)), append(new, column(t.new, i))
		}
	}
	t.test(list, old, new)
	for _, i := range nodes {
		n := &t.d.Model.Nodes[i]
		if v := t.d.Nodes[i].Verdict; v == More || v == Less || n.Level == 0 {
			t.siblings(n.Children)
			continue
		}
		t.skip(n.Children)
	}
}

// skip judges nodes that are not tested: no change may still be ruled out.
func (t *nodeTester) skip(nodes []int) {
	for _, i := range nodes {
		t.judge(&t.d.Nodes[i])
		t.skip(t.d.Model.Nodes[i].Children)
	}
}

// column is a node's reading in each run, or the total for -1; nil if one does
// not have it, as the others could not be compared.
func column(list []Reading, node int) []float64 {
	var values []float64
	for _, r := range list {
		v := r.of(node)
		if math.IsNaN(v) {
			return nil
		}
		values = append(values, v)
	}
	return values
}

// of is the reading of a node, or the total for -1.
func (r *Reading) of(node int) float64 {
	if node < 0 {
		return r.Total
	}
	return r.Nodes[node]
}

// A comparison is what comparing any figure of two sets of runs needs.
type comparison struct {
	design Design
	basis  Basis
	whole  [2][]float64 // the total of each run
	total  Change
	boot   *bootstrap // nil if there are too few runs
}

func newComparison(design Design, basis Basis, old, new []float64) *comparison {
	c := &comparison{design: design, basis: basis, whole: [2][]float64{old, new}}
	if basis == ByRuns || basis == ByPairs {
		c.boot = newBootstrap(len(old), len(new), design)
	}
	c.total = c.change(old, new)
	return c
}

// change compares two samples; its verdict is still open.
func (c *comparison) change(old, new []float64) Change {
	nan := math.NaN()
	x := Change{Old: nan, New: nan, Delta: nan, Low: nan, High: nan, P: nan, Effect: nan, Seen: nan}
	if len(old) == 0 || len(new) == 0 {
		return x
	}
	x.Old, x.New = mean(old), mean(new)
	x.Delta = x.New - x.Old
	x.Effect = cliff(old, new)
	switch c.basis {
	case ByRuns, ByPairs:
		x.Low, x.High = c.boot.interval(old, new)
		x.Seen = seen(old, new, c.basis == ByPairs)
	case ByExactCounts:
		x.Low, x.High = x.Delta, x.Delta
	}
	return x
}

// widen gives a change of few runs the interval that a variance of it makes. Simulations that
// agree to the last digit had the same windows, and the errors are the same.
func (c *comparison) widen(x *Change, variance float64) {
	if c.basis != BySampling && (c.basis != ByExactCounts || variance == 0 || x.Delta == 0) {
		return
	}
	e := stats.StdNormal.InvCDF(1-alpha/2) * math.Sqrt(variance)
	x.Low, x.High, x.P = x.Delta-e, x.Delta+e, twoSided(x.Delta, variance)
}

// adjust corrects the p-values of changes that were widened.
func (c *comparison) adjust(list []*Change) {
	ps := make([]float64, len(list))
	for i, x := range list {
		ps[i] = x.P
	}
	holm(ps)
	for i, x := range list {
		x.P = ps[i]
	}
}

// test judges the changes of one family, given their samples.
func (c *comparison) test(list []*Change, old, new [][]float64) {
	var ps []float64
	switch {
	case len(list) > 0 && (c.basis == ByPairs || c.basis == ByRuns):
		f := family{old: old, new: new, whole: c.whole, design: c.design}
		ps = f.test()
	case c.basis == ByExactCounts:
		c.adjust(list)
	}
	for i, x := range list {
		if ps != nil {
			x.P = ps[i]
		}
		c.judge(x)
	}
}

// seen is the least difference of the means that four of five comparisons of such runs would
// find: the quantiles of Student's distribution for the level of the test and for its power, in
// standard errors (J. Cohen, Statistical Power Analysis for the Behavioral Sciences, chapter
// 2).
func seen(old, new []float64, paired bool) float64 {
	const power = 0.842 // the 80 % quantile of the normal distribution
	o, n := float64(len(old)), float64(len(new))
	free, variance := o+n-2, (squares(old)+squares(new))/(o+n-2)*(1/o+1/n)
	if paired {
		deltas := make([]float64, len(old))
		for i := range deltas {
			deltas[i] = new[i] - old[i]
		}
		free, variance = n-1, squares(deltas)/(n-1)/n
	}
	return (studentQuantile(free) + power) * math.Sqrt(variance)
}

// squares is the sum of the squares of differences from the mean.
func squares(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return sum
}

// judge decides, once the p-value has been corrected.
func (c *comparison) judge(x *Change) {
	c.judgeFrom(x, negligible)
}

// judgeFrom is judge for changes from some part of all cycles on. Exact counts that
// differ by less differ by nothing that matters: the loader and the environment are not
// the same in two runs of one program.
func (c *comparison) judgeFrom(x *Change, least float64) {
	switch {
	case c.basis != ByExactCounts || x == &c.total && !math.IsNaN(x.P):
	case !math.IsNaN(c.total.P):
		least = sameWithin // rare events are in some windows, or in none
	case least == negligible:
		least = negligibleExact
	}
	large := math.Abs(x.Delta) > least*c.total.Old
	changed := large && (x.P < alpha || c.basis == ByExactCounts && math.IsNaN(x.P))
	same := sameWithin * c.total.Old
	switch {
	case changed && x.Low > 0:
		x.Verdict = More
	case changed && x.High < 0:
		x.Verdict = Less
	case c.basis == ByExactCounts && x.Low >= -same && x.High <= same:
		x.Verdict = Same
	case x.Low >= -same && x.Low <= 0 && x.High >= 0 && x.High <= same && c.basis != BySampling: // which knows nothing of other runs
		x.Verdict = Same
	}
}
