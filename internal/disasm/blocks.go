package disasm

import (
	"slices"
	"sort"
)

// A Block is a basic block: instructions that are executed one after the other, entered at
// the first and left at the last. A call returns and so does not end a block.
type Block struct {
	Insts []Inst
	// Succs and Preds are the blocks of the function that come next and before,
	// as indexes into Graph.Blocks, ascending.
	Succs, Preds []int
	// Leaves says that the flow may leave the function here: a return, a jump
	// into another function, a trap, or the end of the code.
	Leaves bool
	// Indirect says that the block ends in a jump to a computed address, as a switch does.
	// Its successors are a guess: every block that no other block leads to.
	Indirect bool
	// Loop is the innermost loop that the block is in, as an index into
	// Graph.Loops, or -1.
	Loop int
}

// Start returns the address of the block.
func (b *Block) Start() uint64 { return b.Insts[0].Addr }

// End returns the address behind the block.
func (b *Block) End() uint64 { return b.Insts[len(b.Insts)-1].Next() }

// Last returns the instruction that ends the block.
func (b *Block) Last() Inst { return b.Insts[len(b.Insts)-1] }

// A Graph is the control flow of a function.
type Graph struct {
	Blocks []Block // by address; the first is the entry
	Loops  []Loop  // outer ones before those inside them
	// Guessed says that the function has computed jumps, or blocks without predecessors.
	// Edges may be missing or too many, and so may loops.
	Guessed bool
	// Irreducible says that a cycle is entered at more than one place. Such a
	// cycle is no natural loop and not among Loops.
	Irreducible bool
	// Partial says that the function is too large and loops are missing.
	Partial bool
}

// Instructions decodes the code of a function that lies at addr.
func Instructions(d Decoder, code []byte, addr uint64) []Inst {
	var list []Inst
	for len(code) > 0 {
		i := d.Decode(code, addr)
		list = append(list, i)
		code, addr = code[i.Len:], i.Next()
	}
	return list
}

// NewGraph finds the blocks and loops of a function from its instructions, which are in
// order and without gaps. If a symbol's size includes the padding behind the last return,
// the padding is a block without predecessors.
func NewGraph(insts []Inst) *Graph {
	g := &Graph{}
	if len(insts) == 0 {
		return g
	}
	g.cut(insts)
	g.connect()
	g.findLoops()
	return g
}

// BlockAt returns the index of the block with an address, or -1.
func (g *Graph) BlockAt(addr uint64) int {
	i := sort.Search(len(g.Blocks), func(i int) bool { return g.Blocks[i].Start() > addr }) - 1
	if i < 0 || addr >= g.Blocks[i].End() {
		return -1
	}
	return i
}

// cut divides the instructions into blocks: at the targets of branches and
// behind every branch.
func (g *Graph) cut(insts []Inst) {
	leader := make([]bool, len(insts)+1)
	leader[0] = true
	for i, in := range insts {
		if in.Flow == Jump || in.Flow == CondJump {
			if at, ok := instAt(insts, in.Target); ok {
				leader[at] = true
			}
		}
		leader[i+1] = leader[i+1] || in.Flow.Branches()
	}
	leader[len(insts)] = true
	start := 0
	for i := 1; i <= len(insts); i++ {
		if leader[i] {
			g.Blocks = append(g.Blocks, Block{Insts: insts[start:i:i], Loop: -1})
			start = i
		}
	}
}

func instAt(insts []Inst, addr uint64) (int, bool) {
	return slices.BinarySearchFunc(insts, addr, func(i Inst, a uint64) int {
		switch {
		case i.Addr < a:
			return -1
		case i.Addr > a:
			return 1
		}
		return 0
	})
}

// connect finds the edges between blocks.
func (g *Graph) connect() {
	for i := range g.Blocks {
		b := &g.Blocks[i]
		last := b.Last()
		switch last.Flow {
		case IndirectJump:
			b.Indirect = true
		case Return, CondReturn, Trap:
			b.Leaves = true
		case Jump, CondJump:
			g.branch(i, last.Target)
		}
		if last.Flow.Ends() {
			continue
		}
		if i+1 < len(g.Blocks) {
			g.edge(i, i+1)
		} else {
			b.Leaves = true
		}
	}
	g.guess()
	for i := range g.Blocks {
		b := &g.Blocks[i]
		slices.Sort(b.Succs)
		b.Succs = slices.Compact(b.Succs)
		for _, s := range b.Succs {
			g.Blocks[s].Preds = append(g.Blocks[s].Preds, i)
		}
	}
}

// branch adds the edge to a target. A target that is no block's start is in another
// function, or in the middle of an instruction.
func (g *Graph) branch(from int, target uint64) {
	if to := g.BlockAt(target); to >= 0 && g.Blocks[to].Start() == target {
		g.edge(from, to)
	} else {
		g.Blocks[from].Leaves = true
	}
}

func (g *Graph) edge(from, to int) {
	g.Blocks[from].Succs = append(g.Blocks[from].Succs, to)
}

// guess gives computed jumps their successors: the blocks without predecessors. Without
// computed jumps those blocks are entered in ways that the code does not show, such as
// exceptions, or never.
func (g *Graph) guess() {
	reached := make([]bool, len(g.Blocks))
	reached[0] = true
	for i := range g.Blocks {
		for _, s := range g.Blocks[i].Succs {
			reached[s] = reached[s] || s != i
		}
	}
	var orphans []int
	for i := range reached {
		if !reached[i] && !g.padding(i) {
			orphans = append(orphans, i)
		}
	}
	shared := g.indirect()
	g.Guessed = shared != nil || len(orphans) > 0
	for _, i := range shared {
		g.Blocks[i].Succs = orphans
		g.Blocks[i].Leaves = true
	}
}

// indirect returns the blocks that end in computed jumps.
func (g *Graph) indirect() []int {
	var list []int
	for i := range g.Blocks {
		if g.Blocks[i].Indirect {
			list = append(list, i)
		}
	}
	return list
}

// padding says whether a block is the rest of the function behind its last
// return or jump.
func (g *Graph) padding(i int) bool {
	return i == len(g.Blocks)-1 && i > 0 && len(g.Blocks[i].Succs) == 0 && g.Blocks[i].Last().Flow == Next
}
