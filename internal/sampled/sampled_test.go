//go:build linux

package sampled_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/sampled"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// An accounts writer adds up the samples of the modules of the windows so far.
type accounts struct{ modules map[string]int64 }

func (a *accounts) Begin(report.Header) error { return nil }
func (a *accounts) End() error                { return nil }
func (a *accounts) Account(x *account.Account) error {
	if c := x.Scope.Code; c != nil && x.Scope.Kind == counts.Module {
		for _, n := range x.Counts() {
			a.modules[c.Module] += n.Samples
		}
	}
	return nil
}

// TestWindowsLater: later windows describe only processes that run. A process that runs
// later has its code named, and so has its child that executes nothing.
func TestWindowsLater(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "later-running")
	if err := os.Symlink(shell, name); err != nil {
		t.Fatal(err)
	}
	busy := exec.Command(name, "-c", "read x; (i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); while :; do :; done")
	in, err := busy.StdinPipe()
	if err := errors.Join(err, busy.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	})
	o := measure.SampleOptions{Options: measure.Options{Target: perfevent.Target{All: true, Present: true},
		Period: measure.Period{Timeout: 500 * time.Millisecond}}}
	s, err := sampled.New(sampled.Options{Kernel: measure.ThisKernel(), Sample: o, By: counts.Module, Only: samples.Filter{Processes: []string{filepath.Base(name)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Window(context.Background(), &accounts{map[string]int64{}}); errors.Is(err, syscall.EACCES) {
		t.Skipf("not allowed here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	a := &accounts{map[string]int64{}}
	for range 4 {
		if _, err := s.Window(context.Background(), a); err != nil {
			t.Fatal(err)
		}
	}
	named, all := int64(0), int64(0)
	for module, n := range a.modules {
		if all += n; module != "" {
			named += n
		}
	}
	// A busy machine may leave few samples: only their places are judged.
	if all > 0 && named < all*8/10-2 {
		t.Errorf("of %d samples %d have a module: %v", all, named, a.modules)
	}
	t.Logf("%v", a.modules)
}
