package samples

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// A stackTree has the stacks that were met, each as the path to one of its nodes. Node 0
// is the root. A node follows its parent.
type stackTree struct {
	nodes pages[stackNode]
	index numberIndex // of the nodes
}

type stackNode struct{ parent, frame int32 }

// nodeBytes is what a node costs, with its share of the index.
const nodeBytes = 8 + indexBytes

// A treeNode is a node with the hash of the frames from the root down to it. The hash does
// not depend on numbers of nodes, so that several look-ups can wait for memory at once.
type treeNode struct {
	node int32
	hash uint32
}

// below returns the hash of a frame below.
func (n treeNode) below(frame int32) uint32 {
	return uint32(mix(uint64(n.hash)<<32|uint64(uint32(frame)), seeds[0]) >> 16)
}

// child returns the node of a frame below another node; the zero treeNode is the root.
func (t *stackTree) child(parent treeNode, frame int32) treeNode {
	if t.nodes.n == 0 {
		t.nodes.add(stackNode{parent: -1, frame: -1})
	}
	is, hash := stackNode{parent.node, frame}, parent.below(frame)
	if t.index.full(t.nodes.n) {
		t.reindex(t.nodes.n + 1)
	}
	n, slot, tag := t.index.look(hash, func(n uint32) bool { return *t.nodes.at(int(n)) == is })
	if n == 0 {
		n = uint32(t.nodes.add(is))
		t.index.slots[slot] = tag | n
	}
	return treeNode{int32(n), hash}
}

// at returns a node by its number.
func (t *stackTree) at(node int32) treeNode {
	n := treeNode{}
	for _, f := range t.path(node, nil) {
		n.hash = n.below(f)
	}
	n.node = node
	return n
}

// reindex makes an index with room for more nodes than there are.
func (t *stackTree) reindex(room int) {
	t.index.make(room)
	hashes := make([]uint32, t.nodes.n)
	for i := 1; i < t.nodes.n; i++ {
		n := t.nodes.at(i)
		hashes[i] = treeNode{hash: hashes[n.parent]}.below(n.frame)
		t.index.put(hashes[i], uint32(i))
	}
}

// A numberIndex finds numbers by the hash of what they stand for: open addressing. A slot
// has a number in its lower bits, and bits of the hash above these. 0 is an empty slot.
type numberIndex struct {
	slots []uint32
	bits  uint // of a number
}

// indexBytes is the usual share of a number in an index.
const indexBytes = 7

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
	x.slots = make([]uint32, 1<<x.bits)
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

// put adds a number that is not there yet.
func (x *numberIndex) put(hash, n uint32) {
	_, slot, tag := x.look(hash, func(uint32) bool { return false })
	x.slots[slot] = tag | n
}

// A stackOrder hands out the rows of a tree in the order of their names from the root on.
// Rows of the same names are next to each other.
type stackOrder struct {
	tree        *stackTree
	rowOf       func(node int32) (row int32, ok bool)
	ranks       []int32 // of frames: the same names have the same
	first, next []int32 // nodes above one, and their neighbours
	above       []int32 // a stack of those to be ordered
	path        []int32 // the frames down to the nodes at hand; -1 where they have several
	same        int     // how many of them the row before has as well
	each        func(row int32, path []int32, same int) bool
	own         []int32 // the path of a row among several nodes
}

// rows hands out all rows with the frames from the root on. The row before has the same
// first frames, so many.
func (t *stackTree) rows(ranks []int32, rowOf func(int32) (int32, bool), each func(row int32, path []int32, same int) bool) {
	t.index = numberIndex{} // it is no longer needed, and the order takes as much
	o := &stackOrder{tree: t, rowOf: rowOf, ranks: ranks, each: each, first: make([]int32, t.nodes.n), next: make([]int32, t.nodes.n)}
	for i := t.nodes.n - 1; i > 0; i-- {
		parent := t.nodes.at(i).parent
		o.next[i], o.first[parent] = o.first[parent], int32(i)
	}
	if t.nodes.n > 0 {
		o.group([]int32{0})
	}
}

// group hands out the rows of nodes of the same names, and of all nodes above them. It
// returns false if that is to end.
func (o *stackOrder) group(nodes []int32) bool {
	begin := len(o.above)
	for _, i := range nodes {
		if row, ok := o.rowOf(i); ok && !o.hand(row, i) {
			return false
		}
		for c := o.first[i]; c > 0; c = o.next[c] {
			o.above = append(o.above, c)
		}
	}
	list := o.above[begin:]
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b int32) int { return cmp.Or(cmp.Compare(o.rank(a), o.rank(b)), cmp.Compare(a, b)) })
	}
	for len(list) > 0 {
		n := 1
		for n < len(list) && o.rank(list[n]) == o.rank(list[0]) {
			n++
		}
		frame := o.tree.nodes.at(int(list[0])).frame
		for _, c := range list[1:n] {
			if o.tree.nodes.at(int(c)).frame != frame {
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

// hand hands out a row, and looks for its own frames where nodes of the same names have
// several.
func (o *stackOrder) hand(row, node int32) bool {
	path, known := o.path, slices.Index(o.path, -1)
	if known < 0 {
		known = len(path)
	} else {
		path = o.tree.path(node, o.own[:0])
		o.own = path
	}
	more := o.each(row, path, min(o.same, known))
	o.same = known
	return more
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
// drops those of a frame. The weight of a node is its own and that of all nodes above it.
// The weights become the moving.
func (t *stackTree) cut(weights []uint32, most int, drop int32) moving {
	for i := t.nodes.n - 1; i > 0; i-- {
		parent := t.nodes.at(i).parent
		weights[parent] = uint32(min(uint64(weights[parent])+uint64(weights[i]), stayed-1))
	}
	least := smallest(weights, most)
	n := 0
	for i := range weights {
		at := *t.nodes.at(i)
		switch {
		case i == 0:
			weights[0] = stayed
		case weights[i] > least && at.frame != drop && weights[at.parent]&stayed != 0:
			at.parent = int32(weights[at.parent] &^ stayed)
			*t.nodes.at(n) = at
			weights[i] = uint32(n) | stayed
		default:
			weights[i] = weights[at.parent] &^ stayed
			continue
		}
		n++
	}
	t.nodes.keep(n)
	t.reindex(n)
	return weights
}

// smallest returns a weight that at most so many others exceed.
func smallest(weights []uint32, most int) uint32 {
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
		return uint32(w)
	}
	sorted := slices.Clone(weights)
	slices.SortFunc(sorted, func(a, b uint32) int { return cmp.Compare(b, a) })
	return sorted[min(most, len(sorted)-1)]
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
		p.list = append(p.list, make([]T, pageItems))
	}
	*p.at(p.n) = item
	p.n++
	return p.n - 1
}

func (p *pages[T]) at(i int) *T { return &p.list[uint(i)/pageItems][uint(i)%pageItems] }

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
