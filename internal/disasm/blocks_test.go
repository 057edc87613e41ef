package disasm

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A node describes a block of a made-up function: where it goes.
type node struct {
	flow   Flow
	target int // block
}

// function makes the instructions of blocks: one of four bytes that does
// nothing, and the last, which ends the block.
func function(nodes []node) []Inst {
	var list []Inst
	for b, n := range nodes {
		at := uint64(b) * 8
		list = append(list, Inst{Addr: at, Len: 4}, Inst{Addr: at + 4, Len: 4, Flow: n.flow, Target: uint64(n.target) * 8})
	}
	return list
}

func TestGraph(t *testing.T) {
	type loop struct {
		Header, Depth, Parent           int
		Blocks, Latches, Entries, Exits []int
		Runs                            []int
	}
	tests := []struct {
		name        string
		nodes       []node
		succs       [][]int
		loops       []loop
		guessed     bool
		irreducible bool
	}{
		{name: "straight", nodes: []node{{Return, 0}}, succs: [][]int{nil}},
		{
			name:  "if",
			nodes: []node{{CondJump, 2}, {Jump, 3}, {Next, 0}, {Return, 0}},
			succs: [][]int{{1, 2}, {3}, {3}, nil},
		},
		{
			name:  "loop with two ways back",
			nodes: []node{{Next, 0}, {CondJump, 3}, {CondJump, 1}, {CondJump, 1}, {Return, 0}},
			succs: [][]int{{1}, {2, 3}, {1, 3}, {1, 4}, nil},
			loops: []loop{{Header: 1, Depth: 1, Parent: -1, Blocks: []int{1, 2, 3}, Latches: []int{2, 3}, Entries: []int{0}, Exits: []int{3}, Runs: []int{0}}},
		},
		{
			name:  "nested",
			nodes: []node{{Next, 0}, {Next, 0}, {CondJump, 2}, {CondJump, 1}, {Return, 0}},
			succs: [][]int{{1}, {2}, {2, 3}, {1, 4}, nil},
			loops: []loop{
				{Header: 1, Depth: 1, Parent: -1, Blocks: []int{1, 2, 3}, Latches: []int{3}, Entries: []int{0}, Exits: []int{3}, Runs: []int{0}},
				{Header: 2, Depth: 2, Parent: 0, Blocks: []int{2}, Latches: []int{2}, Entries: []int{1}, Exits: []int{2}, Runs: []int{1}},
			},
		},
		{
			name:  "a loop of the whole function",
			nodes: []node{{CondJump, 0}, {Return, 0}},
			succs: [][]int{{0, 1}, nil},
			loops: []loop{{Header: 0, Depth: 1, Parent: -1, Blocks: []int{0}, Latches: []int{0}, Exits: []int{0}, Runs: []int{1}}},
		},
		{
			name:  "a loop that is passed by, and known by what follows it",
			nodes: []node{{CondJump, 3}, {CondJump, 1}, {Next, 0}, {Return, 0}},
			succs: [][]int{{1, 3}, {1, 2}, {3}, nil},
			loops: []loop{{Header: 1, Depth: 1, Parent: -1, Blocks: []int{1}, Latches: []int{1}, Entries: []int{0}, Exits: []int{1}, Runs: []int{2}}},
		},
		{
			name:  "a loop that is passed by",
			nodes: []node{{CondJump, 2}, {CondJump, 1}, {Return, 0}},
			succs: [][]int{{1, 2}, {1, 2}, nil},
			loops: []loop{{Header: 1, Depth: 1, Parent: -1, Blocks: []int{1}, Latches: []int{1}, Entries: []int{0}, Exits: []int{1}}},
		},
		{
			name:        "a cycle with two entries",
			nodes:       []node{{CondJump, 2}, {Next, 0}, {CondJump, 1}, {Return, 0}},
			succs:       [][]int{{1, 2}, {2}, {1, 3}, nil},
			irreducible: true,
		},
		{
			name:    "switch",
			nodes:   []node{{Next, 0}, {IndirectJump, 0}, {Jump, 4}, {Jump, 4}, {CondJump, 1}, {Return, 0}},
			succs:   [][]int{{1}, {2, 3}, {4}, {4}, {1, 5}, nil},
			loops:   []loop{{Header: 1, Depth: 1, Parent: -1, Blocks: []int{1, 2, 3, 4}, Latches: []int{4}, Entries: []int{0}, Exits: []int{4}, Runs: []int{0}}},
			guessed: true,
		},
		{
			name:    "an exception handler that goes back into a loop",
			nodes:   []node{{Next, 0}, {Next, 0}, {CondJump, 1}, {Return, 0}, {Jump, 2}},
			succs:   [][]int{{1}, {2}, {1, 3}, nil, {2}},
			loops:   []loop{{Header: 1, Depth: 1, Parent: -1, Blocks: []int{1, 2}, Latches: []int{2}, Entries: []int{0}, Exits: []int{2}, Runs: []int{0}}},
			guessed: true,
		},
		{
			name:  "a jump into another function",
			nodes: []node{{CondJump, 100}, {Jump, 200}},
			succs: [][]int{{1}, nil},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewGraph(function(test.nodes))
			checkGraph(t, g)
			var succs [][]int
			for i := range g.Blocks {
				succs = append(succs, g.Blocks[i].Succs)
			}
			if d := cmp.Diff(test.succs, succs); d != "" {
				t.Errorf("edges (-want +got):\n%s", d)
			}
			var loops []loop
			for _, l := range g.Loops {
				loops = append(loops, loop{l.Header, l.Depth, l.Parent, l.Blocks, l.Latches, l.Entries, l.Exits, l.Runs})
			}
			if d := cmp.Diff(test.loops, loops); d != "" {
				t.Errorf("loops (-want +got):\n%s", d)
			}
			if g.Guessed != test.guessed || g.Irreducible != test.irreducible {
				t.Errorf("got guessed %v, irreducible %v", g.Guessed, g.Irreducible)
			}
		})
	}
}

// checkGraph checks what holds for every graph.
func checkGraph(t *testing.T, g *Graph) {
	t.Helper()
	for b := range g.Blocks {
		block := &g.Blocks[b]
		if b > 0 && block.Start() != g.Blocks[b-1].End() {
			t.Fatalf("block %d starts at %#x, and the one before ends at %#x", b, block.Start(), g.Blocks[b-1].End())
		}
		if g.BlockAt(block.Start()) != b || g.BlockAt(block.End()-1) != b {
			t.Fatalf("block %d is not found", b)
		}
		for _, s := range block.Succs {
			if !slices.Contains(g.Blocks[s].Preds, b) {
				t.Fatalf("block %d does not know that %d leads to it", s, b)
			}
		}
		for _, i := range block.Insts[:len(block.Insts)-1] {
			if i.Flow.Branches() {
				t.Fatalf("block %d goes on behind a branch at %#x", b, i.Addr)
			}
		}
	}
	for n, l := range g.Loops {
		if l.Parent >= n || l.Parent >= 0 && !slices.Contains(g.Loops[l.Parent].Blocks, l.Header) {
			t.Fatalf("loop %d has the parent %d", n, l.Parent)
		}
		for _, b := range l.Latches {
			if !slices.Contains(l.Blocks, b) || !slices.Contains(g.Blocks[b].Succs, l.Header) {
				t.Fatalf("loop %d has the latch %d", n, b)
			}
		}
	}
}

func TestGraphOfNothing(t *testing.T) {
	if g := NewGraph(nil); len(g.Blocks) != 0 || g.BlockAt(0) != -1 {
		t.Errorf("got %+v", g)
	}
}

// TestPadding has code behind the last return that no one reaches.
func TestPadding(t *testing.T) {
	insts := append(function([]node{{CondJump, 0}, {Return, 0}}), Inst{Addr: 16, Len: 8})
	g := NewGraph(insts)
	if len(g.Blocks) != 3 || g.Guessed || len(g.Blocks[2].Preds) != 0 {
		t.Errorf("got %+v", g)
	}
}
