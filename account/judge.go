package account

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// A Standing is how a value lies to what is expected of it.
type Standing int8

// The standings. A value is outside a range only if it is by more than its
// error, where that is known.
const (
	Unjudged Standing = iota // nothing is expected of it, or it is not known
	Below
	Within
	Above
)

// String returns "below", "within" or "above", and "" for Unjudged.
func (s Standing) String() string {
	return [...]string{Unjudged: "", Below: "below", Within: "within", Above: "above"}[s]
}

// Expected returns the expected range of a node, and how its value compares. The range is that
// of [Options].Workload, or of any kind of program.
func (a *Account) Expected(node int) (model.Range, Standing) {
	e := a.Model().Nodes[node].Expected
	if e == nil {
		return model.Range{}, Unjudged
	}
	r := e.Ranges[a.Binding.Method.Workload]
	v := &a.Nodes[node]
	if !v.Known() {
		return r, Unjudged
	}
	slack := 0.0
	if v.Error > 0 {
		slack = v.Error
	}
	switch {
	case v.Value > r.High+slack:
		return r, Above
	case v.Value < r.Low-slack:
		return r, Below
	}
	return r, Within
}

// flag says which nodes are worth attention: those over their thresholds, if their parents are
// too or have none, or if their own threshold stands by itself. If the program's kind is known,
// its expected range replaces the threshold of first-level categories other than useful work.
// The thresholds speak of values, so the nodes' amounts give way to values while they are
// evaluated.
func (b *Binding) flag(a *Account) {
	first := len(b.Method.inputs)
	nodes := a.in[first : first+len(b.nodes)]
	for _, i := range b.alive {
		nodes[i], a.values[i] = a.values[i], nodes[i]
	}
	for _, i := range a.known {
		a.Nodes[i].Flagged = b.over(a, i) && b.gate(a, i)
	}
	for _, i := range b.alive {
		nodes[i], a.values[i] = a.values[i], nodes[i]
	}
}

// over says whether a node is over its threshold, or over what is expected of
// it.
func (b *Binding) over(a *Account, i int) bool { return b.overBy(a, i, a.in) }

// overBy is over with the inputs of the thresholds.
func (b *Binding) overBy(a *Account, i int, in []float64) bool {
	n := &b.Method.Model.Nodes[i]
	switch {
	case !a.Nodes[i].Known(), n.Places && a.Scope.Code == nil:
		return false
	case b.Method.Workload != model.AnyWorkload && n.Expected != nil && n.Level == 1 && !n.Useful():
		_, standing := a.Expected(i)
		return standing == Above
	case b.limits[i] == nil:
		return false
	}
	over := b.limits[i].Eval(in)
	return !math.IsNaN(over) && over != 0
}

// gate says whether a node's parent lets it be flagged.
func (b *Binding) gate(a *Account, i int) bool {
	n := &b.Method.Model.Nodes[i]
	p := b.Method.Model.Nodes[i].Above
	return p < 0 || n.Standalone || b.limits[p] == nil || a.Nodes[p].Flagged
}

// path follows the flagged nodes of the main tree down from the top, at each level the largest.
// A flagged node below one that is not flagged is never reached, nor is one whose value is
// impossible. The path stops before a node whose counts contradict others, and does not begin
// if a category is impossible. Useful work is only taken where nothing else is flagged. A
// sibling may be larger than all flagged ones, but below its own higher threshold. It comes
// before them, and the path ends there.
func (b *Binding) path(a *Account, path []int) []int {
	if b.impossible(a) {
		return path
	}
	for at := -1; ; at = path[len(path)-1] {
		next := -1
		for _, i := range a.known {
			if b.candidate(a, i, at) && (next < 0 || b.before(a, i, next)) {
				next = i
			}
		}
		if next < 0 || b.stops(a, next) {
			return path
		}
		if larger := b.larger(a, next, at); larger >= 0 {
			if b.stops(a, larger) {
				return path
			}
			return append(path, larger)
		}
		path = append(path, next)
	}
}

// impossible reports whether a category has an impossible share of the whole. What it has
// too much, others have too little, so none of them is to be named.
func (b *Binding) impossible(a *Account) bool {
	return slices.ContainsFunc(a.known, func(i int) bool {
		return a.Nodes[i].Doubt == DoubtRange && b.Method.Model.Share(i) && b.Method.Model.Nodes[i].Section == "" && b.under(i, -1)
	})
}

// stops reports whether the path stops before a node: its counts contradict others.
func (b *Binding) stops(a *Account, i int) bool {
	return a.Nodes[i].Doubt == doubtIdentity || a.Nodes[i].Doubt == doubtTwice
}

// candidate says whether the path may go from a node, or the top if that is -1,
// to another.
func (b *Binding) candidate(a *Account, i, from int) bool {
	return a.Nodes[i].Flagged && b.sibling(a, i, from)
}

// sibling says whether a node of the main tree has a possible value below another (the top if
// -1).
func (b *Binding) sibling(a *Account, i, from int) bool {
	v := &a.Nodes[i]
	return v.Known() && v.Doubt != DoubtRange && b.Method.Model.Nodes[i].Section == "" && b.under(i, from)
}

// larger is the largest sibling of a flagged node that is larger than it and not
// flagged; -1 if there is none.
func (b *Binding) larger(a *Account, next, from int) int {
	found := -1
	for _, i := range a.known {
		if a.Nodes[i].Flagged || !b.sibling(a, i, from) || !b.comparable(a, next, i, from) {
			continue
		}
		if a.Nodes[i].Value > a.Nodes[next].Value && (found < 0 || a.Nodes[i].Value > a.Nodes[found].Value) {
			found = i
		}
	}
	return found
}

// useful reports whether a node is useful work, or part of it.
func (b *Binding) useful(i int) bool {
	for ; i >= 0; i = b.Method.Model.Nodes[i].Above {
		if b.Method.Model.Nodes[i].Useful() {
			return true
		}
	}
	return false
}

// before says whether the path goes to one node rather than to another.
func (b *Binding) before(a *Account, i, j int) bool {
	if x, y := b.mark(a, i), b.mark(a, j); x != y {
		return x > y
	}
	if b.preferred(i, j) || b.preferred(j, i) {
		return b.preferred(i, j)
	}
	if divides := b.divides(i); divides != b.divides(j) {
		return divides
	}
	return a.Nodes[i].Value > a.Nodes[j].Value
}

// mark is what another tool says of a node: the largest is on the way to its bottleneck. It is 0
// of counts.
func (b *Binding) mark(a *Account, i int) float64 {
	if !b.published || b.limits[i] == nil {
		return 0
	}
	return b.limits[i].Eval(a.in)
}

// divides reports whether a node is a part of its parent in the parent's own unit. Other
// children are causes in a unit of their own, and their sizes cannot be compared with it.
func (b *Binding) divides(i int) bool {
	nodes := b.Method.Model.Nodes
	p := nodes[i].Above
	return p >= 0 && nodes[i].Unit == nodes[p].Unit
}

// preferred says whether the path goes to one node rather than to another whatever
// their values are: the other is useful work.
func (b *Binding) preferred(i, j int) bool {
	nodes := b.Method.Model.Nodes
	return !nodes[i].Useful() && nodes[j].Useful()
}

// under says whether a node is a child of another; -1 stands for a root that is the whole.
func (b *Binding) under(node, parent int) bool {
	if parent >= 0 {
		return b.Method.Model.Nodes[node].Above == parent
	}
	n := &b.Method.Model.Nodes[node]
	if n.Parent == "" {
		return n.Level > 0
	}
	return n.Level == 1
}

// A Rival is a node that the bottleneck path could as well go through. It equals the sibling
// on the path within the errors. Or it is smaller, but over its own threshold, and the
// sibling is not.
type Rival struct {
	Node, Of int     // indexes of nodes; Of is on the path
	Margin   float64 // how far apart their values would have to be
}

// Margins of two values that count as equal.
const (
	// marginLeast is of the whole: what is closer is worth the same.
	marginLeast = 0.01
	// marginUnknown is taken where no error is known and the events were not
	// counted all of the time.
	marginUnknown = 0.05
)

// rivals finds siblings of the path's nodes: those that equal them within the errors, and
// flagged ones next to a larger unflagged one. The error of a difference is not the sum of the
// errors: what two nodes have in common cancels out. So it is propagated by itself, but only
// where the sum would make them equal.
func (b *Binding) rivals(t *counts.Table, place Place, a *Account, list []Rival) []Rival {
	from := -1
	for _, on := range a.Bottleneck {
		for _, i := range a.known {
			if i == on || !b.sibling(a, i, from) || b.stops(a, i) || b.preferred(on, i) || !b.comparable(a, on, i, from) {
				continue
			}
			off, margin := math.Abs(a.Nodes[on].Value-a.Nodes[i].Value), b.margin(t, place, a, on, i)
			if off <= margin || a.Nodes[i].Flagged && !a.Nodes[on].Flagged {
				list = append(list, Rival{Node: i, Of: on, Margin: max(margin, off)})
			}
		}
		from = on
	}
	return list
}

// comparable reports whether a sibling of a node on the path can be a bottleneck as well.
// One that is not flagged can if it has a threshold on itself and the same unit. Useful work,
// and what is a problem by its parts, is one only if it is flagged. If the expected ranges are known, only categories above
// them are problems.
func (b *Binding) comparable(a *Account, on, i, from int) bool {
	nodes := b.Method.Model.Nodes
	if a.Nodes[i].Flagged {
		return true
	}
	expected := from < 0 && b.Method.Workload != model.AnyWorkload
	return b.limits[i] != nil && !b.ofParts[i] && nodes[i].Unit == nodes[on].Unit && !expected && !b.useful(i)
}

// margin is how far apart two nodes' values must be to differ.
func (b *Binding) margin(t *counts.Table, place Place, a *Account, i, j int) float64 {
	v, w := &a.Nodes[i], &a.Nodes[j]
	whole := b.extent(a, i)
	const least = marginLeast
	both := v.Error + w.Error
	switch {
	case math.IsNaN(v.Error) && math.IsNaN(w.Error):
		return max(least, v.unknownError(), w.unknownError()) * whole
	case math.IsNaN(v.Error):
		return max(least*whole, w.Error+v.unknownError()*whole)
	case math.IsNaN(w.Error):
		return max(least*whole, v.Error+w.unknownError()*whole)
	case math.Abs(v.Value-w.Value) > both: // then they differ however their errors are correlated
		return max(least*whole, both)
	}
	return max(least*whole, b.differenceError(t, place, a, i, j))
}

// unknownError is what is taken for a value's error where it is not known, of the whole.
func (v *Value) unknownError() float64 {
	if v.Coverage >= alwaysCounted {
		return 0
	}
	return marginUnknown
}

// extent is the value of the whole of a node and its siblings: 1 for shares, else
// its root's.
func (b *Binding) extent(a *Account, i int) float64 {
	if b.Method.Model.Share(i) {
		return 1
	}
	for {
		p := b.Method.Model.Nodes[i].Above
		if p < 0 {
			return math.Abs(a.Nodes[i].Value)
		}
		i = p
	}
}

// differenceError is the half-width of the 95 % interval of the difference of two nodes. It
// is propagated like another node of the model.
func (b *Binding) differenceError(t *counts.Table, place Place, a *Account, i, j int) float64 {
	c := *a
	c.difference = &[2]int{i, j}
	c.Nodes = make([]Value, len(a.Nodes)+1)
	b.compute(&c)
	b.errors(t, place, &c)
	return c.Nodes[len(a.Nodes)].Error
}

// link finds the nodes that a flagged node draws into view: those that show the same issue from
// another side, and through these what shows their other issues. A figure outside the tree
// without a threshold, such as the bandwidth in use, draws in what shows its issue: nothing
// says when it is not worth a look.
func (b *Binding) link(a *Account) {
	if a.linked == nil {
		a.linked = make([]bool, len(a.Nodes))
	}
	clear(a.linked)
	issues := b.Method.Model.Issues
	for again := true; again; {
		again = false
		for k := range issues {
			draws := func(i int) bool { return a.inView(i) && issues[k].Leads(i) }
			if slices.ContainsFunc(issues[k].Nodes, draws) {
				again = a.drawIn(issues[k].Nodes) || again
			}
		}
	}
	for k := range issues {
		if issues[k].Lead < 0 && slices.ContainsFunc(issues[k].Nodes, a.isFigure) {
			a.drawIn(issues[k].Nodes)
		}
	}
}

// drawIn links the nodes of an issue that are not in view, and reports whether
// there were any.
func (a *Account) drawIn(nodes []int) (any bool) {
	for _, i := range nodes {
		any = any || !a.inView(i)
		a.linked[i] = a.linked[i] || !a.Nodes[i].Flagged
	}
	return any
}

// isFigure reports whether a node is a known figure outside the tree that has no
// threshold.
func (a *Account) isFigure(node int) bool {
	n := &a.Model().Nodes[node]
	return n.Section != "" && n.Threshold == "" && a.Nodes[node].Known()
}

// inView reports whether a node is flagged or linked to one that is.
func (a *Account) inView(node int) bool { return a.Nodes[node].Flagged || a.linked[node] }

// Linked lists the nodes that show the same issue as a node that is in view: that
// is flagged, or itself linked to one that is. Who looks at one should see the
// others. It is nil for other nodes, and nodes that are not known are left out.
func (a *Account) Linked(node int) []int {
	if !a.inView(node) {
		return nil
	}
	var list []int
	issues := a.Model().Issues
	for k := range issues {
		if !issues[k].Leads(node) {
			continue
		}
		for _, i := range issues[k].Nodes {
			if i != node && a.Nodes[i].Known() && !slices.Contains(list, i) {
				list = append(list, i)
			}
		}
	}
	return list
}

// IsLinked reports whether an unflagged node is in view because of another node, or as a figure
// without threshold.
func (a *Account) IsLinked(node int) bool { return a.linked[node] }

// Hotspot is the least share of the whole that a hotspot in the code has.
const Hotspot = 0.05

// IsHotspot reports whether a part of the code with a share of the whole is a hotspot.
func IsHotspot(share float64) bool { return share >= Hotspot }

// leftOver is the least share of the whole that the rest of a change needs to be told.
const leftOver = 1e-4

// Leaves reports whether the rest of the whole's change is more than next to nothing.
func (c *Change) Leaves(rest float64) bool { return math.Abs(rest) > leftOver*c.Old }

// Rare reports whether a count has four samples or fewer, and so no figure.
func Rare(c *counts.Cell) bool { return 2*math.Sqrt(c.Variance) >= c.Value }
