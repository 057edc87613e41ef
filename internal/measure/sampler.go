package measure

import (
	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A Sampler samples a program by the clock while the operating system counts it, and says where
// its time went. It is a part of its own, so that programs which only count need not have it:
// see package clocked.
type Sampler interface {
	// Begin begins to sample a target. If that is not possible, Notes say why.
	Begin(*Machine, perfevent.Target)
	// End ends the sampling. It may be called without Begin.
	End()
	// Hotspots returns where the time of an account went. It is nil if nothing was sampled.
	Hotspots(*account.Account) *account.Hotspots
	// Places returns the code that the processor time went into, nil if nothing was sampled:
	// for accounts that do not have what threads did.
	Places() *account.Hotspots
	// Notes are remarks on what was sampled.
	Notes() []counts.Note
}

// samples reports whether samples by the clock are taken next to what is counted: in one
// run with one account.
func (m *Measurement) samples() bool {
	o := &m.options
	several := m.rows() || o.Cores || o.Runs.several() || o.Period.Interval > 0
	return m.options.Client.Sampler != nil && m.simulator == nil && !m.parts[0].own.alone && !o.OSAlone() &&
		!several && !o.NoInherit && o.Period.Delay == 0 && len(o.Target.Cgroups) == 0
}

// sample has the sampler begin: with the program that a measurement starts, or else at
// once.
func (m *Measurement) sample(spec *perfevent.Spec) {
	s, t := m.options.Client.Sampler, &m.options.Target
	switch {
	case !m.samples():
	case m.OwnProgram():
		spec.Launching = func() { s.Begin(m.machine, perfevent.Target{Next: true}) }
	default:
		s.Begin(m.machine, perfevent.Target{PIDs: t.PIDs, TIDs: t.TIDs, CPUs: t.CPUs, All: t.All})
	}
}

// locate adds where the time went to the account of a part. The samples are of all parts
// together.
func (m *Measurement) locate(p *part, a *account.Account) {
	if !m.samples() || p != m.parts[0] {
		return
	}
	s := m.options.Client.Sampler
	if p.pmu != nil || m.cpus() {
		a.Hotspots = s.Places()
	} else {
		a.Hotspots = s.Hotspots(a)
	}
	a.Notes = append(a.Notes, s.Notes()...)
	if a.Hotspots != nil && p.pmu == nil && m.state != nil && m.options.Client.Simulator != nil {
		a.Hotspots.Takes = m.options.Client.Simulator.Takes(m, m.state)
	}
}
