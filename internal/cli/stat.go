package cli

import (
	"context"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/report"
)

// statFlags are the flags of stat alone.
type statFlags struct {
	targetFlags
	source       string
	repeat       int
	separate     bool // --no-multiplex
	drilldown    bool
	user, kernel bool
	split        bool
	noInherit    bool
	keep         string // the simulator's files
	caches       string
	stream       *streamed // for intervals; nil if they go to no file
}

// The values of --source.
const (
	sourceAuto      = "auto"
	sourcePMU       = "pmu"
	sourceSimulated = "simulated"
	sourceOS        = "os"
)

var sources = []string{sourceAuto, sourcePMU, sourceSimulated, sourceOS}

func (a *app) stat() *cobra.Command {
	c, f := &common{}, &statFlags{}
	cmd := &cobra.Command{
		Use:     "stat [flags] [--] PROGRAM ARGS…",
		GroupID: "account",
		Short:   "Count a program, processes, CPUs or the machine, and print the account",
		Long: `stat counts with the processor's counters and prints the account: of a program
that it starts, of processes, threads or cgroups that run, of CPUs or of the
whole machine. The account goes to standard error, so that the program's output
stays what it is, and the program's exit status is passed on.

Which events are counted, and in which groups, is worked out from the nodes to be
seen: see 'cyclestack plan'. Without --level it is as deep as some seconds of
counting can tell. Beside -a, -C, -G, -p or -t a program only says for how long.

Beside the cycles stands what the threads did with their time, as the operating
system tells: of a program that mostly waited that comes first.

Where the processor's counters cannot be used, the next rung of the ladder is
taken: the program runs once as usual, and then twice more under valgrind, without
output. The first of these runs tells the order in which the code is executed, from
which branches and the core are simulated; the second simulates caches. Where that
cannot be done either, or would take more than two minutes, stat prints what the
operating system's counters say. The first line says which, and why not the better
one: 'cyclestack doctor' knows what would change that. If --source names a rung, it
is taken or nothing runs.`,
		Example: `  cyclestack stat -- ./solver input.csv
  cyclestack stat --level 3 -r 5 -- ./solver input.csv       the mean of five runs, with errors
  cyclestack stat --drilldown -- ./solver input.csv          runs it again, level by level
  cyclestack stat -a --per-core -o machine.txt -- sleep 10
  cyclestack stat -p 1234 -I 1000 --format csv -o account.csv
  cyclestack stat --source simulated --keep solver.callgrind -- ./solver input.csv`,
		RunE: func(cmd *cobra.Command, program []string) error { return a.runStat(cmd.Context(), c, f, program) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	f.addTasks(cmd)
	f.addCPUs(cmd)
	flags.IntVarP(&f.repeat, "repeat", "r", 1, "run the program `N` times: means, with their errors")
	flags.BoolVarP(&f.noInherit, "no-inherit", "i", false, "not the processes and threads that the program starts")
	flags.BoolVar(&f.separate, "no-multiplex", false, "one group in each of several runs of the program, instead of taking turns")
	flags.BoolVar(&f.drilldown, "drilldown", false, "run the program again and again, following the bottleneck down")
	flags.BoolVarP(&f.user, "user", "u", false, "count user mode only")
	flags.BoolVarP(&f.kernel, "kernel", "k", false, "count the kernel only")
	flags.BoolVar(&f.split, "split", false, "two accounts: user mode and the kernel")
	flags.StringVar(&f.source, "source", sourceAuto, "what counts: `auto|pmu|simulated|os`")
	flags.StringVar(&f.keep, "keep", "", "keep what was simulated in `FILE`, a callgrind file for 'cyclestack report --by line'")
	flags.StringVar(&f.caches, "caches", "", "simulate these `CACHES`: first level for instructions, for data, second and third level, such as 32K,8,64/48K,12,64/2M,16,64/36M,12,64 (default: this machine's, or those of --cpu)")
	c.addModel(cmd)
	c.addParams(cmd)
	c.addNodes(cmd)
	flags.StringVar(&c.by, "by", "run", "one account for each `KIND`, several by commas: "+strings.Join(kindNames(scopeKinds), ", "))
	c.addOutput(cmd, report.Formats[report.Accounts]()...)
	flags.Lookup("output").Usage = "write to `FILE` instead of standard error"
	return cmd
}

// check refuses values of flags that mean nothing, alone or together.
func (f *statFlags) check(c *common, program []string) error {
	if c.model == simModel && f.source == sourceAuto {
		f.source = sourceSimulated
	}
	if err := c.check(report.Formats[report.Accounts]()...); err != nil {
		return err
	}
	if err := f.targetFlags.check(program); err != nil {
		return err
	}
	again := f.again()
	switch {
	case f.repeat < 1:
		return usageError("-r %d: at least one run", f.repeat)
	case !slices.Contains(sources, f.source):
		return usageError("--source %s: it is auto, pmu, simulated or os", f.source)
	case f.source != sourceSimulated && (f.keep != "" || f.caches != ""):
		return usageError("--keep and --caches are about a simulation: --source simulated")
	case f.user && f.kernel:
		return usageError("--user and --kernel: both are counted without either; --split tells them apart")
	case f.split && (f.user || f.kernel):
		return usageError("--split and --user or --kernel: both, or one of them")
	case again != "" && len(program) == 0:
		return usageError("%s runs a program several times: name it", again)
	case again != "" && f.interval > 0:
		return usageError("%s and -I: intervals are of one run", again)
	case f.drilldown && (f.separate || f.repeat > 1):
		return usageError("--drilldown and -r or --no-multiplex: it decides itself what to run")
	case f.drilldown && (f.split || c.level > 0 || c.nodes != "" || c.all):
		return usageError("--drilldown and --split, --level, --nodes or --all: it chooses the nodes itself")
	case f.drilldown && c.by != "run" || f.drilldown && f.byCPUs() || f.drilldown && (f.perThread || len(f.cgroups) > 1):
		return usageError("--drilldown follows one bottleneck: it has no accounts by CPU, thread or cgroup")
	case f.source == sourceOS && (f.separate || f.drilldown || f.split || f.user || f.kernel):
		return usageError("--source os: the operating system's counters need no turns and know no modes")
	case f.source == sourceSimulated && (f.separate || f.drilldown || f.split || f.user || f.kernel):
		return usageError("--source simulated: a simulation needs no turns, and knows user mode only")
	}
	return nil
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

func (a *app) runStat(ctx context.Context, c *common, f *statFlags, program []string) (err error) {
	if err := f.check(c, program); err != nil {
		return err
	}
	j := &job{app: a, c: c, f: f, program: program, stream: a.err}
	if j.by, err = f.by(c.by); err != nil {
		return err
	}
	j.rows = j.by != 0
	if !j.osAlone() || f.interval > 0 { // else there is none
		collectRarely()
	}
	if err := j.prepare(); err != nil {
		return err
	}
	if err := j.choose(); err != nil {
		return err
	}
	if f.drilldown {
		return j.drillDown(ctx)
	}
	if f.interval > 0 && c.output != "" && c.output != "-" {
		if f.stream, err = stream(c.output); err != nil {
			return err
		}
		defer f.stream.end()
	}
	return j.count(ctx)
}

// collectRarely lets the heap grow to 16 MB before garbage is collected, unless the
// user has said when it is: most runs need less, and need no collector's threads
// beside the program that is counted.
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
