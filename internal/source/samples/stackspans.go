package samples

import (
	"cmp"
	"iter"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// stackSpans are what stacks counted in each interval. Only what was counted takes room.
type stackSpans struct {
	wanted  bool
	crowded bool // they had no room, and are given up
	list    pages[spanKey]
	index   numberIndex
	sums    stackRows // of one column, by the number of the key
}

// A spanKey is a row of the stacks, in an interval and a column.
type spanKey struct {
	interval int64
	row, col int32
}

const spanBytes = 16 + sumBytes

// memory returns how many bytes they take.
func (x *stackSpans) memory() int { return x.list.n*spanBytes + len(x.index.slots)*4 }

func (k spanKey) hash() uint32 {
	return uint32(mix(uint64(uint32(k.row))<<32^uint64(uint32(k.col))<<56^uint64(k.interval), seeds[0]) >> 16)
}

// number returns the number of a key in a list, and whether it was added.
func (x *stackSpans) number(list *pages[spanKey], k spanKey) (n int32, added bool) {
	return numberIn(list, &x.index, k, spanKey.hash)
}

// add adds a sum of other rows to what a row has in an interval.
func (x *stackSpans) add(row, col int, interval int64, sum *stackSum, of *stackRows) {
	n, added := x.number(&x.list, spanKey{interval, int32(row), int32(col)})
	if x.sums.wide = 1; added {
		x.sums.sums.add(stackSum{})
	}
	x.sums.merge(x.sums.sums.at(int(n)), sum, of)
}

// move follows rows to their new numbers. Those that become one are added up.
func (x *stackSpans) move(moved []int32) {
	var list pages[spanKey]
	x.index = numberIndex{}
	for i := range x.list.n {
		k := *x.list.at(i)
		k.row = moved[k.row]
		n, added := x.number(&list, k)
		if from := x.sums.sums.at(i); added {
			*x.sums.sums.at(int(n)) = *from
		} else {
			x.sums.merge(x.sums.sums.at(int(n)), from, &x.sums)
		}
	}
	x.list = list
	x.sums.sums.keep(list.n)
}

// A StackSpan is what stacks counted in an interval.
type StackSpan struct {
	Start, Duration float64 // seconds since the beginning of the recording
	Parts           []StackPart
}

// A StackPart is what a stack counted in an interval.
type StackPart struct {
	Stack int           // Stack.Number
	Place int           // Stack.Place
	Cells []counts.Cell // by column of the table
}

// Crowded reports whether intervals were asked for, and are so many that there was no room.
func (s *Stacks) Crowded() bool { return s.spans.crowded }

// Spans yields the intervals that have samples, in the order of time. It is empty unless
// Options.Within has counts.Interval. Each is valid until the next.
func (s *Stacks) Spans() iter.Seq[*StackSpan] {
	return func(yield func(*StackSpan) bool) {
		x := &s.spans
		order := make([]int32, x.list.n)
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortFunc(order, func(i, j int32) int {
			a, b := x.list.at(int(i)), x.list.at(int(j))
			return cmp.Or(cmp.Compare(a.interval, b.interval), cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
		})
		out, cells := &StackSpan{}, []counts.Cell(nil)
		for len(order) > 0 {
			interval, row := x.list.at(int(order[0])).interval, int32(-1)
			out.Parts, cells = out.Parts[:0], cells[:0]
			for len(order) > 0 && x.list.at(int(order[0])).interval == interval {
				k := *x.list.at(int(order[0]))
				if k.row != row {
					row = k.row
					out.Parts = append(out.Parts, StackPart{Stack: int(row), Place: s.places[s.rows.at(int(row)).code]})
					cells = s.nothing(cells)
				}
				sum := x.sums.sum(int(order[0]), 0)
				cells[len(cells)-s.columns+int(k.col)] = sum.Cell(s.r.columns[k.col])
				order = order[1:]
			}
			for i := range out.Parts {
				p := &out.Parts[i]
				p.Cells = cells[i*s.columns:][:s.columns]
				s.r.waits.exact(p.Cells, s.r.columns)
			}
			var scope counts.Scope
			if s.r.interval(interval, &scope); interval == noTime {
				continue
			}
			if out.Start, out.Duration = scope.Start, scope.Duration; !yield(out) {
				return
			}
		}
	}
}

// nothing appends the cells of what has no samples.
func (s *Stacks) nothing(cells []counts.Cell) []counts.Cell {
	for _, e := range s.r.columns {
		c := counts.Cell{}
		if s.r.meter.Known(e) {
			c = (&perfdata.Sum{}).Cell(e)
		}
		cells = append(cells, c)
	}
	return cells
}
