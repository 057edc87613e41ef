package signals

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// TestGuardIgnored checks that a signal stays ignored that was (nohup).
func TestGuardIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	g := NewGuard()
	defer g.End()
	if !signal.Ignored(syscall.SIGHUP) {
		t.Error("the hang-up is ignored no more")
	}
}

// TestHeard checks that signals which are ignored stay so: a simulation outlives its
// terminal under nohup.
func TestHeard(t *testing.T) {
	if !slices.Contains(Heard(true), os.Signal(syscall.SIGHUP)) {
		t.Skip("it is ignored already")
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if got := Heard(true); slices.Contains(got, os.Signal(syscall.SIGHUP)) || len(got) != len(forwarded)-1 {
		t.Errorf("%v", got)
	}
}
