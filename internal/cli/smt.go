package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/report"
)

func (a *app) smt() *cobra.Command {
	c, f := &common{}, &statFlags{source: string(measure.PMU), repeat: 1}
	siblings := ""
	cmd := &cobra.Command{
		Use:     "smt FILE | smt [-a | -C CPUS] [-- PROGRAM ARGS…]",
		GroupID: "account",
		Short:   "Say how often none, one or both logical processors of a core ran",
		Long: `smt splits elapsed time, core by core, into neither, only one or both logical
processors active. It counts this machine, until the program ends or Ctrl-C. Or it
reads a recording of three events: the time-stamp counter, the reference cycles of
each logical processor, and those of any of them:

  perf stat -a -A -x, -e msr/tsc/,ref-cycles,cpu/event=0x3c,umask=0x1,any=1/ -o smt.csv -- ./app

(newer processors, which have no any-thread counting, use other events:
cyclestack models --cpu NAME smt-occupancy).

Which logical processors share a core is not in such a recording. A recording of
two is taken to be of one core, and the output says so; otherwise --siblings
tells: pairs such as 0:28,1:29, or +28 if CPU n shares a core with n+28.`,
		Example: `  cyclestack smt -a -o machine.txt -- sleep 1    this machine, for a second
  cyclestack smt examples/smt-skylakex.csv
  cyclestack smt --cpu haswell --param BASE_RATIO=34 --siblings +4 smt.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash == 0 || f.machine() && dash < 0 && len(args) == 0 {
				return a.runLiveSMT(cmd.Context(), c, f, siblings, args)
			}
			if err := arguments(1, 1)(cmd, args); err != nil {
				return err
			}
			if f.machine() {
				return usageError("%s: a recording; to count this machine, put -- before the program", args[0])
			}
			return a.runSMT(c, siblings, args[0])
		},
	}
	f.addCPUs(cmd)
	c.addModel(cmd)
	c.addParams(cmd)
	c.addNodes(cmd)
	cmd.Flags().StringVar(&siblings, "siblings", "", "logical processors that share a core: `0:28,1:29` or +28")
	cmd.Flags().StringVar(&c.by, "by", "run", "one account for each `run|interval`")
	c.addScreen(cmd)
	c.addOutput(cmd, report.Formats[report.Accounts]()...)
	return cmd
}

func (a *app) runSMT(c *common, siblings, file string) error {
	if err := c.check(); err != nil {
		return err
	}
	by, err := parseBy(c.by)
	if err != nil {
		return err
	}
	pairs, err := recorded.ParseSiblings(siblings)
	if err != nil {
		return err
	}
	recs, err := a.recordings(c, file)
	if err != nil {
		return err
	}
	defer recs.Close()
	return a.write(c, func(out io.Writer) error {
		w, err := report.New(c.format, out, c.options(a.terminal(c, a.out)))
		if err != nil {
			return usageError("%v", err)
		}
		return recs.SMT(w, by, pairs)
	}, file)
}
