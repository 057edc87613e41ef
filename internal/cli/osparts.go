package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/cyclestack/cyclestack/internal/live"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/ostime"
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
			p.notes = append(p.notes, fmt.Sprintf("not counted: %s (%s)", name, why))
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
	for _, c := range ostime.Columns {
		p.names[c.Event] = c.Event
	}
	j.parts = []*part{p}
}

// begin starts the counters and the program. What the operating system counts is
// joined with what it tells in /proc: what the threads of a program or of processes
// do with their time. Of the machine or of cgroups it tells no such thing.
func (j *job) begin(ctx context.Context) (counting, error) {
	spec := j.spec()
	if j.parts[0].pmu != nil || j.f.machine() || len(j.target.Cgroups) > 0 {
		return j.kernel.start(ctx, j.machine.Sys, spec)
	}
	w := ostime.New(j.kernel.root, ostime.Spec{PIDs: j.target.PIDs, TIDs: j.target.TIDs, Alone: j.f.noInherit, Delay: spec.Delay,
		Keep: j.by, Interval: spec.Interval > 0})
	spec.Witness = w
	run, err := j.kernel.start(ctx, j.machine.Sys, spec)
	if err != nil {
		w.Close()
		return nil, err
	}
	if !j.ownProgram() {
		w.Attach()
	}
	return &timed{counting: run, watch: w}, nil
}

// A timed is a counting beside which somebody watches.
type timed struct {
	counting
	watch *ostime.Watch
}

func (t *timed) Close() error {
	t.watch.Close()
	return t.counting.Close()
}

// osTimes leaves of what the operating system counts only what it tells the
// parent of any process that has ended.
func (j *job) osTimes(refused error) {
	p := j.parts[0]
	p.groups = nil
	p.notes = append(p.notes, fmt.Sprintf("of what the kernel counts only user and system time is known, as nothing may be counted (%v)", refused))
}

// osFlags are the flags for what the operating system counts. Beside a simulation those
// that choose nodes and set parameters are about that.
func (j *job) osFlags() *common {
	if j.sim == nil {
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
	if s.cpu, err = cat.CPU(live.GenericCPU); err != nil {
		return nil, err
	}
	if s.events, err = cat.Events(s.cpu); err != nil { // it needs none of a real processor's
		return nil, err
	}
	if s.model, err = cat.Model(osModel, live.GenericCPU); err != nil {
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
	if err := j.checkNodes(s); err != nil && j.sim == nil {
		return nil, err
	}
	s.params, err = s.parameters(s.model)
	return s, err
}
