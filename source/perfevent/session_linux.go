package perfevent

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cpulist"
)

// A session is one run of a command, or the counting of what already runs: from
// opening the counters to closing them.
type session struct {
	spec   *Spec
	sys    *System
	scheme *scheme
	slots  []slot
	notes  *notes
	label  string

	opener *opener
	scopes *scopes
	layout *counts.Layout
	reader reader

	command *command
	files   []int        // directories of cgroups, and events that are not read
	target  *liveness    // nil if the target does not end by itself
	threads map[int]bool // tasks that were opened
	later   laterThreads

	mode    mode
	times   times
	vary    variation
	wake    wake
	enabled bool
	ended   bool
}

// laterThreads are the threads that begin while counting goes on, where each is opened
// by itself.
type laterThreads struct {
	forks   *forkMonitor  // nil if they are not opened
	delay   stats         // nanoseconds from a thread's beginning to that of its counting
	longest float64       // the longest of them
	missed  int           // threads that ended before they could be counted
	opened  int           // sets opened since the last check which threads have ended
	past    *counts.Table // counts of threads that have ended since the last table
}

// mode is what differs between counting and sampling.
type mode struct {
	live  bool         // counters are opened enabled
	ready func() error // called when all is opened, before it is enabled; nil for counting
	admit func()       // lets what is opened enabled take samples; nil for counting
}

// times are moments of the counting.
type times struct {
	start time.Time // of counting
	last  time.Time // of the last reading
	tick  time.Time // at the end of the next interval
}

// wake is what ends a wait.
type wake struct {
	stop     <-chan struct{}
	notifier *notifier
	armed    bool          // a goroutine notifies it at the end of all
	closed   chan struct{} // ends that goroutine
	shut     bool          // closed is closed, and the notifier
}

// newSession opens the counters of a group, or of all for -1, and starts the
// command. Nothing is left of it after an error.
func newSession(sys *System, spec *Spec, c *scheme, group int, n *notes, stop <-chan struct{}) (*session, error) {
	s := prepare(sys, spec, c, group, n)
	s.wake.stop, s.wake.closed = stop, make(chan struct{})
	var err error
	if s.wake.notifier, err = newNotifier(); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// prepare returns a session that has opened nothing yet.
func prepare(sys *System, spec *Spec, c *scheme, group int, n *notes) *session {
	s := &session{spec: spec, sys: sys, scheme: c, slots: c.slots(spec, group), notes: n, label: spec.Target.describe(), threads: map[int]bool{},
		scopes: newScopes(spec.Keep, spec.Interval > 0)}
	s.opener = newOpener(sys, c, n, s.common())
	s.opener.wide, s.opener.cgroups = spec.Target.wide(), len(spec.Target.Cgroups) > 0
	s.reader.lost, s.reader.silent = hasFormatLost(), s.silent
	if spec.Interval > 0 && !spec.Pinned && group < 0 {
		s.vary.rotation = spec.Vary
	}
	return s
}

// common returns what the attributes of all events have in common.
func (s *session) common() Attr {
	apart := s.spec.NoInherit || s.spec.Keep.Has(counts.Thread)
	return Attr{
		Disabled:     true,
		Inherit:      !s.spec.Target.wide() && !apart,
		EnableOnExec: s.spec.Target.ownCommand() && !s.spec.stops() && s.spec.Delay == 0,
		Pinned:       s.spec.Pinned,
	}
}

// begin opens the counters, starts the command and lets both go.
func (s *session) begin() error {
	var err error
	if len(s.spec.Target.Command) == 0 {
		err = s.open(0)
	} else {
		// Only what is inherited is there before the process is.
		l := launch{stopped: s.spec.stops(), observer: s.spec.Observer, open: s.open}
		if l.stopped && s.opener.common.Inherit {
			l.launching = s.spec.Launching
		}
		s.command, err = s.spec.Target.start(l)
	}
	if err != nil {
		return err
	}
	if s.command != nil && !s.patient() {
		s.command.attend()
	}
	s.layout = &counts.Layout{Columns: slices.Clone(s.scheme.columns), Scopes: slices.Clone(s.scopes.list)}
	if s.command == nil && s.spec.Target.tasks() {
		s.target = newLiveness(&s.spec.Target)
	}
	return nil
}

// patient reports whether there is nothing to do before the command has ended. Then the
// caller itself waits for that.
func (s *session) patient() bool {
	return s.spec.Target.ownCommand() && s.spec.Interval == 0 && s.spec.Timeout == 0 && s.spec.Delay == 0 && s.mode.ready == nil
}

// open opens the counters and enables them, unless the kernel is going to. command is
// the process of a command; if it is 0, the command inherits them from the calling
// thread.
func (s *session) open(command int) error {
	var err error
	switch t := &s.spec.Target; {
	case t.wide():
		err = s.openCPUs()
	case t.ownCommand():
		err = s.openCommand(command)
	default:
		err = s.openTasks()
	}
	if err != nil {
		return err
	}
	if err := s.opener.explain(); err != nil {
		return err
	}
	if s.mode.ready != nil {
		if err := s.mode.ready(); err != nil {
			return err
		}
	}
	if s.spec.Launching != nil && command == 0 && s.spec.Target.ownCommand() {
		s.spec.Launching()
	}
	s.begins()
	if s.spec.Delay == 0 {
		s.enable()
	}
	return nil
}

// begins sets the start of the counting to now.
func (s *session) begins() {
	s.times.start = time.Now()
	s.times.last, s.times.tick = s.times.start, s.times.start.Add(s.spec.Interval)
}

// openCommand opens all groups on a command: on its process if that is known, or on
// this thread for the command to inherit.
func (s *session) openCommand(pid int) error {
	if pid == 0 || s.opener.common.Inherit {
		return s.openTask(pid, s.scopes.add(s.scopes.base(), 0))
	}
	return s.openApart([]int{pid})
}

// openCPUs opens all groups on processors, for all that runs there or for cgroups.
func (s *session) openCPUs() error {
	if _, err := s.sys.Topology(); err != nil {
		return err
	}
	t := &s.spec.Target
	cpus := slices.Compact(slices.Sorted(slices.Values(t.CPUs)))
	if t.All {
		cpus = s.sys.online()
	}
	if len(t.Cgroups) == 0 {
		return s.openWide(cpus, place{pid: -1}, s.scopes.base())
	}
	for _, name := range t.Cgroups {
		fd, err := openCgroup(name)
		if err != nil {
			return err
		}
		s.files = append(s.files, fd)
		if err := s.openWide(cpus, place{pid: fd, flags: unix.PERF_FLAG_PID_CGROUP}, s.scopes.cgroup(name)); err != nil {
			return err
		}
	}
	return nil
}

// openWide opens all groups on those of some processors that their PMUs count on.
func (s *session) openWide(cpus []int, p place, scope counts.Scope) error {
	rows := make([]int, len(cpus))
	for i, n := range cpus {
		rows[i] = s.scopes.add(s.scopes.cpu(scope, s.sys.cpu(n)), 1)
	}
	since := len(s.opener.sets)
	for _, slot := range s.slots {
		t := slot.siblings
		if slot.again {
			s.opener.copy(t, since)
			continue
		}
		here := intersect(cpus, t.cpus)
		for _, n := range here {
			p.cpu, p.scope = n, rows[slices.Index(cpus, n)]
			if err := s.opener.open(t, p, nil); err != nil {
				return err
			}
		}
		if len(here) == 0 {
			s.nowhere(t, rows)
		}
	}
	return nil
}

// nowhere notes that a PMU counts on none of the processors.
func (s *session) nowhere(t *siblings, rows []int) {
	for _, e := range t.events {
		for _, row := range rows {
			s.opener.lack(refusal{e.column, row, counts.NotSupported})
		}
	}
	s.notes.add("not supported: %s counts on processors %s, which are not among those chosen", t.pmu.Name, cpulist.Format(t.cpus))
}

// openTask opens all groups on a task, 0 being this thread.
func (s *session) openTask(tid, scope int) error {
	s.threads[tid] = true
	if s.opener.common.Inherit && s.spec.probes() {
		if fd, err := openReads(tid); err == nil { // before Linux 6.13 there are none
			s.files = append(s.files, fd)
		}
	}
	since := len(s.opener.sets)
	for _, slot := range s.slots {
		var err error
		switch t := slot.siblings; {
		case t.pmu != nil && t.pmu.Uncore:
			s.whole(t, scope)
		case slot.again:
			s.opener.copy(t, since)
		default:
			err = s.openGroup(t, tid, scope)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openGroup opens siblings on a task. The kernel's time enabled goes on while the task
// is on a processor that their PMU does not count on. So clocks measure the time on the
// others.
func (s *session) openGroup(t *siblings, tid, scope int) error {
	p := place{pid: tid, cpu: -1, scope: scope}
	limit := slices.Compact(slices.Sorted(slices.Values(s.spec.Target.OnCPUs)))
	if s.mode.ready != nil {
		return s.sampleGroup(t, p, limit)
	}
	if len(limit) > 0 {
		for _, p.cpu = range intersect(limit, t.cpus) {
			if err := s.opener.open(t, p, s.clocks(tid, []int{p.cpu})); err != nil {
				return err
			}
		}
		return nil
	}
	var clocks []int
	if t.cpus != nil && len(intersect(s.sys.online(), t.cpus)) < len(s.sys.CPUs) {
		clocks = s.clocks(tid, t.cpus)
	}
	return s.opener.open(t, p, clocks)
}

// sampleGroup opens siblings on a task, once for each processor: the records of
// inherited events go to the processor's ring.
func (s *session) sampleGroup(t *siblings, p place, limit []int) error {
	if len(limit) == 0 {
		limit = s.sys.online()
	}
	for _, p.cpu = range intersect(limit, t.cpus) {
		if err := s.opener.open(t, p, nil); err != nil {
			return err
		}
	}
	return nil
}

// clocks opens clocks of a task's time on some processors; nil if that cannot
// be measured.
func (s *session) clocks(tid int, cpus []int) []int {
	var clocks []int
	for _, n := range cpus {
		i := s.opener.clock(place{pid: tid, cpu: n})
		if i < 0 {
			return nil
		}
		clocks = append(clocks, i)
	}
	return clocks
}

// whole notes that a PMU counts what tasks share.
func (s *session) whole(t *siblings, scope int) {
	for _, e := range t.events {
		s.opener.lack(refusal{e.column, scope, counts.NotSupported})
	}
	s.notes.append(counts.Notef("not supported: %s counts what tasks share", t.pmu.Name).With(counts.Fix{Action: counts.CountProcessors}))
}

// enable lets the counters count, except those that the kernel enables when
// the command is executed. What is opened enabled has counted before: that is
// left out.
func (s *session) enable() {
	s.enabled = true
	switch {
	case s.opener.common.EnableOnExec:
		return
	case s.mode.live && s.mode.admit != nil:
		s.mode.admit()
		return
	case s.mode.live:
		before := counts.NewTable(&counts.Layout{Columns: s.scheme.columns, Scopes: s.scopes.list})
		s.reader.fill(before, s.opener.sets, 0)
		return
	}
	if err := controlAll(s.opener.sets, unix.PERF_EVENT_IOC_ENABLE); err != nil {
		s.notes.add("a counter could not be enabled: %v", err)
	}
}

// next waits for the next interval or the end and fills a table. It reports
// whether there is one.
func (s *session) next(t *counts.Table) bool {
	if s.ended {
		return false
	}
	if !s.enabled {
		s.delay()
	}
	now := s.wait()
	s.fill(t, now, now.Sub(s.times.last))
	if s.vary.rotation > 0 && s.vary.began.IsZero() {
		s.startVarying(now)
	}
	if s.ended {
		s.conclude(t)
		t.Notes = s.notes.list
	}
	return true
}

// delay waits before counting begins.
func (s *session) delay() {
	if s.sleep(s.times.start.Add(s.spec.Delay)) {
		s.notes.append(counts.Note{Kind: counts.NoteEndedEarly, Text: fmt.Sprintf("nothing was counted: it ended before the delay of %v", s.spec.Delay)})
		return
	}
	s.begins()
	s.enable()
}

// wait waits for the end of the interval or of all and returns when that was.
// Intervals end at multiples of their length since the start, so that they do
// not drift; those that were missed are passed over, and the table says how
// long it really is.
func (s *session) wait() time.Time {
	if s.ended {
		return s.times.last
	}
	var until time.Time
	if s.spec.Interval > 0 {
		until = s.times.tick
	}
	final := false
	if s.spec.Timeout > 0 {
		if end := s.times.start.Add(s.spec.Timeout); until.IsZero() || !end.After(until) {
			until, final = end, true
		}
	}
	if s.sleep(until) {
		return s.endOf()
	}
	s.ended = final
	now := time.Now()
	for s.spec.Interval > 0 && !s.times.tick.After(now) {
		s.times.tick = s.times.tick.Add(s.spec.Interval)
	}
	return now
}

// endOf returns when all ended: the command, or whatever was the end just now.
func (s *session) endOf() time.Time {
	if s.command != nil {
		select {
		case <-s.command.done:
			if s.command.end.After(s.times.last) {
				return s.command.end
			}
			return s.times.last // it ended while the counters were last read
		default:
		}
	}
	return time.Now()
}

// sleep waits until a time, if it is not zero, or until all has ended, which it
// reports.
func (s *session) sleep(until time.Time) (ended bool) {
	var done, gone, begun <-chan struct{}
	if s.command != nil {
		done = s.command.done
	}
	if s.target != nil {
		gone = s.target.gone
	}
	if s.later.forks != nil {
		begun = s.later.forks.changed
	}
	for {
		s.turn()
		select {
		case <-begun:
			if err := s.adopt(); err != nil {
				s.notes.add("threads that begin from now on are not counted: %v", err)
				begun = nil
			}
			continue
		case <-done:
		case <-gone:
		case <-s.wake.stop:
		default:
			if !until.IsZero() && !time.Now().Before(until) {
				return false
			}
			if s.command != nil && !s.command.attended {
				s.command.watch(s.wake.notifier)
				continue
			}
			s.notifyOnce(done, gone)
			s.wake.notifier.wait(s.vary.due(until))
			continue
		}
		s.ended = true
		return true
	}
}

// notifyOnce has the notifier notified when all ends.
func (s *session) notifyOnce(done, gone <-chan struct{}) {
	if s.wake.armed {
		return
	}
	s.wake.armed = true
	notifier, stop, closed := s.wake.notifier, s.wake.stop, s.wake.closed
	go func() {
		select {
		case <-done:
		case <-gone:
		case <-stop:
		case <-closed:
			return
		}
		notifier.notify()
	}()
}

// close closes the counters and ends the command.
func (s *session) close() {
	s.opener.close()
	s.silence()
	for _, fd := range s.files {
		unix.Close(fd)
	}
	s.files = nil
	if s.target != nil {
		s.target.close()
	}
	if s.later.forks != nil {
		s.later.forks.close()
		s.later.forks = nil
	}
	if s.command != nil {
		s.command.kill()
	}
}

// silence closes the notifier, once.
func (s *session) silence() {
	if s.wake.notifier == nil || s.wake.shut {
		return
	}
	s.wake.shut = true
	close(s.wake.closed)
	s.wake.notifier.close()
}
