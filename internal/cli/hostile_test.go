//go:build linux

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/signals"
	"github.com/cyclestack/cyclestack/internal/testkernel"

	"github.com/cyclestack/cyclestack/source/perfevent"
)

// tooLong is how long a command of these tests may take that hangs, or is forgotten.
const tooLong = time.Minute

// process returns this program as a process of its own, in a directory, with what it says. It
// is at its end when nobody has its standard error any more: neither has what it started.
func process(t *testing.T, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), tooLong)
	t.Cleanup(cancel)
	said := &bytes.Buffer{}
	c := exec.CommandContext(ctx, self)
	c.Args, c.Dir, c.Stderr = append([]string{"cyclestack"}, args...), dir, said
	c.Env = append(os.Environ(), "HOME="+dir)
	c.Stdout = io.Discard
	return c, said
}

// status is how a process ended: its exit status, or 128 and the signal.
func status(c *exec.Cmd) int {
	ws, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return signals.Exit + int(ws.Signal())
	}
	return c.ProcessState.ExitCode()
}

// fullPipe returns the end of a pipe into which nothing can be written any more, and the other.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 4<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the pipe has no end")
	}
	return r, w
}

// TestStalled has signals end a command that waits for the reader of its output. It does
// not fix how many signals that takes.
func TestStalled(t *testing.T) {
	needSampling(t, true)
	for _, tt := range []struct {
		args   string
		stderr bool
	}{
		{"stat --source os -I 1 --format csv -o - -- sleep 600", false},
		{"stat --source os -I 1 --format csv -- sleep 600", true},
		{"stat --source os -a -I 1 --format csv -o -", false},
		{"record -q -e cpu-clock -o - -- sleep 600", false},
		{"record -q -e cpu-clock -a -o -", false},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
				_, w := fullPipe(t)
				c, _ := process(t, t.TempDir(), strings.Fields(tt.args)...)
				c.Stdout = w
				if tt.stderr {
					c.Stderr = w
				}
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				go func() { _ = c.Wait(); close(ended) }()
				for running := true; running; {
					select {
					case <-ended:
						running = false
					case <-time.After(200 * time.Millisecond):
						_ = c.Process.Signal(s)
					}
				}
				if got := status(c); got != signals.Exit+int(s) {
					t.Errorf("status %d after %v", got, s)
				}
			}
		})
	}
}

// TestReaderGone checks that a command without a reader ends the programs that it started.
func TestReaderGone(t *testing.T) {
	needSampling(t, false)
	t.Run("pipe", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c, said := process(t, t.TempDir(), "stat", "--source", "os", "-I", "1", "--format", "csv", "-o", "-", "--", "sleep", "600")
		c.Stdout = w
		r.Close()
		err = c.Run()
		w.Close()
		if got := status(c); got != exitMachine || !strings.Contains(said.String(), "cannot write standard output: broken pipe") {
			t.Errorf("status %d (%v): %s", got, err, said)
		}
	})
	t.Run("fifo", func(t *testing.T) {
		dir := t.TempDir()
		fifo := filepath.Join(dir, "fifo")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		c, said := process(t, dir, "stat", "--source", "os", "-I", "1", "--format", "csv", "-o", "fifo", "--", "sleep", "600")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		r, err := os.Open(fifo)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 100)); err != nil {
			t.Error(err)
		}
		r.Close()
		err = c.Wait()
		if got := status(c); got != exitMachine || !strings.Contains(said.String(), "cannot write fifo: broken pipe") {
			t.Errorf("status %d (%v): %s", got, err, said)
		}
	})
}

// TestFIFOOfNothing checks that a named pipe without a recording is read once: opened
// again, it would wait for another writer.
func TestFIFOOfNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "fifo: empty", "hello\n": "fifo:1: no counts of perf stat found"} {
		for _, command := range []string{"report", "latency"} {
			dir := t.TempDir()
			fifo := filepath.Join(dir, "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			c, said := process(t, dir, command, "fifo")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(w, text)
			if err = errors.Join(err, w.Close()); err != nil {
				t.Error(err)
			}
			hung := time.AfterFunc(10*time.Second, func() { c.Process.Kill() })
			err = c.Wait()
			hung.Stop()
			if got := status(c); got != exitInput || !strings.Contains(said.String(), want) {
				t.Errorf("%s of %q: status %d (%v): %s", command, text, got, err, said)
			}
		}
	}
}

// TestMountedOutput writes into a file that cannot be replaced, as it is mounted.
func TestMountedOutput(t *testing.T) {
	needSampling(t, false)
	dir := t.TempDir()
	if out, err := exec.Command("unshare", "-m", "mount", "--bind", dir, dir).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %v: %s", err, out)
	}
	for _, command := range []string{"stat --source os", "record -q -e page-faults"} {
		for _, name := range []string{"file", "mounted"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, said := process(t, dir)
		c.Args = []string{"sh", "-c", "mount --bind file mounted && exec -a cyclestack " + c.Path + " " + command + " -o mounted -- true"}
		unshare(t, c)
		if err := c.Run(); err != nil {
			t.Errorf("%s: %v: %s", command, err, said)
		}
		text, err := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil || len(text) < 100 || bytes.Contains(text, []byte("before")) {
			t.Errorf("%s wrote %q, %v", command, text, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*mounted*")); len(left) > 0 {
			t.Errorf("%s left %v", command, left)
		}
	}
	if old, err := os.ReadFile(filepath.Join(dir, "mounted.old")); string(old) != "before" {
		t.Errorf("what was there before is kept as %q, %v", old, err)
	}
}

// unshare has a command of the shell executed in a name space of mounts of its own.
func unshare(t *testing.T, c *exec.Cmd) {
	t.Helper()
	bash, err := exec.LookPath("bash") // whose exec gives a program another name
	if err != nil {
		t.Skip("needs bash")
	}
	if c.Path, err = exec.LookPath("unshare"); err != nil {
		t.Skip("needs unshare")
	}
	c.Args = append([]string{"unshare", "-m", bash}, c.Args[1:]...)
}

// TestRefusedOutput refuses before anything runs what could not be written later.
func TestRefusedOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, msg, got := call(testkernel.Skylake(1), "record", "-o", "", "--", "./app"); got != exitUsage || !strings.Contains(msg, "-o: the name of the file is empty") {
		t.Errorf("no name: status %d: %s", got, msg)
	}
	if err := os.Mkdir("perf.data.old", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("perf.data", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	needSampling(t, false)
	c, said := process(t, ".", "record", "-e", "page-faults", "--", "touch", "ran")
	err := c.Run()
	if _, ran := os.Stat("ran"); status(c) != exitUsage || !strings.Contains(said.String(), "perf.data.old, which is a directory") || ran == nil {
		t.Errorf("a directory in the place of the old file: %v: %s", err, said)
	}
}

// TestOutputInUse opens the file of intervals before the program starts, and leaves it as it is
// if none does.
func TestOutputInUse(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "sleep")
	if err := os.WriteFile(name, text, 0o700); err != nil {
		t.Fatal(err)
	}
	busy := exec.Command(name, "600") // what is executed cannot be written, not by root either
	if err := busy.Start(); err != nil {
		t.Skip(err)
	}
	k := testkernel.Skylake(1)
	_, msg, got := call(k, "stat", "-I", "100", "-o", name, "--", "./app")
	if got != exitMachine || !strings.Contains(msg, "text file busy") || len(k.Specs) > 0 {
		t.Errorf("status %d, started %d times: %s", got, len(k.Specs), msg)
	}
	_ = busy.Process.Kill()
	_ = busy.Wait()

	k.Refuse = func(perfevent.Spec) error { return errors.New("no") }
	fresh := filepath.Join(filepath.Dir(name), "fresh")
	for _, file := range []string{name, fresh} {
		if _, msg, got = call(k, "stat", "-I", "100", "-o", file, "--source", "pmu", "--", "./app"); got != exitMachine {
			t.Errorf("status %d: %s", got, msg)
		}
	}
	if now, err := os.ReadFile(name); !bytes.Equal(now, text) {
		t.Errorf("a file was emptied for nothing (%v)", err)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("a file was made for nothing")
	}
}

// TestStatuses looks at statuses that have been lost.
func TestStatuses(t *testing.T) {
	needSampling(t, false)
	dir := t.TempDir()
	for name, text := range map[string]string{"once": "#!/bin/sh\nrm -f \"$0\"\n", "bad": "#! /no/such/shell -x\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-D", "600s", "--", "sh", "-c", "exit 7"}, 7, "nothing was counted: sh ended before the delay of 10m0s"},
		{[]string{"-D", "600s", "-I", "100", "-o", "early", "--format", "csv", "--", "sh", "-c", "exit 7"}, 7, "nothing was counted: sh ended before the delay"},
		{[]string{"-D", "600s", "--", "sh", "-c", "kill -INT $$"}, 130, "nothing was counted: sh ended before the delay"},
		{[]string{"-r", "3", "--", "./once"}, exitNotFound, "cyclestack stat: ./once: no such file or directory"},
		{[]string{"--", "./bad"}, exitNotFound, "./bad: it is to be run by /no/such/shell: no such file or directory"},
	} {
		c, said := process(t, dir, append([]string{"stat", "--source", "os"}, tt.args...)...)
		err := c.Run()
		if got := status(c); got != tt.status || !strings.Contains(said.String(), tt.want) {
			t.Errorf("%q: status %d, want %d (%v): %s", tt.args, got, tt.status, err, said)
		}
	}
}

// TestRecordHeldSignals has a signal come when the recording is complete but for its name.
func TestRecordHeldSignals(t *testing.T) {
	needSampling(t, false)
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	if out, err := exec.Command(strace, "-f", "-e", "inject=fchmod:signal=TERM", "true").CombinedOutput(); err != nil {
		t.Skipf("nothing can be traced here: %v: %s", err, out)
	}
	for _, s := range []string{"TERM", "QUIT", "HUP"} {
		dir := t.TempDir()
		if err := os.Symlink(must(os.Executable()), filepath.Join(dir, "cyclestack")); err != nil {
			t.Fatal(err)
		}
		c, said := process(t, dir)
		c.Path = strace
		c.Args = []string{"strace", "-f", "-o", "trace", "-e", "trace=fchmod", "-e", "inject=fchmod:signal=" + s,
			filepath.Join(dir, "cyclestack"), "record", "-q", "-e", "page-faults", "--", "true"}
		if err := c.Run(); err != nil {
			t.Errorf("%s: %v: %s", s, err, said)
		}
		if _, err := os.Stat(filepath.Join(dir, "perf.data")); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".perf*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", s, left)
		}
	}
}

func must(name string, err error) string {
	if err != nil {
		panic(err)
	}
	return name
}

// TestNameList reads lists of cgroups.
func TestNameList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a": "a", "a/b,/": "a/b,/", "": "", ",": "", "a,": "", "a\nb": "", "a\x00b": ""} {
		var list []string
		err := (*nameList)(&list).Set(text)
		if got := strings.Join(list, ","); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
