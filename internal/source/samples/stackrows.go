package samples

import (
	"math"

	"github.com/cyclestack/cyclestack/source/perfdata"
)

// stackRows are the stacks that samples were taken at, with their sums.
type stackRows struct {
	list  pages[stackRow]
	sums  pages[stackSum] // by row and column
	large []perfdata.Sum  // those that have no room in a stackSum
	wide  int             // columns
}

// A stackRow is the node of a stack, and the number of the frames of its innermost place: 0
// for stacks that there was no room for.
type stackRow struct {
	node int32
	code uint32
}

// A stackSum is a perfdata.Sum of few samples, all of the time.
type stackSum struct {
	value, squares float64
	samples        uint32
	large          uint32 // among the large ones, and 1; 0 for none
}

// rowBytes and sumBytes are what they cost.
const rowBytes, sumBytes = 8, 24

func (r *stackRows) n() int             { return r.list.n }
func (r *stackRows) at(i int) *stackRow { return r.list.at(i) }
func (r *stackRows) memory() int        { return r.list.n*rowBytes + r.sums.n*sumBytes }

// of returns the row of a node. One that has none gets a new one, with so many columns.
func (r *stackRows) of(t *stackTree, row stackRow, columns int) int32 {
	n := t.nodes.at(int(row.node))
	if n.row == 0 {
		n.row = int32(r.list.add(row)) + 1
		r.room(columns)
	}
	return n.row - 1
}

// room makes room for the sums of another row, and returns its number.
func (r *stackRows) room(columns int) int {
	r.wide = columns
	for range columns {
		r.sums.add(stackSum{})
	}
	return r.sums.n/columns - 1
}

// add adds an amount.
func (r *stackRows) add(row, col int, a *perfdata.Amount) {
	s := r.sums.at(row*r.wide + col)
	if s.large == 0 && (a.Enabled > 0 || s.samples == math.MaxUint32) {
		r.enlarge(s)
	}
	if s.large > 0 {
		r.large[s.large-1].Add(a)
		return
	}
	s.value += a.Value
	s.squares += a.Value * a.Value
	s.samples++
}

// enlarge makes a large sum of one.
func (r *stackRows) enlarge(s *stackSum) {
	r.large = append(r.large, r.whole(s))
	s.large = uint32(len(r.large))
}

// whole returns a sum in full.
func (r *stackRows) whole(s *stackSum) perfdata.Sum {
	if s.large > 0 {
		return r.large[s.large-1]
	}
	out := perfdata.Sum{}
	out.AddAll(s.value, s.squares, int64(s.samples))
	return out
}

// sum returns the sum of a column.
func (r *stackRows) sum(row, col int) perfdata.Sum { return r.whole(r.sums.at(row*r.wide + col)) }

// samples returns how many samples a column has.
func (r *stackRows) samples(row, col int) int64 {
	s := r.sums.at(row*r.wide + col)
	if s.large > 0 {
		return r.large[s.large-1].Samples()
	}
	return int64(s.samples)
}

// shares returns how many samples there are, and those that there was no room for.
func (r *stackRows) shares() (all, folded int64) {
	for i := range r.n() {
		for col := range r.wide {
			n := r.samples(i, col)
			if all += n; r.at(i).code == foldedCode {
				folded += n
			}
		}
	}
	return all, folded
}

// merge adds a sum of other rows, or of these, to one.
func (r *stackRows) merge(to, from *stackSum, of *stackRows) {
	if to.large == 0 && (from.large > 0 || uint64(to.samples)+uint64(from.samples) > math.MaxUint32) {
		r.enlarge(to)
	}
	if to.large > 0 {
		sum := of.whole(from)
		r.large[to.large-1].Merge(&sum)
		return
	}
	to.value += from.value
	to.squares += from.squares
	to.samples += from.samples
}

// move changes the rows after a cut of the tree. Those that become one are added up. It returns
// the new numbers of rows.
func (r *stackRows) move(t *stackTree, change func(int, stackRow) stackRow, columns int) []int32 {
	n, moved := 0, make([]int32, r.list.n)
	for i := range r.list.n {
		row := change(i, *r.list.at(i))
		at := t.nodes.at(int(row.node))
		if at.row > 0 {
			moved[i] = at.row - 1
			for col := range columns {
				r.merge(r.sums.at(int(at.row-1)*columns+col), r.sums.at(i*columns+col), r)
			}
			continue
		}
		*r.list.at(n) = row
		for col := range columns {
			*r.sums.at(n*columns + col) = *r.sums.at(i*columns + col)
		}
		moved[i] = int32(n)
		n++
		at.row = int32(n)
	}
	r.list.keep(n)
	r.sums.keep(n * columns)
	return moved
}
