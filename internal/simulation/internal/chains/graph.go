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

// An effect is a step whose locations are numbered; 0 is none.
type effect struct {
	writes         int32
	reads, address []int32
	load, call     bool
}

// A graph is a function's instructions, with their effects.
type graph struct {
	insts  []disasm.Inst
	steps  []effect
	number map[location]int32
	lost   []bool // by location: a call may overwrite it
	passed []bool // by location: it may be an argument
	seen   map[place]bool
	blocks []disasm.Block
	first  []int         // by block: index of its first instruction
	block  []int         // by instruction
	again  []int         // instructions that call the function itself
	from   map[int][]int // by load: loads that its address comes from
	cyclic map[int]bool
}

func newGraph(insts []disasm.Inst) *graph {
	g := &graph{insts: insts, number: map[location]int32{"": 0}, lost: []bool{false}, passed: []bool{false}, seen: map[place]bool{}, blocks: disasm.NewGraph(insts).Blocks, block: make([]int, len(insts)), from: map[int][]int{}, cyclic: map[int]bool{}}
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

// add adds the effect of the next instruction.
func (g *graph) add(s step) {
	e := effect{writes: g.of(s.writes), load: s.load, call: s.call}
	for _, l := range s.reads {
		e.reads = append(e.reads, g.of(l))
	}
	for _, l := range s.address {
		e.address = append(e.address, g.of(l))
	}
	g.steps = append(g.steps, e)
}

// of returns the number of a location.
func (g *graph) of(l location) int32 {
	n, ok := g.number[l]
	if !ok {
		n = int32(len(g.number))
		g.number[l] = n
		g.lost, g.passed = append(g.lost, slices.Contains(lost, l)), append(g.passed, slices.Contains(arguments, l))
	}
	return n
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
	clear(g.seen)
	s := search{graph: g, left: maxSearch}
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
	todo  []place
	found []int
}

// A place is a point in the code and a location whose value is wanted there: in a block,
// before an instruction or at the end.
type place struct{ block, inst, of int32 }

// before finds the loads that the value of a location before an instruction comes from.
func (s *search) before(inst int, l int32) {
	s.todo = append(s.todo[:0], place{int32(s.block[inst]), int32(inst), l})
	for len(s.todo) > 0 && s.left > 0 {
		p := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		if !s.seen[p] {
			s.seen[p] = true
			s.back(p)
		}
	}
}

// back goes back to where a value was written, or to the block's start, and notes where to go
// on.
func (s *search) back(p place) {
	for i := p.inst - 1; i >= int32(s.first[p.block]); i-- {
		if s.left--; s.left <= 0 {
			return
		}
		st := &s.steps[i]
		switch {
		case st.writes == p.of && st.load:
			s.found = append(s.found, int(i))
			return
		case st.writes == p.of:
			for _, l := range st.reads {
				s.todo = append(s.todo, place{p.block, i, l})
			}
			return
		case st.call && s.lost[p.of]:
			return
		}
	}
	for _, before := range s.blocks[p.block].Preds {
		s.todo = append(s.todo, place{int32(before), int32(s.first[before] + len(s.blocks[before].Insts)), p.of})
	}
	if p.block == 0 && s.passed[p.of] {
		for _, i := range s.again {
			s.todo = append(s.todo, place{int32(s.block[i]), int32(i), p.of})
		}
	}
}
