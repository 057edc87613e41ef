package plan

import (
	"cmp"
	"math/bits"
	"slices"
)

// assign puts events on counters, each on one of its own: a matching, found by
// augmenting paths. It returns the counter of each event, 0 for those that take
// none, and nil if there is no matching. Events that take two neighbouring
// counters are tried in all places first: there are three at most.
func (s *space) assign(events []int) []counters {
	m := matching{s: s, at: make(map[int]int, len(events))}
	for i, t := range s.taken { // numbered below 0
		m.demand = append(m.demand, t)
		m.event = append(m.event, -1-i)
	}
	var pairs []int
	for _, e := range events {
		d := &s.demands[e]
		switch {
		case d.can == 0:
		case d.pair:
			pairs = append(pairs, e)
		default:
			m.demand = append(m.demand, d.can)
			m.event = append(m.event, e)
		}
	}
	m.fewestFirst()
	if !m.place(pairs, 0) {
		return nil
	}
	out := make([]counters, len(events))
	for i, e := range events {
		if c, ok := m.at[e]; ok {
			out[i] = 1 << c
		}
	}
	return out
}

// A matching is one being made.
type matching struct {
	s      *space
	event  []int      // single events
	demand []counters // theirs
	at     map[int]int
	owner  [64]int // by counter: index in event
}

// fewestFirst orders the events so that those with the fewest counters come
// first; so few have to move again.
func (m *matching) fewestFirst() {
	order := make([]int, len(m.event))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.demand[a].len(), m.demand[b].len()) })
	event, demand := make([]int, len(order)), make([]counters, len(order))
	for i, k := range order {
		event[i], demand[i] = m.event[k], m.demand[k]
	}
	m.event, m.demand = event, demand
}

// place puts the pairs on counters that are not in used, and then all others.
func (m *matching) place(pairs []int, used counters) bool {
	if len(pairs) == 0 {
		return m.match(used)
	}
	for c := m.s.demands[pairs[0]].can; c != 0; c &= c - 1 {
		first := c & -c
		if both := first | first<<1; both&used == 0 {
			m.at[pairs[0]] = bits.TrailingZeros64(uint64(first))
			if m.place(pairs[1:], used|both) {
				return true
			}
		}
	}
	return false
}

// match puts the single events on counters that are not in used.
func (m *matching) match(used counters) bool {
	for i := range m.owner {
		m.owner[i] = -1
	}
	for i := range m.event {
		seen := used
		if !m.augment(i, &seen) {
			return false
		}
	}
	for c, i := range m.owner {
		if i >= 0 {
			m.at[m.event[i]] = c
		}
	}
	return true
}

// augment finds a counter for single event i, moving others on if need be. The
// fixed counters come first: that leaves the general ones to events that need
// them.
func (m *matching) augment(i int, seen *counters) bool {
	for _, part := range [2]counters{m.demand[i].fixedOnly(), m.demand[i].generalOnly()} {
		for part &^= *seen; part != 0; part &^= *seen {
			c := bits.TrailingZeros64(uint64(part))
			*seen |= 1 << c
			if m.owner[c] < 0 || m.augment(m.owner[c], seen) {
				m.owner[c] = i
				return true
			}
		}
	}
	return false
}
