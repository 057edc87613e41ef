package account

import (
	"math"
	"math/rand/v2"
	"slices"
)

// closureTolerance is how far a node's children may miss it, relative to the whole: 2 %, as in
// a published analysis of stalls (Stack Overflow, answer to question 54084992).
const closureTolerance = 0.02

// contradiction is how much of the whole the measured levels may miss before the counts
// contradict each other. Intel gives its shares of slots as much room.
const contradiction = 0.05

// Measured are the first level of a tree of shares, and nodes of the second that few events
// decide. A share of more than measuredInputs events is an estimate, as are all deeper ones:
// these overlap, and overshoot. With a larger number, sound counts of five processors of
// TestDoctored (Sandy Bridge to Ice Lake) would contradict themselves.
const (
	measuredLevels = 2
	measuredInputs = 6
)

// prepareClosures finds out what must sum to what, and which nodes are measured. Children sum
// to their node by construction if one is what the others leave. If they overlap, they need
// not.
func (b *Binding) prepareClosures() {
	b.roots = b.disjointRoots()
	closed := b.identities()
	b.measured = make([]bool, len(b.nodes))
	for i := range b.Method.Model.Nodes {
		n := &b.Method.Model.Nodes[i]
		b.measured[i] = b.isMeasured(i)
		if len(n.Children) >= 2 && !n.Overlap && !closed[i] {
			b.sums = append(b.sums, i)
		}
	}
}

// disjointRoots are the roots of the main tree, the nodes of level 1, where no root
// stands for the whole. That a root's children overlap says nothing about the
// roots, which are disjoint parts of one whole: a model that divides the whole a
// second time does so in a section.
func (b *Binding) disjointRoots() []int {
	var roots []int
	for i := range b.Method.Model.Nodes {
		n := &b.Method.Model.Nodes[i]
		if n.Section != "" || n.Parent != "" {
			continue
		}
		if n.Level == 0 || !b.Method.Model.Share(i) {
			return nil
		}
		roots = append(roots, i)
	}
	return roots
}

// identities finds the nodes whose children sum to them whatever is counted, because one child
// is what the others leave: no recording can fail that check. If the roots sum to 1 in that
// way, they are not checked. They are found by trying: with counts drawn at random, sums that
// are none by construction do not come out. A child can be what another leaves, but never less
// than 0. If counts decide that, each trial shows it by an even chance.
func (b *Binding) identities() []bool {
	const trials = 32
	const rounding = 1e-9
	open := false // the roots do not always sum to 1
	closed := make([]bool, len(b.nodes))
	for i := range closed {
		closed[i] = true
	}
	n := len(b.slots) + len(b.nodes)
	a := &Account{Binding: b, Nodes: make([]Value, len(b.nodes)), workings: workings{in: make([]float64, n), values: make([]float64, len(b.nodes))}}
	r := rand.New(rand.NewPCG(1, 2))
	for range trials {
		for k := range b.slots {
			a.in[b.slotIndex(k)] = 1e6 * (1 + r.Float64())
		}
		b.compute(a)
		for i := range closed {
			closed[i] = closed[i] && b.closes(a, i)
		}
		sum := 0.0
		for _, i := range b.roots {
			sum += a.Nodes[i].Value
		}
		open = open || !(math.Abs(sum-1) <= rounding)
	}
	if !open {
		b.roots = nil
	}
	return closed
}

// closes says whether the children of a node sum to it exactly, but for
// rounding.
func (b *Binding) closes(a *Account, i int) bool {
	const rounding = 1e-9
	sum, size := 0.0, math.Abs(a.Nodes[i].Amount)
	for _, j := range b.Method.Model.Nodes[i].Children {
		sum += a.Nodes[j].Amount
		size = max(size, math.Abs(a.Nodes[j].Amount))
	}
	return math.Abs(sum-a.Nodes[i].Amount) <= rounding*size
}

// closeRoots checks that the shares of level 1 sum to the whole.
func (b *Binding) closeRoots(a *Account) {
	if len(b.roots) < 2 {
		return
	}
	sum := 0.0
	for _, i := range b.roots {
		sum += a.Nodes[i].Value
	}
	c := closure("level 1 sums to 1", sum, 1, 1)
	if math.Abs(c.Residual) > contradiction {
		b.contradicts(a, &c, -1)
	}
	a.Checks = append(a.Checks, c)
}

// closeNode checks that a node's children sum to it.
func (b *Binding) closeNode(a *Account, i int) {
	n := &b.Method.Model.Nodes[i]
	sum := 0.0
	for _, j := range n.Children {
		sum += a.Nodes[j].Value
	}
	whole := math.Abs(a.Nodes[i].Value)
	if b.Method.Model.Share(i) {
		whole = 1
	}
	c := closure(b.Method.closureNames[i], sum, a.Nodes[i].Value, whole)
	if c.Residual > contradiction && b.allMeasured(n.Children) {
		b.contradicts(a, &c, i)
	}
	a.Checks = append(a.Checks, c)
}

// contradicts makes of a closure that fails a contradiction, unless it does so
// within the error of its difference. whole is -1 for the roots of the tree.
func (b *Binding) contradicts(a *Account, c *Check, whole int) {
	if a.Scope.Code != nil {
		return
	}
	w, ok := a.said[finding{parts, whole}]
	if !ok {
		w = a.say(finding{parts, whole}, b.wordsOfParts(whole))
	}
	c.Error = b.balanceError(a, &w.balance)
	if math.Abs(c.Residual) <= c.Tolerance+c.Error {
		c.State = Holds
		return
	}
	c.Identity, c.Side, c.Events, c.Text = true, Measurement, w.events, w.text
}

// wordsOfParts says what it means that parts do not make up a whole.
func (b *Binding) wordsOfParts(whole int) words {
	const but = ": one of their counts is wrong, or they were not taken together."
	if whole < 0 {
		return b.wordsOfNodes("", "The parts of level 1 do not make up the whole"+but, b.balanceOf(b.roots, -1, b.roots))
	}
	n := &b.Method.Model.Nodes[whole]
	all := append([]int{whole}, n.Children...)
	return b.wordsOfNodes("", "The parts of "+n.Name+" are more than all of it"+but, b.balanceOf(n.Children, whole, all))
}

// isMeasured reports whether a node's value is measured, and no estimate.
func (b *Binding) isMeasured(i int) bool {
	n := &b.Method.Model.Nodes[i]
	if n.Section != "" || n.Level > measuredLevels || !b.Method.Model.Share(i) {
		return false
	}
	if n.Level > 1 && len(b.nodes[i].inputs) > measuredInputs {
		return false
	}
	p := b.Method.Model.Nodes[i].Above
	return p < 0 || !b.estimated(p)
}

func (b *Binding) allMeasured(nodes []int) bool {
	return !slices.ContainsFunc(nodes, func(i int) bool { return !b.measured[i] })
}

// estimated reports whether the parts of a node are estimates, whose sum may be
// more than there is: their rest may be negative, or one of them above the whole.
// That is allowed by models for estimates, and by more than rounding takes.
func (b *Binding) estimated(i int) bool {
	const most = 1.1
	nodes := b.Method.Model.Nodes
	return slices.ContainsFunc(nodes[i].Children, func(j int) bool {
		return b.Method.bounds[j][1] > most || nodes[j].Rest && nodes[j].Negative != ""
	})
}

func closure(name string, sum, parent, whole float64) Check {
	c := Check{Name: name, Op: "=", Left: sum, Right: parent, Tolerance: closureTolerance, Slack: closureSlack, Side: Machine,
		Residual: math.NaN(), rule: -1, node: true}
	if math.IsNaN(sum) || math.IsNaN(parent) {
		return c
	}
	if whole > 0 {
		c.Residual = (sum - parent) / whole
	} else {
		c.Residual = sum - parent
	}
	c.State = Holds
	if math.Abs(c.Residual) > c.Tolerance {
		c.State = Fails
	}
	return c
}

// closureSlack says why the tolerance of a closure is what it is.
const closureSlack = "counters start, stop and are read one after the other"

// checkNodes adds the impossible values of the measured levels, and the parts that are larger
// than their wholes. What is as it should be has no line: there are as many as nodes.
func (b *Binding) checkNodes(a *Account) {
	if a.Scope.Code != nil {
		return // chance puts samples a little away from where they belong
	}
	for _, i := range a.known {
		if v := a.Nodes[i].Value; b.measured[i] {
			b.checkRange(a, i, v)
			b.checkPart(a, i, v)
		}
	}
}

// checkRange checks that a value lies in the range that its node allows.
func (b *Binding) checkRange(a *Account, i int, value float64) {
	if !b.outside(i, value) {
		return
	}
	c := Check{Op: ">=", Side: Measurement, Identity: true, Left: value, Right: b.Method.bounds[i][0], rule: -1, node: true}
	if value > b.Method.bounds[i][1] {
		c.Op, c.Right = "<=", b.Method.bounds[i][1]
	}
	w, ok := a.said[finding{possible, i}]
	if !ok {
		name, nodes := b.Method.Model.Nodes[i].Name, []int{i}
		w = a.say(finding{possible, i}, b.wordsOfNodes(name+" is possible",
			name+" cannot have this value: one of its counts is wrong, or was not taken together with the others.", b.balanceOf(nodes, -1, nodes)))
	}
	b.addNodeCheck(a, &c, w)
}

// checkPart checks that a part is no larger than what it is a part of.
func (b *Binding) checkPart(a *Account, i int, value float64) {
	p := b.Method.Model.Nodes[i].Above
	if p < 0 || !b.measured[p] || !(value > a.Nodes[p].Value+contradiction) || b.outside(p, a.Nodes[p].Value) {
		return
	}
	w, ok := a.said[finding{part, i}]
	if !ok {
		name, whole := b.Method.Model.Nodes[i].Name, b.Method.Model.Nodes[p].Name
		w = a.say(finding{part, i}, b.wordsOfNodes(name+" is part of "+whole,
			name+" is larger than "+whole+" although it is a part of it: one of their counts is wrong, or they were not taken together.",
			b.balanceOf([]int{i}, p, []int{i, p})))
	}
	b.addNodeCheck(a, &Check{Op: "<=", Side: Measurement, Identity: true, Left: value, Right: a.Nodes[p].Value,
		Tolerance: contradiction, Slack: closureSlack, rule: -1, node: true}, w)
}

// wordsOfNodes says what is wrong with nodes.
func (b *Binding) wordsOfNodes(name, text string, l balance) words {
	return words{name: name, text: text, events: b.eventsOf(l.deps), balance: l}
}

// addNodeCheck adds a failed check of a node's value, or of its difference from another's, if
// it exceeds the error.
func (b *Binding) addNodeCheck(a *Account, c *Check, w *words) {
	c.Residual = c.Left - c.Right
	c.Error = b.balanceError(a, &w.balance)
	if math.Abs(c.Residual) <= c.Tolerance+c.Error {
		return
	}
	c.State, c.Name, c.Text, c.Events = Fails, w.name, w.text, w.events
	a.Checks = append(a.Checks, *c)
}
