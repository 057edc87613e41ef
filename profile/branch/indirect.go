package branch

const (
	indirectTables    = 6
	indirectIndexBits = 9
	indirectTagBits   = 11
	targetBits        = 12 // of the index into the table of last targets
	confidenceMax     = 3
)

// indirectPaths are the histories of the tables, by their index in lengths.
var indirectPaths = [indirectTables]int{0, 2, 4, 6, 8, 10}

// A target is an entry that predicts where one indirect branch goes behind one path.
type target struct {
	addr       uint64
	tag        uint16
	confidence uint8
	useful     bool
}

// An indirect predicts the targets of indirect jumps and calls: ITTAGE. The base is
// the last target by address, and tagged tables come before it as in conditional.
type indirect struct {
	last   [1 << targetBits]uint64
	tagged [indirectTables][1 << indirectIndexBits]target

	failures int
	random   uint32

	// What is known of the branch predicted last.
	base      *uint64
	slots     [indirectTables]*target
	tags      [indirectTables]uint16
	provider  int
	alternate uint64
	predicted uint64
}

func (n *indirect) init() {
	n.random = 1
}

func (n *indirect) predict(addr uint64, h *history) uint64 {
	n.base = &n.last[(addr^addr>>targetBits)%(1<<targetBits)]
	n.provider, n.alternate = -1, *n.base
	for i := indirectTables - 1; i >= 0; i-- {
		x := h.hash(indirectPaths[i], addr)
		e := &n.tagged[i][x>>(64-indirectIndexBits)]
		tag := uint16(x >> (64 - indirectIndexBits - indirectTagBits) % (1 << indirectTagBits))
		n.slots[i], n.tags[i] = e, tag
		if e.tag != tag || e.addr == 0 {
			continue
		}
		if n.provider >= 0 {
			n.alternate = e.addr
			break
		}
		n.provider = i
	}
	n.predicted = n.alternate
	if n.provider >= 0 {
		if e := n.slots[n.provider]; e.confidence > 0 || e.useful {
			n.predicted = e.addr
		}
	}
	return n.predicted
}

// learn takes note of where the branch predicted last went.
func (n *indirect) learn(addr uint64) {
	wrong := n.predicted != addr
	if n.provider < 0 {
		*n.base = addr
	} else {
		e := n.slots[n.provider]
		if e.addr == addr {
			e.confidence = min(e.confidence+1, confidenceMax)
			e.useful = e.useful || n.alternate != addr
			wrong = false
		} else {
			if n.alternate == addr {
				e.useful = false
			}
			if e.confidence > 0 {
				e.confidence--
			} else {
				e.addr, e.useful = addr, false
			}
		}
		*n.base = addr
	}
	if wrong {
		n.allocate(addr)
	}
}

// allocate gives the branch entries for longer paths than the one that was wrong.
func (n *indirect) allocate(addr uint64) {
	i := n.provider + 1
	n.random ^= n.random << 13
	n.random ^= n.random >> 17
	n.random ^= n.random << 5
	i += int(n.random >> 8 & 1)
	for left := 1; i < indirectTables; i++ {
		e := n.slots[i]
		if e.useful {
			n.failures++
			continue
		}
		*e = target{addr: addr, tag: n.tags[i]}
		n.failures = max(n.failures-1, 0)
		if left--; left < 0 {
			break
		}
		i++
	}
	if n.failures >= patience {
		n.failures = 0
		for i := range n.tagged {
			for j := range n.tagged[i] {
				n.tagged[i][j].useful = false
			}
		}
	}
}
