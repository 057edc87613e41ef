package perfevent

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A liveness watches processes and threads and says when the last has ended.
type liveness struct {
	gone chan struct{} // closed when all have ended
	quit chan struct{}
	once sync.Once

	ends  []end         // the kernel notifies of these
	looks []func() bool // whether the others are there still
}

// An end is what the kernel says when it has come.
type end struct {
	file   *os.File
	exists func() bool // asks for it
}

// lookEvery is how often a poll looks for what is counted, if the kernel does not say
// when it ends.
const lookEvery = 50 * time.Millisecond

// pidfdThread opens a thread and not its process: PIDFD_THREAD of linux/pidfd.h,
// since Linux 6.9.
const pidfdThread = unix.O_EXCL

func newLiveness(t *Target) *liveness {
	l := &liveness{gone: make(chan struct{}), quit: make(chan struct{})}
	for _, pid := range t.PIDs {
		l.add(pid, 0, processExists)
	}
	for _, tid := range t.TIDs {
		l.add(tid, pidfdThread, taskExists)
	}
	go func() {
		// First those whose numbers may become another's.
		if l.look() && l.wait() && l.look() {
			close(l.gone)
		}
	}()
	return l
}

// add adds a process or a thread. Before Linux 5.10, of threads before Linux 6.9, the
// kernel has no file to wait for. A sandbox may refuse it.
func (l *liveness) add(id, flags int, there func(int) bool) {
	exists := func() bool { return there(id) }
	fd, err := unix.PidfdOpen(id, unix.PIDFD_NONBLOCK|flags)
	switch err {
	case nil:
		l.ends = append(l.ends, end{os.NewFile(uintptr(fd), "task"), exists})
	case unix.ESRCH:
	default:
		l.looks = append(l.looks, exists)
	}
}

// look returns when none is left that has to be looked for; false if that is no longer asked.
func (l *liveness) look() bool {
	if len(l.looks) == 0 {
		return true
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		l.looks = slices.DeleteFunc(l.looks, func(exists func() bool) bool { return !exists() })
		if len(l.looks) == 0 {
			return true
		}
		select {
		case <-ticker.C:
		case <-l.quit:
			return false
		}
	}
}

// wait returns when the others have ended, but for those that have to be looked for after all;
// false if that is no longer asked.
func (l *liveness) wait() bool {
	for _, e := range l.ends {
		conn, err := e.file.SyscallConn()
		if err == nil {
			err = conn.Read(readable)
		}
		switch {
		case errors.Is(err, os.ErrClosed):
			return false
		case err != nil:
			l.looks = append(l.looks, e.exists)
		}
	}
	return true
}

func (l *liveness) close() {
	l.once.Do(func() {
		close(l.quit)
		for _, e := range l.ends {
			e.file.Close()
		}
	})
}
