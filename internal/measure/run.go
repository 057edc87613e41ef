package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A Run counts once, or as often as a repetition asks.
type Run struct {
	m        *Measurement
	counters Counters
	end      func() // of the observer

	take    func(*counts.Table) error // takes a table, if no accounts are to be made of it; else nil
	streams []*accounting.Stream      // by part; nil before the first table
	held    heldTables
	ran     *counts.Total // of a program that is going to be simulated
	early   string        // nothing was counted, as the target ended before the delay; "" if it did not
	failed  bool          // the counting
	state   *os.ProcessState
}

// Start starts the counters and the program. If the kernel refuses the processor's
// counters, the operating system's serve. If it refuses these too, the times of the program
// remain, which the parent of any process is told.
func (m *Measurement) Start(ctx context.Context) (*Run, error) {
	run, err := m.begin(ctx)
	var refused *perfevent.OpenError
	if errors.As(err, &refused) && m.anySource() {
		m.reasons = []Reason{{Refused, fmt.Sprintf("the kernel refuses the processor's counters (%v)", refused)}}
		m.osParts()
		if err := m.check(); err != nil {
			return nil, err
		}
		run, err = m.begin(ctx)
	}
	if errors.As(err, &refused) && m.parts[0].pmu == nil && m.program() {
		m.osTimesAlone(refused)
		run, err = m.begin(ctx)
	}
	if err != nil {
		return nil, startError(err)
	}
	return run, nil
}

// anySource reports whether the parts are of the processor's counters, and nothing was
// asked for that only these can tell.
func (m *Measurement) anySource() bool {
	o := &m.options
	c := &o.Choice
	return m.parts[0].pmu != nil && o.Source == Auto && !o.Runs.several() && o.Mode == AnyMode &&
		c.Model == "" && c.Nodes == "" && len(c.Params) == 0
}

// startError gives an error of the start a kind. A program that cannot be executed is an
// exec.Error, without a kind.
func startError(err error) error {
	var program *exec.Error
	var target *perfevent.TargetError
	switch {
	case errors.As(err, &program) && errors.Is(err, syscall.EMFILE): // that is not the program's fault
		return fault.Machinef("%s cannot be started: %w: ulimit -n allows more", program.Name, syscall.EMFILE)
	case errors.As(err, &program):
		return err
	case errors.As(err, &target):
		return fault.As(fault.Usage, err)
	}
	return fault.As(fault.Machine, err)
}

// begin starts the counters and the program. The account of what the operating system
// counts has the times of threads or processors from /proc as well; next to the
// processor's counters these are an account of their own.
func (m *Measurement) begin(ctx context.Context) (*Run, error) {
	spec := m.spec()
	o := m.observer(spec.Delay)
	spec.Observer = o.Observer
	m.sample(&spec)
	if m.parts[0].pmu != nil && o.Observer != nil {
		spec.Observer = m.timesBy(o.Observer)
	}
	if spec.Observer != nil {
		spec.Observer = &named{spec.Observer, &m.pid}
	}
	counters, err := m.kernel.Start(ctx, m.machine.Sys, spec)
	if err != nil {
		o.end()
		if m.samples() {
			m.options.Client.Sampler.End()
		}
		m.times = nil
		return nil, err
	}
	o.attach()
	return &Run{m: m, counters: counters, end: o.end}, nil
}

// A named observer notes the process of the program.
type named struct {
	perfevent.Observer
	pid *atomic.Int64
}

// Started implements [perfevent.Observer].
func (n *named) Started(pid int) {
	n.pid.Store(int64(pid))
	n.Observer.Started(pid)
}

// keepable are the scopes that counters can be split by.
var keepable = []counts.Kind{counts.Run, counts.CPU, counts.Core, counts.Die, counts.Socket, counts.Node, counts.Process, counts.Thread, counts.Cgroup}

// threadsOf is what counters keep apart: threads, if they are then summed by name.
func threadsOf(by counts.By) counts.By {
	if by.Has(counts.Comm) {
		return by.With(counts.Thread)
	}
	return by
}

// spec says what all parts together count.
func (m *Measurement) spec() perfevent.Spec {
	o := &m.options
	spec := perfevent.Spec{
		Target: o.Target, Interval: o.Period.Interval, Timeout: o.Period.Timeout, Delay: o.Period.Delay,
		Repeat: max(1, o.Runs.Repeat), Separate: o.Runs.Separate, NoInherit: o.NoInherit,
	}
	if tell := o.Client.Progress; tell != nil && o.Runs.several() && !o.Runs.Descend {
		spec.Progress = func(run, of int) { tell(run, of, "") }
	}
	for _, k := range keepable {
		if threadsOf(o.By).Has(k) {
			spec.Keep = spec.Keep.With(k)
		}
	}
	if m.stdin != nil {
		spec.Target.Stdin = m.stdin
	}
	if spec.Interval == 0 {
		spec.Interval = m.sampling()
	}
	spec.Vary = m.rotation(spec.Interval)
	seen := map[string]bool{}
	for _, p := range m.parts {
		for _, g := range p.rotation {
			spec.Rotation = append(spec.Rotation, len(spec.Groups)+g)
		}
		spec.Groups = append(spec.Groups, p.groups...)
		for _, e := range p.always {
			if !seen[e.Name] {
				seen[e.Name] = true
				spec.Always = append(spec.Always, e)
			}
		}
	}
	if o.Runs.Separate {
		spec.Rotation = nil
	}
	return spec
}

// Signal sends a signal to the program that was started. Without one it returns an error.
func (r *Run) Signal(s os.Signal) error { return r.counters.Signal(s) }

// PID returns the process of the program that was started; 0 if it is not known.
func (r *Run) PID() int { return int(r.m.pid.Load()) }

// Stop ends the counting.
func (r *Run) Stop() { r.counters.Stop() }

// State returns how the program ended; nil without a program, and before the end of Count.
func (r *Run) State() *os.ProcessState { return r.state }

// Close ends the counting and releases the counters.
func (r *Run) Close() error {
	r.end()
	return r.counters.Close()
}

// Count takes the tables of the counters until the end. Accounts of intervals are written
// meanwhile.
func (r *Run) Count() error {
	err := r.count()
	r.failed = err != nil
	if r.m.samples() {
		r.m.options.Client.Sampler.End()
	}
	if err == nil {
		r.state = r.counters.State()
		r.m.state = r.state
	}
	return err
}

func (r *Run) count() error {
	// What counting does not need is done while the program runs, unless it would take the
	// processor away. It does not keep the counting from seeing the end of the program.
	var readying sync.WaitGroup
	defer readying.Wait()
	switch {
	case runtime.NumCPU() == 1:
	case r.m.options.Period.Interval == 0:
		readying.Go(func() { _ = r.m.ready() }) // first asks again, and gets the same error
	default:
		if err := r.m.ready(); err != nil {
			return err
		}
	}
	for r.counters.Next() {
		readying.Wait()
		if err := r.table(); err != nil {
			return err
		}
	}
	if r.m.times != nil {
		r.m.times.take()
	}
	return fault.As(fault.Machine, r.counters.Err())
}

// table takes the table that has come.
func (r *Run) table() error {
	t := r.counters.Table()
	t.Label = r.m.options.Label
	if r.take != nil {
		return r.take(t)
	}
	if r.streams == nil {
		if err := r.first(); err != nil {
			return err
		}
	}
	r.watch(t)
	if r.ran != nil {
		if err := r.ran.Add(r.m.parts[0].table(t)); err != nil {
			return err
		}
	}
	full := r.held.add(t, accounting.KindOf(r.counters))
	if program := (*exec.Error)(nil); errors.As(r.counters.Err(), &program) { // it is gone before another run
		return errors.Join(r.release(), startError(r.counters.Err()))
	}
	if !full {
		return nil
	}
	return r.release()
}

// watch looks for the note that nothing was counted.
func (r *Run) watch(t *counts.Table) {
	i := slices.IndexFunc(t.Notes, func(n counts.Note) bool { return n.Kind == counts.NoteEndedEarly })
	if i < 0 {
		return
	}
	r.early = t.Notes[i].Text
	if o := &r.m.options; len(o.Target.Command) > 0 {
		r.early = fmt.Sprintf("nothing was counted: %s ended before the delay of %v", o.Target.Command[0], o.Period.Delay)
	}
}

// first makes the streams of accounts.
func (r *Run) first() error {
	if err := r.m.ready(); err != nil {
		return err
	}
	o := &r.m.options
	if o.Period.Interval > 0 {
		r.held.most = int(o.Period.Batch / o.Period.Interval)
	}
	if r.m.simulator != nil {
		r.ran = counts.NewTotal(o.By)
	}
	for _, p := range r.m.parts {
		r.streams = append(r.streams, r.m.stream(p))
	}
	return nil
}

// stream returns the stream of the accounts of a part.
func (m *Measurement) stream(p *part) *accounting.Stream {
	o := accounting.Options{By: m.options.By, Live: true, Refine: func(a *account.Account) { m.judge(p, a); m.locate(p, a) }}
	if m.options.Cores {
		o.Places = m.corePlaces
	}
	o.Head = func(h *report.Header, t *counts.Table) {
		h.How = p.how(t, m.why(), m.options.Runs.Separate, p.pmu == nil && m.samples())
		m.options.Client.head(h)
	}
	if m.times != nil && p == m.parts[0] { // of all parts together
		o.Times = m.times.account
	}
	return accounting.New(&document{open: func() (report.Writer, error) { return m.options.Client.Writer(m.shown(p)) }}, o)
}

// shown says what the document of a part shows.
func (m *Measurement) shown(p *part) report.Options {
	c := &m.options.Choice
	o := report.Options{Nodes: c.Nodes, Level: c.Level, All: m.all, Known: p.own.alone}
	if m.rows() {
		o.Layout = report.LayoutRows
	}
	if o.Level == 0 && o.Nodes == "" && p.pmu != nil {
		o.Level = p.plan.Options.Level
	}
	if m.simulator != nil && m.simulated { // the choice is about the simulation
		o.Nodes, o.Level, o.All = "", 0, m.options.All
	}
	return o
}

// A document is a writer that is opened when its document begins.
type document struct {
	report.Writer
	open func() (report.Writer, error)
}

func (d *document) Begin(h report.Header) (err error) {
	if d.Writer, err = d.open(); err != nil {
		return fault.As(fault.Usage, err)
	}
	return d.Writer.Begin(h)
}

// release has the accounts made of the tables that were held.
func (r *Run) release() error {
	for _, c := range r.held.take() {
		r.m.times.step()
		for i, p := range r.m.parts {
			t := p.table(c.table)
			p.own.see(t)
			method, err := p.method()
			if err != nil {
				return err
			}
			if err := r.streams[i].Add(method, t, c.kind, ""); err != nil {
				return err
			}
		}
		r.held.reuse(c.table)
	}
	return nil
}

// Finish writes the accounts that remain, also after an error of Count. A program whose
// cycles could not be counted is simulated before. The error is an [EndedEarlyError] if
// nothing was counted and the program is not to blame.
func (r *Run) Finish(ctx context.Context) error {
	if r.streams == nil {
		return nil
	}
	err := r.simulate(ctx)
	return errors.Join(r.finish(), err)
}

func (r *Run) finish() error {
	if r.m.simulated && r.m.options.Client.OneDocument {
		return nil
	}
	if err := r.release(); err != nil {
		return err
	}
	for _, s := range r.streams {
		switch err := s.Finish(); {
		case err != nil && r.early != "":
			return &EndedEarlyError{r.early}
		case err != nil:
			return err
		}
	}
	return nil
}

// simulate simulates the program that has ended.
func (r *Run) simulate(ctx context.Context) error {
	m := r.m
	if m.simulator == nil || r.state == nil {
		return nil
	}
	var ran *account.Account
	if t := r.ran.Table(); t != nil {
		method, err := m.parts[0].method()
		if err != nil {
			return err
		}
		ran = method.Evaluate(t, account.Place{})
	}
	reason, err := m.simulator.Simulate(ctx, r.state, ran)
	if reason.Text != "" {
		m.reasons = append(m.reasons, reason)
	}
	m.simulated = err == nil && reason.Text == ""
	return err
}

// heldTables are the tables of intervals whose accounts are made together. Between two intervals
// the caches are used by other programs: the account of one of 100 ms took 75 µs, and of
// ten together 28 µs each.
type heldTables struct {
	most   int // 0 and 1 hold none
	tables []heldTable
	cells  int
	spare  []*counts.Table
}

// A heldTable is the table of an interval, and what was counted.
type heldTable struct {
	table *counts.Table
	kind  accounting.Kind
}

// heldCells bounds how many cells the tables have that are held.
const heldCells = 1 << 16

// add adds a table, and reports whether there are enough.
func (h *heldTables) add(t *counts.Table, kind accounting.Kind) (full bool) {
	if h.most > 1 { // the counters use it again for the next
		t = h.copied(t)
	}
	h.tables = append(h.tables, heldTable{t, kind})
	h.cells += len(t.Scopes) * len(t.Columns)
	return len(h.tables) >= h.most || h.cells >= heldCells
}

// copied returns a copy of a table, in one that is used again if there is any.
func (h *heldTables) copied(t *counts.Table) *counts.Table {
	last := len(h.spare) - 1
	if last < 0 {
		return t.Clone()
	}
	c := h.spare[last]
	h.spare = h.spare[:last]
	c.Copy(t)
	return c
}

// take returns the tables and forgets them. They are valid until the next add.
func (h *heldTables) take() []heldTable {
	list := h.tables
	h.tables, h.cells = h.tables[:0], 0
	return list
}

// reuse takes a table back.
func (h *heldTables) reuse(t *counts.Table) {
	if h.most > 1 {
		h.spare = append(h.spare, t)
	}
}
