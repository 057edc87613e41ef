package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfdata"
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
		Use:     "diff OLD NEW | diff OLD… -- NEW…",
		GroupID: "account",
		Short:   "Compare two sets of runs: cycles for each unit of work, with significance",
		Long: `diff compares two sets of runs of a program, before and after a change: the cycles
for each unit of work, in all and by node of the account, as a tree of
differences that add up to the whole; with --by function by function, matched by
name, with --by module or line by these.

OLD and NEW are recordings of any kind that report reads, several by commas, or
directories of recordings; or any number of each, with -- between them. Each block
of counts in them is a run. With four runs or more of each, a Mann–Whitney test
tells changes from chance, and for functions a permutation test, corrected for
testing several; a bootstrap gives each change its 95 % interval. Where the runs
cannot tell, diff says so. Runs that were taken by turns, old and new, are
compared in pairs: what disturbs the machine disturbs both. Recordings of samples
tell by their times that they were; of others --paired says so.

The unit of work is the instruction, and for places in the code, simulated runs and
where instructions were not counted the run, unless --per says what the runs did: --per requests=1e6 if each run served a
million, --per ops=2e6:3e6 if the old ones did two million and the new ones three,
--per run for the run as a whole.

With --fail-on, the exit status is 1 if a node, or "cycles" for all, or a
function ("function:NAME", * for any letters) has changed by more than so much of
its old value, and that is no chance.`,
		Example: `  cyclestack diff before.csv after.csv
  cyclestack diff --paired --per ops=1e6 old-1.csv old-2.csv old-3.csv -- new-1.csv new-2.csv new-3.csv
  cyclestack diff --by function --sysroot examples/diff/names examples/diff/old examples/diff/new
  cyclestack diff --fail-on 'cycles>3%' --format markdown before.csv after.csv
  cyclestack diff --by function --fail-on 'function:*>3%' --sysroot examples/diff/names examples/diff/old examples/diff/new`,
		Args: diffArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			sides, err := sidesOf(args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			f.chosen = cmd.Flags().Changed("paired")
			return a.runDiff(c, f, sides)
		},
	}
	c.addModel(cmd)
	c.addParams(cmd)
	flags := cmd.Flags()
	flags.IntVar(&c.level, "level", 0, "deepest level shown; 0 is all")
	flags.StringVar(&c.by, "by", "", "differences by `KIND` of place in the code, function, module or line, and not by node")
	flags.BoolVar(&f.paired, "paired", false, "each new run was taken next to the old run of the same number (default: if recordings of samples say so)")
	flags.IntVar(&f.top, "top", 0, "how many places in the code (default: those that have changed, and those above 0.1 %; all in json)")
	addSymbols(cmd, &f.symbols)
	flags.Lookup("sysroot").Usage += "; OLD:NEW if the sides have different ones"
	flags.StringVar(&f.per, "per", "", "unit of work: `NAME=N`, NAME=OLD:NEW, instruction or run")
	flags.StringVar(&f.failOn, "fail-on", "", "exit with 1 if `'NODE>PERCENT%'`, several by commas; NODE is a node, cycles or function:NAME, < is for less")
	c.addOutput(cmd, report.Formats[report.Comparison]()...)
	return cmd
}

// diffArguments takes two sides, or any number of recordings with -- between them.
func diffArguments(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) < 2:
		return fmt.Errorf("an argument is missing: cyclestack diff OLD NEW")
	case dash < 0 && len(args) > 2:
		return fmt.Errorf("%q is one argument too many: cyclestack diff OLD… -- NEW… takes several of each", args[2])
	case dash == 0 || dash == len(args):
		return fmt.Errorf("recordings are missing on one side of --: cyclestack diff OLD… -- NEW…")
	}
	return nil
}

// A side is one of the two sets of runs.
type side struct {
	name  string
	files []string
}

// sidesOf divides the arguments into the sides.
func sidesOf(args []string, dash int) (sides [2]side, err error) {
	if dash < 0 {
		dash = 1
	}
	for i, names := range [][]string{args[:dash], args[dash:]} {
		sides[i].name = sideName(names)
		for _, name := range names {
			files, err := recordings(name)
			if err != nil {
				return sides, err
			}
			sides[i].files = append(sides[i].files, files...)
		}
	}
	return sides, nil
}

// sideName is what a side is called: the first and the last of several.
func sideName(names []string) string {
	if len(names) > 2 {
		return names[0] + "…" + names[len(names)-1]
	}
	return strings.Join(names, ",")
}

// recordings are the files that an argument names: by commas, and those in
// directories that are no recordings themselves.
func recordings(arg string) ([]string, error) {
	var files []string
	for _, name := range strings.Split(arg, ",") {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() || isRecording(name) {
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

// isRecording reports whether a directory is one that perf record --threads wrote.
func isRecording(dir string) bool {
	d, err := perfdata.OpenDir(dir)
	if err != nil {
		return false
	}
	d.Close()
	return true
}

func (a *app) runDiff(c *common, f *diffFlags, sides [2]side) error {
	if err := c.check(report.Formats[report.Comparison]()...); err != nil {
		return err
	}
	if f.top < 0 {
		return usageError("--top %d: at least one place", f.top)
	}
	unit, err := parseWork(f.per)
	if err != nil {
		return err
	}
	limits, err := parseLimits(f.failOn)
	if err != nil {
		return err
	}
	by, err := diffKind(c.by)
	if err != nil {
		return err
	}
	if by == counts.Run && (f.top > 0 || f.symbols.Root != "" || f.symbols.Vmlinux != "" || f.symbols.Kallsyms != "") {
		return usageError("--top, --sysroot, --vmlinux and --kallsyms are about places in the code: --by function, module or line")
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	if !f.chosen {
		f.paired = byTurns(&sides)
	}
	var d diffed
	if by == counts.Run {
		d, err = diffNodes(s, f, unit, sides)
	} else {
		d, err = diffPlaces(s, f, by, unit, sides)
	}
	if err != nil {
		return err
	}
	for i := range limits {
		if err := limits[i].find(d); err != nil {
			return err
		}
	}
	files := slices.Concat(sides[0].files, sides[1].files)
	if err := a.document(c, d.document(), files...); err != nil {
		return err
	}
	return brokenLimits(limits)
}

// diffKind reads --by.
func diffKind(by string) (counts.Kind, error) {
	kinds := []counts.Kind{counts.Module, counts.Function, counts.Line}
	if by == "" {
		return counts.Run, nil
	}
	for _, k := range kinds {
		if k.String() == by {
			return k, nil
		}
	}
	return 0, usageError("--by %s: there are module, function and line; without it differences are by node", by)
}

// A diffed is a comparison that was made.
type diffed interface {
	// changes finds what a limit is about.
	changes(kind, name string) ([]limited, error)
	document() any
}

// A nodeDiff is a comparison by nodes.
type nodeDiff struct {
	h report.DiffHeader
	*account.Difference
}

func (d nodeDiff) document() any { return report.Comparison{Header: d.h, Difference: d.Difference} }

// diffNodes compares by nodes of the account.
func diffNodes(s *session, f *diffFlags, unit work, sides [2]side) (diffed, error) {
	var g gatherer
	var files []string
	exact := true
	for i := range sides {
		g.side = i
		files = append(files, sides[i].files...)
		r := newReporter(s, &g, 0, sides[i].files...)
		r.known = true // totals may be all that there is
		r.notes = &g.notes
		if err := r.run(); err != nil {
			return nil, err
		}
		exact = exact && isSimulated(r.kind)
	}
	if err := unit.settle(g.instructions, sides, exact); err != nil {
		return nil, err
	}
	readings, what, err := g.readings(unit, sides)
	if err != nil {
		return nil, err
	}
	design := account.Design{Paired: f.paired, Exact: exact}
	if err := checkPairs(design, len(readings[0]), len(readings[1])); err != nil {
		return nil, err
	}
	h := report.DiffHeader{Header: s.header("", files), Old: sides[0].name, New: sides[1].name, Per: unit.name, Assumed: unit.assumed, Paired: f.paired, What: what.String(), Notes: g.notes.lines(len(files))}
	return nodeDiff{h, account.Compare(s.model, readings[0], readings[1], design)}, nil
}

// checkPairs refuses pairs that are none.
func checkPairs(d account.Design, old, new int) error {
	if d.Paired && old != new {
		return usageError("--paired: there are %d old runs and %d new ones, which make no pairs", old, new)
	}
	return nil
}

// A work is a unit of work, and how many each run of the two sides did.
type work struct {
	name    string
	of      [2]float64 // NaN: the instructions of the run
	assumed bool       // nobody said so
}

func parseWork(per string) (work, error) {
	name, text, ok := strings.Cut(per, "=")
	switch {
	case per == "", !ok && (per == "instruction" || per == "instructions"):
		return work{"instruction", [2]float64{math.NaN(), math.NaN()}, per == ""}, nil
	case !ok && per == "run":
		return work{"run", [2]float64{1, 1}, false}, nil
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

// settle makes the run the unit if it was to be the instruction by default, and
// instructions were not counted, or the run is preferred. Instructions are given by
// side and run.
func (w *work) settle(instructions [2][]float64, sides [2]side, run bool) error {
	if !math.IsNaN(w.of[0]) {
		return nil
	}
	if w.assumed && run {
		*w = work{"run", [2]float64{1, 1}, true}
		return nil
	}
	for i, list := range instructions {
		switch {
		case !slices.ContainsFunc(list, func(n float64) bool { return !(n > 0) }):
		case !w.assumed:
			return inputError(fmt.Errorf("%s: its instructions were not counted: say with --per what a run did", sides[i].name))
		default:
			*w = work{"run", [2]float64{1, 1}, true}
			return nil
		}
	}
	return nil
}

// amount is the work of a run of a side.
func (w *work) amount(side int, instructions float64) float64 {
	if math.IsNaN(w.of[side]) {
		return instructions
	}
	return w.of[side]
}

// A gatherer takes the readings of the accounts of two sides.
type gatherer struct {
	side         int
	notes        remarks
	runs         [2][]taken
	instructions [2][]float64
}

// A taken is what one run took of the resources, as far as they were counted.
type taken [len(resources)]struct {
	account.Reading
	err error
}

// resources are what runs are compared by: the first that all have.
var resources = [...]account.Resource{account.Cycles, account.Time, account.Elapsed}

func (g *gatherer) Begin(report.Header) error { return nil }
func (g *gatherer) End() error                { return nil }

func (g *gatherer) Account(a *account.Account) error {
	var t taken
	for i, of := range resources {
		t[i].Reading, t[i].err = a.ReadingOf(of, 1)
	}
	g.runs[g.side] = append(g.runs[g.side], t)
	g.instructions[g.side] = append(g.instructions[g.side], a.Instructions())
	return nil
}

// readings are the runs' readings for each unit of work, of the first resource
// that all of them have.
func (g *gatherer) readings(unit work, sides [2]side) (out [2][]account.Reading, of account.Resource, err error) {
	for i, of := range resources {
		if out, err = g.readingsOf(i, unit, sides); err == nil {
			return out, of, nil
		}
	}
	return out, of, inputError(err)
}

func (g *gatherer) readingsOf(resource int, unit work, sides [2]side) (out [2][]account.Reading, err error) {
	for i := range g.runs {
		for k := range g.runs[i] {
			r := &g.runs[i][k][resource]
			if r.err != nil {
				return out, fmt.Errorf("%s: %v", sides[i].name, r.err)
			}
			out[i] = append(out[i], r.Per(unit.amount(i, g.instructions[i][k])))
		}
	}
	return out, nil
}
