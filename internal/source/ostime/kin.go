package ostime

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"time"
)

// Which of the threads that end on the machine are of what is watched: those of its
// processes, and of the processes that these have started.

// A stray is a thread that ended, of a process of which it is not known yet whether it is
// of the family.
type stray struct {
	ending
	rounds int // that have not decided
}

// roundsMost is how often it is tried to find out about a stray. The record of a parent
// comes after those of its children, so that it may have to be waited for.
const roundsMost = 2

// hear takes notice of the threads that have ended, and returns how many there were.
func (w *Watch) hear() int {
	if w.exits == nil {
		return 0
	}
	list, lost, err := w.exits.drain()
	if !w.begun {
		return len(list)
	}
	if err != nil && w.noEnds == nil {
		w.noEnds = err
	}
	w.deaf = w.deaf || lost
	now := w.clock()
	for _, e := range list {
		w.strays = append(w.strays, stray{ending: e})
	}
	if len(w.strays) > 0 {
		w.sort(now)
	}
	return len(list)
}

// sort finds out which strays are of the family.
func (w *Watch) sort(now time.Duration) {
	k := kinship{w: w, parents: map[int]int{}}
	if now-w.estranged > strangeFor {
		clear(w.strangers)
		w.estranged = now
	}
	for i := range w.strays {
		if e := &w.strays[i].ending; e.pid == e.tid || e.pid == 0 {
			k.parents[e.tid] = e.parent
		}
	}
	left := w.strays[:0]
	for _, s := range w.strays {
		pid, related := k.process(&s.ending)
		switch s.rounds++; {
		case related == yes:
			w.ended(&s.ending, pid, now)
		case related == unclear && s.rounds < roundsMost && len(left) < maxTasks:
			left = append(left, s)
		}
	}
	w.strays = left
}

// relation is whether a process is of the family.
type relation int

const (
	unclear relation = iota
	no
	yes
)

// A kinship finds the ancestors of processes that ended, and of those that run.
type kinship struct {
	w       *Watch
	parents map[int]int // by process: of those that ended, and of those looked at
}

// process returns the process of a thread that has ended, and whether it is of the family.
func (k *kinship) process(e *ending) (pid int, r relation) {
	w := k.w
	t := w.tasks[e.tid]
	switch {
	case e.tid == w.leader: // it is looked at when it has ended
		w.lived = e.lived
		return e.tid, no
	case t != nil:
		return t.pid, yes
	case e.pid > 0 && e.pid != e.tid:
		return e.pid, k.of(e.pid, e.parent)
	case e.pid == 0 && w.leader > 0 && e.parent == os.Getpid():
		return w.leader, yes // a thread of the command
	}
	return e.tid, k.of(e.tid, e.parent)
}

// of says whether a process with a parent is of the family.
func (k *kinship) of(pid, parent int) relation {
	const deepest = 1 << 10
	line := []int{pid}
	for range deepest {
		last := line[len(line)-1]
		switch {
		case k.w.family[last]:
			for _, pid := range line {
				k.w.family[pid] = true
			}
			return yes
		case len(line) > 1:
			ok := false
			if parent, ok = k.parent(last); !ok {
				return unclear
			}
		}
		if parent <= 1 || k.w.strangers[parent] {
			k.w.estrange(line[1:])
			return no
		}
		line = append(line, parent)
	}
	return no
}

// strangeFor is how long it is known of processes that they are not of the family: numbers
// are not given again so soon.
const strangeFor = time.Second

// estrange notes that processes are not of the family.
func (w *Watch) estrange(pids []int) {
	if w.strangers == nil {
		w.strangers = map[int]bool{}
	}
	for _, pid := range pids {
		w.strangers[pid] = true
	}
}

// parent returns the parent of a process that has ended just now, or runs.
func (k *kinship) parent(pid int) (int, bool) {
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

// ended ends the watching of a thread with what the kernel told of it.
func (w *Watch) ended(e *ending, pid int, now time.Duration) {
	t := w.tasks[e.tid]
	if t == nil { // nobody has looked at it
		t = &task{tid: e.tid, pid: pid, from: now - e.lived, last: now}
		w.tasks[e.tid] = t
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
	w.remember(e.tid, now)
}

// remember keeps in mind that a thread has ended: it is seen in /proc for a while.
func (w *Watch) remember(tid int, now time.Duration) {
	const lately, most = 10 * time.Second, 1 << 12
	if len(w.gone) >= most {
		maps.DeleteFunc(w.gone, func(_ int, heard time.Duration) bool { return now-heard > lately })
	}
	if w.gone == nil {
		w.gone = map[int]time.Duration{}
	}
	w.gone[tid] = now
}

// errUnasked is why the kernel does not tell of threads that end if nobody has asked.
var errUnasked = errors.New("it was not asked")

// listens reports whether the kernel tells of each thread that ends, so that nobody needs
// to look for those that come and go.
func (w *Watch) listens() bool { return w.exits != nil && w.noEnds == nil }

// belongs notes that a process is of the family.
func (w *Watch) belongs(pid int) {
	if w.family == nil {
		w.family = map[int]bool{}
	}
	w.family[pid] = true
}

// unheard says why there are threads of which nothing is known.
func (w *Watch) unheard() string {
	switch {
	case w.deaf:
		return "so many ended at one time that the kernel could not tell of all"
	case w.listens():
		return "they ended after the command; or it is what they ran after their last tick, which is in Blocked"
	}
	return fmt.Sprintf("they began or ended when nobody looked (every %v), and the kernel tells of each that ends only who has CAP_NET_ADMIN: %v", Every, w.noEnds)
}
