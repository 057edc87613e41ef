package perfevent

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
)

// Attaching to processes whose threads come and go.
//
// Each thread has to be opened once: directly, or by inheriting from the one
// that made it. A thread that comes while others are being opened could be
// either; which one depends on whether its maker had been opened yet, and the
// kernel does not tell afterwards. Counters are enabled when all are open, so
// what matters is which threads there are then. Mostly no thread comes
// meanwhile, which a second look at the list finds; if one does, all is closed
// and done again while the kernel records who begins whom, and when.

// openTasks opens all teams on processes and threads.
func (s *session) openTasks() error {
	t := &s.spec.Target
	for _, pid := range t.PIDs {
		if tids, err := tasks(pid); err != nil || len(tids) == 0 {
			return gone("process", pid, err)
		}
	}
	for _, tid := range t.TIDs {
		if err := s.openThread(tid); err != nil {
			return gone("thread", tid, err)
		}
	}
	if !s.opener.common.Inherit {
		return s.openApart(t.PIDs)
	}
	tids, err := s.list()
	if err != nil {
		return err
	}
	if err := s.openAll(tids); err != nil {
		return err
	}
	if tids, err = s.list(); err != nil || !slices.ContainsFunc(tids, s.unknown) {
		return err
	}
	return s.openWatched()
}

// gone makes an error of a task that could not be opened.
func gone(what string, id int, err error) error {
	if err == nil || errors.Is(err, errGone) {
		return &TargetError{fmt.Sprintf("there is no %s %d", what, id), unix.ESRCH}
	}
	return err
}

// list returns the threads of the processes that are counted.
func (s *session) list() ([]int, error) { return threadsOf(s.spec.Target.PIDs) }

func threadsOf(pids []int) ([]int, error) {
	var all []int
	for _, pid := range pids {
		tids, err := tasks(pid)
		if err != nil {
			return nil, err
		}
		all = append(all, tids...)
	}
	return all, nil
}

func (s *session) unknown(tid int) bool { return !s.threads[tid] }

// openThread opens all teams on a thread, in its own scope if threads are kept
// apart.
func (s *session) openThread(tid int) error {
	return s.openTask(tid, s.scopes.add(s.scopes.thread(tid, taskName(tid)), 0))
}

// openAll opens all teams on those of some threads that are not known and not
// gone.
func (s *session) openAll(tids []int) error {
	for _, tid := range tids {
		if !s.unknown(tid) {
			continue
		}
		if err := s.openThread(tid); err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	return nil
}

// A birth is when a thread got its counters.
type birth struct{ from, to uint64 }

// inherited is the birth of a thread that has had its counters from the
// beginning, and never that of one that has none.
var (
	inherited = birth{}
	never     = birth{math.MaxUint64, math.MaxUint64}
)

// openWatched opens all teams on the processes' threads, each once, while
// threads come and go.
func (s *session) openWatched() error {
	s.restart()
	w, err := newWatch(s.sys.onlineNow(), s.list)
	if err != nil {
		return s.openUnwatched()
	}
	defer w.close()
	tids, err := s.list()
	if err != nil {
		return err
	}
	births := map[int]birth{}
	for doubt := 0; len(tids) > 0; {
		for _, tid := range tids {
			b := birth{from: monotonic()}
			switch err := s.openThread(tid); {
			case errors.Is(err, errGone):
				b = never
			case err != nil:
				return err
			default:
				b.to = monotonic()
			}
			births[tid] = b
		}
		forks, lost := w.drain()
		if lost {
			return s.openUnwatched()
		}
		tids, doubt = later(births, forks, doubt)
		if len(tids) == 0 && doubt > 0 {
			s.notes.add("%d threads began at the moment at which their makers got their counters: they may not be counted", doubt)
		}
	}
	return nil
}

// later finds among new threads those that did not inherit. doubt grows by
// those of which that is not known.
func later(births map[int]birth, forks []fork, doubt int) ([]int, int) {
	var tids []int
	for _, f := range forks {
		maker, ours := births[f.maker]
		if _, known := births[f.tid]; known || !ours {
			continue
		}
		switch {
		case maker.to < f.time: // its maker had all counters
			births[f.tid] = inherited
			continue
		case maker.from < f.time:
			births[f.tid] = inherited
			doubt++
			continue
		}
		births[f.tid] = never
		tids = append(tids, f.tid)
	}
	return tids, doubt
}

// openUnwatched opens all teams on the threads that there are, where it cannot
// be seen which come meanwhile.
func (s *session) openUnwatched() error {
	s.restart()
	tids, err := s.list()
	if err != nil {
		return err
	}
	s.notes.add("threads came while the counters were opened, and the kernel does not let it be seen which: some may not be counted")
	return s.openAll(tids)
}

// restart closes all that was opened.
func (s *session) restart() {
	s.opener.close()
	s.opener = newOpener(s.sys, s.scheme, s.notes, s.opener.common)
	s.scopes = newScopes(s.spec.Keep, s.spec.Interval > 0)
	clear(s.threads)
	for _, tid := range s.spec.Target.TIDs {
		_ = s.openThread(tid) // it was there before; if it has ended since, it counts nothing
	}
}

func monotonic() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return uint64(ts.Nano())
}

// openApart opens all teams on the threads of processes without letting others
// inherit them: on those that there are, and if threads are kept apart also on
// those that come later.
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
		if err := s.openAll(tids); err != nil {
			return err
		}
	}
}

// watchThreads begins to watch for threads that come later.
func (s *session) watchThreads(list func() ([]int, error)) {
	w, err := newWatch(s.sys.onlineNow(), list)
	if err == nil {
		if s.bell != nil {
			w.ring = s.bell.ring
		}
		err = w.listen()
	}
	if err != nil {
		s.notes.add("threads that begin later are not counted: the kernel does not let them be watched (%v)", err)
		return
	}
	s.watch = w
}

// reapEvery is how many threads may come before it is looked which have ended,
// so that their files are closed.
const reapEvery = 64

// adopt opens all teams on threads that have begun. What they did until then
// is not counted, and said to be.
func (s *session) adopt() error {
	forks, lost := s.watch.drain()
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
			s.missed++
		case err != nil:
			return err
		default:
			late := float64(monotonic() - f.time)
			s.late.add(late)
			s.latest = max(s.latest, late)
		}
	}
	if s.enabled {
		if err := controlAll(s.opener.sets[first:], unix.PERF_EVENT_IOC_ENABLE); err != nil {
			return err
		}
	}
	if s.fresh += len(s.opener.sets) - first; s.fresh >= reapEvery*len(s.turns) {
		s.fresh = 0
		s.reap()
	}
	s.relayout()
	return nil
}

// reap reads the counters of threads that have ended into a table of what is to
// be added to the next one, and closes them.
func (s *session) reap() {
	if len(s.opener.clocks) > 0 {
		return // sets name their clocks by their places in the list
	}
	s.relayout()
	if s.past == nil {
		s.past = counts.NewTable(s.layout)
	}
	s.past = widen(s.past, s.layout)
	over := map[int]bool{}
	for tid := range s.threads {
		over[tid] = !taskExists(tid)
	}
	var keep, ended []set
	for _, set := range s.opener.sets {
		if over[set.pid] {
			ended = append(ended, set)
		} else {
			keep = append(keep, set)
		}
	}
	s.reader.fill(s.past, ended, float64(time.Since(s.last)))
	closeSets(ended)
	s.opener.sets = keep
	for tid, over := range over {
		if over {
			delete(s.threads, tid)
		}
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
	if s.late.n > 0 {
		s.notes.add("%d threads began later: each is counted from %.0f µs after its beginning, at most %.0f", s.late.n, s.late.mean/1e3, s.latest/1e3)
	}
	if s.missed > 0 {
		s.notes.add("%d threads had ended before they could be counted", s.missed)
	}
}
