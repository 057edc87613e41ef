package ostime

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// Every is how often /proc is looked at, unless that would take more than
// 1/costMost of a processor's time; in the beginning more often, so that of a short
// program no larger part is missed than of a long one. One that ends before the
// first look costs only that at its end.
const Every = 50 * time.Millisecond

// listenEvery is how often the kernel's records of threads that ended are taken, where
// there are no more than manyEnd of them: each look wakes several threads of Go's
// runtime, which costs more than the look. The socket has room for some thousand.
const (
	listenEvery = 500 * time.Millisecond
	manyEnd     = 500
)

const (
	firstLook = 5 * time.Millisecond
	growth    = 4  // the next look is when a quarter of the time so far has passed again
	costMost  = 50 // looking takes no more than 1/50 of a processor's time
)

// pause is how long to wait before the next look, when it has gone on for some time
// and the last look took so long.
func pause(sofar, took time.Duration) time.Duration {
	return max(firstLook, min(Every, sofar/growth), costMost*took)
}

// A Spec says whose time to watch.
type Spec struct {
	PIDs, TIDs []int         // processes and threads that run already; none for a command, of which Started tells
	Alone      bool          // not the processes and threads that they start
	Delay      time.Duration // before counting begins
	Keep       counts.By     // Thread or Process is kept apart
	Interval   bool          // tables are of intervals
	Every      time.Duration // how long these are; 0 if that is not known
	Summed     bool          // tables of several runs are added up, so that they have no maxima
	Listen     bool          // have the kernel tell of each thread that ends, where it does: the root is this machine's
}

// A Watch looks at the threads of a command, or of processes that run already, and
// of the processes that these start. Its methods may be called from any goroutine.
type Watch struct {
	mu    sync.Mutex
	spec  Spec
	proc  proc
	clock func() time.Duration // since boot

	numbers  [2]int        // what was given last to any thread: lately, and at least Every before that; 0 if not known
	numbered time.Duration // when the first was noted
	loadavg  keptFile      // that tells it
	procstat keptFile
	open     int // threads whose files are kept open

	tasks   map[int]*task // those that have not ended, by number
	past    []*task       // that ended since the last table, if they are kept apart
	sum     *row          // what others did that ended since then; nil for none
	foreign map[int]bool  // processes that were looked at and are none of these
	looked  time.Duration // when it was last looked
	before  time.Duration // when it was looked before that
	active  bool          // since then one of the tasks ran, so that it may have started others
	begun   bool
	command int // its process; 0 for none, and when it has ended
	lost    int // threads that there was no room for

	exits  teller                // of each thread that ends; nil if there is none
	noEnds error                 // why not
	deaf   bool                  // it told of some while there was no room for that
	leader int                   // the command's process, also when it has ended
	lived  time.Duration         // for how long it lived, once the kernel has told
	family map[int]bool          // processes that are watched, or were
	gone   map[int]time.Duration // threads that have ended lately, and when that was heard
	strays []stray               // of which it is not known yet whether they are of the family

	strangers map[int]bool  // processes that are not of the family
	estranged time.Duration // since when that is noted

	noSched error  // the kernel tells no waiting time
	noIO    string // note on why it tells no waiting for devices; "" if it does

	surrounded bool    // surroundings were read
	brief      bool    // the command had ended by then, so that nothing is known of the machine meanwhile
	machine    machine // at the last table
	noMachine  error
	asked      time.Duration // about the machine, for a table
	throttle   throttle
	resident   float64          // bytes; 0 where not known
	spent      [2]time.Duration // processor time of the command in user mode and in the kernel, as its parent was told
	switches   [2]float64       // likewise
	told       bool
	runs       int // of the command that were started

	of, layout *counts.Layout // of the last table that was joined, and what it was joined to
	out        *counts.Table  // the last one of an interval
	none       *counts.Layout // of no columns
	quit       chan struct{}
	once       sync.Once
}

// A reading is what a thread did since it began.
type reading struct {
	run, wait, user, system, io time.Duration
	turns                       int64 // on a processor; 0 if that is not known
	voluntary, involuntary      uint64
	switches                    bool // they are known
}

// sched is the part of a reading that schedstat tells.
func (r *reading) sched() sched { return sched{r.run, r.wait, r.turns} }

// A task is a thread that is watched.
type task struct {
	tid, pid   int
	dir        string // in which its files are
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

// openMost is of how many threads the files are kept open, so that reading them takes no
// search for them.
const openMost = 32

// New watches from now on. The root has proc and sys below it: os.DirFS("/"), or
// a copy for tests. Files that cannot be read become columns that are not there,
// with a note.
func New(root fs.FS, spec Spec) *Watch { return newWatch(root, spec, sinceBoot) }

func newWatch(root fs.FS, spec Spec, clock func() time.Duration) *Watch {
	w := &Watch{spec: spec, proc: proc{root: root}, clock: clock, tasks: map[int]*task{}, quit: make(chan struct{}), noEnds: errUnasked}
	if spec.Listen && !spec.Alone {
		if x, err := listen(root); err == nil {
			w.exits, w.noEnds = x, nil
		} else {
			w.noEnds = err
		}
	}
	return w
}

// Attach begins to watch the processes and threads of the Spec.
func (w *Watch) Attach() {
	w.mu.Lock()
	if w.spec.Delay == 0 {
		w.begin()
		w.surroundings()
	}
	w.mu.Unlock()
	w.lookSoon()
}

// lookSoon begins to look again and again. Nothing is at work until it is time for that:
// many programs have ended by then.
func (w *Watch) lookSoon() {
	first := w.spec.Delay
	if first == 0 {
		first = firstLook
	}
	time.AfterFunc(first, w.look)
}

// Started says that the command has been started, as a process.
func (w *Watch) Started(pid int) {
	w.mu.Lock()
	if w.attached() { // the command says for how long
		w.mu.Unlock()
		return
	}
	first := w.runs == 0
	w.runs++
	w.shutAll()
	w.tasks, w.past, w.sum, w.foreign = map[int]*task{}, nil, nil, nil
	w.numbers, w.numbered = [2]int{pid, pid}, 0
	w.strangers = nil
	w.leader, w.lived, w.family, w.gone, w.strays = pid, 0, map[int]bool{pid: true}, nil, nil
	w.told, w.spent, w.resident = false, [2]time.Duration{}, 0
	w.command, w.begun, w.throttle.sum = pid, false, 0
	if w.spec.Delay == 0 {
		w.looked = w.clock()
		w.adopt(pid, pid, w.looked)
		if t := w.tasks[pid]; t != nil {
			t.from, t.unsure = w.looked, 0
		}
		w.begun = true
	}
	w.mu.Unlock()
	if first {
		w.lookSoon()
	}
}

// Ended says that the command has ended, and is not yet waited for: it can be
// looked at a last time.
func (w *Watch) Ended(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pid != w.command {
		return
	}
	w.hear()
	if w.begun {
		w.readAll(false) // what it has not waited for is its no more, and cannot be found
	}
	w.brief = !w.surrounded && !w.spec.Summed
	w.surroundings()
	w.command = 0
	if t := w.tasks[pid]; t != nil {
		if w.lived > 0 && !t.rebased { // it began before the watching, and ended before this was called
			t.from, t.unsure = t.last-w.lived, 0
		}
		w.bury(t)
	}
}

// Reaped says what the kernel told the parent of the command. It comes after Ended.
func (w *Watch) Reaped(state *os.ProcessState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.simple() {
		return
	}
	w.told = true
	w.spent = [2]time.Duration{state.UserTime(), state.SystemTime()}
	w.usage(state)
}

// simple says whether what the parent of the command is told is what is to be
// known: it is of the whole run, and of all that the command started.
func (w *Watch) simple() bool { return !w.attached() && w.spec.Delay == 0 && !w.spec.Alone }

// attached says whether what is watched ran before.
func (w *Watch) attached() bool { return len(w.spec.PIDs)+len(w.spec.TIDs) > 0 }

// Close ends the watching. May be called twice.
func (w *Watch) Close() {
	w.once.Do(func() {
		close(w.quit)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.exits != nil {
			w.exits.close()
			w.exits = nil
		}
		w.shutAll()
		w.proc.release(&w.loadavg)
		w.proc.release(&w.procstat)
		w.proc.release(&w.throttle.kept)
	})
}

// shutAll closes what is kept open of threads.
func (w *Watch) shutAll() {
	for _, t := range w.tasks {
		w.shut(t)
	}
}

// shut closes what is kept open of a thread.
func (w *Watch) shut(t *task) {
	if !t.keep {
		return
	}
	t.keep = false
	w.open--
	w.releaseAll(t)
}

func (w *Watch) releaseAll(t *task) {
	w.proc.release(&t.stat)
	w.proc.release(&t.schedstat)
	w.proc.release(&t.status)
}

// look looks again and again.
func (w *Watch) look() {
	runtime.LockOSThread() // whose time it takes
	select {
	case <-w.quit:
		return
	default:
	}
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-timer.C:
		}
		began, least := ownTime(), time.Duration(0)
		w.mu.Lock()
		switch {
		case !w.begun:
			w.begin()
		case w.listens():
			if w.hear() < manyEnd {
				least = listenEvery
			}
		default:
			w.scan(false)
		}
		w.surroundings()
		enough := w.listens() && w.spec.Every > 0 && w.spec.Every <= listenEvery
		w.mu.Unlock()
		if enough { // Join comes often enough
			return
		}
		timer.Reset(max(least, pause(time.Since(start), ownTime()-began)))
	}
}

// begin begins to count what runs already.
func (w *Watch) begin() {
	w.hear() // what ended before is of no account
	w.begun, w.looked = true, w.clock()
	w.before = w.looked
	pids := w.spec.PIDs
	if w.command > 0 {
		pids = []int{w.command}
	}
	w.shutAll()
	w.tasks = map[int]*task{}
	for _, pid := range pids {
		w.threads(pid)
	}
	for _, tid := range w.spec.TIDs {
		w.adopt(tid, tid, w.looked)
	}
	if w.command > 0 {
		w.descend()
	} else if all, err := w.proc.numbers("proc"); err == nil {
		w.foreign = map[int]bool{}
		for _, pid := range all { // what these had started before is not counted
			w.foreign[pid] = true
		}
	}
	for _, t := range w.tasks {
		w.read(t, true)
		t.base, t.from, t.unsure, t.rebased = t.now, w.looked, 0, true
	}
}

// surroundings reads what is not the program's, for the first time: beside the
// program, which need not wait for that, or when it has ended so soon.
func (w *Watch) surroundings() {
	if w.surrounded {
		return
	}
	w.surrounded = true
	if why := w.proc.delays(); why != "" {
		w.noIO = unknown("waiting for disks", why)
	}
	if !w.brief {
		w.machine, w.noMachine = w.proc.machine(&w.procstat)
	}
	if !w.throttle.seen && w.throttle.err == nil {
		w.throttle.look(&w.proc, w.first(), false, w.looked)
	}
}

// first is the process whose cgroup counts: the command, or the first of those
// that ran already.
func (w *Watch) first() int {
	switch {
	case w.command > 0:
		return w.command
	case len(w.spec.PIDs) > 0:
		return w.spec.PIDs[0]
	case len(w.spec.TIDs) > 0:
		return w.spec.TIDs[0]
	}
	return 0
}

// scan looks at all threads that are watched, and for new ones. final is whether
// a table is made of it.
func (w *Watch) scan(final bool) {
	w.readAll(final)
	if w.spec.Alone || !w.active || !w.seek() {
		return
	}
	for _, pid := range w.pids() {
		w.threads(pid)
	}
	for _, t := range w.tasks {
		if !t.looked && !w.read(t, final) {
			w.bury(t)
		}
	}
}

// probeMost is how many numbers are looked at one by one: to list all processes takes
// longer than that, unless there are few.
const probeMost = 64

// seek looks for processes that those which are watched have started, and reports whether
// any threads can have begun. Numbers are given in their order, so that nothing has begun
// if none was given; and if there were few, these are all that has to be looked at. A thread
// has its number before it is seen, on a busy machine for as long as who starts it waits for
// a processor, so those of the last Every are looked at again.
func (w *Watch) seek() bool {
	last, from := w.proc.lastNumber(&w.loadavg), w.numbers[1]
	switch {
	case w.foreign == nil:
		w.descend()
	case last > 0 && w.numbers == [2]int{last, last}:
		return false
	case from > 0 && last >= from && last-from <= probeMost && len(w.foreign) < maxTasks:
		w.probe(from+1, last)
	default:
		if 0 < last && last < from { // numbers have begun again: some of these are others now
			maps.DeleteFunc(w.foreign, func(pid int, _ bool) bool { return pid <= last || pid > from })
		}
		w.descend()
	}
	if w.looked-w.numbered >= Every {
		w.numbers, w.numbered = [2]int{last, w.numbers[0]}, w.looked
	}
	return true
}

// probe finds those of the family among processes with some numbers.
func (w *Watch) probe(from, to int) {
	known := w.watched()
	parents := map[int]int{}
	for pid := from; pid <= to; pid++ {
		seen := pid <= w.numbers[0] && w.foreign[pid] // and not one before it of the same number
		if known[pid] || seen || w.tasks[pid] != nil {
			continue
		}
		s, err := w.proc.stat(fmt.Sprintf("proc/%d", pid))
		// Any thread has a directory in /proc, though only processes are listed there.
		if err == nil && (!known[s.parent] && s.parent < from || w.proc.leads(pid)) {
			parents[pid] = s.parent
		}
	}
	w.follow(parents, known)
}

// readAll looks at the threads that are known.
func (w *Watch) readAll(final bool) {
	w.before, w.looked = w.looked, w.clock()
	w.active = false
	for _, t := range w.tasks {
		if !w.read(t, final) {
			w.bury(t)
			w.active = true
		}
	}
	w.lookAtLimit()
}

// lookAtLimit looks at the cgroup.
func (w *Watch) lookAtLimit() {
	if pid := w.first(); pid > 0 {
		t := w.tasks[pid]
		w.throttle.look(&w.proc, pid, t == nil || t.ended, w.looked)
	}
}

// pids are the processes that are watched with all their threads.
func (w *Watch) pids() []int {
	seen := map[int]bool{}
	for _, t := range w.tasks {
		if !slices.Contains(w.spec.TIDs, t.tid) {
			seen[t.pid] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// descend finds the processes that those which are watched have started. Each
// process is looked at once, unless it is one of them.
func (w *Watch) descend() {
	all, err := w.proc.numbers("proc")
	if err != nil {
		return
	}
	known := w.watched()
	if w.foreign == nil { // what a command starts has larger numbers, or begins with small ones after now
		w.foreign = map[int]bool{}
		for _, pid := range all {
			w.foreign[pid] = pid < w.command
		}
	}
	there, parents := map[int]bool{}, map[int]int{}
	for _, pid := range all {
		switch {
		case known[pid]:
		case w.foreign[pid]:
			there[pid] = true
		default:
			if s, err := w.proc.stat(fmt.Sprintf("proc/%d", pid)); err == nil {
				parents[pid] = s.parent
			}
		}
	}
	w.foreign = there
	w.follow(parents, known)
}

// follow finds which of some processes, whose parents are given, were started by those that
// are known, and begins to watch these. The others are foreign.
func (w *Watch) follow(parents map[int]int, known map[int]bool) {
	fresh := slices.Sorted(maps.Keys(parents))
	// A child can have a smaller number than its parent, when numbers have
	// begun again.
	for found := true; found; {
		found = false
		for _, pid := range fresh {
			if !known[pid] && known[parents[pid]] {
				known[pid], found = true, true
				w.threads(pid)
			}
		}
	}
	for _, pid := range fresh {
		if !known[pid] {
			w.foreign[pid] = true
		}
	}
}

// watched is the set of pids.
func (w *Watch) watched() map[int]bool {
	known := map[int]bool{}
	for _, pid := range w.pids() {
		known[pid] = true
	}
	return known
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
	if w.tasks[tid] != nil {
		return
	}
	if len(w.tasks) >= maxTasks {
		w.lost++
		return
	}
	s, err := w.proc.stat(dirOf(tid, pid))
	if err != nil {
		return // it has ended meanwhile
	}
	if heard, ok := w.gone[tid]; ok && s.began <= heard || s.ended && w.listens() && tid != w.command {
		return // what it did was told, or is going to be
	}
	if !slices.Contains(w.spec.TIDs, tid) {
		w.belongs(pid)
	}
	t := &task{tid: tid, pid: pid, name: s.name, began: s.began}
	t.from, t.unsure = beginning(s.began, after, w.clock())
	t.last = t.from
	w.tasks[tid] = t
}

// beginning says when a thread began that the kernel says began in a tick, and
// that was seen first between two looks; and how far apart the earliest and the
// latest moment are that this can be.
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
	if !t.keep && w.open < openMost {
		t.keep = true
		w.open++
	}
	if !t.keep {
		defer w.releaseAll(t)
	}
	switches := final || w.spec.Interval || w.spec.Keep != 0 || !w.simple() // otherwise getrusage tells
	var ran sched
	known := false
	if t.looked && !t.ended && t.schedstat != nil { // so it is open, and no later thread's of this number
		var err error
		ran, err = w.proc.schedstat(&t.schedstat, t.dir)
		if known = err == nil; known && ran.turns > 0 && ran == t.now.sched() && (t.now.switches || !switches) {
			t.last = w.clock() // it has not run, so that nothing else is new
			return true
		}
	}
	s, err := w.proc.statAgain(&t.stat, t.dir)
	if err != nil || s.began != t.began {
		return false // its number is another's
	}
	if t.ended {
		return true // it waits for its parent: nothing of it changes any more
	}
	if !known {
		if ran, err = w.proc.schedstat(&t.schedstat, t.dir); err != nil {
			if _, gone := w.proc.stat(t.dir); gone != nil {
				return false // it ended between the two
			}
			w.noSched = err
			ran.run = s.user + s.system
		}
	}
	r := reading{run: ran.run, wait: ran.wait, turns: ran.turns, user: s.user, system: s.system, io: s.io}
	if switches {
		if st, err := w.proc.status(&t.status, t.dir); err == nil {
			r.voluntary, r.involuntary, r.switches = st.voluntary, st.involuntary, st.switches
			w.resident = max(w.resident, float64(st.peak))
		}
	}
	w.active = w.active || s.running || w.noSched != nil || r.run != t.now.run
	t.looked = true
	now := w.clock()
	if s.ended && t.tid != w.command { // some time ago: it lived on for what it did since the last look at least
		now = min(now, t.last+r.run-t.now.run+r.wait-t.now.wait)
	}
	t.name, t.now, t.last, t.ended = s.name, r, now, s.ended
	return true
}

// bury ends the watching of a thread.
func (w *Watch) bury(t *task) {
	delete(w.tasks, t.tid)
	w.shut(t)
	switch {
	case w.spec.Keep.Has(counts.Thread) || w.spec.Keep.Has(counts.Process):
		if len(w.past) >= maxTasks {
			w.lost++
			return
		}
		w.past = append(w.past, t)
	case w.sum == nil:
		w.sum = &row{}
		fallthrough
	default:
		w.sum.add(t)
	}
}

// A throttle adds up for how long the cgroup of a process stood still. A process
// can be moved to another one.
type throttle struct {
	of         int // the process
	at         time.Duration
	kept       keptFile // what says in which cgroup it is
	membership string
	cgroup     cgroup
	last       time.Duration
	sum        time.Duration // since the last table
	limited    bool
	err        error
	seen       bool
}

// unlimitedFor is how long a cgroup is taken to have no limit, once it was found to have
// none.
const unlimitedFor = time.Second

// look reads the cgroup's files. One that was found to have no limit is not looked at
// again. Of a process that has ended it is no longer known (version 1 has what ends in the root):
// it is the one in which it was seen, or the one of the run before.
func (t *throttle) look(p *proc, pid int, ended bool, now time.Duration) {
	known := t.seen && (t.of == pid || ended)
	if known && !t.limited && (ended || now-t.at < unlimitedFor) {
		return
	}
	t.at = now
	if t.of != pid {
		p.release(&t.kept)
		t.of = pid
	}
	var err error
	membership, c := t.membership, t.cgroup
	if !known || !ended {
		var text []byte
		text, err = p.membership(&t.kept, pid)
		switch {
		case err != nil && known: // it has just ended
			err = nil
		case err == nil && t.seen && string(text) == t.membership && !t.limited:
			return
		case err == nil && string(text) != t.membership:
			membership = string(text)
			c, err = p.cgroup(membership)
		}
	}
	if err == nil && c.dir == "" {
		err = fs.ErrNotExist
	}
	var sum time.Duration
	limited := false
	if err == nil {
		sum, limited, err = p.throttled(c)
	}
	if err != nil {
		if !t.seen {
			t.err = err
		}
		return
	}
	if t.seen && c == t.cgroup && sum >= t.last {
		t.sum += sum - t.last
	}
	t.membership, t.cgroup, t.last, t.seen, t.err = membership, c, sum, true, nil
	t.limited = t.limited || limited
}

// nanos is a duration as a count.
func nanos(d time.Duration) float64 { return float64(d.Nanoseconds()) }

// uniform is the variance, in ns², of a time that lies somewhere in a span.
func uniform(span time.Duration) float64 { return math.Pow(nanos(span), 2) / 12 }
