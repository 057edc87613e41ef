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
		Long: `audit checks whether a recording holds together: that the levels of the account
close, that no part is larger than its whole, what must hold between the counts of
the processor whatever the program (no more uops retire than are issued, misses
are accesses, cycles fit into the time), that each count is possible, that each
event was on a counter, and over intervals that no counter stands still. Counts
that were not taken together are given as much room as that needs.

What FAILS is the measurement's fault: the recording contradicts itself, and the
exit status is 1. What "does not" hold besides is what the machine did. Without
--cpu and a line in the file that names the processor, only what holds on every
processor is checked.`,
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
	c.addOutput(cmd, "text", "json")
	return cmd
}

func (a *app) runAudit(c *common, files []string) error {
	if err := c.check("text", "json"); err != nil {
		return err
	}
	recs, err := c.recordings(files...)
	if err != nil {
		return err
	}
	defer recs.Close()
	contradicted := false
	err = a.accounts(c, recs, resolve.Request{Audits: true}, func(out io.Writer) (report.Writer, error) {
		o := c.options(a.terminal(c, a.out))
		o.Layout = report.LayoutChecks
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
