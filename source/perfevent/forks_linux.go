package perfevent

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A forkMonitor sees tasks begin: the kernel writes a record of each into the ring of
// its processor.
type forkMonitor struct {
	rings   []*ring
	more    []int  // further events, which write into the rings
	fresh   []fork // what was read last
	held    []fork // of what was read before, what is told again
	changed chan struct{}
	notify  func() // called after that; may be nil
	quit    [2]int // a pipe, whose closing ends the goroutine that listens
}

// A fork is a task that began.
type fork struct {
	pid, tid         int // of the new one
	parentPID, maker int
	time             uint64 // CLOCK_MONOTONIC, in nanoseconds
}

// watchPages are the pages of data of a watch's ring, a power of two. fewPages are those
// where that is not allowed.
const (
	watchPages = 64
	fewPages   = 8
)

// maxWatched bounds the events that watch tasks one by one.
const maxWatched = 1 << 14

// errUnwatched says that tasks cannot be seen to begin.
var errUnwatched = errors.New("the beginning of tasks cannot be watched")

// newForkMonitor watches the whole system if that is allowed. Otherwise it watches
// the tasks that list returns and those that they begin. When it returns, all of
// them are watched.
func newForkMonitor(cpus []int, list func() ([]int, error)) (*forkMonitor, error) {
	w := &forkMonitor{quit: [2]int{-1, -1}}
	a := Attr{Type: perffile.TypeSoftware, Config: softwareDummy, Task: true, ExcludeKernel: true, ExcludeHV: true,
		Watermark: true, Wakeup: 1, // wake at each record: what wakeup_events counts is samples
		UseClockID: true, ClockID: unix.CLOCK_MONOTONIC}
	err := w.open(&a, -1, cpus)
	if err == nil {
		return w, nil
	}
	w.close()
	a.Inherit = true
	if err := w.openEach(&a, cpus, list); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// openEach watches tasks one by one. Who is watched twice does no harm: the same is
// told twice.
func (w *forkMonitor) openEach(a *Attr, cpus []int, list func() ([]int, error)) error {
	l := newLineage()
	defer l.close()
	events := 0
	for end := time.Now().Add(patienceForThreads); time.Now().Before(end); {
		l.look()
		forks, lost := w.drain()
		if lost {
			return errUnwatched
		}
		l.note(forks)
		w.holdBack(l.knows)
		tids, err := list()
		if err != nil {
			return err
		}
		tids = slices.DeleteFunc(tids, l.knows)
		tids = slices.Concat(tids, l.lacking(), l.doubtful(never))
		if len(tids) == 0 && len(l.unsettled()) == 0 {
			return nil
		}
		if events += len(tids) * len(cpus); events > maxWatched {
			return errUnwatched
		}
		if len(tids) == 0 {
			time.Sleep(lookAgain)
		}
		for _, tid := range tids {
			from := monotonic()
			switch err := w.open(a, tid, cpus); {
			case errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENODEV): // before, or just now
				l.gone(tid)
			case err != nil:
				return err
			default:
				l.opened(tid, from, monotonic())
			}
		}
	}
	return errUnwatched
}

// open opens an event on each processor. The first on each gets a ring.
func (w *forkMonitor) open(a *Attr, pid int, cpus []int) error {
	for i, cpu := range cpus {
		fd, err := openEvent(a, pid, cpu, -1, 0)
		if err != nil {
			return err
		}
		if i < len(w.rings) {
			w.more = append(w.more, fd)
			if err := w.rings[i].take(fd); err != nil {
				return err
			}
			continue
		}
		r, err := mapRing(fd, watchPages)
		if err == unix.EPERM || err == unix.ENOMEM {
			r, err = mapRing(fd, fewPages)
		}
		if err != nil {
			unix.Close(fd)
			return err
		}
		w.rings = append(w.rings, r)
	}
	return nil
}

// drain returns the tasks that began since it was last called, and those that were
// held back, in their order. lost is whether there were more than the rings could
// hold.
func (w *forkMonitor) drain() (forks []fork, lost bool) {
	w.fresh = w.fresh[:0]
	for _, r := range w.rings {
		var missed bool
		w.fresh, missed = r.read(w.fresh)
		lost = lost || missed
	}
	forks = slices.Concat(w.held, w.fresh)
	sorting.Stable(forks, byTime)
	return forks, lost
}

// holdBack keeps the threads that drain just returned first and whose parents are
// not known for the next time. A parent may have begun on a processor whose ring was
// read before. Then only the next records have it.
func (w *forkMonitor) holdBack(known func(tid int) bool) {
	w.held = w.held[:0]
	for _, f := range w.fresh {
		if !known(f.maker) {
			w.held = append(w.held, f)
		}
	}
}

func byTime(a, b fork) int { return cmp.Compare(a.time, b.time) }

// read appends the tasks that began according to a ring's records, and frees
// their room.
func (r *ring) read(forks []fork) (all []fork, lost bool) {
	from, head := r.bounds()
	word := func(at uint64) int { return int(binary.NativeEndian.Uint32(r.at(at))) }
	for from < head {
		// Records are of whole words of 64 bits, so that the end of the ring breaks none
		// of what follows.
		length := uint64(binary.NativeEndian.Uint16(r.at(from + 6)))
		if length < 8 {
			lost = true
			break
		}
		switch word(from) {
		case perffile.RecordLost:
			lost = true
		case perffile.RecordFork:
			forks = append(forks, fork{pid: word(from + 8), parentPID: word(from + 12), tid: word(from + 16), maker: word(from + 20),
				time: binary.NativeEndian.Uint64(r.at(from + 24))})
		}
		from += length
	}
	r.consume(head)
	return forks, lost
}

// listen begins to send on changed when there are records.
func (w *forkMonitor) listen() error {
	if err := unix.Pipe2(w.quit[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	w.changed = make(chan struct{}, 1)
	fds := []unix.PollFd{{Fd: int32(w.quit[0]), Events: unix.POLLIN}}
	for _, r := range w.rings {
		fds = append(fds, unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN})
	}
	go func() {
		defer unix.Close(int(fds[0].Fd))
		for {
			if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
				return
			}
			if fds[0].Revents != 0 {
				return
			}
			select {
			case w.changed <- struct{}{}:
			default:
			}
			if w.notify != nil {
				w.notify()
			}
		}
	}()
	return nil
}

func (w *forkMonitor) close() {
	if w.quit[1] >= 0 {
		unix.Close(w.quit[1])
		w.quit[1] = -1
	}
	for _, fd := range w.more {
		unix.Close(fd)
	}
	for _, r := range w.rings {
		r.close()
	}
	w.more, w.rings = nil, nil
}
