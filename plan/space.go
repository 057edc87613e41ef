package plan

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A demand is what counting an event takes of the PMU.
type demand struct {
	can       counters   // those that can count it; 0 for an event that takes none
	registers []register // what it needs besides a counter
	pair      bool       // it takes the next counter as well
	alone     bool       // no other event may be on a general counter
	erratum   bool       // it leaves only some of the general counters
}

// A register is one that an event needs in addition to a counter, with the value that
// it must hold. Its kind is one of registerKinds, or a driver's agreement.
type register struct {
	kind  string
	value uint64
}

// ldlat reports whether an event counts loads by their latency.
func (d *demand) ldlat() bool {
	return slices.ContainsFunc(d.registers, func(r register) bool { return r.kind == "ldlat" })
}

// A space says which sets of events can be counted at one time.
//
// That a matching of the events to counters exists is checked by Hall's theorem: a union
// of the events' sets of counters has no fewer counters than events that can use only
// these. Only unions that can be too small are kept, which are a handful.
type space struct {
	demands []demand
	limits  []limit
	kinds   []registers
	counted set // events that take a counter
	fixed   []fixedCounter
	pairs   set // events that take two
	alone   set // events that must be the only one on a general counter
	erratum set // events that leave only errata general counters
	errata  int
	exact   bool       // limits are necessary but not sufficient: the matching itself decides
	taken   []counters // what something else takes all of the time: one of each
}

// A limit says how many of some events can be counted at one time. A pair
// counts twice.
type limit struct {
	events set
	most   int
	paired set // those of events that take two counters
}

// A fixedCounter is one that a few events can use.
type fixedCounter struct {
	number int
	events set
}

// registers are those of one kind, and the events by the values that they need.
type registers struct {
	values []set
	most   int
}

// newSpace makes the space of events with the demands. Each of taken is what
// something else takes all of the time: one of these counters. errata is how
// many general counters an event with an erratum leaves.
func newSpace(demands []demand, capacity map[string]int, taken []counters, errata int) *space {
	n := len(demands)
	s := &space{demands: demands, counted: newSet(n), pairs: newSet(n), alone: newSet(n), erratum: newSet(n), errata: errata, taken: taken}
	for i, d := range demands {
		if d.can != 0 {
			s.counted.add(i)
		}
		if f := d.can.fixed(); f >= 0 {
			s.fixedEvents(f).add(i)
		}
		if d.alone {
			s.alone.add(i)
		}
		if d.erratum {
			s.erratum.add(i)
		}
		if d.pair {
			s.pairs.add(i)
		}
	}
	for _, t := range taken {
		if f := t.fixed(); f >= 0 {
			s.fixedEvents(f)
		}
	}
	s.exact = s.crowded()
	s.findLimits()
	s.findRegisters(capacity)
	return s
}

// crowded reports whether events that take two neighbouring counters compete
// with others that cannot go out of their way: then there may be room for a
// pair, but not in one place.
func (s *space) crowded() bool {
	var pairs, others counters
	for i := range s.demands {
		if s.demands[i].pair {
			pairs |= s.demands[i].reach()
		}
	}
	for i := range s.demands {
		if d := &s.demands[i]; !d.pair && d.can&pairs != 0 && pairs&^d.can != 0 {
			others |= d.can
		}
	}
	return others != 0
}

// fixedEvents returns the events that can use a fixed counter.
func (s *space) fixedEvents(number int) set {
	for _, f := range s.fixed {
		if f.number == number {
			return f.events
		}
	}
	events := newSet(len(s.demands))
	s.fixed = append(s.fixed, fixedCounter{number, events})
	return events
}

// findLimits finds the unions of the events' counters that can be too small.
func (s *space) findLimits() {
	unions, complete := s.unions()
	s.exact = s.exact || !complete
	var all []limit
	for _, u := range unions {
		l := limit{events: newSet(len(s.demands)), most: u.len()}
		for _, t := range s.taken {
			if t&^u == 0 {
				l.most--
			}
		}
		for i := range s.demands {
			if c := s.demands[i].reach(); c != 0 && c&^u == 0 {
				l.events.add(i)
			}
		}
		if l.paired = l.events.and(s.pairs); l.events.len()+l.paired.len() > l.most {
			all = append(all, l)
		}
	}
	sorting.Stable(all, func(a, b limit) int { return cmp.Compare(a.most, b.most) })
	for i, l := range all {
		implied := false
		for j, o := range all {
			if i != j && l.impliedBy(o) && (!o.impliedBy(l) || j < i) {
				implied = true
				break
			}
		}
		if !implied {
			s.limits = append(s.limits, l)
		}
	}
}

// maxUnions bounds the unions of sets of counters. Real PMUs have some tens.
const maxUnions = 1 << 10

// unions returns the unions of the events' sets of counters, and whether these are all.
// Counters for only one event, as the parts of slots have them, cannot be too few. They
// are left out.
func (s *space) unions() (unions []counters, complete bool) {
	var kinds []counters
	users := map[counters]int{}
	for i := range s.demands {
		d := &s.demands[i]
		if c := d.reach(); c != 0 {
			if users[c]++; users[c] == 1 {
				kinds = append(kinds, c)
			}
		}
	}
	private := func(kind counters) bool {
		if users[kind] > 1 {
			return false
		}
		others := counters(0)
		for _, k := range append(kinds, s.taken...) {
			if k != kind {
				others |= k
			}
		}
		return kind&others == 0
	}
	for _, kind := range kinds {
		if private(kind) {
			continue
		}
		for _, u := range append([]counters{0}, unions...) {
			if !slices.Contains(unions, u|kind) {
				unions = append(unions, u|kind)
			}
		}
		if len(unions) > maxUnions {
			return unions, false
		}
	}
	return unions, true
}

// impliedBy reports whether every set of events that keeps to o keeps to l.
func (l limit) impliedBy(o limit) bool {
	over := 0
	for i, w := range l.events {
		over += bits.OnesCount64(w&^o.events[i]) + bits.OnesCount64(l.paired[i]&^o.paired[i])
	}
	return over <= l.most-o.most
}

// reach returns the counters that an event can make unavailable to others.
func (d *demand) reach() counters {
	if d.pair {
		return d.can | d.can<<1
	}
	return d.can
}

// findRegisters notes the registers of each kind that can be too few. Where
// each value is needed by one event only, that is a limit like others.
func (s *space) findRegisters(capacity map[string]int) {
	for _, kind := range s.registerKinds() {
		r := registers{most: max(1, capacity[kind])}
		index := map[uint64]int{}
		all := newSet(len(s.demands))
		for i, d := range s.demands {
			for _, need := range d.registers {
				if need.kind != kind {
					continue
				}
				v, ok := index[need.value]
				if !ok {
					v = len(r.values)
					index[need.value] = v
					r.values = append(r.values, newSet(len(s.demands)))
				}
				r.values[v].add(i)
				all.add(i)
			}
		}
		switch {
		case len(r.values) <= r.most:
		case all.len() == len(r.values):
			s.limits = append(s.limits, limit{events: all, most: r.most, paired: newSet(len(s.demands))})
		default:
			s.kinds = append(s.kinds, r)
		}
	}
}

// registerKinds returns the kinds of registers that any event needs.
func (s *space) registerKinds() []string {
	kinds := slices.Clone(registerKinds)
	for _, d := range s.demands {
		for _, need := range d.registers {
			if !slices.Contains(kinds, need.kind) {
				kinds = append(kinds, need.kind)
			}
		}
	}
	return kinds
}

// fits reports whether the events of a set can be counted at one time.
func (s *space) fits(e set) bool {
	for i := range s.limits {
		l := &s.limits[i]
		if e.common(l.events)+e.common(l.paired) > l.most {
			return false
		}
	}
	for i := range s.kinds {
		if !s.kinds[i].hold(e) {
			return false
		}
	}
	if e.meets(s.alone) && s.onGeneral(e) > 1 {
		return false
	}
	if e.meets(s.erratum) && s.onGeneral(e) > s.errata {
		return false
	}
	return !s.exact || s.assign(e.members()) != nil
}

// onGeneral returns the least number of general counters for the events of a set:
// one each, except for events with a free fixed counter. An event can use one fixed
// counter at most.
func (s *space) onGeneral(e set) int {
	n := e.common(s.counted) + len(s.taken)
	for _, f := range s.fixed {
		if e.meets(f.events) || slices.ContainsFunc(s.taken, func(c counters) bool { return c.fixed() == f.number }) {
			n--
		}
	}
	return n
}

// hold reports whether the registers can hold all values that a set needs.
func (r *registers) hold(e set) bool {
	n := 0
	for _, v := range r.values {
		if e.meets(v) {
			n++
		}
	}
	return n <= r.most
}
