package perfevent

import (
	"encoding/binary"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A lineage knows of the tasks of some processes where each has its events from:
// from having been opened on it, or from the task that began it.
//
// A task gets the events of its maker early in clone(2) (perf_event_init_task, in
// copy_process). The kernel writes its record late in it (perf_event_fork), before the
// new task first runs. The new task lacks what its maker gets in between, and nothing
// says whether the maker had it in time. But a maker begins one task after the other. So
// only the first task after the maker got its events may lack them. Not even that task
// lacks them if the maker was seen outside of clone(2) in between.
type lineage struct {
	tasks  map[int]*taskEvents
	probes map[int]*probe // of those that run, until they are seen outside of clone(2)
}

// taskEvents is what is known of a task's events.
type taskEvents struct {
	root int // where its events were opened: itself, or whom it has them from; 0: it has none
	over bool

	from, to uint64 // of a root: when opening began, and ended
	sure     uint64 // of a root: it was outside of clone(2) then, after to; 0: not seen yet

	// doubt is when the task began which may lack the root's events, or some of
	// them: this one, or whom it descends from; 0: it has all.
	doubt uint64
}

// never is later than any time.
const never = math.MaxUint64

func newLineage() *lineage { return &lineage{tasks: map[int]*taskEvents{}, probes: map[int]*probe{}} }

func (l *lineage) close() {
	for tid := range l.probes {
		l.unprobe(tid)
	}
}

// opened notes that a task got its own events between two times.
func (l *lineage) opened(tid int, from, to uint64) {
	l.tasks[tid] = &taskEvents{root: tid, from: from, to: to}
}

// gone notes that a task had ended before it could get any.
func (l *lineage) gone(tid int) { l.tasks[tid] = &taskEvents{over: true} }

// knows reports whether a task is known.
func (l *lineage) knows(tid int) bool { return l.tasks[tid] != nil }

// note notes tasks that began, in their order. Those of makers that are not known
// are other processes'.
func (l *lineage) note(forks []fork) {
	for _, f := range forks {
		maker := l.tasks[f.maker]
		if maker == nil || l.knows(f.tid) {
			continue
		}
		child := &taskEvents{root: maker.root, doubt: maker.doubt}
		l.tasks[f.tid] = child
		if maker.root != f.maker {
			continue
		}
		switch {
		case f.time < maker.from:
			child.root = 0
		case maker.sure == 0 || f.time <= maker.sure:
			child.doubt = f.time
			if f.time > maker.to {
				maker.sure = f.time // it is about to return
			}
		}
	}
}

// forget notes that the events which were opened on a task are closed.
func (l *lineage) forget(root int) {
	l.unprobe(root)
	for _, k := range l.tasks {
		if k.root == root {
			*k = taskEvents{over: k.over}
		}
	}
}

// lacking returns the tasks that have no events, and have not ended when that was
// last looked.
func (l *lineage) lacking() []int {
	return l.living(func(k *taskEvents) bool { return k.root == 0 })
}

// doubtful returns the living tasks whose events are in doubt since before a time.
func (l *lineage) doubtful(before uint64) []int {
	return l.living(func(k *taskEvents) bool { return k.doubt > 0 && k.doubt < before })
}

// unsettled returns the tasks that may still be in the middle of beginning one
// that lacks events.
func (l *lineage) unsettled() []int {
	return l.living(func(k *taskEvents) bool { return k.from > 0 && k.sure == 0 })
}

// living returns the tasks that are such and have not ended, in order.
func (l *lineage) living(such func(*taskEvents) bool) []int {
	var tids []int
	for tid, k := range l.tasks {
		if !k.over && such(k) {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	return tids
}

// look looks which tasks that matter have ended, and which that are not settled are
// outside of clone(2). Whom they began until then can be noted after that.
func (l *lineage) look() {
	for tid, k := range l.tasks {
		unsettled := k.from > 0 && k.sure == 0
		if k.over || !unsettled && k.root != 0 && k.doubt == 0 {
			continue
		}
		state := taskState(tid)
		k.over = ended(state)
		if unsettled && (k.over || l.outside(tid, state)) {
			l.unprobe(tid)
			k.sure = monotonic()
		}
	}
}

// outside reports whether a task has been outside of clone(2) since this was first
// asked.
func (l *lineage) outside(tid int, state byte) bool {
	if state != stateRunning && state != stateWaiting {
		// It was stopped, or sleeps so that signals wake it, as no task does in the middle
		// of clone(2).
		return true
	}
	if neverRan(tid) {
		return true
	}
	p, ok := l.probes[tid]
	if !ok {
		l.probes[tid] = newProbe(tid)
		return false
	}
	return p.seen()
}

func (l *lineage) unprobe(tid int) {
	if p := l.probes[tid]; p != nil {
		p.close()
	}
	delete(l.probes, tid)
}

// A probe finds out whether a task has run in user mode: then it was outside of all
// system calls. One clock takes a sample in user mode only, and is stopped by the
// first (PERF_EVENT_IOC_REFRESH); the other, started after it, goes on.
type probe struct{ user, clock int } // -1 if they cannot be opened

// probeEvery is after how many nanoseconds of processor time a probe looks at its task's
// mode.
const probeEvery = 50_000

func newProbe(tid int) *probe {
	p := &probe{-1, -1}
	user := Attr{Type: perffile.TypeSoftware, Config: softwareCPUClock, Disabled: true, Sample: probeEvery, ReadFormat: perffile.FormatTotalTimeEnabled, ExcludeKernel: true, ExcludeHV: true}
	clock := Attr{Type: perffile.TypeSoftware, Config: softwareCPUClock, ReadFormat: perffile.FormatTotalTimeEnabled, ExcludeKernel: true, ExcludeHV: true}
	fd, err := openEvent(&user, tid, -1, -1, 0)
	if err != nil {
		return p
	}
	p.user = fd
	if unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_REFRESH, 1) != nil {
		return p
	}
	if fd, err := openEvent(&clock, tid, -1, -1, 0); err == nil {
		p.clock = fd
	}
	return p
}

// seen reports whether the task was in user mode.
func (p *probe) seen() bool {
	if p.clock < 0 {
		return false
	}
	all, ok := enabledFor(p.clock) // first, so that it is the less unless the other has stopped
	user, also := enabledFor(p.user)
	return ok && also && user < all
}

// enabledFor returns for how long an event has been enabled while its task ran.
func enabledFor(fd int) (uint64, bool) {
	var r [16]byte // its count, and that time
	if n, err := readEvent(fd, r[:]); err != nil || n != len(r) {
		return 0, false
	}
	return binary.NativeEndian.Uint64(r[8:]), true
}

func (p *probe) close() {
	for _, fd := range []int{p.user, p.clock} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
