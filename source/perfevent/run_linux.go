package perfevent

import (
	"context"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
)

// A Run counts. It is a source.Reader: Next waits for the next interval or for
// the end.
type Run struct {
	spec    Spec
	sys     *System
	scheme  *scheme
	notes   notes
	mu      sync.Mutex    // guards session against Signal
	session *session      // the current one
	counted *counts.Table // the source of table
	table   *counts.Table
	repeats *repeats // nil for one run
	state   *os.ProcessState
	err     error
	done    bool
	last    atomic.Bool // no further runs are made

	ctx      context.Context
	stop     chan struct{}
	stopOnce sync.Once
	release  func() bool
}

// Start opens the counters and starts the command. What the kernel refuses becomes
// NotSupported cells with a note. There is an error only in these cases:
//
//	*[OpenError]    nothing can be counted, or not all for lack of files or memory
//	*[TargetError]  the target does not exist or cannot be counted as asked
//	*exec.Error     the command cannot be executed
//
// After an error no counter, process or file is left. When the context is done the
// counting ends as by Stop.
func Start(ctx context.Context, sys *System, spec Spec) (*Run, error) {
	if err := spec.check(sys); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	r := &Run{spec: spec, sys: sys, scheme: newScheme(&spec), ctx: ctx, stop: make(chan struct{})}
	first := -1
	if spec.Repeat > 1 || spec.Separate {
		r.repeats = newRepeats(&spec)
		first = r.repeats.group()
	}
	r.progress(1)
	var err error
	if r.session, err = newSession(sys, &r.spec, r.scheme, first, &r.notes, r.stop); err != nil {
		return nil, err
	}
	r.release = context.AfterFunc(ctx, r.Stop)
	return r, nil
}

// Next waits for the next table; false after the last.
func (r *Run) Next() bool {
	switch {
	case r.done:
		return false
	case r.repeats != nil:
		r.done = true
		return r.nextRepeated()
	}
	if r.counted == nil {
		r.counted = counts.NewTable(r.session.layout)
	}
	if r.session.next(r.counted) {
		r.table = r.observed(r.counted)
		return true
	}
	r.finish()
	return false
}

// observed returns a table with what was observed while it was counted.
func (r *Run) observed(t *counts.Table) *counts.Table {
	if r.spec.Observer == nil {
		return t
	}
	return r.spec.Observer.Join(t)
}

// progress reports a run to Spec.Progress.
func (r *Run) progress(run int) {
	if r.spec.Progress == nil {
		return
	}
	of := 1
	if r.repeats != nil {
		of = len(r.repeats.groups)
	}
	r.spec.Progress(run, of)
}

// finish notes how it all ended.
func (r *Run) finish() {
	r.done = true
	r.keepState()
	if r.ctx.Err() != nil {
		r.err = context.Cause(r.ctx)
	}
}

// keepState keeps how the command ended, if it has.
func (r *Run) keepState() {
	c := r.session.command
	if c == nil {
		return
	}
	select {
	case <-c.done:
		r.state = c.state
		if c.err != nil && r.err == nil {
			r.err = c.err
		}
	default:
	}
}

// Table returns the current table, valid until the next call of Next. Cells
// hold scaled values, times enabled and running; columns of one group have the
// same counts.Column.Group; Notes say what the kernel refused and why. The
// *counts.Layout stays the same as long as no scopes are added.
func (r *Run) Table() *counts.Table { return r.table }

// Err returns what ended the counting early: the cause of the context's end.
func (r *Run) Err() error { return r.err }

// Kind is "perf-event".
func (r *Run) Kind() string { return "perf-event" }

// Stop ends the counting: Next returns what has been counted and then false.
// It may be called from any goroutine. A command runs on until Close.
func (r *Run) Stop() {
	r.stopOnce.Do(func() {
		close(r.stop)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.session.wake.notifier.notify()
	})
}

// Signal passes a signal on to the command. After one that asks it to end, no
// further runs are made. The error is os.ErrProcessDone if
// there is none that runs. It may be called from any goroutine.
func (r *Run) Signal(sig os.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch sig {
	case unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP:
		r.last.Store(true)
	}
	if r.session.command == nil {
		return os.ErrProcessDone
	}
	return r.session.command.process.Signal(sig)
}

// State is how the command ended, the last of several; nil if there was none
// or it runs still. Valid after Next returned false, and after Close.
func (r *Run) State() *os.ProcessState { return r.state }

// Close frees everything; a command still running is ended, with SIGTERM and
// if that does not help with SIGKILL. May be called twice.
func (r *Run) Close() error {
	r.done = true
	r.release()
	r.Stop()
	r.session.close()
	r.keepState()
	return nil
}
