package cli

import (
	"context"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"slices"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// osModel is the method for what the operating system counts.
const osModel = "os-time"

// osEvents are the events of osModel.
var osEvents = []string{"task-clock", "user_time", "system_time", "context-switches", "cpu-migrations", "page-faults", "major-faults"}

// osTimes are those that need no permission.
var osTimes = []string{"user_time", "system_time"}

// unfit says why one of the operating system's events would say something else
// than what it is called, about what is counted here; "" if it would not.
func (j *job) unfit(event string) string {
	switch event {
	case "context-switches", "cpu-migrations":
		// Restricted to user mode they read 0, whatever happened.
		if j.machine.UserOnly() {
			return "it happens in the kernel, which may not be counted"
		}
	case "task-clock", "cpu-clock":
		// On a CPU, and not for a task, the clocks run whether it is idle or not.
		if j.f.machine() && len(j.target.Cgroups) == 0 {
			return "of a CPU it is the time that passes, idle or not"
		}
	}
	return ""
}

// osParts makes the one part of what the operating system counts. It needs
// nothing of the catalogue. The kernel's events are one group, which is read at
// once; software events need no counters and take no turns.
func (j *job) osParts(why string) {
	j.why, j.c.all, j.c.smt = why, true, "" // it does not matter here whether cores are shared
	p := &part{find: sync.OnceValues(j.osSession), names: map[string]string{}}
	var group []perfevent.Event
	for _, name := range osEvents {
		if why := j.unfit(name); why != "" {
			p.notes = append(p.notes, counts.Notef("not counted: %s (%s)", name, why))
			continue
		}
		if ev, err := j.machine.Sys.Resolve(name); err == nil {
			ev.Name, p.names[name] = name, name
			if slices.Contains(osTimes, name) {
				p.always = append(p.always, ev)
			} else {
				group = append(group, ev)
			}
		}
	}
	p.groups = [][]perfevent.Event{group}
	for _, c := range slices.Concat(ostime.Columns[:], ostime.MachineColumns[:]) {
		p.names[c.Event] = c.Event
	}
	j.parts = []*part{p}
}

// begin starts the counters and the program. What the operating system counts is
// joined with what it tells in /proc: what the threads of a program or of processes
// do with their time, or processors. Beside the processor's counters that is an account
// of its own.
func (j *job) begin(ctx context.Context) (counting, error) {
	spec := j.spec()
	watch, attach, end := j.watcher(spec.Delay)
	t := &timed{end: end}
	if j.parts[0].pmu != nil && watch != nil {
		t.times = j.timekeeper(watch)
		watch = t.times
	}
	spec.Observer = watch
	var err error
	if t.counting, err = j.kernel.start(ctx, j.machine.Sys, spec); err != nil {
		end()
		j.times = nil
		return nil, err
	}
	attach()
	return t, nil
}

// watcher returns who watches what is counted; nil if the operating system does not tell
// of it. attach is to be called when the counting has begun, and end at its end.
func (j *job) watcher(delay time.Duration) (w perfevent.Observer, attach, end func()) {
	nothing := func() {}
	switch {
	case j.c.model == resolve.SMTModel: // it divides the processors' time itself
		return nil, nothing, nothing
	case len(j.target.Cgroups) > 0:
		note := counts.Notef("not known: what threads did with their time, as the kernel does not tell of cgroups")
		if p := j.parts[0]; !slices.Contains(p.notes, note) {
			p.notes = append(p.notes, note)
		}
		return nil, nothing, nothing
	case j.f.machine() && j.parts[0].pmu != nil && j.c.nodes != "": // who asks for some figures of a machine gets these
		return nil, nothing, nothing
	case j.f.machine():
		return ostime.NewMachine(j.kernel.root, j.target.CPUs, j.processorPlaces()), nothing, nothing
	}
	threads := ostime.New(j.kernel.root, ostime.Spec{PIDs: j.target.PIDs, TIDs: j.target.TIDs, Alone: j.f.noInherit,
		Delay: delay, Keep: j.by, Interval: j.f.interval > 0, Every: time.Duration(j.f.interval), Summed: j.f.again() != "", Listen: j.kernel.tells})
	if j.ownProgram() {
		return threads, nothing, threads.Close
	}
	return threads, threads.Attach, threads.Close
}

// processorPlaces says in which core, die, socket and node each processor is, if these are
// told apart: to find out means to read many files.
func (j *job) processorPlaces() []counts.Scope {
	if !slices.ContainsFunc([]counts.Kind{counts.Core, counts.Die, counts.Socket, counts.Node}, j.by.Has) {
		return nil
	}
	topology, _ := j.machine.Sys.Topology() // without it the counting does not begin
	places := make([]counts.Scope, len(topology))
	for i, cpu := range topology {
		places[i] = counts.RunScope("")
		places[i].Kind, places[i].CPU, places[i].Core, places[i].Die, places[i].Socket, places[i].Node = counts.CPU, cpu.ID, cpu.Core, cpu.Die, cpu.Socket, cpu.Node
	}
	return places
}

// osTimes leaves of what the operating system counts only what it tells the
// parent of any process that has ended.
func (j *job) osTimes(refused error) {
	p := j.parts[0]
	p.groups = nil
	p.notes = append(p.notes, counts.Notef("of what the kernel counts only user and system time is known, as nothing may be counted (%v)", refused))
}

// beside reports whether the operating system's account stands beside another one.
func (j *job) beside() bool { return j.sim != nil || j.parts[0].pmu != nil }

// osFlags are the flags for what the operating system counts. Beside another account those
// that choose nodes and set parameters are about that.
func (j *job) osFlags() *common {
	if !j.beside() {
		return j.c
	}
	c := *j.c
	c.nodes, c.level, c.params, c.penalties, c.model = "", 0, nil, "", ""
	return &c
}

// osSession finds the method for what the operating system counts.
func (j *job) osSession() (*session, error) {
	cat, err := j.catalogue()
	if err != nil {
		return nil, err
	}
	s := &session{c: j.osFlags(), cat: cat}
	if s.cpu, err = cat.CPU(resolve.GenericCPU); err != nil {
		return nil, err
	}
	if s.events, err = cat.Events(s.cpu); err != nil { // it needs none of a real processor's
		return nil, err
	}
	s.events = s.events.Unrelated() // none is between the operating system's
	if s.model, err = cat.Model(osModel, resolve.GenericCPU); err != nil {
		return nil, err
	}
	switch id, err := model.HostID(j.machine.Root); {
	case j.c.cpu != "":
		if s.cpu, err = cat.CPU(j.c.cpu); err != nil {
			return nil, usageError("--cpu: %v", err)
		}
	case err == nil:
		if cpu, err := cat.CPU(id); err == nil {
			s.cpu = cpu
		}
	}
	if err := s.checkNodes(); err != nil {
		return nil, err
	}
	s.params, err = s.parameters(s.model)
	return s, err
}
