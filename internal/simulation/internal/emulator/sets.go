package emulator

import (
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// sets are those of the first level of data, in a window. The lines of one set wait for each other. A load far
// ahead may replace a line before an earlier store has written it. The store asks for it once more.
type sets struct {
	cost pipeline.SameSet
	ways int
	next []int64 // when each set takes another line
	// latest are the lines that each set took last, as many as it has ways.
	latest []taken
	count  []int // that it took
}

// A taken is a line, and when the latest store to it reaches the cache.
type taken struct {
	line   uint64
	stored int64
}

// newSets returns sets without lines. It has none if lines do not wait for each other.
func newSets(cost pipeline.SameSet, c caches.Config) sets {
	if cost.Line == 0 {
		return sets{}
	}
	n, ways := c.First()
	return sets{cost, ways, make([]int64, n), make([]taken, n*ways), make([]int, n)}
}

func (s *sets) clear() {
	clear(s.next)
	clear(s.latest)
	clear(s.count)
}

// comes takes a line that an access asks for at some cycle. It returns when the line's set has room for it. If a
// store has lost its line, it also returns when that reaches the cache, or 0. Stores ask in their order, when they have retired. So
// they take no lines away from stores before.
func (s *sets) comes(line uint64, a *access, now int64) (begins, stores int64) {
	if len(s.next) == 0 {
		return now, 0
	}
	set := int(line % uint64(len(s.next)))
	begins = max(now, s.next[set])
	next := begins + s.cost.Line
	if a.back != 0 {
		next += s.cost.Dirty
	}
	at := &s.latest[set*s.ways+s.count[set]%s.ways]
	if !a.store && at.stored > now {
		next += s.cost.Again
		stores = next
	}
	s.next[set], *at = next, taken{line: line}
	s.count[set]++
	return begins, stores
}

// stored is told when the stores of an instruction reach the cache.
func (s *sets) stored(accesses []access, when int64) {
	if len(s.next) == 0 {
		return
	}
	for i := range accesses {
		a := &accesses[i]
		if !a.store {
			continue
		}
		line := a.addr >> caches.LineBits
		set := int(line % uint64(len(s.next)))
		if s.count[set] == 0 {
			continue
		}
		for k := range s.ways {
			if at := &s.latest[set*s.ways+k]; at.line == line {
				at.stored = when
			}
		}
	}
}
