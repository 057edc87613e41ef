package measure

import (
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A corePlan is what to count on one type of core.
type corePlan struct {
	CPU  string     // its name in the catalogue
	PMU  string     // the kernel's
	Note string     // what was assumed
	All  bool       // the nodes outside the main tree were asked for
	Plan *plan.Plan // in the cache without its processor and method
}

// corePlans returns what to count on each type of core: from the cache, or else as it is
// worked out.
func (m *Measurement) corePlans() ([]corePlan, error) {
	cache := m.planCache()
	gone := func(c corePlan) bool { return m.machine.Sys.PMU(c.PMU) == nil }
	if list := cache.read(); list != nil && !slices.ContainsFunc(list, gone) {
		return list, nil
	}
	r, err := m.resolver()
	if err != nil {
		return nil, err
	}
	types, err := m.coreTypes(r)
	if err != nil {
		return nil, err
	}
	var list []corePlan
	for _, t := range types {
		s, err := m.selection(t.CPU.Name)
		if err != nil {
			return nil, err
		}
		// The generic tree says little, and the rest needs few events.
		all := m.options.All || t.CPU.Name == resolve.GenericCPU && !m.chosen()
		p, err := m.plan(s, all)
		if err != nil {
			return nil, err
		}
		list = append(list, corePlan{CPU: t.CPU.Name, PMU: t.PMU.Name, Note: t.Note, All: all, Plan: p})
	}
	cache.write(list)
	return list, nil
}

// coreTypes returns the types of cores that are counted.
func (m *Measurement) coreTypes(r *resolve.Resolver) ([]CoreType, error) {
	types, err := m.machine.CoreTypes(r.Catalogue, m.options.Choice.CPU)
	if err != nil {
		return nil, &fault.OptionError{Option: "cpu", Err: err}
	}
	return types, nil
}

// chosen reports whether the client chose how deep to look.
func (m *Measurement) chosen() bool {
	c := &m.options.Choice
	return c.Level != 0 || c.Nodes != "" || m.options.UsualLevel != 0
}

// planOptions are a plan's options for this machine. They leave out what Linux would not
// count here.
func (m *Measurement) planOptions() plan.Options {
	probe := m.machine.Probe
	return plan.Options{SMT: m.smt == "on", Watchdog: probe.Watchdog, Counters: probe.Counters, Errata: true}
}

// plan makes the plan for a method: for the nodes that are asked for, or as deep as the
// counts are reliable.
func (m *Measurement) plan(s *resolve.Selection, all bool) (p *plan.Plan, err error) {
	c := &m.options.Choice
	opt := m.planOptions()
	opt.Level = c.Level
	if c.Nodes != "" || all {
		if opt.Nodes, err = s.Model.Choose(c.Nodes, c.Level, all); err != nil {
			return nil, &fault.OptionError{Option: "nodes", Err: err}
		}
	}
	if opt.Level == 0 && opt.Nodes == nil {
		opt.Level = m.options.UsualLevel
	}
	if opt.Set = m.options.Set; opt.Set != "" || opt.Level > 0 || opt.Nodes != nil {
		p, err = plan.New(s.Model, s.Events, opt)
	} else {
		p, err = deepest(s.Model, s.Events, opt, m.seconds())
	}
	return p, fault.As(fault.Usage, err)
}

// unknownRun is the assumed length of a run whose length is not known.
const unknownRun = 6 * time.Second

// seconds is how long the counts of an account are gathered, as far as that is known.
func (m *Measurement) seconds() float64 {
	d := unknownRun
	if t := m.options.Period.Timeout; t > 0 {
		d = t
	}
	if i := m.options.Period.Interval; i > 0 {
		d = i
	}
	if m.options.Mode == SplitModes {
		d /= 2
	}
	return d.Seconds()
}

// deepest returns the plan for the deepest reliable level of the tree. A level is reliable if
// a run of so many seconds counts every node of it for long enough.
func deepest(m *model.Model, events *model.EventTable, opt plan.Options, seconds float64) (*plan.Plan, error) {
	last := 0
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Section == "" {
			last = max(last, n.Level)
		}
	}
	var best *plan.Plan
	for opt.Level = 1; opt.Level <= max(1, last); opt.Level++ {
		p, err := plan.New(m, events, opt)
		if err != nil {
			return nil, err
		}
		if best != nil && p.ShortestRun(false) > seconds {
			break
		}
		best = p
	}
	return best, nil
}

// sampling returns how often the counters are read to estimate errors. It is 0 if no groups
// are multiplexed.
func (m *Measurement) sampling() time.Duration {
	o := &m.options
	if o.Runs.Separate || o.Runs.Repeat > 1 {
		return 0
	}
	all, groups := m.groups()
	readers := 1
	switch {
	case len(o.Target.CPUs) > 0:
		readers = len(o.Target.CPUs)
	case o.Target.All:
		readers = len(m.machine.Sys.CPUs)
	}
	longest := time.Duration(0)
	for pmu, n := range groups {
		longest = max(longest, Interval(n, all, readers, m.machine.Slot(pmu)))
	}
	return longest
}

// groups returns how many groups all parts have, and how many share each PMU.
func (m *Measurement) groups() (all int, groups map[*perfevent.PMU]int) {
	groups = map[*perfevent.PMU]int{}
	for _, p := range m.parts {
		if p.pmu != nil {
			all += len(p.rotation)
			groups[p.pmu] += len(p.rotation)
		}
	}
	return all, groups
}

// rotation returns how long the longest rotation of multiplexed groups takes, if an
// interval holds two: the order of groups is not varied in shorter intervals, as these
// would miss groups.
func (m *Measurement) rotation(interval time.Duration) time.Duration {
	longest := time.Duration(0)
	_, groups := m.groups()
	for pmu, n := range groups {
		if n > 1 {
			longest = max(longest, time.Duration(n)*m.machine.Slot(pmu))
		}
	}
	if interval < 2*longest {
		return 0
	}
	return longest
}
