//go:build linux

package perfevent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// TestOnline finds out which processors there are where /sys does not say.
func TestOnline(t *testing.T) {
	const list, stat = "sys/devices/system/cpu/online", "proc/stat"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []int
	}{
		{"list", map[string]string{list: "0-2\n", stat: "cpu  1 2\ncpu0 1 2\n"}, []int{0, 1, 2}},
		{"no list", map[string]string{stat: "cpu  1 2\ncpu0 1 2\ncpu3 1 2\nintr 7\ncpu9 1 2\n"}, []int{0, 3}},
		{"empty list", map[string]string{list: "\n", stat: "cpu  1 2\ncpu0 1 2\n"}, []int{0}},
		{"nothing", nil, nil},
		{"empty", map[string]string{list: "", stat: ""}, nil},
	} {
		root := fstest.MapFS{}
		for name, text := range tt.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		s, err := ReadSystem(root)
		if err != nil || !slices.Equal(s.CPUs, tt.want) || !slices.Equal(s.onlineNow(), tt.want) {
			t.Errorf("%s: %v, now %v, %v; want %v", tt.name, s.CPUs, s.onlineNow(), err, tt.want)
		}
	}
}

// TestNoCPUs checks that it is an error if processors are to be counted that are not known.
func TestNoCPUs(t *testing.T) {
	s, err := ReadSystem(fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	groups := [][]Event{{{Name: "cpu-clock", Attr: Attr{Type: perffile.TypeSoftware}}}}
	for _, target := range []Target{{All: true}, {CPUs: []int{0}}, {All: true, Cgroups: []string{"/"}}, {Command: []string{"true"}, OnCPUs: []int{0}}} {
		r, err := Start(context.Background(), s, Spec{Groups: groups, Target: target})
		if !errors.Is(err, errNoCPUs) {
			t.Errorf("counting %v: %v", target, err)
		}
		if err == nil {
			r.Close()
		}
	}
	groups[0][0].Attr.Sample = 1e9
	for _, target := range []Target{{All: true}, {Command: []string{"true"}}} {
		r, err := Sample(context.Background(), s, SampleSpec{Groups: groups, Target: target})
		if !errors.Is(err, errNoCPUs) {
			t.Errorf("sampling %v: %v", target, err)
		}
		if err == nil {
			r.Close()
		}
	}
}

// TestZombie counts what has ended, though nobody has waited for it.
func TestZombie(t *testing.T) {
	c := exec.Command("true")
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	defer c.Wait() //nolint:errcheck // it is a zombie until then
	if err := (&command{process: c.Process}).awaitEnd(); err != nil {
		t.Fatal(err)
	}
	s, err := ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	groups := [][]Event{{{Name: "task-clock", Attr: Attr{Type: perffile.TypeSoftware, Config: softwareTaskClock}}}}
	for _, target := range []Target{{PIDs: []int{c.Process.Pid}}, {TIDs: []int{c.Process.Pid}}} {
		_, err := Start(context.Background(), s, Spec{Groups: groups, Target: target})
		var none *TargetError
		if !errors.As(err, &none) || !strings.Contains(err.Error(), fmt.Sprintf("%d has ended: it is a zombie", c.Process.Pid)) {
			t.Errorf("%v: %v", target, err)
		}
	}
}

// TestGuarded finds out that a process is another user's.
func TestGuarded(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	defer c.Wait()         //nolint:errcheck // it is killed
	defer c.Process.Kill() //nolint:errcheck
	if guarded(c.Process.Pid) {
		t.Skip("this root may not look at its own process")
	}
	const nobody = 65534
	type told struct {
		guarded bool
		errno   unix.Errno
	}
	results := make(chan told)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with its rights
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody)
		results <- told{guarded(c.Process.Pid), errno}
	}()
	r := <-results
	if r.errno != 0 {
		t.Skip(r.errno)
	}
	if !r.guarded {
		t.Error("nobody may look at a process of root's")
	}
	s, err := ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	o := newOpener(s, &scheme{}, &notes{}, Attr{})
	o.guarded = c.Process.Pid
	if text := o.advice(unix.EACCES); !strings.Contains(text, fmt.Sprintf("process %d is another user's", c.Process.Pid)) || strings.Contains(text, "paranoid") {
		t.Error(text)
	}
}

// TestNotStarted tells what is the program's fault from what is not.
func TestNotStarted(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#! /no/such/shell -e\necho"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		stopped bool
		errno   unix.Errno
		program bool
		want    string
	}{
		{false, unix.EAGAIN, false, "ulimit -u"},
		{false, unix.ENOMEM, false, "cannot be started"},
		{true, unix.EPERM, false, "ptrace"},
		{false, unix.EPERM, true, "operation not permitted"},
		{false, unix.ENOENT, true, "it is to be run by /no/such/shell: no such file"},
	} {
		err := (&Target{Command: []string{"./script"}}).notStarted(script, tt.stopped, tt.errno)
		program := (*exec.Error)(nil)
		if errors.As(err, &program) != tt.program || !errors.Is(err, tt.errno) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, stopped %t: %v", tt.errno, tt.stopped, err)
		}
	}
}
