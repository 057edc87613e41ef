package perfevent

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// A place is where a group is opened: on a task, on a processor, or on a task while it
// is on a processor.
type place struct {
	pid   int // -1 is any; a file descriptor with FlagCgroup
	cpu   int // -1 is any
	flags uintptr
	scope int
}

// A set is siblings, or those of them that fit in one group, as opened in one place.
type set struct {
	place
	siblings *siblings  // nil for a clock
	events   []setEvent // the leader first
	leader   int        // its file descriptor
	pinned   bool
	clocks   []int // indexes of sets whose counts say how long this one could count; nil: the kernel's time enabled
	repeats  []set // further slots of the same events

	enabled, running uint64 // as last read
}

// A setEvent is an event of a set.
type setEvent struct {
	*member
	fd   int
	id   uint64
	last uint64 // as last read
}

// A refusal is an event that the kernel does not open in a place.
type refusal struct {
	column, scope int
	state         counts.State
}

// An opener opens the groups of counters on threads, processors or cgroups.
type opener struct {
	sys    *System
	scheme *scheme // its columns change their groups where siblings do not fit
	notes  *notes
	common Attr // what all attributes have in common

	sets     []set
	refusals []refusal
	known    map[refusal]bool
	clocks   map[[2]int]int // sets that measure the time of a task on a processor

	wide     bool // processors are counted, not tasks
	singly   bool // each event is read by itself
	cgroups  bool // cgroups are counted
	userOnly bool // the kernel may not be counted
	guarded  int  // a thread that this user may not look at, and so not count; 0 for none
	why      []reason
}

// A reason is an error and the events that it kept from being opened.
type reason struct {
	errno  unix.Errno
	events []string
}

func newOpener(sys *System, c *scheme, n *notes, common Attr) *opener {
	common.ReadFormat = perffile.FormatTotalTimeEnabled | perffile.FormatTotalTimeRunning | perffile.FormatID
	if hasFormatLost() {
		common.ReadFormat |= perffile.FormatLost
	}
	return &opener{sys: sys, scheme: c, notes: n, common: common, known: map[refusal]bool{}, clocks: map[[2]int]int{}}
}

// errGone says that a task has ended.
var errGone = errors.New("the task has ended")

// errMoved says that the leader of a group is no longer the task's. A task and its child
// may exchange their events when the processor switches between them. What was opened is
// then the child's and ends with it. The task goes on counting with the inherited events.
// No event can be added to these (ENODEV, or EINVAL while the child lives).
var errMoved = errors.New("the task has given its events to another")

// movesMost is how often in a row a group is opened again for that. It is rare: one time
// in some thousands for a task that begins threads all the time.
const movesMost = 4

// open opens siblings in a place. What the kernel refuses is noted and is no error. The
// error is errGone if the task has ended. Any other error means that nothing more can
// be opened.
func (o *opener) open(t *siblings, p place, clocks []int) error {
	sets, err := o.openSets(t, p, true)
	for moves := 1; err == errMoved; moves++ {
		sets, err = o.openSets(t, p, moves < movesMost)
	}
	if err != nil {
		return err
	}
	for i := range sets {
		sets[i].siblings, sets[i].clocks = t, clocks
		if i > 0 {
			o.apart(t, &sets[i])
		}
	}
	o.sets = append(o.sets, sets...)
	return nil
}

// openSets opens siblings in as few groups as they fit. The error is errMoved if groups
// may move and one has. A command that was not yet executed has no children.
func (o *opener) openSets(t *siblings, p place, move bool) (sets []set, err error) {
	move = move && o.common.Inherit && !o.common.EnableOnExec && p.pid > 0 && p.flags&unix.PERF_FLAG_PID_CGROUP == 0
	for i := range t.events {
		if sets, err = o.join(sets, &t.events[i], p, move); err != nil {
			closeSets(sets)
			return nil, err
		}
	}
	return sets, nil
}

// copy opens a further slot of siblings in all places where they were opened. It begins
// with the set of an index. If the kernel refuses it, they have fewer slots.
func (o *opener) copy(t *siblings, since int) {
	for i := since; i < len(o.sets); i++ {
		s := &o.sets[i]
		if s.siblings != t {
			continue
		}
		again := set{place: s.place, leader: -1}
		for _, e := range s.events {
			e, errno := o.event(e.member, s.place, again.leader)
			if errno != 0 {
				closeSets([]set{again})
				o.notes.add("group %d is counted for less time than planned: %v", t.group+1, errno)
				return
			}
			if again.leader < 0 {
				again.leader = e.fd
			}
			again.events = append(again.events, e)
		}
		s.repeats = append(s.repeats, again)
	}
}

// apart notes that some siblings could not be opened in the group of the others. Their
// columns get a group of their own.
func (o *opener) apart(t *siblings, s *set) {
	columns := o.scheme.columns
	first := s.events[0].column
	if t.group < 0 || columns[first].Group != t.group+1 {
		return // it is known from another place
	}
	o.scheme.last++
	var names []string
	for _, e := range s.events {
		columns[e.column].Group = o.scheme.last
		names = append(names, columns[e.column].Event)
	}
	o.notes.add("group %d does not fit on the counters: %s counted apart from the others", t.group+1, some(names))
}

// join opens an event in the first of some sets whose group takes it, else by
// itself.
func (o *opener) join(sets []set, m *member, p place, move bool) ([]set, error) {
	for i := range sets {
		e, errno := o.event(m, p, sets[i].leader)
		if errno == 0 {
			sets[i].events = append(sets[i].events, e)
			return sets, nil
		}
		if move && (errno == unix.ENODEV || errno == unix.EINVAL) {
			return sets, errMoved
		}
		if errno == unix.ENODEV && p.pid > 0 && p.flags&unix.PERF_FLAG_PID_CGROUP == 0 {
			return sets, errGone // after the leader was opened
		}
		if errno != unix.EINVAL && errno != unix.ENOSPC && errno != unix.EAGAIN {
			return sets, o.refuse(m, p, errno)
		}
	}
	e, errno := o.event(m, p, -1)
	if errno != 0 {
		return sets, o.refuse(m, p, errno)
	}
	return append(sets, set{place: p, leader: e.fd, pinned: m.attr.Pinned || o.common.Pinned, events: []setEvent{e}}), nil
}

// event opens one event, if need be without the kernel's part.
func (o *opener) event(m *member, p place, group int) (setEvent, unix.Errno) {
	a := o.attr(m, group < 0)
	fd, errno := o.retry(&a, p, group)
	if (errno == unix.EACCES || errno == unix.EPERM) && !a.ExcludeKernel && !a.ExcludeUser {
		a.ExcludeKernel, a.ExcludeHV = true, true
		var second unix.Errno
		if fd, second = o.retry(&a, p, group); second == 0 {
			errno = 0
			o.userOnly = true
			o.notes.add("only user mode is counted: the kernel's part needs kernel.perf_event_paranoid at 1 or less (it is %s) or CAP_PERFMON", o.paranoid())
		}
	}
	if errno != 0 {
		return setEvent{}, errno
	}
	id, err := identify(fd)
	if err != nil {
		unix.Close(fd)
		return setEvent{}, unix.EINVAL
	}
	if m.filter != "" && setFilter(fd, m.filter) != nil {
		unix.Close(fd)
		return setEvent{}, errFilter
	}
	return setEvent{member: m, fd: fd, id: id}, 0
}

// attr returns the attributes to open an event with.
func (o *opener) attr(m *member, leader bool) Attr {
	a := m.attr
	a.ReadFormat, a.Inherit = o.common.ReadFormat, o.common.Inherit
	if leader {
		// The others follow their leader, and it alone reads all: so each can
		// still be read by itself if the group should fall apart.
		if !o.singly {
			a.ReadFormat |= perffile.FormatGroup
		}
		a.Disabled, a.EnableOnExec = o.common.Disabled, a.EnableOnExec || o.common.EnableOnExec
		a.Pinned = a.Pinned || o.common.Pinned
	} else {
		a.Pinned, a.Exclusive = false, false // the leader's
	}
	if a.SampleType&perffile.SampleRead != 0 {
		// Without PERF_FORMAT_LOST, which readers of samples from before Linux 6.0
		// do not know.
		a.ReadFormat = perffile.FormatTotalTimeEnabled | perffile.FormatTotalTimeRunning | perffile.FormatID | perffile.FormatGroup
	}
	if o.userOnly && !a.ExcludeUser {
		a.ExcludeKernel, a.ExcludeHV = true, true
	}
	return a
}

// retry opens an event, after raising the limit of open files if it is met.
func (o *opener) retry(a *Attr, p place, group int) (int, unix.Errno) {
	fd, err := openEvent(a, p.pid, p.cpu, group, p.flags)
	if err == unix.EMFILE && raiseFiles() {
		fd, err = openEvent(a, p.pid, p.cpu, group, p.flags)
	}
	if errno, ok := err.(unix.Errno); ok {
		return -1, errno
	}
	return fd, 0
}

// errFilter is the error of a filter that the kernel refuses. perf_event_open has no such.
const errFilter = unix.EBADMSG

// misfiltered says that the kernel refuses a tracepoint's filter.
func (m *member) misfiltered() error {
	parts := strings.SplitN(m.name, ":", 3) // the last is modifiers
	return &TargetError{Msg: fmt.Sprintf("the kernel refuses the filter %q of %s: write FIELD > 1 && FIELD == \"name\"; tracefs lists the fields in events/%s/format",
		spelling.Clip(m.filter), m.name, path.Join(parts[:min(2, len(parts))]...))}
}

// refuse decides what an error of perf_event_open means: the end of a task,
// the end of all opening, or that this event is not counted here.
func (o *opener) refuse(m *member, p place, errno unix.Errno) error {
	switch errno {
	case unix.ESRCH:
		return errGone
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM:
		return &OpenError{Event: m.name, Errno: errno, Advice: o.advice(errno)}
	case errFilter:
		return m.misfiltered()
	}
	if m.column < 0 { // nobody asked for it
		return nil
	}
	state := counts.NotSupported
	if errno == unix.ENODEV && p.cpu >= 0 && !slices.Contains(o.sys.onlineNow(), p.cpu) {
		state = counts.NotCounted
		o.notes.add("processor %d went offline and is not counted", p.cpu)
	} else {
		if errno == unix.EACCES && p.pid > 0 && p.flags&unix.PERF_FLAG_PID_CGROUP == 0 && guarded(p.pid) {
			o.guarded = p.pid
		}
		o.because(errno, m.name)
	}
	o.lack(refusal{m.column, p.scope, state})
	return nil
}

// lack remembers that an event is not counted in a scope.
func (o *opener) lack(r refusal) {
	if !o.known[r] {
		o.known[r] = true
		o.refusals = append(o.refusals, r)
	}
}

// because remembers why an event is not counted.
func (o *opener) because(errno unix.Errno, event string) {
	i := slices.IndexFunc(o.why, func(r reason) bool { return r.errno == errno })
	if i < 0 {
		i = len(o.why)
		o.why = append(o.why, reason{errno: errno})
	}
	r := &o.why[i]
	if slices.Equal(r.events, []string{trackerName}) {
		r.events = nil // nobody asked for it: the others say more
	}
	if !slices.Contains(r.events, event) && (event != trackerName || len(r.events) == 0) {
		r.events = append(r.events, event)
	}
}

// explain makes notes of what was refused, or an error if nothing at all was opened.
func (o *opener) explain() error {
	for _, r := range o.why {
		o.notes.add("not supported: %s: %s: %s", some(r.events), r.errno.Error(), o.advice(r.errno))
	}
	if slices.ContainsFunc(o.sets, func(s set) bool { return s.siblings != nil && s.siblings != &steady }) {
		return nil
	}
	return o.refused()
}

// refused returns what was refused as an error, nil if nothing was.
func (o *opener) refused() error {
	if len(o.why) == 0 {
		return nil
	}
	// What a person can mend comes before what the machine lacks.
	first := o.why[0]
	for _, r := range o.why {
		if r.errno == unix.EACCES || r.errno == unix.EPERM {
			first = r
			break
		}
	}
	return &OpenError{Event: some(first.events), Errno: first.errno, Advice: o.advice(first.errno)}
}

// clock returns the set that measures how long a task was on a processor. It
// returns -1 if there can be none.
func (o *opener) clock(p place) int {
	key := [2]int{p.pid, p.cpu}
	if i, ok := o.clocks[key]; ok {
		return i
	}
	m := member{name: "task-clock", column: -1, attr: Attr{Type: perffile.TypeSoftware, Config: softwareTaskClock}}
	i := -1
	if e, errno := o.event(&m, p, -1); errno == 0 {
		i = len(o.sets)
		o.sets = append(o.sets, set{place: p, leader: e.fd, events: []setEvent{e}})
	}
	o.clocks[key] = i
	return i
}

// controlAll enables or disables the counters of sets.
func controlAll(sets []set, request uint) error {
	for i := range sets {
		if err := control(sets[i].leader, request); err != nil {
			return err
		}
		if err := controlAll(sets[i].repeats, request); err != nil {
			return err
		}
	}
	return nil
}

func closeSets(sets []set) {
	for _, s := range sets {
		for _, e := range s.events {
			unix.Close(e.fd)
		}
		closeSets(s.repeats)
	}
}

// drop closes what was opened on a task.
func (o *opener) drop(tid int) {
	place := make([]int, len(o.sets)) // by index until now: the new one
	var keep []set
	for i, s := range o.sets {
		if s.pid == tid {
			closeSets([]set{s})
			continue
		}
		place[i] = len(keep)
		keep = append(keep, s)
	}
	o.sets = keep
	moved := func(i int) int {
		if i < 0 {
			return i
		}
		return place[i]
	}
	for key, i := range o.clocks {
		o.clocks[key] = moved(i)
	}
	maps.DeleteFunc(o.clocks, func(key [2]int, _ int) bool { return key[0] == tid })
	for i := range keep { // the sets of siblings share a list
		clocks := slices.Clone(keep[i].clocks)
		for k := range clocks {
			clocks[k] = moved(clocks[k])
		}
		keep[i].clocks = clocks
	}
}

// close closes all that was opened.
func (o *opener) close() {
	closeSets(o.sets)
	o.sets = nil
}

// paranoid returns the system's setting, in words if it cannot be read.
func (o *opener) paranoid() string { return o.sys.setting(paranoid) }

// advice says what can be done about an error of perf_event_open.
func (o *opener) advice(errno unix.Errno) string {
	switch errno {
	case unix.EACCES:
		if o.guarded > 0 {
			return fmt.Sprintf("process %d is another user's, or does not let itself be looked at: run as root, as its user, or with CAP_PERFMON", processOf(o.guarded))
		}
		enough := 1 // 2 for user mode alone, which has been tried
		if o.wide {
			enough = 0
		}
		return fmt.Sprintf("kernel.perf_event_paranoid is %s: run as root or with CAP_PERFMON, or sysctl kernel.perf_event_paranoid=%d", o.paranoid(), enough)
	case unix.EPERM:
		return "a seccomp filter or security module forbids it: in a container, add CAP_PERFMON (docker run --cap-add PERFMON) or a profile that allows perf_event_open"
	case unix.ENOSYS:
		return "this kernel has no perf_event_open, or a seccomp filter hides it: in a container, use a profile that allows it"
	case unix.EMFILE:
		return fmt.Sprintf("%d files may be open: ulimit -n %d, or count fewer events or threads", filesLimit(), 16*filesLimit())
	case unix.ENFILE:
		return "the system has no more open files: sysctl fs.file-max"
	case unix.ENOMEM:
		return "the kernel has no memory for more events: count fewer"
	case unix.ENOENT, unix.EOPNOTSUPP, unix.ENXIO:
		if o.cgroups {
			return "the kernel has no such event, or the cgroup no perf_event: any controller in its parent's cgroup.subtree_control brings it"
		}
		if len(o.sys.Core()) == 0 {
			return "this machine shows no core PMU, like most virtual machines"
		}
		return "the processor or its PMU driver does not have it"
	case unix.ENODEV:
		return "the PMU is not on that processor"
	case unix.EBUSY:
		return "something else has the PMU for itself"
	case unix.ENOSPC:
		return "there are no counters left: count fewer events, or end what else counts"
	case unix.E2BIG:
		return "this kernel is too old for a term of it"
	case unix.EINVAL:
		return "the kernel does not take this event here: its PMU may count only whole processors, or have no such code or filter"
	}
	return "perf_event_open(2) says when"
}
