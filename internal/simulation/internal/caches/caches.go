// Package caches simulates the memory of a processor: three levels of caches with their
// prefetchers, and the buffers of address translations (TLBs). It knows addresses only, no
// time: it says which level answers an access, and which lines move. The first level of data
// is elsewhere, in QEMU's plugin: its misses come here.
//
//	h := caches.New(caches.Config{L1D: caches.Size{48 << 10, 12}, …}, nil)
//	switch a := h.Data(pc, addr, false); a.Level {
//	case caches.Memory:
//
// The second and third level have physical addresses, and pages lie anywhere.
//
// All levels allocate on a write. The first two replace the line used longest ago, and the
// third any line. Lines that are written are written back when they are replaced. A load or
// store at one instruction that advances by the same distance is prefetched into the first
// level; lines that follow each other in a page are prefetched into the second. Intel describes
// that for its cores (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data
// Prefetching"). Others have similar units.
package caches

import (
	"cmp"
	"math"
)

// A Level is the place that answers an access.
type Level uint8

// The levels.
const (
	First Level = iota
	Second
	Third
	Memory
	Levels
)

// LineBits is the logarithm of the size of a line.
const LineBits = 6

// pageBits is that of the size of a page.
const pageBits = 12

// A Size is the size of a cache in bytes, and the lines of a set.
type Size struct{ Bytes, Ways int }

// A Config is the sizes of a hierarchy. A third level of no bytes does not exist.
type Config struct {
	L1I, L1D, L2, L3 Size
	TLB1, TLB2       Size // in entries
	// Lifetime is the half-life in cycles of unused lines in the third level, if others use that
	// too. At 0 none leaves.
	Lifetime float64
	Ahead    int  // lines that the prefetcher of the second level looks ahead; 0 is typical
	Next     bool // a line of the third level brings the next one of its page into the second; so does a use of that
}

// flags of a line, in the low bits of its entry. The rest of an entry is as much of the line's
// number as fits, without the set's bits.
const (
	valid = 1 << iota
	dirty
	prefetched
	flagBits = 3
	allFlags = 1<<flagBits - 1
)

// A cache is one level: the entries of each set, in the order of their use if it is kept.
// Entries are short, because the simulation of large caches waits for their own misses.
type cache struct {
	entries []uint32
	ways    int
	setBits uint
	random  uint32 // if the order is not kept: the state of the choice of lines to replace
}

// newCache returns a cache of so many lines. Ordered says that the line used longest ago is
// replaced, and not any.
func newCache(lines, ways int, ordered bool) cache {
	ways = max(1, min(ways, lines))
	bits := uint(0)
	for ways<<(bits+1) <= lines {
		bits++
	}
	c := cache{entries: make([]uint32, ways<<bits), ways: ways, setBits: bits}
	if !ordered {
		c.random = 1
	}
	return c
}

// entry returns the set of a line, and its entry without flags.
func (c *cache) entry(line uint64) (set []uint32, want uint32) {
	at := int(line&(1<<c.setBits-1)) * c.ways
	return c.entries[at : at+c.ways : at+c.ways], uint32(line>>c.setBits)<<flagBits | valid
}

// find returns the set of a line and its place there; -1 if it is missing.
func (c *cache) find(line uint64) (s []uint32, at int) {
	s, want := c.entry(line)
	for i, e := range s {
		if e&^(dirty|prefetched) == want {
			return s, i
		}
	}
	return s, -1
}

// use looks up a line and makes it the one used last. It returns the flags that it had, and
// false if it is missing.
func (c *cache) use(line uint64, flags uint32) (had uint32, ok bool) {
	s, want := c.entry(line)
	for i, e := range s {
		if e&^(dirty|prefetched) != want {
			continue
		}
		if c.random != 0 {
			if e|flags != e || e&prefetched != 0 {
				s[i] = e&^prefetched | flags
			}
			return e & allFlags, true
		}
		for ; i > 0; i-- {
			s[i] = s[i-1]
		}
		s[0] = e&^prefetched | flags
		return e & allFlags, true
	}
	return 0, false
}

// has reports whether a line is there.
func (c *cache) has(line uint64) bool {
	_, at := c.find(line)
	return at >= 0
}

// fill puts in a line that is missing, and returns the one that it replaces.
func (c *cache) fill(line uint64, flags uint32) (old uint64, had uint32) {
	s, want := c.entry(line)
	last := len(s) - 1
	if c.random != 0 {
		last = c.choose(s)
	}
	e := s[last]
	if c.random == 0 {
		copy(s[1:], s)
		last = 0
	}
	s[last] = want | flags
	return uint64(e>>flagBits)<<c.setBits | line&(1<<c.setBits-1), e & allFlags
}

// choose returns a place of a set: an empty one, or any.
func (c *cache) choose(s []uint32) int {
	for i, e := range s {
		if e == 0 {
			return i
		}
	}
	c.random = c.random*1664525 + 1013904223
	return int(uint64(c.random) * uint64(len(s)) >> 32)
}

// take removes a line; false if it is missing.
func (c *cache) take(line uint64) bool {
	s, i := c.find(line)
	if i >= 0 {
		copy(s[i:], s[i+1:])
		s[len(s)-1] = 0
	}
	return i >= 0
}

// mark adds flags to a line; false if it is missing.
func (c *cache) mark(line uint64, flags uint32) bool {
	s, i := c.find(line)
	if i >= 0 {
		s[i] |= flags
	}
	return i >= 0
}

// A Shared is the third level, which cores share.
type Shared struct {
	cache
	exists bool
	// If lines leave it with time: when each was used last, and the time now, in ticks.
	used  []uint16
	now   uint16
	ticks float64    // in a cycle
	lives [64]uint16 // how long lines stay unused, one as likely as another
}

// NewShared returns the third level of a hierarchy.
func NewShared(c Config) *Shared {
	if c.L3.Bytes == 0 {
		return &Shared{}
	}
	s := &Shared{cache: newCache(c.L3.Bytes>>LineBits, c.L3.Ways, false), exists: true}
	if c.Lifetime > 0 {
		s.used, s.ticks = make([]uint16, len(s.entries)), lifeTicks/c.Lifetime
		for i := range s.lives {
			s.lives[i] = uint16(lifeTicks * math.Sqrt(-math.Log((float64(i)+0.5)/float64(len(s.lives)))/math.Ln2))
		}
	}
	return s
}

// lifeTicks is the ticks of a half-life. After twice that time a sixteenth is left, and after half
// of it 84 %: what others bring in has to become the most of a set before. On an AMD EPYC (Zen 4)
// half of 2 MB was gone after 16 ms. It was a quarter after 8, 4 % after 4, and 95 % after 32.
const lifeTicks = 64

// Time sets the time, in cycles.
func (s *Shared) Time(cycles float64) { s.now = uint16(int64(cycles * s.ticks)) }

// use looks up a line that the second level lacks. It returns the flags that it had, and false if
// it is missing or has left.
func (s *Shared) use(line uint64, flags uint32) (had uint32, ok bool) {
	if s.used == nil {
		return s.cache.use(line, flags)
	}
	set, i := s.find(line)
	if i < 0 {
		return 0, false
	}
	at := int(line&(1<<s.setBits-1))*s.ways + i
	s.random = s.random*1664525 + 1013904223
	had = set[i] & allFlags
	if s.now-s.used[at] >= s.lives[s.random>>26] {
		set[i] = 0
		return had, false
	}
	s.used[at] = s.now
	set[i] |= flags
	return had, true
}

// fill puts in a line that is missing, and returns the one that it replaces.
func (s *Shared) fill(line uint64, flags uint32) (old uint64, had uint32) {
	old, had = s.cache.fill(line, flags)
	s.keep(line, 0)
	return old, had
}

// keep marks a line that was in the second level until now; false if it is missing.
func (s *Shared) keep(line uint64, flags uint32) bool {
	if s.used == nil && flags == 0 {
		return true
	}
	set, i := s.find(line)
	if i < 0 {
		return false
	}
	set[i] |= flags
	if s.used != nil {
		s.used[int(line&(1<<s.setBits-1))*s.ways+i] = s.now
	}
	return true
}

// A Hierarchy is the caches that one core sees.
type Hierarchy struct {
	l1i, l2    cache
	early      cache // lines that were prefetched into the first level of data, until they are used
	l3         *Shared
	tlb1, tlb2 cache
	recent     *recent // in place of tlb1, if that has one set
	strides    [256]stride
	streams    [16][4]stream // by page; the latest of a set first
	lastPage   uint64
	lines      uint64 // that the prefetcher of the second level looks ahead
	next       bool
	moved      []Move
	// Touched reports whether a page is accessed for the first time, of those that no cache
	// has a line of. The kernel has just written all of such a page. Nil: none is.
	Touched func(page uint64) bool
}

// A Move is a line that went between the second level and what is behind it, without being
// waited for.
type Move struct {
	Line uint64
	From Level // of a line that was prefetched; of one that is written back, where it went
	Back bool  // it was written back
}

// New returns the caches of a core, which are empty.
func New(c Config, l3 *Shared) *Hierarchy {
	if l3 == nil {
		l3 = NewShared(c)
	}
	h := &Hierarchy{
		lines: uint64(cmp.Or(c.Ahead, streamAhead)), next: c.Next,
		l1i: newCache(c.L1I.Bytes>>LineBits, c.L1I.Ways, true), early: newCache(c.L1D.Bytes>>LineBits, c.L1D.Ways, true),
		l2: newCache(c.L2.Bytes>>LineBits, c.L2.Ways, true), l3: l3,
		tlb1: newCache(c.TLB1.Bytes, c.TLB1.Ways, true), tlb2: newCache(c.TLB2.Bytes, c.TLB2.Ways, true),
	}
	if n := c.TLB1.Bytes; 0 < n && n <= min(c.TLB1.Ways, mostRecent) {
		h.recent = newRecent(n)
	}
	return h
}

// An Access is how an access was answered.
type Access struct {
	Level      Level // the cache that had the line
	Prefetched bool  // and it was there only because it was prefetched
	// Translation is the level of the TLBs that had the page; Third is a page walk.
	Translation Level
}

// Late reports whether the access waits for more than the first level.
func (a Access) Late() bool { return a.Level != First || a.Translation != First }

// Data simulates a load or store at an instruction. Held says that the first level has its
// line. Its Moves are valid until the next call.
func (h *Hierarchy) Data(pc, addr uint64, held bool) Access {
	h.moved = h.moved[:0]
	a := Access{Translation: h.translate(addr >> pageBits)}
	switch line := addr >> LineBits; {
	case held:
	case h.early.take(line):
		a.Prefetched = true
	default:
		a.Level, a.Prefetched = h.fetch(line)
		if h.next && (a.Level == Third || a.Prefetched) && (line+1)<<LineBits%(1<<pageBits) != 0 {
			h.bring(line + 1)
		}
		h.stream(line)
	}
	h.advance(pc, addr)
	return a
}

// Ask simulates that an instruction asks for a line without waiting for it.
func (h *Hierarchy) Ask(addr uint64) Access {
	h.moved = h.moved[:0]
	a := Access{Translation: h.translate(addr >> pageBits)}
	if line := addr >> LineBits; !h.early.has(line) {
		a.Level, _ = h.fetch(line)
		h.early.fill(line, prefetched)
	}
	return a
}

// Back simulates that the first level writes a line back, and adds its Moves.
func (h *Hierarchy) Back(line uint64) {
	if at := physical(line); !h.l2.mark(at, dirty) {
		h.fillSecond(at, dirty)
	}
}

// First returns the sets and ways of the first level of data.
func (c Config) First() (sets, ways int) {
	l := newCache(c.L1D.Bytes>>LineBits, min(c.L1D.Ways, mostWays), true)
	return min(1<<l.setBits, mostSets), l.ways
}

// What QEMU's plugin has room for.
const mostSets, mostWays = 512, 16

// Code simulates the fetch of a line of code.
func (h *Hierarchy) Code(addr uint64) Level {
	h.moved = h.moved[:0]
	line := addr >> LineBits
	if _, ok := h.l1i.use(line, 0); ok {
		return First
	}
	level, _ := h.fetch(line)
	h.l1i.fill(line, 0)
	if next := line + 1; !h.l1i.has(next) && h.l2.has(physical(next)) { // the next line is fetched ahead
		h.l1i.fill(next, prefetched)
	}
	return level
}

// Stream simulates a store past the caches, and returns where its page was found.
func (h *Hierarchy) Stream(addr uint64) (translation Level) {
	h.moved = h.moved[:0]
	return h.translate(addr >> pageBits)
}

// Moves are the lines that the last access moved without waiting for them.
func (h *Hierarchy) Moves() []Move { return h.moved }

// translate looks up a page.
func (h *Hierarchy) translate(page uint64) Level {
	if page == h.lastPage {
		return First
	}
	h.lastPage = page
	if h.recent != nil {
		if h.recent.use(page) {
			return First
		}
	} else if _, ok := h.tlb1.use(page, 0); ok {
		return First
	} else {
		h.tlb1.fill(page, 0)
	}
	if _, ok := h.tlb2.use(page, 0); ok {
		return Second
	}
	h.tlb2.fill(page, 0)
	return Third
}

// fetch finds a line behind the first level, and brings it into the second.
func (h *Hierarchy) fetch(line uint64) (level Level, ahead bool) {
	at := physical(line)
	if had, ok := h.l2.use(at, 0); ok {
		return Second, had&prefetched != 0
	}
	level = h.behind(line)
	h.fillSecond(at, 0)
	return level, false
}

// physical returns the physical address of a line. The second and third level have their sets by
// it, and pages of 4 KiB lie anywhere. So some sets have more lines in use than others. A load in a
// random cycle through 1 MiB takes 22 cycles on a Redwood Cove. Through 1.5 MiB it takes 27 to 38.
// Through 2 MiB it takes 62 to 85, and through 3 MiB 131 to 145. A hit of its second level takes 16, and a
// miss 130. Here 0, 19, 50 and 98 % miss. The page's number is mixed as in MurmurHash3.
func physical(line uint64) uint64 {
	const bits, within = 29, pageBits - LineBits
	page := line >> within * spread
	page = (page ^ page>>32) * spread
	return page>>(64-bits)<<within | line%(1<<within)
}

// spread is an odd number that mixes the bits of its factor: 2^64 divided by the golden ratio.
const spread = 0x9e3779b97f4a7c15

// behind finds a line behind the second level, and brings it into the third.
func (h *Hierarchy) behind(line uint64) Level {
	if !h.l3.exists {
		return Memory
	}
	at := physical(line)
	had, ok := h.l3.use(at, 0)
	if ok {
		return Third
	}
	if had&dirty != 0 {
		h.moved = append(h.moved, Move{Line: at, From: Memory, Back: true})
	}
	if h.Touched != nil && h.Touched(line>>(pageBits-LineBits)) {
		h.written(line >> (pageBits - LineBits))
		return Third
	}
	if old, flags := h.l3.fill(at, 0); flags&dirty != 0 {
		h.moved = append(h.moved, Move{Line: old, From: Memory, Back: true})
	}
	return Memory
}

// written brings a page into the third level that the kernel has just written.
func (h *Hierarchy) written(page uint64) {
	const lines = 1 << (pageBits - LineBits)
	first := physical(page * lines)
	for line := first; line < first+lines; line++ {
		if _, ok := h.l3.use(line, dirty); ok {
			continue
		}
		h.l3.fill(line, dirty)
	}
}

// fillSecond brings a line, by its physical address, into the second level.
func (h *Hierarchy) fillSecond(line uint64, flags uint32) {
	old, had := h.l2.fill(line, flags)
	if had&dirty == 0 {
		if had != 0 {
			h.l3.keep(old, 0)
		}
		return
	}
	if h.l3.exists {
		if h.l3.keep(old, dirty) {
			h.moved = append(h.moved, Move{Line: old, From: Third, Back: true})
			return
		}
		if older, flags := h.l3.fill(old, dirty); flags&dirty != 0 {
			h.moved = append(h.moved, Move{Line: older, From: Memory, Back: true})
		}
		return
	}
	h.moved = append(h.moved, Move{Line: old, From: Memory, Back: true})
}
