package account

import (
	"math"
	"slices"
)

// closureTolerance is how far a node's children may miss it, relative to the
// whole, before the closure is said to fail: 2 %, seed 004's measure of "equal".
const closureTolerance = 0.02

// contradiction is by how much of the whole the measured levels of a tree may
// fail to close before the counts contradict each other. Intel gives its shares
// of slots as much room.
const contradiction = 0.05

// Measured are the nodes of the first level of a tree of shares, and those of the
// second that few events decide. A share that takes more than measuredInputs of
// them to work out is an estimate, as are those that are deeper: these overlap,
// and overshoot.
const (
	measuredLevels = 2
	measuredInputs = 6
)

// closeRoots checks that the shares of level 1 sum to the whole where no root
// stands for it. That a root's children overlap says nothing about the roots,
// which are disjoint parts of one whole: a model that divides the whole a second
// time does so in a section.
func (b *Binding) closeRoots(a *Account) {
	sum, n := 0.0, 0
	for i := range b.Method.Model.Nodes {
		node := &b.Method.Model.Nodes[i]
		if node.Section != "" || node.Parent != "" {
			continue
		}
		if node.Level == 0 || !b.Method.Model.Share(i) {
			return
		}
		sum += a.Nodes[i].Value
		n++
	}
	if n < 2 {
		return
	}
	c := closure("level 1 sums to 1", sum, 1, 1)
	if math.Abs(c.Residual) > contradiction {
		b.contradicts(a, &c, -1)
	}
	a.Checks = append(a.Checks, c)
}

// closeNode checks that a node's children sum to it. Where one of them is what
// the others leave they do so by construction, and where they overlap they need
// not.
func (b *Binding) closeNode(a *Account, i int) {
	nodes := b.Method.Model.Nodes
	n := &nodes[i]
	if len(n.Children) < 2 || n.Overlap || b.closed[i] {
		return
	}
	sum := 0.0
	for _, j := range n.Children {
		sum += a.Nodes[j].Value
	}
	whole := math.Abs(a.Nodes[i].Value)
	if b.Method.Model.Share(i) {
		whole = 1
	}
	c := closure(b.Method.closureNames[i], sum, a.Nodes[i].Value, whole)
	if c.Residual > contradiction && !slices.ContainsFunc(n.Children, b.isEstimate) {
		b.contradicts(a, &c, i)
	}
	a.Checks = append(a.Checks, c)
}

// roots are the roots of the main tree.
func (b *Binding) roots() []int {
	var roots []int
	for i := range b.Method.Model.Nodes {
		if n := &b.Method.Model.Nodes[i]; n.Section == "" && n.Parent == "" {
			roots = append(roots, i)
		}
	}
	return roots
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
	c.Error = b.perturb(a, w.deps, func() float64 {
		b.compute(a)
		sum := 0.0
		for _, i := range w.nodes {
			sum += a.Nodes[i].Value
		}
		if whole >= 0 {
			sum -= a.Nodes[whole].Value
		}
		return sum
	})
	if math.Abs(c.Residual) <= c.Tolerance+c.Error {
		c.State = Holds
		return
	}
	c.Identity, c.Side, c.Events, c.Text = true, Measurement, w.events, w.text
}

// wordsOfParts says what it means that parts do not make up a whole.
func (b *Binding) wordsOfParts(whole int) words {
	w := words{text: "The parts of level 1 do not make up the whole: one of their counts is wrong, or they were not taken together."}
	if whole < 0 {
		w.nodes = b.roots()
	} else {
		n := &b.Method.Model.Nodes[whole]
		w.nodes, w.deps = n.Children, union(nil, b.nodes[whole].deps)
		w.text = "The parts of " + n.Name + " are more than all of it: one of their counts is wrong, or they were not taken together."
	}
	for _, i := range w.nodes {
		w.deps = union(w.deps, b.nodes[i].deps)
	}
	w.events = b.eventsOf(w.deps)
	return w
}

// measured reports whether a node's value is measured, and no estimate.
func (b *Binding) measured(i int) bool {
	n := &b.Method.Model.Nodes[i]
	if n.Section != "" || n.Level > measuredLevels || !b.Method.Model.Share(i) {
		return false
	}
	if n.Level > 1 && len(b.nodes[i].inputs) > measuredInputs {
		return false
	}
	p, ok := b.Method.nodeIndex[n.Parent]
	return !ok || !b.estimated(p)
}

// isEstimate is the opposite of measured.
func (b *Binding) isEstimate(i int) bool { return !b.measured(i) }

// estimated reports whether the parts of a node are estimates, whose sum may be
// more than there is: their rest may be negative, or one of them above the whole.
func (b *Binding) estimated(i int) bool {
	const most = 1.1
	nodes := b.Method.Model.Nodes
	for _, j := range nodes[i].Children {
		if _, high := b.bounds(j); high > most || nodes[j].Rest && nodes[j].Negative != "" {
			return true
		}
	}
	return false
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
const closureSlack = "counters are read one after the other, and start and stop so"

// checkNodes adds the values of the measured levels that are impossible, and the
// parts that are larger than what they are parts of. What is as it should be has
// no line: there are as many as nodes.
func (b *Binding) checkNodes(a *Account) {
	if a.Scope.Code != nil {
		return // chance puts samples a little beside where they belong
	}
	for i := range a.Nodes {
		if v := a.Nodes[i].Value; b.measured(i) && !math.IsNaN(v) {
			b.checkRange(a, i, v)
			b.checkPart(a, i, v)
		}
	}
}

// checkRange checks that a value lies in the range that its node allows.
func (b *Binding) checkRange(a *Account, i int, value float64) {
	n := &b.Method.Model.Nodes[i]
	low, high := b.bounds(i)
	c := Check{Side: Measurement, Identity: true, Left: value, rule: -1, node: true}
	switch {
	case value < low:
		c.Op, c.Right = ">=", low
	case value > high:
		c.Op, c.Right = "<=", high
	default:
		return
	}
	w, ok := a.said[finding{possible, i}]
	if !ok {
		w = a.say(finding{possible, i}, b.wordsOfNodes(n.Name+" is possible",
			n.Name+" cannot have this value: one of its counts is wrong, or was not taken together with the others.", i))
	}
	b.addNodeCheck(a, c, &w)
}

// checkPart checks that a part is no larger than what it is a part of.
func (b *Binding) checkPart(a *Account, i int, value float64) {
	nodes := b.Method.Model.Nodes
	p, ok := b.Method.nodeIndex[nodes[i].Parent]
	if !ok || !b.measured(p) || b.outside(p, a.Nodes[p].Value) || value <= a.Nodes[p].Value+contradiction || math.IsNaN(a.Nodes[p].Value) {
		return
	}
	w, ok := a.said[finding{part, i}]
	if !ok {
		name, whole := nodes[i].Name, nodes[p].Name
		w = a.say(finding{part, i}, b.wordsOfNodes(name+" is part of "+whole,
			name+" is larger than "+whole+", of which it is a part: one of their counts is wrong, or they were not taken together.", i, p))
	}
	b.addNodeCheck(a, Check{Op: "<=", Side: Measurement, Identity: true, Left: value, Right: a.Nodes[p].Value,
		Tolerance: contradiction, Slack: closureSlack, rule: -1, node: true}, &w)
}

// wordsOfNodes says what is wrong with some nodes.
func (b *Binding) wordsOfNodes(name, text string, nodes ...int) words {
	w := words{name: name, text: text, nodes: nodes}
	for _, i := range nodes {
		w.deps = union(w.deps, b.nodes[i].deps)
	}
	w.events = b.eventsOf(w.deps)
	return w
}

// addNodeCheck adds a failed check of a node's value, or of its difference from
// another's, unless the failure is within its error.
func (b *Binding) addNodeCheck(a *Account, c Check, w *words) {
	c.Residual = c.Left - c.Right
	c.Error = b.perturb(a, w.deps, func() float64 {
		b.compute(a)
		d := a.Nodes[w.nodes[0]].Value
		if len(w.nodes) > 1 {
			d -= a.Nodes[w.nodes[1]].Value
		}
		return d
	})
	if math.Abs(c.Residual) <= c.Tolerance+c.Error {
		return
	}
	c.State, c.Name, c.Text, c.Events = Fails, w.name, w.text, w.events
	a.Checks = append(a.Checks, c)
}
