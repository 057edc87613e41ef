package perfevent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
)

// Attaching to processes whose threads come and go.
//
// Each thread has to be opened once: directly, or by inheriting from the one that made
// it. Of a thread that begins while others are being opened it is not clear which. Mostly
// none begins: then each thread was opened, was seen outside of clone(2) after that, and
// a second list has no other thread. If one begins, all is closed and done again while
// the kernel records each fork and its time. A [lineage] then tells which threads
// inherited. Where that stays unclear, the events of the ancestor are closed. That takes
// them from all heirs, and these are opened again.
//
// Inherited events are opened enabled. A child's copy is enabled if its maker's was when
// clone(2) began. Enabling all later would miss the children that were just being made.
// Counting and sampling begin in another way: see [session.enable].

// openTasks opens all groups on processes and threads.
func (s *session) openTasks() error {
	t := &s.spec.Target
	if t.Present {
		t.PIDs = slices.DeleteFunc(slices.Clone(t.PIDs), func(pid int) bool { return !processExists(pid) })
	}
	for _, pid := range t.PIDs {
		if tids, err := tasks(pid); err != nil || len(tids) == 0 {
			return gone("process", pid, err)
		}
		if !processExists(pid) {
			return hasEnded("process", pid)
		}
	}
	if s.mode.live = s.opener.common.Inherit; s.mode.live {
		s.opener.common.Disabled = false
		// A group cannot be read as one (ECHILD) while a thread that inherited it ends.
		// Of many threads one always does.
		s.opener.singly, s.reader.singly = true, true
	}
	for _, tid := range t.TIDs {
		if err := s.openThread(tid); err != nil {
			return gone("thread", tid, err)
		}
	}
	if !s.opener.common.Inherit {
		return s.openApart(t.PIDs)
	}
	if len(t.PIDs) == 0 {
		return nil
	}
	if still, err := s.openStill(); still || err != nil {
		return err
	}
	return s.openWatched()
}

// openStill opens the counters on the processes' threads, and reports whether no
// thread began meanwhile.
func (s *session) openStill() (bool, error) {
	l := newLineage()
	defer l.close()
	tids, err := s.list()
	if err != nil {
		return false, err
	}
	if err := s.openAll(tids, l); err != nil {
		return false, err
	}
	for end := time.Now().Add(patienceForThreads); ; time.Sleep(lookAgain) {
		l.look()
		late := time.Now().After(end)
		unsettled := l.unsettled()
		if len(unsettled) > 0 && !late {
			continue
		}
		if tids, err = s.list(); err != nil || slices.ContainsFunc(tids, s.unknown) {
			return false, err
		}
		s.unsure(len(unsettled))
		return true, nil
	}
}

// patienceForThreads is how long it is tried to know of each thread whether it has
// its events; lookAgain how often it is looked.
const (
	patienceForThreads = time.Second
	lookAgain          = 200 * time.Microsecond
)

// unsure notes how many threads may have been missed, or may not have all of their
// events.
func (s *session) unsure(n int) {
	if n > 0 {
		s.notes.add("%d threads may have begun while their parents got counters: they and their children may be missing", n)
	}
}

// gone makes an error of a task that could not be opened.
func gone(what string, id int, err error) error {
	if err == nil || errors.Is(err, errGone) {
		if taskState(id) == stateZombie {
			return hasEnded(what, id)
		}
		return &TargetError{Msg: fmt.Sprintf("there is no %s %d", what, id), Err: unix.ESRCH}
	}
	return err
}

// hasEnded is the error of a task that is a zombie.
func hasEnded(what string, id int) error {
	return &TargetError{Msg: fmt.Sprintf("%s %d has ended: it is a zombie, which nobody has waited for yet", what, id), Err: unix.ESRCH}
}

// list returns the threads of the processes that are counted.
func (s *session) list() ([]int, error) { return threadsOf(s.spec.Target.PIDs) }

func threadsOf(pids []int) ([]int, error) {
	var all []int
	for _, pid := range pids {
		tids, err := allTasks(pid)
		if err != nil {
			return nil, err
		}
		all = append(all, tids...)
	}
	return all, nil
}

func (s *session) unknown(tid int) bool { return !s.threads[tid] }

// openThread opens the counters on a thread. The thread has its own scope if counts
// are split by thread.
func (s *session) openThread(tid int) error {
	return s.openTask(tid, s.scopes.add(s.scopes.thread(tid, taskName(tid)), 0))
}

// openAll opens the counters on the threads that are not known and have not ended.
// l may be nil.
func (s *session) openAll(tids []int, l *lineage) error {
	for _, tid := range tids {
		if !s.unknown(tid) {
			continue
		}
		from := monotonic()
		err := s.openThread(tid)
		switch {
		case errors.Is(err, errGone):
			s.opener.drop(tid) // its children may have what was opened until then
		case err != nil:
			return err
		}
		switch {
		case l == nil:
		case err != nil:
			l.gone(tid)
		default:
			l.opened(tid, from, monotonic())
		}
	}
	return nil
}

// openWatched opens the counters on the processes' threads, on each once, while
// threads come and go.
func (s *session) openWatched() error {
	for begun := time.Now(); time.Since(begun) < patienceForThreads; {
		s.opener.close() // for files to be had
		w, err := newForkMonitor(s.sys.onlineNow(), s.list)
		if err != nil {
			break
		}
		lost, err := s.openWith(w)
		w.close()
		if !lost || err != nil {
			return err
		}
	}
	return s.openUnwatched()
}

// openWith does it with a fork monitor. It reports whether the monitor lost records
// of threads that began.
func (s *session) openWith(w *forkMonitor) (lost bool, err error) {
	l := newLineage()
	defer l.close()
	s.restart(l)
	tids, err := s.list()
	if err != nil {
		return false, err
	}
	for begun := time.Now(); ; {
		if err := s.openAll(tids, l); err != nil {
			return false, err
		}
		l.look()
		forks, lost := w.drain()
		if lost {
			return true, nil
		}
		l.note(forks)
		w.holdBack(l.knows)
		late := time.Since(begun)
		if late < patienceForThreads {
			s.again(l, max(shortLife, late/4))
		}
		tids = l.lacking()
		known := len(tids)+len(l.doubtful(never))+len(l.unsettled()) == 0
		switch {
		case len(tids) > 0 && late < 2*patienceForThreads:
		case known || late >= patienceForThreads:
			l.look() // who has ended by now does not matter
			s.unsure(len(l.lacking()) + len(l.doubtful(never)) + len(l.unsettled()))
			return false, nil
		default:
			time.Sleep(lookAgain)
		}
	}
}

// again closes what threads may have inherited that have been in doubt for some time. It
// is opened again.
func (s *session) again(l *lineage, since time.Duration) {
	for _, tid := range l.doubtful(monotonic() - uint64(since)) {
		if root := l.tasks[tid].root; root != 0 {
			s.drop(root)
			l.forget(root)
		}
	}
}

// shortLife is how long a thread in doubt is given to end by itself, as most
// short-lived threads do.
const shortLife = 2 * time.Millisecond

// drop closes what was opened on a thread, and with it what others have inherited.
func (s *session) drop(tid int) {
	delete(s.threads, tid)
	s.opener.drop(tid)
}

// openUnwatched opens the counters on the present threads, where new threads cannot
// be seen.
func (s *session) openUnwatched() error {
	s.restart(nil)
	tids, err := s.list()
	if err != nil {
		return err
	}
	s.notes.add("threads began while the counters were opened: some may not be counted")
	return s.openAll(tids, nil)
}

// restart closes all counters, and opens those on single threads anew.
func (s *session) restart(l *lineage) {
	s.opener.close()
	singly := s.opener.singly
	s.opener = newOpener(s.sys, s.scheme, s.notes, s.opener.common)
	s.opener.singly = singly
	s.scopes = newScopes(s.spec.Keep, s.spec.Interval > 0)
	clear(s.threads)
	_ = s.openAll(s.spec.Target.TIDs, l) // they were there before; who has ended since counts nothing
}

func monotonic() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return uint64(ts.Nano())
}

// openApart opens counters that are not inherited on the present threads of
// processes. If counts are split by thread, it later opens them on new threads too.
func (s *session) openApart(pids []int) error {
	list := func() ([]int, error) { return threadsOf(pids) }
	if s.spec.Keep.Has(counts.Thread) && !s.spec.NoInherit && len(pids) > 0 {
		s.watchThreads(list)
	}
	for {
		tids, err := list()
		if err != nil || !slices.ContainsFunc(tids, s.unknown) {
			return err
		}
		if err := s.openAll(tids, nil); err != nil {
			return err
		}
	}
}

// watchThreads begins to watch for threads that come later.
func (s *session) watchThreads(list func() ([]int, error)) {
	w, err := newForkMonitor(s.sys.onlineNow(), list)
	if err == nil {
		if s.wake.notifier != nil {
			w.notify = s.wake.notifier.notify
		}
		err = w.listen()
	}
	if err != nil {
		s.notes.add("threads that begin later are not counted: the kernel does not let them be watched (%v)", err)
		return
	}
	s.later.forks = w
}

// reapEvery is how many threads may come before it is looked which have ended,
// so that their files are closed.
const reapEvery = 64

// adopt opens the counters on threads that have begun. What they did until then is
// not counted, and a note says so.
func (s *session) adopt() error {
	var over map[int]bool
	if s.later.opened >= reapEvery*len(s.slots) {
		s.later.opened = 0
		over = s.over() // before it is asked whom they began
	}
	forks, lost := s.later.forks.drain()
	if lost {
		s.notes.add("more threads began than could be followed: some are not counted")
	}
	first := len(s.opener.sets)
	for _, f := range forks {
		if s.unknown(f.maker) || !s.unknown(f.tid) {
			continue
		}
		switch err := s.openThread(f.tid); {
		case errors.Is(err, errGone):
			s.later.missed++
		case err != nil:
			return err
		default:
			late := float64(monotonic() - f.time)
			s.later.delay.add(late)
			s.later.longest = max(s.later.longest, late)
		}
	}
	if s.enabled {
		if err := controlAll(s.opener.sets[first:], unix.PERF_EVENT_IOC_ENABLE); err != nil {
			return err
		}
	}
	s.later.forks.holdBack(func(tid int) bool { return !s.unknown(tid) })
	s.later.opened += len(s.opener.sets) - first
	s.reap(over)
	s.relayout()
	return nil
}

// over returns which of the threads that were opened have ended.
func (s *session) over() map[int]bool {
	over := map[int]bool{}
	for tid := range s.threads {
		if !taskExists(tid) {
			over[tid] = true
		}
	}
	return over
}

// reap reads the counters of threads that have ended, and closes them. The counts are
// added to the next table.
func (s *session) reap(over map[int]bool) {
	if len(over) == 0 || len(s.opener.clocks) > 0 {
		return // sets name their clocks by their places in the list
	}
	s.relayout()
	if s.later.past == nil {
		s.later.past = counts.NewTable(s.layout)
	}
	s.later.past = widen(s.later.past, s.layout)
	var keep, ended []set
	for _, set := range s.opener.sets {
		if over[set.pid] {
			ended = append(ended, set)
		} else {
			keep = append(keep, set)
		}
	}
	s.reader.fill(s.later.past, ended, float64(time.Since(s.times.last)))
	closeSets(ended)
	s.opener.sets = keep
	for tid := range over {
		delete(s.threads, tid)
	}
}

// relayout gives tables a row for each scope that has come.
func (s *session) relayout() {
	if s.layout != nil && len(s.layout.Scopes) < len(s.scopes.list) {
		s.layout = &counts.Layout{Columns: s.layout.Columns, Scopes: slices.Clone(s.scopes.list)}
	}
}

// widen returns a table with the rows of a larger layout.
func widen(t *counts.Table, l *counts.Layout) *counts.Table {
	if t.Layout == l {
		return t
	}
	wide := counts.NewTable(l)
	for i := range t.Scopes {
		copy(wide.Row(i), t.Row(i))
	}
	return wide
}

// tardy notes what was not counted of threads that came later.
func (s *session) tardy() {
	if s.later.delay.n > 0 {
		s.notes.add("%d threads began later: each is counted from %.0f µs after its beginning, at most %.0f", s.later.delay.n, s.later.delay.mean/1e3, s.later.longest/1e3)
	}
	if s.later.missed > 0 {
		s.notes.add("%d threads had ended before they could be counted", s.later.missed)
	}
}
