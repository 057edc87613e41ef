package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/report"
)

func (a *app) diff() *cobra.Command {
	c := &common{}
	per, failOn := "", ""
	cmd := &cobra.Command{
		Use:     "diff OLD NEW",
		GroupID: "account",
		Short:   "Compare two sets of runs: cycles for each unit of work, with significance",
		Long: `diff compares two sets of runs of a program, before and after a change: the cycles
for each unit of work, in all and by node of the account, as a tree of
differences that add up to the whole.

OLD and NEW are recordings, several by commas, or directories of recordings; each
block of counts in them is a run. With four runs or more of each, a Mann–Whitney
test tells changes from chance, corrected for testing several nodes, and a
bootstrap gives each change its 95 % interval. Where the runs cannot tell, diff
says so.

The unit of work is the instruction, unless --per says what the runs did: --per
requests=1e6 if each run served a million, --per ops=2e6:3e6 if the old ones did
two million and the new ones three, --per run for the run as a whole.

With --fail-on, the exit status is 1 if a node, or "cycles" for all, has changed
by more than so much of its old value, and that is no chance.`,
		Example: `  cyclestack diff before.csv after.csv
  cyclestack diff --cpu skylakex --per ops=1e6 old1.csv,old2.csv,old3.csv,old4.csv new.csv
  cyclestack diff --fail-on 'cycles>3%' --format markdown before.csv after.csv`,
		Args: arguments(2, 2),
		RunE: func(_ *cobra.Command, sides []string) error { return a.runDiff(c, per, failOn, sides) },
	}
	c.addModel(cmd)
	c.addParams(cmd)
	cmd.Flags().IntVar(&c.level, "level", 0, "deepest level shown; 0 is all")
	cmd.Flags().StringVar(&per, "per", "instruction", "unit of work: `NAME=N`, NAME=OLD:NEW, instruction or run")
	cmd.Flags().StringVar(&failOn, "fail-on", "", "exit with 1 if `'NODE>PERCENT%'`, several by commas; NODE is a node or cycles, < is for less")
	c.addOutput(cmd, report.DiffFormats...)
	return cmd
}

func (a *app) runDiff(c *common, per, failOn string, sides []string) error {
	if err := c.check(report.DiffFormats...); err != nil {
		return err
	}
	unit, err := parseWork(per)
	if err != nil {
		return err
	}
	limits, err := parseLimits(failOn)
	if err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	var readings [2][]account.Reading
	var all []string
	for i, side := range sides {
		files, err := recordings(side)
		if err != nil {
			return err
		}
		all = append(all, files...)
		w := &gatherer{work: unit.of[i], side: side}
		if err := newReporter(s, w, 0, files...).run(); err != nil {
			return err
		}
		readings[i] = w.readings
	}
	d := account.Compare(s.model, readings[0], readings[1])
	for i := range limits {
		if err := limits[i].find(d); err != nil {
			return err
		}
	}
	h := report.DiffHeader{Header: s.header("", all), Old: sides[0], New: sides[1], Per: unit.name}
	err = a.write(c, func(out io.Writer) error {
		return report.Diff(c.format, out, h, d, c.options(a.terminal(c, a.out)))
	}, all...)
	if err != nil {
		return err
	}
	for i := range limits {
		if limits[i].broken() {
			return &failure{exitNo, fmt.Errorf("--fail-on: %s", &limits[i])}
		}
	}
	return nil
}

// recordings are the files of a side: those named, and those in directories.
func recordings(side string) ([]string, error) {
	var files []string
	for _, name := range strings.Split(side, ",") {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			files = append(files, name) // opening it says what is wrong
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, inputError(err)
		}
		before := len(files)
		for _, e := range entries {
			if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
				files = append(files, filepath.Join(name, e.Name()))
			}
		}
		if len(files) == before {
			return nil, inputError(fmt.Errorf("%s: no recordings in it", name))
		}
	}
	return files, nil
}

// A work is a unit of work, and how many each run of the two sides did.
type work struct {
	name string
	of   [2]float64 // NaN: the instructions of the run
}

func parseWork(per string) (work, error) {
	name, text, ok := strings.Cut(per, "=")
	switch {
	case !ok && (per == "instruction" || per == "instructions"):
		return work{"instruction", [2]float64{math.NaN(), math.NaN()}}, nil
	case !ok && per == "run":
		return work{"run", [2]float64{1, 1}}, nil
	case !ok || name == "":
		return work{}, usageError("--per %s: it is NAME=N, NAME=OLD:NEW, instruction or run", per)
	}
	w := work{name: name}
	old, new, two := strings.Cut(text, ":")
	if !two {
		new = old
	}
	for i, s := range []string{old, new} {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return work{}, usageError("--per %s: %q is not a number of %s", per, s, name)
		}
		w.of[i] = v
	}
	return w, nil
}

// A gatherer takes the readings of the accounts that it is given.
type gatherer struct {
	work     float64
	side     string
	readings []account.Reading
}

func (g *gatherer) Begin(report.Header) error { return nil }
func (g *gatherer) End() error                { return nil }

func (g *gatherer) Account(a *account.Account) error {
	work := g.work
	if math.IsNaN(work) {
		if work = a.Instructions(); math.IsNaN(work) {
			return inputError(fmt.Errorf("%s: its instructions were not counted: say with --per what a run did", g.side))
		}
	}
	r, err := a.Reading(work)
	if err != nil {
		return inputError(fmt.Errorf("%s: %v", g.side, err))
	}
	g.readings = append(g.readings, r)
	return nil
}

// A limit is one condition of --fail-on.
type limit struct {
	node   string
	less   bool
	share  float64
	change *account.Change
}

var limitForm = regexp.MustCompile(`^\s*([A-Za-z0-9_]+)\s*([<>])\s*([0-9.]+)\s*%\s*$`)

func parseLimits(text string) ([]limit, error) {
	var list []limit
	if text == "" {
		return nil, nil
	}
	for _, s := range strings.Split(text, ",") {
		m := limitForm.FindStringSubmatch(s)
		if m == nil {
			return nil, usageError("--fail-on %s: it is NODE>PERCENT%%, such as 'cycles>3%%'", s)
		}
		share, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, usageError("--fail-on %s: %q is not a number", s, m[3])
		}
		list = append(list, limit{node: m[1], less: m[2] == "<", share: share / 100})
	}
	return list, nil
}

// find finds the change that the limit is about.
func (l *limit) find(d *account.Difference) error {
	if l.node == "cycles" {
		l.change = &d.Total
		return nil
	}
	for i := range d.Model.Nodes {
		if n := &d.Model.Nodes[i]; n.Name == l.node && n.Section == "" {
			l.change = &d.Nodes[i]
			return nil
		}
	}
	return usageError("--fail-on %s: %s has no such node", l.node, d.Model.Name)
}

// broken reports whether the change is beyond the limit, and no chance.
func (l *limit) broken() bool {
	switch l.change.Verdict {
	case account.More:
		return !l.less && l.change.Relative() > l.share
	case account.Less:
		return l.less && -l.change.Relative() > l.share
	}
	return false
}

func (l *limit) String() string {
	return fmt.Sprintf("%s changed by %+.2f %%", l.node, 100*l.change.Relative())
}
