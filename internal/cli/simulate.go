package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/shell"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/calibrate"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// simModel is the method for what simulators count.
const simModel = "simulated-cycles"

// affordable is how long a simulation may take that nobody asked for.
const affordable = 2 * time.Minute

// A simulating is the second rung of stat's ladder: the program runs once by itself,
// as the rung below would have it, and then again under a simulator.
type simulating struct {
	j      *job
	forced bool // --source simulated
	all    bool // --all
	input  *input
	caches simulation.Hierarchy
	notes  []counts.Note

	clock  bool             // the core's is known
	method *session         // with the penalties of this machine
	core   *simulation.Core // nil if how long instructions take is not known
	ended  syscall.Signal   // that was to end the run by itself; 0 for none
	state  *os.ProcessState // of the run by itself
	result *simulation.Result
}

// simulation returns the rung of simulation for a job that has no counters, or why
// there is none: which is an error if no other rung was asked for, as are flags that mean
// nothing.
func (j *job) simulation() (s *simulating, why string, err error) {
	forced := j.f.source == sourceSimulated
	if why = j.notSimulated(); why != "" {
		if forced {
			return nil, "", usageError("--source simulated: %s", why)
		}
		return nil, why, nil
	}
	if err := simulation.Ready(); err != nil {
		if forced {
			return nil, "", machineError(err)
		}
		return nil, err.Error(), nil
	}
	s = &simulating{j: j, forced: forced, all: j.c.all, input: &input{file: j.target.Stdin}}
	var note counts.Note
	if s.caches, note, err = j.caches(); err != nil {
		return nil, "", err
	}
	if note.Text != "" {
		s.notes = append(s.notes, note)
	}
	if !s.forced && !s.input.again() {
		return nil, "its standard input cannot be read twice (--source simulated does, and keeps it meanwhile)", nil
	}
	return s, "", nil
}

// notSimulated says why what is asked for cannot be simulated; "" if it can.
func (j *job) notSimulated() string {
	f := j.f
	switch {
	case !j.ownProgram() || len(j.program) == 0:
		return "only a program that is started can be simulated"
	case f.interval > 0 || j.rows:
		return "a simulation has no accounts by interval, CPU or thread"
	case f.again() != "":
		return "a simulation counts the same each time, so that it is not repeated"
	case f.timeout > 0 || f.delay > 0 || f.noInherit:
		return "a simulation is of a whole run, with all that the program starts"
	}
	return ""
}

// caches returns the caches to simulate: those named, or of the processor named, or this
// machine's. Where these are not known, a note says which are taken for them.
func (j *job) caches() (h simulation.Hierarchy, note counts.Note, err error) {
	if j.f.caches != "" {
		if h, err = simulation.ParseHierarchy(j.f.caches); err != nil {
			err = usageError("--caches: %v", err)
		}
		return h, counts.Note{}, err
	}
	var unknown error
	if j.c.cpu == "" {
		if h, unknown = simulation.HostCaches(j.machine.Root); unknown == nil {
			return h, counts.Note{}, nil
		}
	}
	cat, err := j.catalogue()
	if err != nil {
		return h, counts.Note{}, err
	}
	cpu, err := cat.CPU(j.id())
	switch {
	case err != nil && j.c.cpu != "":
		return h, counts.Note{}, usageError("--cpu: %v", err)
	case err != nil || cpu.Caches == "":
		if unknown == nil {
			unknown = fmt.Errorf("the caches of %s are not known", cpu.Name)
		}
		return simulation.Typical(), counts.Notef("%v: typical ones were simulated", unknown).With(counts.Fix{Action: counts.NameCaches}), nil
	case unknown != nil:
		note = counts.Notef("%v: those of most %s were simulated", unknown, cpu.Name).With(counts.Fix{Action: counts.NameCaches})
	}
	h, err = simulation.ParseHierarchy(cpu.Caches)
	return h, note, err
}

// expects predicts how long the simulation of the program that has run takes, and says
// why there should be none; "" if there should.
func (s *simulating) expects() (takes time.Duration, why string) {
	takes = simulation.Takes(s.state.UserTime()+s.state.SystemTime(), s.core)
	if s.state.ExitCode() < 0 || s.ended != 0 {
		return takes, "the program was ended by a signal, and was not simulated"
	}
	if !s.forced && takes > affordable {
		return takes, fmt.Sprintf("simulating would take about %s: --source simulated", roughly(takes))
	}
	return takes, ""
}

// roughly is a time in words.
func roughly(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 10:
		return fmt.Sprintf("%.0f s", s)
	case s < 90:
		return fmt.Sprintf("%.0f s", math.Round(s/5)*5)
	case s < 5400:
		return several(int(math.Round(s/60)), "minute")
	}
	return several(int(math.Round(d.Hours())), "hour")
}

// climb simulates the program that has run, and puts its account before that of the
// operating system. If there is none, the latter says why.
func (s *simulating) climb(ctx context.Context, p *printer, state *os.ProcessState) error {
	if list := heard(); len(list) > 0 { // else it would be all
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, list...) // until the files are removed
		defer stop()
	}
	s.state, s.core = state, s.coreOf()
	why, err := s.run(ctx)
	if err != nil {
		return err
	}
	if why != "" {
		s.j.why = reasons(s.j.why, why)
		return nil
	}
	defer s.result.Close()
	return s.print(p)
}

// reasons puts together why the best rung was not taken, and why the next was not.
func reasons(list ...string) string {
	list = slices.DeleteFunc(list, func(why string) bool { return why == "" })
	return strings.Join(list, "; ")
}

// run simulates the program, or says why not.
func (s *simulating) run(ctx context.Context) (why string, err error) {
	takes, why := s.expects()
	if why != "" {
		return why, nil
	}
	how, again := "", "again"
	if !s.forced {
		how = ", --source os runs it once"
	}
	if s.core != nil {
		again = "twice more"
	}
	fmt.Fprintf(s.j.err, "cyclestack stat: running it %s under valgrind, about %s; Ctrl-C keeps what is known%s\n", again, roughly(takes), how)
	if !s.forced { // what was predicted may be wrong
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, 4*max(takes, affordable/4))
		defer cancel()
	}
	defer s.progress(takes)()
	defer s.input.keep()()
	penalties := s.method.method.Params()
	s.result, err = simulation.Run(ctx, simulation.Options{
		Args: s.j.program, Stdin: s.input.rewind, Caches: s.caches, Resident: simulation.Resident(s.state), Core: s.core,
		Latencies: simulation.Latencies{L2: penalties["L2_HIT_PENALTY"], L3: penalties["L3_HIT_PENALTY"], Memory: penalties["L3_MISS_PENALTY"], Least: 1 / penalties["OVERLAP"]},
	})
	switch {
	case errors.Is(err, context.Canceled):
		return "the simulation was interrupted", nil
	case errors.Is(err, context.DeadlineExceeded):
		return "simulating took too long: --source simulated waits for it", nil
	case err != nil:
		return err.Error(), nil
	}
	return "", nil
}

// coreOf returns the core to model; nil if the processor that is simulated, or the one
// here, has other instructions than those of the models.
func (s *simulating) coreOf() *simulation.Core {
	cat, err := s.j.catalogue()
	if err != nil {
		return nil
	}
	name := ""
	if cpu, err := cat.CPU(s.j.id()); err == nil {
		if name = cpu.Name; cpu.Layout != "intel" && cpu.Layout != "amd" {
			return nil
		}
	}
	return simulation.CoreOf(name)
}

// progress says on a terminal how long the simulation has taken, until the function it
// returns is called.
func (s *simulating) progress(takes time.Duration) (stop func()) {
	f := file(s.j.err)
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		begin, tick := time.Now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				fmt.Fprint(f, "\r\x1b[K")
				return
			case <-tick.C:
				fmt.Fprintf(f, "\r\x1b[Ksimulating: %.0f s of about %s", time.Since(begin).Seconds(), roughly(takes))
			}
		}
	})
	return func() { close(done); wait.Wait() }
}

// print puts the account before that of the operating system, with the hottest functions
// and lines, and how to see more. Other formats than the one for people have one
// document: that of the simulation.
func (s *simulating) print(p *printer) error {
	about := &bytes.Buffer{}
	if err := s.account(s.method, p.reporters[0].ready().Gathered(), about); err != nil {
		return err
	}
	if s.j.c.format != report.Formats[report.Accounts]()[0] {
		p.gathered, p.reporters = []*bytes.Buffer{about}, nil
		return s.keep()
	}
	// Of the operating system's account what is needed beside this one will do.
	w, err := s.writer(p.gathered[0], func(o *report.Options) { o.Nodes, o.Level = "", 0 })
	if err != nil {
		return err
	}
	p.reporters[0].setWriter(w)
	list := []*bytes.Buffer{about}
	for _, by := range []counts.Kind{counts.Function, counts.Line} {
		b := &bytes.Buffer{}
		if err := s.hottest(s.method, by, b); err != nil {
			return err
		}
		list = append(list, b)
	}
	if err := s.keep(); err != nil {
		return err
	}
	p.gathered = slices.Concat(list, p.gathered, []*bytes.Buffer{s.next()})
	return nil
}

// session finds the method: for this machine's processor, or the one that was named,
// with the penalties measured on it.
func (s *simulating) session() (*session, error) {
	c := *s.j.c
	c.all = s.all
	cat, err := s.j.catalogue()
	if err != nil {
		return nil, err
	}
	n := &session{c: &c, cat: cat}
	if n.cpu, err = cat.CPU(resolve.GenericCPU); err != nil {
		return nil, err
	}
	if n.events, err = cat.Events(n.cpu); err != nil {
		return nil, err
	}
	if n.model, err = cat.Model(simModel, resolve.GenericCPU); err != nil {
		return nil, err
	}
	if err := n.checkNodes(); err != nil {
		return nil, err
	}
	n.id = s.j.id()
	if cpu, err := cat.CPU(n.id); err == nil {
		n.cpu = cpu
	} else if c.cpu != "" {
		return nil, usageError("--cpu: %v", err)
	}
	return n, s.compile(n)
}

// compile makes the method ready: with the penalties given or measured, else those
// that another of the processor's methods has, else its own.
func (s *simulating) compile(n *session) (err error) {
	given, err := n.parameters(n.model)
	if err != nil {
		return err
	}
	if s.j.c.cpu == "" && n.storing() && n.stored() == "" {
		s.notes = append(s.notes, counts.Notef("penalties are those of processors of this kind").With(counts.Fix{Action: counts.Calibrate}))
	}
	n.params = map[string]float64{}
	for _, info := range n.cat.Models(n.cpu.Name) {
		m, err := n.cat.Model(info.Name, n.cpu.Name)
		if err != nil {
			continue
		}
		for i := range m.Parameters {
			theirs := &m.Parameters[i]
			own := slices.IndexFunc(n.model.Parameters, func(p model.Parameter) bool { return p.Name == theirs.Name && p.Unit == theirs.Unit })
			if _, ok := n.params[theirs.Name]; !ok && own >= 0 && theirs.Value != nil {
				n.params[theirs.Name] = *theirs.Value
			}
		}
	}
	for name, v := range given {
		n.params[name] = v
	}
	if _, ok := given[clockParameter]; !ok {
		if clock, err := measureClock(); err == nil {
			n.params[clockParameter] = clock
		} else if s.j.c.cpu == "" {
			s.notes = append(s.notes, counts.Notef("the clock of the core could not be measured (%v), so that Kernel and Unaccounted are not known", err).With(counts.Fix{Action: counts.SetParameter, Name: clockParameter}))
		}
	}
	if err := n.compile(); err != nil {
		return err
	}
	s.clock, n.params = n.params[clockParameter] > 0, given
	return nil
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

// read reads what the simulator wrote.
func (s *simulating) read(by counts.Kind) (*counts.Table, error) {
	t, err := s.result.Table(by)
	if t == nil {
		return nil, err
	}
	t.Label, t.Duration = s.j.f.label(s.j.program), math.NaN()
	return t, nil
}

// account prints the account of the run, beside which stands what the operating system
// counted of it.
func (s *simulating) account(n *session, ran *counts.Table, out io.Writer) error {
	t, err := s.read(counts.Run)
	if err != nil {
		return err
	}
	if s.clock && s.j.c.cpu == "" { // another processor would have taken another time
		t = s.withTime(t)
	}
	t.Notes = slices.Concat(s.notes, s.result.Notes, s.differs(), t.Notes)
	w, err := s.writer(out, func(o *report.Options) { o.Line = true })
	if err != nil {
		return err
	}
	r := newReporter(n, w, 0)
	r.how, r.judge = s.how, unexplained
	if ran != nil {
		r.times = func(*counts.Scope) *account.Account {
			return s.j.parts[0].s.method.Bind(ran.Layout).Evaluate(ran, account.Place{}, nil)
		}
	}
	if err := r.add(t, s.result.Tool); err != nil {
		return err
	}
	return r.finish()
}

// unexplainedMost is the share of what the run took from which on the parts of a simulation
// say where to look only: docs/simulated.md compares with programs that were measured.
const unexplainedMost = 0.3

// unexplained adds to an account of a simulation that it lacks much of what the run took, or
// explains more than that.
func unexplained(a *account.Account) {
	const only = ": the parts say where to look, and not how much there is to gain"
	switch v := a.Value("Unaccounted"); {
	case v > unexplainedMost:
		a.Notes = append(a.Notes, counts.Notef("the simulation does not explain %.0f %% of what the run took%s", 100*v, only))
	case v < -unexplainedMost:
		a.Notes = append(a.Notes, counts.Notef("the simulation explains %.0f %% more than the run took%s", -100*v, only))
	}
}

// writer returns a writer in the format that was asked for.
func (s *simulating) writer(out io.Writer, with func(*report.Options)) (report.Writer, error) {
	o := s.j.c.options(s.j.terminal(s.j.c, s.j.stream))
	o.All = s.all
	with(&o)
	w, err := report.New(s.j.c.format, out, o)
	if err != nil {
		return nil, usageError("%v", err)
	}
	return w, nil
}

// how says how the counts were obtained.
func (s *simulating) how(*counts.Table) string {
	text := fmt.Sprintf("simulated by %s, not measured", s.result.Tool)
	if s.result.Why != "" {
		text += " (" + s.result.Why + ")"
	}
	if s.j.why != "" {
		text += ", as " + s.j.why
	}
	return text
}

// withTime returns a table with the processor time of the run without a simulator.
func (s *simulating) withTime(t *counts.Table) *counts.Table {
	l := &counts.Layout{Columns: slices.Clone(t.Columns), Scopes: t.Scopes}
	for _, name := range osTimes {
		l.Columns = append(l.Columns, counts.Column{Event: name, Unit: "ns", Whole: ostime.ProgramTimes})
	}
	out := counts.NewTable(l)
	out.Label, out.CPU, out.Notes = t.Label, t.CPU, t.Notes
	row := out.Row(0)
	copy(row, t.Row(0))
	user, system := s.state.UserTime(), s.state.SystemTime()
	for i, d := range []time.Duration{user, system} {
		row[len(t.Columns)+i] = counts.Cell{Value: float64(d.Nanoseconds()), Variance: ostime.TickVariance(user, system), State: counts.Counted}
	}
	return out
}

// differs says if the program ended otherwise under the simulator.
func (s *simulating) differs() []counts.Note {
	if a, b := s.state.String(), s.result.State.String(); a != b {
		return []counts.Note{counts.Notef("under %s it ended otherwise (%s, by itself %s): what was simulated may not be what it does", s.result.Tool, b, a)}
	}
	return nil
}

// How many functions and lines stat prints, and from which share on.
const (
	hottestMost  = 6
	hottestLeast = 0.01 // of the cycles
)

// hottest prints the places in which the most simulated cycles are.
func (s *simulating) hottest(n *session, by counts.Kind, out io.Writer) error {
	t, err := s.read(by)
	if err != nil {
		return err
	}
	t.Notes = nil // they are the run's
	if t = n.method.WithWhole(t, accounting.WholeEvent); t == nil {
		return nil
	}
	said := n.resolved() // without the file of the penalties
	said.Params, said.Measured = said.Given(), nil
	w, err := s.writer(out, func(o *report.Options) { o.Layout, o.Top = report.LayoutParts, true })
	if err != nil {
		return err
	}
	places := accounting.PlaceReport{Kinds: []counts.Kind{by}, Top: worth(t), Options: accounting.Options{Say: spelled,
		Head: func(h *report.Header, _ *counts.Table) { h.How = "simulated" }}}
	return places.Write(w, said, t, s.result.Tool)
}

// worth returns how many places are worth a line.
func worth(t *counts.Table) int {
	col, n := len(t.Columns)-1, 0
	for i := 1; i < len(t.Scopes); i++ {
		if t.Cell(i, col).Value >= hottestLeast*t.Cell(0, col).Value {
			n++
		}
	}
	return max(1, min(n, hottestMost))
}

// keep writes the simulator's files where the user wants them.
func (s *simulating) keep() error {
	if s.j.f.keep == "" {
		return nil
	}
	c := *s.j.c
	c.output = s.j.f.keep
	return s.j.write(&c, func(w io.Writer) error { return s.result.Keep(w) })
}

// next says how to see more.
func (s *simulating) next() *bytes.Buffer {
	b := &bytes.Buffer{}
	if name := s.j.f.keep; name != "" {
		fmt.Fprintf(b, "  next    cyclestack report --by line %s\n          every line, and with --by function or instruction the others; cyclestack diff compares two\n", shell.Line([]string{name}))
	} else {
		name := filepath.Base(s.j.program[0]) + ".callgrind"
		fmt.Fprintf(b, "  next    cyclestack stat --source simulated --keep %s %s\n          keeps what was simulated, for cyclestack report --by line %s and cyclestack diff\n",
			shell.Line([]string{name}), shell.Line(s.j.f.sameAgain(s.j.program)), shell.Line([]string{name}))
	}
	return b
}

// An input is the standard input of a program that runs several times.
type input struct {
	file   *os.File // nil for the own
	offset int64    // at which the program begins to read
}

// again reports whether it can be read again, or has nothing to be read: it is no pipe.
func (in *input) again() bool {
	if in.file == nil {
		in.file = os.Stdin
	}
	info, err := in.file.Stat()
	if err != nil {
		return true // closed
	}
	if info.Mode().IsRegular() {
		in.offset, err = in.file.Seek(0, io.SeekCurrent)
		return err == nil
	}
	return info.Mode()&os.ModeCharDevice != 0 // a terminal, or /dev/null
}

// spoolMost bounds what is copied of the standard input, which may never end.
const spoolMost = 64 << 20

// spool copies what cannot be read again into a temporary file, which the program then
// reads. It returns that file.
func (in *input) spool() (*os.File, error) {
	f, err := os.CreateTemp("", "cyclestack-stdin-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // it lives as long as it is open
	n, err := io.Copy(f, io.LimitReader(in.file, spoolMost+1))
	if err == nil && n > spoolMost {
		err = fmt.Errorf("it is longer than %d MB, which is too much to keep for a simulation: have it in a file (< FILE), or use --source os", spoolMost>>20)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	in.file, in.offset = f, 0
	return f, nil
}

// rewind returns what the program is to read once more: a file from where it was, nothing
// in the place of a terminal.
func (in *input) rewind() (*os.File, error) {
	info, err := in.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	_, err = in.file.Seek(in.offset, io.SeekStart)
	return in.file, err
}

// keep returns what puts a file back to where it is now: to where the program by itself
// has read.
func (in *input) keep() (restore func()) {
	at, err := in.file.Seek(0, io.SeekCurrent)
	if err != nil { // a terminal
		return func() {}
	}
	return func() { _, _ = in.file.Seek(at, io.SeekStart) }
}
