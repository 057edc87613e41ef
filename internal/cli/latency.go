package cli

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/latency"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

// floorParam is the parameter of the models that holds the latency of the fastest
// load.
const floorParam = "MIN_LOAD_LATENCY"

func (a *app) latency() *cobra.Command {
	c := &common{}
	floor := 0.0
	cmd := &cobra.Command{
		Use:     "latency FILE…",
		GroupID: "account",
		Short:   "Print the distribution of load latencies from counts at thresholds",
		Long: `latency turns counts of loads slower than a threshold into a distribution: its
drops, and bounds on the mean latency. It reads tables of thresholds and counts,
and recordings of the load-latency event at several thresholds:

  perf stat -e cpu/event=0xcd,umask=0x1,ldlat=4/p,cpu/event=0xcd,umask=0x1,ldlat=8/p …

Counts at thresholds are of a random sample of the loads, so only their pattern
means something.`,
		Example: `  cyclestack latency examples/loop-latency-case1.txt
  cyclestack latency --floor 5 --format json thresholds.txt`,
		Args: arguments(1, 0),
		RunE: func(cmd *cobra.Command, files []string) error {
			given := cmd.Flags().Changed("floor")
			if !given {
				floor = math.NaN()
			}
			return a.runLatency(c, floor, given, files)
		},
	}
	c.addModel(cmd)
	cmd.Flags().Float64Var(&floor, "floor", 0, "latency of the fastest load in `CYCLES` (default: the processor's)")
	c.addOutput(cmd, "text", "json")
	return cmd
}

func (a *app) runLatency(c *common, floor float64, given bool, files []string) error {
	if err := c.check("text", "json"); err != nil {
		return err
	}
	if given && !(floor >= 0 && floor < math.MaxFloat64) {
		return usageError("--floor %v: not a latency", floor)
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	var list []report.LatencyReport
	err = eachTable(files, func(_ source.Reader, t *counts.Table, file string) error {
		l, err := s.distribution(t, file, floor)
		list = append(list, l)
		return err
	})
	if err != nil {
		return err
	}
	return a.write(c, func(out io.Writer) error {
		if c.format == "json" {
			return report.LatencyJSON(out, list)
		}
		return report.Latency(out, list, c.options(a.terminal(c, a.out)))
	}, files...)
}

// distribution makes the distribution of a table's threshold counts.
func (s *session) distribution(t *counts.Table, file string, floor float64) (report.LatencyReport, error) {
	l := report.LatencyReport{Label: t.Label, Notes: append([]string(nil), t.Notes...)}
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
			l.Notes = append(l.Notes, fmt.Sprintf("%s was %s", t.Columns[col].Event, sum.State))
			continue
		}
		points = append(points, latency.Point{Threshold: threshold, Count: sum.Estimate()})
	}
	if len(points) < 2 {
		return l, inputError(fmt.Errorf("%s:%d: %v", file, t.Line, latency.ErrFew))
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
		return l, inputError(fmt.Errorf("%s:%d: %v", file, t.Line, err))
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
