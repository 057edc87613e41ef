package cli

import (
	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/report"
)

func (a *app) c2c() *cobra.Command {
	c, o := &common{}, &recorded.SharingOptions{}
	cmd := &cobra.Command{
		Use:     "c2c FILE",
		GroupID: "account",
		Short:   "Print the cache lines that threads share",
		Long: `c2c prints the cache lines that several threads use. It reads samples of loads and
stores that name the address of their data: perf c2c record and perf mem record take
them. Raw samples of AMD's ibs_op and the AUX area of Arm's SPE have them as well.

It prints how many loads found each line modified in another core's cache (HITM),
loads, stores and threads. Sharing is false if no thread uses bytes that another one writes:
the data only lies on the same line. For one line it prints the offsets, and the code
that reads and writes there. Counts are of samples, by the rules of perf c2c.`,
		Example: `  cyclestack c2c examples/sharing.data
  cyclestack c2c --line 0x7f0000000040 examples/sharing.data
  cyclestack c2c --format json examples/sharing.data`,
		Args: arguments(1, 1),
		RunE: func(_ *cobra.Command, files []string) error {
			if err := c.check(); err != nil {
				return err
			}
			return a.documentOf(c, files, func(recs *recorded.Recordings) (any, error) { return recs.Sharing(*o) })
		},
	}
	c.addModel(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.Line, "line", "", "`ADDRESS` in the line that is shown in detail (default: the first line)")
	flags.IntVar(&o.Size, "line-size", 0, "`BYTES` of a cache line (default: those of the recorded machine, or 64)")
	flags.IntVar(&o.Top, "top", 0, "how many lines (default: 6; all in json and csv)")
	a.addSymbols(cmd, &o.Symbols)
	c.addScreen(cmd)
	c.addOutput(cmd, report.Formats[*render.SharedLines]()...)
	return cmd
}
