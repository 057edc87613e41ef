package perfevent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
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
	witness     Witness // may be nil
	exit        int     // a file that can be read when it has ended, and nobody waits; -1: somebody waits for it
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

// start starts a command. open is called on the thread that starts it, before
// or, if stopped, after that, when the new process has executed the program
// but none of its instructions. The process is given then, 0 otherwise.
func (t *Target) start(stopped bool, witness Witness, open func(pid int) error) (*command, error) {
	path, err := t.path()
	if err != nil {
		return nil, err
	}
	type result struct {
		c   *command
		err error
	}
	results := make(chan result, 1)
	go func() {
		// What was opened on this thread is inherited by the command, and enabled
		// in it alone. The thread is not unlocked, so that it ends with this
		// function and nothing else ever runs where counters are; ptrace, too, is
		// a matter of one thread.
		runtime.LockOSThread()
		c, err := t.startHere(path, stopped, open)
		results <- result{c, err}
	}()
	r := <-results
	if r.err != nil {
		return nil, r.err
	}
	if r.c.witness = witness; witness != nil {
		witness.Started(r.c.process.Pid)
	}
	return r.c, nil
}

// attend sees to it that the end of the command is noticed: by who waits for the
// file exit, and then calls wait, or where the kernel has no such file (before Linux
// 5.3) by a goroutine, which costs a thread and its switches.
func (c *command) attend() {
	_ = c.process.WithHandle(func(pidfd uintptr) {
		if fd, err := unix.FcntlInt(pidfd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			c.exit = fd
		}
	})
	if c.exit < 0 {
		go c.wait()
	}
}

func (t *Target) startHere(path string, stopped bool, open func(pid int) error) (*command, error) {
	if !stopped {
		if err := open(0); err != nil {
			return nil, err
		}
	}
	p, err := t.execute(path, stopped)
	if err != nil {
		return nil, err
	}
	c := &command{process: p, changesUser: changesUser(path), done: make(chan struct{}), exit: -1}
	if !stopped {
		return c, nil
	}
	if err := c.release(open); err != nil {
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
	attr := &os.ProcAttr{Env: t.Env, Files: []*os.File{or(t.Stdin, os.Stdin), or(t.Stdout, os.Stdout), or(t.Stderr, os.Stderr)}}
	if stopped {
		attr.Sys = &syscall.SysProcAttr{Ptrace: true}
	}
	p, err := os.StartProcess(path, t.Command, attr)
	if errors.Is(err, unix.ENOEXEC) {
		p, err = os.StartProcess("/bin/sh", append([]string{"sh", path}, t.Command[1:]...), attr)
	}
	if err != nil {
		if e := (*os.PathError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, &exec.Error{Name: t.Command[0], Err: err}
	}
	return p, nil
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

// wait waits for the end of the command.
func (c *command) wait() {
	if c.exit >= 0 { // it has ended, or is made to
		unix.Close(c.exit)
		c.exit = -1
	}
	if c.witness != nil && c.awaitEnd() == nil {
		c.end = time.Now()
		c.witness.Ended(c.process.Pid)
	}
	c.state, c.err = c.process.Wait()
	if c.end.IsZero() {
		c.end = time.Now()
	}
	if c.witness != nil && c.state != nil {
		c.witness.Reaped(c.state)
	}
	close(c.done)
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
	if c.exit >= 0 {
		go c.wait()
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
