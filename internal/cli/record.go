package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// recordFlags are the flags of record alone.
type recordFlags struct {
	targetFlags
	events     []string
	freq       string
	period     uint64
	callchains bool
	callGraph  string
	data       bool
	noInherit  bool
	allCgroups bool
	ring       string
	set        string
	source     string
	quiet      bool
	given      func(flag string) bool // on the command line
}

// defaultFile is where a recording goes, as with perf.
const defaultFile = "perf.data"

// defaultRate is how many samples a second are taken where no events and nothing
// else says how many: about as many as perf's 4000, but a number that what a
// program does at regular intervals does not keep in step with.
const defaultRate = 3989

func (a *app) record() *cobra.Command {
	c, f := &common{}, &recordFlags{}
	cmd := &cobra.Command{
		Use:     "record [flags] [--] PROGRAM ARGS…",
		GroupID: "account",
		Short:   "Take samples of a program, processes, CPUs or the machine, into a perf.data file",
		Long: `record takes samples with the processor's counters and writes them to perf.data,
from which 'cyclestack report --by function' makes the account of every function,
line or instruction. perf reads the file as well. The program's exit status is
passed on; an existing perf.data is kept as perf.data.old.

Which events are sampled is worked out from the nodes to be seen, level 1 of the
processor's method without --level or --nodes: see 'cyclestack plan'. -e names
events instead, in perf's spelling. Where the processor's counters cannot be used
samples are taken by the clock, which tells where the time goes and not why.

Beside -a, -C, -G, -p or -t a program only says for how long.`,
		Example: `  cyclestack record -- ./solver input.csv
  cyclestack record --nodes DRAM_Bound -- ./solver input.csv     the events that this node needs
  cyclestack record -g -F 99 -a -- ./solver input.csv            callchains; the machine, as long as it runs
  cyclestack record -e '{cycles,instructions}:S' -c 100003 -- ./solver input.csv
  cyclestack record -o - -- ./solver input.csv | cyclestack report --by function -`,
		RunE: func(cmd *cobra.Command, program []string) error {
			f.given = cmd.Flags().Changed
			return a.runRecord(cmd.Context(), c, f, program)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringArrayVarP(&f.events, "event", "e", nil, "sample these `EVENTS`, in perf's spelling: cycles, '{cycles,instructions}:S' (may be repeated)")
	flags.StringVarP(&f.freq, "freq", "F", "", "take so many samples of each event in a second, `RATE`; max is the most that the kernel allows")
	flags.Uint64VarP(&f.period, "count", "c", 0, "take a sample after every `N` of an event")
	flags.BoolVarP(&f.callchains, "callchains", "g", false, "callchains with each sample, by frame pointers")
	flags.StringVar(&f.callGraph, "call-graph", "", "the same, as perf has it: `fp`")
	flags.BoolVarP(&f.data, "data", "d", false, "which data was accessed, where it came from, and how long that took, of events that know")
	f.addSampled(cmd)
	flags.BoolVarP(&f.noInherit, "no-inherit", "i", false, "not the processes and threads that the program starts")
	flags.BoolVar(&f.allCgroups, "all-cgroups", false, "samples say in which cgroup they were taken")
	flags.StringVarP(&f.ring, "mmap-pages", "m", "", "room for each CPU's records until they are written: `PAGES`, or a size such as 4M")
	flags.StringVar(&f.source, "source", sourceAuto, "what takes samples: `auto|pmu|os`")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	c.addModel(cmd)
	flags.IntVar(&c.level, "level", 0, "the events of the method down to this level")
	flags.StringVar(&c.nodes, "nodes", "", "the events of nodes whose name or path matches `PATTERN` (*, ?; several by commas)")
	flags.StringVar(&f.set, "set", "", "the method's event set `NAME`, each event of which takes samples by what it costs")
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
	flags.VarP(&f.delay, "delay", "D", "begin after so many `MS`")
}

// check refuses values of flags that mean nothing, alone or together.
func (f *recordFlags) check(c *common, program []string) error {
	if err := f.targetFlags.check(program); err != nil {
		return err
	}
	if c.output == "" && f.given("output") {
		return usageError("-o: the name of the file is empty; - is standard output")
	}
	method := c.model != "" || c.nodes != "" || c.level != 0 || f.set != ""
	switch {
	case f.freq != "" && f.given("count"):
		return usageError("-F and -c: samples at a rate, or after a number of events")
	case f.given("count") && (f.period == 0 || f.period > mostPeriod):
		return usageError("-c %d: a sample after so many events: at least 1", f.period)
	case f.callGraph != "" && f.callGraph != "fp":
		return usageError("--call-graph %s: it is fp, by frame pointers", f.callGraph)
	case c.level < 0:
		return usageError("--level %d: levels begin at 1", c.level)
	case len(f.events) > 0 && method:
		return usageError("-e and --model, --nodes, --level or --set: events, or those that a method needs")
	case f.set != "" && (c.nodes != "" || c.level != 0):
		return usageError("--set and --nodes or --level: a set of events has no nodes")
	case !slices.Contains([]string{sourceAuto, sourcePMU, sourceOS}, f.source):
		return usageError("--source %s: it is auto, pmu or os", f.source)
	case f.source == sourceOS && (method || len(f.events) > 0):
		return usageError("--source os takes samples by the clock, of no other events")
	case f.noInherit && (f.machine() || len(f.cgroups) > 0):
		return usageError("--no-inherit: for programs, -p and -t; CPUs are sampled whatever runs there")
	}
	return nil
}

// mostPeriod is the most events that the kernel lets pass between two samples.
const mostPeriod = 1<<63 - 1

// A recorder is one call of record. The job finds the target, the machine and
// the plan as for stat.
type recorder struct {
	*job
	f    *recordFlags
	spec perfevent.SampleSpec
	rate uint64 // samples of an event in a second, or with -c the events between two of them
	freq bool

	remarks []string // to be told when it has begun
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
	if err := f.check(c, program); err != nil {
		return nil, err
	}
	fresh := *a
	fresh.kernel.cache = nil // what is remembered of plans does not say how to sample
	r := &recorder{job: &job{app: &fresh, c: c, f: &statFlags{targetFlags: f.targetFlags, source: f.source}, program: program, set: f.set}, f: f}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if c.output == "-" {
		if out := file(a.out); out != nil && term.IsTerminal(int(out.Fd())) {
			return nil, usageError("-o -: a recording is nothing for a terminal")
		}
		r.target.Stdout = r.target.Stderr // as perf does it: the recording is to stay what it is
	}
	if err := r.choose(); err != nil {
		return nil, err
	}
	r.memory()
	return r, nil
}

// memory has samples say which data was accessed, if asked.
func (r *recorder) memory() {
	for _, g := range r.spec.Groups {
		for i := range g {
			if r.f.data && g[i].Attr.Sample > 0 {
				g[i].SampleMemory()
			}
		}
	}
}

// choose finds the events, and what else is to be sampled.
func (r *recorder) choose() (err error) {
	if err := r.often(); err != nil {
		return err
	}
	r.spec = perfevent.SampleSpec{Target: r.target, Timeout: time.Duration(r.f.timeout), Delay: time.Duration(r.f.delay),
		Callchains: r.f.callchains || r.f.callGraph != "", Cgroups: r.f.allCgroups || len(r.f.cgroups) > 0, NoInherit: r.f.noInherit}
	if r.spec.RingSize, err = ringSize(r.f.ring); err != nil {
		return err
	}
	if len(r.f.events) > 0 {
		r.spec.Groups, err = r.machine.Sys.ResolveSampled(strings.Join(r.f.events, ","), r.rate, r.freq)
		if err != nil {
			return usageError("-e: %v", err)
		}
		return nil
	}
	why := r.machine.NoPMU()
	if err := r.c.knownModel(); err != nil {
		return err
	}
	switch {
	case r.f.source == sourceOS:
		return r.clock("")
	case why == "":
		return r.planned()
	case r.f.source == sourcePMU || r.c.model != "" || r.f.set != "":
		return machineError(fmt.Errorf("%s; cyclestack doctor says what would change that", why))
	}
	return r.clock(why)
}

// often finds out how often to take samples.
func (r *recorder) often() error {
	most := r.machine.Sys.MaxSampleRate()
	r.rate, r.freq = defaultRate, true
	switch {
	case r.f.given("count"):
		r.rate, r.freq = r.f.period, false
	case r.f.freq == "max" && most == 0:
		return machineError(errors.New("-F max: the kernel does not say how many samples it allows"))
	case r.f.freq == "max":
		r.rate = most
	case r.f.freq != "":
		n, err := strconv.ParseUint(r.f.freq, 10, 32)
		if err != nil || n == 0 {
			return usageError("-F %s: it is a number of samples in a second, or max", r.f.freq)
		}
		r.rate = n
	case most > 0 && most < defaultRate:
		r.rate = most
		r.remark("%d samples a second: kernel.perf_event_max_sample_rate allows no more", most)
	}
	return nil
}

// ringSize reads the size of rings: a number of pages, or of bytes with their
// unit.
func ringSize(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	shift := 0
	number := text
	if i := strings.IndexByte("BKMG", strings.ToUpper(text)[len(text)-1]); i >= 0 {
		number, shift = text[:len(text)-1], 10*i
	}
	n, err := strconv.ParseUint(number, 10, 31)
	size := n << shift
	if number == text {
		size = n * uint64(os.Getpagesize())
	}
	if err != nil || n == 0 || size > 1<<30 {
		return 0, usageError("-m %s: it is a number of pages, or a size such as 4M; at most 1G", text)
	}
	return int(size), nil
}

// clockEvent takes samples where nothing else does.
const clockEvent = "cpu-clock"

// clock takes samples by the clock.
func (r *recorder) clock(why string) (err error) {
	if r.spec.Groups, err = r.machine.Sys.ResolveSampled(clockEvent, r.rate, r.freq); err != nil {
		return machineError(err)
	}
	if why != "" {
		r.remark("samples are taken by the clock (%s), as %s: they tell where the time goes, and not why", clockEvent, why)
		if r.c.nodes != "" || r.c.level != 0 {
			r.remark("--nodes and --level choose among the processor's events: there are none")
		}
	}
	return nil
}

// planned takes samples of a method's events.
func (r *recorder) planned() error {
	r.catalogue = sync.OnceValues(r.c.catalogue)
	if r.c.nodes == "" && r.c.level == 0 && r.set == "" {
		r.c.level = 1
	}
	if err := r.pmuParts(); err != nil {
		return err
	}
	apart := !r.f.machine() && len(r.f.cgroups) == 0 && !r.f.noInherit && !perfevent.InheritedReads()
	for _, p := range r.parts {
		r.spec.Groups = append(r.spec.Groups, r.sampled(p, apart)...)
		for _, note := range p.notes {
			r.remark("%s", noteText(note))
		}
	}
	if len(r.spec.Groups) == 0 {
		return machineError(errors.New("the kernel has none of the events that these nodes need; -e names others"))
	}
	r.spec.Times = len(r.spec.Groups) > 1 && !apart
	if apart && len(r.spec.Groups) > 1 {
		r.remark("the groups take turns, and before Linux 6.13 samples of programs do not say how long each was counted: compare events of one group only, or sample CPUs (-a)")
	}
	return nil
}

// sampled returns a part's groups for taking samples: with one event in each that
// does, or apart, so that all do.
func (r *recorder) sampled(p *part, apart bool) [][]perfevent.Event {
	find := &resolver{part: p, sys: r.machine.Sys, several: len(r.parts) > 1, unfit: r.unfit}
	var groups [][]perfevent.Event
	for i := range p.plan.Groups {
		var group []perfevent.Event
		takes := false
		for _, e := range p.plan.Sampled(&p.plan.Groups[i]) {
			ev, ok := find.event(&e.Event)
			if !ok {
				continue
			}
			if strings.Contains(e.Perf, "ldlat=") {
				ev.SampleMemory()
				ev.Attr.Precise = 3
			}
			if e.Takes || apart {
				ev.Attr.Sample, ev.Attr.Freq = r.every(&e)
				takes = true
			}
			group = append(group, ev)
		}
		if len(group) > 0 && !takes { // what was to take them is not there
			group[0].Attr.Sample, group[0].Attr.Freq = r.rate, r.freq
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// every returns after how many of an event to take a sample: as the plan says,
// unless it was said here.
func (r *recorder) every(e *plan.Sampled) (sample uint64, freq bool) {
	if e.Period > 0 && r.f.freq == "" && !r.f.given("count") {
		return e.Period, false
	}
	return r.rate, r.freq
}

// remark keeps something that is no error until the recording has begun: an error
// is to stand alone.
func (r *recorder) remark(format string, args ...any) {
	r.remarks = append(r.remarks, fmt.Sprintf(format, args...))
}

// tell tells something that is no error.
func (r *recorder) tell(format string, args ...any) {
	if !r.f.quiet {
		_, _ = patiently(r.err, fmt.Appendf(nil, "cyclestack record: %s\n", oneLine(fmt.Sprintf(format, args...))))
	}
}
