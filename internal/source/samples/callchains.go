package samples

import (
	"math"

	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// callchains are those of samples, as places in the code. They wait until the functions of all
// places are looked up, and become stacks then. Samples of the same thread name with the same
// places have one callchain. Callchains share their outer calls with others.
type callchains struct {
	calls  pages[uint32] // by number: threads and places; once they are in the tree, their nodes
	list   pages[callchain]
	index  numberIndex  // of their keys; the numbers are those of callchains and 1
	recent []recentCall // by a hash of the calls down to one
	last   []lastChain  // by thread
	long   lastChain    // in place of one that would be too long

	intervals pages[uint64] // of the callchains, if stacks are split by them

	common []amountOf // what most samples count
	mixed  stackRows  // the sums of callchains whose samples count different amounts
}

// A callchain is the calls around its samples, with what these count.
type callchain struct {
	key    uint64 // a hash of all that decides what it is
	caller uint32 // the call that the others are made from; 0 for none
	end    uint32 // of the other calls but the innermost, behind those of the chain before
	equal  uint32 // samples that count the same
	sums   uint32 // the number of their amount, or of a row of mixed, with the mark
	leaf   uint32 // the innermost: the place that the samples were taken at
}

// mixedSums is the mark of callchain.sums: the number is that of a row of mixed.
const (
	mixedSums = 1 << 31
	maxSums   = mixedSums - 1
)

// An amountOf is what a sample counts of a column.
type amountOf struct {
	value  float64
	column int32
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
	recentCalls = 1 << 19 // a power of two
	recentWays  = 4       // those of one hash, the last one first
	chainBytes  = 38
	callBytes   = 4
	maxCommon   = 32
	maxChains   = 1 << 25
	maxCalls    = 1 << 30
)

// A lastChain is the last callchain of a thread, the outermost call first.
type lastChain struct {
	is       chainID
	calls    []lastCall
	number   uint32 // of the callchain and 1; 0 for none
	interval int64
}

// A lastCall is a call of the last callchain. The hash is that of the thread and of the calls down
// to it.
type lastCall struct {
	link
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

func newCallchains() callchains {
	c := callchains{recent: make([]recentCall, recentCalls), last: make([]lastChain, recentThreads)}
	c.calls.add(0)
	return c
}

// memory returns about how many bytes the callchains take.
func (c *callchains) memory() int {
	return c.calls.n*callBytes + c.list.n*chainBytes + c.intervals.n*8 + c.mixed.memory()
}

// find returns the number of the callchain with a key and 1; 0 if there is none. Then the next
// one goes into the slot together with the tag.
func (c *callchains) find(key uint64) (n uint32, slot int, tag uint32) {
	if c.index.full(c.list.n) {
		c.index.make(2*c.list.n + 1)
		for i := range c.list.n {
			c.index.put(uint32(c.list.at(i).key), uint32(i)+1)
		}
	}
	return c.index.look(uint32(key), func(n uint32) bool { return c.list.at(int(n)-1).key == key })
}

// recentOf returns the calls that may have a hash.
func (c *callchains) recentOf(hash uint64) []recentCall {
	return c.recent[hash%(recentCalls/recentWays)*recentWays:][:recentWays]
}

// known returns the number of the call with a hash; 0 if it is not among the recent ones.
func (c *callchains) known(hash uint64) uint32 {
	set := c.recentOf(hash)
	for i, r := range set {
		if r.low == uint32(hash) && r.high == uint32(hash>>32) && r.call > 0 {
			copy(set[1:i+1], set[:i])
			set[0] = r
			return r.call
		}
	}
	return 0
}

// call adds a call with its hash.
func (c *callchains) call(hash uint64, place uint32) {
	set := c.recentOf(hash)
	copy(set[1:], set)
	set[0] = recentCall{uint32(hash), uint32(hash >> 32), uint32(c.calls.add(place))}
}

// add adds an amount to those of a callchain.
func (c *callchains) add(chain, columns, col int, a *perfdata.Amount) {
	at := c.list.at(chain)
	number := at.sums & maxSums
	if at.sums&mixedSums == 0 {
		is := amountOf{a.Value, int32(col)}
		if at.equal == 0 && a.Enabled == 0 {
			if n, ok := c.commonOf(is); ok {
				at.equal, at.sums = 1, at.sums|n
				return
			}
		}
		if at.equal > 0 && a.Enabled == 0 && at.equal < math.MaxUint32 && c.common[number] == is {
			at.equal++
			return
		}
		row := c.mixed.room(columns)
		if at.equal > 0 {
			was := c.common[number]
			sum := was.sum(at.equal)
			c.mixed.merge(c.mixed.sums.at(row*columns+int(was.column)), &sum, &c.mixed)
		}
		at.sums, number = at.sums&^maxSums|mixedSums|uint32(row), uint32(row)
	}
	c.mixed.add(int(number), col, a)
}

// commonOf returns the number of an amount that may be common to many samples.
func (c *callchains) commonOf(is amountOf) (n uint32, ok bool) {
	for i := range c.common {
		if c.common[i] == is {
			return uint32(i), true
		}
	}
	if len(c.common) == maxCommon {
		return 0, false
	}
	c.common = append(c.common, is)
	return uint32(len(c.common) - 1), true
}

// sum returns the sum of so many.
func (a amountOf) sum(samples uint32) stackSum {
	n := float64(samples)
	return stackSum{value: a.value * n, squares: a.value * a.value * n, samples: samples}
}

// chainOf returns the number of the callchain of a sample.
func (s *Stacks) chainOf(rec *perfdata.Sample, time uint64) int {
	c := &s.calls
	s.wordsOf(rec)
	in, thread := s.code.space(rec.PID(), time), s.thread(rec, time)
	interval := int64(0)
	if s.spans.wanted {
		interval = s.r.contexts.number(rec)
	}
	for i, lacks := 0, s.linksOf(rec, time); lacks > 0; i, lacks = i+1, lacks>>1 {
		s.flawed[i] += int64(lacks & 1)
	}
	last := s.hashed(&in, int32(rec.TID()), thread)
	if last.number > 0 && last.interval == interval {
		return int(last.number) - 1
	}
	key := last.calls[len(last.calls)-1].hash
	if s.spans.wanted {
		key = mix(key^uint64(interval), seeds[1])
	}
	found, slot, tag := c.find(key)
	if found == 0 {
		chain := s.linked(&in, last, thread)
		chain.key = key
		found = uint32(c.list.add(chain)) + 1
		if c.index.slots[slot] = tag | found; s.spans.wanted {
			c.intervals.add(uint64(interval))
		}
	}
	last.number, last.interval = found, interval
	return int(found) - 1
}

// hashed returns the links at hand with their hashes, the last callchain of the thread from now
// on. The outer calls are mostly those of the one before.
func (s *Stacks) hashed(in *codeSpace, tid, thread int32) *lastChain {
	c := &s.calls
	last, is := &c.last[uint32(tid)%recentThreads], chainID{tid, thread, in.user, in.kernel}
	if len(s.chain) > longestRecent {
		last = &c.long
	}
	if last.is != is {
		last.is, last.calls, last.number = is, last.calls[:0], 0
	}
	n, same := len(s.chain), 0
	for most := min(n, len(last.calls)); same < most && last.calls[same].link == s.chain[n-1-same]; {
		same++
	}
	if same == n && n == len(last.calls) {
		return last
	}
	last.number = 0
	hash := threadHash(thread)
	if last.calls = last.calls[:same]; same > 0 {
		hash = last.calls[same-1].hash
	}
	for i := n - same - 1; i >= 0; i-- {
		hash = s.code.placeOf(in, s.chain[i]).hash(hash)
		last.calls = append(last.calls, lastCall{s.chain[i], hash})
	}
	return last
}

// threadHash is the hash of no calls in a thread.
func threadHash(thread int32) uint64 { return mix(uint64(uint32(thread)), seeds[1]) }

// linked returns a callchain of hashed links. Its outer calls are mostly known.
func (s *Stacks) linked(in *codeSpace, last *lastChain, thread int32) (out callchain) {
	c, inner := &s.calls, len(last.calls)-1
	n := inner
	for n > 0 && out.caller == 0 {
		if out.caller = c.known(last.calls[n-1].hash); out.caller == 0 {
			n--
		}
	}
	if out.caller == 0 {
		hash := threadHash(thread)
		if out.caller = c.known(hash); out.caller == 0 {
			c.call(hash, threadCall|uint32(thread))
		}
	}
	for _, call := range last.calls[n:inner] {
		c.call(call.hash, s.code.number(s.code.placeOf(in, call.link)))
	}
	out.end, out.leaf = uint32(c.calls.n), s.code.number(s.code.placeOf(in, last.calls[inner].link))
	return out
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
	c.index, c.recent, c.last, c.long = numberIndex{}, nil, nil, lastChain{}
	s.code.lookUp()
	s.r.symbols.Function(profile.Place{}) // the last file is given up
	next := uint32(1)
	for i := range c.list.n {
		if s.memory() > s.limit() {
			s.fold(next)
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
		s.settled(i, at)
		c.list.free(i)
	}
}

// settled adds the sums of a callchain to those of its stack.
func (s *Stacks) settled(n int, at uint32) {
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
		sum := c.common[number].sum(chain.equal)
		add(int(c.common[number].column), &sum)
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
