package branch

// The sizes of the predictor of conditional branches: 64 KB in a core's bits.
const (
	tables    = 7  // with tags, for all lengths but the first
	baseBits  = 14 // of the index into the base table
	indexBits = 12 // of the index into a tagged table
	tagBits   = 12

	baseMin, baseMax       = -1, 2 // taken if above 0
	counterMin, counterMax = -4, 3 // taken if not below 0
	usefulMax              = 3

	distrustMax = 7
)

// An entry of a tagged table predicts one branch after one path.
type entry struct {
	tag     uint16
	counter int8
	useful  uint8 // how often it was right when a shorter path was not
}

// A conditional predicts conditional branches: TAGE. Its base is a table of counters by
// address. Tagged tables with ever longer paths come before it. The matching table with the
// longest path provides the prediction. An exception is a new entry, if new entries were
// wrong more often than the alternatives.
type conditional struct {
	base   [1 << baseBits]int8
	tagged [tables][1 << indexBits]entry
	// distrust is above 0 if new entries have been wrong more often than right, when a
	// shorter path predicted otherwise.
	distrust int8
	random   random

	// The state of the branch predicted last.
	counter   *int8          // in the base
	slots     [tables]*entry // the entries that the branch has or could have
	tags      [tables]uint16
	provider  int  // the table that provides the prediction, -1 if it is the base
	fresh     bool // its entry has proved nothing yet
	longest   bool // the provider's prediction
	alternate bool // the prediction without it
	predicted bool // one of the two
}

func (c *conditional) predict(addr uint64, h *history) bool {
	c.counter = &c.base[(addr^addr>>baseBits)%(1<<baseBits)]
	c.provider = -1
	c.alternate = *c.counter > 0
	for i := tables - 1; i >= 0; i-- {
		x := h.hash(i+1, addr)
		e := &c.tagged[i][x>>(64-indexBits)]
		tag := uint16(x >> (64 - indexBits - tagBits) % (1 << tagBits))
		c.slots[i], c.tags[i] = e, tag
		if e.tag != tag {
			continue
		}
		if c.provider >= 0 {
			c.alternate = e.counter >= 0
			break
		}
		c.provider, c.longest = i, e.counter >= 0
		c.fresh = e.useful == 0 && (e.counter == 0 || e.counter == -1)
	}
	if c.provider < 0 || c.fresh && c.distrust > 0 {
		c.predicted = c.alternate
	} else {
		c.predicted = c.longest
	}
	return c.predicted
}

// learn learns the outcome of the branch predicted last.
func (c *conditional) learn(taken bool) {
	allocate := c.predicted != taken
	if c.provider < 0 {
		count(c.counter, taken, baseMin, baseMax)
	} else {
		// If the provider was right and only not believed, another entry does not help.
		allocate = allocate && c.longest != taken
		c.confirm(c.slots[c.provider], taken)
	}
	if allocate {
		c.allocate(taken)
	}
}

// confirm adds the outcome to the provider's entry.
func (c *conditional) confirm(e *entry, taken bool) {
	if c.longest != c.alternate {
		if c.fresh {
			count(&c.distrust, c.longest != taken, -distrustMax-1, distrustMax)
		}
		if c.longest == taken {
			e.useful = min(e.useful+1, usefulMax)
		} else if e.useful > 0 {
			e.useful--
		}
	}
	if c.fresh && e.useful == 0 {
		count(c.counter, taken, baseMin, baseMax) // as long as the entry is no better than it
	}
	count(&e.counter, taken, counterMin, counterMax)
}

// allocate gives the branch entries for every other path that is longer than the one that
// was wrong. Useful entries of others stay, and become less useful.
func (c *conditional) allocate(taken bool) {
	i := c.provider + 1
	for i < tables-1 && c.random.next()%8 == 0 { // so that not all begin at the same length
		i++
	}
	for i < tables {
		e := c.slots[i]
		if e.useful > 0 {
			e.useful--
			i++
			continue
		}
		*e = entry{tag: c.tags[i]}
		if !taken {
			e.counter = -1
		}
		i += 2
	}
}

// count counts up or down, within the least and the most.
func count(counter *int8, up bool, least, most int8) {
	switch {
	case up && *counter < most:
		*counter++
	case !up && *counter > least:
		*counter--
	}
}

// random is a generator of pseudorandom numbers, the same each time: Marsaglia's xorshift.
// Its zero value begins at 1.
type random uint32

func (r *random) next() uint32 {
	x := uint32(*r)
	if x == 0 {
		x = 1
	}
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	*r = random(x)
	return x >> 8
}
