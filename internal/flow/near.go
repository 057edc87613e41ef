package flow

import (
	"slices"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// Skid is how many instructions a sample may be behind the one that caused it. The counter
// overflows, and instructions in flight retire before the interrupt is taken. On processors
// that retire four instructions in a cycle it is some cycles.
const Skid = 16

// A Vicinity finds the instructions near others: those that may be executed up to a number of
// instructions later, along the graph's edges. For late samples they include those before. For
// an instruction in a loop they are the loop's own: code before and behind the loop is executed
// once for all of its iterations. Calls are stepped over.
type Vicinity struct {
	graph  *disasm.Graph
	window int
	short  []bool // by loop
	index  []int  // by block: of its first instruction in the function
}

// NewVicinity returns the vicinities of a graph's instructions within a window in
// instructions; Skid is the usual one. Short marks the loops with few iterations: code
// around them is near too. It may be nil.
func NewVicinity(g *disasm.Graph, window int, short []bool) *Vicinity {
	v := &Vicinity{graph: g, window: window, short: short}
	n := 0
	for b := range g.Blocks {
		v.index = append(v.index, n)
		n += len(g.Blocks[b].Insts)
	}
	return v
}

// A Surrounding has the instructions near an instruction.
type Surrounding struct {
	Insts []int // indexes of instructions in the function, ascending, its own among them
	// Leaves says that the function may be left, or another one called, within the window.
	// The code there is not looked at. For an instruction in a loop it means the window in
	// the loop.
	Leaves bool
}

// Of returns the surroundings of the instruction with an index in the function. Late
// includes instructions before it.
func (v *Vicinity) Of(inst int, late bool) Surrounding {
	b, at := v.find(inst)
	if b < 0 {
		return Surrounding{}
	}
	w := walk{v: v, loop: v.region(b), seen: map[int]bool{}}
	w.add(b, at)
	w.forward(b, at+1, v.window)
	if late {
		w.back(b, at-1, v.window)
	}
	slices.Sort(w.list)
	return Surrounding{w.list, w.leaves}
}

// region returns the innermost loop around a block that is not short, or -1.
func (v *Vicinity) region(block int) int {
	l := v.graph.Blocks[block].Loop
	for l >= 0 && l < len(v.short) && v.short[l] {
		l = v.graph.Loops[l].Parent
	}
	return l
}

// find returns the block of an instruction, and which of the block's it is.
func (v *Vicinity) find(inst int) (block, at int) {
	b, ok := slices.BinarySearch(v.index, inst)
	if !ok {
		b--
	}
	if b < 0 || b >= len(v.index) || inst-v.index[b] >= len(v.graph.Blocks[b].Insts) {
		return -1, 0
	}
	return b, inst - v.index[b]
}

// A walk collects the instructions of a surrounding.
type walk struct {
	v      *Vicinity
	loop   int // the loop that is not left; -1 for none
	seen   map[int]bool
	list   []int
	leaves bool
}

func (w *walk) add(block, at int) {
	if i := w.v.index[block] + at; !w.seen[i] {
		w.seen[i] = true
		w.list = append(w.list, i)
	}
}

// A step is a place to go on from, and the distance left.
type step struct{ block, at, left int }

// forward goes along the edges, the nearest places first. So it passes each block once,
// with the largest distance left.
func (w *walk) forward(block, at, window int) {
	done := map[int]int{} // by block: what was left at its start
	for queue := []step{{block, at, window}}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		b := &w.v.graph.Blocks[s.block]
		for ; s.at < len(b.Insts) && s.left > 0; s.at, s.left = s.at+1, s.left-1 {
			w.add(s.block, s.at)
			w.leaves = w.leaves || calls(b.Insts[s.at])
		}
		if s.left <= 0 {
			continue
		}
		w.leaves = w.leaves || b.Leaves
		for _, next := range b.Succs {
			if !w.within(next) {
				continue
			}
			if left, ok := done[next]; !ok || left < s.left {
				done[next] = s.left
				queue = append(queue, step{next, 0, s.left})
			}
		}
	}
}

// back is forward against the edges.
func (w *walk) back(block, at, window int) {
	done := map[int]int{}
	for queue := []step{{block, at, window}}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		b := &w.v.graph.Blocks[s.block]
		for ; s.at >= 0 && s.left > 0; s.at, s.left = s.at-1, s.left-1 {
			w.add(s.block, s.at)
		}
		if s.left <= 0 {
			continue
		}
		for _, next := range b.Preds {
			if !w.within(next) {
				continue
			}
			if left, ok := done[next]; !ok || left < s.left {
				done[next] = s.left
				queue = append(queue, step{next, len(w.v.graph.Blocks[next].Insts) - 1, s.left})
			}
		}
	}
}

func (w *walk) within(block int) bool { return w.loop < 0 || inside(w.v.graph, block, w.loop) }

func calls(i disasm.Inst) bool { return i.Flow == disasm.Call || i.Flow == disasm.IndirectCall }
