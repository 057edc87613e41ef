package perfevent

import (
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
)

// siblings are events that count at the same time, as one group of the kernel's. They are
// an event by itself, or the part of a Spec's group that counts on one PMU's processors.
type siblings struct {
	group  int // index in Spec.Groups; -1 for what is counted always
	events []member
	cpus   []int // of the PMU; nil for any
	pmu    *PMU  // nil if any processor will do
}

// A member is an event among its siblings.
type member struct {
	name   string
	column int
	attr   Attr
	filter string
	scale  float64
}

// A scheme is the columns of the tables and the groups that fill them.
type scheme struct {
	columns []counts.Column
	groups  []siblings
	tools   []tool // the columns without a counter
	last    int    // the highest number of a group
}

// A tool is a column without a counter.
type tool struct {
	column int
	kind   toolKind
}

func newScheme(spec *Spec) *scheme {
	c := &scheme{last: len(spec.Groups)}
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
		c.columns = append(c.columns, counts.Column{Event: e.Name, Unit: e.Unit, Group: group + 1, Named: e.Named})
		if e.tool == userTime || e.tool == systemTime {
			c.columns[first+i].Whole = ostime.ProgramTimes
		}
		if e.tool != noTool {
			c.tools = append(c.tools, tool{first + i, e.tool})
		}
	}
	c.groups = append(c.groups, split(group, first, events)...)
}

// A slot is one place in the rotation of the multiplexed groups.
type slot struct {
	siblings *siblings
	again    bool // the group has an earlier slot, too
}

// slots returns the groups that are counted in one run: one group, or for -1 all of
// them in the order of the rotation. What is counted always comes first. The kernel's
// rotation keeps the order of opening and gives each group the same time. So a group
// that is opened twice is counted twice as long.
func (c *scheme) slots(spec *Spec, group int) []slot {
	var list []slot
	seen := map[*siblings]bool{}
	add := func(g int) {
		for i := range c.groups {
			if t := &c.groups[i]; t.group == g {
				list = append(list, slot{t, seen[t]})
				seen[t] = true
			}
		}
	}
	if group < 0 && spec.Vary > 0 {
		list = append(list, slot{&steady, false})
	}
	add(-1)
	if group >= 0 {
		add(group)
		return list
	}
	for _, g := range spec.Rotation {
		add(g)
	}
	for g := range spec.Groups {
		if !slices.Contains(spec.Rotation, g) {
			add(g)
		}
	}
	return list
}

// split splits a group by PMU: an event of the cores and one of a memory controller
// are not opened on the same processors. Events that any processor counts stay with
// the first.
func split(group, first int, events []Event) []siblings {
	var groups []siblings
	for i, e := range events {
		if e.tool != noTool {
			continue
		}
		for k, p := range append([]*PMU{e.PMU}, e.Alike...) {
			m := member{name: e.Name, column: first + i, attr: e.Attr, filter: e.Filter, scale: e.Scale}
			if m.attr.Sample == 0 {
				m.attr.Precise = 0 // only for samples: the kernel would refuse it
			}
			if m.scale == 0 {
				m.scale = 1
			}
			if k > 0 {
				m.attr.Type = p.Type
			}
			t := find(&groups, group, p)
			t.events = append(t.events, m)
		}
	}
	return groups
}

// find returns the siblings of a PMU, or new ones.
func find(groups *[]siblings, group int, p *PMU) *siblings {
	if p != nil && p.CPUs == nil {
		p = nil
	}
	for i := range *groups {
		t := &(*groups)[i]
		if t.pmu == p || p == nil || t.pmu == nil {
			if p != nil {
				t.pmu, t.cpus = p, p.CPUs
			}
			return t
		}
	}
	*groups = append(*groups, siblings{group: group, pmu: p})
	t := &(*groups)[len(*groups)-1]
	if p != nil {
		t.cpus = p.CPUs
	}
	return t
}

// steady is an event that costs no counter and tells how long a place was counted.
var steady = siblings{group: -1, events: []member{{
	name: "time enabled", column: -1, attr: Attr{Type: perffile.TypeSoftware, Config: softwareDummy}, scale: 1,
}}}
