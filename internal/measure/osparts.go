package measure

import (
	"slices"
	"sync"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// osEvents are the events of the operating system's method.
var osEvents = slices.Concat([]string{"task-clock"}, OSTimes, []string{"context-switches", "cpu-migrations", "page-faults", "major-faults"})

// OSTimes are the operating system's events that need no permission.
var OSTimes = []string{"user_time", "system_time"}

// unfit says why one of the operating system's events would mean something else than its
// name for the target; "" if it would not.
func (m *Measurement) unfit(event string) string {
	switch event {
	case "context-switches", "cpu-migrations":
		// Restricted to user mode they read 0, whatever happened.
		if m.machine.UserOnly() {
			return "it happens in the kernel, which may not be counted"
		}
	case "task-clock", "cpu-clock":
		// On a CPU, and not for a task, the clocks run whether it is idle or not.
		if m.cpus() {
			return "of a CPU it is the time that passes, idle or not"
		}
	}
	return ""
}

// osParts makes the one part of what the operating system counts. It needs nothing of the
// catalogue. The kernel's events are one group, which is read at once; software events
// need no counters and are not multiplexed.
func (m *Measurement) osParts() {
	m.all = true
	p := &part{method: sync.OnceValues(m.osMethod), names: map[string]string{}}
	var group []perfevent.Event
	for _, name := range osEvents {
		if why := m.unfit(name); why != "" {
			p.notes = append(p.notes, counts.Notef("not counted: %s (%s)", name, why))
			continue
		}
		if ev, err := m.machine.Sys.Resolve(name); err == nil {
			ev.Name, p.names[name] = name, name
			if slices.Contains(OSTimes, name) {
				p.always = append(p.always, ev)
			} else {
				group = append(group, ev)
			}
		}
	}
	p.groups = [][]perfevent.Event{group}
	for _, c := range slices.Concat(ostime.Columns[:], ostime.MachineColumns[:]) {
		p.names[c.Event] = c.Event
	}
	m.parts = []*part{p}
}

// osTimesAlone leaves of the operating system's counts only the times that it tells the parent
// of an ended process.
func (m *Measurement) osTimesAlone(refused error) {
	p := m.parts[0]
	p.groups = nil
	p.notes = append(p.notes, counts.Notef("only user and system time are known, as nothing may be counted (%v)", refused))
}

// osOnly reports whether the operating system's account is the only one.
func (m *Measurement) osOnly() bool { return m.simulator == nil && m.parts[0].pmu == nil }

// osMethod finds the method for what the operating system counts. Next to another account
// the choice of nodes and parameters is about that.
func (m *Measurement) osMethod() (*resolve.Method, error) {
	r, err := m.resolver()
	if err != nil {
		return nil, err
	}
	c := r.Choice
	c.SMT = "" // it does not matter here whether cores are shared
	if !m.osOnly() {
		c.Nodes, c.Level, c.Params, c.Penalties, c.Model = "", 0, nil, "", ""
	}
	if r, err = resolve.With(r.Catalogue, c); err != nil {
		return nil, err
	}
	p := resolve.Processor{}
	if p.CPU, err = r.Catalogue.CPU(resolve.GenericCPU); err != nil {
		return nil, err
	}
	s, err := r.Select(p, resolve.OSModel)
	if err != nil {
		return nil, err
	}
	s.Events = s.Events.Unrelated() // the operating system's are not related to each other
	if named := r.Named(); named.CPU != nil {
		s.CPU = named.CPU
	} else if id, err := model.HostID(m.machine.Root); err == nil {
		if cpu, err := r.Catalogue.CPU(id); err == nil {
			s.CPU = cpu
		}
	}
	if err := s.CheckNodes(); err != nil {
		return nil, err
	}
	return s.Compile(nil)
}
