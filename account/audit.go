package account

import (
	"cmp"
	"math"

	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// closureTolerance is how far a node's children may miss it, relative to the
// whole, before the closure is said to fail: 2 %, seed 004's measure of "equal".
const closureTolerance = 0.02

// check makes all checks: closure of the tree, then the model's relations.
func (b *Binding) check(a *Account) {
	a.Checks = a.Checks[:0]
	b.closeRoots(a)
	for i := range b.Method.Model.Nodes {
		b.closeNode(a, i)
	}
	for i := range b.checks {
		a.Checks = append(a.Checks, b.relation(a, i))
	}
}

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
	a.Checks = append(a.Checks, closure("level 1 sums to 1", sum, 1, 1))
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
	a.Checks = append(a.Checks, closure(b.Method.closureNames[i], sum, a.Nodes[i].Value, whole))
}

func closure(name string, sum, parent, whole float64) Check {
	c := Check{Name: name, Op: "=", Left: sum, Right: parent, Tolerance: closureTolerance, Residual: math.NaN(), relation: -1}
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

// relation makes one of the model's checks.
func (b *Binding) relation(a *Account, i int) Check {
	r := &b.Method.Model.Relations[i]
	p := &b.checks[i]
	c := Check{Name: r.Name, Op: cmp.Or(r.Op, "="), Tolerance: r.Tolerance, Identity: r.Identity, Left: math.NaN(), Right: math.NaN(), Residual: math.NaN(), relation: i}
	if p.err != "" {
		return c
	}
	if p.when != nil {
		if when := p.when.Eval(a.in); math.IsNaN(when) || when == 0 {
			return c
		}
	}
	c.Left, c.Right = p.left.Eval(a.in), p.right.Eval(a.in)
	if !math.IsNaN(c.Left) && !math.IsNaN(c.Right) {
		c.decide(r)
	}
	return c
}

// whySkipped says why a check was skipped.
func (b *Binding) whySkipped(a *Account, c *Check) string {
	switch {
	case c.State != Skipped:
		return ""
	case c.relation < 0:
		return "not all of its nodes are known"
	case b.checks[c.relation].err != "":
		return b.checks[c.relation].err
	}
	p := &b.checks[c.relation]
	for _, side := range []*metric.Program{p.when, p.left, p.right} {
		if side != nil && math.IsNaN(side.Eval(a.in)) {
			return b.reason(a, side.Why(a.in))
		}
	}
	return "it does not apply here"
}

// decide compares the two sides.
func (c *Check) decide(r *model.Relation) {
	if scale := max(math.Abs(c.Left), math.Abs(c.Right)); scale > 0 {
		c.Residual = (c.Left - c.Right) / scale
	} else {
		c.Residual = 0
	}
	ok := math.Abs(c.Residual) <= c.Tolerance
	switch c.Op {
	case "<=":
		ok = c.Residual <= c.Tolerance
	case ">=":
		ok = c.Residual >= -c.Tolerance
	}
	if ok {
		c.State, c.Text = Holds, r.Holds
	} else {
		c.State, c.Text = Fails, r.Fails
	}
}
