package model

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cyclestack/cyclestack/metric"
)

// draws is how many sets of random numbers the model is tried with.
const draws = 2000

// A trial evaluates a model with made-up counts: any positive numbers, so that
// what never holds in it cannot hold.
type trial struct {
	m     *Model
	slots map[string]int
	nodes []*metric.Program // nil for a rest, and for what cannot be evaluated
	order []int             // of evaluation
	in    []float64
	rng   *rand.Rand
}

// tryNumbers checks with random counts that a node's children can sum to it, and that
// thresholds can be reached.
func (l *linter) tryNumbers() {
	l.tryFamilies()
	ranges := l.ranges()
	for i := range l.m.Nodes {
		l.tryThreshold(&l.m.Nodes[i], ranges)
	}
}

// tryFamilies checks that the children of each node can sum to it: if they are
// more than it for all counts tried, or less, they cannot.
func (l *linter) tryFamilies() {
	type family struct {
		node, parts int
		over, under bool // seen: the sum at most the node, and at least
		known       bool
	}
	var families []*family
	for i := range l.m.Nodes {
		n := &l.m.Nodes[i]
		f := &family{node: i}
		for _, c := range n.Children {
			if child := &l.m.Nodes[c]; child.Rest {
				f.parts = 0
				break
			} else if child.Unit == n.Unit {
				f.parts++
			}
		}
		if f.parts > 1 && !n.Overlap {
			families = append(families, f)
		}
	}
	if len(families) == 0 {
		return
	}
	// Counts are not independent, so the random ones differ by orders of
	// magnitude: among so many, some are as those of a real program.
	const slack = 1e-6
	for _, smt := range []float64{0, 1} {
		t := newTrial(l.m, smt)
		for range draws / 2 {
			if !slices.ContainsFunc(families, func(f *family) bool { return !f.over || !f.under }) {
				return // more draws say no more
			}
			t.draw()
			for _, f := range families {
				n := &l.m.Nodes[f.node]
				whole, sum := t.in[f.node], 0.0
				for _, c := range n.Children {
					if l.m.Nodes[c].Unit == n.Unit {
						sum += t.in[c]
					}
				}
				if math.IsNaN(whole) || math.IsNaN(sum) {
					continue
				}
				f.known = true
				f.over = f.over || sum <= whole+slack*math.Abs(whole)
				f.under = f.under || sum >= whole-slack*math.Abs(whole)
			}
		}
	}
	for _, f := range families {
		n := &l.m.Nodes[f.node]
		switch {
		case !f.known:
			l.report(n.pos.at("name"), SevNote, "node %s: whether its children can sum to it was not found out", n.Name)
		case !f.over:
			l.report(n.pos.at("name"), SevError, "node %s: its children are always more than it", n.Name)
		case !f.under:
			l.report(n.pos.at("name"), SevError, "node %s: its children are always less than it; one with rest = true would show what they leave", n.Name)
		}
	}
}

// newTrial compiles the formulas of a model.
func newTrial(m *Model, smt float64) *trial {
	t := &trial{m: m, slots: map[string]int{}, nodes: make([]*metric.Program, len(m.Nodes)), rng: rand.New(rand.NewPCG(1, 2))}
	slot := func(name string) int {
		s, ok := t.slots[name]
		if !ok {
			s = len(t.slots)
			t.slots[name] = s
		}
		return s
	}
	for i := range m.Nodes {
		slot(m.Nodes[i].Name)
	}
	known := constants{hasEvent: func(string) bool { return true }, smt: smt}.metric()
	known.CPUID = func(string) bool { return false }
	for i := range m.Nodes {
		if e := m.Nodes[i].expr; e != nil {
			t.nodes[i], _ = metric.Compile(e.Fold(known), slot)
		}
	}
	t.order = evaluationOrder(m)
	t.in = make([]float64, len(t.slots))
	return t
}

// evaluationOrder returns the nodes such that each comes after those that its
// value is made of.
func evaluationOrder(m *Model) []int {
	b := &builder{m: m, nodes: map[string]int{}}
	for i := range m.Nodes {
		b.nodes[m.Nodes[i].Name] = i
	}
	var order []int
	seen := make([]bool, len(m.Nodes))
	var visit func(i int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, j := range b.needs(i) {
			visit(j)
		}
		order = append(order, i)
	}
	for i := range m.Nodes {
		visit(i)
	}
	return order
}

// draw makes up counts and parameters and computes all nodes.
func (t *trial) draw() {
	for i := range t.in {
		t.in[i] = math.Pow(10, 2+7*t.rng.Float64())
	}
	for i := range t.m.Parameters {
		p := &t.m.Parameters[i]
		if s, ok := t.slots[p.Name]; ok && p.Value != nil {
			t.in[s] = *p.Value
		}
	}
	for _, i := range t.order {
		n := &t.m.Nodes[i]
		switch {
		case n.Rest:
			t.in[i] = t.rest(i)
		case t.nodes[i] != nil:
			t.in[i] = t.nodes[i].Eval(t.in)
		default:
			t.in[i] = math.NaN()
		}
	}
}

// rest returns what the siblings of a node leave of their parent.
func (t *trial) rest(node int) float64 {
	parent := t.slots[t.m.Nodes[node].Parent]
	v := t.in[parent]
	for _, c := range t.m.Nodes[parent].Children {
		if c != node {
			v -= t.in[c]
		}
	}
	return v
}

// tryThreshold checks that a threshold holds for some values of the nodes
// within their ranges, and not for all.
func (l *linter) tryThreshold(n *Node, ranges map[string]span) {
	if n.threshold == nil {
		return
	}
	var values []span
	program, err := metric.Compile(n.threshold.Fold(constants{hasEvent: func(string) bool { return true }}.metric()), func(name string) int {
		values = append(values, ranges[name])
		return len(values) - 1
	})
	if err != nil {
		l.report(n.pos.at("threshold"), SevError, "node %s: threshold: %v", n.Name, err)
		return
	}
	rng := rand.New(rand.NewPCG(3, 4))
	in := make([]float64, len(values))
	reached, missed := false, false
	for n := 0; n < draws && !(reached && missed); n++ {
		for i, r := range values {
			in[i] = r.draw(rng)
		}
		switch v := program.Eval(in); {
		case v == 0:
			missed = true
		case v == v:
			reached = true
		}
	}
	switch {
	case !reached:
		l.report(n.pos.at("threshold"), SevError, "node %s: its threshold cannot be reached by any values within the nodes' ranges", n.Name)
	case !missed:
		l.report(n.pos.at("threshold"), SevWarning, "node %s: its threshold holds for all values within the nodes' ranges", n.Name)
	}
}

// A span is the range of a value.
type span struct{ low, high float64 }

// ranges returns the ranges of the names in thresholds: those that nodes state,
// else 0 to 1 for shares and any positive number for others.
func (l *linter) ranges() map[string]span {
	ranges := map[string]span{}
	for i := range l.m.Parameters {
		r := span{0, math.Inf(1)}
		if p := &l.m.Parameters[i]; p.Value != nil {
			r = span{*p.Value, *p.Value}
		}
		ranges[l.m.Parameters[i].Name] = r
	}
	for i := range l.m.Nodes {
		n := &l.m.Nodes[i]
		r := span{0, math.Inf(1)}
		if l.m.Share(i) {
			r.high = 1
		}
		if n.Min != nil {
			r.low = *n.Min
		}
		if n.Max != nil {
			r.high = *n.Max
		}
		ranges[n.Name] = r
	}
	return ranges
}

// draw returns any value in the range, its ends more often than others.
func (r span) draw(rng *rand.Rand) float64 {
	switch pick := rng.IntN(4); {
	case pick == 0:
		return r.low
	case math.IsInf(r.high, 1):
		return r.low + math.Pow(10, -3+12*rng.Float64())
	case pick == 1:
		return r.high
	}
	return r.low + (r.high-r.low)*rng.Float64()
}
