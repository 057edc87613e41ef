package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/measure/clocked"
	"github.com/cyclestack/cyclestack/internal/measure/simulated"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/signals"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A meter is one call of a command that counts live.
type meter struct {
	*app
	c       *common
	f       *statFlags
	program []string
	stream  io.Writer // for the account, unless a file is named
	options measure.Options
	sim     *simulated.Simulator // nil if nothing may be simulated
	sampler *clocked.Sampler     // nil if no samples are taken
	m       *measure.Measurement

	intervals *output.Stream  // of the accounts of intervals; nil for none
	documents []*bytes.Buffer // gathered until the end
	ended     syscall.Signal  // was to end the last run; 0 for none
	unkept    error           // what was simulated could not be kept
	keeper    *keeper         // of the run; nil if it is not kept
}

// prepare completes the options and plans.
func (l *meter) prepare() (err error) {
	if l.options.Target, err = l.target(&l.f.targetFlags, l.program); err != nil {
		return err
	}
	if err := errors.Join(output.Writable(l.c.output), output.Writable(l.f.keep)); err != nil {
		return err
	}
	l.options.All, l.options.Label = l.c.all, l.f.label(l.program)
	l.options.Period = measure.Period{Interval: time.Duration(l.f.interval), Timeout: time.Duration(l.f.timeout), Delay: time.Duration(l.f.delay)}
	l.options.Client = measure.Client{Writer: l.document, OneDocument: l.c.format != report.Formats[report.Accounts]()[0] || l.c.brief(), Again: l.f.sameAgain(l.program),
		Progress: l.progress, Say: why}
	l.options.Client.From = provenance(l.options.Client.Again)
	if l.sim != nil {
		l.options.Client.Simulator = l.sim
	}
	if l.sampler != nil {
		l.options.Client.Sampler = l.sampler
	}
	if l.f.interval > 0 {
		if l.intervals, err = l.openIntervals(); err != nil {
			return err
		}
		if !l.intervals.Watched() {
			l.options.Period.Batch = batch
		}
	}
	if l.m, err = measure.New(l.kernel, l.options); err != nil {
		return err
	}
	if err := l.m.Plan(); err != nil {
		return err
	}
	l.keep()
	return nil
}

// batch is how long accounts of intervals are kept back if they go to a file, where nobody
// watches.
const batch = time.Second

// target returns what is counted, with the streams of a program.
func (a *app) target(f *targetFlags, program []string) (t perfevent.Target, err error) {
	if t, err = f.target(program); err != nil {
		return t, err
	}
	t.Stdin, t.Stdout, t.Stderr = file(a.in), file(a.out), file(a.err)
	return t, output.Room()
}

// file returns the file that a stream is, nil if it is none.
func file(stream any) *os.File {
	f, _ := stream.(*os.File)
	return f
}

// why is a reason with the commands and flags that would change it.
func why(r measure.Reason) string {
	switch r.Kind {
	case measure.NoPMU:
		return r.Text + " (cyclestack doctor)"
	}
	return r.Text
}

// progress tells a terminal how far the runs are.
func (l *meter) progress(run, of int, nodes string) {
	f := file(l.err)
	switch {
	case f == nil || !term.IsTerminal(int(f.Fd())):
	case of > 0:
		fmt.Fprintf(f, "run %d of %d\n", run, of)
	default:
		fmt.Fprintf(f, "run %d: %s\n", run, nodes)
	}
}

// document returns a writer of a document.
func (l *meter) document(o report.Options) (report.Writer, error) {
	own := l.c.options(l.terminal(l.c, l.stream))
	own.Nodes, own.Level, own.All, own.Known = o.Nodes, o.Level, o.All, o.Known
	own.Layout, own.Line, own.Top = o.Layout, o.Line, o.Top
	var to io.Writer = l.intervals
	if l.intervals == nil {
		b := &bytes.Buffer{}
		l.documents = append(l.documents, b)
		to = b
	}
	w, err := report.New(l.c.format, to, own)
	if err != nil {
		return nil, err
	}
	return l.keeper.with(w), nil
}

// count counts once, and prints the accounts.
func (l *meter) count(ctx context.Context) error {
	run, err := l.run(ctx, l.m.Start)
	if run == nil {
		l.keeper.end(false, nil)
		return err
	}
	if list := signals.Heard(true); l.m.Simulates() && len(list) > 0 { // without a list it would be all
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, list...) // until the simulator's files are removed
		defer stop()
	}
	finished := run.Finish(ctx)
	var early *measure.EndedEarlyError
	if errors.As(finished, &early) { // no failure: the program's status is passed on
		fmt.Fprintf(l.err, "cyclestack stat: %s\n", oneLine(early.Error()))
		finished, l.documents = nil, nil
	}
	if l.sim != nil && l.sim.Done() && !l.c.brief() && l.c.format == report.Formats[report.Accounts]()[0] {
		l.documents = append(l.documents, l.next())
	}
	l.keeper.end(finished == nil && err == nil && early == nil, l.options.Client.Again)
	if finished == nil {
		finished = l.print()
	}
	if err := errors.Join(finished, err, l.unkept); err != nil {
		return err
	}
	return programStatus(l.program, run.State())
}

// descend counts level by level, and prints one account of all runs.
func (l *meter) descend(ctx context.Context) error {
	d, err := l.m.Descend()
	if types := (*measure.CoreTypesError)(nil); errors.As(err, &types) {
		return usageError("--drilldown: the machine has several types of cores; choose one with --cpu %s", types.Processors[0])
	}
	if err != nil {
		return err
	}
	finish := func() error { return errors.Join(d.Finish(), l.print()) }
	for d.More() {
		run, err := l.run(ctx, d.Start)
		if run != nil {
			d.Add(run)
		}
		var ended *failure
		if errors.As(err, &ended) && ended.status > signals.Exit && d.Counted() {
			d.Stop(ended.Error())
			return errors.Join(finish(), err)
		}
		if err != nil {
			return err
		}
	}
	if err := finish(); err != nil {
		return err
	}
	return programStatus(l.program, d.State())
}

// run starts a run, passes signals on, and counts to the end. The run is nil if it did not
// start.
func (l *meter) run(ctx context.Context, start func(context.Context) (*measure.Run, error)) (run *measure.Run, err error) {
	catcher := signals.Catch(len(l.program) > 0)
	again := l.f.again() != ""
	defer func() {
		if !again && err == nil && !l.m.Simulates() {
			time.AfterFunc(signals.Soon, func() { catcher.End() }) // nothing depends on it here, and it takes time
			return
		}
		l.ended = catcher.End()
		if again && err == nil && l.ended != 0 {
			err = &failure{signals.Exit + int(l.ended), fmt.Errorf("ended by a signal: %v", l.ended)}
		}
	}()
	if run, err = start(ctx); err != nil {
		return nil, programError(err)
	}
	defer run.Close()
	catcher.Forward(run, len(l.program) > 0, again)
	if l.f.interval > 0 {
		// From here on there is one thing to do at a time. With one processor the
		// runtime spends half as much on waking threads.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	return run, programError(run.Count())
}

// print writes the documents that were gathered.
func (l *meter) print() error {
	if l.intervals != nil {
		return l.intervals.Close()
	}
	if len(l.documents) == 0 {
		return nil
	}
	return l.writeTo(l.stream, l.c, func(out io.Writer) error {
		for i, b := range l.documents {
			if i > 0 {
				if _, err := io.WriteString(out, "\n"); err != nil {
					return err
				}
			}
			if _, err := b.WriteTo(out); err != nil {
				return err
			}
		}
		return nil
	})
}

// Exit statuses for a program that cannot be run, those of a shell.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// programError gives the error of a program that cannot be run its exit status.
func programError(err error) error {
	var program *exec.Error
	if !errors.As(err, &program) || fault.Of(err) != 0 {
		return err
	}
	status := exitCannotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		status = exitNotFound
	}
	return &failure{status, fmt.Errorf("%s: %w", program.Name, output.Reason(program.Err))}
}

// programStatus passes on how the program ended.
func programStatus(program []string, state *os.ProcessState) error {
	if state == nil || state.Success() {
		return nil
	}
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return &failure{signals.Exit + int(ws.Signal()), fmt.Errorf("%s: ended by a signal: %v", program[0], ws.Signal())}
	}
	return &failure{state.ExitCode(), errors.New("")}
}
