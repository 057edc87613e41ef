package measure

import (
	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// A Sampler takes samples of a program by the clock while the operating system counts it,
// and says where its time went. It is a part of its own, so that programs which only count
// need not have it: see package clocked.
type Sampler interface {
	// Begin begins to sample what the calling thread starts next. If that is not possible,
	// Notes say why.
	Begin(*Machine)
	// End ends the sampling. It may be called without Begin.
	End()
	// Hotspots returns where the time of an account went. It is nil if nothing was sampled.
	Hotspots(*account.Account) *account.Hotspots
	// Notes are remarks on what was sampled.
	Notes() []counts.Note
}

// samples reports whether samples by the clock are taken next to what is counted: of one
// run of a program whose cycles are not counted.
func (m *Measurement) samples() bool {
	o := &m.options
	return m.parts[0].pmu == nil && m.simulator == nil && !o.OSAlone() && m.OwnProgram() && !m.rows() && !o.NoInherit && !o.Runs.several() && o.Period.Interval == 0 && o.Period.Delay == 0
}

// locate adds to an account of the operating system's counters where the time went.
func (m *Measurement) locate(a *account.Account) {
	s := m.options.Client.Sampler
	if s == nil || !m.samples() {
		return
	}
	a.Hotspots = s.Hotspots(a)
	a.Notes = append(a.Notes, s.Notes()...)
	if a.Hotspots != nil && m.state != nil && m.options.Client.Simulator != nil {
		a.Hotspots.Takes = m.options.Client.Simulator.Takes(m, m.state)
	}
}
