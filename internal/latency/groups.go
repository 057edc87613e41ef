package latency

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// Groups collect sampled loads by name: the level of the memory hierarchy, the function, or
// the data. The zero value is empty and ready for use.
//
// Memory is bounded. If all groups would keep over a million different latencies, they are kept
// to fewer digits, at least four.
type Groups struct {
	All    Group
	index  map[string]*Group
	list   []*Group
	others *Group
	cells  int // of all groups
	fewer  int // digits of latencies that are dropped
}

// A Group is the loads of one name.
type Group struct {
	Name string
	Rank int // for Groups.ByRank
	Histogram

	// Instruction has the latencies of the whole instructions, if they were recorded.
	Instruction Histogram

	// Loads that missed the TLB, were locked, or had to wait for an earlier store.
	TLBMisses, Locked, Blocked float64
}

// A Load is one sample.
type Load struct {
	Latency     uint64  // cycles
	Instruction uint64  // latency of the whole instruction, cycles; 0 if it is not known
	Loads       float64 // loads that it stands for
	TLBMiss     bool
	Locked      bool
	Blocked     bool
}

// Bounds on the groups and on the latencies in them. Further groups are joined in one.
const (
	maxGroups = 1 << 13
	maxCells  = 1 << 20
	mostFewer = exactBits - 4
)

// OthersName is the name of the group that joins all further ones.
const OthersName = "others"

// Add adds a sample to a group.
func (g *Groups) Add(name string, rank int, l Load) {
	g.cells += g.All.add(l) + g.group(name, rank).add(l)
	if g.cells > maxCells && g.fewer < mostFewer {
		g.coarsen()
	}
}

// coarsen keeps one digit less of all latencies.
func (g *Groups) coarsen() {
	g.fewer++
	g.cells = 0
	for _, x := range append(slices.Clone(g.list), &g.All) {
		x.Histogram.coarsen()
		x.Instruction.coarsen()
		g.cells += len(x.Histogram.cells) + len(x.Instruction.cells)
	}
}

func (g *Groups) group(name string, rank int) *Group {
	if x := g.index[name]; x != nil {
		return x
	}
	if len(g.list) >= maxGroups {
		if g.others == nil {
			g.others = g.newGroup(OthersName, rank)
			g.list = append(g.list, g.others)
		}
		return g.others
	}
	if g.index == nil {
		g.index = map[string]*Group{}
	}
	x := g.newGroup(name, rank)
	g.index[name] = x
	g.list = append(g.list, x)
	return x
}

func (g *Groups) newGroup(name string, rank int) *Group {
	x := &Group{Name: name, Rank: rank}
	x.Histogram.fewer, x.Instruction.fewer = g.fewer, g.fewer
	return x
}

// add adds a sample, and returns how many more latencies are kept.
func (g *Group) add(l Load) int {
	before := len(g.cells) + len(g.Instruction.cells)
	g.Histogram.Add(l.Latency, l.Loads)
	if l.Instruction > 0 {
		g.Instruction.Add(l.Instruction, l.Loads)
	}
	for _, x := range []struct {
		is bool
		to *float64
	}{{l.TLBMiss, &g.TLBMisses}, {l.Locked, &g.Locked}, {l.Blocked, &g.Blocked}} {
		if x.is {
			*x.to += l.Loads
		}
	}
	return len(g.cells) + len(g.Instruction.cells) - before
}

// ByRank returns the groups in order of their ranks.
func (g *Groups) ByRank() []*Group {
	return g.sorted(func(a, b *Group) int { return cmp.Compare(a.Rank, b.Rank) })
}

// ByCycles returns the groups in order of the cycles that their loads took together, the
// most first.
func (g *Groups) ByCycles() []*Group {
	return g.sorted(func(a, b *Group) int { return cmp.Compare(b.cycles, a.cycles) })
}

func (g *Groups) sorted(by func(a, b *Group) int) []*Group {
	list := slices.Clone(g.list)
	sorting.Sort(list, func(a, b *Group) int { return cmp.Or(by(a, b), strings.Compare(a.Name, b.Name)) })
	return list
}
