package branch

// The sizes are those of a real core, about 64 KB in all.
const (
	baseBits  = 14 // of the index into the base table
	indexBits = 11 // of the index into a tagged table
	tagBits   = 12

	counterMax = 3 // counters are from -4 to 3: taken if not negative
	baseMax    = 1 // from -2 to 1
	usefulMax  = 3

	// patience is by how many more allocations fail than succeed before all entries
	// become a little less useful.
	patience = 1024
)

// An entry of a tagged table predicts one branch behind one path.
type entry struct {
	tag     uint16
	counter int8
	useful  uint8
}

// A conditional predicts conditional branches: TAGE. A table of counters by address is
// the base. Tagged tables with ever longer histories come before it, and the one with
// the longest history that knows branch and path has the say.
type conditional struct {
	base   [1 << baseBits]int8
	tagged [tables][1 << indexBits]entry

	// distrust is above 0 if new entries have been wrong more often than what would
	// have been predicted without them.
	distrust int8
	failures int // of allocations, less those that succeeded
	random   uint32

	at lookup
}

// A lookup is what is known of the branch predicted last.
type lookup struct {
	base      *int8
	slots     [tables]*entry // those that the branch has, or would have, by table
	tags      [tables]uint16
	provider  int // the table that has the say, -1 if it is the base
	longest   bool
	alternate bool // what would be predicted without it
	fresh     bool // the provider's entry has proved nothing yet
	taken     bool // the prediction
}

func (c *conditional) init() {
	c.random = 1
}

func (c *conditional) predict(addr uint64, h *history) bool {
	at := &c.at
	at.base = &c.base[(addr^addr>>baseBits)%(1<<baseBits)]
	at.provider, at.alternate, at.fresh = -1, *at.base >= 0, false
	at.taken = at.alternate
	for i := tables - 1; i >= 0; i-- {
		x := h.hash(i, addr)
		e := &c.tagged[i][x>>(64-indexBits)]
		tag := uint16(x >> (64 - indexBits - tagBits) % (1 << tagBits))
		at.slots[i], at.tags[i] = e, tag
		if e.tag != tag {
			continue
		}
		if at.provider >= 0 {
			at.alternate = e.counter >= 0
			break
		}
		at.provider = i
	}
	if at.provider < 0 {
		return at.taken
	}
	e := at.slots[at.provider]
	at.longest = e.counter >= 0
	at.fresh = e.useful == 0 && (e.counter == 0 || e.counter == -1)
	at.taken = at.longest
	if at.fresh && c.distrust > 0 {
		at.taken = at.alternate
	}
	return at.taken
}

// learn takes note of which way the branch predicted last went.
func (c *conditional) learn(taken bool) {
	at := &c.at
	allocate := at.taken != taken && at.provider < tables-1
	if at.provider < 0 {
		count(at.base, taken, baseMax)
	} else {
		e := at.slots[at.provider]
		if at.fresh {
			// If the entry was right by itself, another one would not help.
			allocate = allocate && at.longest != taken
			if at.longest != at.alternate {
				count(&c.distrust, at.alternate == taken, 7)
			}
		}
		if at.longest != at.alternate {
			if at.longest == taken {
				e.useful = min(e.useful+1, usefulMax)
			} else if e.useful > 0 {
				e.useful--
			}
		}
		count(&e.counter, taken, counterMax)
		if e.useful == 0 && at.fresh {
			count(at.base, taken, baseMax)
		}
	}
	if allocate {
		c.allocate(taken)
	}
}

// allocate gives the branch an entry for a longer path than the one that was wrong.
func (c *conditional) allocate(taken bool) {
	at := &c.at
	i := at.provider + 1
	for c.next()&1 == 0 && i < tables-1 { // so that not all branches contend for one table
		i++
	}
	for left := 1; i < tables; i++ {
		e := at.slots[i]
		if e.useful > 0 {
			c.failures++
			continue
		}
		*e = entry{tag: at.tags[i]}
		if !taken {
			e.counter = -1
		}
		c.failures = max(c.failures-1, 0)
		if left--; left < 0 {
			break
		}
		i++
	}
	if c.failures >= patience {
		c.failures = 0
		c.age()
	}
}

// age makes all entries less useful, so that those not needed any more give way.
func (c *conditional) age() {
	for i := range c.tagged {
		for j := range c.tagged[i] {
			c.tagged[i][j].useful >>= 1
		}
	}
}

// next returns a number that looks random: xorshift.
func (c *conditional) next() uint32 {
	c.random ^= c.random << 13
	c.random ^= c.random >> 17
	c.random ^= c.random << 5
	return c.random >> 8
}

// count counts up, or else down, between -most-1 and most.
func count(counter *int8, up bool, most int8) {
	switch {
	case up && *counter < most:
		*counter++
	case !up && *counter > -most-1:
		*counter--
	}
}
