package simulated

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/calibrate"
	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// Resolve finds the method for this machine's processor, or the one that was named. The
// penalties are those that were measured on it. Otherwise they are those of another of the
// processor's methods, or the method's own.
func (s *Simulator) Resolve() error {
	r, err := s.m.Resolver()
	if err != nil {
		return err
	}
	c := r.Choice
	c.SMT = "" // it does not matter here whether cores are shared
	if r, err = resolve.With(r.Catalogue, c); err != nil {
		return err
	}
	generic, err := r.Catalogue.CPU(resolve.GenericCPU)
	if err != nil {
		return err
	}
	p := resolve.Processor{CPU: generic, ID: s.m.ID()}
	if cpu, err := r.Catalogue.CPU(p.ID); err == nil {
		p.CPU = cpu
	}
	selected, err := r.Select(p, resolve.SimulatedModel)
	if err != nil {
		return err
	}
	if err := selected.CheckNodes(); err != nil {
		return err
	}
	if selected.Events, err = r.Catalogue.Events(generic); err != nil {
		return err
	}
	if c.CPU == "" && r.Choice.UsesStored() && r.Stored(p) == "" {
		s.notes = append(s.notes, counts.Notef("penalties are those of processors of this kind").With(counts.Fix{Action: counts.Calibrate}))
	}
	defaults := neighbours(r, selected)
	if _, given := selected.Params[clockParameter]; !given {
		clock, err := measureClock()
		switch {
		case err == nil:
			defaults[clockParameter] = clock
		case c.CPU == "":
			note := counts.Notef("the clock of the core could not be measured (%v), so that Kernel and Unaccounted are not known", err)
			s.notes = append(s.notes, note.With(counts.Fix{Action: counts.SetParameter, Name: clockParameter}))
		}
	}
	if s.method, err = selected.Compile(defaults); err != nil {
		return err
	}
	s.clock = s.method.Account.Params()[clockParameter] > 0
	return nil
}

// neighbours returns the parameters of a method that other methods of its processor have
// as well, with their values.
func neighbours(r *resolve.Resolver, s *resolve.Selection) map[string]float64 {
	values := map[string]float64{}
	for _, info := range r.Catalogue.Models(s.CPU.Name) {
		m, err := r.Catalogue.Model(info.Name, s.CPU.Name)
		if err != nil {
			continue
		}
		for i := range m.Parameters {
			theirs := &m.Parameters[i]
			own := slices.ContainsFunc(s.Model.Parameters, func(p model.Parameter) bool { return p.Name == theirs.Name && p.Unit == theirs.Unit })
			if _, ok := values[theirs.Name]; !ok && own && theirs.Value != nil {
				values[theirs.Name] = *theirs.Value
			}
		}
	}
	return values
}

// The clock of the core is measured if it is not given.
const (
	clockParameter = "FREQUENCY"
	clockBudget    = 50 * time.Millisecond
	clockTries     = 20 // on a busy machine the first few may have no processor in that time
)

// measureClock measures the clock of the core, in Hz.
func measureClock() (hz float64, err error) {
	for range clockTries {
		var clock calibrate.Figure
		if clock, err = calibrate.Clock(context.Background(), clockBudget); err == nil {
			return float64(clock.Value), nil
		}
		if errors.Is(err, calibrate.ErrUnsupported) {
			break
		}
	}
	return 0, err
}

// account writes the account of the run. It has what the operating system counted.
func (s *Simulator) account(ran *account.Account) error {
	if err := s.read(); err != nil {
		return err
	}
	t := selected(s.tables.functions, 1)
	switch note := s.selfTimed(t); {
	case s.result.Hidden > hiddenMost:
		s.only = "the program runs other code by itself"
	case s.brief().Text != "": // and too short to be compared
		s.notes = append(s.notes, s.brief())
	case note.Text != "":
		s.notes = append(s.notes, note)
		s.only = "the program does less when it is slower"
	case s.clock && s.m.Options().Choice.CPU == "" && !s.result.Partial && !s.foreign: // another processor would have taken another time
		t = s.withTimes(t)
	}
	s.loops = s.hotLoops()
	t = core.SplitSimulated(t, s.loops)
	t.Notes = slices.Concat(s.notes, s.result.Notes, s.differs(), t.Notes)
	shown := s.shown()
	shown.Line = true
	w, err := s.m.Writer(shown)
	if err != nil {
		return fault.As(fault.Usage, err)
	}
	o := accounting.Options{Live: true, Refine: func(a *account.Account) { unexplained(a); s.hotspots(a) },
		Head: func(h *report.Header, _ *counts.Table) { h.How = s.how() }}
	if ran != nil {
		o.Times = func(*counts.Scope) *account.Account { return ran }
	}
	stream := accounting.New(w, o)
	if err := stream.Add(s.method, t, s.kind(), ""); err != nil {
		return err
	}
	return stream.Finish()
}

// timedLeast is the least share of a run's cycles in a simulation that does the same as its
// clock.
const timedLeast = 0.6

// hiddenMost is the share of other code beyond which the run's time is not compared with the
// simulation.
const hiddenMost = 0.3

// selfTimed returns a note if the program does as much as its time allows, and so less when
// simulated.
func (s *Simulator) selfTimed(t *counts.Table) (note counts.Note) {
	cycles, clock := 0.0, s.method.Account.Params()[clockParameter]
	for i, c := range t.Columns {
		if slices.Contains(timedCycles, c.Event) {
			cycles += t.Cell(0, i).Value
		}
	}
	if native := s.state.UserTime().Seconds() * clock; s.result.Timed && !s.foreign && cycles > 0 && cycles < timedLeast*native {
		return counts.Notef("the program reads the clock or sets timers, and the simulation has %.0f %% of its cycles: it does less when it is slower", 100*cycles/native)
	}
	return note
}

// briefError is the error of the kernel's share of the processor time beyond which that share
// is of no use. The kernel divides the time by ticks, so runs below some 50 ms have such an
// error.
const briefError = 0.3

// brief returns a note if the run was so short that Kernel and Unaccounted would be noise.
func (s *Simulator) brief() (note counts.Note) {
	user, system := s.state.UserTime(), s.state.SystemTime()
	err := counts.Confidence * math.Sqrt(ostime.TickVariance(user, system)) / float64(user+system)
	if err > briefError {
		return counts.Notef("the run took %.1f ms of processor time, divided into user and kernel to %.0f %%: too short for Kernel and Unaccounted", (user+system).Seconds()*1e3, 100*err)
	}
	return note
}

// timedCycles are the events of cycles.
var timedCycles = []string{"Ct", "Cbt", "C2t", "C3t", "Cmt", "Cpt"}

// kind is the simulator that made the counts.
func (s *Simulator) kind() accounting.Kind {
	return accounting.Kind{Name: s.result.Tool, Simulated: true}
}

// how says how the counts were obtained.
func (s *Simulator) how() string {
	tool := s.result.Tool
	if tool == string(simulation.QEMU) {
		tool = "QEMU"
	}
	text := fmt.Sprintf("simulated by %s, not measured", tool)
	if s.only != "" {
		text += ": shares only, as " + s.only
	}
	if s.result.Why != "" {
		text += " (" + s.result.Why + ")"
	}
	if why := s.m.Why(); why != "" {
		text += ", as " + why
	}
	return text
}

// unexplainedMost is the share of the run beyond which the parts of a simulation only say
// where to look. docs/simulated.md compares with programs that were measured.
const unexplainedMost = 0.3

// unexplained adds to an account of a simulation that it lacks much of the run's time, or
// explains more.
func unexplained(a *account.Account) {
	const only = ": the parts say where to look, and not how much there is to gain"
	switch v := a.Value("Unaccounted"); {
	case v > unexplainedMost:
		a.Notes = append(a.Notes, counts.Notef("the simulation does not explain %.0f %% of what the run took%s", 100*v, only))
	case v < -unexplainedMost:
		a.Notes = append(a.Notes, counts.Notef("the simulation explains %.0f %% more than the run took%s", -100*v, only))
	}
}

// timeColumns are the columns of the processor time of a program, of timeCells.
func timeColumns() []counts.Column {
	var list []counts.Column
	for _, name := range measure.OSTimes {
		list = append(list, counts.Column{Event: name, Unit: "ns", Whole: ostime.ProgramTimes})
	}
	return list
}

func timeCells(user, system time.Duration) []counts.Cell {
	var list []counts.Cell
	for _, d := range []time.Duration{user, system} {
		list = append(list, counts.Cell{Value: float64(d.Nanoseconds()), Variance: ostime.TickVariance(user, system), State: counts.Counted})
	}
	return list
}
