package measure

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A part of a measurement has an account of its own: there is one for each type of core
// and each mode. All parts are counted at the same time.
type part struct {
	method func() (*resolve.Method, error) // finds it, once
	plan   *plan.Plan                      // nil for what the operating system counts
	pmu    *perfevent.PMU                  // nil likewise
	cpu    string                          // the processor's name
	mode   Mode
	label  string // tells it from other parts; "" if it is the only one
	notes  []counts.Note

	groups   [][]perfevent.Event
	rotation []int // the order of the groups in multiplexing
	always   []perfevent.Event
	names    map[string]string // from the columns of tables to what the account calls them
	view     view
	own      own
}

// suffix is the end of the names of a part's events. It tells the columns of several parts
// apart, and says in messages which part is meant.
func (p *part) suffix(several bool) string {
	s := ""
	if several {
		s = " on " + p.pmu.Name
	}
	switch p.mode {
	case UserMode:
		s += ":u"
	case KernelMode:
		s += ":k"
	}
	return s
}

// pmuParts makes a part for each type of core and each mode.
func (m *Measurement) pmuParts() error {
	list, err := m.corePlans()
	if err != nil {
		return err
	}
	if m.options.OneCoreType && len(list) > 1 {
		list = list[:1]
		list[0].Note = fmt.Sprintf("only what ran on cores of type %s was counted", list[0].PMU)
	}
	for _, c := range list {
		m.all = m.all || c.All
		method := sync.OnceValues(func() (*resolve.Method, error) { return m.method(c.CPU) })
		for _, mode := range m.modes() {
			p := &part{pmu: m.machine.Sys.PMU(c.PMU), cpu: c.CPU, mode: mode, plan: c.Plan, method: method}
			m.name(p, c.Note, len(list) > 1)
			m.find(p, len(list) > 1)
			m.parts = append(m.parts, p)
		}
	}
	return m.check()
}

// selection finds the method for a type of core, by the name of its processor.
func (m *Measurement) selection(cpu string) (*resolve.Selection, error) {
	r, err := m.resolver()
	if err != nil {
		return nil, err
	}
	p := resolve.Processor{ID: m.id()}
	if p.CPU, err = r.Catalogue.CPU(cpu); err != nil {
		return nil, err
	}
	s, err := r.Select(p, "")
	if err != nil {
		return nil, err
	}
	return s, s.CheckNodes()
}

// method is selection for a method that is ready to make accounts.
func (m *Measurement) method(cpu string) (*resolve.Method, error) {
	s, err := m.selection(cpu)
	if err != nil {
		return nil, err
	}
	return s.Compile(nil)
}

// modes are the modes that have a part each.
func (m *Measurement) modes() []Mode {
	switch mode := m.options.Mode; {
	case mode == SplitModes:
		return []Mode{UserMode, KernelMode}
	case mode == AnyMode && m.machine.UserOnly() && !m.cpus():
		return []Mode{UserMode}
	default:
		return []Mode{mode}
	}
}

// name labels a part, and notes what is assumed for it.
func (m *Measurement) name(p *part, note string, several bool) {
	var labels []string
	if several && !m.options.OneCoreType {
		labels = append(labels, p.pmu.Name)
	}
	switch p.mode {
	case UserMode:
		labels = append(labels, "user mode")
	case KernelMode:
		labels = append(labels, "the kernel")
	}
	p.label = strings.Join(labels, ", ")
	if note != "" {
		p.notes = append(p.notes, counts.Notef("%s", note))
	}
	if p.mode == UserMode && m.options.Mode == AnyMode {
		p.notes = append(p.notes, counts.Notef("only user mode was counted, as perf_event_paranoid is %d here; sysctl kernel.perf_event_paranoid=1 allows the kernel as well",
			m.machine.Probe.Paranoid))
	}
}

// A finder asks the kernel for a plan's events. An event that it does not have is left
// out: the nodes that need it are missing, and a note says why.
type finder struct {
	part    *part
	sys     *perfevent.System
	several bool                // the machine's other cores are of another type
	unfit   func(string) string // why an event says nothing about what is counted; "" if it does
	lacking []string            // events, and why
}

func (m *Measurement) finder(p *part, several bool) *finder {
	p.names = map[string]string{}
	return &finder{part: p, sys: m.machine.Sys, several: several, unfit: m.unfit}
}

// find finds the events of a part's plan.
func (m *Measurement) find(p *part, several bool) {
	f := m.finder(p, several)
	f.groups()
	f.always()
	for _, name := range m.options.Generic {
		f.generic(name)
	}
	if len(f.lacking) > 0 {
		p.notes = append(p.notes, counts.Notef("not counted: %s", accounting.FirstOf(f.lacking)))
	}
}

// groups finds the events of the groups, and the order of these in multiplexing.
func (f *finder) groups() {
	p := f.part
	at := make([]int, len(p.plan.Groups)) // of the plan's groups
	for i := range p.plan.Groups {
		var group []perfevent.Event
		for k := range p.plan.Groups[i].Events {
			if ev, ok := f.event(&p.plan.Groups[i].Events[k]); ok {
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
			p.rotation = append(p.rotation, at[g])
		}
	}
}

// always finds the events that are counted next to the groups.
func (f *finder) always() {
	for i := range f.part.plan.Always {
		e := &f.part.plan.Always[i]
		switch why := f.unfit(e.Name); {
		case e.Name == "duration_time": // every table has it
		case why != "":
			f.lack(e.Name, why)
		default:
			if ev, ok := f.event(e); ok {
				f.part.always = append(f.part.always, ev)
			}
		}
	}
}

// generic finds a generic event, unless one of the plan's is the same.
func (f *finder) generic(name string) {
	ref, err := model.ParseEvent(name)
	if err != nil {
		return
	}
	method, err := f.part.method()
	if err != nil { // which is said when the account is made
		return
	}
	id := method.Events.Resolve(ref).Event()
	for _, g := range f.part.plan.Groups {
		if slices.ContainsFunc(g.Events, func(e plan.Event) bool { return e.ID.Event() == id }) {
			return
		}
	}
	ev, err := f.sys.Resolve(name)
	if err != nil {
		return
	}
	ev.Name = name
	f.part.restrict(&ev)
	f.part.names[name] = name
	f.part.always = append(f.part.always, ev)
}

func (f *finder) lack(event, why string) {
	if note := event + " (" + why + ")"; !slices.Contains(f.lacking, note) {
		f.lacking = append(f.lacking, note)
	}
}

// event finds one event.
func (f *finder) event(e *plan.Event) (perfevent.Event, bool) {
	p := f.part
	ev, err := f.sys.Resolve(p.spelling(e, f.several))
	if err != nil {
		f.lack(e.Name, err.Error())
		return ev, false
	}
	ev.Name = e.Name
	if e.Core {
		ev.Name += p.suffix(f.several)
		if e.ID.Privilege&(model.User|model.Kernel|model.Hypervisor) == 0 {
			p.restrict(&ev)
		}
	}
	p.names[ev.Name] = e.Name
	return ev, true
}

// spelling is the event as the kernel is asked for it. Where there are several types of
// cores, a code alone does not say which is meant.
func (p *part) spelling(e *plan.Event, several bool) string {
	if !several || !e.Core || strings.HasPrefix(e.Perf, p.pmu.Name+"/") {
		return e.Perf
	}
	if e.ID.Name != "" {
		return fmt.Sprintf("%s/%s/%s", p.pmu.Name, e.ID.Name, e.ID.Privilege)
	}
	return fmt.Sprintf("%s/config=%#x,config1=%#x/%s", p.pmu.Name, e.ID.Config, e.ID.Config1, e.ID.Privilege)
}

// restrict restricts an event to the part's mode.
func (p *part) restrict(ev *perfevent.Event) {
	switch p.mode {
	case UserMode:
		ev.Attr.ExcludeKernel, ev.Attr.ExcludeHV = true, true
	case KernelMode:
		ev.Attr.ExcludeUser, ev.Attr.ExcludeHV = true, true
	}
}

// A view is a table with some of another's columns, under other names.
type view struct {
	of      *counts.Layout
	columns []int
	table   *counts.Table // nil if the other table has the same columns
	out     counts.Table  // what was returned last
}

// table returns what a part has of a table, under the names that its method knows. It is
// valid until the next call.
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
