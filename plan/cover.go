package plan

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A cover puts units into as few groups as it can find. A unit is a set of events that
// must share a group. A group is a choice of units whose events fit together.
//
// It is a local search. It dissolves a group, and puts its units into the others
// one by one. Each goes where it displaces the least, and the displaced units are
// placed next. Units that are often displaced get a higher price, and a unit that
// was just placed stays for a while. Random numbers have a fixed seed and the
// search has a fixed effort. So a plan is the same whenever and wherever it is made.
type cover struct {
	s      *space
	units  []set
	groups [][]int // their units
	unions []set   // their events
	home   []int   // by unit: its group, -1 if it has none

	rng    *rand.Rand
	price  []int // by unit: what throwing it out costs
	stay   []int // by unit: it should not move before this move
	effort int   // that is left: sets tried for whether they fit

	both, stays   set   // for trying
	members, gone []int // for evict
	out           []int // for cheapest

	seen [][]int // groups that occurred lately
	next int     // in seen
}

// Parameters of the search.
const (
	seed         = 1
	stayAtLeast  = 3    // moves that a unit stays where it was put
	stayAtRandom = 8    // and up to so many more
	stayPrice    = 1000 // of throwing one out that should stay
)

func newCover(s *space, units []set) *cover {
	return &cover{s: s, units: units, home: make([]int, len(units)), both: newSet(len(s.demands)), stays: newSet(len(s.demands)),
		rng: rand.New(rand.NewPCG(seed, seed)), price: make([]int, len(units)), stay: make([]int, len(units))}
}

// firstFit puts each unit into the first group that it fits into, the largest
// units first.
func (c *cover) firstFit() {
	order := make([]int, len(c.units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.units[b].len(), c.units[a].len()) })
	for _, u := range order {
		g := 0
		for g < len(c.groups) && !c.fits(u, g) {
			g++
		}
		if g == len(c.groups) {
			c.groups = append(c.groups, nil)
			c.unions = append(c.unions, newSet(len(c.s.demands)))
		}
		c.put(u, g)
	}
}

// reduce dissolves groups while there are more than enough. It stops at the first that it
// cannot do without for the effort.
func (c *cover) reduce(enough, effort int) {
	for len(c.groups) > max(enough, 1) {
		before := c.save()
		pool := c.dissolve(c.smallest())
		if !c.settle(pool, effort) {
			c.restore(before)
			return
		}
	}
}

// settle puts units without a home into the groups there are, and reports
// whether it could.
func (c *cover) settle(pool []int, effort int) bool {
	c.effort = effort
	for u := range c.units {
		c.price[u], c.stay[u] = 1, 0
	}
	pool = slices.Clone(pool)
	for move := 1; len(pool) > 0; move++ {
		if c.effort < 0 {
			return false
		}
		k := c.rng.IntN(len(pool))
		u := pool[k]
		pool = slices.Delete(pool, k, k+1)
		g, out := c.cheapest(u, move)
		for _, v := range out {
			c.remove(v)
			c.price[v]++
		}
		pool = append(pool, out...)
		c.put(u, g)
		c.note(g)
		c.stay[u] = move + stayAtLeast + c.rng.IntN(stayAtRandom)
	}
	return true
}

// maxSeen is how many groups are remembered: columns for a linear programme.
const maxSeen = 1000

// note remembers a group.
func (c *cover) note(g int) {
	if len(c.seen) < maxSeen {
		c.seen = append(c.seen, slices.Clone(c.groups[g]))
		return
	}
	c.seen[c.next] = append(c.seen[c.next][:0], c.groups[g]...)
	c.next = (c.next + 1) % maxSeen
}

// cheapest returns the group that takes a unit at the least price, chosen at random
// among equals. out is what the unit displaces. It is valid until the next call.
func (c *cover) cheapest(u, move int) (group int, out []int) {
	c.out = c.out[:0]
	least, ties := -1, 0
	for g := range c.groups {
		price, list := c.evict(u, g, move, least)
		switch {
		case least >= 0 && price > least:
			continue
		case least < 0 || price < least:
			ties = 0
		}
		least = price
		if ties++; c.rng.IntN(ties) == 0 {
			group, c.out = g, append(c.out[:0], list...)
		}
	}
	return group, c.out
}

// evict returns units of a group whose going lets a unit in, and their price;
// they are good until the next call. The dearest are the first to stay. It may
// stop when the price exceeds limit, if that is not negative.
func (c *cover) evict(u, g, move, limit int) (price int, out []int) {
	if c.fits(u, g) {
		return 0, nil
	}
	c.members = append(c.members[:0], c.groups[g]...)
	c.rng.Shuffle(len(c.members), func(i, j int) { c.members[i], c.members[j] = c.members[j], c.members[i] })
	slices.SortStableFunc(c.members, func(a, b int) int { return cmp.Compare(c.priceOf(b, move), c.priceOf(a, move)) })
	copy(c.stays, c.units[u])
	c.gone = c.gone[:0]
	for _, v := range c.members {
		copy(c.both, c.stays)
		c.both.join(c.units[v])
		if c.tryFit(c.both) {
			copy(c.stays, c.both)
			continue
		}
		c.gone = append(c.gone, v)
		if price += c.priceOf(v, move); limit >= 0 && price > limit {
			break
		}
	}
	return price, c.gone
}

func (c *cover) priceOf(u, move int) int {
	if c.stay[u] > move {
		return c.price[u] + stayPrice
	}
	return c.price[u]
}

// fits reports whether a unit fits into a group as it is.
func (c *cover) fits(u, g int) bool {
	copy(c.both, c.unions[g])
	c.both.join(c.units[u])
	return c.tryFit(c.both)
}

func (c *cover) tryFit(e set) bool {
	c.effort--
	return c.s.fits(e)
}

func (c *cover) put(u, g int) {
	c.home[u] = g
	c.groups[g] = append(c.groups[g], u)
	c.unions[g].join(c.units[u])
}

func (c *cover) remove(u int) {
	g := c.home[u]
	c.home[u] = -1
	c.groups[g] = slices.DeleteFunc(c.groups[g], func(v int) bool { return v == u })
	c.unions[g].clear()
	for _, v := range c.groups[g] {
		c.unions[g].join(c.units[v])
	}
}

// smallest returns the group with the fewest events.
func (c *cover) smallest() int {
	best := 0
	for g := range c.unions {
		if c.unions[g].len() < c.unions[best].len() {
			best = g
		}
	}
	return best
}

// dissolve does away with a group and returns its units. The last group takes
// its number.
func (c *cover) dissolve(g int) []int {
	pool, last := c.groups[g], len(c.groups)-1
	for _, u := range c.groups[last] {
		c.home[u] = g
	}
	for _, u := range pool {
		c.home[u] = -1
	}
	c.groups[g], c.unions[g] = c.groups[last], c.unions[last]
	c.groups, c.unions = c.groups[:last], c.unions[:last]
	return pool
}

// add puts another unit into the groups there are and reports whether it could
// for the effort; if not they stay as they are. Units within the new one need no
// place of their own any more.
func (c *cover) add(events set, effort int) bool {
	before, there := c.save(), c.in(events)
	none := newSet(len(c.s.demands))
	for u := range c.units {
		if c.units[u].within(events) {
			g := c.home[u]
			c.remove(u)
			c.units[u] = none
			c.put(u, g)
		}
	}
	u := len(c.units)
	c.units = append(c.units, events)
	c.home = append(c.home, -1)
	c.price = append(c.price, 1)
	c.stay = append(c.stay, 0)
	if there >= 0 {
		c.put(u, there)
		return true
	}
	if c.settle([]int{u}, effort) {
		return true
	}
	c.price, c.stay = c.price[:u], c.stay[:u]
	c.restore(before)
	return false
}

// in returns the group that has all events of a set, -1 if none has.
func (c *cover) in(events set) int {
	return slices.IndexFunc(c.unions, func(union set) bool { return events.within(union) })
}

// A state is what a search changes.
type state struct {
	units  []set
	home   []int
	groups [][]int
	unions []set
}

func (c *cover) save() state {
	s := state{units: slices.Clone(c.units), home: slices.Clone(c.home)}
	for g := range c.groups {
		s.groups = append(s.groups, slices.Clone(c.groups[g]))
		s.unions = append(s.unions, c.unions[g].clone())
	}
	return s
}

func (c *cover) restore(s state) {
	c.units, c.home, c.groups, c.unions = s.units, s.home, s.groups, s.unions
}
