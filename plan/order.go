package plan

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
)

// rank says how much a node matters. It is 1 for the first level of the main tree
// and above, and grows level by level. Nodes outside the tree are last.
func (b *builder) rank(k int) int {
	n := &b.Model.Nodes[b.Nodes[k].Index]
	if n.Section != "" {
		return math.MaxInt
	}
	return max(1, n.Level)
}

// order gives every node that is together a group to be read from, and sorts the
// groups by importance. Nodes of one rank are gathered in few groups, so that few
// groups need more of the rotation than others.
func (b *builder) order() {
	home := make([]int, len(b.Nodes)) // by node: group of the cover
	var ranks []int
	for k := range b.Nodes {
		home[k] = -1
		if r := b.rank(k); !slices.Contains(ranks, r) {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	var order []int // groups of the cover
	first := map[int]int{}
	for _, r := range ranks {
		for {
			g, nodes := b.fullest(r, home)
			if g < 0 {
				break
			}
			for _, k := range nodes {
				home[k] = g
			}
			if _, known := first[g]; !known {
				first[g] = r
				order = append(order, g)
			}
		}
	}
	for g := range b.cover.groups {
		if _, known := first[g]; !known {
			first[g] = math.MaxInt
			order = append(order, g)
		}
	}
	b.turn = order
	b.Groups = make([]Group, len(order))
	for i, g := range order {
		b.Groups[i].Turns = b.turns(first[g])
	}
	reduceTurns(b.Groups)
	b.Rotation = rotation(b.Groups)
	for k, g := range home {
		n := &b.Nodes[k]
		n.Together = n.Missing == "" && len(b.wishes) > 0 && len(b.wishes[k].parts) < 2
		if g >= 0 {
			i := slices.Index(order, g)
			n.Groups = []int{i}
			b.Groups[i].Nodes = append(b.Groups[i].Nodes, n.Index)
		}
	}
}

// fullest returns the group that completes the most nodes of a rank without a group,
// and these nodes. A group completes a node if it has all of its events. Among equals
// it prefers a group with nodes. It returns -1 if there is no such node.
func (b *builder) fullest(rank int, home []int) (group int, nodes []int) {
	group = -1
	most, used := 0, false
	for g, union := range b.cover.unions {
		var fits []int
		for k := range b.Nodes {
			if w := b.wishes[k]; home[k] < 0 && b.rank(k) == rank && len(w.parts) == 1 && w.parts[0].within(union) {
				fits = append(fits, k)
			}
		}
		has := slices.Contains(home, g)
		if len(fits) > most || len(fits) == most && most > 0 && has && !used {
			group, nodes, most, used = g, fits, len(fits), has
		}
	}
	return group, nodes
}

// turns returns how often a rotation schedules a group whose most important node
// has a rank.
func (b *builder) turns(rank int) int {
	if len(b.cover.groups) <= 2 { // each is seen half of the time anyway
		return 1
	}
	return max(1, 4-min(rank, 4))
}

// reduceTurns divides each group's Turns by the greatest common divisor of all.
func reduceTurns(groups []Group) {
	common := 0
	for i := range groups {
		for a := groups[i].Turns; a != 0; {
			common, a = a, common%a
		}
	}
	for i := range groups {
		groups[i].Turns /= common
	}
}

// rotation spreads each group evenly over the rotation.
func rotation(groups []Group) []int {
	total := 0
	for i := range groups {
		total += groups[i].Turns
	}
	taken := make([]int, len(groups))
	var order []int
	for range total {
		next, least := -1, math.Inf(1)
		for i := range groups {
			if taken[i] == groups[i].Turns {
				continue
			}
			begin := float64(i) / float64(len(groups))
			if due := (float64(taken[i]) + begin) / float64(groups[i].Turns); due < least {
				next, least = i, due
			}
		}
		taken[next]++
		order = append(order, next)
	}
	return order
}

// place fills in what each group counts, and where the events of each node are.
func (b *builder) place() {
	for i, g := range b.turn {
		members := b.cover.unions[g].members()
		slices.SortStableFunc(members, func(x, y int) int { return cmp.Compare(b.position(x), b.position(y)) })
		on := b.space.assign(members)
		for k, e := range members {
			name := ""
			if !on[k].isMetric() {
				name = on[k].String()
			}
			b.Groups[i].Events = append(b.Groups[i].Events, b.in.events[e])
			b.Groups[i].Counters = append(b.Groups[i].Counters, name)
		}
	}
	for k := range b.Nodes {
		if n := &b.Nodes[k]; n.Missing == "" && !n.Together {
			b.placeParts(n, b.wishes[k])
		}
	}
	b.placeAlways()
}

// position orders the events of a group. Slots leads what is derived from it. The
// auxiliary event precedes load latencies. Events of fixed counters come before the
// others.
func (b *builder) position(event int) int {
	e := &b.in.events[event]
	switch {
	case b.PMU.Slots != "" && e.Name == b.PMU.Slots:
		return 0
	case e.demand.can.isMetric():
		return 1
	case e.demand.can.fixed() >= 0:
		return 2
	case b.PMU.LdlatAux != nil && e.Name == b.PMU.LdlatAux.Event:
		return 3
	case e.demand.ldlat():
		return 4
	}
	return 5
}

// placeParts chooses the groups that the parts of a split node are read from.
func (b *builder) placeParts(n *Node, w wish) {
	for i, part := range w.parts {
		p := Part{Events: b.names(part), Loose: w.loose[i]}
		left := part.clone()
		for !left.empty() {
			g := b.sharing(left, n.Groups)
			p.Groups = append(p.Groups, g)
			for _, e := range b.cover.unions[b.turn[g]].members() {
				left.drop(e)
			}
		}
		p.Loose = p.Loose || len(p.Groups) > 1
		n.Groups = union(n.Groups, p.Groups)
		n.Parts = append(n.Parts, p)
	}
	slices.Sort(n.Groups)
}

// sharing returns the group that has the most of the events; of several, one of
// those given, or else the one that matters most.
func (b *builder) sharing(events set, given []int) int {
	best, most, used := 0, 0, false
	for i, g := range b.turn {
		n, has := events.common(b.cover.unions[g]), slices.Contains(given, i)
		if n > most || n == most && has && !used {
			best, most, used = i, n, has
		}
	}
	return best
}

func (b *builder) names(events set) []string {
	var names []string
	for _, e := range events.members() {
		names = append(names, b.in.events[e].Name)
	}
	return names
}

// placeAlways lists the events that need no counter of the core.
func (b *builder) placeAlways() {
	var needed []int
	for k := range b.Nodes {
		if n := &b.Nodes[k]; n.Missing == "" {
			needed = union(needed, b.in.node(n.Index).events)
		}
	}
	slices.Sort(needed)
	for _, e := range needed {
		if !b.in.events[e].Core {
			b.Always = append(b.Always, b.in.events[e])
		}
	}
}

// warn notes what must be known to use the plan.
func (b *builder) warn() {
	warn := func(n counts.Note) { b.Warnings = append(b.Warnings, n) }
	if b.PMU.Assumed {
		warn(counts.Notef("how many counters %s has is not known: %d general ones are assumed", b.CPU.Name, b.GeneralCounters()))
	}
	if b.Options.Watchdog && b.PMU.Watchdog == "" {
		warn(counts.Notef("the watchdog takes no counter on %s", b.CPU.Name))
	}
	if e := b.PMU.Erratum; e != nil && b.PMU.divided(b.Options) {
		with, over := b.withErratum()
		switch {
		case b.Options.Errata && len(with) > 0:
			warn(counts.Notef("%s: no more than %d general counters, which is what Linux's workaround for errata %s leaves them",
				groupList(with), e.Counters, e.ID).With(counts.Fix{Action: counts.PlanAllCounters}))
		case len(over) > 0:
			warn(counts.Notef("%s will not be counted by Linux, whose workaround for errata %s leaves them %d general counters",
				groupList(over), e.ID, e.Counters).With(counts.Fix{Action: counts.PlanErrata}))
		}
	}
	if deepest := b.levels(); b.Options.Nodes == nil && b.Options.Level > deepest {
		warn(counts.Notef("%s has %d levels: there is none deeper", b.Model.Name, deepest))
	}
}

// levels returns the deepest level of the model's main tree.
func (b *builder) levels() int {
	deepest := 0
	for i := range b.Model.Nodes {
		if n := &b.Model.Nodes[i]; n.Section == "" {
			deepest = max(deepest, n.Level)
		}
	}
	return deepest
}

// withErratum returns the groups that have events of an erratum. The second result is
// those that need more general counters than it leaves.
func (b *builder) withErratum() (with, over []int) {
	for i := range b.Groups {
		general, meets := 0, false
		for k, e := range b.Groups[i].Events {
			if _, err := strconv.Atoi(b.Groups[i].Counters[k]); err == nil {
				general++
			}
			meets = meets || slices.Contains(b.PMU.Erratum.Codes, e.ID.Config&0xff)
		}
		if meets {
			with = append(with, i)
			if general > b.PMU.Erratum.Counters {
				over = append(over, i)
			}
		}
	}
	return with, over
}

// groupList names groups as people count them.
func groupList(groups []int) string {
	var numbers []string
	for _, g := range groups {
		numbers = append(numbers, strconv.Itoa(g+1))
	}
	if len(numbers) == 1 {
		return "group " + numbers[0]
	}
	return "groups " + strings.Join(numbers, ", ")
}
