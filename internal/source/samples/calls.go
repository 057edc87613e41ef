package samples

import (
	"runtime"

	"github.com/cyclestack/cyclestack/counts"
)

// A Calls says what a table of calls has.
type Calls struct {
	View     View
	Function string // for Callers and Callees: as Filter.Functions has it
}

// A View is a way to sum stacks by function.
type View uint8

// The views. Each sample counts once in a row.
const (
	// Children sums the samples that were taken in a function or in what it called. Rows
	// overlap: those of a function contain those of its callees.
	Children View = iota + 1
	// Callers sums the samples of one function and of what it called, by the function that
	// called it first.
	Callers
	// Callees sums them by the function that its innermost call called; its own samples are
	// those in no call.
	Callees
)

// CallTable makes the table by function that Options.Calls asks for. Its first row is the whole:
// the run, or for Callers and Callees the samples that have the function. Self has the same rows,
// with the samples that were taken in the row's function itself. The stacks are given up.
func (s *Stacks) CallTable() (t, self *counts.Table, err error) {
	b := s.summed
	b.take()
	if b.want != nil && !b.want.hit {
		return nil, nil, (&selection{functions: b.want}).failure(s.r.name)
	}
	if t, self = b.table(&b.sums), b.table(&b.self); b.view == Children {
		copy(t.Row(0), s.r.table.Row(0))
	}
	return t, self, nil
}

// A callTable is the making of a table of calls.
type callTable struct {
	s     *Stacks
	view  View
	want  *part
	known []int8 // of frames: whether they are of the function that was asked for
	rows  map[callKey]int32
	row   []int32  // of frames; 0 for those not met yet
	list  []*Frame // by row
	last  []int32  // the stack that was added last to a row, and 1
	sums  stackRows
	self  stackRows // of samples taken in the function itself

	samples, folded int64 // of stacks that were taken; those that there was no room for
}

// A callKey identifies a function, whether it was inlined or not.
type callKey struct {
	kind             FrameKind
	module, function string
}

// newCallTable returns a table of nothing but the whole; nil if none is asked for.
func newCallTable(s *Stacks) *callTable {
	of := s.r.opts.Calls
	if of.View == 0 {
		return nil
	}
	b := &callTable{s: s, view: of.View, rows: map[callKey]int32{}}
	if of.Function != "" {
		b.want = newPart(counts.Function, []string{of.Function})
	}
	b.newRow(nil)
	return b
}

// rowOf returns the row of a frame's function.
func (b *callTable) rowOf(frame int32) int32 {
	if b.row[frame] == 0 {
		f := b.s.list[frame]
		key := callKey{f.Kind, f.Module, f.Function}
		i, ok := b.rows[key]
		if !ok {
			i = b.newRow(f)
			b.rows[key] = i
		}
		b.row[frame] = i
	}
	return b.row[frame]
}

func (b *callTable) newRow(f *Frame) int32 {
	b.list, b.last = append(b.list, f), append(b.last, 0)
	b.sums.room(b.s.columns)
	b.self.room(b.s.columns)
	return int32(len(b.list) - 1)
}

// drain adds the stacks to the table while the recording is read; nothing without a table.
func (b *callTable) drain() {
	if b == nil {
		return
	}
	s := b.s
	for i := range s.rows.n() {
		if code := s.rows.at(i).code; code != foldedCode {
			for col := range s.columns {
				sum := s.rows.sum(i, col)
				s.lose(code, col, &sum)
			}
		}
	}
	b.take()
	runtime.GC() // further callchains need memory
}

// take adds the stacks to the table. They are given up.
func (b *callTable) take() {
	s := b.s
	b.known = append(b.known, make([]int8, len(s.list)-len(b.known))...)
	b.row = append(b.row, make([]int32, len(s.list)-len(b.row))...)
	clear(b.last)
	nodes := &s.tree.nodes
	for i := range nodes.n {
		n := nodes.at(i)
		for c := n.children(); c > 0; {
			child := nodes.at(int(c))
			c, child.next = child.next, int32(i) // their parent
		}
		if n.first = 0; i > 0 && n.next > 0 { // the outermost is the thread
			b.node(n, nodes.at(int(n.next)))
		}
	}
	for i := range s.rows.n() {
		b.stack(i)
	}
	samples, folded := s.rows.shares()
	b.samples, b.folded = b.samples+samples, b.folded+folded
	s.tree, s.rows = stackTree{}, stackRows{}
}

// node notes as the first child what stacks at a node and above it count to. For Children that is
// the row of its function. Else it is a frame, and 1; negative if that is the innermost one.
func (b *callTable) node(n, caller *stackNode) {
	switch {
	case b.view == Children:
		n.first = b.rowOf(n.frame)
	case b.view == Callees && (b.matches(n.frame) || b.matches(caller.frame)):
		n.first = -n.frame - 1
	case caller.first != 0:
		n.first = caller.children()
	case b.matches(n.frame):
		n.first = caller.frame + 1
	}
}

// matches reports whether a frame is of the function that was asked for.
func (b *callTable) matches(frame int32) bool {
	if b.known[frame] == 0 {
		b.known[frame] = -1
		if f := b.s.list[frame]; f.Kind == FunctionFrame && f.Function != "" && b.want.matchFunction(f.Function, "") {
			b.known[frame] = 1
		}
	}
	return b.known[frame] > 0
}

// stack adds the samples of a stack.
func (b *callTable) stack(i int) {
	nodes := &b.s.tree.nodes
	n := nodes.at(int(b.s.rows.at(i).node))
	if n.first == 0 {
		return
	}
	if b.view == Children {
		for b.add(&b.self, n.first, i); n.first > 0; n = nodes.at(int(n.next)) {
			if b.last[n.first] != int32(i)+1 {
				b.last[n.first] = int32(i) + 1
				b.add(&b.sums, n.first, i)
			}
		}
		return
	}
	row := b.rowOf(n.children() - 1)
	b.add(&b.sums, 0, i)
	b.add(&b.sums, row, i)
	if b.matches(n.frame) {
		b.add(&b.self, 0, i)
	}
	if n.first < 0 {
		b.add(&b.self, row, i)
	}
}

// add adds a stack to a row.
func (b *callTable) add(to *stackRows, row int32, stack int) {
	columns, rows := b.s.columns, &b.s.rows
	for col := range columns {
		to.merge(to.sums.at(int(row)*columns+col), rows.sums.at(stack*columns+col), rows)
	}
}

// table makes a table of sums.
func (b *callTable) table(sums *stackRows) *counts.Table {
	from := &b.s.r.table
	l := &counts.Layout{Columns: from.Columns, Scopes: []counts.Scope{from.Scopes[0]}}
	for _, f := range b.list[1:] {
		l.Scopes = append(l.Scopes, f.scope())
	}
	t := counts.NewTable(l)
	t.Label, t.CPU, t.Start, t.Duration, t.Notes = from.Label, from.CPU, from.Start, from.Duration, from.Notes
	for i := range b.list {
		b.cells(sums, i, t.Row(i))
	}
	return t
}

// cells fills in the cells of a row.
func (b *callTable) cells(sums *stackRows, row int, to []counts.Cell) {
	for col, e := range b.s.r.columns {
		if !b.s.r.meter.Known(e) {
			continue
		}
		sum := sums.sum(row, col)
		c := sum.Cell(e)
		if whole := b.s.r.table.Cell(0, col); c.Samples == 0 && whole.Samples > 0 {
			one := b.s.r.total[col].Cell(e)
			c.Variance = one.Variance / float64(max(one.Samples, 1)) // as of one sample
		}
		to[col] = c
	}
	b.s.r.waits.exact(to, b.s.r.columns)
}

// scope is the scope of a frame's function.
func (f *Frame) scope() counts.Scope {
	s := counts.RunScope("")
	s.Kind = counts.Function
	switch f.Kind {
	case ThreadFrame:
		s.Label = "[thread " + f.Function + "]"
		s.Code = &counts.Code{Function: s.Label}
	case TruncatedFrame:
		s.Code = &counts.Code{Function: "[truncated]"}
	case OthersFrame:
		s.Code = &counts.Code{Function: "[other stacks]"}
	default:
		s.Code = &counts.Code{Module: counts.Name(f.Module), BuildID: f.BuildID, Function: counts.Name(f.Function), Addr: f.Addr}
	}
	s.Label = s.Code.Label(counts.Function)
	return s
}
