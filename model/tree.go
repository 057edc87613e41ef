package model

import (
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// tree links the nodes: children, order, sections, levels and paths.
func (b *builder) tree() {
	if !b.link() {
		return
	}
	b.order()
	b.sections()
	b.levels()
	for i := range b.m.Nodes {
		b.checkFamily(&b.m.Nodes[i])
	}
}

// link fills in the children, and reports whether they make trees.
func (b *builder) link() bool {
	ok := true
	nodes := b.m.Nodes
	for i := range nodes {
		n := &nodes[i]
		if n.Parent == "" {
			continue
		}
		p, known := b.nodes[n.Parent]
		if !known {
			b.fault(n.pos.at("parent"), "node %s: there is no node %q to be its parent", n.Name, spelling.Clip(n.Parent))
			ok = false
			continue
		}
		nodes[p].Children = append(nodes[p].Children, i)
	}
	return ok && b.rooted()
}

// rooted reports whether every node has a root not too far above it.
func (b *builder) rooted() bool {
	ok := true
	nodes := b.m.Nodes
	for i := range nodes {
		above := i
		for levels := 0; nodes[above].Parent != ""; levels++ {
			above = b.nodes[nodes[above].Parent]
			if above == i {
				b.fault(nodes[i].pos.at("parent"), "node %s: it is its own ancestor", nodes[i].Name)
				ok = false
				break
			}
			if levels == maxLevels {
				b.fault(nodes[i].pos.at("parent"), "node %s: it has more than %d nodes above it, or ones that come back to themselves", nodes[i].Name, maxLevels)
				ok = false
				break
			}
		}
	}
	return ok
}

// order puts the nodes in the order of display, depth first: the roots and the
// children of each node keep the order they are written in.
func (b *builder) order() {
	old := b.m.Nodes
	order := make([]int, 0, len(old))
	var stack []int
	for i := len(old) - 1; i >= 0; i-- {
		if old[i].Parent == "" {
			stack = append(stack, i)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		order = append(order, i)
		for _, c := range slices.Backward(old[i].Children) {
			stack = append(stack, c)
		}
	}
	moved := make([]int, len(old))
	for to, from := range order {
		moved[from] = to
	}
	for i := range old {
		for k, c := range old[i].Children {
			old[i].Children[k] = moved[c]
		}
		b.nodes[old[i].Name] = moved[i]
	}
	for i := range old {
		for to := moved[i]; to != i; to = moved[i] { // swapped until its own is here
			old[i], old[to] = old[to], old[i]
			moved[i], moved[to] = moved[to], to
		}
	}
}

// sections gives every node the section of its root.
func (b *builder) sections() {
	for i := range b.m.Nodes {
		n := &b.m.Nodes[i]
		if n.Parent == "" {
			continue
		}
		root := b.m.Nodes[b.nodes[n.Parent]].Section
		if n.Section != "" && n.Section != root {
			b.fault(n.pos.at("section"), "node %s: its parent %s is not in section %q", n.Name, n.Parent, spelling.Clip(n.Section))
		}
		n.Section = root
	}
}

// levels computes levels and paths. The root that is the whole has level 0;
// without one, and in sections, roots have level 1.
func (b *builder) levels() {
	var roots []int
	for i := range b.m.Nodes {
		if n := &b.m.Nodes[i]; n.Parent == "" && n.Section == "" {
			roots = append(roots, i)
		}
	}
	for i := range b.m.Nodes {
		n := &b.m.Nodes[i]
		if n.Above = -1; n.Parent == "" {
			n.Level, n.Path = 1, n.Name
			if n.Section == "" && (len(roots) == 1 || b.isWhole(n)) {
				n.Level = 0
			}
			continue
		}
		n.Above = b.nodes[n.Parent]
		parent := &b.m.Nodes[n.Above]
		n.Level, n.Path = parent.Level+1, parent.Path+"."+n.Name
	}
}

// isWhole reports whether the node's amount is by definition the whole of all shares.
func (b *builder) isWhole(n *Node) bool {
	return b.m.of != nil && n.expr != nil && n.expr.String() == b.m.of.String()
}

// checkFamily checks a node against its children.
func (b *builder) checkFamily(n *Node) {
	rest := ""
	for _, i := range n.Children {
		c := &b.m.Nodes[i]
		if !c.Rest {
			continue
		}
		if rest != "" {
			b.fault(c.pos.at("rest"), "node %s: %s is already the rest of %s", c.Name, rest, n.Name)
		}
		rest = c.Name
	}
	if rest != "" && n.Overlap {
		b.fault(n.pos.at("overlap"), "node %s: children that overlap leave no rest, but %s is one", n.Name, rest)
	}
}

// references checks the names in formulas as far as that needs no events: what
// thresholds name, and that no formula needs its own value.
func (b *builder) references() {
	for i := range b.m.Nodes {
		n := &b.m.Nodes[i]
		if n.threshold == nil {
			continue
		}
		for _, name := range n.threshold.Names() {
			if k := b.names[name].kind; k != "node" && k != "parameter" {
				b.fault(n.pos.at("threshold"), "node %s: threshold: there is no node %q", n.Name, spelling.Clip(name))
			}
		}
	}
	if b.m.of != nil {
		for _, name := range b.m.of.Names() {
			if b.names[name].kind == "node" {
				b.fault(b.m.pos.at("of"), "of: %q is a node, and nodes are shares of this", name)
			}
		}
	}
	b.noReferenceCycle()
}

// needs returns the nodes whose values the value of node i is made of.
func (b *builder) needs(i int) []int {
	n := &b.m.Nodes[i]
	if n.Rest {
		parent := b.nodes[n.Parent]
		out := []int{parent}
		for _, c := range b.m.Nodes[parent].Children {
			if c != i {
				out = append(out, c)
			}
		}
		return out
	}
	var out []int
	for _, name := range n.uses {
		if j, ok := b.nodes[name]; ok {
			out = append(out, j)
		}
	}
	return out
}

// noReferenceCycle notes a fault for every circle of nodes that need each
// other's values.
func (b *builder) noReferenceCycle() {
	if len(b.faults) > 0 {
		return // the tree may not hold
	}
	const open, done = 1, 2
	state := make([]uint8, len(b.m.Nodes))
	var path []string
	var visit func(i int)
	visit = func(i int) {
		n := &b.m.Nodes[i]
		if state[i] == open {
			circle := append(path[slices.Index(path, n.Name):], n.Name)
			b.fault(n.pos.at("formula"), "node %s: its value needs itself: %s", n.Name, spelling.Clip(strings.Join(circle, " ← ")))
		}
		if state[i] != 0 {
			return
		}
		state[i] = open
		path = append(path, n.Name)
		for _, j := range b.needs(i) {
			visit(j)
		}
		path = path[:len(path)-1]
		state[i] = done
	}
	for i := range b.m.Nodes {
		visit(i)
	}
}
