package perfevent

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A Sampling takes samples. The kernel writes them, and records of what is
// mapped, executed and started, into a ring for each processor; who samples
// empties them.
//
//	s, err := perfevent.Sample(ctx, sys, spec)
//	defer s.Close()
//	for s.Next() {
//		_, err = s.WriteTo(file)
//	}
type Sampling struct {
	spec    Spec
	ring    int // bytes of each
	options SampleSpec
	ctx     context.Context
	session *session
	started func(*Sampling) error
	notes   notes
	stop    chan struct{}
	once    sync.Once
	release func() bool

	rings    []*ring
	fds      []unix.PollFd // of the rings, and the notifier
	tracked  Attr          // of trackers
	trackers []tracker     // on processors; on tasks they are among the session's
	events   []SampledEvent
	maps     []byte
	over     bool
	asked    asked
	lost     uint64
	state    *os.ProcessState
	err      error
}

// A tracker is an event that counts nothing: it is there for the records of what
// runs where.
type tracker struct {
	fd, cpu int
	id      uint64
}

// trackerName is how the event is called that comes with the others.
const trackerName = "dummy"

// Sample opens the counters and starts the command. What the kernel refuses of
// several events is left out, and said in Notes; errors are those of [Start].
// When the context is done the sampling ends as by Stop.
func Sample(ctx context.Context, sys *System, spec SampleSpec) (*Sampling, error) {
	whole := spec.whole()
	if err := spec.check(sys, whole); err != nil {
		return nil, err
	}
	if whole.samples(perffile.SampleRead) && !spec.NoInherit && !spec.Target.wide() && !InheritedReads() {
		return nil, errInheritedReads
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s := &Sampling{spec: *whole, options: spec, ring: spec.RingSize, started: spec.Begin, ctx: ctx, stop: make(chan struct{})}
	s.settle()
	if err := s.branches(); err != nil {
		return nil, err
	}
	if err := s.begin(sys); err != nil {
		s.close()
		return nil, err
	}
	s.release = context.AfterFunc(ctx, s.Stop)
	return s, nil
}

// settle finds out what this kernel takes of what the events ask for.
func (s *Sampling) settle() {
	// What is tried on this thread must be opened by it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, g := range s.spec.Groups {
		for i := range g {
			s.settleEvent(&g[i])
		}
	}
	s.tracked = s.tracking()
	if !s.spec.Target.wide() {
		s.spec.Always = []Event{{Name: trackerName, Attr: s.tracked}}
	}
}

// settleEvent lowers what an event asks for to what there is: its precision, and
// the struct of weights.
func (s *Sampling) settleEvent(e *Event) {
	a := e.Attr
	if a.SampleType&perffile.SampleWeightStruct != 0 && !opens(&a) {
		if a.SampleType = a.SampleType&^perffile.SampleWeightStruct | perffile.SampleWeight; opens(&a) {
			e.Attr = a
		}
	}
	a = e.Attr
	for a.Precise > 0 && !opens(&a) {
		a.Precise--
	}
	if a.Precise < e.Attr.Precise && opens(&a) {
		s.notes.add("%s: sampled with precision %d instead of %d, as there is no more of it here", e.Name, a.Precise, e.Attr.Precise)
		e.Attr.Precise = a.Precise
	}
}

// branches says which event has no branch records here, but can be sampled without them.
func (s *Sampling) branches() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, g := range s.spec.Groups {
		for i := range g {
			a := g[i].Attr
			if a.SampleType&perffile.SampleBranchStack == 0 || opens(&a) {
				continue
			}
			if a.SampleType, a.BranchSampleType = a.SampleType&^perffile.SampleBranchStack, 0; opens(&a) {
				return &OpenError{Event: g[i].Name, Errno: unix.EOPNOTSUPP, Advice: "there are no branch records of this event, or not these: leave out -b, -j and lbr"}
			}
		}
	}
	return nil
}

// opens reports whether the kernel opens an event on this thread, or refuses it for other
// reasons than the event.
func opens(a *Attr) bool {
	b := *a
	b.Disabled, b.ReadFormat = true, perffile.FormatID
	b.SampleType &^= perffile.SampleRead
	fd, err := openEvent(&b, 0, -1, -1, 0)
	if err != nil {
		return err != unix.EINVAL && err != unix.EOPNOTSUPP && err != unix.E2BIG
	}
	unix.Close(fd)
	return true
}

// tracking returns the attributes of a tracker: what this kernel has of the
// records that tell what runs where. Newer ones have more.
func (s *Sampling) tracking() Attr {
	first := &s.spec.Groups[0][0].Attr
	a := Attr{Type: perffile.TypeSoftware, Config: softwareDummy, Disabled: true,
		SampleType:  first.SampleType & (perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU),
		SampleIDAll: true, Mmap: true, Comm: true, Task: true, ExcludeKernel: true, ExcludeHV: true,
		ContextSwitch: s.options.Switches, // Linux 4.3
		MmapData:      s.spec.samples(perffile.SampleAddr | perffile.SampleStackUser),
		EnableOnExec:  s.spec.Target.ownCommand() && !s.spec.stops()}
	for _, more := range []func(*Attr){
		func(a *Attr) { a.Mmap2 = true },                                                            // Linux 3.16
		func(a *Attr) { a.CommExec = true },                                                         // 3.16
		func(a *Attr) { a.KSymbol, a.BPFEvent = true, true },                                        // 5.1
		func(a *Attr) { a.BuildID = !s.options.NoBuildIDs && !s.spec.samples(perffile.SampleAddr) }, // 5.12; it takes the place of the inode
		func(a *Attr) { a.Cgroup = s.spec.samples(perffile.SampleCgroup) },                          // 5.7
	} {
		if b := a; func() bool { more(&b); return opens(&b) }() {
			a = b
		}
	}
	return a
}

// begin opens everything and starts the command.
func (s *Sampling) begin(sys *System) error {
	s.session = prepare(sys, &s.spec, newScheme(&s.spec), -1, &s.notes)
	s.session.opener.singly = true
	s.session.wake.stop, s.session.wake.closed = s.stop, make(chan struct{})
	s.session.mode.ready, s.session.mode.admit = s.attach, s.admit
	var err error
	if s.session.wake.notifier, err = newNotifier(); err != nil {
		return err
	}
	s.listen()
	return s.session.begin()
}

// attach gives each processor a ring. All that was opened writes into them, except for
// what takes samples already. Nothing else is enabled yet, except for what tracks tasks
// that run already.
func (s *Sampling) attach() error {
	if err := s.mapRings(); err != nil {
		return err
	}
	for i := range s.session.opener.sets {
		if set := &s.session.opener.sets[i]; !s.session.mode.live || set.tracks() {
			if err := s.direct(set); err != nil {
				return err
			}
		}
	}
	if s.spec.Target.wide() {
		if err := s.track(); err != nil {
			return err
		}
	}
	if err := s.collect(); err != nil {
		return err
	}
	if s.spec.stops() {
		// The command is stopped at its first instruction. No record has what was
		// mapped until then.
		pid := s.session.opener.sets[0].pid
		s.maps, _ = os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	}
	if err := s.enableTracking(); err != nil || s.started == nil {
		return err
	}
	return s.started(s)
}

// direct has the events of a set write into the ring of their processor.
func (s *Sampling) direct(set *set) error {
	r := s.rings[s.cpuIndex(set.cpu)]
	for _, e := range set.events {
		if err := r.take(e.fd); err != nil {
			return fmt.Errorf("%s: its samples cannot be directed into a ring: %w", e.name, err)
		}
	}
	return nil
}

// tracks reports whether a set is of a tracker.
func (s *set) tracks() bool { return s.events[0].name == trackerName }

// admit lets the samples into the rings that are taken already. Counts begin anew.
func (s *Sampling) admit() {
	for i := range s.session.opener.sets {
		set := &s.session.opener.sets[i]
		if set.tracks() {
			continue
		}
		for _, e := range set.events {
			_ = control(e.fd, unix.PERF_EVENT_IOC_RESET)
		}
		if err := s.direct(set); err != nil {
			s.notes.add("%v", err)
		}
	}
}

// cpuIndex returns the place of a processor's ring.
func (s *Sampling) cpuIndex(cpu int) int {
	i, _ := slices.BinarySearch(s.session.sys.online(), cpu)
	return i
}

// mapRings makes the rings. Each belongs to an event of this process, which
// counts nothing and lives for as long as the sampling: a thread's own would be
// of no use to wait for once the thread has ended.
func (s *Sampling) mapRings() error {
	wanted := pagesFor(s.ring)
	pages := wanted
	for _, cpu := range s.session.sys.online() {
		r, err := s.mapRing(cpu, &pages)
		if err != nil {
			return err
		}
		s.rings = append(s.rings, r)
		s.fds = append(s.fds, unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN})
	}
	s.fds = append(s.fds, unix.PollFd{Fd: int32(s.session.wake.notifier.fd), Events: unix.POLLIN})
	if pages < wanted {
		s.notes.add("rings are %d KiB for a processor: kernel.perf_event_mlock_kb and ulimit -l allow no more", pages*os.Getpagesize()>>10)
	}
	return nil
}

// pagesFor returns how many pages of data a ring of so many bytes has at least:
// a power of two.
func pagesFor(size int) int {
	if size == 0 {
		size = defaultRing
	}
	pages := 1
	for pages*os.Getpagesize() < size {
		pages *= 2
	}
	return pages
}

// leastPages is how small rings become before it is an error.
const leastPages = 4

// mapRing makes a processor's ring. Where so much memory is not allowed it tries
// with less, and keeps to that for the others.
func (s *Sampling) mapRing(cpu int, pages *int) (*ring, error) {
	for {
		// Waking up at a quarter leaves room for what comes until then.
		a := Attr{Type: perffile.TypeSoftware, Config: softwareDummy, Disabled: true, ExcludeKernel: true, ExcludeHV: true,
			Watermark: true, Wakeup: uint32(min(*pages*os.Getpagesize()/4, 1<<30))}
		fd, errno := s.session.opener.retry(&a, place{pid: os.Getpid(), cpu: cpu}, -1)
		if errno != 0 {
			return nil, &OpenError{Event: trackerName, Errno: errno, Advice: s.session.opener.advice(errno)}
		}
		r, err := mapRing(fd, *pages)
		if err == nil {
			return r, nil
		}
		unix.Close(fd)
		if *pages /= 2; err != unix.EPERM && err != unix.ENOMEM || *pages < leastPages {
			return nil, fmt.Errorf("there is no memory for a ring of processor %d: %w: sysctl kernel.perf_event_mlock_kb or ulimit -l allows more", cpu, err)
		}
	}
}

// track opens a tracker on each processor, also on those that are not sampled: a
// task may begin on one and run on another.
func (s *Sampling) track() error {
	a := s.tracked
	a.ReadFormat = s.session.opener.common.ReadFormat
	for i, cpu := range s.session.sys.online() {
		fd, errno := s.session.opener.retry(&a, place{pid: -1, cpu: cpu}, -1)
		if errno != 0 {
			return &OpenError{Event: trackerName, Errno: errno, Advice: s.session.opener.advice(errno)}
		}
		t := tracker{fd: fd, cpu: cpu}
		s.trackers = append(s.trackers, t)
		id, err := identify(fd)
		if err == nil {
			err = s.rings[i].take(fd)
		}
		if err != nil {
			return err
		}
		s.trackers[i].id = id
	}
	return nil
}

// enableTracking enables the trackers of what runs already, so that no change is
// missed between here and the first sample.
func (s *Sampling) enableTracking() error {
	for _, t := range s.trackers {
		if err := control(t.fd, unix.PERF_EVENT_IOC_ENABLE); err != nil {
			return err
		}
	}
	if s.tracked.EnableOnExec {
		return nil
	}
	for i := range s.session.opener.sets {
		if set := &s.session.opener.sets[i]; set.tracks() {
			if err := control(set.leader, unix.PERF_EVENT_IOC_ENABLE); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect lists the events that were opened. It is an error if none of them
// takes samples.
func (s *Sampling) collect() error {
	opener := s.session.opener
	list := make([]SampledEvent, len(s.session.scheme.columns))
	leader := make([]int, len(list)) // by column: the column of the group's first event
	for i := range opener.sets {
		set := &opener.sets[i]
		for k, e := range set.events {
			v := &list[e.column]
			if len(v.IDs) == 0 {
				v.Event = Event{Name: e.name, Attr: opener.attr(e.member, k == 0), Scale: e.scale}
				leader[e.column] = set.events[0].column
			}
			v.add(e.id, set.cpu, set.pid)
		}
	}
	place := make([]int, len(list)) // by column: among the events
	samples := false
	for column := range list {
		if v := &list[column]; len(v.IDs) > 0 {
			place[column] = len(s.events)
			v.Leader = place[leader[column]] // which precedes it
			s.events = append(s.events, *v)
			samples = samples || v.Attr.Sample > 0
		}
	}
	if !samples {
		if err := opener.refused(); err != nil {
			return err
		}
		return &OpenError{Event: names(s.spec.Groups[0]), Errno: unix.EOPNOTSUPP, Advice: "none of the events that the kernel opened takes samples"}
	}
	if len(s.trackers) > 0 {
		v := SampledEvent{Event: Event{Name: trackerName, Attr: s.tracked}, Leader: len(s.events)}
		for _, t := range s.trackers {
			v.add(t.id, t.cpu, -1)
		}
		s.events = append(s.events, v)
	}
	return nil
}

// Events returns the events that were opened. The last counts nothing: the records that
// are not samples belong to it.
func (s *Sampling) Events() []SampledEvent { return s.events }

// Next waits until there is enough to be written, or all has ended. It returns
// false when all has ended and was written.
func (s *Sampling) Next() bool {
	if s.over {
		return false
	}
	if s.wait() {
		s.finish()
	}
	return true
}

// wait waits for the rings to fill, and reports whether all has ended instead.
func (s *Sampling) wait() bool {
	e := s.session
	var done, gone <-chan struct{}
	if e.command != nil {
		done = e.command.done
	}
	if e.target != nil {
		gone = e.target.gone
	}
	e.notifyOnce(done, gone)
	for {
		full := s.poll(s.until())
		full = s.answer() || full
		select {
		case <-done:
			return true
		case <-gone:
			return true
		case <-e.wake.stop:
			return true
		default:
		}
		if until := s.until(); !until.IsZero() && !time.Now().Before(until) {
			if e.enabled {
				return true
			}
			e.begins()
			e.enable()
		}
		if full {
			return false
		}
	}
}

// until returns when there is something to do even if nothing happens: the end
// of the delay, or of all. It is zero if there is no such time.
func (s *Sampling) until() time.Time {
	switch {
	case !s.session.enabled:
		return s.session.times.start.Add(s.spec.Delay)
	case s.spec.Timeout > 0:
		return s.session.times.start.Add(s.spec.Timeout)
	}
	return time.Time{}
}

// poll waits for the rings, the notifier or a time, and reports whether it was a ring.
func (s *Sampling) poll(until time.Time) bool {
	var timeout *unix.Timespec
	if !until.IsZero() {
		left := unix.NsecToTimespec(max(0, int64(time.Until(until))))
		timeout = &left
	}
	n, err := unix.Ppoll(s.fds, timeout, nil)
	if err != nil || n == 0 {
		return false
	}
	if s.fds[len(s.fds)-1].Revents != 0 {
		s.session.wake.notifier.clear()
		n--
	}
	return n > 0
}

// finish stops the sampling, and finds out what the kernel had no room for.
func (s *Sampling) finish() {
	s.over = true
	sets := s.session.opener.sets
	if err := controlAll(sets, unix.PERF_EVENT_IOC_DISABLE); err != nil {
		s.notes.add("a counter could not be stopped: %v", err)
	}
	for _, t := range s.trackers {
		_ = control(t.fd, unix.PERF_EVENT_IOC_DISABLE)
	}
	if hasFormatLost() {
		for i := range sets {
			s.lost += lostOf(&sets[i])
		}
	}
	if s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
	}
	s.keepState()
}

// lostOf returns how many records of a set's events were lost, as far as the kernel
// knows. Each event is read by itself: of an inherited group the kernel gives what the
// last child lost, as if it were the parent's (__perf_read_group_add).
func lostOf(set *set) uint64 {
	const at = 32 // behind the count, two times, and the identifier; see struct read_format
	var buf [at + 8]byte
	sum := uint64(0)
	for _, e := range set.events {
		if n, err := readEvent(e.fd, buf[:]); err == nil && n == len(buf) { // without PERF_FORMAT_LOST it is shorter
			sum += binary.NativeEndian.Uint64(buf[at:])
		}
	}
	return sum
}

// Lost returns how many records were lost for lack of room, as far as the kernel knows
// (since Linux 6.0). It is valid when Next has returned false. LOST records count only
// losses that another record follows.
func (s *Sampling) Lost() uint64 { return s.lost }

// WriteTo writes the records of all rings and frees their room. It writes one
// processor's after the other's, each in the order of the ring. A record may take
// several calls of Write.
func (s *Sampling) WriteTo(w io.Writer) (int64, error) {
	sum := int64(0)
	for _, r := range s.rings {
		from, to := r.bounds()
		first, second := r.pending(from, to)
		for _, piece := range [...][]byte{first, second} {
			if len(piece) == 0 {
				continue
			}
			n, err := w.Write(piece)
			sum += int64(n)
			if err != nil {
				return sum, err
			}
		}
		r.consume(to)
	}
	return sum, nil
}

// PID returns the command's process; 0 if there is no command.
func (s *Sampling) PID() int {
	if s.session.command == nil {
		return 0
	}
	return s.session.command.process.Pid
}

// Maps returns the /proc/PID/maps of a command without inheritance from when sampling
// began. The records have only later mappings. For other targets it is nil.
func (s *Sampling) Maps() []byte { return s.maps }

// Notes returns what was refused or lowered, one line each.
func (s *Sampling) Notes() []counts.Note { return s.notes.list }

// Err returns what ended the sampling early: the cause of the context's end.
func (s *Sampling) Err() error { return s.err }

// Stop ends the sampling: Next returns true once more for what is left, and then
// false. It may be called from any goroutine. A command runs on until Close.
func (s *Sampling) Stop() { s.once.Do(func() { close(s.stop) }) }

// Signal passes a signal on to the command. The error is os.ErrProcessDone if
// there is none that runs. It may be called from any goroutine.
func (s *Sampling) Signal(sig os.Signal) error {
	if s.session.command == nil {
		return os.ErrProcessDone
	}
	return s.session.command.process.Signal(sig)
}

// State is how the command ended; nil if there was none or it runs still. Valid
// after Next returned false, and after Close.
func (s *Sampling) State() *os.ProcessState { return s.state }

func (s *Sampling) keepState() {
	c := s.session.command
	if c == nil {
		return
	}
	select {
	case <-c.done:
		s.state = c.state
		if c.err != nil && s.err == nil {
			s.err = c.err
		}
	default:
	}
}

// Close frees everything; a command still running is ended, with SIGTERM and if
// that does not help with SIGKILL. May be called twice.
func (s *Sampling) Close() error {
	s.over = true
	s.release()
	s.Stop()
	s.close()
	s.keepState()
	return nil
}

func (s *Sampling) close() {
	s.session.close()
	for _, t := range s.trackers {
		unix.Close(t.fd)
	}
	for _, r := range s.rings {
		r.close()
	}
	s.trackers, s.rings = nil, nil
}

// InheritedReads reports whether samples can have the counts of their group if children
// inherit it (Linux 6.13). Without that, such groups are for processors, or for a
// command's own thread (SampleSpec.NoInherit).
var InheritedReads = sync.OnceValue(func() bool {
	fd, err := openReads(0)
	if err != nil {
		return false
	}
	return unix.Close(fd) == nil
})

// openReads opens a disabled event on a task whose samples would have the counts of their group. The kernel does not
// exchange the events of such a task and of its children.
func openReads(tid int) (int, error) {
	a := Attr{Type: perffile.TypeSoftware, Config: softwareDummy, Disabled: true, Inherit: true, ExcludeKernel: true, ExcludeHV: true,
		Sample: 1, SampleType: perffile.SampleRead | perffile.SampleTID, ReadFormat: perffile.FormatID | perffile.FormatGroup}
	return openEvent(&a, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
}

// errInheritedReads says what older kernels cannot do.
var errInheritedReads = &TargetError{Msg: "samples of children and threads cannot have the counts of their group before Linux 6.13",
	Fix: counts.Fix{Action: counts.CountProcessors}}
