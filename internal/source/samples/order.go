package samples

import (
	"math"
	"path"
	"strconv"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// An order sorts samples, and the events that they depend on such as mappings, by time during
// reading. The records of each processor are in order, and perf ends a round after reading what
// all processors wrote: what comes then is not older than what had come before the previous
// round ended (perf's ordered_events).
//
// Samples among themselves need no order: what is mapped can be asked about any
// time once the events up to it are settled.
type order struct {
	spaces  *profile.Spaces
	windows windows
	places  *places
	watch   *watch
	simple  bool       // nothing but the place in the code matters, or processes and threads too
	tasks   bool       // samples are split or filtered by these, and by nothing else but the place
	keep    *selection // which samples count, by the names they have; nil for all
	all     bool       // all events are settled at once, and samples are passed on as they come
	root    string

	contexts []contextNumber // by the numbers that samples have
	recent   []recentTask    // by the numbers of threads
	// intervals number these, if samples of tasks are split by them; nil if not.
	intervals *contexts
	touched   uint64            // what was read ahead of its use, so that it is read
	cgroups   map[uint64]string // paths up to now, if they are looked at

	pending      []*batch // with samples that wait, in the order of the file
	spare        *spare
	held         int // samples that wait
	events       []change
	newest, safe uint64 // the latest time when the last round ended, and when the one before did
	last         uint64
	changes      int // since the last Forget

	column       []int32 // by Event.Index; -1 for one that counts nothing
	exact        []int64 // samples that name the instruction, by column
	left         int64   // samples of events that came too late to have a column
	before, till uint64  // 1 less than the first time of a sample, 0 being none, and the last
}

// A contextNumber is a context and the number of its parts that samples are split by.
type contextNumber struct {
	is     context
	number int32
}

// take takes a piece of the recording.
func (o *order) take(b *batch) {
	o.pending = append(o.pending, b)
	from := 0
	for i := range b.marks {
		m := &b.marks[i]
		o.takeSamples(b, from, m.at)
		from = m.at
		switch {
		case m.context != nil:
			o.contexts = append(o.contexts, contextNumber{*m.context, o.places.context(*m.context)})
			continue
		case m.event.apply == nil:
			o.round(b.untimed)
			continue
		}
		o.last = max(o.last, m.event.time)
		o.events = append(o.events, m.event)
	}
	o.takeSamples(b, from, len(b.samples))
	b.samples, b.extras = b.samples[:b.waiting], b.extras[:min(b.waiting, len(b.extras))]
	clear(b.marks)
	b.marks = b.marks[:0]
	o.recycle()
	if len(o.pending) > maxHeld/batchSize {
		o.release(o.last) // there are more events than samples
		o.recycle()
	}
	o.watch.took(o.places)
}

// recycle takes back the batches without waiting samples.
func (o *order) recycle() {
	kept := o.pending[:0]
	for _, b := range o.pending {
		if b.waiting > 0 {
			kept = append(kept, b)
			continue
		}
		b.samples, b.extras = b.samples[:0], b.extras[:0]
		o.spare.give(b)
	}
	clear(o.pending[len(kept):])
	o.pending = kept
}

// takeSamples takes some samples of the batch that is being taken.
func (o *order) takeSamples(b *batch, from, to int) {
	switch {
	case from == to:
		return
	case b.untimed:
		o.settle(math.MaxUint64)
		o.sift(b, from, to, math.MaxUint64)
		return
	}
	if o.all {
		o.sift(b, from, to, math.MaxUint64)
		return
	}
	if o.held+to-from > maxHeld {
		o.release(o.last) // rounds do not end
	}
	o.sift(b, from, to, o.safe)
}

// sift passes on the samples of a batch that are not later than a limit. The others
// become the last of those that wait.
func (o *order) sift(b *batch, from, to int, limit uint64) {
	if o.simple && len(b.extras) == 0 {
		o.add(b, from, to, limit)
		return
	}
	before, till := o.before, o.till
	for i := from; i < to; i++ {
		time := b.samples[i].Time
		if time > limit {
			o.wait(b, i)
			continue
		}
		before, till = min(before, time-1), max(till, time)
		o.pass(b, i)
	}
	o.spans(b, before, till)
}

// spans notes when samples were taken, if that is known.
func (o *order) spans(b *batch, before, till uint64) {
	if !b.untimed {
		o.before, o.till = before, till
	}
}

// wait lets a sample wait for what precedes it.
func (o *order) wait(b *batch, i int) {
	if b.waiting != i {
		b.samples[b.waiting] = b.samples[i]
		if b.waiting < len(b.extras) {
			b.extras[b.waiting] = b.extra(i)
		}
	}
	o.last = max(o.last, b.samples[i].Time)
	b.waiting++
	o.held++
}

// addedTogether is how many samples are added together, so that the processor waits for memory
// once.
const addedTogether = 64

// An addedSample is one of these.
type addedSample struct {
	place  codePlace
	hash   uint64 // of a gathered place
	value  float64
	task   int32 // the number of its context
	column int32
	code   int32 // its number, or that of its row
}

// add is sift where nothing but the places matters, or processes and threads too. What it does for each
// sample is most of what a flat profile costs.
func (o *order) add(b *batch, from, to int, limit uint64) {
	before, till := o.before, o.till
	apart, named, codeless := o.places.recent != nil, o.keep.named(), o.places.codeless()
	var some [addedTogether]addedSample
	n := 0
	for i := from; i < to; i++ {
		s := &b.samples[i]
		if s.Time > limit {
			o.wait(b, i)
			continue
		}
		before, till = min(before, s.Time-1), max(till, s.Time)
		if int(s.Event) >= len(o.column) || o.column[s.Event] < 0 {
			o.left++
			continue
		}
		column := o.column[s.Event]
		if s.Misc&perffile.MiscExactIP != 0 {
			o.exact[column]++
		}
		if named && !o.keep.names(o.spaces, s.Time, o.contextOf(s), "") {
			o.places.dropped[column].AddAll(s.Value, s.Value*s.Value, 1)
			continue
		}
		a := &some[n]
		if a.value, a.column = s.Value, column; apart {
			a.task = o.task(s.Time, o.contextOf(s))
		}
		if !codeless {
			a.place = o.place(s)
		}
		if n++; n == len(some) {
			o.addSome(some[:n])
			n = 0
		}
	}
	o.addSome(some[:n])
	o.spans(b, before, till)
}

// addSome adds samples to their places.
func (o *order) addSome(some []addedSample) {
	p := o.places
	if g := &p.gathered; p.gather {
		p.room(len(some))
		for i := range some {
			a := &some[i]
			if a.hash = a.place.near(); len(g.slots) > 0 {
				o.touched += g.slots[g.first(a.hash)].offset
			}
		}
		for i := range some {
			a := &some[i]
			a.code = g.number(a.place, a.hash, p.columns, p.recent != nil)
		}
		if p.recent != nil {
			for i := range some {
				a := &some[i]
				a.code = p.cross(a.task, a.code)
			}
		}
		for i := range some {
			a := &some[i]
			g.add(int(a.code)*p.columns+int(a.column), int(a.column), a.value)
		}
		return
	}
	codeless := p.codeless()
	for i := range some {
		a := &some[i]
		code := int32(0)
		if !codeless {
			code = p.find(a.place)
		}
		p.codeSum(p.within(a.task, code), int(a.column)).AddAll(a.value, a.value*a.value, 1)
	}
}

// contextOf returns the context of a sample, if that is a task and perhaps an interval.
func (o *order) contextOf(s *perfdata.FlatSample) context {
	x := context{pid: s.PID, tid: s.TID}
	if o.intervals != nil {
		x.interval = o.intervals.number(s.Time)
	}
	return x
}

// task returns the number of a context. If samples are split by name, it has that of the
// thread at a time.
func (o *order) task(time uint64, x context) int32 {
	known := &o.recent[uint32(x.tid)%recentTasks]
	if o.places.told.Has(counts.Comm) {
		x.comm = o.comm(time, x.tid)
	}
	if known.number == 0 || known.is != x {
		*known = recentTask{x, o.places.context(x) + 1}
	}
	return known.number - 1
}

// A recentTask is a context that was looked up.
type recentTask struct {
	is     context
	number int32 // and 1; 0 for none
}

// recentTasks is how many are remembered, a power of two.
const recentTasks = 256

// place returns the place of a sample.
func (o *order) place(s *perfdata.FlatSample) codePlace {
	mode := profile.Mode(s.Mode())
	space := o.spaces.Number(s.Time, s.PID, mode)
	return o.windows.place(&codeSpace{pid: int(s.PID), time: s.Time, user: space, kernel: space}, s.IP, mode)
}

// pass adds a sample to its place, and to what else samples are split by.
func (o *order) pass(b *batch, i int) {
	s := &b.samples[i]
	if int(s.Event) >= len(o.column) || o.column[s.Event] < 0 {
		o.left++
		return
	}
	column := int(o.column[s.Event])
	if s.Misc&perffile.MiscExactIP != 0 {
		o.exact[column]++
	}
	x := b.extra(i)
	if o.places.gather {
		o.places.room(1)
	}
	o.places.add(o.row(s, x.context), column, &perfdata.Amount{Value: s.Value, Enabled: x.enabled, Running: x.running})
}

// row returns the number of a sample's place and context; -1 if it does not count.
func (o *order) row(s *perfdata.FlatSample, number int32) int32 {
	x := contextNumber{}
	switch {
	case o.tasks:
		x.is = o.contextOf(s)
	case len(o.contexts) > 0:
		x = o.contexts[number]
	}
	if o.keep.named() && !o.keep.names(o.spaces, s.Time, x.is, o.cgroup(x.is.cgroup)) {
		return -1
	}
	if o.tasks || o.places.told.Has(counts.Comm) {
		x.number = o.task(s.Time, x.is)
	}
	code := int32(0)
	if !o.places.codeless() {
		code = o.places.find(o.place(s))
	}
	return o.places.within(x.number, code)
}

// comm returns the name of a thread at a time.
func (o *order) comm(time uint64, tid int32) string {
	switch name := o.spaces.Comm(time, int(tid)); {
	case tid == none:
		return unknown
	case tid == 0:
		return perffile.IdleComm
	case name == "":
		return strconv.Itoa(int(tid))
	default:
		return name
	}
}

// nameCgroup notes the path of a cgroup.
func (o *order) nameCgroup(id uint64, path string) {
	if len(o.cgroups) < maxNames {
		o.cgroups[id] = path
	}
}

// cgroup returns the path of a cgroup, as far as it is known by now.
func (o *order) cgroup(id uint64) string {
	if path := o.cgroups[id]; path != "" {
		return path
	}
	return unknown
}

// round notes the end of a round.
func (o *order) round(untimed bool) {
	if o.all || untimed {
		return
	}
	limit := o.newest
	o.newest = o.last
	if limit > o.safe {
		o.release(limit)
	}
}

// end notes the end of the file.
func (o *order) end() { o.release(math.MaxUint64) }

// release settles the events up to a time, and passes on the samples.
func (o *order) release(limit uint64) {
	o.safe = max(o.safe, limit)
	o.settle(limit)
	o.held = 0
	for _, b := range o.pending {
		n := b.waiting
		b.waiting = 0
		o.sift(b, 0, n, limit)
	}
}

// forgetAfter is how many events there are between two calls of Spaces.Forget,
// which looks at all processes.
const forgetAfter = 1 << 14

// settle applies the events up to a time.
func (o *order) settle(limit uint64) {
	if len(o.events) == 0 {
		return
	}
	kept := o.events[:0]
	for _, e := range o.events {
		if e.time > limit {
			kept = append(kept, e)
			continue
		}
		e.apply(o.spaces, e.time)
		o.changes++
	}
	clear(o.events[len(kept):])
	o.events = kept
	if o.all {
		o.spaces.AddJitdumps(o.root)
	}
	o.spaces.Settle()
	if o.changes > forgetAfter && !o.all {
		o.changes = 0
		oldest := limit
		for _, b := range o.pending {
			for i := range b.waiting {
				oldest = min(oldest, b.samples[i].Time)
			}
		}
		o.spaces.Forget(oldest)
	}
}

// jitdump reports whether a record announces a jitdump.
func jitdump(rec perfdata.Record) bool {
	m, ok := rec.(*perfdata.Mmap)
	return ok && isJitdump(string(m.Filename))
}

// isJitdump reports whether a mapping announces a just-in-time compiler's code in the file, by
// the format's name.
func isJitdump(file string) bool {
	ok, err := path.Match("jit-*.dump", path.Base(file))
	return ok && err == nil
}
