package perfevent

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A bell wakes a thread that waits in the kernel. Waiting there until a time
// costs less than half of what the runtime's timers do, whose expiry is handed
// from thread to thread, provided that the program uses one processor only
// (runtime.GOMAXPROCS).
type bell struct {
	fd int

	mu     sync.Mutex
	closed bool // fd may be another file by now
}

func newBell() (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &bell{fd: fd}, nil
}

// ring ends the wait that is under way, or the next.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	one := [8]byte{0: 1, 7: 1} // a number that is not 0 in either byte order
	_, _ = unix.Write(b.fd, one[:])
}

// wait returns when a time has come, if it is not zero, or earlier: when the bell
// has been rung, when there is something to be read from a further file, if it is
// not -1, which is reported, or for no reason.
func (b *bell) wait(until time.Time, file int) (readable bool) {
	fds := [2]unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}, {Fd: int32(file), Events: unix.POLLIN}}
	var timeout *unix.Timespec
	if !until.IsZero() {
		left := unix.NsecToTimespec(max(0, int64(time.Until(until))))
		timeout = &left
	}
	if n, err := unix.Ppoll(fds[:], timeout, nil); err != nil || n == 0 {
		return false
	}
	if fds[0].Revents != 0 {
		b.hush()
	}
	return fds[1].Revents != 0
}

// hush makes the bell ready to be rung again.
func (b *bell) hush() {
	var count [8]byte
	_, _ = unix.Read(b.fd, count[:])
}

func (b *bell) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		unix.Close(b.fd)
	}
}
