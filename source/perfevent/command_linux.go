package perfevent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A command is a program that was started to be counted.
type command struct {
	process     *os.Process
	changesUser bool          // by the bits of its file
	done        chan struct{} // closed when it has ended, after what follows is set
	state       *os.ProcessState
	end         time.Time
	err         error
	observer    Observer // may be nil
	attended    bool     // somebody waits for its end, or has
}

// path finds a command's program as a shell would.
func (t *Target) path() (string, error) {
	path, err := exec.LookPath(t.Command[0])
	if err == nil || errors.Is(err, exec.ErrDot) { // the user said so with his PATH
		return path, nil
	}
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		return "", e
	}
	return "", &exec.Error{Name: t.Command[0], Err: err}
}

// A launch is how a command is started.
type launch struct {
	stopped   bool                // until the counters are opened on its process
	observer  Observer            // may be nil
	open      func(pid int) error // opens the counters: of the process if it is stopped, else of this thread (0)
	launching func()              // Spec.Launching of one that is stopped, or nil
}

// start starts a command. The counters are opened on the thread that starts it, before
// that. If it is to be stopped, they are opened after that. The new process has then
// executed the program but none of its instructions.
func (t *Target) start(l launch) (c *command, err error) {
	path, err := t.path()
	if err != nil {
		return nil, err
	}
	if t.ownCommand() {
		c, err = t.startElsewhere(path, l)
	} else {
		c, err = t.startHere(path, l)
	}
	if err != nil {
		return nil, err
	}
	if c.observer = l.observer; c.observer != nil {
		c.observer.Started(c.process.Pid)
	}
	return c, nil
}

// startElsewhere starts a command from a thread that then ends. Other code on that thread
// could be counted. Other programs started from it would inherit the counters, which
// execve enables.
func (t *Target) startElsewhere(path string, l launch) (*command, error) {
	type result struct {
		c   *command
		err error
	}
	results := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // and not unlocked
		c, err := t.startHere(path, l)
		results <- result{c, err}
	}()
	r := <-results
	return r.c, r.err
}

// startHere starts a command from one thread: what is opened on it is inherited by the
// command, and ptrace, too, is a matter of one thread.
func (t *Target) startHere(path string, l launch) (*command, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if !l.stopped {
		if err := l.open(0); err != nil {
			return nil, err
		}
	}
	if l.launching != nil {
		l.launching()
	}
	p, err := t.execute(path, l.stopped)
	if err != nil {
		return nil, err
	}
	c := &command{process: p, changesUser: changesUser(path), done: make(chan struct{})}
	if !l.stopped {
		return c, nil
	}
	if err := c.release(l.open); err != nil {
		_ = p.Kill()
		_, _ = p.Wait()
		return nil, err
	}
	return c, nil
}

// changesUser says whether a program runs as another user or group than this
// one.
func changesUser(path string) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return false
	}
	return st.Mode&unix.S_ISUID != 0 && int(st.Uid) != unix.Geteuid() || st.Mode&unix.S_ISGID != 0 && int(st.Gid) != unix.Getegid()
}

// execute starts the program. A script that does not say by what it is run, is
// run by the shell, as by execvp(3).
func (t *Target) execute(path string, stopped bool) (*os.Process, error) {
	attr := &syscall.ProcAttr{Env: t.Env, Files: []uintptr{or(t.Stdin, os.Stdin).Fd(), or(t.Stdout, os.Stdout).Fd(), or(t.Stderr, os.Stderr).Fd()},
		Sys: &syscall.SysProcAttr{Ptrace: stopped}}
	if t.Env == nil {
		attr.Env = syscall.Environ()
	}
	// Package os would start a process of its own before, to see whether the kernel
	// has what nobody needs here.
	pid, err := syscall.ForkExec(path, t.Command, attr)
	if err == unix.ENOEXEC {
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"sh", path}, t.Command[1:]...), attr)
	}
	if err != nil {
		return nil, t.notStarted(path, stopped, err)
	}
	runtime.KeepAlive(t)
	return &os.Process{Pid: pid}, nil
}

// notStarted says why the program was not started: an *exec.Error if that is because of the
// program.
func (t *Target) notStarted(path string, stopped bool, err error) error {
	name := t.Command[0]
	switch err {
	case unix.EAGAIN:
		return fmt.Errorf("%s cannot be started: %w: the limit of processes and threads is reached: ulimit -u, or pids.max of the cgroup, allows more", name, err)
	case unix.ENOMEM:
		return fmt.Errorf("%s cannot be started: %w: end other programs, or allow more (ulimit -v, memory.max of the cgroup)", name, err)
	case unix.EPERM, unix.ENOSYS:
		if stopped {
			return fmt.Errorf("%s cannot be stopped at its beginning: ptrace: %w: something traces this already (strace, a debugger), or a seccomp filter forbids it; counts that are inherited and not split by thread need no ptrace", name, err)
		}
	case unix.ENOENT:
		if by := interpreter(path); by != "" {
			err = fmt.Errorf("it is to be run by %s: %w", by, err)
		}
	}
	return &exec.Error{Name: name, Err: err}
}

// interpreter returns what a script says that it is to be run by, "" if it does not say.
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line := make([]byte, 256) // the kernel reads no more
	n, _ := io.ReadFull(f, line)
	text, _, _ := strings.Cut(string(line[:n]), "\n")
	if rest, ok := strings.CutPrefix(text, "#!"); ok {
		by, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		return by
	}
	return ""
}

func or(f, own *os.File) *os.File {
	if f != nil {
		return f
	}
	return own
}

// release opens the counters of a process that is stopped by ptrace, and lets
// it go.
func (c *command) release(open func(pid int) error) error {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(c.process.Pid, &ws, 0, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return fmt.Errorf("waiting for the command to stop: %w", err)
		}
	}
	if !ws.Stopped() {
		return errors.New("the command ended before it could be counted")
	}
	if err := open(c.process.Pid); err != nil {
		return err
	}
	if err := unix.PtraceDetach(c.process.Pid); err != nil {
		return fmt.Errorf("letting the command go: %w", err)
	}
	return nil
}

// attend has a goroutine wait for the end of the command.
func (c *command) attend() {
	c.attended = true
	go func() {
		c.poll()
		c.reap()
	}()
}

// watch waits in this thread until the command has ended or the notifier is notified.
// No other thread has to be woken for that. Where the kernel has no file to wait for
// (before Linux 5.3), a goroutine waits from now on.
func (c *command) watch(b *notifier) {
	fd, err := unix.PidfdOpen(c.process.Pid, 0)
	if err != nil {
		c.attend()
		return
	}
	defer unix.Close(fd)
	fds := [...]unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}, {Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Ppoll(fds[:], nil, nil); err == nil && n > 0 && fds[1].Revents != 0 {
		c.attended = true
		c.reap()
	}
}

// reap waits for the end of the command, and is told how that was.
func (c *command) reap() {
	if c.observer != nil && c.awaitEnd() == nil {
		c.end = time.Now()
		c.observer.Ended(c.process.Pid)
	}
	c.state, c.err = c.process.Wait()
	if c.end.IsZero() {
		c.end = time.Now()
	}
	if c.observer != nil && c.state != nil {
		c.observer.Reaped(c.state)
	}
	close(c.done)
}

// poll waits until the command has ended, in the runtime's poller, which takes no thread.
// Where the kernel has no file to wait for (before Linux 5.10) it returns at once.
func (c *command) poll() {
	fd, err := unix.PidfdOpen(c.process.Pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "process")
	defer f.Close()
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Read(readable)
	}
}

// readable reports whether there is something to be read from a file.
func readable(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// awaitEnd waits until the command has ended, and leaves it a zombie.
func (c *command) awaitEnd() error {
	for {
		err := unix.Waitid(unix.P_PID, c.process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// kill ends the command, gently at first.
func (c *command) kill() {
	select {
	case <-c.done:
		return
	default:
	}
	if !c.attended {
		c.attend()
	}
	_ = c.process.Signal(unix.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(grace):
		_ = c.process.Kill()
		<-c.done
	}
}

// grace is how long a command has to end by itself.
const grace = 2 * time.Second
