package branch

// The sizes of the predictor of indirect branches. The tagged tables have 3072 targets,
// as many as AMD's Zen 4.
const (
	indirectTables = 3 // with tags, for every third length
	groupBits      = 5 // of the index of a group of entries
	memberBits     = 5 // of the index of an entry in its group
	targetTagBits  = 11
	lastBits       = 12 // of the index into the table of last targets
	confidenceMax  = 3
)

// A target is an entry that predicts the target of one indirect branch after one path.
type target struct {
	addr       uint64
	tag        uint16
	confidence uint8
	useful     uint8
}

// An indirect predicts the targets of indirect jumps and calls: ITTAGE. Its base is the
// last target by address, and tagged tables with ever longer paths come before it.
//
// A branch's address and the taken branch before choose a group of entries. Its path chooses
// one of them. So a jump that is always reached in the same way, as in an interpreter's loop,
// has few entries.
type indirect struct {
	last   [1 << lastBits]uint64
	tagged [indirectTables][1 << (groupBits + memberBits)]target
	random random

	// The state of the branch predicted last.
	base      *uint64
	slots     [indirectTables]*target
	tags      [indirectTables]uint16
	provider  int // the table that provides the prediction, -1 if it is the base
	predicted uint64
	alternate uint64
}

func (n *indirect) predict(addr uint64, h *history) uint64 {
	n.base = &n.last[(addr^addr>>lastBits)%(1<<lastBits)]
	n.provider = -1
	n.predicted, n.alternate = *n.base, *n.base
	group := (addr*spread ^ h.last()) * spread >> (64 - groupBits) << memberBits
	for i := indirectTables - 1; i >= 0; i-- {
		x := h.hash(3*i, addr)
		e := &n.tagged[i][group|x>>(64-memberBits)]
		tag := uint16(x >> (64 - memberBits - targetTagBits) % (1 << targetTagBits))
		n.slots[i], n.tags[i] = e, tag
		if e.tag != tag || e.addr == 0 {
			continue
		}
		if n.provider >= 0 {
			n.alternate = e.addr
			break
		}
		n.provider, n.predicted = i, e.addr
	}
	return n.predicted
}

// learn learns the target of the branch predicted last.
func (n *indirect) learn(addr uint64) {
	if n.provider >= 0 {
		n.confirm(n.slots[n.provider], addr)
	}
	*n.base = addr
	if n.predicted != addr {
		n.allocate(addr)
	}
}

// confirm adds the target to the provider's entry.
func (n *indirect) confirm(e *target, addr uint64) {
	right := e.addr == addr
	if n.predicted != n.alternate {
		if right {
			e.useful = min(e.useful+1, usefulMax)
		} else if e.useful > 0 {
			e.useful--
		}
	}
	switch {
	case right:
		e.confidence = min(e.confidence+1, confidenceMax)
	case e.confidence > 0:
		e.confidence--
	default:
		e.addr = addr
	}
}

// allocate gives the branch an entry for a longer path than the one that was wrong. Every
// other entry in its way becomes less useful: a branch with more paths than entries keeps
// some of them.
func (n *indirect) allocate(addr uint64) {
	i := n.provider + 1
	for i < indirectTables-1 && n.random.next()%8 == 0 {
		i++
	}
	for ; i < indirectTables; i++ {
		e := n.slots[i]
		if e.useful == 0 {
			*e = target{addr: addr, tag: n.tags[i]}
			return
		}
		if n.random.next()%2 == 0 {
			e.useful--
		}
	}
}
