package samples

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/cyclestack/cyclestack/profile"
)

// A stackTree has the stacks that were met, each as the path to one of its nodes. Node 0
// is the root. A node follows its parent.
type stackTree struct {
	nodes pages[stackNode]
	index []stackSlot // open addressing, by parent and frame
}

type stackNode struct {
	parent, frame int32
	row           int32 // and 1; 0 for none
}

// A stackSlot repeats what is looked for, so that a look-up reads one place in memory.
type stackSlot struct {
	parent, frame int32
	node          int32 // 0 for an empty slot
}

// nodeBytes is what a node costs, with its share of the index.
const nodeBytes = 12 + 12*8/5

// child returns the node of a frame below another node, 0 being the root.
func (t *stackTree) child(parent, frame int32) int32 {
	if t.nodes.n == 0 {
		t.nodes.add(stackNode{parent: -1, frame: -1})
	}
	if (t.nodes.n+1)*5 > len(t.index)*4 { // at most four fifths are full
		t.grow()
	}
	s := t.slot(parent, frame)
	if s.node == 0 {
		*s = stackSlot{parent, frame, int32(t.nodes.add(stackNode{parent: parent, frame: frame}))}
	}
	return s.node
}

// slot returns where the index has a node, or has room for it.
func (t *stackTree) slot(parent, frame int32) *stackSlot {
	mask := uint64(len(t.index) - 1)
	for i := mix(uint64(uint32(parent))<<32|uint64(uint32(frame)), seeds[0]) & mask; ; i = (i + 1) & mask {
		if s := &t.index[i]; s.node == 0 || s.parent == parent && s.frame == frame {
			return s
		}
	}
}

// grow doubles the index.
func (t *stackTree) grow() {
	t.index = make([]stackSlot, max(1<<10, 2*len(t.index)))
	for i := 1; i < t.nodes.n; i++ {
		n := t.nodes.at(i)
		*t.slot(n.parent, n.frame) = stackSlot{n.parent, n.frame, int32(i)}
	}
}

// rows returns the rows of the nodes. Those of the same names from the root on are
// together, in the order of the names, each before those above it. Names are ranks by
// frame.
func (t *stackTree) rows(ranks []int32) []int32 {
	t.index = nil // it is no longer needed, and the order takes as much
	o := &stackOrder{tree: t, ranks: ranks, first: make([]int32, t.nodes.n), next: make([]int32, t.nodes.n)}
	for i := t.nodes.n - 1; i > 0; i-- {
		parent := t.nodes.at(i).parent
		o.next[i], o.first[parent] = o.first[parent], int32(i)
	}
	if t.nodes.n > 0 {
		o.group([]int32{0})
	}
	return o.list
}

// A stackOrder puts the rows of a tree in order.
type stackOrder struct {
	tree        *stackTree
	ranks       []int32 // of frames
	first, next []int32 // nodes above one, and their neighbours
	above       []int32 // a stack of those to be ordered
	list        []int32
}

// group adds the rows of nodes of the same names, and of all nodes above them.
func (o *stackOrder) group(nodes []int32) {
	begin := len(o.above)
	for _, i := range nodes {
		if row := o.tree.nodes.at(int(i)).row; row > 0 {
			o.list = append(o.list, row-1)
		}
		for c := o.first[i]; c > 0; c = o.next[c] {
			o.above = append(o.above, c)
		}
	}
	list := o.above[begin:]
	slices.SortFunc(list, func(a, b int32) int { return cmp.Or(cmp.Compare(o.rank(a), o.rank(b)), cmp.Compare(a, b)) })
	for len(list) > 0 {
		n := 1
		for n < len(list) && o.rank(list[n]) == o.rank(list[0]) {
			n++
		}
		o.group(list[:n])
		list = list[n:]
	}
	o.above = o.above[:begin]
}

func (o *stackOrder) rank(node int32) int32 { return o.ranks[o.tree.nodes.at(int(node)).frame] }

// path appends the frames from the root to a node.
func (t *stackTree) path(node int32, to []int32) []int32 {
	begin := len(to)
	for ; node > 0; node = t.nodes.at(int(node)).parent {
		to = append(to, t.nodes.at(int(node)).frame)
	}
	slices.Reverse(to[begin:])
	return to
}

// heavy returns which nodes to keep if there is room for no more than most: those with
// the largest weight, each with its ancestors. The weight of a node is its own and that of
// all nodes above it.
func (t *stackTree) heavy(weights []float64, most int) []bool {
	for i := t.nodes.n - 1; i > 0; i-- {
		weights[t.nodes.at(i).parent] += weights[i]
	}
	sorted := slices.Clone(weights)
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(b, a) })
	least := sorted[min(most, len(sorted)-1)]
	kept := make([]bool, t.nodes.n)
	for i := range kept {
		kept[i] = i == 0 || weights[i] > least
	}
	return kept
}

// pages are a list that grows without being copied.
type pages[T any] struct {
	list [][]T
	n    int
}

// pageItems is the number of items on a page, a power of two.
const pageItems = 1 << 13

func (p *pages[T]) add(item T) int {
	if p.n%pageItems == 0 {
		p.list = append(p.list, make([]T, 0, pageItems))
	}
	last := &p.list[len(p.list)-1]
	*last = append(*last, item)
	p.n++
	return p.n - 1
}

func (p *pages[T]) at(i int) *T { return &p.list[i/pageItems][i%pageItems] }

// seeds make the hashes unknown to those who write recordings.
var seeds = [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}

// mix hashes a value.
func mix(v, seed uint64) uint64 {
	high, low := bits.Mul64(v^0x9e3779b97f4a7c15, seed)
	return high ^ low
}

// A chainCache knows the nodes of calls by the recorded addresses, without looking for
// names. An entry is identified by a hash of 128 bits.
type chainCache struct {
	entries []chainEntry
}

type chainEntry struct {
	key  [2]uint64
	node int32 // 0 for none
}

// chainEntries is the size of the cache, a power of two.
const chainEntries = 1 << 17

// of returns the entry for a key, which may be another's.
func (c *chainCache) of(key [2]uint64) *chainEntry {
	if c.entries == nil {
		c.entries = make([]chainEntry, chainEntries)
	}
	return &c.entries[key[0]%chainEntries]
}

// hash adds words to a key.
func hash(key [2]uint64, words ...uint64) [2]uint64 {
	for _, w := range words {
		key[0], key[1] = mix(key[0]^w, seeds[0]), mix(bits.RotateLeft64(key[1], 23)^w, seeds[1])
	}
	return key
}

// codeFrames are the frames of code, by address and by place.
type codeFrames struct {
	recent []codeEntry
	places map[profile.Place][]int32
}

// A codeEntry has the frames of an address in a space.
type codeEntry struct {
	addr  uint64
	space uint32 // as Spaces.Number has it; 0 for none
	list  []int32
}

// Sizes of codeFrames. The first is a power of two.
const (
	recentCode    = 1 << 16
	maxCodePlaces = 1 << 18
)

// at returns the frames of an address that was kept.
func (c *codeFrames) at(space uint32, addr uint64) ([]int32, bool) {
	if space == 0 || c.recent == nil {
		return nil, false
	}
	e := &c.recent[mix(addr^uint64(space)<<40, seeds[0])%recentCode]
	return e.list, e.addr == addr && e.space == space
}

// of returns the frames of an address that is at a place; expand finds them.
func (c *codeFrames) of(space uint32, addr uint64, at profile.Place, expand func(profile.Place) []int32) []int32 {
	list, ok := c.places[at]
	if !ok {
		if c.places == nil || len(c.places) >= maxCodePlaces {
			c.places = map[profile.Place][]int32{}
		}
		list = expand(at)
		c.places[at] = list
	}
	if c.recent == nil {
		c.recent = make([]codeEntry, recentCode)
	}
	c.recent[mix(addr^uint64(space)<<40, seeds[0])%recentCode] = codeEntry{addr, space, list}
	return list
}
