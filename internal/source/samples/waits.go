package samples

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// The derived counts of what threads did with their time, in nanoseconds. They need a
// sample of each departure of a thread from its processor, and records of its return.
const (
	// WallEvent is all time of threads: the sum of the others.
	WallEvent    = "wall.time"
	runningEvent = "wall.running" // on a processor
	queueEvent   = "wall.queue"   // in the run queue
	blockedEvent = "wall.blocked" // waiting for an event
	diskEvent    = "wall.disk"    // waiting without reaction to signals (D): mostly for disks
)

// The places of the derived events among waits.events.
const (
	wallTime = iota
	wallRunning
	wallQueue
	wallBlocked
	wallDisk
	wallEvents
)

// wallBase is the index of the first of them; derivedBase has those of other derivations.
const wallBase = derivedBase + 1<<10

// waits are what threads did between the samples of a recording. They are found in a pass
// ahead of the others: how long a wait was is known at its end only.
type waits struct {
	events   [wallEvents]*perfdata.Event
	kinds    []switchKind    // by Event.Index
	switches bool            // waits are between switches; else perf has measured them
	clock    *perfdata.Event // whose samples say where threads ran; nil for none
	pc       int             // the bit of the program counter in the masks of registers; 0 if it is not known

	list   []wait    // by number of the sample that begins them
	ratio  []float64 // by number of the thread's life: its time on processors to that of its samples
	owner  []int32   // by number of the sample: the life of its thread
	lives  []*life
	now    map[int]*life   // by thread
	on     map[int32]*life // by processor: the thread that came to it last
	queue  []moment
	newest uint64 // of the round before
	last   uint64
	ticks  []int32 // likewise, of samples of the clock

	nextWait, nextTick int // numbers of the next samples in the second pass

	some                     bool   // perf has measured waits
	unended                  int64  // waits
	unplaced, unsampled, ran uint64 // ns
	amounts                  []perfdata.Amount
}

// A switchKind says what a sample of an event means.
type switchKind uint8

const (
	noSwitch    switchKind = iota
	schedSwitch            // the thread leaves its processor: the tracepoint
	leaves                 // the same, by the kernel's count of context switches
	wakes                  // another thread becomes ready
	measured               // a wait that is over: perf's own
	ticks                  // a sample of the clock
)

// A wait is the time from when a thread left its processor until it was back.
type wait struct {
	blocked, queued uint64
	ran             uint64 // on the processor, until it left
	disk            bool
}

// A life is a thread from its first record to its end.
type life struct {
	number  int32
	on      bool
	cpu     int32  // that it was on last
	since   uint64 // when it came to the processor, or left it
	begun   bool   // since is known
	wait    int32  // that it is in; -1 for none
	unknown bool   // whether it could have run on
	woken   uint64 // when it became ready; 0 for not yet
	dead    bool
	ran     uint64
	sampled float64 // time that samples of the clock stand for
}

// A moment is a change of a thread's state.
type moment struct {
	time   uint64
	tid    int32
	sample int32 // number of the sample; -1 for none
	cpu    int32
	what   momentKind
	state  uint16  // of a momentOut
	period float64 // of a momentTick
}

// The kernel's states of threads, as sched_switch has them. The bits above stateMask say
// that a thread was preempted.
const (
	stateDisk    = 1 << 1
	stateDead    = 1 << 4
	stateZombie  = 1 << 5
	stateMask    = 1<<8 - 1
	stateUnknown = 1 << 15
)

type momentKind uint8

// The order is that of moments of the same time.
const (
	momentSeen momentKind = iota
	momentBorn
	momentWoken
	momentOut
	momentPreempted // a record says that the thread could have run on
	momentIn
	momentTick
	momentDied
)

// Limits of what a file can make waits remember.
const (
	maxWaits   = 1 << 23
	maxLives   = 1 << 18
	maxMoments = 1 << 20
	maxCPUs    = 1 << 14
)

// newWaits returns what finds the waits of a recording; nil if it cannot have any.
func newWaits(in *perfdata.Reader) *waits {
	w := &waits{now: map[int]*life{}, pc: programCounters[in.Features().Arch]}
	found, returns := false, false
	for _, e := range in.Events() {
		k := kindOfSwitch(e)
		if e.Index >= derivedBase-1 {
			break
		}
		w.kinds = append(w.kinds, k)
		switch k {
		case schedSwitch:
			found, returns, w.switches = true, true, true
		case leaves:
			found, w.switches = true, true
		case measured:
			found, returns = true, true
		}
		returns = returns || e.Has(perffile.FlagContextSwitch)
		if runs(e) > runs(w.clock) {
			w.clock = e
		}
	}
	if !found || !returns {
		return nil
	}
	if w.clock != nil {
		w.kinds[w.clock.Index] = ticks
	}
	for i, name := range [wallEvents]string{WallEvent, runningEvent, queueEvent, blockedEvent, diskEvent} {
		w.events[i] = perfdata.NewEvent(perfdata.Attr{}, name, wallBase+i)
		w.events[i].Unit = "ns"
	}
	return w
}

// kind returns what a sample means.
func (w *waits) kind(rec *perfdata.Sample) switchKind {
	if i := rec.Event().Index; i < len(w.kinds) {
		return w.kinds[i]
	}
	return noSwitch
}

// kindOfSwitch returns what a sample of an event means, but for those of the clock.
func kindOfSwitch(e *perfdata.Event) switchKind {
	timed := e.SampleType&(perffile.SampleTID|perffile.SampleTime) == perffile.SampleTID|perffile.SampleTime
	each := !e.Has(perffile.FlagFreq) && e.SamplePeriod == 1
	switch {
	case offCPU(e):
		return measured
	case !timed || !each:
		return noSwitch
	case e.Type == perffile.TypeTracepoint && traceName(e) == "sched:sched_switch":
		return schedSwitch
	case e.Type == perffile.TypeTracepoint && (traceName(e) == "sched:sched_wakeup" || traceName(e) == "sched:sched_wakeup_new"):
		return wakes
	case e.Type == perffile.TypeSoftware && e.Config == softwareContextSwitches:
		return leaves
	}
	return noSwitch
}

// offCPU reports whether samples of an event are waits that perf record --off-cpu measured.
// Those that perf summed up have no times of their own, but times near the largest number.
func offCPU(e *perfdata.Event) bool {
	return e.Type == perffile.TypeSoftware && e.Config == softwareBPFOutput && e.Name == "offcpu-time"
}

// The kernel's numbers of its software events.
const (
	softwareContextSwitches = 3
	softwareBPFOutput       = 10
)

// traceName is the name of a tracepoint without modifiers.
func traceName(e *perfdata.Event) string {
	system, name, _ := strings.Cut(e.Name, ":")
	name, _, _ = strings.Cut(name, ":")
	return system + ":" + name
}

// runs ranks events by how well their samples say where threads run: the clocks, then
// cycles, then what else is sampled at a rate. It is 0 for others.
func runs(e *perfdata.Event) int {
	if e == nil || e.SampleType&(perffile.SampleTID|perffile.SampleTime) != perffile.SampleTID|perffile.SampleTime {
		return 0
	}
	switch {
	case e.Type == perffile.TypeSoftware && e.Config <= 1 && e.SamplePeriod > 0:
		return 3
	case e.Type == perffile.TypeHardware && e.Config&math.MaxUint32 == 0 && e.SamplePeriod > 0:
		return 2
	case e.Type == perffile.TypeRaw && cyclesOf(e) && e.Config&0xffff == 0x3c:
		return 1
	}
	return 0
}

// wait makes the pass that finds the waits, if the recording can have some.
func (r *Reader) wait() error {
	if !r.opts.Waits || !r.rewindable() {
		return nil
	}
	in, err := r.opened()
	if err != nil {
		return err
	}
	var w *waits
	if !in.Pipe() { // its events are known
		if w = newWaits(in); w == nil {
			return nil
		}
	}
	defer in.Close()
	r.unread = nil
	for in.Next() {
		if w == nil {
			if in.Record().Head().Type >= perffile.RecordHeaderAttr {
				continue
			}
			if w = newWaits(in); w == nil {
				return nil
			}
		}
		w.record(in.Record())
	}
	if bad := (*perfdata.Error)(nil); in.Err() != nil && !errors.As(in.Err(), &bad) {
		return in.Err()
	}
	if w != nil && w.end() {
		r.waits = w
	}
	r.endless = w != nil && w.endless()
	return nil
}

// record takes a record in the order of the file.
func (w *waits) record(rec perfdata.Record) {
	switch rec := rec.(type) {
	case *perfdata.Sample:
		w.sample(rec)
	case *perfdata.FinishedRound:
		limit := w.newest
		w.newest = w.last
		w.settle(limit)
	case *perfdata.Switch:
		t := rec.Trailer()
		switch {
		case t.Has&perffile.SampleTID == 0 || t.Has&perffile.SampleTime == 0:
		case rec.Misc&perffile.MiscSwitchOut == 0:
			w.add(moment{time: t.Time, tid: int32(t.TID), cpu: int32(t.CPU), what: momentIn})
		case rec.Misc&perffile.MiscPreempted != 0:
			w.add(moment{time: t.Time, tid: int32(t.TID), what: momentPreempted})
		}
	case *perfdata.Task:
		m := moment{time: rec.Time, tid: int32(rec.TID), what: momentBorn}
		if rec.Type != perffile.RecordFork {
			m.what = momentDied
		}
		if rec.Time > 0 && rec.Misc&perffile.MiscForkExec == 0 {
			w.add(m)
		}
	case *perfdata.Comm:
		if t := rec.Trailer(); t.Time > 0 && rec.Misc&perffile.MiscCommExec != 0 {
			w.add(moment{time: t.Time, tid: int32(rec.TID), what: momentSeen})
		}
	}
}

// sample takes a sample.
func (w *waits) sample(rec *perfdata.Sample) {
	m := moment{time: rec.Time(), tid: int32(rec.TID()), cpu: int32(rec.CPU())}
	switch w.kind(rec) {
	case schedSwitch:
		state, ok := rec.Field("prev_state")
		if !ok {
			state = stateUnknown
		}
		w.leave(m, uint16(state&stateMask))
		if next, ok := rec.Field("next_pid"); ok && int32(next) > 0 {
			w.add(moment{time: m.time, tid: int32(next), cpu: m.cpu, what: momentIn})
		}
	case leaves:
		w.leave(m, stateUnknown)
	case wakes:
		if tid, ok := rec.Field("pid"); ok {
			w.add(moment{time: m.time, tid: int32(tid), what: momentWoken})
		}
	case measured:
		w.some = true
	case ticks:
		if !w.switches {
			return
		}
		if m.what, m.sample, m.period = momentTick, -1, float64(rec.Period()); len(w.ticks) < maxWaits {
			m.sample = int32(len(w.ticks))
		}
		w.ticks = append(w.ticks, -1)
		w.add(m)
	}
}

// leave takes the sample of a thread that leaves its processor.
func (w *waits) leave(m moment, state uint16) {
	if m.what, m.sample, m.state = momentOut, -1, state; len(w.list) < maxWaits {
		m.sample = int32(len(w.list))
		w.list, w.owner = append(w.list, wait{}), append(w.owner, -1)
	} else {
		w.unended++
	}
	w.add(m)
}

// add lets a moment wait for those that precede it.
func (w *waits) add(m moment) {
	if m.tid <= 0 || m.time == 0 {
		return // the idle threads
	}
	if len(w.queue) >= maxMoments {
		w.settle(w.last - (w.last-w.queue[0].time)/2)
	}
	w.last = max(w.last, m.time)
	w.queue = append(w.queue, m)
}

// settle takes the moments up to a time.
func (w *waits) settle(limit uint64) {
	sorting.Stable(w.queue, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.what, b.what))
	})
	n, _ := slices.BinarySearchFunc(w.queue, limit, func(m moment, t uint64) int {
		if m.time <= t {
			return -1
		}
		return 1
	})
	for i := range w.queue[:n] {
		w.take(&w.queue[i])
	}
	w.queue = append(w.queue[:0], w.queue[n:]...)
}

// lifeOf returns the thread of a moment; nil for none that counts.
func (w *waits) lifeOf(m *moment) *life {
	l := w.now[int(m.tid)]
	if l != nil && !l.dead && m.what != momentBorn {
		return l
	}
	ends := m.what == momentDied || m.what == momentWoken || l != nil && m.what == momentIn // after its death
	if ends || len(w.lives) >= maxLives {
		return nil
	}
	l = &life{number: int32(len(w.lives)), wait: -1}
	w.lives, w.now[int(m.tid)] = append(w.lives, l), l
	return l
}

// take takes a moment in the order of time.
func (w *waits) take(m *moment) {
	l := w.lifeOf(m)
	if l == nil {
		return
	}
	switch m.what {
	case momentBorn:
		l.since, l.begun, l.woken = m.time, true, m.time
	case momentSeen:
		if !l.begun {
			l.on, l.begun, l.since = true, true, m.time
		}
	case momentWoken:
		if !l.on && l.woken == 0 {
			l.woken = m.time
		}
	case momentOut:
		w.out(l, m)
	case momentPreempted:
		if !l.on && l.wait >= 0 && l.woken == 0 && l.unknown {
			l.woken = l.since
		}
	case momentIn:
		w.occupy(l, m.cpu)
		w.back(l, m.time)
	case momentTick:
		w.tick(l, m)
	case momentDied:
		w.back(l, m.time)
		l.ran, l.dead, l.on = l.ran+m.time-l.since, true, false
	}
}

// tick takes a sample of the clock: the thread runs.
func (w *waits) tick(l *life, m *moment) {
	if !l.on {
		if l.begun {
			w.lose(l)
		}
		l.on, l.begun, l.since = true, true, m.time
	}
	if l.sampled += m.period; m.sample >= 0 {
		w.ticks[m.sample] = l.number
	}
}

// occupy notes which thread is on a processor. If another one was there, the record of its
// departure is missing. How long it ran is not known then.
func (w *waits) occupy(l *life, cpu int32) {
	if cpu < 0 {
		return
	}
	if w.on == nil {
		w.on = map[int32]*life{}
	}
	if x := w.on[cpu]; x != nil && x != l && x.on && x.cpu == cpu {
		x.on, x.begun = false, false
	}
	if l.cpu = cpu; len(w.on) < maxCPUs {
		w.on[cpu] = l
	}
}

// out has a thread leave its processor.
func (w *waits) out(l *life, m *moment) {
	w.occupy(l, m.cpu)
	if !l.on && l.begun {
		w.lose(l)
	}
	ran := uint64(0)
	if l.on {
		ran = m.time - l.since
		l.ran += ran
	}
	l.on, l.begun, l.since, l.woken, l.wait, l.unknown = false, true, m.time, 0, m.sample, m.state == stateUnknown
	if m.sample >= 0 {
		x := &w.list[m.sample]
		x.ran, x.disk = ran, m.state&stateDisk != 0 && m.state != stateUnknown
		w.owner[m.sample] = l.number
	}
	switch {
	case m.state == stateUnknown:
	case m.state&(stateDead|stateZombie) != 0:
		l.dead, l.wait = true, -1
	case m.state == 0: // it could have run on
		l.woken = m.time
	}
}

// back has a thread return to a processor.
func (w *waits) back(l *life, time uint64) {
	if l.on {
		return
	}
	if l.begun && time > l.since {
		w.waited(l, time)
	}
	l.on, l.begun, l.since, l.woken, l.wait = true, true, time, 0, -1
}

// waited notes that a thread's wait ends.
func (w *waits) waited(l *life, time uint64) {
	woken := l.woken
	if woken == 0 || woken > time {
		woken = time
	}
	if l.wait < 0 {
		w.unplaced += time - l.since
		return
	}
	x := &w.list[l.wait]
	x.blocked, x.queued = woken-l.since, time-woken
}

// lose notes that the end of a thread's wait is missing: nothing of it counts.
func (w *waits) lose(l *life) {
	if l.wait >= 0 {
		w.unended++
	}
	l.wait = -1
}

// endless reports whether most waits have no known end: the recording has departures of threads,
// and not their returns. Then their times are not known.
func (w *waits) endless() bool { return 2*w.unended > int64(len(w.list)) }

// end ends the first pass. It reports whether there are waits.
func (w *waits) end() bool {
	if w.settle(math.MaxUint64); w.endless() {
		return false
	}
	some := w.some
	for _, l := range w.now {
		switch {
		case l.dead || !l.begun:
		case l.on:
			l.ran += w.last - l.since
		default:
			w.waited(l, w.last)
		}
	}
	for i := range w.list {
		some = some || w.list[i].blocked+w.list[i].queued > 0
	}
	w.ratio = make([]float64, len(w.lives))
	for i, l := range w.lives {
		if w.ratio[i] = 1; l.sampled > 0 && l.ran > 0 {
			w.ratio[i] = float64(l.ran) / l.sampled
		}
		if l.sampled == 0 {
			w.unsampled += l.ran
		}
		w.ran += l.ran
	}
	w.now, w.queue = nil, nil
	return some
}

// again begins a pass that asks what samples add.
func (w *waits) again() {
	if w != nil {
		w.nextWait, w.nextTick = 0, 0
	}
}

// of returns what a sample adds to the counts of wall time, in the second pass. It is
// valid until the next call.
func (w *waits) of(rec *perfdata.Sample) []perfdata.Amount {
	if w == nil {
		return nil
	}
	w.amounts = w.amounts[:0]
	switch w.kind(rec) {
	case schedSwitch, leaves:
		n := w.nextWait
		if w.nextWait++; n >= len(w.list) || w.owner[n] < 0 {
			break
		}
		x := &w.list[n]
		w.amount(wallQueue, float64(x.queued))
		if x.disk {
			w.amount(wallDisk, float64(x.blocked))
		} else {
			w.amount(wallBlocked, float64(x.blocked))
		}
		if w.lives[w.owner[n]].sampled == 0 {
			w.amount(wallRunning, float64(x.ran))
		}
	case measured:
		w.amount(wallBlocked, float64(rec.Period()))
	case ticks:
		if !w.switches {
			w.amount(wallRunning, float64(rec.Period()))
			break
		}
		n := w.nextTick
		if w.nextTick++; n < len(w.ticks) && w.ticks[n] >= 0 {
			w.amount(wallRunning, float64(rec.Period())*w.ratio[w.ticks[n]])
		}
	}
	return w.amounts
}

// amount adds to one of the counts, and to all time.
func (w *waits) amount(event int, ns float64) {
	if ns > 0 {
		w.amounts = append(w.amounts, perfdata.Amount{Event: w.events[event], Value: ns}, perfdata.Amount{Event: w.events[wallTime], Value: ns})
	}
}

// exact sets the variances of a row's cells: waits are all there, and only where threads
// ran is known from samples.
func (w *waits) exact(cells []counts.Cell, columns []*perfdata.Event) {
	if w == nil {
		return
	}
	running := -1
	for i, e := range columns {
		if e == w.events[wallRunning] {
			running = i
		}
	}
	for i, e := range columns {
		switch e.Index - wallBase {
		case wallTime:
			if running >= 0 {
				cells[i].Variance = cells[running].Variance
			}
		case wallQueue, wallBlocked, wallDisk:
			cells[i].Variance = 0
		}
	}
}

// place returns where a thread waits: the innermost instruction of the program. The sample
// itself is in the kernel's scheduler.
func (w *waits) place(rec *perfdata.Sample) (ip uint64, misc perfdata.Misc) {
	ip, misc = rec.IP(), rec.Misc
	if k := w.kind(rec); k == measured {
		return ip, misc&^perffile.MiscModeMask | perfdata.Misc(perfdata.ModeUser)
	} else if k != schedSwitch && k != leaves || rec.Mode() == perfdata.ModeUser {
		return ip, misc
	}
	chain := rec.Callchain()
	user := false
	for i := range chain.Len() {
		addr := chain.At(i)
		if user && addr < perffile.ContextMax {
			return addr, misc&^perffile.MiscModeMask | perfdata.Misc(perfdata.ModeUser)
		}
		user = addr == perffile.ContextUser
	}
	abi, regs := rec.RegsUser() // with a copy of the stack
	if mask, pc := rec.Event().RegsUser, uint64(1)<<w.pc; abi == perffile.Regs64 && w.pc > 0 && mask&pc != 0 {
		return regs.At(bits.OnesCount64(mask & (pc - 1))), misc&^perffile.MiscModeMask | perfdata.Misc(perfdata.ModeUser)
	}
	return ip, misc
}

// notes says what of the time has no place.
func (w *waits) notes() []counts.Note {
	if w == nil {
		return nil
	}
	var out []counts.Note
	if !w.switches {
		out = append(out, counts.Notef("waits are as perf measured them: with the run queue, without waits that had not ended, and of programs only"))
	}
	if w.clock == nil {
		out = append(out, counts.Notef("no samples of a clock or of cycles: where threads ran is not known, only where they waited"))
	}
	if w.ran > 0 && float64(w.unsampled) > 0.01*float64(w.ran) {
		out = append(out, counts.Notef("%.1f %% of the time on processors is of threads without a sample of the clock: it counts where they left the processor", 100*float64(w.unsampled)/float64(w.ran)))
	}
	if w.unended > 0 {
		out = append(out, counts.Notef("%d waits have no known end, and do not count: records are missing", w.unended))
	}
	if w.unplaced > 0 {
		out = append(out, counts.Notef("%.3f ms before threads first ran have no place, and do not count", float64(w.unplaced)/1e6))
	}
	return out
}
