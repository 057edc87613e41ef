//go:build linux

package sampled_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// A countedFS counts how often a file is opened.
type countedFS struct {
	fs.FS
	name string
	n    int
}

func (c *countedFS) Open(name string) (fs.File, error) {
	if name == c.name {
		c.n++
	}
	return c.FS.Open(name)
}

func (c *countedFS) ReadFile(name string) ([]byte, error) {
	if name == c.name {
		c.n++
	}
	return fs.ReadFile(c.FS, name)
}

func (c *countedFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(c.FS, name) }

func (c *countedFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(c.FS, name) }

// TestWindowsKept: what a process has mapped is read once. A process that executes another
// program between two windows is read again: the kernel reports it to nobody.
func TestWindowsKept(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	data, err := os.ReadFile(shell)
	if err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"kept-first", "kept-second"} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	loop := "trap 'exec " + filepath.Join(dir, "kept-second") + ` -c "while :; do :; done"' USR1; while :; do :; done`
	busy := exec.Command(filepath.Join(dir, "kept-first"), "-c", loop)
	if err := busy.Start(); err != nil {
		t.Skip(err) // such a directory may not execute programs
	}
	t.Cleanup(func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	})
	k := measure.ThisKernel()
	root := &countedFS{FS: k.Root, name: fmt.Sprintf("proc/%d/maps", busy.Process.Pid)}
	k.Root = root
	s, err := sampled.New(sampled.Options{Kernel: k, By: counts.Module, Only: samples.Filter{Processes: []string{"kept-first", "kept-second"}},
		Sample: measure.SampleOptions{Options: measure.Options{Target: perfevent.Target{All: true, Present: true}, Period: measure.Period{Timeout: 300 * time.Millisecond}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	windows := func(n int) map[string]int64 {
		t.Helper()
		a := &accounts{map[string]int64{}}
		for range n {
			if _, err := s.Window(context.Background(), a); errors.Is(err, syscall.EACCES) {
				t.Skipf("not allowed here: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return a.modules
	}
	windows(1)
	if root.n != 1 {
		t.Fatalf("the first window read what the process has mapped %d times", root.n)
	}
	// A window that loses records has it read once more.
	if found := windows(3); root.n > 3 || found[""] > 2 {
		t.Errorf("later windows read what the process has mapped %d times: %v", root.n-1, found)
	}
	if err := busy.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for comm := ""; comm != "kept-second"; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", busy.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		comm = strings.TrimSpace(string(text))
	}
	found := windows(3)
	if all := found["kept-first"] + found["kept-second"] + found[""]; all > 0 && found["kept-second"] == 0 || found["kept-first"] > 0 || found[""] > 2 {
		t.Errorf("after it executed another program: %v", found)
	}
	t.Logf("%v, read %d times", found, root.n)
}
