package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/internal/amount"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/signals"
	"github.com/cyclestack/cyclestack/internal/source/perfrecord"
)

// recordFlags are the flags of record alone.
type recordFlags struct {
	targetFlags
	freq      string
	period    uint64
	callGraph string
	noInherit bool
	sampled   measure.SampleOptions
	limits    perfrecord.Limits
	user      string
	maxFiles  int // of Limits.Switch
	ring      string
	set       string
	source    string
	quiet     bool
	given     func(flag string) bool // on the command line
}

// defaultFile is where a recording goes, as with perf.
const defaultFile = "perf.data"

func (a *app) record() *cobra.Command {
	c, f := &common{}, &recordFlags{}
	cmd := &cobra.Command{
		Use:     "record [flags] [--] PROGRAM ARGS…",
		GroupID: "account",
		Short:   "Take samples of a program, processes or the machine into perf.data",
		Long: `record takes samples with the processor's counters and writes them to perf.data.
'cyclestack report --by function' then makes the account of every function, line or
instruction. perf reads the file as well. The program's exit status is passed on; an
existing perf.data is kept as perf.data.old.

The nodes to be seen decide which events are sampled: see 'cyclestack plan'. Without
--level or --nodes they are level 1 of the processor's method. -e names events instead,
in perf's spelling. Where the processor's counters cannot be used the clock takes the
samples. They tell where the time goes and not why.

Next to -a, -C, -G, -p or -t a program only says for how long.`,
		Example: `  cyclestack record -- ./solver input.csv
  cyclestack record --nodes DRAM_Bound -- ./solver input.csv     the events that this node needs
  cyclestack record -g -F 99 -a -- ./solver input.csv            callchains; the machine, as long as it runs
  cyclestack record --call-graph dwarf -- ./solver input.csv     callchains of programs without frame pointers
  cyclestack record -e '{cycles,instructions}:S' -c 100003 -- ./solver input.csv
  cyclestack record -o - -- ./solver input.csv | cyclestack report --by function -`,
		RunE: func(cmd *cobra.Command, program []string) error {
			f.given = cmd.Flags().Changed
			return a.runRecord(cmd.Context(), c, f, program)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringArrayVarP(&f.sampled.Events, "event", "e", nil, "sample these `EVENTS`, in perf's spelling: cycles, '{cycles,instructions}:S' (may be repeated)")
	flags.Func("filter", "only when fields of the tracepoints of the -e before are so: `FILTER`, as in 'prev_pid > 0'", f.sampled.Filter)
	flags.StringVarP(&f.freq, "freq", "F", "", "take so many samples of each event in a second, `RATE`; max is the most that the kernel allows")
	flags.Uint64VarP(&f.period, "count", "c", 0, "take a sample after every `N` of an event")
	flags.BoolVarP(&f.sampled.Calls.Chains, "callchains", "g", false, "callchains with each sample, by frame pointers")
	flags.StringVar(&f.callGraph, "call-graph", "", "callchains by frame pointers, from copies of the stack, or the processor's record: `fp|dwarf[,BYTES]|lbr`")
	flags.BoolVarP(&f.sampled.Memory, "data", "d", false, "which data was accessed, where it came from, and how long that took, of events that know")
	flags.BoolVar(&f.sampled.Physical, "phys-data", false, "the physical address of the data, of events that know")
	flags.BoolVar(&f.sampled.Aborts, "transaction", false, "how a transaction was aborted, of events that know")
	f.addSampled(cmd)
	flags.BoolVarP(&f.noInherit, "no-inherit", "i", false, "not the processes and threads that the program starts")
	flags.BoolVar(&f.sampled.Cgroups, "all-cgroups", false, "samples name their cgroup")
	flags.StringVarP(&f.ring, "mmap-pages", "m", "", "room for each CPU's records until they are written: `PAGES`, or a size such as 4M")
	flags.StringVarP(&f.user, "uid", "u", "", "processes of this `USER`, a name or a number, and what they start")
	flags.BoolFuncP("branch-any", "b", "the taken branches before each sample", func(string) error { return f.sampled.Branches.Set("any") })
	flags.FuncP("branch-filter", "j", "of the branches before each sample these `FILTERS`: any,u", f.sampled.Branches.Set)
	flags.BoolVar(&f.sampled.Switches, "switch-events", false, "records of each switch between threads")
	flags.BoolVar(&f.sampled.OffCPU, "off-cpu", false, "where threads wait, and where they run")
	flags.BoolVarP(&f.sampled.NoBuildIDs, "no-buildid", "B", false, "without build ids")
	flags.BoolP("no-buildid-cache", "N", true, "keep no copies of programs, as always")
	flags.Func("max-size", "end when there are so many bytes of records: `10M`", f.limits.MaxSize.Set)
	flags.IntVarP(&f.limits.Level, "compression-level", "z", 0, "compress records, at a `LEVEL` of 1 to 22 (-z3; 1 without it)")
	flags.Lookup("compression-level").NoOptDefVal = "1"
	flags.IntVarP(&f.limits.Realtime, "realtime", "r", 0, "write with this SCHED_FIFO priority, `1-99`")
	flags.Func("switch-output", "go on in another file after `WHEN`: signal (SIGUSR2; the default), 100M, 30s", f.limits.Switch.Set)
	flags.Lookup("switch-output").NoOptDefVal = "signal"
	flags.IntVar(&f.maxFiles, "switch-max-files", 0, "keep the last `N` of the files of --switch-output")
	flags.Func("control", "take commands (enable, disable, stop, ping) from `FILES`: fd:IN[,ACK], fifo:IN[,ACK]", f.limits.Control.Set)
	flags.BoolVar(&f.noInherit, "per-thread", false, "as -i")
	flags.StringVar(&f.source, "source", string(measure.Auto), "what takes samples: `auto|pmu|os`")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	c.addModel(cmd)
	flags.IntVar(&c.level, "level", 0, "the events of the method down to this level")
	flags.StringVar(&c.nodes, "nodes", "", "the events of nodes whose name or path matches `PATTERN` (*, ?; several by commas)")
	flags.StringVar(&f.set, "set", "", "the method's event set `NAME`: each event takes samples by its cost")
	flags.StringVar(&c.smt, "smt", "", "whether logical processors share their cores: `on|off` (default: as this machine has it)")
	flags.StringVarP(&c.output, "output", "o", defaultFile, "write to `FILE`; - is standard output")
	return cmd
}

// addSampled adds the flags that say what is sampled.
func (f *targetFlags) addSampled(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&f.all, "all-cpus", "a", false, "the whole machine")
	flags.StringVarP(&f.cpus, "cpu-list", "C", "", "everything on these CPUs: `0-3,8`")
	flags.StringVarP(&f.pids, "pid", "p", "", "processes that run, by their `PIDS`: 1234,1240")
	flags.StringVarP(&f.tids, "tid", "t", "", "threads that run, by their `TIDS`")
	flags.VarP((*nameList)(&f.cgroups), "cgroup", "G", "`CGROUPS`, by their paths below /sys/fs/cgroup")
	flags.Var(&f.timeout, "timeout", "stop after so many `MS`")
	flags.VarP((*amount.Delay)(&f.delay), "delay", "D", "begin after so many `MS`; -1: by a command of --control")
}

// check refuses values of flags that mean nothing, alone or together.
func (f *recordFlags) check(c *common, program []string) error {
	if err := f.targetFlags.check(program); err != nil {
		return err
	}
	method := c.model != "" || c.nodes != "" || c.level != 0 || f.set != ""
	byOS := f.source == string(measure.OS)
	return cmp.Or(
		refuse(
			rule{c.output == "" && f.given("output"), "-o: the name of the file is empty; - is standard output"},
			rule{f.freq != "" && f.given("count"), "-F and -c: samples at a rate, or after a number of events"},
			rule{f.given("count") && (f.period == 0 || f.period > mostPeriod), fmt.Sprintf("-c %d: a sample after so many events: at least 1", f.period)},
		),
		refuse(
			rule{f.limits.Level < 0 || f.limits.Level > 22, fmt.Sprintf("-z%d: levels are 0 to 22", f.limits.Level)},
			rule{f.maxFiles < 0 || f.maxFiles > 0 && !f.limits.Switch.On(), fmt.Sprintf("--switch-max-files %d: a number of files of --switch-output", f.maxFiles)},
			rule{c.level < 0, fmt.Sprintf("--level %d: levels begin at 1", c.level)},
			rule{len(f.sampled.Events) > 0 && method, "-e and --model, --nodes, --level or --set: events, or those that a method needs"},
			rule{f.set != "" && (c.nodes != "" || c.level != 0), "--set and --nodes or --level: a set of events has no nodes"},
			rule{!slices.Contains([]string{string(measure.Auto), string(measure.PMU), string(measure.OS)}, f.source), fmt.Sprintf("--source %s: must be auto, pmu or os", f.source)},
		),
		refuse(
			rule{byOS && (method || len(f.sampled.Events) > 0), "--source os takes samples by the clock, of no other events"},
			rule{f.noInherit && (f.machine() || len(f.cgroups) > 0), "--no-inherit: for programs, -p and -t, as is --per-thread; CPUs are sampled whatever runs there"},
		))
}

// mostPeriod is the most events that the kernel lets pass between two samples.
const mostPeriod = 1<<63 - 1

// A recorder is one call of record.
type recorder struct {
	*app
	c       *common
	f       *recordFlags
	program []string
	plan    *measure.Recording
}

func (a *app) runRecord(ctx context.Context, c *common, f *recordFlags, program []string) error {
	r, err := a.recorder(c, f, program)
	if err != nil {
		return err
	}
	return r.write(ctx)
}

// recorder finds out what is to be recorded.
func (a *app) recorder(c *common, f *recordFlags, program []string) (*recorder, error) {
	var err error
	if f.user != "" {
		if f.machine() || f.tasks() || len(f.cgroups) > 0 {
			return nil, usageError("-u and -a, -C, -G, -p or -t: a user's processes, or others")
		}
		if f.pids, err = measure.UserProcesses(os.DirFS("/"), f.user); err != nil {
			return nil, usageError("-u %v", err)
		}
	}
	if err := f.check(c, program); err != nil {
		return nil, err
	}
	o := f.sampled
	o.Choice, o.Set, o.Source, o.NoInherit = c.choice(), f.set, measure.Source(f.source), f.noInherit
	o.Period = measure.Period{Timeout: time.Duration(f.timeout), Delay: time.Duration(f.delay)}
	if f.callGraph != "" {
		if o.Calls, err = measure.ParseCalls(f.callGraph); err != nil {
			return nil, usageError("--call-graph %v", err)
		}
	}
	if o.Target, err = a.target(&f.targetFlags, program); err != nil {
		return nil, err
	}
	o.Target.Present = f.user != ""
	if c.output == "-" {
		if out := file(a.out); out != nil && term.IsTerminal(int(out.Fd())) {
			return nil, usageError("-o -: a recording does not go to a terminal: -o FILE")
		}
		o.Target.Stdout = o.Target.Stderr // as perf does it: the recording is to stay what it is
	}
	if err := output.Writable(c.output); err != nil {
		return nil, err
	}
	if o.Rate, err = f.rate(); err != nil {
		return nil, err
	}
	if o.RingSize, err = ringSize(f.ring); err != nil {
		return nil, err
	}
	if err := c.knownModel(); err != nil {
		return nil, err
	}
	r := &recorder{app: a, c: c, f: f, program: program}
	r.plan, err = measure.NewRecording(a.kernel, o)
	if option := (*fault.OptionError)(nil); errors.As(err, &option) {
		if flag := map[string]string{"event": "-e", "filter": "--filter"}[option.Option]; flag != "" {
			err = usageError("%s: %v", flag, option.Err)
		}
	}
	return r, err
}

// rate is how often samples are taken.
func (f *recordFlags) rate() (r measure.Rate, err error) {
	switch f.freq {
	case "":
		r.Every = f.period
	case "max":
		r.Most = true
	default:
		r.PerSecond, err = strconv.ParseUint(f.freq, 10, 32)
		if err != nil || r.PerSecond == 0 {
			return r, usageError("-F %s: must be a number of samples in a second, or max", f.freq)
		}
	}
	return r, nil
}

// ringSize reads the size of rings: a number of pages, or of bytes with their
// unit.
func ringSize(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	size, unit, err := amount.Size(text)
	if !unit && size <= mostRing {
		size *= os.Getpagesize()
	}
	if err != nil || size > mostRing {
		return 0, usageError("-m %s: must be a number of pages, or a size such as 4M; at most 1G", text)
	}
	return size, nil
}

const mostRing = 1 << 30

// tell tells something that is no error.
func (r *recorder) tell(text string) {
	if !r.f.quiet {
		_, _ = signals.Write(r.err, fmt.Appendf(nil, "cyclestack record: %s\n", oneLine(text)))
	}
}
