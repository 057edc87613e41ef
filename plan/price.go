package plan

import (
	"math"
	"slices"
)

// A pricer finds heavy groups: units whose events fit together and whose
// weights have a large sum.
type pricer struct {
	s      *space
	units  []set
	events [][]int  // by unit: its events that any limit counts
	counts []uint64 // by event: the limits that count it
	twice  []uint64 // by event: those that count it twice

	weight []int64
	effort int // that is left: candidates held against limits
	pause  int // effort left when any group found will do
	best   int64
	group  []int
	cut    int64 // the most that what was not looked at can weigh

	share []float64 // by event: how many candidates have it; 0 between uses
	rooms []float64 // by candidate
	order []uint64  // of the candidates: by density, with the index in the low half
}

// effortColumn is what the search may take for a group that is heavier than any
// found before. That there is none it has to show in any case.
const effortColumn = 30_000

// maxLimits is the number of limits that a bound looks at.
const maxLimits = 64

func newPricer(s *space, units []set) *pricer {
	n := len(s.demands)
	p := &pricer{s: s, units: units, counts: make([]uint64, n), twice: make([]uint64, n), share: make([]float64, n)}
	for l := range p.limits() {
		for _, e := range s.limits[l].events.members() {
			p.counts[e] |= 1 << l
		}
		for _, e := range s.limits[l].paired.members() {
			p.twice[e] |= 1 << l
		}
	}
	for _, u := range units {
		var events []int
		for _, e := range u.members() {
			if p.counts[e] != 0 {
				events = append(events, e)
			}
		}
		p.events = append(p.events, events)
	}
	return p
}

func (p *pricer) limits() int { return min(len(p.s.limits), maxLimits) }

// heaviest returns the heaviest group that is heavier than least, nil if there is
// none. most is a weight that no group exceeds: the group's weight or least, unless
// the search ran out of steps. It subtracts the steps from effort.
func (p *pricer) heaviest(weight []int64, least int64, effort *int) (group []int, most int64) {
	p.weight, p.effort, p.best, p.group, p.cut = weight, *effort, least, nil, 0
	p.pause = *effort - effortColumn
	var all []int
	for i, w := range weight {
		if w > 0 {
			all = append(all, i)
		}
	}
	p.search(newSet(len(p.s.demands)), nil, all, 0)
	*effort = p.effort
	return p.group, max(p.best, p.cut)
}

// search looks at all groups made of a group, whose events are union, and some
// of the candidates.
func (p *pricer) search(union set, group, candidates []int, sum int64) {
	p.effort -= len(candidates) * (1 + p.limits())
	rest := make([]int, 0, len(candidates))
	both := make(set, len(union))
	group = slices.Clip(group)
	for _, u := range candidates {
		if p.units[u].within(union) { // it costs nothing
			group = append(group, u)
			sum += p.weight[u]
			continue
		}
		copy(both, union)
		both.join(p.units[u])
		if p.s.fits(both) {
			rest = append(rest, u)
		}
	}
	if sum > p.best {
		p.best, p.group = sum, slices.Clone(group)
	}
	if len(rest) == 0 {
		return
	}
	bound, first := p.bound(union, rest)
	if sum+bound <= p.best {
		return
	}
	if p.effort < 0 || p.group != nil && p.effort < p.pause {
		p.cut = max(p.cut, sum+bound)
		return
	}
	u := rest[first]
	others := slices.Delete(rest, first, first+1)
	copy(both, union)
	both.join(p.units[u])
	p.search(both, append(group, u), others, sum+p.weight[u])
	p.search(union, group, others, sum)
}

// bound returns a weight that no choice among the candidates exceeds. first is the
// candidate with the most weight for its room under the tightest limit.
//
// Under a limit, a choice takes the room of its new events. If several candidates
// would add an event, each counts its share. So the sum over a choice is at most the
// room that it really takes. The candidates that then fit, with a fraction of the
// last one, weigh at least as much as any choice.
func (p *pricer) bound(union set, candidates []int) (most int64, first int) {
	for _, u := range candidates {
		for _, e := range p.events[u] {
			p.share[e]++
		}
	}
	most = math.MaxInt64
	for l := range p.limits() {
		p.order = p.order[:0]
		p.rooms = p.rooms[:0]
		for i, u := range candidates {
			room := 0.0
			for _, e := range p.events[u] {
				if p.counts[e]>>l&1 != 0 && !union.has(e) {
					room += float64(1+p.twice[e]>>l&1) / p.share[e]
				}
			}
			p.rooms = append(p.rooms, room)
			density := float32(float64(p.weight[u]) / room) // +Inf for what takes no room
			p.order = append(p.order, uint64(math.MaxUint32-math.Float32bits(density))<<32|uint64(i))
		}
		slices.Sort(p.order)
		limit := &p.s.limits[l]
		if b := p.fill(candidates, float64(limit.most-union.common(limit.events)-union.common(limit.paired))); b < most {
			most, first = b, int(uint32(p.order[0]))
		}
	}
	for _, u := range candidates {
		for _, e := range p.events[u] {
			p.share[e] = 0
		}
	}
	if all := p.sum(candidates); all < most {
		most = all
	}
	return most, first
}

func (p *pricer) sum(candidates []int) int64 {
	sum := int64(0)
	for _, u := range candidates {
		sum += p.weight[u]
	}
	return sum
}

// fill returns the weight of the candidates in p.order that fit, the last of them in
// part. The order is by density, which is rounded, as sums are. The result includes
// an allowance for that.
func (p *pricer) fill(candidates []int, room float64) int64 {
	sum := 0.0
	for _, key := range p.order {
		i := int(uint32(key))
		weight := float64(p.weight[candidates[i]])
		if p.rooms[i] > room {
			sum += weight * max(0, room) / p.rooms[i]
			break
		}
		sum += weight
		room -= p.rooms[i]
	}
	return int64(sum + sum/(1<<20) + 1)
}
