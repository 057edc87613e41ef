package extra

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/sampled"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/top"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// feeds make the accounts that top shows. Trees and processors are counted. Other parts of
// the machine, and all places in the code, are sampled.
type feeds struct {
	k    *cli.Kit
	o    measure.Options // of the target that the user named
	null *os.File
	once bool // one account, or one window
	most int  // lines of a window; 0 for the usual ones

	// A program is counted from its start to its end, whatever is watched meanwhile.
	program *counting
	to      *turnout
}

// newFeeds returns feeds for what the flags and the program name. They must be closed.
func newFeeds(k *cli.Kit, f *cli.Flags, program []string) (*feeds, error) {
	o, err := f.Live(program, time.Second)
	if err != nil {
		return nil, err
	}
	fs := &feeds{k: k, o: o}
	if len(program) > 0 { // its output would be drawn over
		if fs.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
			return nil, fault.As(fault.Machine, err)
		}
		fs.o.Target.Stdin, fs.o.Target.Stdout, fs.o.Target.Stderr = fs.null, fs.null, fs.null
	}
	return fs, nil
}

// close ends the program.
func (f *feeds) close() (err error) {
	if f.program != nil {
		err = f.program.end()
	}
	if f.null != nil {
		err = errors.Join(err, f.null.Close())
	}
	return err
}

// feed is a [top.Feed].
func (f *feeds) feed(ctx context.Context, s top.Scope, w report.Writer) error {
	target, err := f.target(ctx, &s)
	switch {
	case err != nil:
		return err
	case f.sampled(&s) && f.own(&s) && len(target.PIDs) == 0:
		return fault.Machinef("the program's process is not known: only its tree can be shown")
	case f.sampled(&s):
		return f.windows(ctx, &s, target, w)
	}
	o := f.o
	o.Target, o.By = target, counts.By(0).With(counts.Interval).With(s.By)
	if s.Level > 0 {
		o.Choice.Level = s.Level
	}
	if f.once {
		o.Period.Timeout, o.Period.Interval = o.Period.Interval, 0
		o.By &^= counts.By(0).With(counts.Interval)
	}
	if f.own(&s) {
		return f.follow(ctx, w)
	}
	c, err := count(ctx, f.k, o, w)
	if err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-c.failed:
	case <-ctx.Done():
	}
	return c.end()
}

// own reports whether a scope is the program that is started here.
func (f *feeds) own(s *top.Scope) bool {
	return len(f.o.Target.Command) > 0 && s.Part == nil
}

// sampled reports whether samples tell a scope. Counters divide only what is named into
// processes and threads, only the machine into processors, and only cgroups by name.
func (f *feeds) sampled(s *top.Scope) bool {
	t := &f.o.Target
	machine := len(t.PIDs)+len(t.TIDs)+len(t.Command) == 0 && (s.Part == nil || s.Part.Kind == counts.CPU || s.Part.Kind == counts.Cgroup)
	switch {
	case s.Sampled():
		return true
	case s.By == counts.Run:
		return false
	case slices.Contains(processors, s.By):
		return !machine
	case s.By == counts.Cgroup:
		return len(t.Cgroups) == 0 || s.Part != nil
	}
	return machine || f.own(s)
}

// processors are the kinds of scopes that counters divide a machine into.
var processors = []counts.Kind{counts.CPU, counts.Core, counts.Die, counts.Socket, counts.Node}

// target is what a scope is of. A program has to run before it is looked at from outside.
func (f *feeds) target(ctx context.Context, s *top.Scope) (perfevent.Target, error) {
	p, t := s.Part, perfevent.Target{Present: true}
	switch {
	case p == nil && len(f.o.Target.Command) > 0:
		if err := f.start(ctx, s); err != nil {
			return t, err
		}
		if pid := f.program.run.PID(); pid > 0 {
			t.PIDs = family(pid)
		}
		return t, nil
	case p == nil:
		return f.o.Target, nil
	case p.Kind == counts.CPU:
		t.CPUs = []int{p.CPU}
	case p.Kind == counts.Process:
		t.PIDs = []int{p.PID}
	case p.Kind == counts.Thread:
		t.TIDs = []int{p.TID}
	default:
		t.Cgroups, t.All = []string{p.Cgroup}, true
	}
	return t, nil
}

// start starts the program that the user named, once.
func (f *feeds) start(ctx context.Context, s *top.Scope) (err error) {
	if f.program != nil {
		return nil
	}
	o := f.o
	o.By = counts.By(0).With(counts.Interval)
	if f.once && !f.sampled(s) {
		o.Period.Timeout, o.Period.Interval, o.By = o.Period.Interval, 0, 0
	}
	f.to = &turnout{}
	f.program, err = count(context.WithoutCancel(ctx), f.k, o, f.to)
	return err
}

// follow passes the accounts of the program on.
func (f *feeds) follow(ctx context.Context, w report.Writer) error {
	if err := f.to.turn(w); err != nil {
		return err
	}
	defer func() { _ = f.to.turn(nil) }()
	select {
	case <-f.program.done:
	case <-f.program.failed:
		return f.program.err
	case <-ctx.Done():
	}
	return nil
}

// windows samples one window after another.
func (f *feeds) windows(ctx context.Context, s *top.Scope, target perfevent.Target, w report.Writer) error {
	o := f.o
	o.Target, o.Period = target, measure.Period{Timeout: f.o.Period.Interval}
	only := samples.Filter{}
	if s.Code.Module != "" {
		only.Modules = []string{s.Code.Module}
	}
	if s.Code.Function != "" {
		only.Functions = []string{s.Code.Function}
	}
	sampler, err := sampled.New(sampled.Options{Kernel: f.k.Kernel, Sample: measure.SampleOptions{Options: o}, By: s.By, Only: only, Most: f.most, Label: o.Label})
	if err != nil {
		return fault.As(fault.Machine, err)
	}
	defer sampler.Close()
	for {
		n, err := sampler.Window(ctx, w)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case f.once && n == 0:
			return fault.Machinef("no samples: nothing ran for %v", o.Period.Timeout)
		case f.once || ctx.Err() != nil:
			return nil
		}
		if f.own(s) { // it has children meanwhile, or has ended
			select {
			case <-f.program.done:
				return nil
			default:
			}
			if target, err = f.target(ctx, s); err == nil {
				sampler.Retarget(target)
			}
		}
	}
}

// A turnout is a writer that passes accounts on to one that can change.
type turnout struct {
	mu     sync.Mutex
	to     report.Writer
	header *report.Header
	begun  bool // to has begun
}

// turn passes further accounts on to another writer; nil is none.
func (t *turnout) turn(w report.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to, t.begun = w, false
	return t.begin()
}

func (t *turnout) begin() error {
	if t.to == nil || t.header == nil || t.begun {
		return nil
	}
	t.begun = true
	return t.to.Begin(*t.header)
}

// Begin implements [report.Writer].
func (t *turnout) Begin(h report.Header) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.header = &h
	return t.begin()
}

// Account implements [report.Writer].
func (t *turnout) Account(a *account.Account) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		return nil
	}
	return t.to.Account(a)
}

// End implements [report.Writer].
func (t *turnout) End() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil || !t.begun {
		return nil
	}
	return t.to.End()
}

// familyMost bounds the processes of a program that are sampled.
const familyMost = 1000

// family is a process with those that descend from it.
func family(pid int) []int {
	list := []int{pid}
	for i := 0; i < len(list) && len(list) < familyMost; i++ {
		for _, child := range children(list[i]) {
			if !slices.Contains(list, child) {
				list = append(list, child)
			}
		}
	}
	return list
}

// children are the processes that a process has started and that run.
func children(pid int) (list []int) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil { // it has ended
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(field); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}
