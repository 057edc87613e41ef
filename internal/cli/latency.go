package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/latency"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// floorParam is the parameter of the models that holds the latency of the fastest
// load.
const floorParam = "MIN_LOAD_LATENCY"

// latencyFlags are the flags of latency.
type latencyFlags struct {
	floor   float64 // NaN if it is not given
	by      string
	top     int
	symbols profile.Config
}

// latencyGroups are what latencies of samples can be divided by.
var latencyGroups = []string{"level", "function", "mapping"}

func (a *app) latency() *cobra.Command {
	c, f := &common{}, &latencyFlags{}
	cmd := &cobra.Command{
		Use:     "latency FILE…",
		GroupID: "account",
		Short:   "Print the distribution of load latencies",
		Long: `latency prints how long loads took, from what was recorded of them.

Of samples with latencies, as perf mem record takes them with Intel's PEBS, AMD's
IBS, Arm's SPE or on POWER, it prints the distribution in powers of two, its mean
and percentiles, and the same for each level of the memory hierarchy that the data
came from (--by level), for each function (--by function), or for what the data is
in (--by mapping): a variable, the heap, a stack, a file. Each sample stands for as
many loads as its period says. Every figure has the interval that sampling leaves
it, and what the processor measures and which loads it leaves out is said.

Of counts of loads slower than a threshold it prints the distribution, its drops,
and bounds on the mean latency. It reads tables of thresholds and counts, and
recordings of the load-latency event at several thresholds:

  perf stat -e cpu/event=0xcd,umask=0x1,ldlat=4/p,cpu/event=0xcd,umask=0x1,ldlat=8/p …

Counts at thresholds are of a random sample of the loads, so only their pattern
means something.`,
		Example: `  cyclestack latency examples/loads.data
  cyclestack latency --by mapping --sysroot examples/loads examples/loads.data
  cyclestack latency examples/loop-latency-case1.txt
  cyclestack latency --floor 5 --format json thresholds.txt`,
		Args: arguments(1, 0),
		RunE: func(cmd *cobra.Command, files []string) error {
			if !cmd.Flags().Changed("floor") {
				f.floor = math.NaN()
			}
			return a.runLatency(c, f, files)
		},
	}
	c.addModel(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&f.floor, "floor", 0, "of thresholds: latency of the fastest load in `CYCLES` (default: the processor's)")
	flags.StringVar(&f.by, "by", latencyGroups[0], "of samples: what they are divided by, `"+strings.Join(latencyGroups, "|")+"`")
	flags.IntVar(&f.top, "top", 0, "of samples: how many lines (default: those above 0.5 % of the cycles; all in json and csv)")
	addSymbols(cmd, &f.symbols)
	c.addOutput(cmd, report.Formats[render.Latencies]()...)
	return cmd
}

func (a *app) runLatency(c *common, f *latencyFlags, files []string) error {
	if err := c.check(report.Formats[render.Latencies]()...); err != nil {
		return err
	}
	switch {
	case !math.IsNaN(f.floor) && !(f.floor >= 0 && f.floor < math.MaxFloat64):
		return usageError("--floor %v: not a latency", f.floor)
	case !slices.Contains(latencyGroups, f.by):
		return usageError("--by %s: there are %s", f.by, strings.Join(latencyGroups, ", "))
	case f.top < 0:
		return usageError("--top %d: at least one line", f.top)
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	if source.Sampled(files[0]) {
		return a.sampledLatencies(s, f, files)
	}
	return a.thresholdLatencies(s, f, files)
}

// thresholdLatencies prints distributions from counts at thresholds.
func (a *app) thresholdLatencies(s *session, f *latencyFlags, files []string) error {
	c := s.c
	var list []render.LatencyReport
	err := eachTable(files, func(_ source.Reader, t *counts.Table, file string) error {
		l, err := s.distribution(t, file, f.floor)
		list = append(list, l)
		return err
	})
	if err != nil {
		return err
	}
	return a.document(c, render.Latencies(list), files...)
}

// sampledLatencies prints distributions of loads that were sampled.
func (a *app) sampledLatencies(s *session, f *latencyFlags, files []string) error {
	c := s.c
	var list []render.SampledLatency
	for _, file := range files {
		more, err := s.sampledLatency(f, file)
		if errors.Is(err, samples.ErrNoLatency) && len(files) == 1 {
			// It may be a recording of the counts at thresholds.
			if err := a.thresholdLatencies(s, f, files); err == nil {
				return nil
			}
		}
		if err != nil {
			return inputError(err)
		}
		list = append(list, more...)
	}
	return a.document(c, render.SampledLatencies(list), files...)
}

// sampledLatency reads the loads of a recording, of each event by itself.
func (s *session) sampledLatency(f *latencyFlags, file string) ([]render.SampledLatency, error) {
	groups := map[*perfdata.Event]*latency.Groups{}
	stream, err := source.Stream(file)
	if err != nil {
		return nil, err
	}
	m, err := samples.OpenMemory(file, stream, samples.Options{Symbols: f.symbols}, func(x *samples.Access) {
		g := groups[x.Event]
		if g == nil {
			g = &latency.Groups{}
			groups[x.Event] = g
		}
		name, rank := groupOf(x, f.by)
		g.Add(name, rank, latency.Load{Latency: x.Latency, Instruction: x.Instruction, Loads: x.Loads,
			TLBMiss: x.Source.TLB()&perffile.TLBMiss != 0, Locked: x.Source.Locked(),
			Blocked: x.Source.Blocked()&(perffile.BlockedData|perffile.BlockedAddr) != 0})
	})
	if err != nil {
		return nil, err
	}
	cpu, vendor := s.recordedOn(m)
	facility, known := latency.FacilityOf(vendor)
	var list []render.SampledLatency
	for _, e := range m.Events {
		g := groups[e.Event]
		if g == nil {
			continue
		}
		l := render.SampledLatency{Label: m.Label, CPU: cpu, Event: e.Name, Threshold: e.Threshold, Duration: m.Duration,
			Facility: facility, Known: known, By: f.by, Top: f.top, All: &g.All, Groups: g.ByCycles(), Notes: m.Notes}
		if f.by == "level" {
			l.Groups = g.ByRank()
		}
		list = append(list, l)
	}
	return list, nil
}

// groupOf names the group of an access.
func groupOf(x *samples.Access, by string) (name string, rank int) {
	switch by {
	case "function":
		return x.FunctionName(), 0
	case "mapping":
		return x.Data.Name, 0
	}
	return x.Level.Name, x.Level.Rank
}

// recordedOn returns the name and the vendor of the processor that a recording is from,
// as far as they are known.
func (s *session) recordedOn(m *samples.Memory) (name, vendor string) {
	cpu := s.cpu
	if cpu == nil && m.CPU != "" {
		if known, err := s.cat.CPU(m.CPU); err == nil {
			cpu = known
		}
	}
	if cpu != nil {
		return cpu.Name, cpu.Vendor
	}
	switch {
	case strings.HasPrefix(m.CPU, "GenuineIntel"):
		vendor = "intel"
	case strings.HasPrefix(m.CPU, "AuthenticAMD"):
		vendor = "amd"
	case m.Arch == "aarch64":
		vendor = "arm"
	case strings.HasPrefix(m.Arch, "ppc64"):
		vendor = "ibm"
	}
	return m.CPU, vendor
}

// distribution makes the distribution of a table's threshold counts.
func (s *session) distribution(t *counts.Table, file string, floor float64) (render.LatencyReport, error) {
	l := render.LatencyReport{Label: t.Label, Notes: slices.Clone(t.Notes)}
	if l.Label == "" {
		l.Label = file
	}
	var points []latency.Point
	for col := range t.Columns {
		threshold, ok := model.LatencyThreshold(t.Columns[col].Event)
		if !ok {
			continue
		}
		sum := counts.Cell{}
		for row := range t.Scopes {
			sum.Add(t.Cell(row, col))
		}
		if !sum.Ok() {
			l.Notes = append(l.Notes, counts.Notef("%s was %s", t.Columns[col].Event, sum.State))
			continue
		}
		points = append(points, latency.Point{Threshold: threshold, Count: sum.Estimate()})
	}
	if len(points) < 2 {
		return l, inputError(fmt.Errorf("%s: %v", where(file, t.Line), latency.ErrFew))
	}
	if math.IsNaN(floor) {
		var err error
		if floor, err = s.floor(t, file); err != nil {
			return l, err
		}
		l.CPU = s.cpu.Name
	}
	var err error
	if l.Distribution, err = latency.New(points, floor); err != nil {
		return l, inputError(fmt.Errorf("%s: %v", where(file, t.Line), err))
	}
	if l.First < floor {
		return l, usageError("--floor %v: %s has its first drop at %v, and no load is faster than the fastest", floor, file, l.First)
	}
	return l, nil
}

// floor is the latency of the processor's fastest load.
func (s *session) floor(t *counts.Table, file string) (float64, error) {
	if s.cpu == nil && t.CPU == "" {
		return 0, usageError("%s does not say which processor it is from: add --cpu NAME, or --floor CYCLES, the latency of its fastest load (4 or 5 on most)", file)
	}
	if err := s.settleCPU(t, file); err != nil {
		return 0, err
	}
	for _, info := range s.cat.Models(s.cpu.Name) {
		m, err := s.cat.Model(info.Name, s.cpu.Name)
		if err != nil {
			return 0, err
		}
		for i := range m.Parameters {
			if p := &m.Parameters[i]; p.Name == floorParam && p.Value != nil {
				return *p.Value, nil
			}
		}
	}
	return 0, usageError("the fastest load of %s is not known here: add --floor CYCLES (4 or 5 on most)", s.cpu.Name)
}
