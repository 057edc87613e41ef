package profile

import (
	"cmp"
	"slices"
	"sort"

	"github.com/cyclestack/cyclestack/profile/object"
)

// A nameTable finds named ranges of addresses, from the lists of symbols that
// the kernel and just-in-time compilers write.
type nameTable struct {
	ranges []namedRange // by address, without overlaps
	names  []byte       // all names, one after the other
	// marks are the addresses of symbols by which kernels are compared.
	marks map[string]uint64
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

// settle sorts the table. Where ranges overlap, the later start counts, and of
// equal ones the one added last: code is made anew where old code was.
func (t *nameTable) settle() {
	slices.SortFunc(t.ranges, func(a, b namedRange) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Compare(a.order, b.order)
	})
	kept := t.ranges[:0]
	for _, r := range t.ranges {
		if n := len(kept); n > 0 && kept[n-1].start == r.start {
			kept[n-1] = r
			continue
		}
		kept = append(kept, r)
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

// lastSize is how far a range without a size goes that no other follows.
const lastSize = 4096

func (t *nameTable) find(addr uint64) (object.Symbol, bool) {
	i := sort.Search(len(t.ranges), func(i int) bool { return t.ranges[i].start > addr }) - 1
	if i < 0 {
		return object.Symbol{}, false
	}
	s := t.symbol(i)
	return s, addr-s.Addr < s.Size
}

func (t *nameTable) symbol(i int) object.Symbol {
	r := t.ranges[i]
	s := object.Symbol{Name: string(t.names[r.name : r.name+uint32(r.length)]), Addr: r.start, Size: r.size}
	if s.Size == 0 {
		s.Size = lastSize
	}
	return s
}
