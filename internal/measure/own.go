package measure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// Events of the user's own: instead of a plan's, or next to them if the user chose a method
// or its nodes as well.

// ownAlone reports whether nothing but the user's own events is counted.
func (m *Measurement) ownAlone() bool {
	c := &m.options.Choice
	return m.options.Events != "" && c.Model == "" && c.Nodes == "" && c.Level == 0 && !m.options.All
}

// ownEvents finds the user's own events.
func (m *Measurement) ownEvents() ([][]perfevent.Event, error) {
	m.machine.Sys.Names = m.spelled
	groups, err := m.machine.Sys.ResolveSampled(m.options.Events, 0, false)
	if err != nil {
		return nil, &fault.OptionError{Option: "event", Err: err}
	}
	restrict := &part{mode: m.options.Mode}
	for _, g := range groups {
		for i := range g {
			a := &g[i].Attr
			if a.Sample, a.Freq = 0, false; !a.ExcludeUser && !a.ExcludeKernel {
				restrict.restrict(&g[i])
			}
		}
	}
	return groups, nil
}

// spelled returns perf's spelling of an event that the processor's table names; "" if it
// has none. Without a PMU it is the code, which the kernel refuses for what it is.
func (m *Measurement) spelled(name string) string {
	r, err := m.resolver()
	if err != nil {
		return ""
	}
	cpu, err := r.Catalogue.CPU(m.id())
	if err != nil {
		return ""
	}
	table, err := r.Catalogue.Events(cpu)
	if err != nil {
		return ""
	}
	e, ok := table.Lookup(name)
	switch {
	case !ok || strings.Contains(name, ":") || e.NoCode || e.PMU != "":
		return ""
	case len(m.machine.Sys.Core()) == 0:
		return fmt.Sprintf("r%x", e.Config)
	}
	return model.Spell(cpu, e)
}

// ownPart makes the one part of the user's own events. The processor time is counted as
// well, for rates, and a dummy: so something is counted where the kernel has none of the
// events.
func (m *Measurement) ownPart() error {
	groups, err := m.ownEvents()
	if err != nil {
		return err
	}
	p := &part{names: map[string]string{}, mode: m.options.Mode, own: own{alone: true}}
	p.method = p.own.chosen
	p.own.choose = m.ownMethod
	p.addOwn(groups)
	for _, name := range append([]string{"task-clock", "dummy"}, OSTimes...) {
		ev, err := m.machine.Sys.Resolve(name)
		if err != nil || m.unfit(name) != "" || p.names[name] != "" {
			continue
		}
		if p.always = append(p.always, ev); name != "dummy" {
			p.names[name] = name
		}
	}
	m.parts = []*part{p}
	return nil
}

// besides adds the user's own events to those of the plan.
func (m *Measurement) besides() error {
	if m.options.Events == "" || len(m.parts) == 0 {
		return nil
	}
	groups, err := m.ownEvents()
	if err != nil {
		return err
	}
	m.parts[0].addOwn(groups)
	return nil
}

// own is what a part has of the user's own events.
type own struct {
	alone bool // there are no others
	// choose finds the method that says most of a table.
	choose func(*counts.Table) (*resolve.Method, error)
	method *resolve.Method
	failed error
}

// addOwn adds groups of the user's own events. A software event by itself needs no
// counter: next to a plan's groups it is counted all of the time.
func (p *part) addOwn(groups [][]perfevent.Event) {
	for _, g := range groups {
		for i := range g {
			g[i].Named, p.names[g[i].Name] = true, g[i].Name
		}
		if !p.own.alone && len(g) == 1 && slices.Contains([]uint32{perffile.TypeSoftware, perffile.TypeTracepoint}, g[0].Attr.Type) {
			p.always = append(p.always, g[0])
			continue
		}
		p.groups = append(p.groups, g)
	}
}

// see chooses the method for the first table.
func (o *own) see(t *counts.Table) {
	if o.choose != nil && o.method == nil && o.failed == nil {
		o.method, o.failed = o.choose(t)
	}
}

// chosen returns the method for the tables; nil before the first.
func (o *own) chosen() (*resolve.Method, error) { return o.method, o.failed }

// ownMethod finds the methods that the user's own events allow, the best first.
func (m *Measurement) ownMethod(t *counts.Table) (*resolve.Method, error) {
	r, err := m.resolver()
	if err != nil {
		return nil, err
	}
	p := resolve.Processor{ID: m.id()}
	if p.CPU, err = r.Catalogue.CPU(p.ID); err != nil {
		if p.CPU, err = r.Catalogue.CPU(resolve.GenericCPU); err != nil {
			return nil, err
		}
	}
	return r.Choose(p, t, resolve.Request{Anywhere: true})
}
