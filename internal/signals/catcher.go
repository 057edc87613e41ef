// Package signals passes signals on to the measured program, and removes unfinished files if a
// signal ends this program.
package signals

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
)

// forwarded are the signals that are meant for the measured program.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}

// Exit and the number of a signal are the exit status of a program that the signal ended.
const Exit = 128

// Soon is how long signals are caught after a run. It is no longer than an account takes to
// print, so nobody has to stop catching them.
const Soon = 100 * time.Millisecond

// patience is how long a program may take to end after a signal.
const patience = time.Second

// probe is the signal that only says whether there is a process to get it.
const probe = syscall.Signal(0)

// A Measured is what counts or samples a program.
type Measured interface {
	Signal(os.Signal) error // to the program
	Stop()                  // ends the measuring
}

// A Catcher catches signals while a program is measured. After that a signal ends this
// program: at once if its output is blocked, and otherwise if it comes again after some time.
// Some programs send each signal twice (timeout), and a user may not know that the account is
// being made.
type Catcher struct {
	signals  chan os.Signal
	finished chan struct{}
	ended    syscall.Signal // what was to end the program; valid after End

	mu    sync.Mutex
	take  func(os.Signal) (over bool) // passes a signal on; over if there is no program to end
	early []os.Signal                 // those that came before there was a take
	since time.Time                   // the first signal after the measuring
	last  func()                      // before this program ends; nil for nothing
	wait  *time.Timer                 // nil for none
}

// Catch begins to catch signals. Call it before the program starts, so that no signal is
// missed. Those that were ignored when cyclestack was started (nohup) stay so. Without a
// program SIGINT ends the measuring in any case: shells ignore it for what a script runs in
// the background, and perf stops too.
func Catch(program bool) *Catcher {
	w := &Catcher{signals: make(chan os.Signal, 8), finished: make(chan struct{})}
	for _, s := range Heard(program) {
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

// Heard are the signals to catch: those for the program that are not ignored, and SIGINT if
// there is none.
func Heard(program bool) []os.Signal {
	return slices.DeleteFunc(slices.Clone(forwarded), func(s os.Signal) bool {
		return signal.Ignored(s) && (program || s != syscall.SIGINT)
	})
}

// hand gives signals to take, also those caught before.
func (w *Catcher) hand(take func(os.Signal) (over bool)) {
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

// Finally sets what is done before a signal ends this program.
func (w *Catcher) Finally(last func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = last
}

// over handles a signal when there is only this program to end.
func (w *Catcher) over(s os.Signal) {
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
		time.Sleep(Soon) // the first process of a container does not end by signals
	}
	os.Exit(Exit + int(s))
}

// writing is when the present write began, which may wait for a reader, in nanoseconds since
// 1970; 0 without one. Signals are of the process, and so is this.
var writing atomic.Int64

// Write writes what may have to wait for a reader. Meanwhile a signal ends this program.
func Write(w io.Writer, b []byte) (int, error) {
	writing.Store(time.Now().UnixNano())
	defer writing.Store(0)
	return w.Write(b)
}

// stalled reports whether nobody reads what is written.
func stalled() bool {
	began := writing.Load()
	return began != 0 && time.Since(time.Unix(0, began)) > Soon
}

// Forward passes signals on to the program, also those caught before. Without a program a
// signal ends the counting; of several runs it ends the series.
//
// What is typed at the terminal (Ctrl-C) goes to the program without our help.
func (w *Catcher) Forward(r Measured, program, several bool) {
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

// Pass passes signals on to the program, as Forward does. The second signal that asks for an
// end stops the recording, or the first if there is no program. If the program goes on after
// the first, goesOn is called.
func (w *Catcher) Pass(r Measured, program bool, goesOn func()) {
	ended := func() bool { return !program || r.Signal(probe) != nil }
	w.hand(func(s os.Signal) (over bool) {
		number, ok := s.(syscall.Signal)
		if program && (!typed(s) || !inForeground()) || ok && !ends(number) {
			_ = r.Signal(s) // it may have ended meanwhile
		}
		switch {
		case !ok || !ends(number):
		case !program || w.wait != nil:
			r.Stop()
			return true
		default:
			w.wait = time.AfterFunc(patience, func() {
				if !ended() {
					goesOn()
				}
			})
		}
		return ended()
	})
}

// End stops catching, and returns the last signal that Forward took and that asked for an
// end; 0 for none.
func (w *Catcher) End() syscall.Signal {
	signal.Stop(w.signals)
	close(w.signals)
	<-w.finished
	if w.wait != nil {
		w.wait.Stop()
	}
	return w.ended
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
