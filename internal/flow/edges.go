package flow

import (
	"math"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// edges are the executions of the edges between blocks, as they follow from those of the
// blocks: a block is entered as often as it is left. Each is a signed sum of counts of
// blocks, so that its error is known.
type edges struct {
	blocks []Count
	known  map[[2]int]map[int]float64 // by edge: by block, how often its count is added
}

// Bounds on the work for a large function: its blocks, and the counts in the sum of an
// edge. Their errors add up, so that longer sums say nothing.
const (
	solveMost = 4096
	termsMost = 64
)

// solve finds the edges that follow: those of a block with one edge in, or with all edges
// in known except one, and likewise out. A block that leaves the function, and the first
// block, have a further edge, which is not known.
func solve(g *disasm.Graph, blocks []Count) *edges {
	e := &edges{blocks: blocks, known: map[[2]int]map[int]float64{}}
	if len(g.Blocks) > solveMost {
		return e
	}
	for changed := true; changed; {
		changed = false
		for b := range g.Blocks {
			block := &g.Blocks[b]
			if !block.Leaves && !block.Indirect {
				changed = e.last(b, block.Succs, true) || changed
			}
			if b > 0 && len(block.Preds) > 0 {
				changed = e.last(b, block.Preds, false) || changed
			}
		}
	}
	return e
}

// last computes the one unknown edge of a block, in or out, and says whether there was one.
func (e *edges) last(b int, others []int, out bool) bool {
	key := func(o int) [2]int {
		if out {
			return [2]int{b, o}
		}
		return [2]int{o, b}
	}
	open := -1
	for _, o := range others {
		if _, ok := e.known[key(o)]; ok {
			continue
		}
		if open >= 0 {
			return false
		}
		open = o
	}
	if open < 0 {
		return false
	}
	sum := map[int]float64{b: 1}
	for _, o := range others {
		if o == open {
			continue
		}
		for block, times := range e.known[key(o)] {
			sum[block] -= times
		}
	}
	if len(sum) > termsMost {
		return false
	}
	e.known[key(open)] = sum
	return true
}

// entries returns how often a loop was entered: the edges to its header from
// outside, or its executions without the edges back.
func (e *edges) entries(l *disasm.Loop) Count {
	if l.Header != 0 {
		if sum, ok := e.sum(l.Entries, l.Header, 1, map[int]float64{}); ok && len(l.Entries) > 0 {
			return e.count(sum)
		}
	}
	if sum, ok := e.sum(l.Latches, l.Header, -1, map[int]float64{l.Header: 1}); ok {
		return e.count(sum)
	}
	return Unknown
}

// sum adds the edges from some blocks to another.
func (e *edges) sum(from []int, to int, sign float64, sum map[int]float64) (map[int]float64, bool) {
	for _, b := range from {
		edge, ok := e.known[[2]int{b, to}]
		if !ok {
			return nil, false
		}
		for block, times := range edge {
			sum[block] += sign * times
		}
	}
	return sum, true
}

// count is the value of a sum of blocks.
func (e *edges) count(sum map[int]float64) Count {
	var c Count
	for block, times := range sum {
		if times == 0 {
			continue
		}
		b := e.blocks[block]
		c.Value += times * b.Value
		c.Variance += times * times * b.Variance
		c.Samples += b.Samples
	}
	if math.IsNaN(c.Value) {
		return Unknown
	}
	return c
}
