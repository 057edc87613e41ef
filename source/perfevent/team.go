package perfevent

import (
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
)

// A team is events that are to be on counters at one time: one of the Spec's
// groups as far as one PMU's processors have it, or an event by itself.
type team struct {
	group  int // index in Spec.Groups; -1 for what is counted always
	events []member
	cpus   []int // that the team's PMU counts on; nil: any
	pmu    *PMU  // nil if any processor will do
}

// A member is an event in a team.
type member struct {
	name   string
	column int
	attr   Attr
	scale  float64
}

// A scheme is the columns of the tables and the teams that fill them.
type scheme struct {
	columns []counts.Column
	teams   []team
	tools   []tool // columns that no counter counts
	groups  int    // the highest number of a group
}

// A tool is a column of what no counter counts.
type tool struct {
	column int
	kind   toolKind
}

func newScheme(spec *Spec) *scheme {
	c := &scheme{groups: len(spec.Groups)}
	for i, g := range spec.Groups {
		c.add(i, g)
	}
	for _, e := range spec.Always {
		c.add(-1, []Event{e})
	}
	return c
}

func (c *scheme) add(group int, events []Event) {
	first := len(c.columns)
	for i, e := range events {
		c.columns = append(c.columns, counts.Column{Event: e.Name, Unit: e.Unit, Group: group + 1})
		if e.tool == userTime || e.tool == systemTime {
			c.columns[first+i].Whole = ostime.ProgramTimes
		}
		if e.tool != noTool {
			c.tools = append(c.tools, tool{first + i, e.tool})
		}
	}
	c.teams = append(c.teams, split(group, first, events)...)
}

// A turn is when a team is opened: the first time, or again to be seen for
// longer.
type turn struct {
	team  *team
	again bool
}

// turns returns the teams that are counted in a run for one group, or for -1
// all of them in the order of their turns, after what is counted always. The
// kernel's rotation keeps the order in which groups were opened and gives each
// the same time, so that one which is opened twice is seen twice as long.
func (c *scheme) turns(spec *Spec, group int) []turn {
	var list []turn
	seen := map[*team]bool{}
	add := func(g int) {
		for i := range c.teams {
			if t := &c.teams[i]; t.group == g {
				list = append(list, turn{t, seen[t]})
				seen[t] = true
			}
		}
	}
	add(-1)
	if group >= 0 {
		add(group)
		return list
	}
	for _, g := range spec.Turns {
		add(g)
	}
	for g := range spec.Groups {
		if !slices.Contains(spec.Turns, g) {
			add(g)
		}
	}
	return list
}

// split parts a group into what one PMU's processors can count: an event of
// the cores and one of a memory controller are not opened on the same
// processors. Events that any processor counts stay with the first.
func split(group, first int, events []Event) []team {
	var teams []team
	for i, e := range events {
		if e.tool != noTool {
			continue
		}
		for k, p := range append([]*PMU{e.PMU}, e.Alike...) {
			m := member{name: e.Name, column: first + i, attr: e.Attr, scale: e.Scale}
			if m.attr.Sample == 0 {
				m.attr.Precise = 0 // of no use without samples, for which the kernel would refuse it
			}
			if m.scale == 0 {
				m.scale = 1
			}
			if k > 0 {
				m.attr.Type = p.Type
			}
			t := find(&teams, group, p)
			t.events = append(t.events, m)
		}
	}
	return teams
}

// find returns the team of a PMU, or a new one.
func find(teams *[]team, group int, p *PMU) *team {
	if p != nil && p.CPUs == nil {
		p = nil
	}
	for i := range *teams {
		t := &(*teams)[i]
		if t.pmu == p || p == nil || t.pmu == nil {
			if p != nil {
				t.pmu, t.cpus = p, p.CPUs
			}
			return t
		}
	}
	*teams = append(*teams, team{group: group, pmu: p})
	t := &(*teams)[len(*teams)-1]
	if p != nil {
		t.cpus = p.CPUs
	}
	return t
}
