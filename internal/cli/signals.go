package cli

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// forwarded are the signals that are meant for the program which is counted.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}

// A catcher catches signals as long as something is counted.
type catcher struct {
	signals  chan os.Signal
	finished chan struct{}  // nil before forward
	ended    syscall.Signal // what was to end the program; valid after end
}

// catch begins to catch signals: before a program is started, so that none is
// left behind. Those that were ignored when cyclestack was started (nohup) stay
// so.
func catch() *catcher {
	w := &catcher{signals: make(chan os.Signal, 8)}
	for _, s := range heard() {
		signal.Notify(w.signals, s)
	}
	return w
}

// heard are the signals that are to be caught.
func heard() []os.Signal { return slices.DeleteFunc(slices.Clone(forwarded), signal.Ignored) }

// forward passes signals on to the program, also those caught before. Without a
// program of which to await the end, a signal ends the counting; of several runs
// it ends the series.
//
// What is typed at the terminal (Ctrl-C) goes to the program without our help.
func (w *catcher) forward(r counting, program, several bool) {
	w.finished = make(chan struct{})
	go func() {
		defer close(w.finished)
		for s := range w.signals {
			if number, ok := s.(syscall.Signal); ok && ends(number) {
				w.ended = number
			}
			switch {
			case program && (!typed(s) || !inForeground()):
				_ = r.Signal(s) // it may have ended meanwhile
			case !program || several:
				r.Stop()
			}
		}
	}()
}

// soon is how long signals are caught after a run: they are no longer than it takes to
// print an account, and then nobody has to stop catching them.
const soon = 100 * time.Millisecond

// end stops catching.
func (w *catcher) end() {
	signal.Stop(w.signals)
	close(w.signals)
	if w.finished != nil {
		<-w.finished
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
