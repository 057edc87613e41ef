package samples

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// callchains are those of samples, as places in the code. They wait until the functions of all
// places are looked up, and become stacks then. Samples with the same recorded addresses have
// one callchain. Callchains share their outer calls with others.
type callchains struct {
	calls  pages[uint32] // by number: threads and places; once they are in the tree, their nodes
	list   pages[callchain]
	keys   pages[uint64] // of the callchains; 0 for one that no other sample can have
	index  numberIndex   // of the keys; the numbers are those of callchains and 1
	recent []recentCall  // by a hash of the caller and the place
	last   []lastChain   // by thread

	intervals pages[uint64] // of the callchains, if stacks are split by them

	common []amountOf // what most samples count
	mixed  stackRows  // the sums of callchains whose samples count different amounts
}

// A callchain is the calls around its samples, with what these count.
type callchain struct {
	caller uint32 // the call that the others are made from; 0 for none
	end    uint32 // of the other calls, which follow those of the chain before
	equal  uint32 // samples that count the same
	sums   uint32 // the number of their amount, or of a row of mixed, with marks
	leaf   uint32 // the place that the samples were taken at
}

// Marks of callchain.sums.
const (
	mixedSums  = 1 << 26 // the number is that of a row of mixed
	maxSums    = mixedSums - 1
	lacksShift = 27 // above it is what the callchain lacks
)

// An amountOf is what a sample counts of a column.
type amountOf struct {
	value  float64
	column int32
}

// A recentCall is a call with its caller.
type recentCall struct{ caller, place, call uint32 }

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
	chainBytes  = 34
	callBytes   = 4
	maxCommon   = 32
	maxChains   = 1 << 25
	maxCalls    = 1 << 30
)

// A lastChain is the last callchain of a thread.
type lastChain struct {
	is    chainID
	chain []link
	calls []uint32
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
	if c.index.full(c.keys.n) {
		c.index.make(2*c.keys.n + 1)
		for i := range c.keys.n {
			if k := *c.keys.at(i); k > 0 {
				c.index.put(uint32(k), uint32(i)+1)
			}
		}
	}
	return c.index.look(uint32(key), func(n uint32) bool { return *c.keys.at(int(n) - 1) == key })
}

// call returns the number of a call, and whether it is new.
func (c *callchains) call(caller, place uint32) (call uint32, added bool) {
	set := c.recent[mix(uint64(caller)<<32|uint64(place), seeds[0])%(recentCalls/recentWays)*recentWays:][:recentWays]
	for i := range set {
		if r := set[i]; r.caller == caller && r.place == place && r.call > 0 {
			copy(set[1:i+1], set[:i])
			set[0] = r
			return r.call, false
		}
	}
	copy(set[1:], set)
	set[0] = recentCall{caller, place, uint32(c.calls.add(place))}
	return set[0].call, true
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
	key, found, slot, tag := s.chainKey(rec, &in, thread, interval), uint32(0), 0, uint32(0)
	if key > 0 {
		found, slot, tag = c.find(key)
	}
	if found == 0 {
		lacks := s.linksOf(rec, time)
		n := c.list.add(s.linked(&in, int32(rec.TID()), thread))
		c.list.at(n).sums = uint32(lacks) << lacksShift
		if found = uint32(n) + 1; key > 0 {
			c.index.slots[slot] = tag | found
		}
		if c.keys.add(key); s.spans.wanted {
			c.intervals.add(uint64(interval))
		}
	}
	for i, lacks := 0, c.list.at(int(found)-1).sums>>lacksShift; lacks > 0; i, lacks = i+1, lacks>>1 {
		s.flawed[i] += int64(lacks & 1)
	}
	return int(found) - 1
}

// linked returns a callchain of the links at hand. The outer calls are mostly those of the
// thread's sample before.
func (s *Stacks) linked(in *codeSpace, tid, thread int32) callchain {
	c := &s.calls
	last, is := &c.last[uint32(tid)%recentThreads], chainID{tid, thread, in.user, in.kernel}
	n, same := len(s.chain), 0
	s.inChain = slices.Grow(s.inChain[:0], n)[:n]
	if last.is == is {
		same = last.same(s.chain)
		copy(s.inChain[n-same:], last.calls[len(last.calls)-same:])
	}
	at, added := uint32(0), false
	out := callchain{}
	if same > 0 {
		out.caller = s.inChain[n-same]
	} else if at, added = c.call(0, threadCall|uint32(thread)); !added {
		out.caller = at
	}
	if at = out.caller; added {
		at = uint32(c.calls.n - 1)
	}
	for i := n - same - 1; i >= 0; i-- {
		if at, added = c.call(at, s.code.number(in, s.chain[i])); !added {
			out.caller = at
		}
		s.inChain[i] = at
	}
	out.end, out.leaf = uint32(c.calls.n), s.code.number(in, s.chain[0])
	if last.is = is; n > longestRecent {
		n = 0
	}
	last.chain, last.calls = append(last.chain[:0], s.chain[:n]...), append(last.calls[:0], s.inChain[:n]...)
	return out
}

// same returns how many outer calls another callchain has as well.
func (r *lastChain) same(chain []link) int {
	n, most := 0, min(len(chain), len(r.chain))
	for n < most && chain[len(chain)-1-n] == r.chain[len(r.chain)-1-n] {
		n++
	}
	return n
}

// chainKey returns the key of a sample's callchain: a hash of all that decides what it is. It is
// 0 for a callchain that is not recorded as such.
func (s *Stacks) chainKey(rec *perfdata.Sample, in *codeSpace, thread int32, interval int64) uint64 {
	e := rec.Event()
	if in.user == 0 || in.kernel == 0 || e.BranchType&perffile.BranchCallStack != 0 || e.SampleType&perffile.SampleStackUser != 0 {
		return 0
	}
	one := mix(rec.IP(), seeds[0]) ^ mix(uint64(in.user)<<32|uint64(in.kernel), seeds[1])
	two := mix(uint64(uint32(thread))<<32|uint64(e.MaxStack)<<8|uint64(rec.Mode()), seeds[0]) ^ uint64(len(s.words)) ^ uint64(interval)<<16
	words := s.words
	for ; len(words) > 1; words = words[2:] { // two at a time, which do not wait for each other
		one, two = mix(one^words[0], seeds[0]), mix(two^words[1], seeds[1])
	}
	if len(words) > 0 {
		one = mix(one^words[0], seeds[0])
	}
	return max(1, mix(one^two>>32^two<<32, seeds[1]))
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
	c.keys, c.index, c.recent, c.last = pages[uint64]{}, numberIndex{}, nil, nil
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
