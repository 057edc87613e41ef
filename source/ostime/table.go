package ostime

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// Columns are the columns that Join adds, by the names that models know. Times
// are in nanoseconds.
var Columns = []counts.Column{
	{Event: "thread_time", Unit: "ns"},        // time that threads existed
	{Event: "thread_run", Unit: "ns"},         // of that, on a processor
	{Event: "runqueue_wait", Unit: "ns"},      // of that, waiting for one
	{Event: "io_wait", Unit: "ns"},            // of that, blocked by block devices
	{Event: "thread_user", Unit: "ns"},        // in user mode, to the tick
	{Event: "thread_system", Unit: "ns"},      // in the kernel, to the tick
	{Event: "voluntary_switches"},             // a thread blocked, or gave way
	{Event: "involuntary_switches"},           // its time was up, or another one was more urgent
	{Event: "machine_time", Unit: "ns"},       // of all processors of the machine, to the tick
	{Event: "steal_time", Unit: "ns"},         // of that, taken by the hypervisor for others
	{Event: "cgroup_throttled", Unit: "ns"},   // the program's cgroup had used up its processor time
	{Event: "max_resident", Unit: "bytes"},    // memory of the largest process
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

// A run is what a run of a command comes to, by column; NaN where not known.
type run []float64

// A sum is what the threads of a scope did.
type sum struct {
	cells    [len12]float64
	variance float64 // of thread_time
	switches bool
	tasks    int
}

const len12 = maxResident + 1

// add adds what a thread did since the last table.
func (s *sum) add(t *task) {
	n, b := &t.now, &t.base
	s.tasks++
	life := max(t.last-t.from, n.run-b.run+n.wait-b.wait) // it began earlier than the middle of the tick
	s.cells[threadTime] += nanos(life)
	s.variance += uniform(t.unsure)
	s.cells[threadRun] += nanos(n.run - b.run)
	s.cells[runqueueWait] += nanos(n.wait - b.wait)
	s.cells[ioWait] += nanos(n.io - b.io)
	s.cells[threadUser] += nanos(n.user - b.user)
	s.cells[threadSystem] += nanos(n.system - b.system)
	s.cells[voluntary] += float64(n.voluntary - b.voluntary)
	s.cells[involuntary] += float64(n.involuntary - b.involuntary)
	s.switches = s.switches && n.switches
}

// renew makes this the moment from which a thread's time counts.
func (t *task) renew() { t.from, t.base, t.unsure = t.last, t.now, 0 }

// Join returns a table with the columns of another one, and those of Columns, of
// the time since the last call. It looks at the threads that run.
func (w *Watch) Join(t *counts.Table) *counts.Table {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		w.scan()
	}
	all := slices.Concat(w.past, w.alive())
	out := w.extended(t)
	notes := slices.Clone(t.Notes)
	var whole sum
	whole.switches = true
	rows := map[int]*sum{}
	for _, task := range all {
		whole.add(task)
		key := task.tid
		if w.spec.Keep.Has(counts.Process) {
			key = task.pid
		}
		if rows[key] == nil {
			rows[key] = &sum{switches: true}
		}
		rows[key].add(task)
	}
	apart := w.spec.Keep.Has(counts.Thread) || w.spec.Keep.Has(counts.Process)
	var missing []string
	if apart {
		notes = w.apart(out, rows, notes, &missing)
	} else {
		notes = w.whole(out, &whole, notes, &missing)
	}
	if len(missing) > 0 {
		notes = append(notes, missing...)
	}
	if w.lost > 0 {
		notes = append(notes, fmt.Sprintf("%d threads more than %d at one time were not looked at", w.lost, maxTasks))
	}
	out.Notes = notes
	for _, task := range w.tasks {
		task.renew()
	}
	w.past = nil
	return out
}
