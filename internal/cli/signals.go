package cli

import (
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cyclestack/cyclestack/internal/measure"
)

// forwarded are the signals that are meant for the program which is counted.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}

// A catcher catches signals as long as something is counted. After that a signal ends this
// program: at once if its output is blocked, and otherwise if it comes again after some time.
// Some programs send each signal twice (timeout), and a user may not know that the account is
// being made.
type catcher struct {
	signals  chan os.Signal
	finished chan struct{}
	ended    syscall.Signal // what was to end the program; valid after end

	mu    sync.Mutex
	take  func(os.Signal) (over bool) // passes a signal on, or says that there is nothing to be ended
	early []os.Signal                 // those that came before there was a take
	since time.Time                   // the first signal after the counting
	last  func()                      // before this program ends; nil for nothing
	wait  *time.Timer                 // nil for none
}

// catch begins to catch signals: before a program is started, so that none is
// left behind. Those that were ignored when cyclestack was started (nohup) stay
// so. Without a program SIGINT ends the counting in any case: shells ignore it
// for what a script runs in the background, and perf stops too.
func catch(program bool) *catcher {
	w := &catcher{signals: make(chan os.Signal, 8), finished: make(chan struct{})}
	for _, s := range heard(program) {
		signal.Notify(w.signals, s)
	}
	go func() {
		defer close(w.finished)
		for s := range w.signals {
			w.mu.Lock()
			switch {
			case w.take == nil:
				w.early = append(w.early, s)
				w.over(s)
			case w.take(s):
				w.over(s)
			default:
				w.since = time.Time{}
			}
			w.mu.Unlock()
		}
	}()
	return w
}

// heard are the signals that are to be caught.
func heard(program bool) []os.Signal {
	return slices.DeleteFunc(slices.Clone(forwarded), func(s os.Signal) bool {
		return signal.Ignored(s) && (program || s != syscall.SIGINT)
	})
}

// hand has signals taken, also those caught before.
func (w *catcher) hand(take func(os.Signal) (over bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.take = take
	w.since = time.Time{}
	for _, s := range w.early {
		if take(s) {
			w.over(s)
		}
	}
	w.early = nil
}

// finally has something done before a signal ends this program.
func (w *catcher) finally(last func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = last
}

// over handles a signal when nothing but this program can be ended.
func (w *catcher) over(s os.Signal) {
	number, ok := s.(syscall.Signal)
	if !ok || !ends(number) {
		return
	}
	if w.since.IsZero() {
		w.since = time.Now()
	}
	if stalled() || time.Since(w.since) >= patience {
		if w.last != nil {
			w.last()
		}
		endBy(number)
	}
}

// endBy ends this program by a signal.
func endBy(s syscall.Signal) {
	if s != syscall.SIGQUIT { // Go prints its stacks for it
		signal.Reset(s)
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Signal(s)
		}
		time.Sleep(soon) // the first process of a container does not end by signals
	}
	os.Exit(exitSignal + int(s))
}

// patience is how long something may take to end after a signal.
const patience = time.Second

// writing is since when something is being written that somebody may have to read first, in
// nanoseconds since 1970; 0 if nothing is. Signals are the process's, and so is this.
var writing atomic.Int64

// patiently writes what somebody may have to read first.
func patiently(w io.Writer, b []byte) (int, error) {
	writing.Store(time.Now().UnixNano())
	defer writing.Store(0)
	return w.Write(b)
}

// stalled reports whether nobody reads what is written.
func stalled() bool {
	began := writing.Load()
	return began != 0 && time.Since(time.Unix(0, began)) > soon
}

// forward passes signals on to the program, also those caught before. Without a program a
// signal ends the counting; of several runs it ends the series.
//
// What is typed at the terminal (Ctrl-C) goes to the program without our help.
func (w *catcher) forward(r *measure.Run, program, several bool) {
	w.hand(func(s os.Signal) (over bool) {
		if number, ok := s.(syscall.Signal); ok && ends(number) {
			w.ended = number
		}
		switch {
		case program && (!typed(s) || !inForeground()):
			return r.Signal(s) != nil
		case !program || several:
			r.Stop()
		}
		return !program || r.Signal(probe) != nil
	})
}

// probe is the signal that only says whether there is somebody to get it.
const probe = syscall.Signal(0)

// soon is how long signals are caught after a run: they are no longer than it takes to
// print an account, and then nobody has to stop catching them.
const soon = 100 * time.Millisecond

// end stops catching.
func (w *catcher) end() {
	signal.Stop(w.signals)
	close(w.signals)
	<-w.finished
	if w.wait != nil {
		w.wait.Stop()
	}
}

// ends reports whether a signal asks a program to end.
func ends(s syscall.Signal) bool { return s != syscall.SIGUSR1 && s != syscall.SIGUSR2 }

// typed reports whether a signal is one that a terminal sends for a key.
func typed(s os.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGQUIT }

// inForeground reports whether the terminal sends its signals to this process,
// and so to the programs it started: whether its process group (pgrp) is the
// terminal's (tpgid). See proc_pid_stat(5).
func inForeground() bool {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return false
	}
	// The name of the program, in brackets, may have blanks.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const pgrp, tpgid = 2, 5 // behind the name: state, ppid, pgrp, session, tty_nr, tpgid
	return len(fields) > tpgid && fields[pgrp] == fields[tpgid]
}
