package ostime

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"time"
)

// This file decides which of the threads that end on the machine belong to the family:
// the watched processes, and those that they started.

// exitRecords are the kernel's records of threads that end, and what they say of the
// family: the processes that are watched, and those that they started.
type exitRecords struct {
	source   exitSource    // nil if there is none
	err      error         // why there is none
	overflow bool          // records were lost
	leader   int           // the command's process, also when it has ended
	lived    time.Duration // for how long it lived, once the kernel has told

	family    map[int]bool          // processes that are watched, or were
	outsiders map[int]bool          // processes that are not of the family
	since     time.Duration         // when that was begun to be noted
	gone      map[int]time.Duration // threads that have ended lately, and when that was heard
	undecided []doubtfulEnding
}

// A doubtfulEnding is the end of a thread whose process may be of the family.
type doubtfulEnding struct {
	ending
	rounds int // that have not decided
}

// roundsMost is how often it is tried to find out about an undecided thread. The record of a parent
// comes after those of its children, so that it may have to be waited for.
const roundsMost = 2

// hear takes notice of the threads that have ended, and returns how many there were.
func (w *Watch) hear() int {
	if w.exits.source == nil {
		return 0
	}
	list, lost, err := w.exits.source.drain()
	if !w.begun {
		return len(list)
	}
	if err != nil && w.exits.err == nil {
		w.exits.err = err
	}
	w.exits.overflow = w.exits.overflow || lost
	now := w.clock()
	for _, e := range list {
		w.exits.undecided = append(w.exits.undecided, doubtfulEnding{ending: e})
	}
	if len(w.exits.undecided) > 0 {
		w.sort(now)
	}
	return len(list)
}

// sort decides which of the undecided are of the family.
func (w *Watch) sort(now time.Duration) {
	k := ancestry{w: w, parents: map[int]int{}}
	if now-w.exits.since > outsideFor {
		clear(w.exits.outsiders)
		w.exits.since = now
	}
	for i := range w.exits.undecided {
		if e := &w.exits.undecided[i].ending; e.pid == e.tid || e.pid == 0 {
			k.parents[e.tid] = e.parent
		}
	}
	left := w.exits.undecided[:0]
	for _, s := range w.exits.undecided {
		pid, related := k.process(&s.ending)
		switch s.rounds++; {
		case related == yes:
			w.ended(&s.ending, pid, now)
		case related == unclear && s.rounds < roundsMost && len(left) < maxTasks:
			left = append(left, s)
		}
	}
	w.exits.undecided = left
}

// relation is whether a process is of the family.
type relation int

const (
	unclear relation = iota
	no
	yes
)

// A ancestry finds the ancestors of processes that ended, and of those that run.
type ancestry struct {
	w       *Watch
	parents map[int]int // by process: of those that ended, and of those looked at
}

// process returns the process of a thread that has ended, and whether it is of the family.
func (k *ancestry) process(e *ending) (pid int, r relation) {
	w := k.w
	t := w.tasks.live[e.tid]
	switch {
	case e.tid == w.exits.leader: // it is looked at when it has ended
		w.exits.lived = e.lived
		return e.tid, no
	case t != nil:
		return t.pid, yes
	case e.pid > 0 && e.pid != e.tid:
		return e.pid, k.of(e.pid, e.parent)
	case e.pid == 0 && w.exits.leader > 0 && e.parent == os.Getpid():
		return w.exits.leader, yes // a thread of the command
	}
	return e.tid, k.of(e.tid, e.parent)
}

// of says whether a process with a parent is of the family.
func (k *ancestry) of(pid, parent int) relation {
	const deepest = 1 << 10
	line := []int{pid}
	for range deepest {
		last := line[len(line)-1]
		switch {
		case k.w.exits.family[last]:
			for _, pid := range line {
				k.w.exits.family[pid] = true
			}
			return yes
		case len(line) > 1:
			ok := false
			if parent, ok = k.parent(last); !ok {
				return unclear
			}
		}
		if parent <= 1 || k.w.exits.outsiders[parent] {
			k.w.exits.exclude(line[1:])
			return no
		}
		line = append(line, parent)
	}
	return no
}

// outsideFor is how long it is known of processes that they are not of the family: numbers
// are not given again so soon.
const outsideFor = time.Second

// exclude notes that processes are not of the family.
func (x *exitRecords) exclude(pids []int) {
	if x.outsiders == nil {
		x.outsiders = map[int]bool{}
	}
	for _, pid := range pids {
		x.outsiders[pid] = true
	}
}

// parent returns the parent of a process that has ended just now, or runs.
func (k *ancestry) parent(pid int) (int, bool) {
	parent, ok := k.parents[pid]
	if !ok {
		s, err := k.w.proc.stat(fmt.Sprintf("proc/%d", pid))
		if err != nil {
			return 0, false
		}
		parent = s.parent
		k.parents[pid] = parent
	}
	return parent, true
}

// ended ends the watching of a thread with the kernel's record of it.
func (w *Watch) ended(e *ending, pid int, now time.Duration) {
	t := w.tasks.live[e.tid]
	if t == nil { // nobody has looked at it
		t = &task{tid: e.tid, pid: pid, from: now - e.lived, last: now}
		w.tasks.live[e.tid] = t
	} else {
		// It ended between the last look and now. When it began is known to the tick.
		t.last = min(max(t.began+e.lived+tick/2, t.last), now)
		t.unsure = min(tick, now-t.from)
		if !t.rebased {
			t.from, t.unsure = t.last-e.lived, 0
		}
	}
	if !t.ended { // nobody has looked at it after its end
		t.now = e.reading
	}
	t.name, t.ended = e.name, true
	w.bury(t)
	w.exits.remember(e.tid, now)
}

// remember keeps in mind that a thread has ended: it is seen in /proc for a while.
func (x *exitRecords) remember(tid int, now time.Duration) {
	const lately, most = 10 * time.Second, 1 << 12
	if len(x.gone) >= most {
		maps.DeleteFunc(x.gone, func(_ int, heard time.Duration) bool { return now-heard > lately })
	}
	if x.gone == nil {
		x.gone = map[int]time.Duration{}
	}
	x.gone[tid] = now
}

// errUnasked is the reason for no records of threads that end: nobody has asked for them.
var errUnasked = errors.New("it was not asked")

// listens reports whether the kernel sends a record of each thread that ends. Then nobody
// needs to poll for threads that come and go.
func (x *exitRecords) listens() bool { return x.source != nil && x.err == nil }

// belongs notes that a process is of the family.
func (x *exitRecords) belongs(pid int) {
	if x.family == nil {
		x.family = map[int]bool{}
	}
	x.family[pid] = true
}

// unheard says why nothing is known of some threads.
func (x *exitRecords) unheard() string {
	switch {
	case x.overflow:
		return "so many ended at one time that the kernel lost records"
	case x.listens():
		return "they ended after the command; or it is what they ran after their last tick, which is in Blocked"
	}
	return fmt.Sprintf("they began or ended between two polls (every %v), and the kernel's records of threads that end need CAP_NET_ADMIN: %v", Every, x.err)
}
