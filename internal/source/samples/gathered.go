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
	sums  pages[perfdata.Sum] // by place and column
	index numberIndex         // of the places; the numbers are those of places and 1
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
	told, f := o.Within.With(o.By), &o.Filter
	return told&^codeKinds == 0 && told&(1<<counts.Function|1<<counts.Line|1<<counts.SourceFile) != 0 && told&(1<<counts.Instruction) == 0 &&
		len(f.Processes)+len(f.Threads)+len(f.Cgroups) == 0
}

// number returns the number of a place.
func (g *gathered) number(is codePlace, columns int) int32 {
	if g.index.full(g.list.n) {
		g.index.make(2*g.list.n + 1)
		for i := range g.list.n {
			g.index.put(uint32(g.list.at(i).hash(0)), uint32(i)+1)
		}
	}
	found, slot, tag := g.index.look(uint32(is.hash(0)), func(n uint32) bool { return *g.list.at(int(n) - 1) == is })
	if found > 0 {
		return int32(found) - 1
	}
	n := int32(g.list.add(is))
	g.index.slots[slot] = tag | uint32(n+1)
	for range columns {
		g.sums.add(perfdata.Sum{})
	}
	return n
}

// ordered returns the numbers of the places, by file and address.
func (g *gathered) ordered() []int32 {
	type numbered struct {
		codePlace
		number int32
	}
	list := make([]numbered, g.list.n)
	for i := range list {
		list[i] = numbered{*g.list.at(i), int32(i)}
	}
	slices.SortFunc(list, func(a, b numbered) int {
		if a.file != b.file {
			return int(a.file) - int(b.file)
		}
		return cmp.Compare(a.offset, b.offset)
	})
	order := make([]int32, len(list))
	for i := range list {
		order[i] = list[i].number
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
	known := int32(len(p.codes))
	codes := make([]int32, g.list.n)
	for _, n := range g.ordered() {
		codes[n] = p.look(p.files.place(*g.list.at(int(n))))
	}
	moved := make([]int32, len(p.codes)-int(known)) // and 1
	order := make([]key, 0, len(moved))
	for n, c := range codes {
		if c >= known && moved[c-known] == 0 {
			k := p.codes[c]
			if !k.others {
				k.place = p.files.place(*g.list.at(n))
			}
			order = append(order, k)
			moved[c-known] = known + int32(len(order))
		}
	}
	copy(p.codes[known:], order)
	renumber(p.functions, known, moved)
	renumber(p.lines, known, moved)
	if p.others >= known {
		p.others = moved[p.others-known] - 1
	}
	for n, c := range codes {
		if c >= known {
			c = moved[c-known] - 1
		}
		for col := range p.columns {
			p.codeSum(c, col).Merge(g.sums.at(n*p.columns + col))
		}
	}
	p.gathered = gathered{}
	clear(p.spots)
}

// renumber gives codes from known on the numbers that they have now.
func renumber[K comparable](index map[K]int32, known int32, moved []int32) {
	for k, c := range index {
		if c >= known {
			index[k] = moved[c-known] - 1
		}
	}
}
