package measure

import (
	"github.com/cyclestack/cyclestack/internal/perffile"
)

// The events of switches between threads, and of threads that become ready.
const (
	switchEvent = "sched:sched_switch"
	wakeupEvent = "sched:sched_wakeup"
	leaveEvent  = "context-switches" // where tracepoints cannot be read
)

// offCPU adds the events that say where threads wait, and a clock that says where they run.
func (r *Recording) offCPU() error {
	if !r.options.OffCPU {
		return nil
	}
	sys := r.m.machine.Sys
	if !r.clocked() {
		rate := uint64(usualRate)
		if r.freq {
			rate = r.rate
		}
		groups, err := sys.ResolveSampled(clockEvent, rate, true)
		if err != nil {
			return err
		}
		r.spec.Groups = append(r.spec.Groups, groups...)
	}
	t := &r.options.Target
	r.spec.Switches = r.spec.Switches || !t.All && len(t.CPUs) == 0
	r.spec.Callchains = true
	groups, err := sys.ResolveSampled(switchEvent+","+wakeupEvent, 1, false)
	if err == nil {
		// The stack of who wakes a thread is not that of the thread.
		a := &groups[1][0].Attr
		a.ExcludeCallchainUser, a.ExcludeCallchainKernel = true, true
	} else {
		r.note("waits are recorded by %s, without their kind: %v", leaveEvent, err)
		r.spec.Switches = true
		if groups, err = sys.ResolveSampled(leaveEvent, 1, false); err != nil {
			return err
		}
	}
	r.spec.Groups = append(r.spec.Groups, groups...)
	return nil
}

// clocked reports whether a clock is sampled.
func (r *Recording) clocked() bool {
	const clocks = 1 // cpu-clock and task-clock are the first of the kernel's events
	for _, g := range r.spec.Groups {
		for i := range g {
			if a := &g[i].Attr; a.Type == perffile.TypeSoftware && a.Config <= clocks && a.Sample > 0 {
				return true
			}
		}
	}
	return false
}
