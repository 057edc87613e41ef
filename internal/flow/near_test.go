package flow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/flow"
)

// TestVicinity compares what is near each instruction of functions made by chance
// with steps from instruction to instruction.
func TestVicinity(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		insts := function(randomFunction(rnd))
		for i := range insts {
			if insts[i].Flow == disasm.Next && rnd.IntN(20) == 0 {
				insts[i].Flow = disasm.IndirectCall
			}
		}
		g := flow.NewGraph(insts, nil)
		window := 1 + rnd.IntN(12)
		short := make([]bool, len(g.Loops))
		for l := range short {
			short[l] = rnd.IntN(3) == 0
		}
		v := flow.NewVicinity(g, window, short)
		for i := range insts {
			for _, late := range []bool{false, true} {
				got := v.Of(i, late)
				want := steps(g, insts, i, window, late, short)
				if !slices.Equal(got.Insts, want.Insts) || got.Leaves != want.Leaves {
					t.Fatalf("seed %d, window %d, instruction %d, late %v: got %v, want %v", seed, window, i, late, got, want)
				}
			}
		}
	}
}

// steps finds what is near an instruction step by step.
func steps(g *disasm.Graph, insts []disasm.Inst, from, window int, late bool, short []bool) flow.Surrounding {
	index := map[uint64]int{}
	block := make([]int, len(insts))
	for i, in := range insts {
		index[in.Addr], block[i] = i, g.BlockAt(in.Addr)
	}
	isLast := func(i int) bool { return i+1 == len(insts) || block[i+1] != block[i] }
	isFirst := func(i int) bool { return i == 0 || block[i-1] != block[i] }
	loop := g.Blocks[block[from]].Loop
	for loop >= 0 && short[loop] {
		loop = g.Loops[loop].Parent
	}
	in := func(i int) bool {
		return loop < 0 || slices.Contains(g.Loops[loop].Blocks, block[i])
	}
	next := func(i int) (list []int) {
		if !isLast(i) {
			return []int{i + 1}
		}
		for _, s := range g.Blocks[block[i]].Succs {
			if at := index[g.Blocks[s].Start()]; in(at) {
				list = append(list, at)
			}
		}
		return list
	}
	before := func(i int) (list []int) {
		if !isFirst(i) {
			return []int{i - 1}
		}
		for _, p := range g.Blocks[block[i]].Preds {
			if at := index[g.Blocks[p].Last().Addr]; in(at) {
				list = append(list, at)
			}
		}
		return list
	}
	var s flow.Surrounding
	near := map[int]bool{}
	for i := range insts {
		near[i] = i == from
	}
	spread := func(step func(int) []int, forwards bool) {
		ring := []int{from}
		seen := map[int]bool{}
		for d := 0; d <= window; d++ {
			var after []int
			for _, i := range ring {
				if d > 0 {
					near[i] = true
					if forwards && (insts[i].Flow == disasm.Call || insts[i].Flow == disasm.IndirectCall) {
						s.Leaves = true
					}
				}
				if forwards && d < window && isLast(i) && g.Blocks[block[i]].Leaves {
					s.Leaves = true
				}
				for _, j := range step(i) {
					if !seen[j] {
						seen[j] = true
						after = append(after, j)
					}
				}
			}
			ring = after
		}
	}
	spread(next, true)
	if late {
		spread(before, false)
	}
	for i := range insts {
		if near[i] {
			s.Insts = append(s.Insts, i)
		}
	}
	return s
}

func TestVicinityOutside(t *testing.T) {
	g := flow.NewGraph(function(nest), nil)
	v := flow.NewVicinity(g, flow.Skid, nil)
	for _, i := range []int{-1, 12, 1000} {
		if s := v.Of(i, true); len(s.Insts) > 0 {
			t.Errorf("instruction %d: got %v", i, s)
		}
	}
}

func ExampleVicinity_Of() {
	// Two instructions, a loop of four that follows them, and a return.
	g := flow.NewGraph(function([]node{{2, disasm.Next, 0}, {4, disasm.CondJump, 1}, {1, disasm.Return, 0}}), nil)
	s := flow.NewVicinity(g, 2, nil).Of(5, false)
	fmt.Println(s.Insts, s.Leaves)
	// Output: [2 3 5] false
}
