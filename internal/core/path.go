package core

import (
	"fmt"
	"slices"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/source/code"
)

// A Piece is code that is executed again and again: an iteration of a loop, along one path,
// or a block that copies of itself follow.
type Piece struct {
	Arch     disasm.Arch // "" is amd64
	Module   string
	Function string // demangled; "" for bare code
	Loop     int    // its number among the function's loops; 0 for none
	Insts    []code.Inst
	Taken    []bool // by instruction: the path jumps there
	Unrolled bool   // copies follow each other
	Same     bool   // all registers hold one number at first
	Block    string // its machine code in hexadecimal, if it was given so

	File        string // of the source; "" if it is not known
	First, Last int    // its lines

	// Weight is the part of the samples that the whole loop has, Samples their number;
	// 0 without a recording.
	Weight  float64
	Samples int64
	// Nodes are the nodes of the recording's method in the loop, by name, as shares of the
	// run's whole; nil if they are not known.
	Nodes map[string]NodeShare
	// Issued is the cycles of its instructions in a simulator's core, of all executions; 0
	// if that is not known.
	Issued float64
	Notes  []string
}

// A NodeShare is the share of a run's whole that a node has in a loop.
type NodeShare struct {
	Value, Error float64 // Error is half of the 95 % interval
}

// longestPath bounds the instructions of a path.
const longestPath = 4096

// A Loops finds the innermost loops of a function.
type Loops struct {
	Listing *code.Listing
	Graph   *disasm.Graph // nil: the listing's
	// Weight is how often a block was executed, or how many samples its instructions have
	// on average; nil without a recording.
	Weight func(block int) float64
	// Plain leaves instructions without texts and lines: Describe adds them.
	Plain bool

	index map[uint64]int // of the listing's instructions, by address
}

// Find returns the innermost loops of the function, by address, or one around the whole
// function if there are none.
func (l *Loops) Find() []*Piece {
	if l.Graph == nil {
		l.Graph = l.Listing.Graph
	}
	l.index = make(map[uint64]int, len(l.Listing.Insts))
	for i := range l.Listing.Insts {
		l.index[l.Listing.Insts[i].Addr] = i
	}
	g := l.Graph
	var list []*Piece
	for i, is := range outer(g) {
		if !is {
			list = append(list, l.loop(i))
		}
	}
	if len(g.Loops) == 0 && len(g.Blocks) > 0 {
		p := l.path(0, func(int) bool { return true })
		p.Notes = append(p.Notes, "the function has no loop: it is analysed as if it were called again and again")
		list = append(list, p)
	}
	return list
}

// outer reports of each loop whether another is in it.
func outer(g *disasm.Graph) []bool {
	list := make([]bool, len(g.Loops))
	for i := range g.Loops {
		if p := g.Loops[i].Parent; p >= 0 {
			list[p] = true
		}
	}
	return list
}

// loop returns an iteration of a loop.
func (l *Loops) loop(i int) *Piece {
	loop := &l.Graph.Loops[i]
	p := l.path(loop.Header, func(b int) bool { _, in := slices.BinarySearch(loop.Blocks, b); return in })
	p.Loop = i + 1
	return p
}

// path follows the blocks that are executed most often, from one until nothing inside is
// left. Without weights it follows the code that is not jumped to: compilers put there what
// they think likely.
func (l *Loops) path(from int, inside func(block int) bool) *Piece {
	f := l.Listing.Function
	p := &Piece{Module: f.File.Base(), Function: f.Name, Arch: l.Listing.Arch}
	seen := map[int]bool{}
	forks, calls := 0, 0
	for at := from; !seen[at] && len(p.Insts) < longestPath; {
		seen[at] = true
		b := &l.Graph.Blocks[at]
		for _, in := range b.Insts {
			i := l.index[in.Addr]
			p.Insts = append(p.Insts, l.Listing.Insts[i])
			p.Taken = append(p.Taken, false)
			if in.Flow == disasm.Call || in.Flow == disasm.IndirectCall {
				calls++
			}
		}
		next := l.next(b, inside)
		if ways := slices.DeleteFunc(slices.Clone(b.Succs), func(s int) bool { return !inside(s) }); len(ways) > 1 {
			forks++
		}
		if next < 0 {
			break
		}
		p.Taken[len(p.Taken)-1] = l.Graph.Blocks[next].Start() != b.End()
		at = next
	}
	if n := len(p.Taken); n > 0 {
		p.Taken[n-1] = true
	}
	if !l.Plain {
		l.Describe(p)
	}
	if forks > 0 {
		how := "by the most samples"
		if l.Weight == nil {
			how = "a guess without a recording"
		}
		p.Notes = append(p.Notes, fmt.Sprintf("%s inside the loop go two ways: one path is modelled, %s", several(forks, "branch", "branches"), how))
	}
	if calls > 0 {
		p.Notes = append(p.Notes, several(calls, "call", "calls")+" inside: the time of what is called is not in the model")
	}
	if len(p.Insts) >= longestPath {
		p.Notes = append(p.Notes, fmt.Sprintf("the path is longer than %d instructions: the rest is not modelled", longestPath))
	}
	return p
}

// Describe adds texts and lines to a piece that Find has returned.
func (l *Loops) Describe(p *Piece) {
	for i := range p.Insts {
		in := &p.Insts[i]
		l.Listing.Describe(in)
		if in.OuterLine > 0 {
			in.File, in.Line = in.OuterFile, in.OuterLine
		}
	}
	p.place()
}

// next returns the block that follows on the path, or -1.
func (l *Loops) next(b *disasm.Block, inside func(int) bool) int {
	best := -1
	for _, s := range b.Succs {
		switch {
		case !inside(s):
		case best < 0:
			best = s
		case l.Weight != nil && l.Weight(s) != l.Weight(best):
			if l.Weight(s) > l.Weight(best) {
				best = s
			}
		case l.Graph.Blocks[s].Start() == b.End():
			best = s
		}
	}
	return best
}

// place finds the lines of a piece: those of the file that most of its instructions
// are of.
func (p *Piece) place() {
	files := map[string]int{}
	for i := range p.Insts {
		if f := p.Insts[i].File; f != "" {
			if files[f]++; files[f] > files[p.File] {
				p.File = f
			}
		}
	}
	for i := range p.Insts {
		in := &p.Insts[i]
		if in.File != p.File || in.Line == 0 {
			continue
		}
		if p.First == 0 || in.Line < p.First {
			p.First = in.Line
		}
		p.Last = max(p.Last, in.Line)
	}
}

func several(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
