package plan

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// somePMU draws the demands of a few events. Its PMU has four or six general counters and
// two fixed ones.
func somePMU(t *rapid.T) []demand {
	general := counters(0xf)
	masks := []counters{general, general, 0x3, 0x4, 0x1, 1<<firstFixed | general, 1<<(firstFixed+1) | general, 1 << (firstFixed + 2), 1 << (firstFixed + firstMetric), 0}
	paired := rapid.Bool().Draw(t, "paired")
	if paired {
		general = 0x3f
		masks = []counters{general, general, general, 0x3}
	}
	n := rapid.IntRange(1, 9).Draw(t, "events")
	demands := make([]demand, n)
	for i := range demands {
		demands[i].can = rapid.SampledFrom(masks).Draw(t, "can")
		if paired && rapid.IntRange(0, 2).Draw(t, "pair") == 0 {
			demands[i] = demand{can: 0x15, pair: true}
		}
		if rapid.IntRange(0, 3).Draw(t, "register") == 0 {
			demands[i].registers = []register{{rapid.SampledFrom(registerKinds).Draw(t, "kind"), uint64(rapid.IntRange(1, 3).Draw(t, "value"))}}
			if rapid.IntRange(0, 2).Draw(t, "agreement") == 0 {
				demands[i].registers = append(demands[i].registers, register{"agreement", uint64(rapid.IntRange(0, 1).Draw(t, "field"))})
			}
		}
		demands[i].alone = demands[i].can == 0x3 && rapid.IntRange(0, 3).Draw(t, "alone") == 0
		demands[i].erratum = !paired && demands[i].can == general && rapid.IntRange(0, 4).Draw(t, "erratum") == 0
	}
	return demands
}

var someCapacity = map[string]int{"offcore_rsp": 2, "frontend": 1}

const someErrata = 2

// canCount reports whether events can be counted at one time, by trying all ways
// of putting them on counters.
func canCount(demands []demand, events []int, taken []counters) bool {
	values := map[string]map[uint64]bool{}
	for _, e := range events {
		for _, r := range demands[e].registers {
			if values[r.kind] == nil {
				values[r.kind] = map[uint64]bool{}
			}
			values[r.kind][r.value] = true
		}
	}
	for kind, v := range values {
		if len(v) > max(1, someCapacity[kind]) {
			return false
		}
	}
	restricted := slices.ContainsFunc(events, func(e int) bool { return demands[e].alone })
	limit := 64
	if restricted {
		limit = 1
	}
	if slices.ContainsFunc(events, func(e int) bool { return demands[e].erratum }) {
		limit = min(limit, someErrata)
	}
	var try func(i int, used counters) bool
	try = func(i int, used counters) bool {
		if used.generalOnly().len() > limit {
			return false
		}
		if i == len(events)+len(taken) {
			return true
		}
		d := demand{}
		if i < len(events) {
			d = demands[events[i]]
			if d.can == 0 {
				return try(i+1, used)
			}
		} else {
			d.can = taken[i-len(events)]
		}
		for c := d.can; c != 0; c &= c - 1 {
			on := c & -c
			if d.pair {
				on |= on << 1
			}
			if used&on == 0 && try(i+1, used|on) {
				return true
			}
		}
		return false
	}
	return try(0, 0)
}

// TestSpaceFits compares the limits of a space with all ways of putting events
// on counters.
func TestSpaceFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands := somePMU(t)
		var taken []counters
		if rapid.Bool().Draw(t, "watchdog") {
			taken = []counters{1<<(firstFixed+1) | 0xf}
		}
		s := newSpace(demands, someCapacity, taken, someErrata)
		for mask := range 1 << len(demands) {
			e := newSet(len(demands))
			for m := mask; m != 0; m &= m - 1 {
				e.add(bits.TrailingZeros(uint(m)))
			}
			got, want := s.fits(e), canCount(demands, e.members(), taken)
			if slices.ContainsFunc(e.members(), func(i int) bool { return demands[i].pair && demands[i].alone }) {
				continue
			}
			if got != want {
				t.Fatalf("fits(%v) = %t, want %t (taken %x)\n%+v", e.members(), got, want, taken, demands)
			}
		}
	})
}

// TestAssign checks that every set that fits gets counters, each its own.
func TestAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands := somePMU(t)
		s := newSpace(demands, someCapacity, nil, someErrata)
		e := newSet(len(demands))
		for i := range demands {
			if e.add(i); !s.fits(e) {
				e.drop(i)
			}
		}
		members := e.members()
		on := s.assign(members)
		if on == nil {
			t.Fatalf("no counters for %v\n%+v", members, demands)
		}
		var used counters
		for k, i := range members {
			if demands[i].can == 0 {
				if on[k] != 0 {
					t.Fatalf("event %d needs no counter, but has %x", i, on[k])
				}
				continue
			}
			if on[k].len() != 1 || on[k]&demands[i].can == 0 {
				t.Fatalf("event %d is on %x of %x", i, on[k], demands[i].can)
			}
			if demands[i].pair {
				on[k] |= on[k] << 1
			}
			if used&on[k] != 0 {
				t.Fatalf("event %d is on %x, of which some is taken: %x", i, on[k], used)
			}
			used |= on[k]
		}
	})
}

// fewest returns the least number of groups for units, by trying all ways of
// dividing them.
func fewest(s *space, units []set) int {
	full := 1<<len(units) - 1
	one := make([]bool, full+1) // sets of units that are a group
	for mask := 1; mask <= full; mask++ {
		union := newSet(len(s.demands))
		for m := mask; m != 0; m &= m - 1 {
			union.join(units[bits.TrailingZeros(uint(m))])
		}
		one[mask] = s.fits(union)
	}
	least := make([]int, full+1)
	for mask := 1; mask <= full; mask++ {
		least[mask] = len(units)
		for part := mask; part > 0; part = (part - 1) & mask {
			if one[part] {
				least[mask] = min(least[mask], 1+least[mask&^part])
			}
		}
	}
	return least[full]
}

// TestCoverAndBound compares the groups that are found, and the bound that is
// proved, with the least number of groups.
func TestCoverAndBound(t *testing.T) {
	found, proved, all := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		demands := somePMU(t)
		for len(demands) < 12 {
			demands = append(demands, somePMU(t)...)
		}
		demands = demands[:12]
		s := newSpace(demands, someCapacity, nil, someErrata)
		var units []set
		for range rapid.IntRange(1, 7).Draw(t, "units") {
			u := newSet(len(demands))
			for range rapid.IntRange(1, 4).Draw(t, "size") {
				i := rapid.IntRange(0, len(demands)-1).Draw(t, "event")
				if u.add(i); !s.fits(u) {
					u.drop(i)
				}
			}
			if !u.empty() {
				units = append(units, u)
			}
		}
		units = largest(units)
		if len(units) == 0 {
			return
		}
		want := fewest(s, units)
		c := newCover(s, units)
		c.firstFit()
		c.reduce(1, 20_000)
		checkCover(t, c)
		bound := lowerBound(s, units, c.groups, c.seen, 100_000)
		if len(c.groups) < want || bound > want {
			t.Fatalf("%d groups, bound %d, but %d are needed", len(c.groups), bound, want)
		}
		all++
		if len(c.groups) == want {
			found++
		}
		if bound == want {
			proved++
		}
	})
	if found*10 < all*9 || proved*2 < all {
		t.Errorf("of %d: %d found, %d proved", all, found, proved)
	}
}

func checkCover(t *rapid.T, c *cover) {
	for u := range c.units {
		g := c.home[u]
		if g < 0 || !slices.Contains(c.groups[g], u) || !c.units[u].within(c.unions[g]) {
			t.Fatalf("unit %d is not in its group %d", u, g)
		}
	}
	for g, union := range c.unions {
		if !c.s.fits(union) {
			t.Fatalf("group %d does not fit", g)
		}
	}
}
