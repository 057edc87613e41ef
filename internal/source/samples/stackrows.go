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
	index numberIndex     // by node; the numbers are rows and 1
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

// rowBytes and sumBytes are what they cost, with a row's share of the index.
const rowBytes, sumBytes = 8 + indexBytes, 24

func (r *stackRows) n() int              { return r.list.n }
func (r *stackRows) at(i int) *stackRow  { return r.list.at(i) }
func (r *stackRows) memory() int         { return r.list.n*rowBytes + r.sums.n*sumBytes }
func (r *stackRows) hash(n int32) uint32 { return uint32(mix(uint64(uint32(n)), seeds[1]) >> 16) }

// of returns the row of a node.
func (r *stackRows) of(node int32) (row int32, ok bool) {
	if len(r.index.slots) == 0 {
		return 0, false
	}
	n, _, _ := r.index.look(r.hash(node), func(n uint32) bool { return r.list.at(int(n-1)).node == node })
	return int32(n) - 1, n > 0
}

// new adds the row of a node that has none, with so many columns.
func (r *stackRows) new(row stackRow, columns int) int32 {
	if r.wide = columns; r.index.full(r.list.n) {
		r.reindex(r.list.n + 1)
	}
	i := int32(r.list.add(row))
	for range columns {
		r.sums.add(stackSum{})
	}
	r.index.put(r.hash(row.node), uint32(i)+1)
	return i
}

func (r *stackRows) reindex(room int) {
	r.index.make(room)
	for i := range r.list.n {
		r.index.put(r.hash(r.list.at(i).node), uint32(i)+1)
	}
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

// merge adds a sum to another.
func (r *stackRows) merge(to, from *stackSum) {
	if to.large == 0 && (from.large > 0 || uint64(to.samples)+uint64(from.samples) > math.MaxUint32) {
		r.enlarge(to)
	}
	if to.large > 0 {
		sum := r.whole(from)
		r.large[to.large-1].Merge(&sum)
		return
	}
	to.value += from.value
	to.squares += from.squares
	to.samples += from.samples
}

// move changes the rows. Those that become one are added up.
func (r *stackRows) move(change func(int, stackRow) stackRow, columns int) {
	n := 0
	old := r.list.n
	r.index.make(0)
	for i := range old {
		row := change(i, *r.list.at(i))
		to, ok := r.of(row.node)
		if !ok {
			*r.list.at(n) = row
			if r.index.full(n) {
				r.list.n = n
				r.reindex(n + 1)
				r.list.n = old
			}
			r.index.put(r.hash(row.node), uint32(n)+1)
			for col := range columns {
				*r.sums.at(n*columns + col) = *r.sums.at(i*columns + col)
			}
			n++
			continue
		}
		for col := range columns {
			r.merge(r.sums.at(int(to)*columns+col), r.sums.at(i*columns+col))
		}
	}
	r.list.keep(n)
	r.sums.keep(n * columns)
}
