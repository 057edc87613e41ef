package samples

import (
	"math"
	"math/bits"

	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// callchains are those of samples, as places in the code. They wait until the functions of all
// places are looked up, and become stacks then. Samples of the same thread name with the same
// places that count the same have one callchain. Callchains share their outer calls with others.
type callchains struct {
	calls  pages[uint32] // by number: threads and places; once they are in the tree, their nodes
	list   pages[callchain]
	slots  []chainSlot // the index of their keys: open addressing
	recent []recentSet // by a hash of the calls down to one
	last   []lastChain // by thread
	long   lastChain   // in place of one that would be too long

	waiting []waitingSum
	hashed  []hashedCall // of the waiting ones
	touched uint64       // what touch read, so that it is read

	intervals pages[uint64] // of the callchains, if stacks are split by them

	common []amountOf // what most samples count
	mixed  stackRows  // the sums of callchains whose samples count different amounts
}

// A callchain is the calls around its samples, with what these count.
type callchain struct {
	caller uint32 // the call that the others are made from; 0 for none
	end    uint32 // of the other calls but the innermost, behind those of the chain before
	leaf   uint32 // the innermost: the place that the samples were taken at
	sums   uint32 // the number of the amount of each, or of a row of mixed, with the mark
}

// mixedSums is the mark of callchain.sums: the number is that of a row of mixed.
const (
	mixedSums = 1 << 31
	maxSums   = mixedSums - 1
)

// A chainSlot has a callchain in the index: its key, a hash of all that decides what it is, and
// its number and 1 with its samples above. 0 is an empty slot.
type chainSlot struct{ key, samples uint64 }

const (
	oneSample  = 1 << 26 // of chainSlot.samples
	chainsMask = oneSample - 1
)

// An amountOf is what a sample counts of a column.
type amountOf struct {
	value  float64
	column int32
}

// A waitingSum is an amount of a sample whose callchain is not looked up yet. Several are
// looked up together, so that the processor waits for memory once.
type waitingSum struct {
	hashedChain
	end    int // of its calls
	key    uint64
	column int
	sums   uint32 // as callchain.sums, without the row
	amount perfdata.Amount
}

// A hashedChain is the callchain of a sample.
type hashedChain struct {
	begin    int // of its calls, among those of all that wait
	thread   int32
	interval int64
}

// mostWaiting is how many wait.
const mostWaiting = 32

// A recentSet has the calls of one hash, the last one first. It fits a cache line.
type recentSet struct {
	calls [recentWays]recentCall
	_     uint32
}

// A recentCall is a call by the hash of its thread and of the calls down to it.
type recentCall struct{ low, high, call uint32 }

// What is no place: threads, by the number of their frame, and callers that were not recorded.
// cutCall marks a call in the tree that is above the node where its stack was cut.
const (
	threadCall    uint32 = 1 << 31
	truncatedCall        = threadCall - 1
	cutCall              = threadCall
)

// Sizes of what callchains remember. A callchain takes chainBytes, and its calls callBytes each.
const (
	recentSets = 1 << 17 // a power of two
	recentWays = 5
	chainBytes = 42
	callBytes  = 4
	maxCommon  = 32
	maxChains  = 1 << 25
	maxCalls   = 1 << 30
)

// A lastChain is the last callchain of a thread, the outermost call first.
type lastChain struct {
	is    chainID
	links []link
	calls []hashedCall
}

// A hashedCall is the place of a call. The hash is that of the thread and of the calls down to it.
type hashedCall struct {
	codePlace
	hash uint64
}

// A chainID is a thread, its frame, and the numbers of its spaces.
type chainID struct {
	tid, frame   int32
	user, kernel uint32
}

// recentThreads is how many threads are remembered, a power of two, and longestRecent how
// many calls of each.
const recentThreads, longestRecent = 256, 512

// newCallchains returns callchains with room in the index for so many.
func newCallchains(room int) callchains {
	c := callchains{slots: make([]chainSlot, max(1<<10, room*4/3)), recent: make([]recentSet, recentSets), last: make([]lastChain, recentThreads)}
	c.calls.add(0)
	return c
}

// memory returns about how many bytes the callchains take.
func (c *callchains) memory() int {
	return c.calls.n*callBytes + c.list.n*chainBytes + c.intervals.n*8 + c.mixed.memory()
}

// slot returns the place of a key in the index, or of the empty slot for it.
func (c *callchains) slot(key uint64) *chainSlot {
	i := c.first(key)
	for s := &c.slots[i]; ; s = &c.slots[i] {
		if s.samples == 0 || s.key == key {
			return s
		}
		if i++; i == uint64(len(c.slots)) {
			i = 0
		}
	}
}

// first returns the slot of a key that is looked at first.
func (c *callchains) first(key uint64) uint64 {
	i, _ := bits.Mul64(key, uint64(len(c.slots)))
	return i
}

// grow makes room in the index for those that wait: at most three quarters of the slots are in use.
func (c *callchains) grow() {
	if (c.list.n+len(c.waiting))*4 <= len(c.slots)*3 {
		return
	}
	old := c.slots
	c.slots = make([]chainSlot, (len(old)+2*len(c.waiting))*3/2)
	for _, s := range old {
		if s.samples != 0 {
			*c.slot(s.key) = s
		}
	}
}

// known returns the number of the call with a hash; 0 if it is not among the recent ones.
func (c *callchains) known(hash uint64) uint32 {
	set := &c.recent[hash%recentSets].calls
	low, high := uint32(hash), uint32(hash>>32)
	for i := range set {
		if r := set[i]; r.low == low && r.high == high && r.call > 0 {
			for ; i > 0; i-- {
				set[i] = set[i-1]
			}
			set[0] = r
			return r.call
		}
	}
	return 0
}

// call adds a call with its hash.
func (c *callchains) call(hash uint64, place uint32) {
	set := &c.recent[hash%recentSets].calls
	for i := recentWays - 1; i > 0; i-- {
		set[i] = set[i-1]
	}
	set[0] = recentCall{uint32(hash), uint32(hash >> 32), uint32(c.calls.add(place))}
}

// sumsOf returns the number of an amount that may be common to many samples; the mark of
// mixed sums if it is not.
func (c *callchains) sumsOf(col int32, a *perfdata.Amount) uint32 {
	is := amountOf{a.Value, col}
	if a.Enabled > 0 {
		return mixedSums
	}
	for i := range c.common {
		if c.common[i] == is {
			return uint32(i)
		}
	}
	if len(c.common) == maxCommon {
		return mixedSums
	}
	c.common = append(c.common, is)
	return uint32(len(c.common) - 1)
}

// add adds an amount of a sample to those that wait. The calls of its callchain are the last
// ones that were hashed.
func (s *Stacks) add(chain hashedChain, col int, a *perfdata.Amount) {
	c := &s.calls
	w := waitingSum{hashedChain: chain, end: len(c.hashed), column: col, sums: c.sumsOf(int32(col), a), amount: *a}
	w.key = mix(mix(c.hashed[w.end-1].hash^uint64(w.interval), seeds[1])^uint64(w.sums), seeds[0])
	c.waiting = append(c.waiting, w)
}

// find adds what waits to its callchains.
func (s *Stacks) find() {
	c := &s.calls
	c.grow()
	for i := range c.waiting {
		c.touched += c.slots[c.first(c.waiting[i].key)].samples
	}
	for i := range c.waiting {
		if w := &c.waiting[i]; c.slot(w.key).samples == 0 {
			for n := w.end - 1; n >= max(w.begin, w.end-3); n-- {
				c.touched += uint64(c.recent[c.hashed[n].hash%recentSets].calls[0].low)
			}
			c.touched += uint64(s.code.touch(c.hashed[w.end-1].codePlace))
		}
	}
	for i := range c.waiting {
		w := &c.waiting[i]
		slot := c.slot(w.key)
		if slot.samples == 0 {
			*slot = chainSlot{w.key, uint64(c.list.add(s.linked(w))) + 1}
			if s.spans.wanted {
				c.intervals.add(uint64(w.interval))
			}
		}
		if slot.samples += oneSample; w.sums == mixedSums {
			row := c.list.at(int(slot.samples&chainsMask)-1).sums & maxSums
			c.mixed.add(int(row), w.column, &w.amount)
		}
	}
	c.waiting, c.hashed = c.waiting[:0], c.hashed[:0]
}

// chainOf hashes the callchain of a sample.
func (s *Stacks) chainOf(rec *perfdata.Sample, time uint64) hashedChain {
	c := &s.calls
	if len(c.waiting) >= mostWaiting {
		s.find()
	}
	s.wordsOf(rec)
	in, thread := s.code.space(rec.PID(), time), s.thread(rec, time)
	out := hashedChain{begin: len(c.hashed), thread: thread}
	if s.spans.wanted {
		out.interval = s.r.contexts.number(rec)
	}
	for i, lacks := 0, s.linksOf(rec, time); lacks > 0; i, lacks = i+1, lacks>>1 {
		s.flawed[i] += int64(lacks & 1)
	}
	c.hashed = append(c.hashed, s.hashed(&in, int32(rec.TID()), thread)...)
	return out
}

// hashed returns the calls of the links at hand, the last callchain of the thread from now on.
// The outer calls are mostly those of the one before.
func (s *Stacks) hashed(in *codeSpace, tid, thread int32) []hashedCall {
	c := &s.calls
	last, is := &c.last[uint32(tid)%recentThreads], chainID{tid, thread, in.user, in.kernel}
	if len(s.chain) > longestRecent {
		last = &c.long
	}
	if last.is != is {
		last.is, last.links, last.calls = is, last.links[:0], last.calls[:0]
	}
	n, same := len(s.chain), 0
	for most := min(n, len(last.links)); same < most && last.links[same] == s.chain[n-1-same]; {
		same++
	}
	hash := threadHash(thread)
	if same > 0 {
		hash = last.calls[same-1].hash
	}
	last.links, last.calls = last.links[:same], last.calls[:same]
	for i := n - same - 1; i >= 0; i-- {
		place := s.code.placeOf(in, s.chain[i])
		hash = place.hash(hash)
		last.links, last.calls = append(last.links, s.chain[i]), append(last.calls, hashedCall{place, hash})
	}
	return last.calls
}

// threadHash is the hash of no calls in a thread.
func threadHash(thread int32) uint64 { return mix(uint64(uint32(thread)), seeds[1]) }

// linked returns the callchain of what waits. Its outer calls are mostly known.
func (s *Stacks) linked(w *waitingSum) callchain {
	c := &s.calls
	calls := c.hashed[w.begin : w.end-1]
	n, caller := len(calls), uint32(0)
	for n > 0 && caller == 0 {
		if caller = c.known(calls[n-1].hash); caller == 0 {
			n--
		}
	}
	if hash := threadHash(w.thread); caller == 0 {
		if caller = c.known(hash); caller == 0 {
			c.call(hash, threadCall|uint32(w.thread))
		}
	}
	for _, call := range calls[n:] {
		c.call(call.hash, s.code.number(call.codePlace))
	}
	sums := w.sums
	if sums == mixedSums {
		sums |= uint32(c.mixed.room(s.columns))
	}
	return callchain{caller, uint32(c.calls.n), s.code.number(c.hashed[w.end-1].codePlace), sums}
}

// wordsOf fills in the addresses and markers of a sample's callchain.
func (s *Stacks) wordsOf(rec *perfdata.Sample) {
	if s.words = s.words[:0]; s.chains {
		s.words = rec.Callchain().AppendTo(s.words)
	}
}

// settle makes stacks of the callchains. The places of all of them are looked up at once.
func (s *Stacks) settle() {
	c := &s.calls
	s.find()
	samples := make([]uint64, c.list.n)
	for _, slot := range c.slots {
		if slot.samples != 0 {
			samples[slot.samples&chainsMask-1] = slot.samples / oneSample
		}
	}
	c.slots, c.recent, c.last, c.long = nil, nil, nil, lastChain{}
	s.code.lookUp()
	s.r.symbols.Function(profile.Place{}) // the last file is given up
	next := uint32(1)
	for i := range c.list.n {
		if i%settledTogether == 0 {
			if s.memory() > s.limit() {
				s.fold(next)
			}
			s.touch(i, next)
		}
		chain := *c.list.at(i)
		at := *c.calls.at(int(chain.caller))
		for ; next < chain.end; next++ {
			call := c.calls.at(int(next))
			if at&cutCall == 0 {
				at = uint32(s.under(int32(at), *call))
			}
			*call = at
		}
		if at&cutCall == 0 {
			at = uint32(s.under(int32(at), chain.leaf))
		}
		s.settled(i, at, samples[i])
		c.list.free(i)
	}
}

// settledTogether is how many callchains settle between two looks at the memory.
const settledTogether = 32

// touch reads the nodes that callchains begin at. So the processor waits for several at once.
func (s *Stacks) touch(from int, settled uint32) {
	c, first := &s.calls, [settledTogether]int32{}
	for i := range min(settledTogether, c.list.n-from) {
		if caller := c.list.at(from + i).caller; caller < settled && s.tree.nodes.n > 0 {
			first[i] = s.tree.nodes.at(int(*c.calls.at(int(caller)) &^ cutCall)).children()
		}
	}
	for _, n := range first {
		if n > 0 {
			c.touched += uint64(s.tree.nodes.at(int(n)).frame)
		}
	}
}

// settled adds the sums of a callchain with so many samples to those of its stack.
func (s *Stacks) settled(n int, at uint32, samples uint64) {
	c, chain := &s.calls, s.calls.list.at(n)
	is, cut := stackRow{int32(at), s.code.numbers[chain.leaf]}, at&cutCall != 0
	if cut {
		is = stackRow{s.otherStacks(int32(at &^ cutCall)), foldedCode}
	}
	row := int(s.rows.of(&s.tree, is, s.columns))
	add := func(col int, sum *stackSum) {
		s.rows.merge(s.rows.sums.at(row*s.columns+col), sum, &c.mixed)
		if s.spans.wanted {
			s.spans.add(row, col, int64(*c.intervals.at(n)), sum, &c.mixed)
		}
		if cut {
			whole := c.mixed.whole(sum)
			s.lose(s.code.numbers[chain.leaf], col, &whole)
		}
	}
	number := int(chain.sums & maxSums)
	if chain.sums&mixedSums == 0 {
		for samples > 0 {
			some, is := min(samples, math.MaxUint32), c.common[number]
			sum := stackSum{value: is.value * float64(some), squares: is.value * is.value * float64(some), samples: uint32(some)}
			add(int(is.column), &sum)
			samples -= some
		}
		return
	}
	for col := range s.columns {
		if sum := c.mixed.sums.at(number*s.columns + col); sum.samples > 0 || sum.large > 0 {
			add(col, sum)
		}
	}
}

// under returns the node of a call below a node.
func (s *Stacks) under(node int32, call uint32) int32 {
	switch {
	case call&threadCall != 0:
		return s.tree.child(0, int32(call&^threadCall))
	case call == truncatedCall:
		return s.tree.child(node, s.frame(frameKey{kind: TruncatedFrame}))
	}
	if !s.chains {
		file := s.code.files.list[s.code.places.at(int(call)).file]
		node = s.extend(node, []int32{s.frame(frameKey{kind: ModuleFrame, file: file})})
	}
	return s.extend(node, s.code.at(s.code.numbers[call]))
}
