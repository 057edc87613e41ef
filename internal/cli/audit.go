package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/report"
)

func (a *app) audit() *cobra.Command {
	c := &common{}
	cmd := &cobra.Command{
		Use:     "audit FILE…",
		GroupID: "account",
		Short:   "Check the relations between a recording's counts",
		Long: `audit checks whether a recording is consistent. The levels of the account must close,
and no part may be larger than its whole. Some relations between counts hold for any
program: no more uops retire than are issued, misses are accesses, cycles fit into
the time. Each count must be possible, and each event must have been on a counter.
Over intervals no counter may stand still. Counts of different groups have the
tolerance that this needs.

A check that FAILS is the measurement's fault: the recording contradicts itself, and
the exit status is 1. A check that "does not" hold is about what the machine did.
Without --cpu, and without the processor's name in the file, only relations of every
processor are checked.`,
		Example: `  cyclestack audit examples/loop-case1.txt
  cyclestack audit --cpu skylake counts.csv
  cyclestack audit --by interval --format json intervals.csv
  cyclestack audit --cpu ivybridge --model loop-relations --param ITERATIONS=1e9 counts.txt`,
		Args: arguments(1, 0),
		RunE: func(_ *cobra.Command, files []string) error { return a.runAudit(c, files) },
	}
	c.addModel(cmd)
	c.addParams(cmd)
	cmd.Flags().StringVar(&c.by, "by", "run", "one audit for each `KIND`, as for report")
	c.addScreen(cmd)
	c.addOutput(cmd, "text", "json")
	return cmd
}

func (a *app) runAudit(c *common, files []string) error {
	if err := c.check(); err != nil {
		return err
	}
	recs, err := a.recordings(c, files...)
	if err != nil {
		return err
	}
	defer recs.Close()
	contradicted := false
	err = a.accounts(c, recs, resolve.Request{Audits: true}, func(out io.Writer) (report.Writer, error) {
		o := c.options(a.terminal(c, a.out))
		o.Checks, o.Layout = true, report.LayoutChecks
		format := c.format
		if format == "text" {
			format = "tree"
		}
		w, err := report.New(format, out, o)
		return observer{w, func(acc *account.Account) { contradicted = contradicted || acc.Contradicted() }}, err
	})
	if err == nil && contradicted {
		return errNo
	}
	return err
}

// An observer sees the accounts that a writer is given.
type observer struct {
	report.Writer
	see func(*account.Account)
}

func (w observer) Account(a *account.Account) error {
	w.see(a)
	return w.Writer.Account(a)
}
