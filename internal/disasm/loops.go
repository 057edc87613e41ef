package disasm

import "slices"

// A Loop is a natural loop: a header on every way into the loop, and the blocks that reach the
// header again without leaving the loop. All back edges to one header make one loop.
//
// With execution counts of blocks, a loop's average trip count is the header's count over the
// sum of Runs.
type Loop struct {
	Header int   // block
	Blocks []int // ascending, the header among them, and those of inner loops
	// Latches are the blocks with a back edge to the header. Entries are outside and have an
	// edge to it. Exits are inside and have an edge that leaves the loop.
	Latches, Entries, Exits []int
	// Runs are blocks outside that together are executed once for each time that the loop
	// is entered and left: blocks that lead only into it, or blocks that only it leads to.
	// Runs is nil if there are none: for example, if the ways into and around the loop part
	// in one block and meet again behind the loop.
	Runs   []int
	Parent int // the loop around it, as an index into Graph.Loops, or -1
	Depth  int // 1 for a loop in no other
}

// Bounds on the work for one function, far above functions that people write: its blocks,
// and the blocks of all its loops together.
const (
	maxBlocks     = 1 << 16
	maxLoopBlocks = 1 << 22
)

// findLoops finds the natural loops by dominators.
func (g *Graph) findLoops() {
	if len(g.Blocks) > maxBlocks {
		g.Partial = true
		return
	}
	f := newFlowOrder(g)
	idom := f.dominators()
	latches := map[int][]int{}
	for _, b := range f.order {
		for _, s := range g.Blocks[b].Succs {
			switch {
			case f.region[s] != f.region[b] || f.number[s] > f.number[b]: // forwards
			case f.dominates(idom, s, b):
				latches[s] = append(latches[s], b)
			default:
				g.Irreducible = true
			}
		}
	}
	size := 0
	// In reverse postorder the header of an outer loop comes before inner ones.
	for _, h := range f.order {
		if l, ok := latches[h]; ok {
			size += g.addLoop(f, h, l)
			if size > maxLoopBlocks {
				g.Partial = true
				return
			}
		}
	}
}

// A flowOrder has the blocks of a graph in an order: each comes before those it leads to,
// except for back edges.
//
// Blocks that are not reached from the function's entry, such as exception handlers, make
// regions of their own. Edges between regions do not make a loop doubtful, and are ignored.
type flowOrder struct {
	graph  *Graph
	order  []int // reverse postorder, region by region
	number []int // by block: its place in order
	region []int // by block: the block that its region starts from
}

func newFlowOrder(g *Graph) *flowOrder {
	f := &flowOrder{graph: g, number: make([]int, len(g.Blocks)), region: slices.Repeat([]int{none}, len(g.Blocks))}
	f.visit(0)
	for b := range g.Blocks {
		if len(g.Blocks[b].Preds) == 0 {
			f.visit(b)
		}
	}
	for b := range g.Blocks { // cycles that nothing leads to
		f.visit(b)
	}
	for i, b := range f.order {
		f.number[b] = i
	}
	return f
}

// none is no block: what dominates the start of a region.
const none = -1

// visit adds the region of the blocks that are reached from start and are in no
// region yet.
func (f *flowOrder) visit(start int) {
	if f.region[start] != none {
		return
	}
	type step struct{ block, next int }
	f.region[start] = start
	stack := []step{{block: start}}
	var post []int
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		succs := f.graph.Blocks[top.block].Succs
		if top.next == len(succs) {
			post = append(post, top.block)
			stack = stack[:len(stack)-1]
			continue
		}
		s := succs[top.next]
		top.next++
		if f.region[s] == none {
			f.region[s] = start
			stack = append(stack, step{block: s})
		}
	}
	slices.Reverse(post)
	f.order = append(f.order, post...)
}

// dominators returns the immediate dominator of each block within its region,
// or none. The method is that of Cooper, Harvey and Kennedy, "A Simple, Fast
// Dominance Algorithm" (2001).
func (f *flowOrder) dominators() []int {
	const unknown = -2
	idom := slices.Repeat([]int{unknown}, len(f.order))
	for b, start := range f.region {
		if b == start {
			idom[b] = none
		}
	}
	for changed := true; changed; {
		changed = false
		for _, b := range f.order {
			if f.region[b] == b {
				continue
			}
			dom := unknown
			for _, p := range f.graph.Blocks[b].Preds {
				switch {
				case f.region[p] != f.region[b] || idom[p] == unknown:
				case dom == unknown:
					dom = p
				default:
					dom = f.meet(idom, dom, p)
				}
			}
			if idom[b] != dom {
				idom[b], changed = dom, true
			}
		}
	}
	return idom
}

// meet returns the nearest block that dominates two blocks of one region.
func (f *flowOrder) meet(idom []int, a, b int) int {
	for a != b {
		if f.number[a] > f.number[b] {
			a = idom[a]
		} else {
			b = idom[b]
		}
	}
	return a
}

// dominates says whether every way to b goes through a.
func (f *flowOrder) dominates(idom []int, a, b int) bool {
	for b != none && f.number[b] > f.number[a] {
		b = idom[b]
	}
	return a == b
}

// addLoop adds the loop of a header and its latches, and returns how many
// blocks it has.
func (g *Graph) addLoop(f *flowOrder, header int, latches []int) int {
	inside := map[int]bool{header: true}
	for work := slices.Clone(latches); len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if !inside[b] && f.region[b] == f.region[header] {
			inside[b] = true
			work = append(work, g.Blocks[b].Preds...)
		}
	}
	l := Loop{Header: header, Latches: latches, Parent: g.Blocks[header].Loop, Depth: 1}
	slices.Sort(l.Latches)
	if l.Parent >= 0 {
		l.Depth = g.Loops[l.Parent].Depth + 1
	}
	for b := range inside {
		l.Blocks = append(l.Blocks, b)
		g.Blocks[b].Loop = len(g.Loops)
	}
	slices.Sort(l.Blocks)
	for _, p := range g.Blocks[header].Preds {
		if !inside[p] {
			l.Entries = append(l.Entries, p)
		}
	}
	for _, b := range l.Blocks {
		if slices.ContainsFunc(g.Blocks[b].Succs, func(s int) bool { return !inside[s] }) {
			l.Exits = append(l.Exits, b)
		}
	}
	l.Runs = g.runs(&l, inside)
	g.Loops = append(g.Loops, l)
	return len(l.Blocks)
}

// runs finds the blocks of Loop.Runs.
func (g *Graph) runs(l *Loop, inside map[int]bool) []int {
	only := func(b int) bool { return len(g.Blocks[b].Succs) == 1 && !g.Blocks[b].Leaves }
	// The function's own entry is a way in that is no block.
	if l.Header != 0 && len(l.Entries) > 0 && all(l.Entries, only) {
		return slices.Clone(l.Entries)
	}
	if !all(l.Blocks, func(b int) bool { return !g.Blocks[b].Leaves }) {
		return nil
	}
	var targets []int
	for _, b := range l.Exits {
		for _, s := range g.Blocks[b].Succs {
			if !inside[s] && !slices.Contains(targets, s) {
				targets = append(targets, s)
			}
		}
	}
	if !all(targets, func(s int) bool { return all(g.Blocks[s].Preds, func(p int) bool { return inside[p] }) }) {
		return nil
	}
	slices.Sort(targets)
	return targets
}

func all(list []int, holds func(int) bool) bool {
	return !slices.ContainsFunc(list, func(b int) bool { return !holds(b) })
}
