package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A part of a counting has an account of its own: one for each type of core,
// and one for each mode that is told apart. All parts are counted at one time.
type part struct {
	find   func() (*session, error) // the processor and the method, once
	s      *session                 // found
	plan   *plan.Plan               // nil for what the operating system counts
	pmu    *perfevent.PMU           // nil likewise
	cpu    string                   // the processor's name
	mode   mode
	label  string // what tells it from other parts; "" if it is the only one
	groups [][]perfevent.Event
	turns  []int // the order in which the groups take turns
	always []perfevent.Event
	names  map[string]string // of its columns in tables: what the account is to call them
	notes  []counts.Note
	view   view
}

// A mode is the privilege level that is counted.
type mode string

const (
	anyMode    mode = ""
	userMode   mode = "user"
	kernelMode mode = "kernel"
)

// suffix is what the names of a part's events end in, so that the columns of
// several parts are told apart, and messages say which one is meant.
func (p *part) suffix(several bool) string {
	s := ""
	if several {
		s = " on " + p.pmu.Name
	}
	switch p.mode {
	case userMode:
		s += ":u"
	case kernelMode:
		s += ":k"
	}
	return s
}

// A resolver asks the kernel for a plan's events. What it does not have is left
// out: the nodes that need it will be missing, and a note says why.
type resolver struct {
	part    *part
	sys     *perfevent.System
	several bool                // the machine's other cores are of another type
	unfit   func(string) string // why an event says nothing about what is counted; "" if it does
	lacking []string            // events, and why
}

// resolve finds the events of a part's plan.
func (j *job) resolve(p *part, several bool) {
	p.names = map[string]string{}
	r := &resolver{part: p, sys: j.machine.Sys, several: several, unfit: j.unfit}
	r.groups()
	r.always()
	if len(r.lacking) > 0 {
		p.notes = append(p.notes, counts.Notef("not counted: %s", accounting.FirstOf(r.lacking)))
	}
}

// groups finds the events of the groups, and in which order these take turns.
func (r *resolver) groups() {
	p := r.part
	at := make([]int, len(p.plan.Groups)) // of the plan's groups
	for i := range p.plan.Groups {
		var group []perfevent.Event
		for k := range p.plan.Groups[i].Events {
			if ev, ok := r.event(&p.plan.Groups[i].Events[k]); ok {
				group = append(group, ev)
			}
		}
		at[i] = -1
		if len(group) > 0 {
			at[i] = len(p.groups)
			p.groups = append(p.groups, group)
		}
	}
	for _, g := range p.plan.Rotation {
		if at[g] >= 0 {
			p.turns = append(p.turns, at[g])
		}
	}
}

// always finds the events that are counted beside the groups.
func (r *resolver) always() {
	for i := range r.part.plan.Always {
		e := &r.part.plan.Always[i]
		switch why := r.unfit(e.Name); {
		case e.Name == "duration_time": // every table has it
		case why != "":
			r.lack(e.Name, why)
		default:
			if ev, ok := r.event(e); ok {
				r.part.always = append(r.part.always, ev)
			}
		}
	}
}

func (r *resolver) lack(event, why string) {
	if note := event + " (" + why + ")"; !slices.Contains(r.lacking, note) {
		r.lacking = append(r.lacking, note)
	}
}

// event finds one event.
func (r *resolver) event(e *plan.Event) (perfevent.Event, bool) {
	p := r.part
	ev, err := r.sys.Resolve(p.spelling(e, r.several))
	if err != nil {
		r.lack(e.Name, err.Error())
		return ev, false
	}
	ev.Name = e.Name
	if e.Core {
		ev.Name += p.suffix(r.several)
		p.restrict(e, &ev)
	}
	p.names[ev.Name] = e.Name
	return ev, true
}

// spelling is the event as the kernel is asked for it. Where there are several
// types of cores, a code alone does not say which is meant.
func (p *part) spelling(e *plan.Event, several bool) string {
	if !several || !e.Core || strings.HasPrefix(e.Perf, p.pmu.Name+"/") {
		return e.Perf
	}
	if e.ID.Name != "" {
		return fmt.Sprintf("%s/%s/%s", p.pmu.Name, e.ID.Name, e.ID.Privilege)
	}
	return fmt.Sprintf("%s/config=%#x,config1=%#x/%s", p.pmu.Name, e.ID.Config, e.ID.Config1, e.ID.Privilege)
}

// restrict restricts an event to the part's mode, unless its own says more.
func (p *part) restrict(e *plan.Event, ev *perfevent.Event) {
	if e.ID.Privilege&(model.User|model.Kernel|model.Hypervisor) != 0 {
		return
	}
	switch p.mode {
	case userMode:
		ev.Attr.ExcludeKernel, ev.Attr.ExcludeHV = true, true
	case kernelMode:
		ev.Attr.ExcludeUser, ev.Attr.ExcludeHV = true, true
	}
}

// A view is a table with some of another's columns, under other names.
type view struct {
	of      *counts.Layout
	columns []int
	table   *counts.Table // nil if the other table will do as it is
	out     counts.Table  // what was returned last
}

// table returns what a part has of a table, under the names that its method
// knows. It is valid until the next call.
func (p *part) table(t *counts.Table) *counts.Table {
	v := &p.view
	if v.of != t.Layout {
		v.adopt(t.Layout, p.names)
	}
	out := &v.out
	*out = *t
	if v.table != nil {
		for i := range t.Scopes {
			from, to := t.Row(i), v.table.Row(i)
			for k, c := range v.columns {
				to[k] = from[c]
			}
		}
		cells := v.table
		cells.TakeRuns(t, v.columns)
		*out = *cells
		out.Label, out.Start, out.Duration, out.Interval = t.Label, t.Start, t.Duration, t.Interval
		out.Elapsed, out.Relative, out.Notes = t.Elapsed, t.Relative, t.Notes
	}
	if len(p.notes) > 0 {
		out.Notes = slices.Concat(p.notes, out.Notes)
	}
	if p.label != "" {
		out.Label = strings.TrimPrefix(out.Label+", "+p.label, ", ")
	}
	return out
}

// adopt finds a part's columns in a layout.
func (v *view) adopt(l *counts.Layout, names map[string]string) {
	*v = view{of: l}
	own := &counts.Layout{Scopes: l.Scopes}
	same := true
	for i, c := range l.Columns {
		name, ok := names[c.Event]
		if !ok {
			same = false
			continue
		}
		same = same && name == c.Event
		c.Event = name
		v.columns = append(v.columns, i)
		own.Columns = append(own.Columns, c)
	}
	if !same {
		v.table = counts.NewTable(own)
	}
}

// how says in words how a part was counted, for the first line of its account.
func (p *part) how(t *counts.Table, why string, separate bool) string {
	n := p.counted(t)
	switch {
	case p.pmu == nil && why == "":
		return "counted by the operating system"
	case p.pmu == nil:
		return "counted by the operating system, as " + why
	case n == 0:
		return "counted by the kernel"
	case separate && n > 1:
		return fmt.Sprintf("counted by the PMU in %d runs", n)
	}
	least, most := coverages(t)
	text := "counted by the PMU in " + several(n, "group")
	each := ""
	if n > 1 {
		each = " each"
	}
	switch low, high := percent(least), percent(most); {
	case math.IsNaN(least) || low == 100:
		return text
	case low == high:
		return fmt.Sprintf("%s (%d %%%s)", text, low, each)
	default:
		return fmt.Sprintf("%s (%d to %d %%%s)", text, low, high, each)
	}
}

// counted returns how many of a part's groups were counted, in part at least:
// of some the kernel may have refused every event.
func (p *part) counted(t *counts.Table) int {
	n := 0
	for _, group := range p.groups {
		if slices.ContainsFunc(group, func(e perfevent.Event) bool { return supported(t, p.names[e.Name]) }) {
			n++
		}
	}
	return n
}

// supported reports whether the kernel opened an event.
func supported(t *counts.Table, name string) bool {
	for k, c := range t.Columns {
		if c.Event != name {
			continue
		}
		for i := range t.Scopes {
			if s := t.Cell(i, k).State; s == counts.Counted || s == counts.NotCounted {
				return true
			}
		}
	}
	return false
}

func percent(share float64) int { return int(math.Round(100 * share)) }

// coverages returns the least and the largest share of the time for which a
// group of a table was counted; NaN where there is none.
func coverages(t *counts.Table) (least, most float64) {
	least, most = math.NaN(), math.NaN()
	for i := range t.Scopes {
		row := t.Row(i)
		for k := range row {
			if t.Columns[k].Group == 0 || !row[k].Ok() {
				continue
			}
			if c := row[k].Coverage(); !math.IsNaN(c) {
				least, most = minKnown(least, c), maxKnown(most, c)
			}
		}
	}
	return least, most
}

func minKnown(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return min(a, b)
}

func maxKnown(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return max(a, b)
}
