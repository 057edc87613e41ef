package measure

import (
	"slices"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A timeAccount is the operating system's account of what other counters count: what the
// threads or the processors did with their time. It stands next to the account of their
// cycles, because a program that waits has none to explain.
type timeAccount struct {
	perfevent.Observer // of the run
	by                 counts.By
	each               bool // each table of the counting has one: intervals were asked for, or several runs
	method             func() (*resolve.Method, error)

	total   *counts.Total
	pending []*counts.Table // of intervals without an account so far
	whole   *counts.Table   // of what has not been taken yet: without columns
	of      *counts.Layout  // of the last table
	scopes  *counts.Layout  // its scopes alone
	binding *account.Binding
	reuse   *account.Account
}

// timesBy returns the time account of the measurement's runs. The observer is the next
// run's.
func (m *Measurement) timesBy(w perfevent.Observer) *timeAccount {
	if m.times == nil {
		o := &m.options
		m.times = &timeAccount{by: o.By, total: counts.NewTotal(o.By), method: sync.OnceValues(m.osMethod),
			each: o.Period.Interval > 0 || o.Runs.Separate || o.Runs.Repeat > 1}
	}
	m.times.Observer = w
	return m.times
}

// Join takes notice of a table of the counters, and leaves it as it is. Tables that only
// serve to estimate errors add up to one: threads are not looked at for each.
func (k *timeAccount) Join(t *counts.Table) *counts.Table {
	if k.of != t.Layout {
		k.of, k.scopes = t.Layout, &counts.Layout{Scopes: t.Scopes}
	}
	sofar := 0.0
	if k.whole != nil {
		sofar = k.whole.Duration
	}
	bare := *t
	bare.Layout, bare.Notes, bare.Duration = k.scopes, nil, sofar+t.Duration
	k.whole = &bare
	if k.each {
		k.take()
	}
	return t
}

// take has a table made of what there is.
func (k *timeAccount) take() {
	if k.whole == nil {
		return
	}
	t := k.Observer.Join(k.whole)
	k.whole = nil
	if k.by.Has(counts.Interval) {
		k.pending = append(k.pending, t.Clone())
		return
	}
	// The counting's own tables are added in the same way, where an error is reported.
	_ = k.total.Add(t)
}

// step goes on to the next interval, which account is about from now on.
func (k *timeAccount) step() {
	if k == nil || len(k.pending) == 0 {
		return
	}
	k.total.Reset()
	_ = k.total.Add(k.pending[0]) // as in take
	k.pending = k.pending[1:]
}

// account returns the account of a scope, nil if there is none. It is valid until the next
// call.
func (k *timeAccount) account(scope *counts.Scope) *account.Account {
	t := k.total.Table()
	if t == nil {
		return nil
	}
	self := slices.IndexFunc(t.Scopes, func(s counts.Scope) bool {
		return s.Kind == scope.Kind && s.TID == scope.TID && s.Comm == scope.Comm && s.CPU == scope.CPU
	})
	m, err := k.method()
	if err != nil || self < 0 {
		return nil
	}
	if k.binding == nil || k.binding.Layout != t.Layout {
		k.binding, k.reuse = m.Account.Bind(t.Layout), nil
	}
	k.reuse = k.binding.Evaluate(t, account.Place{Self: self}, k.reuse)
	return k.reuse
}

// An observer looks at the time of what is counted.
type observer struct {
	perfevent.Observer        // nil if the operating system does not tell
	attach             func() // when the counting has begun
	end                func() // at its end
}

// observer returns the one of the measurement's target.
func (m *Measurement) observer(delay time.Duration) observer {
	o := &m.options
	none := observer{nil, func() {}, func() {}}
	switch {
	case o.NoTimes, o.Cores: // the accounts of cores divide the processors' time themselves
		return none
	case len(o.Target.Cgroups) > 0:
		note := counts.Notef("not known: what threads did with their time, as the kernel does not count it for cgroups")
		if p := m.parts[0]; !slices.Contains(p.notes, note) {
			p.notes = append(p.notes, note)
		}
		return none
	case m.cpus() && m.parts[0].pmu != nil && o.Choice.Nodes != "": // nothing but the chosen nodes of the machine
		return none
	case m.cpus():
		return observer{ostime.NewMachine(m.kernel.Root, o.Target.CPUs, m.processorPlaces()), none.attach, none.end}
	}
	threads := ostime.New(m.kernel.Root, ostime.Spec{PIDs: o.Target.PIDs, TIDs: o.Target.TIDs, Alone: o.NoInherit, Delay: delay,
		Keep: threadsOf(o.By), Interval: o.Period.Interval > 0, Every: o.Period.Interval, Summed: o.Runs.several(), Listen: m.kernel.Listens})
	if m.program() {
		return observer{threads, none.attach, threads.Close}
	}
	return observer{threads, threads.Attach, threads.Close}
}

// processorPlaces returns the core, die, socket and node of each processor, if the accounts
// are split by these: many files have to be read for that.
func (m *Measurement) processorPlaces() []counts.Scope {
	if !slices.ContainsFunc([]counts.Kind{counts.Core, counts.Die, counts.Socket, counts.Node}, m.options.By.Has) {
		return nil
	}
	topology, _ := m.machine.Sys.Topology() // without it the counting does not begin
	places := make([]counts.Scope, len(topology))
	for i, cpu := range topology {
		s := counts.RunScope("")
		s.Kind, s.CPU, s.Core, s.Die, s.Socket, s.Node = counts.CPU, cpu.ID, cpu.Core, cpu.Die, cpu.Socket, cpu.Node
		places[i] = s
	}
	return places
}
