package perfevent

import (
	"os"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// A Target is what to count.
//
// A command, PIDs or TIDs are counted wherever they run; OnCPUs limits that to some
// logical processors. CPUs or All are counted whatever runs there. Cgroups are counted
// on CPUs or All. A command together with any of these is not counted itself: it says
// for how long to count.
type Target struct {
	Command []string // executed as a shell would find it, and counted from its exec
	PIDs    []int    // all threads of these processes, those to come too
	Present bool     // those of PIDs that have ended are left out
	TIDs    []int
	Cgroups []string // below the cgroup file system of perf_event, or absolute; need CPUs or All
	CPUs    []int
	All     bool  // every logical processor online
	OnCPUs  []int // limits a command, PIDs or TIDs
	// Next is the command that the calling thread starts next, from its exec until Stop:
	// see Spec.Launching.
	Next bool

	Stdin, Stdout, Stderr *os.File // of the command; nil is the own
	Env                   []string // of the command; nil is the own
}

// A Spec says what to count, of what, and how.
type Spec struct {
	Groups [][]Event // the events of a group count at the same time; groups are multiplexed
	Always []Event   // each by itself, all of the time
	Target Target

	// Rotation is the order of the groups in the multiplexing, as indexes of Groups. A
	// group that occurs twice is counted twice as long. Groups that do not occur come
	// last. The kernel rotates: on each processor it switches groups every few
	// milliseconds (perf_event_mux_interval_ms of the PMU), also those of tasks.
	// Switching from outside alone would cost two calls for each processor and slot.
	// Slots would have to be tens of times as long, and would miss the program's short
	// phases. Vary disturbs the kernel's order instead.
	Rotation []int

	// Vary is how long a rotation of multiplexed groups takes. If it is not 0, groups are
	// disabled for a moment at random times: see variation. It needs an Interval.
	Vary time.Duration

	Interval time.Duration // a table each; 0: one at the end
	Timeout  time.Duration // ends the counting; 0: with the command, the processes, or Stop
	Delay    time.Duration // before counting begins
	Repeat   int           // runs of the command; means and variances come out. 0 is 1
	Separate bool          // one group in each of several runs of the command; their tables are joined into one
	Keep     counts.By     // split by CPU, Core, Die, Socket, Node, Thread, Cgroup; other scopes are summed

	// Progress, if it is not nil, is called before each run, counted from 1.
	Progress func(run, of int)

	// Launching, if it is not nil, is called before a command starts, on the thread that
	// starts it. The command inherits what that opens with Target.Next. It is not called
	// for counts that are not inherited, such as those by thread.
	Launching func()

	// Observer, if it is not nil, adds to the tables.
	Observer Observer

	NoInherit bool // not the command's children, nor threads that come later
	Pinned    bool // groups that cannot always be on the counters are not counted at all
}

// probes reports whether there are breakpoints in code among the events. The kernel has those of programs only in
// processes of tasks that such an event was opened for. If a task exchanges its events with a child that ends, it has none.
func (spec *Spec) probes() bool {
	return slices.ContainsFunc(spec.Groups, func(g []Event) bool { return slices.ContainsFunc(g, func(e Event) bool { return e.probe }) })
}

// stops reports whether a command is stopped at its first instruction until the counters are opened on it: they are not
// inherited from the thread that starts it. Those of probes must not be if the kernel may exchange them.
func (spec *Spec) stops() bool {
	return spec.Target.ownCommand() && (spec.NoInherit || spec.Keep.Has(counts.Thread) || spec.probes() && !InheritedReads())
}

// An Observer looks at what is counted while it is counted. Its methods are called one
// after the other. The first three are about a command.
type Observer interface {
	Started(pid int)         // the command executes the program
	Ended(pid int)           // it has ended and was not yet waited for: the kernel still has its data
	Reaped(*os.ProcessState) // it was waited for

	// Join returns a table with what was counted and what was observed meanwhile. It
	// is called for each table, before the tables of several runs are joined.
	Join(*counts.Table) *counts.Table
}

// An OpenError says what the kernel refused, and what can be done about it.
type OpenError struct {
	Event  string // "" if it is not about one
	Errno  error  // unix.Errno
	Advice string // one line: what to do
}

func (e *OpenError) Error() string {
	text := e.Errno.Error()
	if e.Event != "" {
		text = e.Event + ": " + text
	}
	if e.Advice != "" {
		text += ": " + e.Advice
	}
	return text
}

func (e *OpenError) Unwrap() error { return e.Errno }

// A TargetError says that what is to be counted does not exist, or cannot be
// counted as asked.
type TargetError struct {
	Msg string
	Err error      // why it does not exist: unix.ESRCH, fs.ErrNotExist, …; nil if it cannot be counted so
	Fix counts.Fix // what would count it; the zero Fix if nothing is known to
}

func (e *TargetError) Error() string { return e.Msg }
func (e *TargetError) Unwrap() error { return e.Err }
