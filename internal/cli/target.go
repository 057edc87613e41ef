package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/amount"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// targetFlags say what is counted, in perf's letters.
type targetFlags struct {
	all     bool
	cpus    string
	pids    string
	tids    string
	cgroups []string

	noAggr                              bool
	perCore, perDie, perSocket, perNode bool
	perThread                           bool

	interval, timeout, delay millis
}

// addCPUs adds the flags that count CPUs, and those that say when.
func (f *targetFlags) addCPUs(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&f.all, "all-cpus", "a", false, "count the whole machine")
	flags.StringVarP(&f.cpus, "cpu-list", "C", "", "count everything on these CPUs: `0-3,8`")
	flags.VarP(&f.interval, "interval", "I", "print an account every so many `MS`")
	flags.Var(&f.timeout, "timeout", "stop after so many `MS`")
	flags.VarP(&f.delay, "delay", "D", "begin to count after so many `MS`")
}

// addTasks adds the flags that count tasks, and those that split by them.
func (f *targetFlags) addTasks(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.pids, "pid", "p", "", "count processes that run, by their `PIDS`: 1234,1240")
	flags.StringVarP(&f.tids, "tid", "t", "", "count threads that run, by their `TIDS`")
	flags.VarP((*nameList)(&f.cgroups), "cgroup", "G", "count `CGROUPS`, by their paths below /sys/fs/cgroup")
	flags.BoolVarP(&f.noAggr, "no-aggr", "A", false, "an account for each CPU")
	flags.BoolVar(&f.perCore, "per-core", false, "an account for each core")
	flags.BoolVar(&f.perDie, "per-die", false, "an account for each die")
	flags.BoolVar(&f.perSocket, "per-socket", false, "an account for each socket")
	flags.BoolVar(&f.perNode, "per-node", false, "an account for each NUMA node")
	flags.BoolVar(&f.perThread, "per-thread", false, "an account for each thread")
}

// tasks reports whether processes or threads that run already are to be counted.
func (f *targetFlags) tasks() bool { return f.pids != "" || f.tids != "" }

// machine reports whether CPUs are to be counted, whatever runs on them.
func (f *targetFlags) machine() bool { return f.all || f.cpus != "" }

// check refuses what contradicts itself. A program next to another target only says how long
// to count.
func (f *targetFlags) check(program []string) error {
	switch {
	case f.pids != "" && f.tids != "":
		return usageError("-p and -t: one of them; -p counts all threads of a process")
	case f.all && f.tasks():
		return usageError("-a and -p or -t: the whole machine, or some of what runs on it")
	case f.all && f.cpus != "":
		return usageError("-a and -C: all CPUs, or some")
	case f.cpus != "" && f.tasks():
		return usageError("-C and -p or -t: what runs on some CPUs, or some processes wherever they run")
	case len(f.cgroups) > 0 && f.tasks():
		return usageError("-G and -p or -t: cgroups, or processes")
	case f.perThread && (f.machine() || len(f.cgroups) > 0):
		return usageError("--per-thread: threads of a program, or of -p or -t; not of -a, -C or -G")
	case f.byCPUs() && !f.machine():
		return usageError("%s counts CPUs: add -a or -C", f.byCPUsFlag())
	case len(program) == 0 && !f.machine() && !f.tasks() && len(f.cgroups) == 0:
		return usageError("nothing to count: name a program, or -p, -t, -G, -a or -C")
	case len(program) > 0 && program[0] == "":
		return usageError("the name of the program is empty")
	}
	return nil
}

func (f *targetFlags) byCPUs() bool { return f.byCPUsFlag() != "" }

// byCPUsFlag returns the flag that splits by CPUs, "" if none does.
func (f *targetFlags) byCPUsFlag() string {
	for _, by := range f.kinds() {
		if by.on && by.kind != counts.Thread {
			return by.flag
		}
	}
	return ""
}

type kindFlag struct {
	on   bool
	flag string
	kind counts.Kind
}

func (f *targetFlags) kinds() []kindFlag {
	return []kindFlag{{f.noAggr, "-A", counts.CPU}, {f.perCore, "--per-core", counts.Core}, {f.perDie, "--per-die", counts.Die},
		{f.perSocket, "--per-socket", counts.Socket}, {f.perNode, "--per-node", counts.Node}, {f.perThread, "--per-thread", counts.Thread}}
}

// by returns the scopes to split by: those of --by, and those of perf's flags. Intervals are
// split if there are any, and so are several cgroups.
func (f *targetFlags) by(text string) (counts.By, error) {
	by, err := parseBy(text)
	if err != nil {
		return by, err
	}
	if by.Has(counts.Interval) && f.interval == 0 {
		return by, usageError("--by interval: say with -I how long one is")
	}
	for _, k := range f.kinds() {
		if k.on {
			by = by.With(k.kind)
		}
	}
	for _, k := range []counts.Kind{counts.CPU, counts.Core, counts.Die, counts.Socket, counts.Node} {
		if by.Has(k) && !f.machine() {
			return by, usageError("--by %s counts CPUs: add -a or -C", k)
		}
	}
	switch {
	case by.Has(counts.Thread) && (f.machine() || len(f.cgroups) > 0):
		return by, usageError("--by thread: threads of a program, or of -p or -t; not of -a, -C or -G")
	case by.Has(counts.Cgroup) && len(f.cgroups) == 0:
		return by, usageError("--by cgroup: name the cgroups with -G")
	}
	if len(f.cgroups) > 1 {
		by = by.With(counts.Cgroup)
	}
	if f.interval > 0 {
		by = by.With(counts.Interval)
	}
	return by, nil
}

// target returns what the flags and the program say is to be counted.
func (f *targetFlags) target(program []string) (t perfevent.Target, err error) {
	t.Command, t.All, t.Cgroups = program, f.all, f.cgroups
	if t.PIDs, err = amount.Numbers(f.pids, false); err != nil {
		return t, usageError("-p %v", err)
	}
	if t.TIDs, err = amount.Numbers(f.tids, false); err != nil {
		return t, usageError("-t %v", err)
	}
	if t.CPUs, err = amount.Numbers(f.cpus, true); err != nil {
		return t, usageError("-C %v", err)
	}
	// Cgroups are counted on CPUs: on all of them, unless some are named.
	if len(t.Cgroups) > 0 && len(t.CPUs) == 0 {
		t.All = true
	}
	return t, nil
}

// label names a target.
func (f *targetFlags) label(program []string) string {
	switch {
	case len(f.cgroups) > 0:
		return "cgroup " + strings.Join(f.cgroups, ", ")
	case f.all:
		return "the whole machine"
	case f.cpus != "":
		return "CPU " + f.cpus
	case f.pids != "":
		return "process " + f.pids
	case f.tids != "":
		return "thread " + f.tids
	}
	return oneLine(strings.Join(program, " "))
}

// millis is a flag of a time: a number of milliseconds, as perf has it, or a
// duration such as 1.5s.
type millis time.Duration

func (m *millis) String() string {
	if *m == 0 {
		return ""
	}
	return time.Duration(*m).String()
}

func (m *millis) Type() string { return "MS" }

func (m *millis) Set(text string) error {
	d, err := amount.Time(text)
	*m = millis(d)
	return err
}

// A nameList is a flag of names, several by commas. It may be repeated.
type nameList []string

func (n *nameList) String() string { return strings.Join(*n, ",") }

func (n *nameList) Type() string { return "NAMES" }

func (n *nameList) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		switch {
		case name == "":
			return errors.New("a name is missing, before or behind a comma")
		case strings.ContainsAny(name, "\n\x00"):
			return errors.New("a name has a line break")
		}
		*n = append(*n, name)
	}
	return nil
}
