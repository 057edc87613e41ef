package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/hotspots"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/measure/clocked"
	"github.com/cyclestack/cyclestack/internal/measure/simulated"
	"github.com/cyclestack/cyclestack/internal/release"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/report"
)

// statFlags are the flags of stat alone.
type statFlags struct {
	targetFlags
	source       string
	events       []string
	repeat       int
	separate     bool // --no-multiplex
	drilldown    bool
	user, kernel bool
	split        bool
	noInherit    bool
	simulator    string // qemu or valgrind; "" is the best
	keep         string // the simulator's files
	old          bool   // what was in their place is kept
	unplaced     bool   // --no-places
	unkept       bool   // --no-keep
	caches       string
}

var sources = []string{string(measure.Auto), string(measure.PMU), string(measure.Simulated), string(measure.OS)}

func (a *app) stat() *cobra.Command {
	c, f := &common{}, &statFlags{}
	cmd := &cobra.Command{
		Use:     "stat [flags] [--] PROGRAM ARGS…",
		GroupID: "account",
		Short:   "Count a program, processes or the machine, and print the account",
		Long: `stat counts with the processor's counters and prints the account: of a program
that it starts, of processes, threads or cgroups that run, of CPUs or of the
whole machine. The account goes to standard error, so that the program's output
stays what it is. The program's exit status is passed on.

The nodes to be seen decide which events are counted, and in what groups: see
'cyclestack plan'. Without --level it is as deep as some seconds of
counting can tell. Next to -a, -C, -G, -p or -t a program only says for how long.

Events of your own (-e) are counted instead of these. With --model, --level or
--nodes they are counted in addition.

Next to the cycles stands what the threads did with their time, as the operating
system tells. Of a program that mostly waited that comes first. The clock takes
samples of the same run: they show the functions, lines and loops that the time was
spent in. They need no counter; --no-places leaves them out.

Where the processor's counters cannot be used, the operating system counts the same
run. The first line says which source it was, and why not the better one: 'cyclestack
doctor' knows what would change that. If --source names a source, it is taken or nothing runs.
--source simulated runs the program again in a simulator, without output: that is
'cyclestack simulate'.`,
		Example: `  cyclestack stat -- ./solver input.csv
  cyclestack stat --level 3 -r 5 -- ./solver input.csv       the mean of five runs, with errors
  cyclestack stat --drilldown -- ./solver input.csv          runs it again, level by level
  cyclestack stat -e page-faults,'{cycles,instructions}:u' -- ./solver input.csv
  cyclestack stat -a --per-core -o machine.txt -- sleep 10
  cyclestack stat -p 1234 -I 1000 --format csv -o account.csv
  cyclestack stat --source simulated --keep solver.callgrind -- ./solver input.csv`,
		RunE: func(cmd *cobra.Command, program []string) error { return a.runStat(cmd.Context(), c, f, program) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	f.addTasks(cmd)
	f.addCPUs(cmd)
	flags.StringArrayVarP(&f.events, "event", "e", nil, "count these `EVENTS` instead, in perf's spelling or the vendor's: page-faults, '{cycles,instructions}:u' (may be repeated)")
	flags.IntVarP(&f.repeat, "repeat", "r", 1, "run the program `N` times: means, with their errors")
	flags.BoolVarP(&f.noInherit, "no-inherit", "i", false, "not the processes and threads that the program starts")
	flags.BoolVar(&f.separate, "no-multiplex", false, "one group in each of several runs of the program, instead of multiplexing")
	flags.BoolVar(&f.drilldown, "drilldown", false, "run the program again and again, following the bottleneck down")
	flags.BoolVarP(&f.user, "user", "u", false, "count user mode only")
	flags.BoolVarP(&f.kernel, "kernel", "k", false, "count the kernel only")
	flags.BoolVar(&f.split, "split", false, "two accounts: user mode and the kernel")
	flags.StringVar(&f.source, "source", string(measure.Auto), "what counts: `auto|pmu|simulated|os`")
	completeWords(cmd, "source", "auto", "pmu", "simulated", "os")
	flags.StringVar(&f.keep, "keep", "", "keep what was simulated in `FILE`, a callgrind file for 'cyclestack report --by line'")
	f.addCaches(cmd)
	flags.BoolVar(&f.unplaced, "no-places", false, "take no samples: the account has no places in the code")
	flags.BoolVar(&f.unkept, "no-keep", false, "do not keep the run for report, annotate, explain and diff without a file")
	c.addModel(cmd)
	c.addParams(cmd)
	c.addNodes(cmd)
	flags.StringVar(&c.by, "by", "run", "one account for each `KIND`, several by commas: "+strings.Join(kindNames(scopeKinds), ", "))
	completeKinds(cmd, scopeKinds)
	c.addScreen(cmd)
	c.addOutput(cmd, report.Formats[report.Accounts]()...)
	flags.Lookup("output").Usage = "write to `FILE` instead of standard error"
	return cmd
}

// A rule refuses flags that make no sense together.
type rule struct {
	broken bool
	text   string
}

// refuse returns the error of the first rule that is broken.
func refuse(rules ...rule) error {
	for _, r := range rules {
		if r.broken {
			return usageError("%s", r.text)
		}
	}
	return nil
}

// check refuses values of flags that mean nothing, alone or together.
func (f *statFlags) check(c *common, program []string) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := f.targetFlags.check(program); err != nil {
		return err
	}
	source := measure.Source(f.source)
	simulated := source == measure.Simulated || source == measure.Auto && c.model == resolve.SimulatedModel
	counters := f.separate || f.drilldown || f.split || f.user || f.kernel // only the processor's have these
	again := f.again()
	return cmp.Or(
		refuse(
			rule{f.repeat < 1, fmt.Sprintf("-r %d: at least one run", f.repeat)},
			rule{!slices.Contains(sources, f.source), fmt.Sprintf("--source %s: must be auto, pmu, simulated or os", f.source)},
			rule{!simulated && f.keep+f.caches+f.simulator != "", "--keep, --caches and --simulator are about a simulation: --source simulated"},
			rule{f.simulator != "" && !slices.Contains(simulation.Simulators, simulation.Simulator(f.simulator)), fmt.Sprintf("--simulator %s: must be qemu or valgrind", f.simulator)},
			rule{f.user && f.kernel, "--user and --kernel: both are counted without either; --split tells them apart"},
			rule{len(f.events) > 0 && (simulated || f.drilldown || f.split), "-e and --source simulated, --drilldown or --split: these choose the events themselves"},
			rule{f.split && (f.user || f.kernel), "--split and --user or --kernel: both, or one of them"},
		),
		refuse(
			rule{again != "" && len(program) == 0, again + " runs a program several times: name it"},
			rule{again != "" && f.interval > 0, again + " and -I: intervals are of one run"},
		),
		f.checkDrilldown(c),
		refuse(
			rule{source == measure.OS && counters, "--source os: the operating system's counters are not multiplexed and know no modes"},
			rule{simulated && counters, "--source simulated: a simulation is not multiplexed, and knows user mode only"},
		))
}

// checkDrilldown refuses what --drilldown decides itself.
func (f *statFlags) checkDrilldown(c *common) error {
	if !f.drilldown {
		return nil
	}
	return refuse(
		rule{f.separate || f.repeat > 1, "--drilldown and -r or --no-multiplex: it decides itself what to run"},
		rule{f.split || c.level > 0 || c.nodes != "" || c.all, "--drilldown and --split, --level, --nodes or --all: it chooses the nodes itself"},
		rule{c.by != "run" || f.byCPUs() || f.perThread || len(f.cgroups) > 1, "--drilldown follows one bottleneck: it has no accounts by CPU, thread or cgroup"},
	)
}

// again returns the flag that asks for several runs, "" if none does.
func (f *statFlags) again() string {
	switch {
	case f.drilldown:
		return "--drilldown"
	case f.separate:
		return "--no-multiplex"
	case f.repeat > 1:
		return "-r"
	}
	return ""
}

// mode is which privilege levels are counted.
func (f *statFlags) mode() measure.Mode {
	switch {
	case f.split:
		return measure.SplitModes
	case f.kernel:
		return measure.KernelMode
	case f.user:
		return measure.UserMode
	}
	return measure.AnyMode
}

func (a *app) runStat(ctx context.Context, c *common, f *statFlags, program []string) error {
	if err := f.check(c, program); err != nil {
		return err
	}
	by, err := f.by(c.by)
	if err != nil {
		return err
	}
	if err := c.knownModel(); err != nil {
		return err
	}
	l := &meter{app: a, c: c, f: f, program: program, stream: a.err}
	l.sim = simulated.New(l.simulation())
	if !f.unplaced {
		l.sampler = clocked.New(clocked.Options{Options: hotspots.Options{Cause: core.Causes(host)}, Version: release.Version, Create: func() (*os.File, error) { return l.keeper.samples() }})
	}
	l.options = measure.Options{Choice: c.choice(), Events: strings.Join(f.events, ","), Source: measure.Source(f.source), Mode: f.mode(), By: by, NoInherit: f.noInherit,
		Runs: measure.Runs{Repeat: f.repeat, Separate: f.separate, Descend: f.drilldown}}
	defer func() { l.intervals.End() }()
	if err := l.prepare(); err != nil {
		return err
	}
	if list := l.m.Processors(); len(list) > 1 && f.interval > 0 && c.format != report.Formats[report.Accounts]()[0] {
		return usageError("--format %s and -I: the accounts of several types of cores, or modes, do not go into one document: choose one (--cpu %s; --user, --kernel)",
			c.format, list[0])
	}
	if f.drilldown {
		return l.descend(ctx)
	}
	return l.count(ctx)
}
