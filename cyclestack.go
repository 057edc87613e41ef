// Package cyclestack says where the cycles of a part of a Go program went. It
// counts with the processor's own counters, without any other program, and
// returns an account: see package account.
//
//	a, err := cyclestack.Measure(work, cyclestack.Options{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	fmt.Println(a.Value("Backend_Bound"))
//
// In a benchmark, [Benchmark] reports the account as metrics that benchstat
// compares.
//
// The packages below this one are the parts that it is made of, in the order in
// which data meets them: metric, model, plan, source, counts, account, report.
package cyclestack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// ErrNoPMU is wrapped by the error of a machine whose processor cannot be
// counted, as in most virtual machines. "cyclestack doctor" says what would
// change that.
var ErrNoPMU = errors.New("no counters of the processor can be used here")

// Options say what to measure, and how.
type Options struct {
	Model string // the method by name; "" is the processor's first
	CPU   string // the processor, as for --cpu; "" is this machine's

	// Level is the deepest level of the method's tree that is counted; 0 is 2.
	// Deeper levels need more groups of events, which take turns.
	Level int
	// Nodes are counted instead, by a shell pattern as for --nodes.
	Nodes string

	// Thread is for the calling goroutine alone: it is locked to its thread, and
	// nothing but that thread is counted. Otherwise all threads of the process are
	// counted, those that start meanwhile too, and with them the garbage collector,
	// which is run before it begins, and whatever else the program does at the same
	// time: the scheduler moves goroutines between threads as it likes.
	Thread bool

	// User counts user mode only.
	User bool
}

// Measure calls f and returns the account of the cycles that went by meanwhile.
// Where logical processors share cores (SMT), values about whole cores have
// account.DoubtCore, and a note says why: what ran on the others is not known.
// The error wraps ErrNoPMU where there is nothing to count with; f has not been
// called then.
func Measure(f func(), o Options) (*account.Account, error) {
	m, err := Start(o)
	if err != nil {
		return nil, err
	}
	f()
	return m.Stop()
}

// A Measurement is under way between Start and Stop.
type Measurement struct {
	binding func(*counts.Layout) *account.Binding
	run     *perfevent.Run
	total   *counts.Total
	notes   []counts.Note
	smt     bool // whether other logical processors of the cores run, too
	thread  bool
	done    chan error
	account *account.Account
	err     error
}

// Start begins to count. With Options.Thread, Stop must be called by the same
// goroutine.
func Start(o Options) (*Measurement, error) {
	if o.Thread {
		runtime.LockOSThread()
	}
	m, err := start(o)
	if err != nil && o.Thread {
		runtime.UnlockOSThread()
	}
	return m, err
}

func start(o Options) (*Measurement, error) {
	root := os.DirFS("/")
	sys, err := perfevent.ReadSystem(root)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPMU, err)
	}
	machine := &measure.Machine{Root: root, Sys: sys, Probe: sys.Probe(root)}
	if why := machine.NoPMU(); why != "" {
		return nil, fmt.Errorf("%w: %s", ErrNoPMU, why)
	}
	core, err := coreType(machine, o.CPU)
	if err != nil {
		return nil, err
	}
	method, p, err := planFor(core, machine.Probe, o)
	if err != nil {
		return nil, err
	}
	m := &Measurement{binding: method.Bind, total: counts.NewTotal(0), smt: machine.Probe.SMT, thread: o.Thread, done: make(chan error, 1)}
	if core.Note != "" {
		m.notes = append(m.notes, counts.Notef("%s", core.Note))
	}
	groups, always := m.resolve(sys, p, o.User || machine.UserOnly())
	for _, name := range []string{"cycles", "instructions"} {
		if e, ok := beside(sys, method, p, name); ok {
			if o.User || machine.UserOnly() {
				e.Attr.ExcludeKernel, e.Attr.ExcludeHV = true, true
			}
			always = append(always, e)
		}
	}
	target := perfevent.Target{TIDs: []int{threadID()}}
	if !o.Thread {
		target = perfevent.Target{PIDs: []int{os.Getpid()}}
		runtime.GC() // or what planning has left would be collected, and counted, meanwhile
	}
	m.run, err = perfevent.Start(context.Background(), sys, perfevent.Spec{
		Groups: groups, Always: always, Target: target,
		Interval: measure.Interval(len(groups), len(groups), 1, machine.Turn(core.PMU)),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPMU, err)
	}
	go m.gather()
	return m, nil
}

// coreType returns the machine's processor; of a hybrid the first type of cores,
// where threads may run on others as well.
func coreType(m *measure.Machine, query string) (*measure.CoreType, error) {
	cat, err := model.Embedded()
	if err != nil {
		return nil, err
	}
	types, err := m.CoreTypes(cat, query)
	if err != nil {
		return nil, err
	}
	c := &types[0]
	if len(types) > 1 {
		c.Note = fmt.Sprintf("only what ran on cores of type %s was counted", c.PMU.Name)
	}
	return c, nil
}

// levelUsual is deep enough to tell what kind of trouble a program has, and on
// most processors needs few groups.
const levelUsual = 2

// planFor plans what to count.
func planFor(core *measure.CoreType, probe *perfevent.Probe, o Options) (*account.Method, *plan.Plan, error) {
	smt := 0.0
	if probe.SMT {
		smt = 1
	}
	method, err := account.Load(core.CPU.Name, o.Model, account.Options{Params: map[string]float64{"#smt_on": smt}})
	if err != nil {
		return nil, nil, err
	}
	opt := plan.Options{Level: o.Level, SMT: probe.SMT, Watchdog: probe.Watchdog, Counters: probe.Counters, Errata: true}
	if opt.Level == 0 {
		opt.Level = levelUsual
	}
	if o.Nodes != "" {
		if opt.Nodes, err = (report.Options{Nodes: o.Nodes}).Chosen(method.Model); err != nil {
			return nil, nil, err
		}
	}
	p, err := plan.New(method.Model, method.Events, opt)
	return method, p, err
}

// resolve asks the kernel for a plan's events. Those that it does not have are
// left out, with a note.
func (m *Measurement) resolve(sys *perfevent.System, p *plan.Plan, userOnly bool) (groups [][]perfevent.Event, always []perfevent.Event) {
	event := func(e *plan.Event) (perfevent.Event, bool) {
		ev, err := sys.Resolve(e.Perf)
		if err != nil {
			if note := counts.Notef("%s was not counted: %v", e.Name, err); !slices.Contains(m.notes, note) {
				m.notes = append(m.notes, note)
			}
			return ev, false
		}
		ev.Name = e.Name
		if own := e.ID.Privilege & (model.User | model.Kernel | model.Hypervisor); e.Core && userOnly && own == 0 {
			ev.Attr.ExcludeKernel, ev.Attr.ExcludeHV = true, true
		}
		return ev, true
	}
	for i := range p.Groups {
		var group []perfevent.Event
		for k := range p.Groups[i].Events {
			if ev, ok := event(&p.Groups[i].Events[k]); ok {
				group = append(group, ev)
			}
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	for i := range p.Always {
		if e := &p.Always[i]; e.Name != "duration_time" { // every table has it
			if ev, ok := event(e); ok {
				always = append(always, ev)
			}
		}
	}
	return groups, always
}

// beside returns a generic event that the account needs in order to be compared,
// unless one of the plan's is the same.
func beside(sys *perfevent.System, method *account.Method, p *plan.Plan, name string) (perfevent.Event, bool) {
	ref, err := model.ParseEvent(name)
	if err != nil {
		return perfevent.Event{}, false
	}
	id := method.Events.Resolve(ref).Event()
	for i := range p.Groups {
		if slices.ContainsFunc(p.Groups[i].Events, func(e plan.Event) bool { return e.ID.Event() == id }) {
			return perfevent.Event{}, false
		}
	}
	e, err := sys.Resolve(name)
	e.Name = name
	return e, err == nil
}

// gather sums what is counted until the run ends.
func (m *Measurement) gather() {
	for m.run.Next() {
		if err := m.total.Add(m.run.Table()); err != nil {
			m.done <- err
			return
		}
	}
	m.done <- m.run.Err()
}

// Stop ends the counting and returns the account. Further calls return the
// same.
func (m *Measurement) Stop() (*account.Account, error) {
	if m.run == nil {
		return m.account, m.err
	}
	m.run.Stop()
	m.err = <-m.done
	if err := m.run.Close(); m.err == nil {
		m.err = err
	}
	m.run = nil
	if m.thread {
		runtime.UnlockOSThread()
	}
	t := m.total.Table()
	if m.err == nil && t == nil {
		m.err = errors.New("nothing was counted")
	}
	if m.err != nil {
		return nil, m.err
	}
	m.account = m.evaluate(t)
	return m.account, nil
}

// evaluate makes the account of what was counted. Where logical processors share
// cores, one of each was counted: what is about whole cores is uncertain.
func (m *Measurement) evaluate(t *counts.Table) *account.Account {
	a := m.binding(t.Layout).Evaluate(t, account.Place{}, nil)
	a.Notes = append(slices.Clone(a.Notes), m.notes...)
	halves := false
	for i := range a.Nodes {
		if v := &a.Nodes[i]; m.smt && measure.AboutCore(&a.Model().Nodes[i]) && v.Reliable() {
			v.Doubt, halves = account.DoubtCore, true
		}
	}
	if halves {
		a.Notes = append(a.Notes, measure.HalfCores)
	}
	return a
}

// Print writes an account as the command line prints it, without colours.
func Print(w io.Writer, a *account.Account) error {
	out, err := report.New("tree", w, report.Options{Titles: true})
	if err != nil {
		return err
	}
	h := report.Header{CPU: a.CPU(), Model: a.Model(), Kind: "perf-event"}
	return errors.Join(out.Begin(h), out.Account(a), out.End())
}
