package ostime

import (
	"fmt"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// tasks are the threads that are watched.
type tasks struct {
	live map[int]*task // those that have not ended, by number
	past []*task       // those that ended since the last table, if they are kept apart
	sum  *row          // what the others did that ended since then; nil for none
	lost int           // threads that there was no room for
	open int           // threads whose files are kept open
}

// A reading is what a thread did since it began.
type reading struct {
	run, wait, user, system, io time.Duration
	timeslices                  int64 // on a processor; 0 if that is not known
	voluntary, involuntary      uint64
	switches                    bool // they are known
}

// sched is the part of a reading that schedstat tells.
func (r *reading) sched() sched { return sched{r.run, r.wait, r.timeslices} }

// A task is a thread that is watched.
type task struct {
	tid, pid   int
	dir        string // of its files
	name       string
	began      time.Duration // as the kernel says, to the tick: tells it from a later one of the same number
	from, last time.Duration // when its time begins: that of the last table, or its own; the last look
	unsure     time.Duration // by how much from may be wrong, in all
	now, base  reading       // of the last look, and of the last table
	looked     bool          // now is a reading
	rebased    bool          // base is a reading, not the beginning
	ended      bool

	keep                    bool // these files are kept open
	stat, schedstat, status keptFile
}

// openMost is the number of threads whose files are kept open. Reading them takes no
// search for the path then.
const openMost = 32

// shutAll closes what is kept open of threads.
func (w *Watch) shutAll() {
	for _, t := range w.tasks.live {
		w.shut(t)
	}
}

// shut closes what is kept open of a thread.
func (w *Watch) shut(t *task) {
	if !t.keep {
		return
	}
	t.keep = false
	w.tasks.open--
	w.releaseAll(t)
}

func (w *Watch) releaseAll(t *task) {
	w.proc.release(&t.stat)
	w.proc.release(&t.schedstat)
	w.proc.release(&t.status)
}

// threads finds the threads of a process.
func (w *Watch) threads(pid int) {
	tids, err := w.proc.numbers(fmt.Sprintf("proc/%d/task", pid))
	if err != nil {
		return
	}
	for _, tid := range tids {
		w.adopt(tid, pid, w.before)
	}
}

// adopt begins to watch a thread, which began after a time.
func (w *Watch) adopt(tid, pid int, after time.Duration) {
	if w.tasks.live[tid] != nil {
		return
	}
	if len(w.tasks.live) >= maxTasks {
		w.tasks.lost++
		return
	}
	s, err := w.proc.stat(dirOf(tid, pid))
	if err != nil {
		return // it has ended meanwhile
	}
	if heard, ok := w.exits.gone[tid]; ok && s.began <= heard || s.ended && w.exits.listens() && tid != w.command {
		return // what it did was told, or is going to be
	}
	if !slices.Contains(w.spec.TIDs, tid) {
		w.exits.belongs(pid)
	}
	t := &task{tid: tid, pid: pid, name: s.name, began: s.began}
	t.from, t.unsure = beginning(s.began, after, w.clock())
	t.last = t.from
	w.tasks.live[tid] = t
}

// beginning says when a thread began that was seen first between two looks. The kernel
// knows the tick. unsure is how far the earliest and the latest possible moment are apart.
func beginning(began, after, now time.Duration) (from, unsure time.Duration) {
	low, high := max(began, after), min(began+tick, now)
	if high <= low { // it began before, or the clocks differ
		return min(low, now), 0
	}
	return low + (high-low)/2, high - low
}

func dirOf(tid, pid int) string { return fmt.Sprintf("proc/%d/task/%d", pid, tid) }

// read looks at a thread, and reports whether it is still there.
func (w *Watch) read(t *task, final bool) bool {
	if t.dir == "" {
		t.dir = dirOf(t.tid, t.pid)
	}
	if !t.keep && w.tasks.open < openMost {
		t.keep = true
		w.tasks.open++
	}
	if !t.keep {
		defer w.releaseAll(t)
	}
	switches := final || w.spec.Interval || w.spec.Keep != 0 || !w.simple() // otherwise getrusage(2) says them
	ran, known := w.readOpen(t)
	if known && ran.timeslices > 0 && ran == t.now.sched() && (t.now.switches || !switches) {
		t.last = w.clock() // it has not run, and nothing else is new
		return true
	}
	s, err := w.proc.statAgain(&t.stat, t.dir)
	if err != nil || s.began != t.began {
		return false // its number is another's
	}
	if t.ended {
		return true // it waits for its parent: nothing of it changes any more
	}
	if !known {
		var there bool
		if ran, there = w.readSched(t, &s); !there {
			return false
		}
	}
	r := reading{run: ran.run, wait: ran.wait, timeslices: ran.timeslices, user: s.user, system: s.system, io: s.io}
	if switches {
		w.readSwitches(t, &r)
	}
	w.active = w.active || s.running || w.host.noSched != nil || r.run != t.now.run
	t.looked = true
	t.last = w.lastMoment(t, &s, &r)
	t.name, t.now, t.ended = s.name, r, s.ended
	return true
}

// readOpen reads schedstat of a thread whose file is open. The file cannot be that of
// a later thread with the same number.
func (w *Watch) readOpen(t *task) (s sched, known bool) {
	if !t.looked || t.ended || t.schedstat == nil {
		return s, false
	}
	s, err := w.proc.schedstat(&t.schedstat, t.dir)
	return s, err == nil
}

// readSched reads schedstat. Where the kernel has none, running time is in ticks and
// waiting time is unknown. there is false if the thread has ended meanwhile.
func (w *Watch) readSched(t *task, s *stat) (ran sched, there bool) {
	ran, err := w.proc.schedstat(&t.schedstat, t.dir)
	if err == nil {
		return ran, true
	}
	if _, gone := w.proc.stat(t.dir); gone != nil {
		return ran, false
	}
	w.host.noSched = err
	ran.run = s.user + s.system
	return ran, true
}

// readSwitches adds the switches to other threads, and notes the memory of the process.
func (w *Watch) readSwitches(t *task, r *reading) {
	st, err := w.proc.status(&t.status, t.dir)
	if err != nil {
		return
	}
	r.voluntary, r.involuntary, r.switches = st.voluntary, st.involuntary, st.switches
	w.use.resident = max(w.use.resident, float64(st.peak))
}

// lastMoment returns until when a reading of a thread is. A zombie ended some time ago:
// it lived at least for what it did since the last look.
func (w *Watch) lastMoment(t *task, s *stat, r *reading) time.Duration {
	now := w.clock()
	if s.ended && t.tid != w.command {
		now = min(now, t.last+r.run-t.now.run+r.wait-t.now.wait)
	}
	return now
}

// bury ends the watching of a thread.
func (w *Watch) bury(t *task) {
	delete(w.tasks.live, t.tid)
	w.shut(t)
	switch {
	case w.spec.Keep.Has(counts.Thread) || w.spec.Keep.Has(counts.Process):
		if len(w.tasks.past) >= maxTasks {
			w.tasks.lost++
			return
		}
		w.tasks.past = append(w.tasks.past, t)
	case w.tasks.sum == nil:
		w.tasks.sum = &row{}
		fallthrough
	default:
		w.tasks.sum.add(t)
	}
}
