package perfevent

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A notifier wakes a goroutine at a time, or when it is notified. It is a timer of the
// kernel's, and the runtime's poller waits for it. The runtime's own timers, or a
// blocking system call, would also wake the runtime's monitor, which doubles the cost.
type notifier struct {
	file *os.File
	conn syscall.RawConn

	mu      sync.Mutex
	fd      int // the file's; it may be another's when that is closed
	closed  bool
	pending bool
}

func newNotifier() (*notifier, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	if err := spare(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	b := &notifier{fd: fd, file: os.NewFile(uintptr(fd), "timer")}
	if b.conn, err = b.file.SyscallConn(); err != nil {
		b.file.Close()
		return nil, err
	}
	return b, nil
}

// spare returns an error if the process cannot open two more files. The runtime's poller
// opens as many when it is first used, and ends the program if it cannot.
func spare() error {
	var pipe [2]int
	switch err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err {
	case nil:
	case unix.EMFILE:
		return fmt.Errorf("%w: ulimit -n allows more (it is %d)", err, filesLimit())
	default:
		return os.NewSyscallError("pipe2", err)
	}
	unix.Close(pipe[0])
	unix.Close(pipe[1])
	return nil
}

// notify ends the current wait, or the next.
func (b *notifier) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.pending = true
		b.set(1)
	}
}

// wait returns at a time, if it is not zero, or earlier: after a notification, or for
// no reason. The timer is set after the poller has cleared its state. Nothing is read
// from it: setting it again clears its expiry.
func (b *notifier) wait(until time.Time) {
	set := false
	_ = b.conn.Read(func(uintptr) bool {
		if set {
			return true
		}
		set = true
		return !b.arm(until)
	})
}

// arm sets the timer for a time, or for ever if that is zero. It returns false if a
// notification has come meanwhile.
func (b *notifier) arm(until time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	pending := b.pending || b.closed
	if b.pending = false; !pending {
		left := time.Duration(0) // for ever
		if !until.IsZero() {
			left = max(1, time.Until(until))
		}
		b.set(left)
	}
	return !pending
}

// set lets the timer expire after a time; never if that is 0.
func (b *notifier) set(after time.Duration) {
	to := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))}
	_ = unix.TimerfdSettime(b.fd, 0, &to, nil)
}

// clear takes a notification back, for callers that poll the file themselves.
func (b *notifier) clear() {
	var times [8]byte
	_, _ = unix.Read(b.fd, times[:])
}

func (b *notifier) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		b.file.Close()
	}
}
