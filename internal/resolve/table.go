package resolve

import (
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/model"
)

// A Request is what a command needs of the method.
type Request struct {
	Prefer string // the method if the user names none; "" is the one that fits best
	Node   string // a node that the method must have; "" is any
	Audits bool   // the method that checks most fits best
	// Anywhere allows an unknown processor, with what holds on every one, and a table
	// without the events of any method.
	Anywhere bool
}

// takesUnknown reports whether an unknown processor is no error for a choice.
func (r *Resolver) takesUnknown(want Request) bool {
	return want.Audits || want.Anywhere && want.Prefer == "" && (r.Choice.Model == "" || neutral(r.Choice.Model))
}

// Table resolves the method for a table of a file. All tables of one call must be of
// one processor: counts of two are never put into one account. The first table
// chooses the method; before is the result for the table before, nil for the first.
func (r *Resolver) Table(t *counts.Table, file string, want Request, before *Method) (*Method, error) {
	p, err := r.Processor(t, file, want, before)
	if err != nil {
		return nil, err
	}
	if before != nil {
		if p == before.Processor {
			return before, nil
		}
		next := *before
		next.Processor = p
		return &next, nil
	}
	return r.Choose(p, t, want)
}

// Choose chooses the method for a table of a processor that is known.
func (r *Resolver) Choose(p Processor, t *counts.Table, want Request) (m *Method, err error) {
	switch {
	case r.Choice.Model == "" && simulated(t):
		m, err = r.Method(p, SimulatedModel)
	case r.Choice.Model == "" && want.Prefer == "":
		m, err = r.best(p, t, want)
	case r.Choice.Model == "":
		m, err = r.Method(p, want.Prefer)
	default:
		m, err = r.Method(p, "")
	}
	if err != nil {
		return nil, err
	}
	if r.open(want) && !simulated(t) {
		a := m.Evaluate(t, account.Place{})
		if a.Completeness() < halfKnown {
			full := r.fullest(p, t, m)
			full.Note = m.Note
			m, a = full, full.Evaluate(t, account.Place{})
		}
		m.Also = r.also(m, a, t)
	}
	m.Audits = want.Audits
	return m, nil
}

// open reports whether any methods will do that say something of a table.
func (r *Resolver) open(want Request) bool {
	return want.Anywhere && r.Choice.Model == "" && want.Prefer == "" && want.Node == "" && r.Choice.Nodes == ""
}

// also finds further methods for a table, for counts that an account does not use: the
// processor's own, then those for every processor.
func (r *Resolver) also(m *Method, a *account.Account, t *counts.Table) (list []*Method) {
	names := []string{m.Model.Name}
	for _, info := range r.Catalogue.Models(m.CPU.Name) {
		names = append(names, info.Name)
	}
	for i, name := range append(names, GenericCPU, OSModel) {
		if name == SMTModel || name == SimulatedModel || slices.Contains(names[:min(i, len(names))], name) {
			continue
		}
		other, err := r.Method(m.Processor, name)
		if err == nil && a.Extend(other.Evaluate(t, account.Place{})) {
			list = append(list, other)
		}
	}
	return list
}

// simulated reports whether a table has what simulators count: instructions that
// were executed, and not what a processor did.
func simulated(t *counts.Table) bool {
	return slices.ContainsFunc(t.Columns, func(c counts.Column) bool { return c.Event == "Ir" })
}

// Processor finds the processor of a table. before is the method of the table before,
// nil for the first.
func (r *Resolver) Processor(t *counts.Table, file string, want Request, before *Method) (Processor, error) {
	p := r.named
	if before != nil {
		p = before.Processor
	}
	if t.CPU != "" {
		cpu, err := r.Catalogue.CPU(t.CPU)
		switch {
		case err != nil && p.CPU == nil:
			return p, fault.Inputf("%s: it says its processor is %s: %v", Where(file, t.Line), t.CPU, err)
		case err != nil:
		case p.CPU == nil:
			p.CPU, p.File, p.ID = cpu, file, t.CPU
		case t.CPU == GenericCPU: // a simulator's counts are of no processor in particular
		case cpu.Name != p.CPU.Name && r.Choice.CPU != "":
			p.Note = counts.Notef("%s says that it is from %s; it was read as from %s, as asked", file, cpu.Name, p.CPU.Name)
		case cpu.Name != p.CPU.Name:
			return p, fault.Inputf("%s: from %s, but %s is from %s: report one processor at a time", Where(file, t.Line), cpu.Name, p.File, p.CPU.Name)
		case before == nil:
			p.ID = t.CPU
		case before.Measured != nil && before.Measured.Stored && t.CPU != p.ID:
			return p, &PenaltiesError{Err: fault.Inputf("%s: from %s, but the penalties that are stored here are of %s", Where(file, t.Line), t.CPU, p.ID)}
		}
	}
	if p.CPU != nil {
		return p, nil
	}
	unknown, err := r.unknownCPU(t, file)
	if err != nil {
		return p, err
	}
	if !r.takesUnknown(want) {
		return p, unknown
	}
	// What holds on every processor can be checked without knowing which it is.
	p.Unknown = unknown
	p.CPU, err = r.Catalogue.CPU(GenericCPU)
	return p, err
}

// firstLevelKnown is less than the completeness of any account with a known node of
// the first level.
const firstLevelKnown = 1e-3

// best chooses the method that says most about a table: the one with the largest
// known part of its first level. Of equals the first in the catalogue wins. The
// method for the operating system's counters is complete with next to nothing, so it
// serves only where no other method relates any counts.
func (r *Resolver) best(p Processor, t *counts.Table, want Request) (*Method, error) {
	var best *Method
	score, known, related := -1.0, 0.0, false
	failed := "" // the first method that cannot be resolved
	for _, info := range r.Catalogue.Models(p.CPU.Name) {
		m, err := r.Method(p, info.Name)
		if err != nil { // another method may have the parameters that were given
			if best == nil && failed == "" {
				failed = info.Name
			}
			continue
		}
		if want.Node != "" && !has(m.Model, want.Node) {
			continue
		}
		if info.Name == OSModel && related && !want.Audits {
			continue
		}
		a := m.Evaluate(t, account.Place{})
		related = related || Relates(a)
		if s := scoreOf(a, want); s > score || score < 0 {
			best, score, known = m, s, a.Completeness()
		}
	}
	note := p.Note
	if known < firstLevelKnown && r.aboutCores(p, t, known) {
		note = counts.Notef("the counts are of the logical processors of a core").With(counts.Fix{Action: counts.ReportCores})
	}
	if score <= 0 && p.CPU.Name != GenericCPU && !want.Audits && want.Node == "" && len(r.Choice.Params) == 0 {
		if m, err := r.Method(p, OSModel); err == nil && m.Evaluate(t, account.Place{}).Known() {
			m.Note = note
			return m, nil
		}
	}
	if best == nil {
		if m := r.anywhere(p, want.Node); m != nil {
			return m, nil
		}
		return r.Method(p, failed)
	}
	best.Note = note
	return best, nil
}

// halfKnown is the least completeness of a tree that is shown whatever else the counts
// say.
const halfKnown = 0.5

// fullest returns the method that uses most of a table's counts: one for every processor,
// or one of the processor's own that uses more.
func (r *Resolver) fullest(p Processor, t *counts.Table, best *Method) *Method {
	names := []string{GenericCPU}
	for _, info := range r.Catalogue.Models(p.CPU.Name) {
		names = append(names, info.Name)
	}
	most, complete := 0, 0.0
	for _, name := range append(names, OSModel) {
		m, err := r.Method(p, name)
		if err != nil || name == SMTModel || name == SimulatedModel {
			continue
		}
		a := m.Evaluate(t, account.Place{})
		n, c := a.Serves(), a.Completeness()
		if n > most || n == most && c > complete {
			best, most, complete = m, n, c
		}
	}
	return best
}

// anywhere returns a method for any processor that has a node; nil if none has.
func (r *Resolver) anywhere(p Processor, node string) *Method {
	for _, name := range []string{SimulatedModel, OSModel} {
		if m, err := r.Method(p, name); node != "" && err == nil && has(m.Model, node) {
			return m
		}
	}
	return nil
}

// aboutCores reports whether more is known of a table's cores than so large a part of
// the first level.
func (r *Resolver) aboutCores(p Processor, t *counts.Table, known float64) bool {
	m, err := r.Method(p, SMTModel)
	if err != nil {
		return false
	}
	core := account.Place{LP: []int{0, len(t.Scopes) - 1}}
	return m.Evaluate(t, core).Completeness() > known
}

// Relates reports whether an account relates counts of several events, so that it
// says more than they do.
func Relates(a *account.Account) bool {
	for i := range a.Nodes {
		if a.Relates(i) {
			return true
		}
	}
	return false
}

// scoreOf is how much an account says of what was asked: its nodes, or its checks. A
// whole tree counts for more than any number of checks.
func scoreOf(a *account.Account, want Request) float64 {
	const whole = 1e6
	switch {
	case !want.Audits:
		return a.Completeness()
	case a.Completeness() >= 1:
		return whole
	}
	return float64(checksMade(a))
}

// checksMade counts the checks of an account that could be made.
func checksMade(a *account.Account) int {
	made := 0
	for i := range a.Checks {
		if a.Checks[i].State != account.Skipped {
			made++
		}
	}
	return made
}

// KernelOnly reports whether a table has only events that the kernel counts itself.
// No method of a processor's own uses any of them, so that none has to be loaded. The
// generic method does.
func (r *Resolver) KernelOnly(p Processor, t *counts.Table) bool {
	generic := func(m model.ModelInfo) bool { return m.Name == GenericCPU }
	return len(r.Choice.ModelFiles) == 0 && !slices.ContainsFunc(r.Catalogue.Models(p.CPU.Name), generic) &&
		!slices.ContainsFunc(EventNames(t), func(name string) bool { return !model.KernelCounts(name) })
}
