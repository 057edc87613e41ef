package resolve

import (
	"slices"
	"strings"

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
	// Published are the columns that other tools published, of all recordings that are to have
	// one method; none if there are no such recordings.
	Published []counts.Column
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

// A trial tries the methods of a processor on a table, each once.
type trial struct {
	*Resolver
	p    Processor
	t    *counts.Table
	want Request
	done map[string]*attempt // by name of the method
}

// An attempt is a method and its account of the table.
type attempt struct {
	method  *Method
	err     error // why there is no method
	account *account.Account
}

// method resolves a method by its name, "" for the user's.
func (x *trial) method(name string) (*Method, error) {
	a := x.done[name]
	if a == nil {
		a = &attempt{}
		if a.method, a.err = x.Method(x.p, name); a.err == nil {
			a.method = a.method.holding(x.want.Node)
		}
		x.done[name] = a
	}
	return a.method, a.err
}

// try returns a method by its name, and its account of the table.
func (x *trial) try(name string) (*Method, *account.Account, error) {
	if _, err := x.method(name); err != nil {
		return nil, nil, err
	}
	a := x.done[name]
	if a.account == nil {
		a.account = a.method.Evaluate(x.t, account.Place{})
	}
	return a.method, a.account, nil
}

// Choose chooses the method for a table of a processor that is known.
func (r *Resolver) Choose(p Processor, t *counts.Table, want Request) (m *Method, err error) {
	if want.Published == nil && slices.ContainsFunc(t.Columns, isPublished) {
		want.Published = t.Columns
	}
	if want.Published != nil {
		m, err := r.published(p, want.Published)
		if err == nil {
			m.Audits = want.Audits
		}
		return m, err
	}
	x := &trial{Resolver: r, p: p, t: t, want: want, done: map[string]*attempt{}}
	name := want.Prefer
	switch {
	case r.Choice.Model != "":
		name = r.Choice.Model
	case simulated(t):
		name = SimulatedModel
	case Derived(t) != "":
		name = Derived(t)
	}
	if name == "" {
		m, err = x.best()
	} else {
		m, err = x.method(name)
	}
	if err != nil {
		return nil, err
	}
	if r.open(want) && !simulated(t) {
		_, a, err := x.try(m.Model.Name)
		if err != nil {
			return nil, err
		}
		if a.Completeness() < halfKnown {
			note := m.Note
			m, a = x.fullest(m, a)
			m.Note = note
		}
		m.Also = x.also(m, a)
	}
	m.Audits = want.Audits
	return m, nil
}

// open reports whether any methods will do that say something of a table.
func (r *Resolver) open(want Request) bool {
	return want.Anywhere && r.Choice.Model == "" && want.Prefer == "" && want.Node == "" && r.Choice.Nodes == ""
}

// names returns the methods that may say something of the table: the processor's own,
// then those for every processor.
func (x *trial) names(first ...string) []string {
	for _, info := range x.Catalogue.Models(x.p.CPU.Name) {
		first = append(first, info.Name)
	}
	var names []string
	for _, name := range append(first, GenericCPU, OSModel) {
		if name != SMTModel && name != SimulatedModel && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// also finds further methods for counts that an account does not use.
func (x *trial) also(m *Method, a *account.Account) (list []*Method) {
	for _, name := range x.names() {
		other, b, err := x.try(name)
		if err == nil && name != m.Model.Name && a.Extend(b) {
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
			return p, fault.Inputf("%s: from %s, but the penalties that are stored here are of %s: %s none goes without", Where(file, t.Line), t.CPU, p.ID, fault.Name("penalties"))
		}
	}
	if p.CPU != nil {
		return p, nil
	}
	unknown, err := r.unknownCPU(t, file)
	if err != nil {
		return p, err
	}
	if here := r.here(unknown, t); want.Anywhere && here != nil {
		p.CPU, p.ID, p.Here = here, r.Choice.Here, true
		return p, nil
	}
	if !r.takesUnknown(want) {
		return p, unknown
	}
	// What holds on every processor can be checked without knowing which it is.
	p.Unknown = unknown
	p.CPU, err = r.Catalogue.CPU(GenericCPU)
	return p, err
}

// here is this machine's processor, if a recording has events by its own names and no processor
// has more. Codes do not tell. Else it is nil.
func (r *Resolver) here(e *UnknownCPUError, t *counts.Table) *model.CPU {
	if r.Choice.Here == "" {
		return nil
	}
	cpu, err := r.Catalogue.CPU(r.Choice.Here)
	if err != nil || !slices.Contains(e.Fits, cpu.Name) {
		return nil
	}
	table, err := r.Catalogue.Events(cpu)
	own := func(name string) bool {
		ref, problem := model.ParseEvent(name)
		if problem != nil {
			return false
		}
		event, ok := table.Find(ref)
		return ok && event.PMU == "" && strings.EqualFold(event.Name, ref.Name)
	}
	if err != nil || !slices.ContainsFunc(EventNames(t), own) {
		return nil
	}
	return cpu
}

// firstLevelKnown is less than the completeness of any account with a known node of
// the first level.
const firstLevelKnown = 1e-3

// best chooses the method that says most about the table: the one with the largest known part
// of its first level. Of equals the first in the catalogue wins. The method for the operating
// system's counters is complete with next to nothing. It serves where no other method relates
// any counts.
func (x *trial) best() (*Method, error) {
	var best *Method
	score, known, related := -1.0, 0.0, false
	failed := "" // the first method that cannot be resolved
	for _, info := range x.Catalogue.Models(x.p.CPU.Name) {
		m, err := x.method(info.Name)
		if err != nil { // another method may have the parameters that were given
			if best == nil && failed == "" {
				failed = info.Name
			}
			continue
		}
		if x.want.Node != "" && !has(m.Model, x.want.Node) || info.Name == OSModel && related && !x.want.Audits {
			continue
		}
		_, a, _ := x.try(info.Name)
		related = related || Relates(a)
		if s := scoreOf(a, x.want); s > score || score < 0 {
			best, score, known = m, s, a.Completeness()
		}
	}
	note := x.p.Note
	if known < firstLevelKnown && x.aboutCores(known) {
		note = counts.Notef("the counts are of the logical processors of a core").With(counts.Fix{Action: counts.ReportBy})
	}
	if score <= 0 && x.p.CPU.Name != GenericCPU && !x.want.Audits && x.want.Node == "" && len(x.Choice.Params) == 0 {
		if m, a, err := x.try(OSModel); err == nil && a.Known() {
			best = m
		}
	}
	if best == nil {
		if m := x.anywhere(x.p, x.want.Node); m != nil {
			return m, nil
		}
		return x.method(failed)
	}
	best.Note = note
	return best, nil
}

// halfKnown is the least completeness of a tree that is shown whatever else the counts
// say.
const halfKnown = 0.5

// fullest returns the method that uses most of the table's counts: one for every processor,
// or one of the processor's own that uses more.
func (x *trial) fullest(best *Method, a *account.Account) (*Method, *account.Account) {
	most, complete := 0, 0.0
	for _, name := range x.names(GenericCPU) {
		m, b, err := x.try(name)
		if err != nil {
			continue
		}
		n, c := b.Serves(), b.Completeness()
		if n > most || n == most && c > complete {
			best, a, most, complete = m, b, n, c
		}
	}
	return best, a
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

// aboutCores reports whether more is known of the table's cores than so large a part of
// the first level.
func (x *trial) aboutCores(known float64) bool {
	m, err := x.method(SMTModel)
	if err != nil {
		return false
	}
	core := account.Place{LP: []int{0, len(x.t.Scopes) - 1}}
	return m.Evaluate(x.t, core).Completeness() > known
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
