package samples

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// callchains are those of samples, as places in the code. They wait until the functions of all
// places are looked up, and become stacks then. Samples of the same thread name with the same
// places that count the same have one callchain. Callchains share their outer calls with others.
type callchains struct {
	calls  pages[uint32] // by number: threads and places; once they are in the tree, their nodes
	list   pages[callchain]
	index  numberIndex // of their keys; the numbers are theirs and 1
	recent []recentSet // by a hash of the calls down to one
	last   []lastChain // by thread
	other  lastChain   // one that the next one is not compared with

	waiting []waitingSum
	hashed  []hashedCall // of the waiting and the last ones; 0 is none
	path    []int32      // numbers of those of the callchain that is added
	touched uint64       // what touch read, so that it is read

	intervals pages[uint64] // of the callchains, if stacks are split by them

	common []amountOf // what most samples count
	mixed  stackRows  // the sums of callchains whose samples count different amounts
}

// A callchain is the calls around its samples, with what these count.
type callchain struct {
	low, high uint32 // its key, a hash of all that decides what it is
	chainCalls
}

// chainCalls are the calls of a callchain, with its samples.
type chainCalls struct {
	samples uint32 // their number, or that of a row of mixed
	caller  uint32 // the call that the others are made from; 0 for none
	// The place of the innermost call, where the samples were taken; above it the number of
	// the amount of each, and the mark of further calls.
	leaf uint32
}

// What chainCalls.leaf has above the place: the number of an amount, or mixedSums, and the mark
// of calls behind those of the chain before.
const (
	placeBits    = 22
	sumsMask     = 1<<6 - 1
	mixedSums    = maxCommon
	furtherCalls = 1 << 31
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
	key    uint64
	column int
	sums   uint32 // the number of the amount, or mixedSums
	number uint32 // of the callchain, and 1; 0 for none yet
	amount perfdata.Amount
}

// A hashedChain is the callchain of a sample.
type hashedChain struct {
	leaf     int32 // the number of its innermost call
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
// lastCall marks the last one of a callchain. cutCall marks a call in the tree that is above the
// node where its stack was cut.
const (
	threadCall    uint32 = 1 << 31
	lastCall      uint32 = 1 << 30
	truncatedCall        = lastCall - 1
	cutCall              = threadCall
)

// Sizes of what callchains remember. A callchain takes chainBytes, and its calls callBytes each.
const (
	recentSets = 1 << 17 // a power of two
	recentWays = 5
	chainBytes = 20
	callBytes  = 4
	maxCommon  = 32
	maxChains  = 1 << 25
	maxCalls   = 1 << 30
)

// A lastChain is the last callchain of a thread: the words of the record, and the calls, the
// outermost first.
type lastChain struct {
	is    chainID
	words []uint64
	calls []lastCalled
}

// A lastCalled is the number of a hashedCall.
type lastCalled struct {
	number int32
	mode   profile.Mode
}

// A hashedCall is the place of a call. The hash is that of the thread and of the calls down to it.
type hashedCall struct {
	offset, hash uint64
	file         uint32
	outer        int32  // the number of its caller; 0 for none
	call         uint32 // among the calls; 0 if that is not known
}

// mostHashed is how many calls there are before the last callchains are forgotten.
const mostHashed = 1 << 14

// place returns the place of a call.
func (h *hashedCall) place() codePlace { return codePlace{h.offset, h.file} }

// A chainID is a thread, its frame, and the numbers of its spaces.
type chainID struct {
	tid, frame   int32
	user, kernel uint32
	truncated    bool
}

// recentThreads is how many threads are remembered, a power of two, and longestRecent how
// many calls of each.
const recentThreads, longestRecent = 256, 512

// newCallchains returns callchains with room in the index for so many.
func newCallchains(room int) callchains {
	c := callchains{recent: roomFor[recentSet](recentSets), last: make([]lastChain, recentThreads), hashed: make([]hashedCall, 1, mostHashed+1<<10)}
	c.index.make(room)
	c.calls.add(0)
	return c
}

// memory returns about how many bytes the callchains take.
func (c *callchains) memory() int {
	return c.calls.n*callBytes + c.list.n*chainBytes + len(c.index.slots)*4 + c.intervals.n*8 + c.mixed.memory()
}

// look returns the number of the callchain with a key, and 1. It is 0 if there is none; then a new
// one goes into the slot together with the tag.
func (c *callchains) look(key uint64) (n uint32, slot int, tag uint32) {
	return c.index.look(uint32(key), func(n uint32) bool {
		is := c.list.at(int(n) - 1)
		return is.low == uint32(key) && is.high == uint32(key>>32)
	})
}

// grow makes room in the index for those that wait.
func (c *callchains) grow() {
	if c.index.full(c.list.n + len(c.waiting)) {
		c.index.make(2 * (c.list.n + len(c.waiting)))
		for i := range c.list.n {
			c.index.put(c.list.at(i).low, uint32(i)+1)
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

// call adds a call with its hash, and returns its number.
func (c *callchains) call(hash uint64, place uint32) (number uint32) {
	number = uint32(c.calls.add(place))
	set := &c.recent[hash%recentSets].calls
	for i := recentWays - 1; i > 0; i-- {
		set[i] = set[i-1]
	}
	set[0] = recentCall{uint32(hash), uint32(hash >> 32), number}
	return number
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
	w := waitingSum{hashedChain: chain, column: col, sums: c.sumsOf(int32(col), a), amount: *a}
	w.key = mix(mix(c.hashed[w.leaf].hash^uint64(w.interval), seeds[1])^uint64(w.sums), seeds[0])
	c.waiting = append(c.waiting, w)
}

// find adds what waits to its callchains.
func (s *Stacks) find() {
	c := &s.calls
	c.grow()
	for i := range c.waiting {
		c.touched += uint64(c.index.at(uint32(c.waiting[i].key)))
	}
	for i := range c.waiting {
		if n := int(c.index.at(uint32(c.waiting[i].key))); n > 0 && n <= c.list.n {
			c.touched += uint64(c.list.at(n - 1).low)
		}
	}
	for i := range c.waiting {
		w := &c.waiting[i]
		if w.number, _, _ = c.look(w.key); w.number == 0 {
			leaf := &c.hashed[w.leaf]
			c.touched += uint64(s.code.touch(leaf.place()))
			for n, i := leaf.outer, 0; n > 0 && i < 5; i++ {
				h := &c.hashed[n]
				if h.call > 0 {
					break
				}
				c.touched += uint64(c.recent[h.hash%recentSets].calls[0].low) + uint64(s.code.touch(h.place()))
				n = h.outer
			}
		}
	}
	for i := range c.waiting {
		w := &c.waiting[i]
		if w.number == 0 {
			w.number = s.added(w)
		}
		chain := c.list.at(int(w.number) - 1)
		if w.sums == mixedSums {
			c.mixed.add(int(chain.samples), w.column, &w.amount)
		} else if chain.samples++; chain.samples == math.MaxUint32 {
			chain.high = ^chain.high // the next sample begins another one
		}
	}
	c.waiting = c.waiting[:0]
}

// chainOf hashes the callchain of a sample.
func (s *Stacks) chainOf(x *chained) hashedChain {
	c := &s.calls
	if len(c.waiting) >= mostWaiting {
		s.find()
	}
	if s.full() {
		s.settle(false)
		s.summed.drain()
		*c = newCallchains(0)
		s.code.forget()
	}
	if len(c.hashed) > mostHashed {
		s.find()
		c.forget()
	}
	out, lacks := hashedChain{thread: s.thread(x)}, flaws(0)
	if s.spans.wanted {
		out.interval = s.r.contexts.number(x.stamp)
	}
	out.leaf, lacks = s.hashed(x, out.thread)
	for i := 0; lacks > 0; i, lacks = i+1, lacks>>1 {
		s.flawed[i] += int64(lacks & 1)
	}
	return out
}

// forget forgets the last callchains.
func (c *callchains) forget() {
	c.hashed = append(c.hashed[:0], hashedCall{})
	for i := range c.last {
		c.last[i].words = c.last[i].words[:0]
	}
}

// hashed returns the number of the innermost call of a sample, and what its calls lack. The outer
// calls are mostly those of the thread's sample before, where the words of the record are the same.
func (s *Stacks) hashed(x *chained, thread int32) (leaf int32, lacks flaws) {
	c, in := &s.calls, s.code.space(int(x.pid), x.time)
	last, is := &c.last[uint32(x.tid)%recentThreads], chainID{x.tid, thread, in.user, in.kernel, x.truncated()}
	compared := x.words.Len() <= longestRecent && s.unwind.unwinder == nil && x.event.BranchType&perffile.BranchCallStack == 0
	if !compared {
		last = &c.other
	}
	same, outer := 0, 0
	if compared && last.is == is {
		same, outer = last.common(x.words)
	}
	last.keep(is, same, x.words)
	lacks, mode := s.linksOf(x, last.words[same:], same > 0, is.truncated)
	if is.truncated && same > 0 {
		outer++ // what is missing
	}
	if same > 0 && (mode != last.calls[outer].mode || lacks&(1<<flawDeferred) != 0) {
		same, outer = 0, 0
		last.keep(is, 0, x.words)
		lacks, _ = s.linksOf(x, last.words, false, is.truncated)
	}
	hash := threadHash(thread)
	if outer > 0 {
		leaf = last.calls[outer-1].number
		hash = c.hashed[leaf].hash
	}
	last.calls = slices.Grow(last.calls[:outer], len(s.chain))[:outer+len(s.chain)]
	calls, from := last.calls[outer:], len(c.hashed)
	c.hashed = slices.Grow(c.hashed, len(s.chain))[:from+len(s.chain)]
	hashed, chain, code := c.hashed[from:], s.chain, s.code
	for i := range hashed {
		l := &chain[len(chain)-1-i]
		place, ok := code.near(&in, l)
		if !ok {
			place = code.placeOf(&in, *l)
		}
		hash = place.hash(hash)
		hashed[i] = hashedCall{offset: place.offset, hash: hash, file: place.file, outer: leaf}
		leaf = int32(from + i)
		calls[i] = lastCalled{leaf, l.mode}
	}
	if lacks&(1<<flawDeferred) != 0 {
		last.words = last.words[:0] // the next one is not compared with it
	}
	return leaf, lacks
}

// keep notes the words of a callchain. So many of the outermost are those of the last one.
func (l *lastChain) keep(is chainID, same int, words perfdata.Words) {
	list := l.words[:same]
	for i := words.Len() - 1 - same; i >= 0; i-- {
		list = append(list, words.At(i))
	}
	l.is, l.words = is, list
}

// common returns how many of the outermost words are those of the last callchain, and how many
// calls these are. The next word is the same as well, and an address: so the mode of all is its mode.
func (l *lastChain) common(words perfdata.Words) (same, calls int) {
	n := words.Len()
	for i, w := range l.words[:min(n, len(l.words))] {
		if w != words.At(n-1-i) {
			break
		}
		if same = i + 1; w < perffile.ContextMax {
			calls++
		}
	}
	for same > 0 {
		if same--; l.words[same] < perffile.ContextMax {
			return same, calls - 1
		}
	}
	return 0, 0
}

// threadHash is the hash of no calls in a thread.
func threadHash(thread int32) uint64 { return mix(uint64(uint32(thread)), seeds[1]) }

// added returns the number of the callchain of what waits, and 1. A new one is mostly made from
// known calls.
func (s *Stacks) added(w *waitingSum) uint32 {
	c := &s.calls
	number, slot, tag := c.look(w.key)
	if number > 0 {
		return number
	}
	leaf, before, caller := &c.hashed[w.leaf], c.calls.n, uint32(0)
	c.path = c.path[:0]
	for n := leaf.outer; n > 0 && caller == 0; {
		h := &c.hashed[n]
		if h.call == 0 {
			h.call = c.known(h.hash)
		}
		if caller = h.call; caller == 0 {
			c.path = append(c.path, n)
		}
		n = h.outer
	}
	if hash := threadHash(w.thread); caller == 0 {
		if caller = c.known(hash); caller == 0 {
			c.call(hash, threadCall|uint32(w.thread))
		}
	}
	for i := len(c.path) - 1; i >= 0; i-- {
		h := &c.hashed[c.path[i]]
		h.call = c.call(h.hash, s.code.number(h.place()))
	}
	is := callchain{uint32(w.key), uint32(w.key >> 32), chainCalls{0, caller, s.code.number(leaf.place()) | w.sums<<placeBits}}
	if c.calls.n > before {
		*c.calls.at(c.calls.n - 1) |= lastCall
		is.leaf |= furtherCalls
	}
	if w.sums == mixedSums {
		is.samples = uint32(c.mixed.room(s.columns))
	}
	if s.spans.wanted {
		c.intervals.add(uint64(w.interval))
	}
	number = uint32(c.list.add(is)) + 1
	c.index.slots[slot] = tag | number
	return number
}

// full reports whether the callchains have to be settled to make room. Places stay below 1<<placeBits:
// the samples that wait have some 2^18 more calls at most, as a record has 64 KiB.
func (s *Stacks) full() bool {
	c := &s.calls
	if s.summed != nil && c.list.n*(rowBytes+s.columns*sumBytes)+(c.list.n+c.calls.n)*nodeBytes > s.limit()/3*2 {
		return true // their stacks, if they share nothing, should not be folded
	}
	return c.memory() > max(s.limit()-s.memory(), s.limit()/4) || c.list.n >= maxChains || c.calls.n >= maxCalls || s.code.places.n >= 2*maxCodePlaces
}

// settle makes stacks of the callchains. The places of all of them are looked up at once. Of the
// last ones, what finds places and frames takes no memory any more.
func (s *Stacks) settle(last bool) {
	c := &s.calls
	s.find()
	c.index, c.recent, c.last = numberIndex{}, nil, nil
	var list pages[chainCalls] // without the keys: looking up needs memory
	for i := range c.list.n {
		list.add(c.list.at(i).chainCalls)
		c.list.free(i)
	}
	c.list = pages[callchain]{}
	order := inOrder(&s.code.places, len(s.code.numbers))
	if last && s.chains {
		s.code.places, s.code.index, s.code.seen = pages[codePlace]{}, numberIndex{}, nil
	}
	s.code.lookUp(order)
	s.r.symbols.Function(profile.Place{}) // the last file is given up
	if last && s.chains {
		s.frames, s.functions, s.threads = nil, nil, nil
		s.code.lists = nil
		s.code.leaves = places{codes: s.code.leaves.codes}
	}
	next := uint32(1)
	for i := range list.n {
		if i%settledTogether == 0 {
			if s.memory() > s.limit() {
				s.fold(next)
			}
			s.touch(&list, i, next)
		}
		chain := *list.at(i)
		at := *c.calls.at(int(chain.caller))
		for more := chain.leaf&furtherCalls != 0; more; next++ {
			call := c.calls.at(int(next))
			more = *call&lastCall == 0
			if at&cutCall == 0 {
				at = uint32(s.under(int32(at), *call&^lastCall))
			}
			*call = at
		}
		if at&cutCall == 0 {
			at = uint32(s.under(int32(at), chain.leaf%(1<<placeBits)))
		}
		s.settled(i, chain, at)
		list.free(i)
	}
}

// settledTogether is how many callchains settle between two looks at the memory.
const settledTogether = 32

// touch reads the nodes that callchains begin at. So the processor waits for several at once.
func (s *Stacks) touch(list *pages[chainCalls], from int, settled uint32) {
	c, first := &s.calls, [settledTogether]int32{}
	for i := range min(settledTogether, list.n-from) {
		if caller := list.at(from + i).caller; caller < settled && s.tree.nodes.n > 0 {
			first[i] = s.tree.nodes.at(int(*c.calls.at(int(caller)) &^ cutCall)).children()
		}
	}
	for _, n := range first {
		if n > 0 {
			c.touched += uint64(s.tree.nodes.at(int(n)).frame)
		}
	}
}

// settled adds the sums of a callchain to those of its stack.
func (s *Stacks) settled(n int, chain chainCalls, at uint32) {
	c := &s.calls
	code, cut := s.code.numbers[chain.leaf%(1<<placeBits)].frames, at&cutCall != 0
	is := stackRow{int32(at), code}
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
			s.lose(code, col, &whole)
		}
	}
	if number := chain.leaf >> placeBits & sumsMask; number != mixedSums {
		is, n := c.common[number], float64(chain.samples)
		add(int(is.column), &stackSum{value: is.value * n, squares: is.value * is.value * n, samples: chain.samples})
		return
	}
	for col := range s.columns {
		if sum := c.mixed.sums.at(int(chain.samples)*s.columns + col); sum.samples > 0 || sum.large > 0 {
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
		return s.tree.child(node, s.truncation)
	}
	if !s.chains {
		file := s.code.files.list[s.code.places.at(int(call)).file]
		node = s.extend(node, []int32{s.frame(frameKey{kind: ModuleFrame, file: file})})
	} else if f := s.code.numbers[call].alone; f >= 0 && s.r.opts.By > counts.SourceFile {
		return s.tree.child(node, f)
	}
	return s.extend(node, s.code.at(s.code.numbers[call].frames))
}
