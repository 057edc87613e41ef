package profile

import (
	"cmp"
	"slices"
	"sort"

	"github.com/cyclestack/cyclestack/internal/object"
)

// A nameTable finds named ranges of addresses, from the lists of symbols that
// the kernel and just-in-time compilers write.
type nameTable struct {
	ranges []namedRange // by address, without overlaps
	names  []byte       // all names, one after the other
	// marks are the addresses of symbols, to compare kernels by.
	marks map[string]uint64
	// passing says that symbols come and go, as those of BPF programs.
	passing bool
}

type namedRange struct {
	start, size uint64 // size 0: up to the next
	name        uint32 // offset in names
	length      uint16
	order       uint32 // of those at one address, the highest counts
}

// maxNames bounds the bytes of all names of a table.
const maxNames = 1 << 30

// add adds a range, and says whether there was room for it.
func (t *nameTable) add(start, size uint64, name []byte) bool {
	name = name[:min(len(name), 1<<16-1)]
	if len(t.names)+len(name) > maxNames {
		return false
	}
	t.ranges = append(t.ranges, namedRange{start, size, uint32(len(t.names)), uint16(len(name)), uint32(len(t.ranges))})
	t.names = append(t.names, name...)
	return true
}

// settle sorts the table. If ranges overlap, the later start counts, and of equal starts
// the one added last: new code replaces old code.
func (t *nameTable) settle() {
	byStart := func(a, b namedRange) int { return cmp.Compare(a.start, b.start) }
	if !slices.IsSortedFunc(t.ranges, byStart) { // as lists of a kernel without modules are
		sort.Slice(t.ranges, func(i, j int) bool { return t.ranges[i].start < t.ranges[j].start }) // slices.SortFunc would be 9 kB of code
	}
	kept := t.ranges[:0]
	for _, r := range t.ranges {
		switch n := len(kept); {
		case n == 0 || kept[n-1].start != r.start:
			kept = append(kept, r)
		case kept[n-1].order < r.order:
			kept[n-1] = r
		}
	}
	t.ranges = slices.Clip(kept)
	for i := range t.ranges {
		r := &t.ranges[i]
		if i+1 < len(t.ranges) {
			if room := t.ranges[i+1].start - r.start; r.size == 0 || r.size > room {
				r.size = room
			}
		}
	}
}

// lastSize is the size of a range without a size that no other follows.
const lastSize = 4096

// lookup returns the index of the range that an address is in, or -1.
func (t *nameTable) lookup(addr uint64) int {
	i := sort.Search(len(t.ranges), func(i int) bool { return t.ranges[i].start > addr }) - 1
	if i < 0 || addr-t.ranges[i].start >= t.size(i) {
		return -1
	}
	return i
}

func (t *nameTable) find(addr uint64) (object.Symbol, bool) {
	i := t.lookup(addr)
	if i < 0 {
		return object.Symbol{}, false
	}
	return t.symbol(i), true
}

func (t *nameTable) size(i int) uint64 {
	if size := t.ranges[i].size; size > 0 {
		return size
	}
	return lastSize
}

func (t *nameTable) symbol(i int) object.Symbol {
	r := t.ranges[i]
	return object.Symbol{Name: string(t.names[r.name : r.name+uint32(r.length)]), Addr: r.start, Size: t.size(i)}
}
