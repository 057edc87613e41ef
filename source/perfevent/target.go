package perfevent

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cpulist"
)

// wide says whether processors are counted, whatever runs there.
func (t *Target) wide() bool { return t.All || len(t.CPUs) > 0 }

// tasks says whether processes or threads are counted that run already.
func (t *Target) tasks() bool { return len(t.PIDs)+len(t.TIDs) > 0 }

// ownCommand says whether a command itself is counted, of this target or of the thread.
func (t *Target) ownCommand() bool {
	return (len(t.Command) > 0 || t.Next) && !t.wide() && !t.tasks()
}

// describe says what is counted, for the head of a table.
func (t *Target) describe() string {
	switch {
	case len(t.Command) > 0:
		return strings.Join(t.Command, " ")
	case len(t.Cgroups) > 0:
		return "cgroups " + strings.Join(t.Cgroups, ", ")
	case t.All:
		return "system wide"
	case len(t.CPUs) > 0:
		return "CPU(s) " + cpulist.Format(t.CPUs)
	case len(t.PIDs) > 0:
		return fmt.Sprintf("process id %s", numbers(t.PIDs))
	}
	return fmt.Sprintf("thread id %s", numbers(t.TIDs))
}

func numbers(list []int) string {
	return strings.Trim(fmt.Sprint(list), "[]")
}

// refuse returns a TargetError.
func refuse(format string, args ...any) error {
	return &TargetError{Msg: fmt.Sprintf(format, args...)}
}

// check says what cannot be counted as asked.
func (spec *Spec) check(sys *System) error {
	t := &spec.Target
	if err := t.check(); err != nil {
		return err
	}
	if slices.ContainsFunc(spec.Rotation, func(g int) bool { return g < 0 || g >= len(spec.Groups) }) {
		return refuse("the rotation has groups that do not exist: %v of %d", spec.Rotation, len(spec.Groups))
	}
	if err := spec.checkRuns(); err != nil {
		return err
	}
	if (t.wide() || len(t.OnCPUs) > 0) && len(sys.CPUs) == 0 {
		return errNoCPUs
	}
	if err := checkCPUs(sys, slices.Concat(t.CPUs, t.OnCPUs)); err != nil {
		return err
	}
	return spec.checkKeep(sys)
}

// check says which parts of a target do not go together.
func (t *Target) check() error {
	switch {
	case len(t.Command) == 0 && !t.Next && !t.tasks() && !t.wide():
		return refuse("nothing to count: no command, process, thread, cgroup or processor")
	case t.tasks() && t.wide():
		return refuse("processes and threads are not counted together with processors")
	case len(t.Cgroups) > 0 && !t.wide():
		return &TargetError{Msg: "cgroups are counted on processors", Fix: counts.Fix{Action: counts.CountProcessors}}
	case len(t.OnCPUs) > 0 && t.wide():
		return refuse("OnCPUs limits tasks, and processors are counted")
	}
	return nil
}

// checkRuns says what does not go with several runs, and with scopes of threads and
// cgroups.
func (spec *Spec) checkRuns() error {
	t := &spec.Target
	threads := spec.Keep.Has(counts.Thread)
	if spec.Repeat > 1 || spec.Separate {
		switch {
		case len(t.Command) == 0:
			return refuse("only a command can be run several times")
		case spec.Interval > 0:
			return refuse("intervals of several runs are not the same: choose intervals or runs")
		case threads:
			return refuse("the threads of several runs are not the same: choose threads or runs")
		}
	}
	switch {
	case threads && t.wide():
		return refuse("counts are split by thread for commands, processes and threads, not for processors")
	case spec.Keep.Has(counts.Cgroup) && len(t.Cgroups) == 0:
		return refuse("counts cannot be split by cgroup: no cgroups are given")
	}
	return nil
}

// checkCPUs says which processors cannot be counted on.
func checkCPUs(sys *System, cpus []int) error {
	online := sys.online()
	for _, n := range cpus {
		if !slices.Contains(online, n) {
			return &TargetError{Msg: fmt.Sprintf("processor %d is not online (%s are)", n, cpulist.Format(online)), Err: fs.ErrNotExist}
		}
	}
	return nil
}

// checkKeep says how counts cannot be split: those of a task not by processors, and
// some machines do not say what their processors share.
func (spec *Spec) checkKeep(sys *System) error {
	for _, k := range []struct {
		kind counts.Kind
		of   func(CPU) int
	}{
		{counts.CPU, func(c CPU) int { return c.ID }}, {counts.Core, func(c CPU) int { return c.Core }},
		{counts.Die, func(c CPU) int { return c.Die }}, {counts.Socket, func(c CPU) int { return c.Socket }},
		{counts.Node, func(c CPU) int { return c.Node }},
	} {
		if !spec.Keep.Has(k.kind) {
			continue
		}
		if !spec.Target.wide() {
			return &TargetError{Msg: fmt.Sprintf("counts of tasks cannot be split by %s", k.kind), Fix: counts.Fix{Action: counts.CountProcessors}}
		}
		all, err := sys.Topology()
		if err != nil {
			return err
		}
		for _, c := range all {
			if k.of(c) == counts.Unknown {
				return refuse("this machine does not say the %s of processor %d", k.kind, c.ID)
			}
		}
	}
	return nil
}
