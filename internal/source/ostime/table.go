package ostime

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// Columns are the columns that Join adds, by the names that models know. Times
// are in nanoseconds.
var Columns = [...]counts.Column{
	threadTime:    {Event: "thread_time", Unit: "ns"},                       // lifetime of the threads
	threadRun:     {Event: "thread_run", Unit: "ns"},                        // of that, running
	runqueueWait:  {Event: "runqueue_wait", Unit: "ns"},                     // of that, in the run queue
	ioWait:        {Event: "io_wait", Unit: "ns"},                           // of that, blocked by block devices
	threadUser:    {Event: "thread_user", Unit: "ns", Whole: threadTimes},   // in user mode, to the tick unless the parent was told
	threadSystem:  {Event: "thread_system", Unit: "ns", Whole: threadTimes}, // in the kernel, likewise
	voluntary:     {Event: "voluntary_switches"},                            // a thread blocked, or gave way
	involuntary:   {Event: "involuntary_switches"},                          // its time was up, or another was more urgent
	machineTime:   {Event: "machine_time", Unit: "ns"},                      // of all processors of the machine, to the tick
	stealTime:     {Event: "steal_time", Unit: "ns"},                        // of that, taken by the hypervisor for others
	throttledTime: {Event: "cgroup_throttled", Unit: "ns"},                  // processors were throttled by the cgroup's limit
	maxResident:   {Event: "max_resident", Unit: "bytes"},                   // memory of the process with the most
}

// Indexes of Columns.
const (
	threadTime = iota
	threadRun
	runqueueWait
	ioWait
	threadUser
	threadSystem
	voluntary
	involuntary
	machineTime
	stealTime
	throttledTime
	maxResident
)

// A row is what the threads of a scope did, by column. NaN is not known.
type row struct {
	values   [len(Columns)]float64
	variance float64 // of thread_time
	coarse   float64 // variance of thread_user and of thread_system, as /proc has them in whole ticks
	later    bool    // the machine is asked about again only for a later table
}

// rowOf adds up what threads did since the last table, and those that have ended
// and are not kept apart.
func (w *Watch) rowOf(tasks []*task) *row {
	r := &row{}
	switch {
	case w.tasks.sum != nil:
		*r = *w.tasks.sum
	case len(tasks) == 0: // nobody has looked
		for c := range r.values {
			r.values[c] = math.NaN()
		}
		return r
	}
	for _, t := range tasks {
		r.add(t)
	}
	if w.host.noSched != nil {
		r.values[runqueueWait] = math.NaN()
	}
	if w.host.noIO != "" {
		r.values[ioWait] = math.NaN()
	}
	for _, c := range []int{machineTime, stealTime, throttledTime, maxResident} {
		r.values[c] = math.NaN()
	}
	return r
}

// add adds what a thread did since the last table.
func (r *row) add(t *task) {
	n, b, v := &t.now, &t.base, &r.values
	busy := n.run - b.run + n.wait - b.wait
	v[threadTime] += nanos(max(t.last-t.from, busy)) // if that is more, it began earlier in the tick
	r.variance += uniform(t.unsure)
	r.coarse += 2 * uniform(tick) // at both ends
	v[threadRun] += nanos(n.run - b.run)
	v[runqueueWait] += nanos(n.wait - b.wait)
	v[ioWait] += nanos(n.io - b.io)
	v[threadUser] += nanos(n.user - b.user)
	v[threadSystem] += nanos(n.system - b.system)
	if !n.switches || t.rebased && !b.switches {
		v[voluntary], v[involuntary] = math.NaN(), math.NaN()
		return
	}
	v[voluntary] += float64(n.voluntary) - float64(b.voluntary)
	v[involuntary] += float64(n.involuntary) - float64(b.involuntary)
}

// put writes a row into a table whose last columns are Columns.
func (r *row) put(cells []counts.Cell) {
	cells = cells[len(cells)-len(Columns):]
	for i, v := range r.values {
		if cells[i] = (counts.Cell{State: counts.NotSupported}); !math.IsNaN(v) {
			cells[i] = counts.Cell{State: counts.Counted, Value: v}
		}
	}
	if r.later {
		cells[machineTime].State, cells[stealTime].State = counts.NotCounted, counts.NotCounted
	}
	cells[threadTime].Variance = r.variance
	divided := r.coarse + TickVariance(time.Duration(r.values[threadUser]), time.Duration(r.values[threadSystem]))
	cells[threadUser].Variance, cells[threadSystem].Variance = divided, divided
}

// Join returns a table with the cells of another one and with Columns. These cover the
// time since the last call or since the command started. Join polls a last time what
// still runs.
//
// If the Spec splits by thread, the rows are those of the other table, which has seen
// each thread begin. If it splits by process, each process has its own row. Tables of
// intervals are valid until the next call.
func (w *Watch) Join(t *counts.Table) *counts.Table {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.surroundings()
	switch {
	case w.begun && w.spec.Interval && asleep(t):
		w.sleep()
	default:
		w.hear()
		if w.begun {
			w.scan(true)
		}
	}
	var out *counts.Table
	switch {
	case w.spec.Keep.Has(counts.Process):
		out = w.processes(t)
	case w.spec.Keep.Has(counts.Thread):
		out = w.threadRows(t)
	default:
		out = w.whole(t)
	}
	w.renew()
	return out
}

// asleep reports whether nothing ran of what a table's events were counted of: those of
// threads are enabled only while these are on a processor.
func asleep(t *counts.Table) bool {
	counted := false
	for row := range t.Scopes {
		for i, c := range t.Row(row) {
			if !c.Ok() || t.Columns[i].Event == "duration_time" {
				continue
			}
			if c.Value != 0 || c.Enabled != 0 {
				return false
			}
			counted = true
		}
	}
	return counted
}

// sleep accounts for a time without running threads. Only their time and their
// throttling can have changed.
func (w *Watch) sleep() {
	w.before, w.looked = w.looked, w.clock()
	if w.host.throttle.limited {
		w.lookAtLimit()
	}
	for _, t := range w.tasks.live {
		if t.looked && !t.ended {
			t.last = w.looked
		}
	}
}

// all are the threads that there were since the last table.
func (w *Watch) all() []*task {
	list := slices.Clone(w.tasks.past)
	for _, t := range w.tasks.live {
		list = append(list, t)
	}
	sorting.Sort(list, func(a, b *task) int { return a.tid - b.tid })
	return list
}

// renew starts the time of the next table.
func (w *Watch) renew() {
	for _, t := range w.tasks.live {
		t.from, t.base, t.unsure, t.rebased = t.last, t.now, 0, true
	}
	w.tasks.past, w.tasks.sum = nil, nil
	w.host.throttle.sum = 0
}

// extend returns a table with the columns of another one, Columns and some scopes. The
// cells are empty.
func (w *Watch) extend(t *counts.Table, scopes []counts.Scope) *counts.Table {
	if w.table.of != t.Layout || w.table.layout == nil || !slices.Equal(w.table.layout.Scopes, scopes) {
		w.table.of = t.Layout
		w.table.layout = extended(&counts.Layout{Columns: t.Columns, Scopes: scopes}, Columns[:])
	}
	if w.table.out == nil || !w.spec.Interval { // those of runs are joined: each stays valid
		w.table.out = counts.NewTable(w.table.layout)
	}
	w.table.out.Reset(w.table.layout)
	describe(w.table.out, t)
	return w.table.out
}

// extended is a layout with further columns.
func extended(l *counts.Layout, columns []counts.Column) *counts.Layout {
	return &counts.Layout{Columns: slices.Concat(l.Columns, columns), Scopes: slices.Clone(l.Scopes)}
}

// describe has a table be about the same as another one.
func describe(out, t *counts.Table) {
	out.Label, out.Start, out.Duration, out.Interval, out.CPU = t.Label, t.Start, t.Duration, t.Interval, t.CPU
	out.Elapsed, out.Relative, out.Line, out.Notes = t.Elapsed, t.Relative, t.Line, slices.Clone(t.Notes)
}

// whole puts what all threads did together into the first row.
func (w *Watch) whole(t *counts.Table) *counts.Table {
	out := w.extend(t, t.Scopes)
	for i := range t.Scopes {
		copy(out.Row(i), t.Row(i))
	}
	if len(t.Scopes) == 0 {
		return out
	}
	r := w.rowOf(w.all())
	w.around(r)
	out.Notes = append(out.Notes, w.add(r, w.processorTime(t))...)
	r.put(out.Row(0))
	out.Notes = append(out.Notes, w.unknown()...)
	return out
}

// around adds what is not of single threads.
func (w *Watch) around(r *row) {
	if !w.host.brief { // else these are two readings at one moment
		w.stolen(r)
		if w.host.throttle.seen && w.host.throttle.limited {
			r.values[throttledTime] = nanos(w.host.throttle.sum)
		}
	}
	if w.spec.Interval {
		return // these are known of the whole run; and maxima of intervals do not add up
	}
	if w.use.resident > 0 && !w.spec.Summed {
		r.values[maxResident] = w.use.resident
	}
	if w.use.known {
		r.values[threadUser], r.values[threadSystem], r.coarse = nanos(w.use.spent[0]), nanos(w.use.spent[1]), 0
		r.values[voluntary], r.values[involuntary] = w.use.switches[0], w.use.switches[1]
		if math.IsNaN(r.values[threadRun]) { // nobody has looked
			r.values[threadRun] = nanos(w.use.spent[0] + w.use.spent[1])
		}
	}
}

// stealEvery is how long /proc/stat is not read again. Its times are in ticks of 10 ms.
// It is slow to read, as the kernel adds all that it knows of interrupts. Each interval
// of a second has a reading, even if it ends a little early.
const stealEvery = 900 * time.Millisecond

// stolen adds what the machine's processors did since the last table that has it.
func (w *Watch) stolen(r *row) {
	if w.spec.Interval && w.host.asked != 0 && w.looked-w.host.asked < stealEvery {
		r.later = true
		return
	}
	w.host.asked = w.looked
	m, err := w.proc.machine(&w.host.procstat)
	if err != nil {
		w.host.err = err
		return
	}
	last := w.host.machine
	if w.host.err != nil || m.all <= last.all || m.steal < last.steal {
		return
	}
	if w.host.machine = m; last.all > 0 { // else nothing was read before: the runs until now were brief
		r.values[machineTime], r.values[stealTime] = nanos(m.all-last.all), nanos(m.steal-last.steal)
	}
}

// processorTime is how long all threads ran, in nanoseconds, those not looked at
// too: as the kernel has counted for the table, or told the parent of the command.
func (w *Watch) processorTime(t *counts.Table) float64 {
	for i, c := range t.Columns {
		if cell := t.Cell(0, i); c.Event == "task-clock" && cell.Ok() {
			return cell.Value
		}
	}
	return nanos(w.use.spent[0] + w.use.spent[1])
}

// missedMost is the share of processor time that may be missed without a note: the
// kernel's two accounts of it begin at different moments.
const missedMost = 0.01

// add adds the time of threads that ran between two looks. They existed for at least as
// long as they ran. The kernel's record of a thread that ended has its lifetime and its
// waiting exactly. Its running time ends with the last tick. The missing part of that is
// taken from the time that seemed blocked.
func (w *Watch) add(r *row, ran float64) []counts.Note {
	missed := ran - r.values[threadRun]
	if !(missed > 0) {
		return nil
	}
	if w.exits.listens() {
		late := min(missed, max(0, r.values[threadTime]-r.values[threadRun]-r.values[runqueueWait]))
		r.values[threadRun] += late
		if missed -= late; !(missed > 0) {
			return nil
		}
	}
	r.values[threadRun] += missed
	r.values[threadTime] += missed
	return w.missed(missed, ran)
}

// missed returns the part of the processor time whose threads' other times are not known,
// if that matters.
func (w *Watch) missed(missed, ran float64) []counts.Note {
	if !(missed > missedMost*ran && missed > nanos(time.Millisecond)) {
		return nil
	}
	return []counts.Note{counts.Notef("%.0f %% of the processor time was used by threads that were not observed: "+
		"their blocked and waiting times are missing (%s)", 100*missed/ran, w.exits.unheard())}
}

// threadRows adds to each thread of a table what it did.
func (w *Watch) threadRows(t *counts.Table) *counts.Table {
	out := w.extend(t, t.Scopes)
	byTID := map[int][]*task{}
	for _, task := range w.all() {
		byTID[task.tid] = append(byTID[task.tid], task)
	}
	missed := 0
	for i := range t.Scopes {
		copy(out.Row(i), t.Row(i))
		if tasks := byTID[t.Scopes[i].TID]; len(tasks) > 0 {
			w.rowOf(tasks).put(out.Row(i))
		} else if t.Scopes[i].TID > 0 {
			missed++
		}
	}
	if missed > 0 && !w.spec.Interval {
		out.Notes = append(out.Notes, counts.Notef("%d of %d threads ended before they were looked at (every %v): how long they waited is not known",
			missed, len(t.Scopes), Every))
	}
	out.Notes = append(out.Notes, w.unknown()...)
	return out
}

// processes makes a table with a row for each process.
func (w *Watch) processes(t *counts.Table) *counts.Table {
	var scopes []counts.Scope
	tasks := map[int][]*task{}
	for _, task := range w.all() {
		tasks[task.pid] = append(tasks[task.pid], task)
	}
	for _, task := range w.all() {
		if list := tasks[task.pid]; list[0] != task {
			continue
		}
		s := counts.RunScope(fmt.Sprintf("%s-%d", task.name, task.pid))
		s.Kind, s.TID = counts.Process, task.pid
		scopes = append(scopes, s)
	}
	if w.table.none == nil || !slices.Equal(w.table.none.Scopes, scopes) {
		w.table.none = &counts.Layout{Scopes: scopes} // what was counted is not known by process
	}
	bare := *t
	bare.Layout = w.table.none
	out := w.extend(&bare, scopes)
	seen := 0.0
	for i := range scopes {
		r := w.rowOf(tasks[scopes[i].TID])
		seen += r.values[threadRun]
		r.put(out.Row(i))
	}
	if len(t.Scopes) > 0 {
		out.Notes = append(out.Notes, w.missed(w.processorTime(t)-seen, w.processorTime(t))...)
	}
	out.Notes = append(out.Notes, w.unknown()...)
	return out
}

// unknown says what the kernel does not tell, and what would change that.
func (w *Watch) unknown() (notes []counts.Note) {
	add := func(what, why string) { notes = append(notes, counts.Notef("%s", unknown(what, why))) }
	if w.host.noSched != nil {
		add("waiting for a processor", w.host.noSched.Error()+": it needs a kernel with CONFIG_SCHED_INFO")
	}
	if w.host.noIO != "" {
		notes = append(notes, counts.Notef("%s", w.host.noIO))
	}
	if w.host.err != nil {
		add("stolen time", w.host.err.Error())
	}
	if w.host.throttle.err != nil {
		add("throttling", w.host.throttle.err.Error())
	}
	if w.tasks.lost > 0 {
		notes = append(notes, counts.Notef("of more than %d threads the others were not looked at", maxTasks))
	}
	return notes
}

// unknown is the note about what is not known.
func unknown(what, why string) string { return fmt.Sprintf("not known: %s (%s)", what, why) }
