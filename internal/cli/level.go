package cli

import (
	"io"
	"math"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// options are a plan's options for this machine: what Linux would not count here is
// of no use in it.
func (j *job) options() plan.Options {
	probe := j.machine.Probe
	return plan.Options{SMT: j.c.smt == "on", Watchdog: probe.Watchdog, Counters: probe.Counters, Errata: true}
}

// plan makes the plan for a method: for the nodes that are asked for, or as deep
// as the counting can be relied upon.
func (j *job) plan(s *session, all bool) (p *plan.Plan, err error) {
	opt := j.options()
	opt.Level = j.c.level
	if j.c.nodes != "" || all {
		chosen := j.c.options(io.Discard)
		chosen.All = all
		if opt.Nodes, err = chosen.Chosen(s.model); err != nil {
			return nil, usageError("--nodes: %v", err)
		}
	}
	if opt.Set = j.set; opt.Set != "" || opt.Level > 0 || opt.Nodes != nil {
		p, err = plan.New(s.model, s.events, opt)
	} else {
		p, err = deepest(s.model, s.events, opt, j.seconds())
	}
	if err != nil {
		return nil, usageError("%v", err)
	}
	return p, nil
}

// unknownRun is how long a run is taken to be whose length is not known.
const unknownRun = 6 * time.Second

// seconds is how long an account's counts can be expected to be gathered.
func (j *job) seconds() float64 {
	d := unknownRun
	if t := time.Duration(j.f.timeout); t > 0 {
		d = t
	}
	if i := time.Duration(j.f.interval); i > 0 {
		d = i
	}
	if j.f.split {
		d /= 2
	}
	return d.Seconds()
}

// deepest returns the plan for the deepest level of the tree of which every
// node is counted for long enough to be relied upon, in a run of so many
// seconds.
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

// sampling returns the interval at which the counters are read for the sake of
// the errors. It is 0 where no groups take turns.
func (j *job) sampling() time.Duration {
	if j.f.separate || j.f.repeat > 1 {
		return 0
	}
	all, turns := 0, map[*perfevent.PMU]int{}
	for _, p := range j.parts {
		if p.pmu != nil {
			all += len(p.turns)
			turns[p.pmu] += len(p.turns)
		}
	}
	readers := 1
	switch {
	case len(j.target.CPUs) > 0:
		readers = len(j.target.CPUs)
	case j.target.All:
		readers = len(j.machine.Sys.CPUs)
	}
	longest := time.Duration(0)
	for pmu, n := range turns {
		longest = max(longest, measure.Interval(n, all, readers, j.machine.Turn(pmu)))
	}
	return longest
}

// judge adds to an account what only is known here: which of its values mean
// less than they say because of what was counted, and what would mend it.
func (j *job) judge(p *part, a *account.Account) {
	if j.rows && p.label != "" {
		a.Scope.Label = strings.TrimPrefix(a.Scope.Label+" "+p.label, " ")
	}
	if p.pmu == nil {
		return
	}
	var core []string
	longest := 0.0 // that a run must be, in seconds
	for _, n := range p.plan.Nodes {
		if n.Index >= len(a.Nodes) {
			continue // of a plan that was remembered, and tampered with
		}
		v, node := &a.Nodes[n.Index], &a.Model().Nodes[n.Index]
		if j.c.smt == "on" && measure.AboutCore(node) && v.Reliable() && !j.wholeCores(a.Scope.Kind) {
			v.Doubt = account.DoubtCore
			core = append(core, node.Name)
		}
		if v.Doubt == account.DoubtCoverage {
			longest = max(longest, p.plan.ShortestRun(false), plan.EnoughSeconds/v.Coverage)
		}
	}
	if len(core) > 0 {
		a.Notes = append(a.Notes, measure.HalfCores)
	}
	if longest > 0 && len(p.plan.Groups) > 1 && !a.Interval {
		note := counts.Notef("a run of %s would do for all", several(int(math.Ceil(longest)), "second"))
		note.Kind = counts.NoteRunLonger
		a.Notes = append(a.Notes, note.With(counts.Fix{Action: counts.CountSeparately, Number: p.plan.Runs()}))
	}
	switch zero, of := p.zeros(a); {
	case len(zero) == 0 || j.rows:
	case len(zero) == of:
		a.Notes = append(a.Notes, counts.Notef("every event of the processor read 0: what was counted did not run, or this machine does not count it"))
	default:
		a.Notes = append(a.Notes, counts.Notef("read 0, as none happened or as this machine does not count them: %s", accounting.FirstOf(zero)))
	}
}

// zeros lists the processor's events that were on a counter and read 0, of so
// many that were on one.
func (p *part) zeros(a *account.Account) (zero []string, of int) {
	core := map[string]bool{}
	for _, group := range p.plan.Groups {
		for _, e := range group.Events {
			core[e.Name] = true
		}
	}
	seen := map[string]bool{}
	for _, c := range a.Counts() {
		if !core[c.Event] || c.State != counts.Counted || seen[c.Event] {
			continue
		}
		seen[c.Event] = true
		if c.Value == 0 {
			zero = append(zero, c.Event)
		}
	}
	return zero, len(seen)
}

// wholeCores reports whether the accounts of a kind have the counts of all
// logical processors of their cores.
func (j *job) wholeCores(kind counts.Kind) bool {
	if !j.f.machine() || len(j.target.Cgroups) > 0 || kind == counts.CPU {
		return false
	}
	if j.f.all {
		return true
	}
	counted := map[int]bool{}
	for _, cpu := range j.target.CPUs {
		counted[cpu] = true
	}
	topology, _ := j.machine.Sys.Topology() // it was understood before counting began
	type core struct{ core, die, socket int }
	touched := map[core]bool{}
	for _, cpu := range topology {
		if counted[cpu.ID] {
			touched[core{cpu.Core, cpu.Die, cpu.Socket}] = true
		}
	}
	for _, cpu := range topology {
		if touched[core{cpu.Core, cpu.Die, cpu.Socket}] && !counted[cpu.ID] {
			return false
		}
	}
	return true
}

// nodeNames are names of nodes as --nodes takes them.
func nodeNames(m *model.Model, nodes []int) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = m.Nodes[n].Name
	}
	return strings.Join(names, ",")
}
