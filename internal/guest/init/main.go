//go:build linux

// Init is the first process of a guest. It mounts what programs expect, runs the command that
// it finds in a file, and powers the machine off.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/guest/wire"
)

func main() {
	send(wire.Event{End: work()})
	// What the serial line still holds would be lost.
	_ = unix.IoctlSetInt(int(os.Stdout.Fd()), unix.TCSBRK, 1)
	err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	fmt.Println("init: cannot power off:", err)
}

func work() *wire.End {
	if err := mount(); err != nil {
		return failed(err)
	}
	job, err := readJob()
	if err != nil {
		return failed(err)
	}
	settle()
	return run(job)
}

// failed uses a shell's status of a command that cannot be run.
func failed(err error) *wire.End { return &wire.End{Status: 127, Error: err.Error()} }

// mount mounts the file systems that programs expect.
func mount() error {
	for _, m := range []struct{ kind, dir string }{
		{"proc", "/proc"},
		{"sysfs", "/sys"},
		{"devtmpfs", "/dev"},
		{"tmpfs", "/tmp"},
		{"cgroup2", "/sys/fs/cgroup"},
		{"tracefs", "/sys/kernel/tracing"},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		// The kernel mounts some by itself.
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	// The root cgroup gives its children a perf_event controller once it has been told which
	// controllers they shall have.
	if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+pids"), 0o644); err != nil {
		return err
	}
	return os.Chmod("/tmp", 0o1777)
}

func readJob() (*wire.Job, error) {
	data, err := os.ReadFile(wire.JobFile)
	if err != nil {
		return nil, err
	}
	var job wire.Job
	if err := json.Unmarshal(data, &job); err != nil {
		return nil, fmt.Errorf("%s: %w", wire.JobFile, err)
	}
	if len(job.Argv) == 0 {
		return nil, fmt.Errorf("%s has no command", wire.JobFile)
	}
	return &job, nil
}

// settle waits for the end of the kernel's work after booting, so that a program has the
// processor to itself. It does not wait for long, nor complain: on a machine that stays busy
// the command runs all the same.
func settle() {
	const window, most = 100 * time.Millisecond, 50
	last, quiet := idle(), 0
	for range most {
		time.Sleep(window)
		now := idle()
		if now-last >= window*9/10 {
			quiet++
		} else {
			quiet = 0
		}
		if last = now; quiet == 3 {
			return
		}
	}
}

// idle is for how long a processor has been idle, in the mean over all of them;
// 0 if the kernel does not say.
func idle() time.Duration {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	var up, idle float64
	if _, err := fmt.Sscan(string(text), &up, &idle); err != nil {
		return 0
	}
	return time.Duration(idle * float64(time.Second) / float64(runtime.NumCPU()))
}

func run(job *wire.Job) *wire.End {
	cmd := exec.Command(job.Argv[0], job.Argv[1:]...)
	cmd.Env = append([]string{"PATH=/bin", "HOME=/tmp"}, job.Env...)
	cmd.Stdout = output{}
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return failed(err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return &wire.End{Status: 128 + int(status.Signal())}
	}
	return &wire.End{Status: status.ExitStatus()}
}

// output sends what is written to it.
type output struct{}

var _ io.Writer = output{}

func (output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), wire.MaxOutput)
		send(wire.Event{Output: rest[:n]})
		rest = rest[n:]
	}
	return len(p), nil
}

func send(e wire.Event) {
	line, err := wire.Encode(e)
	if err == nil {
		_, err = os.Stdout.Write(line)
	}
	if err != nil {
		fmt.Println("init:", err)
	}
}
