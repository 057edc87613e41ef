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
	// kept reads parts of the table when they are asked for; nil if all is there.
	kept *keptBlocks
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

// lock keeps others from a table that is read in parts, until unlock.
func (t *nameTable) lock() {
	if t.kept != nil {
		t.kept.mu.Lock()
	}
}

func (t *nameTable) unlock() {
	if t.kept != nil {
		t.kept.mu.Unlock()
	}
}

// lookup returns the index of the range that an address is in, or -1, and where it starts.
func (t *nameTable) lookup(addr uint64) (n int, start uint64) {
	t.lock()
	defer t.unlock()
	from, to := 0, len(t.ranges)
	if t.kept != nil {
		from, to = t.kept.near(t, addr)
	}
	i := from + sort.Search(to-from, func(i int) bool {
		start, _, _ := t.entry(from + i)
		return start > addr
	}) - 1
	if i < from {
		return -1, 0
	}
	start, size, _ := t.entry(i)
	if addr-start >= size {
		return -1, 0
	}
	return i, start
}

func (t *nameTable) find(addr uint64) (object.Symbol, bool) {
	i, _ := t.lookup(addr)
	if i < 0 {
		return object.Symbol{}, false
	}
	return t.symbol(i), true
}

// len returns how many ranges there are. All of them may be asked for then.
func (t *nameTable) len() int {
	t.lock()
	defer t.unlock()
	if t.kept != nil {
		for i := 0; i < len(t.kept.list); i++ {
			t.kept.load(t, i)
		}
		if t.kept.list != nil {
			return t.kept.ranges
		}
	}
	return len(t.ranges)
}

// entry returns the start, the size and the name of a range. That was looked up, or len was called.
func (t *nameTable) entry(i int) (start, size uint64, name []byte) {
	switch {
	case t.kept != nil && t.kept.list != nil:
		start, size, name = t.kept.entry(i)
	case i < len(t.ranges):
		r := &t.ranges[i]
		start, size, name = r.start, r.size, t.names[r.name:r.name+uint32(r.length)]
	default:
		return 0, 0, nil // a kept list was damaged, and cannot be read anew
	}
	if size == 0 {
		size = lastSize
	}
	return start, size, name
}

func (t *nameTable) symbol(i int) object.Symbol {
	t.lock()
	defer t.unlock()
	start, size, name := t.entry(i)
	return object.Symbol{Name: string(name), Addr: start, Size: size}
}
