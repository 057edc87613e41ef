package signals

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A Guard removes a file or directory should a signal end the program before the guard's end. The program
// still ends by the signal. Signals that are ignored (nohup) stay so.
type Guard struct {
	signals chan os.Signal
	mu      sync.Mutex
	file    string // or directory; "" for none yet
}

// NewGuard returns a guard without a file yet.
func NewGuard() *Guard {
	g := &Guard{signals: make(chan os.Signal, 1)}
	for _, s := range Heard(true) {
		if number, ok := s.(syscall.Signal); ok && ends(number) {
			signal.Notify(g.signals, s)
		}
	}
	go func() {
		s, ok := (<-g.signals).(syscall.Signal)
		if !ok {
			return // it is closed
		}
		g.mu.Lock() // and not unlocked: no file may be made any more
		if g.file != "" {
			os.RemoveAll(g.file)
		}
		endBy(s)
	}()
	return g
}

// Make makes the file that is guarded.
func (g *Guard) Make(file func() (*os.File, error)) (*os.File, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, err := file()
	if err == nil {
		g.file = f.Name()
	}
	return f, err
}

// End ends the guard. The file stays.
func (g *Guard) End() {
	signal.Stop(g.signals)
	close(g.signals)
}

// BearPipes turns writing to a pipe without a reader into an error. Otherwise it would end
// this program, and not what it has started.
func BearPipes() {
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
}
