// Package simulated serves measurements whose cycles cannot be counted: it simulates the
// program after it has run by itself, and makes the account of the simulation.
package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/hotspots"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
	"github.com/cyclestack/cyclestack/report"
)

// Options say how to simulate.
type Options struct {
	Caches string // to simulate, as simulation.ParseHierarchy reads them; "" are this machine's, or the processor's

	Simulator string // the simulator to use; "" is the best one

	// Indexes keep the symbols of programs for the next time. Nil: they are not kept.
	Indexes simulation.Indexes
	// Announce says that the program runs again, and how. It shows the progress until stop is
	// called.
	Announce func(p simulation.Plan) (progress func(Progress), stop func())
	// Stopped reports whether a signal was to end the program; nil if none can.
	Stopped func() bool
	// Keep has the simulator's file written; nil if nobody wants it.
	Keep func(write func(io.Writer) error) error
}

// A Simulator is a measure.Simulator.
type Simulator struct {
	options Options

	m      *measure.Measurement
	input  *input
	caches simulation.Hierarchy
	notes  []counts.Note
	method *resolve.Method // with the penalties of this machine
	clock  bool            // the core's is known
	only   string          // why there are shares only; "" for an account of the run's time

	core   *simulation.Core // nil if the time of instructions is not known
	state  *os.ProcessState // of the run by itself
	moved  int64            // bytes that this process and its children moved before that run
	result *simulation.Result
	tables tables
	loops  []*core.Result // the hottest
	// program is what is simulated. Of a program for another processor the first run is in an
	// emulator, and its times say nothing.
	program []string
	foreign bool
}

// New returns a simulator for one measurement.
func New(o Options) *Simulator { return &Simulator{options: o} }

// Done reports whether the program was simulated.
func (s *Simulator) Done() bool { return s.result != nil }

// Prepare looks at what is to be measured. An error says why that cannot be simulated.
func (s *Simulator) Prepare(m *measure.Measurement) error {
	o := m.Options()
	s.m = m
	if why := unfit(m); why != "" {
		return &fault.OptionError{Option: "source", Value: string(measure.Simulated), Err: errors.New(why)}
	}
	if err := simulation.Ready(); err != nil {
		return fault.As(fault.Machine, err)
	}
	s.program = o.Target.Command
	if command := simulation.Foreign(s.program); command != nil {
		s.foreign, o.Target.Command = true, command
	}
	var note counts.Note
	var err error
	if s.caches, note, err = cachesOf(m, s.options.Caches); err != nil {
		return err
	}
	if note.Text != "" {
		s.notes = append(s.notes, note)
	}
	s.input = &input{file: o.Target.Stdin}
	s.moved = simulation.Moved()
	if s.input.again() {
		return nil
	}
	f, err := s.input.spool()
	if err != nil {
		return fault.Machinef("standard input: %w", err)
	}
	m.ReadInput(f)
	return nil
}

// Takes predicts how long it takes to simulate a program that has ended; 0 if it cannot be
// simulated.
func (s *Simulator) Takes(m *measure.Measurement, state *os.ProcessState) time.Duration {
	in := input{file: m.Options().Target.Stdin}
	if unfit(m) != "" || simulation.Ready() != nil || state.ExitCode() < 0 || !in.again() {
		return 0
	}
	return s.plan(m, state, coreOf(m)).Takes
}

// plan predicts how a program is simulated that has ended.
func (s *Simulator) plan(m *measure.Measurement, state *os.ProcessState, core *simulation.Core) simulation.Plan {
	return simulation.PlanOf(cmp.Or(s.first(), m.Options().Target.Command[0]), simulation.Simulator(s.options.Simulator), state.UserTime()+state.SystemTime(), core)
}

// first returns the program that is simulated; "" before it is known.
func (s *Simulator) first() string {
	if len(s.program) == 0 {
		return ""
	}
	return s.program[0]
}

// unfit says why what is asked for cannot be simulated; "" if it can.
func unfit(m *measure.Measurement) string {
	o := m.Options()
	switch {
	case !m.OwnProgram():
		return "only a program that is started can be simulated"
	case o.Period.Interval > 0 || m.Rows():
		return "a simulation has no accounts by interval, CPU or thread"
	case o.Runs.Repeat > 1 || o.Runs.Separate || o.Runs.Descend:
		return "a simulation counts the same each time, so that it is not repeated"
	case o.Period.Timeout > 0 || o.Period.Delay > 0 || o.NoInherit:
		return "a simulation is of a whole run, with all that the program starts"
	}
	return ""
}

// cachesOf returns the caches to simulate: those that are named, or of the processor that
// is named, or this machine's. Where these are not known, a note says what stands for them.
func cachesOf(m *measure.Measurement, named string) (h simulation.Hierarchy, note counts.Note, err error) {
	if named != "" {
		if h, err = simulation.ParseHierarchy(named); err != nil {
			err = &fault.OptionError{Option: "caches", Err: err}
		}
		return h, note, err
	}
	other := m.Options().Choice.CPU != ""
	var unknown error
	if !other {
		if h, unknown = simulation.HostCaches(m.Root()); unknown == nil {
			return h, note, nil
		}
	}
	r, err := m.Resolver()
	if err != nil {
		return h, note, err
	}
	fix := counts.Fix{Action: counts.NameCaches}
	cpu, err := r.Catalogue.CPU(m.ID())
	switch {
	case err != nil && other:
		return h, note, &fault.OptionError{Option: "cpu", Err: err}
	case err != nil || cpu.Caches == "":
		if unknown == nil {
			unknown = fmt.Errorf("the caches of %s are not known", cpu.Name)
		}
		return simulation.Typical(), counts.Notef("%v: typical ones were simulated", unknown).With(fix), nil
	case unknown != nil:
		note = counts.Notef("%v: those of most %s were simulated", unknown, cpu.Name).With(fix)
	}
	h, err = simulation.ParseHierarchy(cpu.Caches)
	return h, note, err
}

// Simulate simulates the program that has run, and writes the documents of the simulation:
// the account of the run, and those of the functions and lines with the most cycles.
func (s *Simulator) Simulate(ctx context.Context, state *os.ProcessState, ran *account.Account) (measure.Reason, error) {
	s.state, s.core = state, coreOf(s.m)
	reason := s.run(ctx)
	if reason.Text != "" {
		return reason, nil
	}
	defer s.result.Close()
	if err := s.account(ran); err != nil {
		return reason, err
	}
	if !s.m.Options().Client.OneDocument {
		for _, by := range []counts.Kind{counts.Function, counts.Line} {
			if err := s.places(by); err != nil {
				return reason, err
			}
		}
	}
	if s.options.Keep == nil {
		return reason, nil
	}
	return reason, s.options.Keep(func(w io.Writer) error { return s.result.Keep(w, s.processor(), s.coreName()) })
}

// coreName names the model of the core; "" without one.
func (s *Simulator) coreName() string {
	if s.core == nil {
		return ""
	}
	return s.core.Name
}

// processor identifies what was simulated; "" for one that is not in the catalogue.
func (s *Simulator) processor() string {
	if s.method.CPU.Name == resolve.GenericCPU {
		return ""
	}
	return s.m.ID()
}

// hotspots finds the functions and lines with the most cycles, of an account of the run.
func (s *Simulator) hotspots(a *account.Account) {
	functions, lines := s.tables.functions, s.tables.lines
	m := s.method.Account
	t := hotspots.Tables{Functions: s.tables.whole, Lines: m.WithWhole(lines, accounting.WholeEvent), Column: len(functions.Columns)}
	if t.Functions == nil {
		return
	}
	b := m.Bind(functions.Layout)
	t.Cause = func(row int) *account.Cause {
		return hotspots.CauseOf(b.Evaluate(functions, account.Place{Self: row}, nil))
	}
	a.Hotspots = t.Hotspots(simulatedShare(a))
	core.ExplainHotspots(a.Hotspots, s.loops)
}

// simulatedShare is the share of an account's cycles that is simulated.
func simulatedShare(a *account.Account) float64 {
	share := 1.0
	for _, name := range []string{"Kernel", "Unaccounted"} {
		if v := a.Value(name); !math.IsNaN(v) {
			share -= v
		}
	}
	return share
}

// run simulates the program, or says why not.
func (s *Simulator) run(ctx context.Context) measure.Reason {
	switch {
	case s.state.ExitCode() < 0, s.options.Stopped != nil && s.options.Stopped():
		return measure.Reason{Kind: measure.Unfit, Text: "the program was ended by a signal, and was not simulated"}
	}
	var progress func(simulation.Progress)
	if s.options.Announce != nil {
		show, stop := s.options.Announce(s.plan(s.m, s.state, s.core))
		defer stop()
		if cycles := ownShare * ostime.LikelyUser(s.state.UserTime(), s.state.SystemTime()).Seconds() * s.method.Account.Params()[clockParameter]; cycles > 0 {
			p := pace{begin: time.Now(), cycles: cycles, moved: float64(simulation.Moved() - s.moved)}
			progress = func(now simulation.Progress) { show(p.at(time.Since(p.begin), now)) }
		}
	}
	defer s.input.keep()()
	penalties := s.method.Account.Params()
	s.limit(int(penalties["L3_SIZE"]))
	if s.options.Caches != "" {
		penalties["L3_LIFETIME"] = 0
	}
	result, err := simulation.Run(ctx, simulation.Options{
		Args: s.program, Stdin: s.input.rewind, Caches: s.caches, Resident: simulation.Resident(s.state), Core: s.core,
		Latencies: simulation.Latencies{L2: penalties["L2_HIT_PENALTY"], L3: penalties["L3_HIT_PENALTY"], Memory: penalties["L3_MISS_PENALTY"], Least: 1 / penalties["OVERLAP"],
			TLB: penalties["STLB_HIT_PENALTY"], Walk: penalties["PAGE_WALK_PENALTY"], Line: penalties["FREQUENCY"] * lineBytes / penalties["MEMORY_BANDWIDTH"],
			Life: penalties["L3_LIFETIME"]},
		Native: s.state.UserTime(), Simulator: simulation.Simulator(s.options.Simulator), Progress: progress, Indexes: s.options.Indexes,
	})
	switch {
	case errors.Is(err, context.Canceled):
		return measure.Reason{Kind: measure.Unfit, Text: "the simulation was interrupted"}
	case err != nil:
		return measure.Reason{Kind: measure.Unfit, Text: err.Error()}
	}
	s.result = result
	return measure.Reason{}
}

// limit makes the third-level cache smaller, if there is less of it for a program than the
// machine shows.
func (s *Simulator) limit(most int) {
	l3 := &s.caches.L3
	if s.options.Caches != "" || most == 0 || l3.Size <= most {
		return
	}
	if c, err := (simulation.Cache{Size: most, Ways: l3.Ways, Line: l3.Line}).Fit(); err == nil {
		*l3 = c
	}
}

// lineBytes is the size of a line of a cache.
const lineBytes = 64

// Roughly is a time in words.
func Roughly(d time.Duration) string {
	number := func(n float64, thing string) string {
		if n == 1 {
			return "one " + thing
		}
		return fmt.Sprintf("%.0f %ss", n, thing)
	}
	switch s := d.Seconds(); {
	case s < 10:
		return fmt.Sprintf("%.2g s", s)
	case s < 30:
		return fmt.Sprintf("%.0f s", s)
	case s < 90:
		return fmt.Sprintf("%.0f s", math.Round(s/5)*5)
	case s < 285: // a half is more than a tenth
		return fmt.Sprintf("%.2g minutes", math.Round(s/30)/2)
	case s < 5400:
		return number(math.Round(s/60), "minute")
	}
	return number(math.Round(d.Hours()), "hour")
}

// coreOf returns the core to model; nil if the processor that is simulated, or the one
// here, has other instructions than those of the models.
func coreOf(m *measure.Measurement) *simulation.Core {
	r, err := m.Resolver()
	if err != nil {
		return nil
	}
	name := ""
	if cpu, err := r.Catalogue.CPU(m.ID()); err == nil {
		if name = cpu.Name; cpu.Layout != "intel" && cpu.Layout != "amd" {
			return nil
		}
	}
	return simulation.HostCoreOf(name, m.Features())
}

// How many functions and lines are worth a line of output, and the least share of them.
const (
	placesMost  = 6
	placesLeast = 0.01 // of the cycles
)

// places writes the account of the places with the most simulated cycles.
func (s *Simulator) places(by counts.Kind) error {
	t := s.by(by)
	if t == nil {
		return nil
	}
	m := *s.method
	m.Params, m.Measured = m.Given(), nil // the account of the run says where the penalties come from
	o := s.shown()
	o.Layout, o.Top = report.LayoutParts, true
	w, err := s.m.Writer(o)
	if err != nil {
		return fault.As(fault.Usage, err)
	}
	p := accounting.PlaceReport{Kinds: []counts.Kind{by}, Top: worth(t)}
	p.Head = func(h *report.Header, _ *counts.Table) { h.How = "simulated" }
	return p.Write(w, &m, t, s.kind())
}

// shown says what the documents of a simulation show.
func (s *Simulator) shown() report.Options {
	o := s.m.Options()
	return report.Options{Nodes: o.Choice.Nodes, Level: o.Choice.Level, All: o.All}
}

// worth returns how many places are worth a line.
func worth(t *counts.Table) int {
	col, n := len(t.Columns)-1, 0
	for i := 1; i < len(t.Scopes); i++ {
		if t.Cell(i, col).Value >= placesLeast*t.Cell(0, col).Value {
			n++
		}
	}
	return max(1, min(n, placesMost))
}

// differs says if the program ended otherwise under the simulator.
func (s *Simulator) differs() []counts.Note {
	if s.result.Partial {
		return nil
	}
	a, b := s.state.String(), s.result.State.String()
	if a == b {
		return nil
	}
	return []counts.Note{counts.Notef("under %s it ended otherwise (%s, by itself %s): what was simulated may not be what it does", s.result.Tool, b, a)}
}

// withTimes returns a table with the processor time of the run without a simulator.
func (s *Simulator) withTimes(t *counts.Table) *counts.Table {
	l := &counts.Layout{Columns: slices.Clone(t.Columns), Scopes: t.Scopes}
	l.Columns = append(l.Columns, timeColumns()...)
	out := counts.NewTable(l)
	out.Label, out.CPU, out.Notes = t.Label, t.CPU, t.Notes
	row := out.Row(0)
	copy(row, t.Row(0))
	copy(row[len(t.Columns):], timeCells(s.state.UserTime(), s.state.SystemTime()))
	return out
}
