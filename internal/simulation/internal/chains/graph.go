package chains

import (
	"slices"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// A location holds a value: a register, by the name of its widest form, or a variable
// on the stack, as "-0x8(%rbp)".
type location string

// A step is an instruction's effect on values.
type step struct {
	writes  location   // "" for nothing that is followed
	reads   []location // sources of the value that it writes, without the address of a load
	address []location // sources of the address of its load
	load    bool       // from memory other than a variable on the stack
	call    bool       // registers that functions need not keep are lost
}

// A graph is a function's instructions, with their effects.
type graph struct {
	insts  []disasm.Inst
	steps  []step
	blocks []disasm.Block
	first  []int         // by block: index of its first instruction
	block  []int         // by instruction
	again  []int         // instructions that call the function itself
	from   map[int][]int // by load: loads that its address comes from
	cyclic map[int]bool
}

func newGraph(insts []disasm.Inst) *graph {
	g := &graph{insts: insts, blocks: disasm.NewGraph(insts).Blocks, block: make([]int, len(insts)), from: map[int][]int{}, cyclic: map[int]bool{}}
	at := 0
	for b := range g.blocks {
		g.first = append(g.first, at)
		for range g.blocks[b].Insts {
			g.block[at] = b
			at++
		}
	}
	for i := range insts {
		if insts[i].Flow == disasm.Call && insts[i].Target == insts[0].Addr {
			g.again = append(g.again, i)
		}
	}
	return g
}

// endless reports whether the address of a load comes from a load whose own address
// comes from itself.
func (g *graph) endless(load int) bool {
	seen := map[int]bool{}
	todo := []int{load}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		if g.returns(i) {
			return true
		}
		todo = append(todo, g.sources(i)...)
	}
	return false
}

// returns reports whether the address of a load comes from itself.
func (g *graph) returns(load int) bool {
	if is, ok := g.cyclic[load]; ok {
		return is
	}
	seen := map[int]bool{}
	todo := g.sources(load)
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if i == load {
			g.cyclic[load] = true
			return true
		}
		if !seen[i] {
			seen[i] = true
			todo = append(todo, g.sources(i)...)
		}
	}
	g.cyclic[load] = false
	return false
}

// sources returns the loads that a load's address comes from directly: through arithmetic,
// copies and the stack alone.
func (g *graph) sources(load int) []int {
	if list, ok := g.from[load]; ok {
		return list
	}
	s := search{graph: g, left: maxSearch, seen: map[place]bool{}}
	for _, l := range g.steps[load].address {
		s.before(load, l)
	}
	list := append([]int{}, s.found...)
	g.from[load] = list
	return list
}

// A search goes back from a value to the loads that it comes from.
type search struct {
	*graph
	left  int // instructions that may still be looked at
	seen  map[place]bool
	found []int
}

// A place is a point in the code and a location whose value is wanted there: in a block,
// before an instruction or at the end.
type place struct {
	block, inst int
	of          location
}

// before finds the loads that the value of a location before an instruction comes from.
func (s *search) before(inst int, l location) {
	todo := []place{{s.block[inst], inst, l}}
	for len(todo) > 0 && s.left > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !s.seen[p] {
			s.seen[p] = true
			todo = append(todo, s.back(p)...)
		}
	}
}

// back goes back to where a value was written, or to the block's start, and returns where to go
// on.
func (s *search) back(p place) []place {
	for i := p.inst - 1; i >= s.first[p.block]; i-- {
		if s.left--; s.left <= 0 {
			return nil
		}
		st := &s.steps[i]
		switch {
		case st.writes == p.of && st.load:
			s.found = append(s.found, i)
			return nil
		case st.writes == p.of:
			var next []place
			for _, l := range st.reads {
				next = append(next, place{p.block, i, l})
			}
			return next
		case st.call && slices.Contains(lost, p.of):
			return nil
		}
	}
	var next []place
	for _, before := range s.blocks[p.block].Preds {
		next = append(next, place{before, s.first[before] + len(s.blocks[before].Insts), p.of})
	}
	if p.block == 0 && slices.Contains(arguments, p.of) {
		for _, i := range s.again {
			next = append(next, place{s.block[i], i, p.of})
		}
	}
	return next
}
