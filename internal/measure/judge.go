package measure

import (
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// judge adds to an account what is only known here: which of its values mean less than
// they say because of what was counted, and what would change that.
func (m *Measurement) judge(p *part, a *account.Account) {
	if m.rows() && p.label != "" {
		a.Scope.Label = strings.TrimPrefix(a.Scope.Label+" "+p.label, " ")
	}
	if p.pmu == nil {
		return
	}
	halves := false
	longest := 0.0 // that a run must be, in seconds
	for _, n := range p.plan.Nodes {
		if n.Index >= len(a.Nodes) {
			continue // of a plan from the cache that was tampered with
		}
		v, node := &a.Nodes[n.Index], &a.Model().Nodes[n.Index]
		if m.smt == "on" && AboutCore(node) && v.Reliable() && !m.wholeCores(a.Scope.Kind) {
			v.Doubt, halves = account.DoubtCore, true
		}
		if v.Doubt == account.DoubtCoverage {
			longest = max(longest, p.plan.ShortestRun(false), plan.EnoughSeconds/v.Coverage)
		}
	}
	if halves {
		a.Notes = append(a.Notes, HalfCores)
	}
	if longest > 0 && len(p.plan.Groups) > 1 && !a.Interval {
		note := counts.Notef("a run of %s counts all of them", number(int(math.Ceil(longest)), "second"))
		a.Notes = append(a.Notes, note.With(counts.Fix{Action: counts.CountSeparately, Number: p.plan.Runs()}))
	}
	switch zero, of := p.zeros(a); {
	case len(zero) == 0 || m.rows():
	case len(zero) == of:
		a.Notes = append(a.Notes, counts.Notef("every event of the processor read 0: the target did not run, or this machine does not count"))
	default:
		a.Notes = append(a.Notes, counts.Notef("read 0, as none happened or as this machine does not count them: %s", accounting.FirstOf(zero)))
	}
}

// zeros lists the processor's events that were on a counter and read 0, of so many that
// were on one.
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

// wholeCores reports whether the accounts of a kind have the counts of all logical
// processors of their cores.
func (m *Measurement) wholeCores(kind counts.Kind) bool {
	if !m.cpus() || kind == counts.CPU {
		return false
	}
	if m.options.Target.All {
		return true
	}
	counted := map[int]bool{}
	for _, cpu := range m.options.Target.CPUs {
		counted[cpu] = true
	}
	topology, _ := m.machine.Sys.Topology() // it was understood before counting began
	type core struct{ core, die, socket int }
	touched := map[core]bool{}
	for _, cpu := range topology {
		if counted[cpu.ID] {
			touched[core{cpu.Core, cpu.Die, cpu.Socket}] = true
		}
	}
	return !slices.ContainsFunc(topology, func(cpu perfevent.CPU) bool {
		return touched[core{cpu.Core, cpu.Die, cpu.Socket}] && !counted[cpu.ID]
	})
}
