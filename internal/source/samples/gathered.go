package samples

import (
	"cmp"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// gathered are the places of samples with their sums, until functions and lines are looked up:
// of all places at once, by file and address. Symbols of neighbours are neighbours too.
type gathered struct {
	list  pages[codePlace]
	index numberIndex         // of the places; the numbers are those of places and 1
	sums  pages[perfdata.Sum] // by place, or by pair, and column

	// Where samples are split by more than code: places within contexts.
	pairs     pages[row]
	pairIndex numberIndex
	codes     []int32 // of the first places, which were looked up before; -1 for one that does not count
}

// How many bytes of lines and inlined calls a file may keep: where places are looked up by
// address, and where they are in any order.
const (
	orderedCache  = 8 << 20
	anyOrderCache = 64 << 20
)

// mostGathered bounds the sums that are gathered. Tests have fewer.
var mostGathered = 1 << 19

// gathers reports whether places are looked up together.
func (o *Options) gathers() bool {
	return o.Within.With(o.By)&(codeKinds&^(1<<counts.Module)) != 0
}

// number returns the number of a place.
func (g *gathered) number(is codePlace, columns int, apart bool) int32 {
	n, added := numberIn(&g.list, &g.index, is, func(is codePlace) uint32 { return uint32(is.hash(0)) })
	if added && !apart {
		g.room(columns)
	}
	return n
}

// pair returns the number of a place within a context.
func (g *gathered) pair(is row, columns int) int32 {
	n, added := numberIn(&g.pairs, &g.pairIndex, is, func(is row) uint32 {
		return uint32(mix(uint64(uint32(is.context))<<32|uint64(uint32(is.code)), seeds[0]) >> 16)
	})
	if added {
		g.room(columns)
	}
	return n
}

// room makes room for another row of sums.
func (g *gathered) room(columns int) {
	for range columns {
		g.sums.add(perfdata.Sum{})
	}
}

// numberIn returns the number of an item in a list, and whether it was added.
func numberIn[T comparable](list *pages[T], index *numberIndex, is T, hash func(T) uint32) (n int32, added bool) {
	if index.full(list.n) {
		index.make(2*list.n + 1)
		for i := range list.n {
			index.put(hash(*list.at(i)), uint32(i)+1)
		}
	}
	found, slot, tag := index.look(hash(is), func(n uint32) bool { return *list.at(int(n) - 1) == is })
	if found > 0 {
		return int32(found) - 1, false
	}
	n = int32(list.add(is))
	index.slots[slot] = tag | uint32(n+1)
	return n, true
}

// inOrder returns the numbers of places from one on, by file and address.
func inOrder(places *pages[codePlace], from int) []int32 {
	order := make([]int32, places.n-from)
	for i := range order {
		order[i] = int32(from + i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := places.at(int(i)), places.at(int(j))
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.offset, b.offset))
	})
	return order
}

// lookUp looks up the places that were gathered, and adds their sums to those of the code.
// Code is numbered by its first sample.
func (p *places) lookUp() {
	g := &p.gathered
	if g.list.n == 0 {
		return
	}
	p.lookUpCodes()
	if p.recent == nil {
		for n, c := range g.codes {
			for col := range p.columns {
				p.codeSum(c, col).Merge(g.sums.at(n*p.columns + col))
			}
		}
		p.gathered = gathered{}
		clear(p.spots)
		return
	}
	for i := range g.pairs.n {
		is := *g.pairs.at(i)
		if is.code = g.codes[is.code]; is.code >= 0 {
			is.code = p.rowOf(is)
		}
		for col := range p.columns {
			p.codeSum(is.code, col).Merge(g.sums.at(i*p.columns + col))
		}
	}
	if g.pairs, g.pairIndex, g.sums = (pages[row]{}), (numberIndex{}), (pages[perfdata.Sum]{}); g.list.n >= p.mostGathered() {
		p.gathered = gathered{}
		clear(p.spots)
	}
	clear(p.recent)
}

// mostGathered returns how many places, or pairs of them, are gathered at most.
func (p *places) mostGathered() int { return mostGathered / max(p.columns, 1) }

// lookUpCodes looks up the code of the places that were gathered since the last time.
func (p *places) lookUpCodes() {
	g := &p.gathered
	from, known := len(g.codes), int32(len(p.codes))
	g.codes = append(g.codes, make([]int32, g.list.n-from)...)
	if p.told.Has(counts.Instruction) && !p.keep.code() { // nothing is asked about them now
		p.codes = slices.Grow(p.codes, g.list.n-from)
		for n := from; n < len(g.codes); n++ {
			g.codes[n] = p.look(p.files.place(*g.list.at(n)))
		}
		return
	}
	for _, n := range inOrder(&g.list, from) {
		g.codes[n] = p.look(p.files.place(*g.list.at(int(n))))
	}
	moved := make([]int32, len(p.codes)-int(known)) // and 1
	order := make([]key, 0, len(moved))
	for n := from; n < len(g.codes); n++ {
		c := g.codes[n]
		if c < known {
			continue
		}
		if moved[c-known] == 0 {
			k := p.codes[c]
			if !k.others {
				k.place = p.files.place(*g.list.at(n))
			}
			order = append(order, k)
			moved[c-known] = known + int32(len(order))
		}
		g.codes[n] = moved[c-known] - 1
	}
	copy(p.codes[known:], order)
	renumber(p.functions, known, moved)
	renumber(p.lines, known, moved)
	renumber(p.instructions, known, moved)
	if p.others >= known {
		p.others = moved[p.others-known] - 1
	}
}

// renumber gives codes from known on the numbers that they have now.
func renumber[K comparable](index map[K]int32, known int32, moved []int32) {
	for k, c := range index {
		if c >= known {
			index[k] = moved[c-known] - 1
		}
	}
}
