package samples

import (
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfdata"
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

// CallTable makes a table by function of the stacks. Its first row is the whole: the run, or
// for Callers and Callees the samples that have the function. Self has the same rows, with
// the samples that were taken in the row's function itself.
func (s *Stacks) CallTable(c Calls) (t, self *counts.Table, err error) {
	b := &callTable{s: s, of: c, rows: map[callKey]int32{}, row: make([]int32, len(s.list)), parents: s.tree.parents()}
	if c.Function != "" {
		b.want = newPart(counts.Function, []string{c.Function})
	}
	b.newRow(nil)
	for i := range s.rows.n() {
		b.stack(i)
	}
	if b.want != nil && !b.want.hit {
		return nil, nil, (&selection{functions: b.want}).failure(s.r.name)
	}
	if t, self = b.table(b.sums), b.table(b.self); c.View == Children {
		copy(t.Row(0), s.r.table.Row(0))
	}
	return t, self, nil
}

// A callTable is the making of a table of calls.
type callTable struct {
	s    *Stacks
	of   Calls
	want *part
	rows map[callKey]int32
	row  []int32        // of frames, and 1; 0 for those not met yet
	list []*Frame       // by row
	last []int32        // the stack that was added last to a row, and 1
	sums []perfdata.Sum // by row and column
	self []perfdata.Sum // likewise, of samples taken in the function itself
	path []int32

	parents parents // of the nodes
}

// A callKey identifies a function, whether it was inlined or not.
type callKey struct {
	kind             FrameKind
	module, function string
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
		b.row[frame] = i + 1
	}
	return b.row[frame] - 1
}

func (b *callTable) newRow(f *Frame) int32 {
	b.list, b.last = append(b.list, f), append(b.last, 0)
	b.sums = append(b.sums, make([]perfdata.Sum, b.s.columns)...)
	b.self = append(b.self, make([]perfdata.Sum, b.s.columns)...)
	return int32(len(b.list) - 1)
}

// stack adds the samples of a stack.
func (b *callTable) stack(i int) {
	s := b.s
	b.path = b.parents.path(&s.tree, s.rows.at(i).node, b.path[:0])
	inner := len(b.path) - 1 // the outermost frame is the thread
	if b.of.View == Children {
		for _, f := range b.path[1:] {
			b.add(b.rowOf(f), i)
		}
		b.addSelf(b.rowOf(b.path[inner]), i)
		return
	}
	first, last := 0, 0 // the function's frames
	for k := 1; k <= inner; k++ {
		if b.matches(s.list[b.path[k]]) {
			if first == 0 {
				first = k
			}
			last = k
		}
	}
	if first == 0 {
		return
	}
	b.add(0, i)
	if last == inner {
		b.addSelf(0, i)
	}
	at := first - 1
	if b.of.View == Callees {
		at = min(last+1, inner)
	}
	row := b.rowOf(b.path[at])
	if b.add(row, i); at == inner {
		b.addSelf(row, i)
	}
}

// matches reports whether a frame is of the function that was asked for.
func (b *callTable) matches(f *Frame) bool {
	if f.Kind != FunctionFrame || f.Function == "" {
		return false
	}
	return b.want.matchFunction(f.Function, "")
}

// add adds a stack to a row, once.
func (b *callTable) add(row int32, stack int) {
	if b.last[row] == int32(stack)+1 {
		return
	}
	b.last[row] = int32(stack) + 1
	for col := range b.s.columns {
		sum := b.s.rows.sum(stack, col)
		b.sums[int(row)*b.s.columns+col].Merge(&sum)
	}
}

// addSelf adds a stack to the row of its innermost function.
func (b *callTable) addSelf(row int32, stack int) {
	for col := range b.s.columns {
		sum := b.s.rows.sum(stack, col)
		b.self[int(row)*b.s.columns+col].Merge(&sum)
	}
}

// table makes a table of sums.
func (b *callTable) table(sums []perfdata.Sum) *counts.Table {
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
func (b *callTable) cells(sums []perfdata.Sum, row int, to []counts.Cell) {
	for col, e := range b.s.r.columns {
		if !b.s.r.meter.Known(e) {
			continue
		}
		c := sums[row*b.s.columns+col].Cell(e)
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
