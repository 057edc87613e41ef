package profile

// A node is a mapping in an address space. The nodes of a space make a treap: a search tree
// by address whose shape is random, so that no recording can make it deep. Versions of a
// space, and a process and its children, share nodes. A version copies a node before it
// changes it, unless it made the node itself.
type node struct {
	start, end  uint64
	offset      uint64 // in the file, of start
	file        *File
	left, right *node
	priority    uint32
	owner       uint32 // the version that made the node
}

// own returns the node for the version to change.
func (n *node) own(version uint32) *node {
	if n.owner == version {
		return n
	}
	c := *n
	c.owner = version
	return &c
}

// find returns the mapping that an address is in, or nil.
func (n *node) find(addr uint64) *node {
	for n != nil {
		switch {
		case addr < n.start:
			n = n.left
		case addr >= n.end:
			n = n.right
		default:
			return n
		}
	}
	return nil
}

// around returns the mapping that an address is in. If it is nil, nothing is mapped from one address
// to the other, within bounds.
func (n *node) around(addr, first, last uint64) (in *node, from, to uint64) {
	for n != nil {
		switch {
		case addr < n.start:
			last = min(last, n.start-1)
			n = n.left
		case addr >= n.end:
			first = max(first, n.end)
			n = n.right
		default:
			return n, first, last
		}
	}
	return nil, first, last
}

// overlaps says whether anything is mapped in a range.
func (n *node) overlaps(start, end uint64) bool {
	for n != nil {
		switch {
		case end <= n.start:
			n = n.left
		case start >= n.end:
			n = n.right
		default:
			return true
		}
	}
	return false
}

// split divides a tree into the mappings below an address and those from it on.
// A mapping across the address is divided.
func (n *node) split(addr uint64, version uint32) (low, high *node) {
	switch {
	case n == nil:
		return nil, nil
	case n.end <= addr:
		n = n.own(version)
		n.right, high = n.right.split(addr, version)
		return n, high
	case n.start >= addr:
		n = n.own(version)
		low, n.left = n.left.split(addr, version)
		return low, n
	}
	rest := *n // from addr on
	rest.owner, rest.left = version, nil
	rest.offset += addr - n.start
	rest.start = addr
	n = n.own(version)
	n.end, n.right = addr, nil
	return n, &rest
}

// join makes one tree of two. The first has the lower addresses.
func join(low, high *node, version uint32) *node {
	switch {
	case low == nil:
		return high
	case high == nil:
		return low
	case low.priority >= high.priority:
		low = low.own(version)
		low.right = join(low.right, high, version)
		return low
	}
	high = high.own(version)
	high.left = join(low, high.left, version)
	return high
}

// replace puts a mapping into a tree, in place of what overlaps with it.
func (n *node) replace(m *node, version uint32) *node {
	low, rest := n.split(m.start, version)
	_, high := rest.split(m.end, version)
	return join(join(low, m, version), high, version)
}

// remove takes the mappings of a range out of a tree.
func (n *node) remove(start, end uint64, version uint32) *node {
	low, rest := n.split(start, version)
	_, high := rest.split(end, version)
	return join(low, high, version)
}
