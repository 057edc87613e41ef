package cli

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/measure/simulated"
	"github.com/cyclestack/cyclestack/internal/shell"
)

// simulation says how stat simulates where it cannot count.
func (l *meter) simulation() simulated.Options {
	o := simulated.Options{Caches: l.f.caches, Announce: l.announce, Stopped: func() bool { return l.ended != 0 }}
	if name := l.f.keep; name != "" {
		o.Keep = func(write func(io.Writer) error) error {
			c := *l.c
			c.output = name
			l.unkept = l.write(&c, write)
			return nil
		}
	}
	return o
}

// announce says that the program runs again, and on a terminal how long that has taken.
func (l *meter) announce(times int, takes time.Duration) (stop func()) {
	again, how := "again", ""
	if times > 1 {
		again = "twice more"
	}
	if l.f.source != string(measure.Simulated) && l.c.model == "" {
		how = ", --source os runs it once"
	}
	fmt.Fprintf(l.err, "cyclestack stat: running it %s under valgrind, about %s; Ctrl-C keeps what is known%s\n", again, simulated.Roughly(takes), how)
	f := file(l.err)
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
				fmt.Fprintf(f, "\r\x1b[Ksimulating: %.0f s of about %s", time.Since(begin).Seconds(), simulated.Roughly(takes))
			}
		}
	})
	return func() { close(done); wait.Wait() }
}

// next says how to see more of what was simulated.
func (l *meter) next() *bytes.Buffer {
	b := &bytes.Buffer{}
	if name := l.f.keep; name != "" {
		fmt.Fprintf(b, "  next    cyclestack report --by line %s\n          every line, and with --by function or instruction the others; cyclestack diff compares two\n", shell.Line([]string{name}))
		return b
	}
	name := filepath.Base(l.program[0]) + ".callgrind"
	fmt.Fprintf(b, "  next    cyclestack stat --source simulated --keep %s %s\n          keeps what was simulated, for cyclestack report --by line %s and cyclestack diff\n",
		shell.Line([]string{name}), shell.Line(l.f.sameAgain(l.program)), shell.Line([]string{name}))
	return b
}
