package ostime

import (
	"io/fs"
	"math"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// Every is how often /proc is polled, unless that would take more than 1/costMost of a
// processor's time. In the beginning polls are more frequent, so that no larger part of a
// short program is missed.
const Every = 50 * time.Millisecond

// listenEvery is how often the kernel's records of ended threads are read, where they are
// no more than manyEnd: each read wakes several threads of Go's runtime. The socket has
// room for some thousand records.
const (
	listenEvery = 500 * time.Millisecond
	manyEnd     = 500
)

const (
	firstLook = 5 * time.Millisecond
	growth    = 4  // the next look is when a quarter of the time so far has passed again
	costMost  = 50 // looking takes no more than 1/50 of a processor's time
)

// pause is how long to wait before the next look: sofar is the time since the first
// look, and took what the last one took.
func pause(sofar, took time.Duration) time.Duration {
	return max(firstLook, min(Every, sofar/growth), costMost*took)
}

// A Spec says whose time to watch.
type Spec struct {
	PIDs, TIDs []int         // processes and threads that run already; none for a command, which Started names
	Alone      bool          // not the processes and threads that they start
	Delay      time.Duration // before counting begins
	Keep       counts.By     // Thread or Process is kept apart
	Interval   bool          // tables are of intervals
	Every      time.Duration // how long these are; 0 if that is not known
	Summed     bool          // tables of several runs are added up, so that they have no maxima
	Listen     bool          // have the kernel send a record of each thread that ends, if it can; the root is this machine's
}

// A Watch looks at the threads of a command or of running processes, and of the processes
// that these start. Its methods may be called from any goroutine.
type Watch struct {
	mu    sync.Mutex
	spec  Spec
	proc  proc
	clock func() time.Duration // since boot

	tasks  tasks
	search search
	exits  exitRecords
	host   host
	use    usage
	table  joinResult

	command int           // the command's process; 0 for none, and when it has ended
	runs    int           // of the command that were started
	begun   bool          // counting has begun
	looked  time.Duration // the time of the last look
	before  time.Duration // the time of the look before that
	active  bool          // one of the tasks ran between these, so that it may have started others

	quit chan struct{}
	once sync.Once
}

// usage is what wait4(2) said of the command.
type usage struct {
	known    bool
	spent    [2]time.Duration // processor time in user mode and in the kernel
	switches [2]float64       // voluntary and involuntary
	resident float64          // bytes at most; 0 where not known
}

// A joinResult is the last table that Join returned, and what it was made from.
type joinResult struct {
	of, layout *counts.Layout
	out        *counts.Table  // of an interval
	none       *counts.Layout // of no columns
}

// New watches from now on. The root has proc and sys below it: os.DirFS("/"), or
// a copy for tests. Files that cannot be read become columns that are not there,
// with a note.
func New(root fs.FS, spec Spec) *Watch { return newWatch(root, spec, sinceBoot) }

func newWatch(root fs.FS, spec Spec, clock func() time.Duration) *Watch {
	w := &Watch{spec: spec, proc: proc{root: root}, clock: clock, quit: make(chan struct{})}
	w.tasks.live, w.exits.err = map[int]*task{}, errUnasked
	if spec.Listen && !spec.Alone {
		if x, err := listen(root); err == nil {
			w.exits.source, w.exits.err = x, nil
		} else {
			w.exits.err = err
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
	w.tasks.live, w.tasks.past, w.tasks.sum, w.search.foreign = map[int]*task{}, nil, nil, nil
	w.search.numbers, w.search.numbered = [2]int{pid, pid}, 0
	w.exits.outsiders = nil
	w.exits.leader, w.exits.lived, w.exits.family, w.exits.gone, w.exits.undecided = pid, 0, map[int]bool{pid: true}, nil, nil
	w.use.known, w.use.spent, w.use.resident = false, [2]time.Duration{}, 0
	w.command, w.begun, w.host.throttle.sum = pid, false, 0
	if w.spec.Delay == 0 {
		w.looked = w.clock()
		w.adopt(pid, pid, w.looked)
		if t := w.tasks.live[pid]; t != nil {
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
	w.host.brief = !w.host.known && !w.spec.Summed
	w.surroundings()
	w.command = 0
	if t := w.tasks.live[pid]; t != nil {
		if w.exits.lived > 0 && !t.rebased { // it began before the watching, and ended before this was called
			t.from, t.unsure = t.last-w.exits.lived, 0
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
	w.use.known = true
	w.use.spent = [2]time.Duration{state.UserTime(), state.SystemTime()}
	w.use.take(state)
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
		if w.exits.source != nil {
			w.exits.source.close()
			w.exits.source = nil
		}
		w.shutAll()
		w.proc.release(&w.search.loadavg)
		w.proc.release(&w.host.procstat)
		w.proc.release(&w.host.throttle.kept)
	})
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
		case w.exits.listens():
			if w.hear() < manyEnd {
				least = listenEvery
			}
		default:
			w.scan(false)
		}
		w.surroundings()
		enough := w.exits.listens() && w.spec.Every > 0 && w.spec.Every <= listenEvery
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
	w.tasks.live = map[int]*task{}
	for _, pid := range pids {
		w.threads(pid)
	}
	for _, tid := range w.spec.TIDs {
		w.adopt(tid, tid, w.looked)
	}
	if w.command > 0 {
		w.descend()
	} else if all, err := w.proc.numbers("proc"); err == nil {
		w.search.foreign = map[int]bool{}
		for _, pid := range all { // what these had started before is not counted
			w.search.foreign[pid] = true
		}
	}
	for _, t := range w.tasks.live {
		w.read(t, true)
		t.base, t.from, t.unsure, t.rebased = t.now, w.looked, 0, true
	}
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
	for _, t := range w.tasks.live {
		if !t.looked && !w.read(t, final) {
			w.bury(t)
		}
	}
}

// readAll looks at the threads that are known.
func (w *Watch) readAll(final bool) {
	w.before, w.looked = w.looked, w.clock()
	w.active = false
	for _, t := range w.tasks.live {
		if !w.read(t, final) {
			w.bury(t)
			w.active = true
		}
	}
	w.lookAtLimit()
}

// nanos is a duration as a count.
func nanos(d time.Duration) float64 { return float64(d.Nanoseconds()) }

// uniform is the variance, in ns², of a time that lies somewhere in a span.
func uniform(span time.Duration) float64 { return math.Pow(nanos(span), 2) / 12 }
