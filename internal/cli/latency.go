package cli

import (
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
)

// latencyFlags are the flags of latency.
type latencyFlags struct {
	floor   float64 // NaN if it is not given
	by      string
	top     int
	symbols profile.Config
}

func (a *app) latency() *cobra.Command {
	c, f := &common{}, &latencyFlags{}
	cmd := &cobra.Command{
		Use:     "latency FILE…",
		GroupID: "account",
		Short:   "Print the distribution of load latencies",
		Long: `latency prints how long loads took, from what was recorded of them.

From samples with latencies it prints the distribution in powers of two, its mean and
percentiles. perf mem record takes such samples with Intel's PEBS, AMD's IBS, Arm's
SPE or on POWER. Raw samples of ibs_op and the AUX area of arm_spe are read as well.
The same follows for each level of the memory hierarchy (--by level), function, line or
instruction. Further divisions are outcomes of snoops and of the TLB, and the data (--by
mapping): a variable, the heap, a stack, a file. Each sample stands for as many loads as its
period says. Every figure has its sampling error. The output says what the processor
measures, and the loads it leaves out.

From counts of loads slower than a threshold it prints the distribution, its drops,
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
	flags.StringVar(&f.by, "by", recorded.LatencyGroups[0], "of samples: what they are divided by, `"+strings.Join(recorded.LatencyGroups, "|")+"`")
	flags.IntVar(&f.top, "top", 0, "of samples: how many lines (default: those above 0.5 % of the cycles; all in json and csv)")
	a.addSymbols(cmd, &f.symbols)
	c.addScreen(cmd)
	c.addOutput(cmd, report.Formats[render.Latencies]()...)
	return cmd
}

func (a *app) runLatency(c *common, f *latencyFlags, files []string) error {
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case !math.IsNaN(f.floor) && !(f.floor >= 0 && f.floor < math.MaxFloat64):
		return usageError("--floor %v: not a latency", f.floor)
	case !slices.Contains(recorded.LatencyGroups, f.by):
		return usageError("--by %s: there are %s", f.by, strings.Join(recorded.LatencyGroups, ", "))
	case f.top < 0:
		return usageError("--top %d: at least one line", f.top)
	}
	return a.documentOf(c, files, func(recs *recorded.Recordings) (any, error) {
		return recs.Latencies(recorded.LatencyOptions{Floor: f.floor, By: f.by, Top: f.top, Symbols: f.symbols})
	})
}
