package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/limits"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
)

// diffFlags are the flags of diff.
type diffFlags struct {
	per    string
	failOn string
	paired bool
	chosen bool // somebody said whether runs are paired
	top    int
	// symbols say where programs are; its Root may be OLD:NEW.
	symbols profile.Config
}

func (a *app) diff() *cobra.Command {
	c, f := &common{}, &diffFlags{}
	cmd := &cobra.Command{
		Use:     "diff [OLD [NEW]] | diff OLD… -- NEW…",
		GroupID: "account",
		Short:   "Compare two sets of runs, with significance",
		Long: `diff compares two sets of runs of a program, before and after a change. It prints the
cycles for each unit of work, in all and by node. The tree's differences add up to the
whole. With --by function, module or line it compares these, matched by
name.

OLD and NEW are recordings of any kind that report reads, several by commas, or
directories of recordings; or any number of each, with -- between them. Each block of
counts in them is a run. With four runs or more of each, a permutation test separates
changes from chance. It is corrected for multiple testing. A bootstrap gives each change
its 95 % interval. Where the runs are too few or too noisy, diff says so. Old and new
runs that alternate are compared in pairs, since the same disturbances affect both.
Recordings of samples show this by their times; for others there is --paired.

Without NEW it is the last run of stat, and without OLD the run before.

The unit of work is the instruction. It is the run for places in the code, for
simulated runs, and where instructions were not counted. --per names another unit:
requests=1e6 if each run served a million, ops=2e6:3e6 if the old ones did two million
and the new ones three. The unit "run" is the run as a whole.

With --fail-on the exit status is 1 after a significant change by more than a share of
the old value. What may change is a node, "cycles" for all, or a function
("function:NAME", * for any letters).`,
		Example: `  cyclestack diff before.csv after.csv
  cyclestack diff --paired --per ops=1e6 old-1.csv old-2.csv old-3.csv -- new-1.csv new-2.csv new-3.csv
  cyclestack diff --by function --sysroot examples/diff/names examples/diff/old examples/diff/new
  cyclestack diff --fail-on 'cycles>3%' --format markdown before.csv after.csv
  cyclestack diff --by function --fail-on 'function:*>3%' --sysroot examples/diff/names examples/diff/old examples/diff/new`,
		Args: diffArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.chosen = cmd.Flags().Changed("paired")
			return a.runDiff(c, f, args, cmd.ArgsLenAtDash())
		},
	}
	c.addModel(cmd)
	c.addParams(cmd)
	flags := cmd.Flags()
	flags.IntVar(&c.level, "level", 0, "deepest level shown; 0 is all")
	flags.StringVar(&c.by, "by", "", "differences by `KIND` of place in the code, function, module or line, and not by node")
	flags.BoolVar(&f.paired, "paired", false, "each new run was taken next to the old run of the same number (default: if recordings of samples say so)")
	flags.IntVar(&f.top, "top", 0, "how many places in the code (default: those that have changed, and those above 0.1 %; all in json)")
	a.addSymbols(cmd, &f.symbols)
	flags.Lookup("sysroot").Usage += "; OLD:NEW if the sides have different ones"
	flags.StringVar(&f.per, "per", "", "unit of work: `NAME=N`, NAME=OLD:NEW, instruction or run")
	flags.StringVar(&f.failOn, "fail-on", "", "exit with 1 if `'NODE>PERCENT%'`, several by commas; NODE is a node, cycles or function:NAME, < is for less")
	c.addScreen(cmd)
	c.addOutput(cmd, report.Formats[report.Comparison]()...)
	return cmd
}

// diffArguments takes two sides, or any number of recordings with -- between them.
func diffArguments(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 && len(args) > 2:
		return fmt.Errorf("%q is one argument too many: cyclestack diff OLD… -- NEW… takes several of each", args[2])
	case dash == 0 || dash == len(args):
		return fmt.Errorf("recordings are missing on one side of --: cyclestack diff OLD… -- NEW…")
	}
	return nil
}

func (a *app) runDiff(c *common, f *diffFlags, args []string, dash int) error {
	if err := c.check(); err != nil {
		return err
	}
	o, limits, err := f.options(c)
	if err != nil {
		return err
	}
	recs, err := a.recordings(c)
	if err != nil {
		return err
	}
	defer recs.Close()
	if dash < 0 {
		dash = 1
		if args, err = a.lastSides(args, c.by != ""); err != nil {
			return err
		}
	}
	var sides [2]recorded.Side
	for i, names := range [][]string{args[:dash], args[dash:]} {
		if sides[i], err = recs.Side(names); err != nil {
			return err
		}
	}
	d, err := recs.Diff(sides, o)
	if err != nil {
		return err
	}
	broken, err := recorded.Broken(limits, d)
	if err != nil {
		return err
	}
	if err := a.document(c, d.Document(), recs.Names...); err != nil || broken == "" {
		return err
	}
	return fault.Nof("--fail-on: %s", broken)
}

// options reads the flags.
func (f *diffFlags) options(c *common) (o recorded.DiffOptions, list []limits.Limit, err error) {
	if f.top < 0 {
		return o, nil, usageError("--top %d: at least one place", f.top)
	}
	o = recorded.DiffOptions{Paired: f.paired, Ordered: f.chosen, Top: f.top, Symbols: f.symbols, Roots: [2]string{f.symbols.Root, f.symbols.Root}}
	if old, new, ok := strings.Cut(f.symbols.Root, ":"); ok {
		o.Roots = [2]string{old, new}
	}
	if o.Work, err = recorded.ParseWork(f.per); err != nil {
		return o, nil, err
	}
	if list, err = limits.Parse(f.failOn); err != nil {
		return o, nil, err
	}
	if o.By, err = diffKind(c.by); err != nil {
		return o, nil, err
	}
	if o.By == counts.Run && (f.top > 0 || f.symbols.Root != "" || f.symbols.Vmlinux != "" || f.symbols.Kallsyms != "") {
		return o, nil, usageError("--top, --sysroot, --vmlinux and --kallsyms are about places in the code: --by function, module or line")
	}
	for _, l := range list {
		if l.Kind != "" && o.By == counts.Run {
			return o, nil, usageError("--fail-on %s:%s: --by %s compares by it", l.Kind, l.Name, l.Kind)
		}
	}
	return o, list, nil
}

// diffKind reads --by.
func diffKind(by string) (counts.Kind, error) {
	if by == "" {
		return counts.Run, nil
	}
	for _, k := range []counts.Kind{counts.Module, counts.Function, counts.Line} {
		if k.String() == by {
			return k, nil
		}
	}
	return 0, usageError("--by %s: there are module, function and line; without it differences are by node", by)
}
