package samples

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// gathered are the places of samples with their sums, until functions and lines are looked up:
// of all places at once, by file and address. Symbols of neighbours are neighbours too.
type gathered struct {
	list  pages[codePlace]
	slots []placeCode // the index of the places: open addressing

	// By place, or by pair, and column: how many samples had the value that is common in the
	// column, and the sums of others.
	equal  pages[uint32]
	sums   pages[perfdata.Sum]
	common []float64 // by column; NaN before the first sample

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

// placesEach is about how many places a function has in a recording of a machine.
const placesEach = 6

// mostGathered bounds the sums that are gathered. Tests have fewer.
var mostGathered = 1 << 19

// gathers reports whether places are looked up together.
func (o *Options) gathers() bool {
	return o.Within.With(o.By)&(codeKinds&^(1<<counts.Module)) != 0
}

// number returns the number of a place with its hash.
func (g *gathered) number(is codePlace, hash uint64, columns int, apart bool) int32 {
	if (g.list.n+1)*4 > len(g.slots)*3 {
		g.grow()
	}
	slot := g.slot(is, hash)
	if slot.code > 0 {
		return slot.code - 1
	}
	*slot = placeCode{is.offset, is.file, int32(g.list.add(is)) + 1}
	if !apart {
		g.room(columns)
	}
	return slot.code - 1
}

// grow makes room in the index: at most three quarters of the slots are in use. The order of
// places stays, so that memory is used from its beginning to its end.
func (g *gathered) grow() {
	old := g.slots
	g.slots = roomFor[placeCode](max(rememberFirst, 2*len(old)) &^ (slotsTogether - 1))
	for i := range old {
		if s := &old[i]; s.code > 0 {
			is := codePlace{s.offset, s.file}
			*g.slot(is, is.near()) = *s
		}
	}
}

// slot returns the slot of a place, or the empty one for it.
func (g *gathered) slot(is codePlace, hash uint64) *placeCode {
	i := g.first(hash)
	for {
		s := &g.slots[i]
		if s.code == 0 || s.offset == is.offset && s.file == is.file {
			return s
		}
		if i++; i == len(g.slots) {
			i = 0
		}
	}
}

// slotsTogether are the slots of a cache line, a power of two, and nearBytes the code that they
// are for.
const slotsTogether, nearBytes = 4, 32

// near is a hash of a place. Places near to each other differ in the lowest bits only.
func (c codePlace) near() uint64 {
	const each = nearBytes / slotsTogether
	return codePlace{c.offset / nearBytes, c.file}.hash(0)&^(slotsTogether-1) | c.offset/each%slotsTogether
}

// first returns the slot that is looked at first.
func (g *gathered) first(hash uint64) int {
	line, _ := bits.Mul64(hash, uint64(len(g.slots)/slotsTogether))
	return int(line*slotsTogether + hash%slotsTogether)
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
	if g.common == nil {
		g.common = slices.Repeat([]float64{math.NaN()}, columns)
	}
	for range columns {
		g.equal.add(0)
	}
}

// add adds a sample to a cell of a column. Most samples have the same value, and are only counted.
func (g *gathered) add(cell, column int, value float64) {
	if n := g.equal.at(cell); value == g.common[column] && *n < math.MaxUint32 {
		*n++
		return
	}
	if math.IsNaN(g.common[column]) {
		g.common[column] = value
	}
	g.sum(cell).AddAll(value, value*value, 1)
}

// sum returns the sum of a cell's samples that add did not count.
func (g *gathered) sum(cell int) *perfdata.Sum {
	page := cell / pageItems
	if page >= len(g.sums.list) {
		g.sums.list = append(g.sums.list, make([][]perfdata.Sum, page+1-len(g.sums.list))...)
	}
	if g.sums.list[page] == nil {
		g.sums.list[page] = make([]perfdata.Sum, pageItems)
	}
	return g.sums.at(cell)
}

// addTo adds a cell of a column to another sum.
func (g *gathered) addTo(to *perfdata.Sum, cell, column int) {
	if page := cell / pageItems; page < len(g.sums.list) && g.sums.list[page] != nil {
		to.Merge(g.sums.at(cell))
	}
	if n := *g.equal.at(cell); n > 0 {
		value := g.common[column]
		to.AddAll(float64(n)*value, float64(n)*value*value, int64(n))
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

// A numberedPlace is a place with its number.
type numberedPlace struct {
	offset uint64
	file   uint32
	number int32
}

// inOrder returns places from one on with their numbers, by file and address. It sorts by one
// digit after the other, as there are hundreds of thousands.
func inOrder(places *pages[codePlace], from int) []numberedPlace {
	const bits, digits = 11, 1 << 11
	order, spare := roomFor[numberedPlace](places.n-from), roomFor[numberedPlace](places.n-from)
	for i := range order {
		is := places.at(from + i)
		order[i] = numberedPlace{is.offset, is.file, int32(from + i)}
	}
	for shift := 0; shift < 66+32; shift += bits {
		digit := func(p *numberedPlace) uint64 { return p.offset >> shift % digits }
		if at := shift - 66; at >= 0 {
			digit = func(p *numberedPlace) uint64 { return uint64(p.file) >> at % digits }
		}
		var starts [digits + 1]int
		for i := range order {
			starts[digit(&order[i])+1]++
		}
		if slices.Contains(starts[:], len(order)) {
			continue // all have the same
		}
		for i := range digits {
			starts[i+1] += starts[i]
		}
		for i := range order {
			d := digit(&order[i])
			spare[starts[d]] = order[i]
			starts[d]++
		}
		order, spare = spare, order
	}
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
				g.addTo(p.codeSum(c, col), n*p.columns+col, col)
			}
		}
		p.gathered = gathered{}
		return
	}
	for i := range g.pairs.n {
		is := *g.pairs.at(i)
		if is.code = g.codes[is.code]; is.code >= 0 {
			is.code = p.rowOf(is)
		}
		for col := range p.columns {
			g.addTo(p.codeSum(is.code, col), i*p.columns+col, col)
		}
	}
	g.pairs, g.pairIndex, g.equal, g.sums = pages[row]{}, numberIndex{}, pages[uint32]{}, pages[perfdata.Sum]{}
	clear(p.recent)
}

// room makes room for so many more places and pairs: it looks up those that were gathered.
func (p *places) room(n int) {
	g, most := &p.gathered, p.mostGathered()
	switch {
	case g.list.n > 0 && g.list.n+n > most:
		p.lookUp()
		p.gathered = gathered{}
	case g.pairs.n > 0 && g.pairs.n+n > most:
		p.lookUp()
	}
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
		if p.recent == nil {
			p.sums = slices.Grow(p.sums, (g.list.n-from)*p.columns)
		}
		for n := from; n < len(g.codes); n++ {
			g.codes[n] = p.look(p.files.place(*g.list.at(n)))
		}
		return
	}
	few := (g.list.n - from) / placesEach
	if p.codes = slices.Grow(p.codes, few); p.recent == nil {
		p.sums = slices.Grow(p.sums, few*p.columns)
	}
	for _, is := range inOrder(&g.list, from) {
		g.codes[is.number] = p.look(p.files.place(codePlace{is.offset, is.file}))
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
