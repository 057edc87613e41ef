package samples

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// A stackTree has the stacks that were met, each as the path to one of its nodes. Node 0
// is the root. A node follows its parent.
type stackTree struct {
	nodes pages[stackNode]
	index childIndex
}

// A stackNode is a frame below others. Most nodes have one child, which was added next and
// is next in memory: lists of few children are searched, and the others are in an index.
type stackNode struct {
	frame int32
	first int32 // the child that was added last, 0 for none; negative if the index has all
	next  int32 // the child of the same node that was added before; 0 for none
	row   int32 // and 1; 0 for none
}

// nodeBytes is what a node costs, and fewChildren how many are searched one by one.
const (
	nodeBytes   = 16
	fewChildren = 4
)

// child returns the node of a frame below another node.
func (t *stackTree) child(parent, frame int32) int32 {
	if t.nodes.n == 0 {
		t.nodes.add(stackNode{frame: -1})
	}
	first := t.nodes.at(int(parent)).first
	if first < 0 {
		if n := t.index.look(t, parent, frame); n > 0 {
			return n
		}
	}
	for c := first; c > 0; {
		n := t.nodes.at(int(c))
		if n.frame == frame {
			return c
		}
		c = n.next
	}
	n := int32(t.nodes.add(stackNode{frame: frame}))
	t.link(parent, n)
	return n
}

// link makes a node the child of another one.
func (t *stackTree) link(parent, child int32) {
	p, c := t.nodes.at(int(parent)), t.nodes.at(int(child))
	if p.first < 0 {
		c.next, p.first = -p.first, -child
		t.index.put(t, parent, child)
		return
	}
	c.next, p.first = p.first, child
	few := 0
	for n := child; n > 0 && few <= fewChildren; n = t.nodes.at(int(n)).next {
		few++
	}
	if few > fewChildren {
		p.first = -child
		for n := child; n > 0; n = t.nodes.at(int(n)).next {
			t.index.put(t, parent, n)
		}
	}
}

// children returns the child of a node that was added last; 0 for none.
func (n *stackNode) children() int32 { return max(n.first, -n.first) }

// memory returns how many bytes the tree takes.
func (t *stackTree) memory() int { return t.nodes.n*nodeBytes + len(t.index.slots)*childBytes }

// parents returns the parents of all nodes.
func (t *stackTree) parents() parents {
	list := parents(roomFor[int32](t.nodes.n))
	for i := range t.nodes.n {
		for c := t.nodes.at(i).children(); c > 0; c = t.nodes.at(int(c)).next {
			list[c] = int32(i)
		}
	}
	return list
}

// parents are those of a tree's nodes.
type parents []int32

// path appends the frames from the root to a node.
func (p parents) path(t *stackTree, node int32, to []int32) []int32 {
	begin := len(to)
	for ; node > 0; node = p[node] {
		to = append(to, t.nodes.at(int(node)).frame)
	}
	slices.Reverse(to[begin:])
	return to
}

// A childIndex finds the children of nodes that have many: open addressing.
type childIndex struct {
	slots []childSlot
	n     int // in use
}

// A childSlot is a child and its parent; 0 is an empty slot.
type childSlot struct{ parent, child int32 }

const childBytes = 8

// slot returns the slot that is looked at first.
func (x *childIndex) slot(parent, frame int32) int {
	return int(mix(uint64(uint32(parent))<<32|uint64(uint32(frame)), seeds[0])) & (len(x.slots) - 1)
}

// look returns the child of a node; 0 if it has none of that frame.
func (x *childIndex) look(t *stackTree, parent, frame int32) int32 {
	for i := x.slot(parent, frame); ; i = (i + 1) & (len(x.slots) - 1) {
		s := x.slots[i]
		if s.child == 0 || s.parent == parent && t.nodes.at(int(s.child)).frame == frame {
			return s.child
		}
	}
}

// put adds a child that is not there yet. At most three quarters of the slots are in use.
func (x *childIndex) put(t *stackTree, parent, child int32) {
	if x.n++; x.n*4 > len(x.slots)*3 {
		old := x.slots
		x.slots = roomFor[childSlot](max(1<<10, 2*len(old)))
		for _, s := range old {
			if s.child > 0 {
				*x.free(t, s) = s
			}
		}
	}
	s := childSlot{parent, child}
	*x.free(t, s) = s
}

// free returns the slot for another child.
func (x *childIndex) free(t *stackTree, s childSlot) *childSlot {
	i := x.slot(s.parent, t.nodes.at(int(s.child)).frame)
	for x.slots[i].child > 0 {
		i = (i + 1) & (len(x.slots) - 1)
	}
	return &x.slots[i]
}

// A numberIndex finds numbers by the hash of what they stand for: open addressing. A slot
// has a number in its lower bits, and bits of the hash above these. 0 is an empty slot.
type numberIndex struct {
	slots []uint32
	bits  uint // of a number
}

// full reports whether there is no room for one more than n numbers: at most seven eighths
// are in use.
func (x *numberIndex) full(n int) bool { return (n+1)*8 > len(x.slots)*7 }

// make empties the index, and gives it room for so many numbers.
func (x *numberIndex) make(n int) {
	x.bits = 10
	for (n+1)*8 > 7<<x.bits {
		x.bits++
	}
	x.slots = nil // so that the collector may take it
	x.slots = roomFor[uint32](1 << x.bits)
}

// look returns the number of a hash that is the one. It is 0 if there is none; then a new
// one goes into the slot together with the tag.
func (x *numberIndex) look(hash uint32, is func(uint32) bool) (n uint32, slot int, tag uint32) {
	mask := uint32(len(x.slots) - 1)
	tag = hash &^ mask
	for i := hash & mask; ; i = (i + 1) & mask {
		s := x.slots[i]
		if s == 0 || s&^mask == tag && is(s&mask) {
			return s & mask, int(i), tag
		}
	}
}

// at returns the number in the slot of a hash that is looked at first.
func (x *numberIndex) at(hash uint32) uint32 {
	mask := uint32(len(x.slots) - 1)
	return x.slots[hash&mask] & mask
}

// put adds a number that is not there yet.
func (x *numberIndex) put(hash, n uint32) {
	_, slot, tag := x.look(hash, func(uint32) bool { return false })
	x.slots[slot] = tag | n
}

// A stackOrder hands out the rows of a tree in the order of their names from the root on.
// Rows of the same names are next to each other.
type stackOrder struct {
	tree    *stackTree
	ranks   []int32      // of frames: the same names have the same
	above   []rankedNode // a stack of those to be ordered
	path    []int32      // the frames down to the nodes at hand; -1 where they have several
	same    int          // how many of them the row before has as well
	each    func(row int32, path []int32, same int) bool
	parents parents // once they are asked for
	own     []int32 // the path of a row among several nodes
}

// A rankedNode is a node by the rank of its frame, and by its number.
type rankedNode uint64

func (n rankedNode) node() int32 { return int32(uint32(n)) }
func (n rankedNode) rank() int32 { return int32(n >> 32) }

// rows hands out all rows with the frames from the root on. The row before has the same
// first frames, so many.
func (t *stackTree) rows(ranks []int32, each func(row int32, path []int32, same int) bool) {
	o := &stackOrder{tree: t, ranks: ranks, each: each}
	if t.nodes.n > 0 {
		o.group([]rankedNode{0})
	}
}

// group hands out the rows of nodes of the same names, and of all nodes above them. It
// returns false if that is to end.
func (o *stackOrder) group(nodes []rankedNode) bool {
	begin := len(o.above)
	for _, at := range nodes {
		n := o.tree.nodes.at(int(at.node()))
		if n.row > 0 && !o.hand(n.row-1, at.node()) {
			return false
		}
		for c := n.children(); c > 0; {
			child := o.tree.nodes.at(int(c))
			o.above = append(o.above, rankedNode(o.ranks[child.frame])<<32|rankedNode(c))
			c = child.next
		}
	}
	list := o.above[begin:]
	if len(list) > 1 {
		slices.Sort(list)
	}
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].rank() == list[0].rank() {
			n++
		}
		frame := o.frame(list[0])
		for _, c := range list[1:n] {
			if o.frame(c) != frame {
				frame = -1
			}
		}
		o.path = append(o.path, frame)
		if !o.group(list[:n]) {
			return false
		}
		o.path = o.path[:len(o.path)-1]
		o.same = min(o.same, len(o.path))
		list = list[n:]
	}
	o.above = o.above[:begin]
	return true
}

func (o *stackOrder) frame(n rankedNode) int32 { return o.tree.nodes.at(int(n.node())).frame }

// hand hands out a row, and looks for its own frames where nodes of the same names have
// several.
func (o *stackOrder) hand(row, node int32) bool {
	path, known := o.path, slices.Index(o.path, -1)
	if known < 0 {
		known = len(path)
	} else {
		if o.parents == nil {
			o.parents = o.tree.parents()
		}
		path = o.parents.path(o.tree, node, o.own[:0])
		o.own = path
	}
	more := o.each(row, path, min(o.same, known))
	o.same = known
	return more
}

// A moving says where nodes went when a tree was cut.
type moving []uint32

// stayed is the mark of nodes that are still there.
const stayed = 1 << 31

// of returns the number that a node has now, or that of the innermost caller that is still
// there.
func (m moving) of(node int32) (now int32, kept bool) {
	return int32(m[node] &^ stayed), m[node]&stayed != 0
}

// cut keeps the nodes with the largest weights, at most so many, each with its ancestors. It
// drops those of a frame, and all rows. The weight of a node is its own and that of all nodes
// above it. The weights become the moving.
func (t *stackTree) cut(weights []uint32, most int, drop int32) moving {
	parents := t.parents()
	for i := t.nodes.n - 1; i > 0; i-- {
		parent := parents[i]
		weights[parent] = uint32(min(uint64(weights[parent])+uint64(weights[i]), stayed-1))
	}
	least, more := smallest(weights, most)
	n := 0
	for i := range weights {
		frame, parent := t.nodes.at(i).frame, parents[i]
		switch {
		case i == 0:
			weights[0] = stayed
		case (weights[i] > least || weights[i] == least && more > 0) && frame != drop && weights[parent]&stayed != 0:
			if weights[i] == least {
				more--
			}
			parents[n] = int32(weights[parent] &^ stayed)
			weights[i] = uint32(n) | stayed
		default:
			weights[i] = weights[parent] &^ stayed
			continue
		}
		*t.nodes.at(n) = stackNode{frame: frame}
		n++
	}
	t.nodes.keep(n)
	t.index = childIndex{}
	for i := 1; i < n; i++ {
		t.link(parents[i], int32(i))
	}
	return weights
}

// smallest returns a weight that at most so many others exceed, and how many of it fit too.
func smallest(weights []uint32, most int) (least uint32, more int) {
	var number [1 << 12]int // by weight; the last is for all that are larger
	for _, w := range weights {
		number[min(w, uint32(len(number)-1))]++
	}
	w, above := len(number)-1, 0
	for w > 0 && above+number[w] <= most {
		above += number[w]
		w--
	}
	if w < len(number)-1 {
		return uint32(w), most - above
	}
	sorted := slices.Clone(weights)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	least = sorted[min(most, len(sorted)-1)]
	return least, most - slices.Index(sorted, least)
}

// pages are a list that grows without being copied.
type pages[T any] struct {
	list [][]T
	n    int
}

// pageItems is the number of items on a page, a power of two. Behind the first fewPages, and for
// tables of manyBytes, memory is of huge pages.
const (
	pageItems = 1 << 13
	fewPages  = 8
	manyBytes = 1 << 19
)

// hugeFrom asks for huge pages if so many bytes are many. It is in the program once, and roomFor
// for each kind of item.
//
//go:noinline
func hugeFrom(at unsafe.Pointer, size uintptr) {
	if size >= manyBytes {
		huge(at, size)
	}
}

// roomFor makes a table.
func roomFor[T any](n int) []T {
	list := make([]T, n)
	hugeFrom(unsafe.Pointer(unsafe.SliceData(list)), uintptr(n)*unsafe.Sizeof(*new(T)))
	return list
}

func (p *pages[T]) add(item T) int {
	if p.n%pageItems == 0 {
		page := make([]T, pageItems)
		if len(p.list) >= fewPages {
			huge(unsafe.Pointer(&page[0]), pageItems*unsafe.Sizeof(page[0]))
		}
		p.list = append(p.list, page)
	}
	*p.at(p.n) = item
	p.n++
	return p.n - 1
}

func (p *pages[T]) at(i int) *T { return &p.list[uint(i)/pageItems][uint(i)%pageItems] }

// free gives up the page of an item, if it is the last one there. The page is not needed again.
func (p *pages[T]) free(i int) {
	if (i+1)%pageItems == 0 {
		p.list[i/pageItems] = nil
	}
}

// keep drops the items from n on.
func (p *pages[T]) keep(n int) {
	p.n = n
	whole := (n + pageItems - 1) / pageItems
	clear(p.list[whole:])
	p.list = p.list[:whole]
}

// seeds make the hashes unknown to those who write recordings.
var seeds = [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}

// mix hashes a value.
func mix(v, seed uint64) uint64 {
	high, low := bits.Mul64(v^0x9e3779b97f4a7c15, seed)
	return high ^ low
}
