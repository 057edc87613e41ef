package samples

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A context is where and when a sample was taken, apart from its place in the code.
// What the options do not ask for is the same for all samples.
type context struct {
	pid, tid int32
	cpu      int32
	interval int64 // number, counted from the origin; noTime if the sample has none
	cgroup   uint64
	comm     string // of the thread at the sample's time, if samples are split by it
	lump     bool   // all that there was no room for
}

// What a sample does not have.
const (
	none     = math.MinInt32
	noTime   = math.MinInt64
	noCgroup = math.MaxUint64
)

// topology are the kinds that follow from the logical processor.
var topology = []counts.Kind{counts.CPU, counts.Core, counts.Die, counts.Socket, counts.Node}

// contexts numbers the contexts of samples.
type contexts struct {
	pid, tid, cpu, cgroup, interval bool // what is looked at
	tasks                           bool // nothing but processes, threads and intervals are, which all samples have
	step                            uint64
	origin                          uint64 // the time of the beginning of interval 0
	in                              *perfdata.Reader

	index  map[context]int32
	recent [recentContexts]struct {
		is     context
		number int32 // and 1
	}
}

const (
	recentContexts = 64 // a power of two
	maxContexts    = 1 << 18
)

// newContexts returns contexts with what the split and the filter ask for.
func newContexts(by counts.By, f *Filter, in *perfdata.Reader) contexts {
	c := contexts{in: in, index: map[context]int32{}}
	c.pid = by.Has(counts.Process) || len(f.Processes) > 0
	c.tid = by.Has(counts.Thread) || by.Has(counts.Comm) || len(f.Threads) > 0
	c.cgroup = by.Has(counts.Cgroup) || len(f.Cgroups) > 0
	c.interval = by.Has(counts.Interval)
	for _, k := range topology {
		c.cpu = c.cpu || by.Has(k)
	}
	c.tasks = (c.pid || c.tid || c.interval) && !(c.cpu || c.cgroup) && len(in.Events()) > 0
	for _, e := range in.Events() {
		c.tasks = c.tasks && e.SampleType&perffile.SampleTID != 0 && (!c.interval || e.SampleType&perffile.SampleTime != 0)
	}
	return c
}

// any reports whether anything is looked at, apart from tasks that the order looks at.
func (c *contexts) any() bool {
	return !c.tasks && (c.pid || c.tid || c.cpu || c.cgroup || c.interval)
}

// named reports whether there are names to be known.
func (c *contexts) named() bool { return c.pid || c.tid || c.cgroup }

// begin decides, at the first sample, when the recording begins and how long intervals are: as
// asked for, else some twenty for a recording of known length, else a second.
func (c *contexts) begin(step time.Duration, now uint64, span [2]uint64) {
	c.origin = now
	if span[0] > 0 && span[0] < now {
		c.origin = span[0]
	}
	switch {
	case step > 0:
		c.step = uint64(step)
	case span[1] > span[0] && span[0] > 0:
		c.step = round125((span[1] - span[0]) / intervalsWanted)
	default:
		c.step = uint64(time.Second)
	}
}

// intervalsWanted is how many intervals there are at most, if their length is not
// given.
const intervalsWanted = 20

// round125 is the next of 1, 2, 5, 10, 20, … that is not less.
func round125(n uint64) uint64 {
	for unit := uint64(1); unit < math.MaxUint64/10; unit *= 10 {
		for _, m := range []uint64{1, 2, 5} {
			if m*unit >= n {
				return m * unit
			}
		}
	}
	return n
}

// of returns a sample's context.
func (c *contexts) of(rec *perfdata.Sample) context {
	x := context{}
	identified := rec.Has(perffile.SampleTID)
	if c.pid {
		if x.pid = none; identified {
			x.pid = int32(rec.PID())
		}
	}
	if c.tid {
		if x.tid = none; identified {
			x.tid = int32(rec.TID())
		}
	}
	if c.cpu {
		x.cpu = cpuOf(c.in, rec)
	}
	if c.cgroup {
		x.cgroup = noCgroup
		if rec.Has(perffile.SampleCgroup) {
			x.cgroup = rec.Cgroup()
		}
	}
	if c.interval {
		x.interval = c.number(timeOf(rec))
	}
	return x
}

// timeOf returns the time of a sample, noTimes if it has none.
func timeOf(rec *perfdata.Sample) uint64 {
	if !rec.Has(perffile.SampleTime) {
		return noTimes
	}
	return rec.Time()
}

// number returns the interval that the time of a sample is in. Those of one processor may come
// before the first that was read.
func (c *contexts) number(now uint64) int64 {
	if now >= noTimes {
		return noTime
	}
	if now < c.origin {
		return -int64(min((c.origin-now-1)/c.step, math.MaxInt64-1)) - 1
	}
	return int64(min((now-c.origin)/c.step, math.MaxInt64))
}

// cpuOf returns the processor of a sample, or else the one that its event was
// opened on.
func cpuOf(in *perfdata.Reader, rec *perfdata.Sample) int32 {
	if rec.Has(perffile.SampleCPU) {
		return int32(rec.CPU())
	}
	if _, cpu, _ := in.Instance(rec.ID()); cpu >= 0 {
		return int32(cpu)
	}
	return none
}

// find returns the number of a context, and whether it is new. Where there is no room
// for another it becomes that of all others.
func (c *contexts) find(x *context) (n int32, added bool) {
	slot := &c.recent[(uint32(x.tid)*31+uint32(x.pid)*17+uint32(x.cpu)*7+uint32(x.interval)+uint32(x.cgroup))%recentContexts]
	if slot.number > 0 && slot.is == *x {
		return slot.number - 1, false
	}
	n, ok := c.index[*x]
	if !ok {
		if len(c.index) >= maxContexts {
			*x = context{lump: true}
			if n, ok = c.index[*x]; ok {
				return n, false
			}
		}
		n = int32(len(c.index))
		c.index[*x] = n
	}
	slot.is, slot.number = *x, n+1
	return n, !ok
}

// names are what processes, threads and cgroups are called in the end.
type names struct {
	threads perffile.Threads
	cgroups map[uint64]string
	bytes   int
	labels  map[int32]string // of processes and threads that were asked for, in the end
}

// Limits of what a file can make a reader remember of names.
const (
	maxNames     = 1 << 18
	maxNameBytes = 1 << 24
)

func newNames() names {
	return names{cgroups: map[uint64]string{}, labels: map[int32]string{}}
}

// know takes the names from a record.
func (n *names) know(rec perfdata.Record) {
	switch rec := rec.(type) {
	case *perfdata.Comm:
		n.threads.Say(rec.TID, rec.Trailer().Time, rec.Comm)
	case *perfdata.Task:
		if rec.Type == perffile.RecordFork {
			n.threads.Fork(rec.TID, rec.PTID, rec.Time)
		}
	case *perfdata.Cgroup:
		if n.bytes += len(rec.Path); n.bytes <= maxNameBytes && len(n.cgroups) < maxNames {
			n.cgroups[rec.ID] = counts.Name(string(rec.Path))
		}
	}
}

// of names a process or a thread. Rows of one process share its name.
func (n *names) of(id int32) string {
	label, ok := n.labels[id]
	if !ok {
		label = taskLabel(id, counts.Name(n.threads.Name(int(id))))
		n.labels[id] = label
	}
	return label
}

// taskLabel is a process's or a thread's name and number.
func taskLabel(id int32, name string) string {
	switch {
	case id == none:
		return unknown
	case name == "":
		return strconv.Itoa(int(id))
	}
	return name + "-" + strconv.Itoa(int(id))
}

func (n *names) cgroup(id uint64) string {
	switch path, ok := n.cgroups[id]; {
	case ok && path != "":
		return path
	case id == noCgroup:
		return unknown
	}
	return fmt.Sprintf("cgroup %#x", id)
}
