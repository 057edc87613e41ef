// Package annotate makes the account of each instruction and line of a function, of its
// basic blocks and loops. It says how often they were executed, and which events are
// hidden: those without stalled cycles near them.
//
// It joins a function's code with the counts of its places, and evaluates them by the run's
// method:
//
//	code, err := annotate.New(table, listing, annotate.Options{Method: method, Clock: 0, Retired: -1})
//	for _, i := range code.Insts {
//		fmt.Println(i.Text, i.Share, i.Figures)
//	}
package annotate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A Listing is the code to annotate.
type Listing struct {
	Function string // demangled
	Symbol   string
	Module   string // as in counts.Code
	BuildID  string
	Start    uint64 // addresses of the object file that belong to it
	End      uint64
	Part     bool // they are a part of the function
	// ByLine says that there are no instructions: the lines of the source are annotated, by
	// rows of the table.
	ByLine bool
	Insts  []Inst // ascending by address; without Text they are only addresses of samples
	// Graph are the blocks and loops, nil if the code is not known. Its
	// instructions are those of Insts.
	Graph *disasm.Graph
	Notes []string // what is not known of it
}

// An Inst is an instruction of a listing.
type Inst struct {
	disasm.Inst
	Text string // as the assembler writes it; "" if the code is not known
	Note string // its target, or what it refers to
	File string // of the source
	Line int
}

// Options say what the counts mean.
type Options struct {
	Method  *account.Method // nil: there are no nodes, only shares
	Clock   int             // the column that parts of the code are compared by
	Counted bool            // a simulator has counted each execution
	// Retired is the column that counts retired instructions, for the executions of blocks;
	// -1 if there is none.
	Retired int
	// Exact says of each column whether its samples name the instruction that caused them.
	// Nil: none does.
	Exact []bool
	// Run is the row of the whole run, if it is not the table's first one.
	Run []counts.Cell
	// Branches are the executions of blocks from branch stacks, if there are any. Relative
	// says that only their proportions are known.
	Branches *flow.Branches
	Relative bool
	Window   int // the distance of near instructions; 0 is flow.Skid
	// Spare is a code of the same listing, with instructions, whose memory may be used again; or nil.
	Spare *Code
	// LoopsOnly leaves out the figures of instructions, lines and blocks, and what is hidden.
	LoopsOnly bool
}

// A Code is a function with the counts of its parts.
type Code struct {
	*Listing
	Account *account.Account // of the function, by the method; nil without one
	Table   *counts.Table    // the run, the function, and a row for each part
	Clock   int
	Retired int

	Whole  Part // the function
	Parts  []Part
	Lines  []Line
	Blocks []Block
	Loops  []Loop
	Costs  []Cost
	// Unnamed are the columns, other than the clock, with counts in the function that no
	// known node names.
	Unnamed []int
	// Executions says how the executions of blocks were found; "" if they are not known.
	Executions string
	Relative   bool // only their proportions are known

	rowsOf [][]int // by instruction: rows of the table that New was given
}

// A Part is the counts of an instruction, a line, a block or a loop. The parts of
// Code.Parts are parallel to its Insts.
type Part struct {
	Row     int     // of Code.Table; 0 if nothing was counted
	Share   float64 // of the function's count of the clock
	OfRun   float64 // of the run's
	Samples int64   // of the clock
	Error   float64 // half-width of the 95 % interval of Share; NaN if it cannot be known
	// Figures are the values of the model's nodes; nil if nothing was counted.
	Figures []Figure
	Hidden  []Verdict // parallel to Code.Costs; nil if nothing was counted
}

// A Figure is a node's value at a part of a function.
type Figure struct {
	// Value is the part of the function's cycles (or slots) that a node has here. It is set for
	// shares of the whole. So those of all instructions sum to the function's. For other nodes
	// it is their own value. It is NaN if it is not known.
	Value    float64
	Error    float64 // half-width of the 95 % interval
	Amount   float64 // cycles or slots; NaN for nodes that have none
	Reliable bool    // its interval is less wide than the value
	Samples  int64   // samples of the events that it names
}

// A Line is a line of the source with code of the function.
type Line struct {
	Part
	File  string
	Line  int
	Insts []int
}

// A Block is a basic block.
type Block struct {
	Part
	First, Last int        // instructions
	Executions  flow.Count // Unknown if it is not known
	// Cycles are those between two taken branches, and End is the branch that ends it, as
	// branch stacks have them.
	Cycles flow.Count
	End    flow.End
}

// A Loop is a loop.
type Loop struct {
	Part
	Executed flow.Loop
	// Inner is the share of the clock outside the loops inside it.
	Inner       float64
	First, Last int    // lines of its header's file
	File        string // the header's
	PerIter     []PerIteration
	// Cycles are those from one jump back to the next, as branch stacks have them; Unknown
	// without.
	Cycles flow.Count
}

// PerIteration is how often an event happened in one iteration of a loop, without the code
// that it calls.
type PerIteration struct {
	Event   string
	Value   float64
	Error   float64 // half-width of the 95 % interval
	Samples int64
}

// New annotates code with the counts of a table with a row for each sampled instruction: that
// of samples.Reader with counts.Instruction. Its first row is the run.
func New(t *counts.Table, l *Listing, o Options) (*Code, error) {
	if o.Clock < 0 || o.Clock >= len(t.Columns) || o.Retired >= len(t.Columns) {
		return nil, fmt.Errorf("annotate: column %d of %d", max(o.Clock, o.Retired), len(t.Columns))
	}
	c := &Code{Listing: l, Clock: o.Clock, Retired: o.Retired}
	if o.Spare != nil && l.Graph != nil {
		c.Parts, c.Lines, c.Blocks, c.rowsOf = o.Spare.Parts, o.Spare.Lines, o.Spare.Blocks, o.Spare.rowsOf
		clear(c.Parts)
		clear(c.rowsOf)
		for i := range c.Lines {
			c.Lines[i].Part = Part{}
		}
	}
	b := &builder{Code: c, o: o, from: t}
	b.rows()
	b.gather()
	b.evaluate()
	b.executions()
	if !o.LoopsOnly {
		b.hidden()
	}
	return c, nil
}

// Short returns the code without blocks, scopes of the table, and instructions and lines without counts.
// It shares no memory with what Options.Spare overwrites.
func (c *Code) Short() *Code {
	own, out := *c.Listing, *c
	own.Insts = nil
	out.Listing, out.Parts, out.Lines, out.Blocks, out.rowsOf = &own, nil, nil, nil, nil
	for i := range c.Parts {
		if c.Parts[i].Row > 0 {
			own.Insts, out.Parts = append(own.Insts, c.Insts[i]), append(out.Parts, c.Parts[i])
		}
	}
	for _, l := range c.Lines {
		if l.Insts = nil; l.Row > 0 {
			out.Lines = append(out.Lines, l)
		}
	}
	c.Table.Layout = &counts.Layout{Columns: c.Table.Columns}
	return &out
}

// A builder makes a Code.
type builder struct {
	*Code
	o       Options
	from    *counts.Table
	one     []float64 // by column: the variance where there is no sample
	binding *account.Binding
	reuse   *account.Account
	named   [][]int // by node: the columns that its formula names
}

// rows finds the rows of the listing's instructions. Without code the addresses of the rows
// are the instructions.
func (b *builder) rows() {
	if b.ByLine {
		b.rowsByLine()
		return
	}
	at := map[uint64][]int{}
	for row := range b.from.Scopes {
		code := b.from.Scopes[row].Code
		if code == nil || code.Module != b.Module || code.BuildID != b.BuildID || code.Function != b.Function || code.Addr < b.Start || code.Addr >= b.End {
			continue
		}
		at[code.Addr] = append(at[code.Addr], row)
	}
	if b.Graph == nil {
		b.Insts = nil
		for addr, rows := range at {
			code := b.from.Scopes[rows[0]].Code
			b.Insts = append(b.Insts, Inst{Inst: disasm.Inst{Addr: addr, Len: 1}, File: code.File, Line: code.Line})
		}
		sorting.Stable(b.Insts, func(x, y Inst) int { return cmp.Compare(x.Addr, y.Addr) })
	}
	if b.rowsOf == nil {
		b.rowsOf = make([][]int, len(b.Insts))
	}
	within := 0
	for addr, rows := range at {
		i := b.instAt(addr)
		if i < 0 {
			continue
		}
		b.rowsOf[i] = append(b.rowsOf[i], rows...)
		if b.Insts[i].Addr != addr {
			within++
		}
	}
	if within > 0 {
		b.Notes = append(slices.Clone(b.Notes), fmt.Sprintf("samples at %d addresses lie within instructions: the code is of another build than the recorded one", within))
	}
}

// rowsByLine makes an instruction of each row of the function. Only its line is known.
func (b *builder) rowsByLine() {
	b.Insts = nil
	for row := range b.from.Scopes {
		if c := b.from.Scopes[row].Code; c != nil && c.Module == b.Module && c.Function == b.Function {
			b.Insts = append(b.Insts, Inst{File: c.File, Line: c.Line})
			b.rowsOf = append(b.rowsOf, []int{row})
		}
	}
}

// instAt returns the instruction that an address is in.
func (b *builder) instAt(addr uint64) int {
	i, ok := slices.BinarySearchFunc(b.Insts, addr, func(in Inst, a uint64) int { return cmp.Compare(in.Addr, a) })
	if !ok {
		i--
	}
	return i
}

// gather makes the table: the run, the function, and its parts.
func (b *builder) gather() {
	b.one = make([]float64, len(b.from.Columns))
	for row := range b.from.Scopes {
		for col, c := range b.from.Row(row) {
			if row > 0 && c.Ok() && !happened(&c) {
				b.one[col] = c.Variance
			}
		}
	}
	for col, c := range b.o.Run {
		if col < len(b.one) && b.one[col] == 0 && c.Ok() && c.Samples > 0 {
			b.one[col] = math.Pow(c.Value/float64(c.Samples), 2)
		}
	}
	layout := &counts.Layout{Columns: b.from.Columns, Scopes: []counts.Scope{b.from.Scopes[0]}}
	sums := []func() []int{nil} // the terms of a row, found when they are needed: loops lie in loops
	add := func(s counts.Scope, rows func() []int) int {
		layout.Scopes = append(layout.Scopes, s)
		sums = append(sums, rows)
		return len(sums) - 1
	}
	b.Whole.Row = add(b.scope(counts.Function, b.Function, b.Start), func() []int { return slices.Concat(b.rowsOf...) })
	if b.Parts == nil {
		b.Parts = make([]Part, len(b.Insts))
	}
	for i, rows := range b.rowsOf {
		if len(rows) > 0 {
			b.Parts[i].Row = add(b.scope(counts.Instruction, fmt.Sprintf("%#x", b.Insts[i].Addr), b.Insts[i].Addr), func() []int { return rows })
		}
	}
	b.lines(add)
	b.blocks(add)
	b.Table = counts.NewTable(layout)
	b.Table.Label, b.Table.CPU = b.from.Label, b.from.CPU
	b.Table.Start, b.Table.Duration = b.from.Start, b.from.Duration
	copy(b.Table.Row(0), b.from.Row(0))
	if len(b.o.Run) == len(b.Table.Columns) {
		copy(b.Table.Row(0), b.o.Run)
	}
	for row, rows := range sums {
		if row > 0 {
			b.sum(b.Table.Row(row), rows())
		}
	}
}

func (b *builder) scope(kind counts.Kind, label string, addr uint64) counts.Scope {
	s := counts.RunScope(label)
	s.Kind, s.Code = kind, &counts.Code{Module: b.Module, BuildID: b.BuildID, Function: b.Function, Addr: addr}
	return s
}

// sum adds rows of the samples' table into a row. If no row has a sample, there might have
// been one, whatever the number of rows.
func (b *builder) sum(to []counts.Cell, rows []int) {
	for col := range to {
		to[col] = counts.Cell{State: b.from.Cell(0, col).State} // a column's cells are all counted, or all absent
		if !to[col].Ok() {
			continue
		}
		for _, row := range rows {
			if c := b.from.Cell(row, col); c.Ok() && happened(c) {
				to[col].Add(c)
			}
		}
		if !happened(&to[col]) {
			to[col].Variance = b.one[col]
		}
	}
}

// happened says whether an event was seen, in samples or counted exactly.
func happened(c *counts.Cell) bool { return c.Samples > 0 || c.Value != 0 }

// An adder adds a row to the new table: the sum of others.
type adder func(s counts.Scope, rows func() []int) int

// of returns the rows of some instructions.
func (b *builder) of(insts []int) []int {
	var rows []int
	for _, i := range insts {
		rows = append(rows, b.rowsOf[i]...)
	}
	return rows
}

func (b *builder) lines(add adder) {
	if b.Lines == nil {
		b.findLines()
	}
	for n := range b.Lines {
		l := &b.Lines[n]
		if rows := func() []int { return b.of(l.Insts) }; len(rows()) > 0 {
			s := b.scope(counts.Line, fmt.Sprintf("%s:%d", l.File, l.Line), b.Insts[l.Insts[0]].Addr)
			s.Code.File, s.Code.Line = l.File, l.Line
			l.Row = add(s, rows)
		}
	}
}

// findLines finds the lines of the instructions.
func (b *builder) findLines() {
	type key struct {
		file string
		line int
	}
	at := map[key]int{}
	for i := range b.Insts {
		k := key{b.Insts[i].File, b.Insts[i].Line}
		n, ok := at[k]
		if !ok {
			n = len(b.Lines)
			at[k] = n
			b.Lines = append(b.Lines, Line{File: k.file, Line: k.line})
		}
		b.Lines[n].Insts = append(b.Lines[n].Insts, i)
	}
}

func (b *builder) blocks(add adder) {
	if b.Graph == nil {
		return
	}
	first := 0
	b.Blocks = slices.Grow(b.Blocks[:0], len(b.Graph.Blocks))
	for n := range b.Graph.Blocks {
		size := len(b.Graph.Blocks[n].Insts)
		block := Block{First: first, Last: first + size - 1, Executions: flow.Unknown}
		first += size
		if rows := func() []int { return slices.Concat(b.rowsOf[block.First : block.Last+1]...) }; len(rows()) > 0 {
			block.Row = add(b.scope(counts.Instruction, fmt.Sprintf("block %d", n), b.Insts[block.First].Addr), rows)
		}
		b.Blocks = append(b.Blocks, block)
	}
	b.loops(add)
}

func (b *builder) loops(add adder) {
	for n := range b.Graph.Loops {
		l := Loop{Inner: math.NaN()}
		head := b.Blocks[b.Graph.Loops[n].Header].First
		l.File = b.Insts[head].File
		for _, i := range b.instsOf(n) {
			if in := &b.Insts[i]; in.File == l.File && in.Line > 0 {
				if l.First == 0 || in.Line < l.First {
					l.First = in.Line
				}
				l.Last = max(l.Last, in.Line)
			}
		}
		if rows := func() []int { return b.of(b.instsOf(n)) }; len(rows()) > 0 {
			l.Row = add(b.scope(counts.Instruction, fmt.Sprintf("loop %d", n+1), b.Insts[head].Addr), rows)
		}
		b.Loops = append(b.Loops, l)
	}
}

// instsOf returns the instructions of a loop.
func (b *builder) instsOf(loop int) []int {
	var insts []int
	for _, i := range b.Graph.Loops[loop].Blocks {
		insts = append(insts, span(b.Blocks[i].First, b.Blocks[i].Last)...)
	}
	return insts
}

func span(first, last int) []int {
	list := make([]int, 0, last-first+1)
	for i := first; i <= last; i++ {
		list = append(list, i)
	}
	return list
}
