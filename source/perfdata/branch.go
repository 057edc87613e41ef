package perfdata

// A Branch is one entry of a branch stack, struct perf_branch_entry.
type Branch struct {
	From, To     uint64
	Mispredicted bool
	Predicted    bool // neither is set where the processor does not say
	InTx, Abort  bool
	Cycles       uint16 // since the branch before; 0 where not known
	Type         uint8  // PERF_BR_…
	Spec         uint8  // PERF_BR_SPEC_…
	NewType      uint8  // PERF_BR_NEW_…, with the Type PERF_BR_EXTEND_ABI
	Priv         uint8  // PERF_BR_PRIV_…
	Counters     uint64 // occurrences of the group's events up to the branch, packed; 0 where not recorded
}

// Branches is the branch stack of a sample, the latest branch first.
type Branches struct {
	n        int
	b        []byte // entries, 24 bytes each
	counters []byte // a word each, or nothing
	index    uint64
	indexed  bool // index was recorded
	big      bool
}

// Branches returns the branch stack.
func (s *Sample) Branches() Branches {
	b := s.part(partBranches)
	if b == nil {
		return Branches{}
	}
	out := Branches{n: int(get64(b, s.d.big)), big: s.d.big}
	b = b[8:]
	if s.event.layout.branchIndex {
		out.index, out.indexed = get64(b, s.d.big), true
		b = b[8:]
	}
	out.b, b = b[:24*out.n], b[24*out.n:]
	if s.event.layout.branchCounters {
		out.counters = b
	}
	return out
}

// Len returns how many branches there are.
func (b Branches) Len() int { return b.n }

// HWIndex returns where in the hardware's buffer the latest branch was; ok is
// false where that is not known.
func (b Branches) HWIndex() (index uint64, ok bool) {
	const none = ^uint64(0)
	return b.index, b.indexed && b.index != none
}

// At returns one of the branches. It panics if i is out of range.
func (b Branches) At(i int) Branch {
	e := b.b[24*i : 24*i+24]
	flags := get64(e[16:], b.big)
	at := 0
	take := func(width int) uint64 {
		v := bitfield(flags, at, width, b.big)
		at += width
		return v
	}
	out := Branch{
		From:         get64(e, b.big),
		To:           get64(e[8:], b.big),
		Mispredicted: take(1) != 0,
		Predicted:    take(1) != 0,
		InTx:         take(1) != 0,
		Abort:        take(1) != 0,
		Cycles:       uint16(take(16)),
		Type:         uint8(take(4)),
		Spec:         uint8(take(2)),
		NewType:      uint8(take(4)),
		Priv:         uint8(take(3)),
	}
	if b.counters != nil {
		out.Counters = get64(b.counters[8*i:], b.big)
	}
	return out
}
