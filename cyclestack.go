// Package cyclestack says where the cycles of a part of a Go program went. It
// counts with the processor's own counters, without any other program. The
// result is an account: see package account.
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
// The package promises to count with the processor's counters alone: where they
// cannot be used, it returns an error.
//
// Its packages are metric, model, plan, source, counts, account and report, in the order of the
// data's flow.
package cyclestack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
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
	// Deeper levels need more groups of events, which are multiplexed.
	Level int
	// Nodes are counted instead, by a shell pattern as for --nodes.
	Nodes string

	// Thread is for the calling goroutine alone: it is locked to its thread, and nothing but
	// that thread is counted. Otherwise all threads of the process are counted, also those that
	// start meanwhile: the scheduler moves goroutines between threads. That includes the
	// garbage collector, and all that the program does at the same time. The collector runs
	// once before.
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
	run     *measure.Run
	thread  bool
	done    chan error
	last    *lastAccount
	account *account.Account
	err     error
}

// thisKernel is the kernel that counts; tests have another one.
var thisKernel = measure.ThisKernel

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

// levelUsual is deep enough to tell what kind of trouble a program has, and on most
// processors needs few groups.
const levelUsual = 2

// options returns what package measure is to measure.
func (o *Options) options(writer report.Writer) measure.Options {
	m := measure.Options{
		Choice:     resolve.Choice{Model: o.Model, CPU: o.CPU, Level: o.Level, Nodes: o.Nodes, Penalties: resolve.PenaltiesNone},
		UsualLevel: levelUsual, Source: measure.PMU, OneCoreType: true, Generic: []string{"cycles", "instructions"}, NoTimes: true,
		Target: perfevent.Target{PIDs: []int{os.Getpid()}},
		Client: measure.Client{Writer: func(report.Options) (report.Writer, error) { return writer, nil }},
	}
	if o.Thread {
		m.Target = perfevent.Target{TIDs: []int{threadID()}}
	}
	if o.User {
		m.Mode = measure.UserMode
	}
	return m
}

func start(o Options) (*Measurement, error) {
	last := &lastAccount{}
	plan, err := measure.New(thisKernel(), o.options(last))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPMU, err)
	}
	switch err := plan.Plan(); {
	case errors.As(err, new(*measure.NoPMUError)):
		return nil, fmt.Errorf("%w: %w", ErrNoPMU, err)
	case err != nil:
		return nil, err
	}
	if !o.Thread {
		runtime.GC() // or what planning has left would be collected, and counted, meanwhile
	}
	m := &Measurement{thread: o.Thread, done: make(chan error, 1), last: last}
	if m.run, err = plan.Start(context.Background()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPMU, err)
	}
	go func() { m.done <- m.run.Count() }()
	return m, nil
}

// Stop ends the counting and returns the account. Further calls return the same.
func (m *Measurement) Stop() (*account.Account, error) {
	if m.run == nil {
		return m.account, m.err
	}
	m.run.Stop()
	m.err = <-m.done
	if m.err == nil {
		m.err = m.run.Finish(context.Background())
	}
	if err := m.run.Close(); m.err == nil {
		m.err = err
	}
	m.run = nil
	if m.thread {
		runtime.UnlockOSThread()
	}
	if m.err == nil && m.last.account == nil {
		m.err = errors.New("nothing was counted")
	}
	if m.err != nil {
		return nil, m.err
	}
	m.account = m.last.account
	return m.account, nil
}

// A lastAccount is a report.Writer that keeps the last account.
type lastAccount struct{ account *account.Account }

func (*lastAccount) Begin(report.Header) error { return nil }

func (l *lastAccount) Account(a *account.Account) error {
	l.account = a.Clone()
	return nil
}

func (*lastAccount) End() error { return nil }

// Print writes an account as the command line prints it, without colours.
func Print(w io.Writer, a *account.Account) error {
	h := report.Header{CPU: a.CPU(), Model: a.Model(), Kind: "perf-event"}
	return report.Write(w, "tree", report.Accounts{Header: h, List: []*account.Account{a}}, report.Options{Titles: true})
}
