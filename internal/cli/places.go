package cli

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/shell"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
)

// placeFlags are the flags of report that are about samples, and several recordings.
type placeFlags struct {
	top      int
	symbols  profile.Config
	interval millis
	expand   string
	filter   filterFlags
	grouping recorded.Grouping

	children, noInline bool
	callers, callees   string
}

// add adds the flags.
func (f *placeFlags) add(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.top, "top", 0, "how many places in the code (default: those above 0.5 %; all in json and csv)")
	flags.StringVar(&f.expand, "expand", "", "also columns for the parts of the `NODES` (patterns as of --nodes), or of the whole's bottleneck: bottleneck")
	flags.VarP(&f.interval, "interval", "I", "how long the intervals of --by interval are, in `MS` (default: of samples some twenty, of counts those recorded)")
	flags.BoolVar(&f.noInline, "no-inline", false, "inlined calls are part of the function around them, and no functions")
	flags.BoolVar(&f.children, "children", false, "functions with what they call, by their callchains")
	flags.StringVar(&f.callers, "callers", "", "who calls the `FUNCTION`, with its share by caller")
	flags.StringVar(&f.callees, "callees", "", "what the `FUNCTION` calls, with the shares of these")
	a.addSymbols(cmd, &f.symbols)
	f.filter.add(cmd)
	flags.BoolVar(&f.grouping.Together, "together", false, "of several files: they are runs of the same thing, whatever they say; those with other events are parts of it")
	flags.BoolVar(&f.grouping.Separate, "separate", false, "of several files: each run by itself, side by side")
}

// used reports whether any of the flags that are about samples is given.
func (f *placeFlags) used() bool {
	return f.top != 0 || len(f.programs()) > 0 || f.interval != 0 || f.expand != "" || f.children || f.callers+f.callees != "" || f.filter.used()
}

// options reads the flags.
func (f *placeFlags) options(c *common, by recorded.Split) (*recorded.PlaceOptions, error) {
	if f.top < 0 {
		return nil, usageError("--top %d: at least one place", f.top)
	}
	calls, err := f.calls(by)
	if err != nil {
		return nil, err
	}
	if calls.View != 0 {
		by = recorded.SplitBy(counts.Function)
	}
	filter, err := f.filter.filter()
	return &recorded.PlaceOptions{Brief: c.brief(), Calls: calls, Split: by, Top: f.top, All: c.format != report.Formats[report.Accounts]()[0], Interval: time.Duration(f.interval),
		Expand: f.expand, NoInline: f.noInline, Filter: filter, Symbols: f.symbols, Grouping: f.grouping}, err
}

// calls reads the flags for callchains.
func (f *placeFlags) calls(by recorded.Split) (c samples.Calls, err error) {
	n := 0
	for _, of := range []struct {
		given bool
		calls samples.Calls
	}{
		{f.children, samples.Calls{View: samples.Children}},
		{f.callers != "", samples.Calls{View: samples.Callers, Function: f.callers}},
		{f.callees != "", samples.Calls{View: samples.Callees, Function: f.callees}},
	} {
		if of.given {
			c, n = of.calls, n+1
		}
	}
	return c, refuse(
		rule{n > 1, "--children, --callers and --callees: only one of them"},
		rule{n > 0 && len(by.Kinds) > 0 && by.String() != counts.Function.String(), "--children, --callers and --callees are by function"},
		rule{n > 0 && f.interval > 0, "--interval is not for --children, --callers and --callees"},
	)
}

// scopeKinds are the scopes that --by takes for counts.
var scopeKinds = []counts.Kind{counts.Run, counts.Interval, counts.CPU, counts.Core, counts.Die, counts.Socket,
	counts.Node, counts.Process, counts.Thread, counts.Comm, counts.Cgroup}

// splitKinds are those that --by takes for samples as well.
var splitKinds = slices.Concat(scopeKinds, samples.Kinds)

func kindNames(kinds []counts.Kind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
	}
	return names
}

func placeNames() []string { return kindNames(samples.Kinds) }

// perfKinds are the names of kinds as perf report --sort has them.
var perfKinds = map[string]string{"pid": "process", "tid": "thread", "dso": "module", "sym": "function", "symbol": "function", "srcline": "line"}

// parseKinds reads --by.
func parseKinds(text string, allowed []counts.Kind) (list []counts.Kind, err error) {
	names := kindNames(allowed)
	for _, name := range strings.Split(text, ",") {
		name = strings.TrimSpace(name)
		i := slices.Index(names, cmp.Or(perfKinds[name], name))
		if i < 0 {
			return nil, usageError("--by %s: there are %s", name, strings.Join(names, ", "))
		}
		list = append(list, allowed[i])
	}
	return list, nil
}

// parseBy reads --by for counts.
func parseBy(text string) (by counts.By, err error) {
	kinds, err := parseKinds(text, scopeKinds)
	for _, k := range kinds {
		by = by.With(k)
	}
	return by, err
}

// parseSplit reads --by for samples.
func parseSplit(text string) (recorded.Split, error) {
	kinds, err := parseKinds(text, splitKinds)
	return recorded.SplitBy(kinds...), err
}

// next is the command line of a closer look at recordings: a report with all that was
// given, or annotate, which has no such flags, of the first file.
func (f *placeFlags) next(c *common, filter, files []string, to recorded.Closer) report.Step {
	words := c.words("report", "--by", to.By.String())
	if to.Symbol != "" {
		words = append(c.words("annotate"), f.programs()...)
		return report.Step{Command: shell.Line(append(words, files[0], to.Symbol)), Why: "its code, line by line"}
	}
	words = slices.Concat(words, f.programs(), filter)
	if f.grouping.Together {
		words = append(words, "--together")
	}
	return report.Step{Command: shell.Line(append(words, files...)), Why: "which " + to.By.String() + "s it is in"}
}

// words begin the command line of a command with the same choice of method.
func (c *common) words(command ...string) []string {
	words := append([]string{"cyclestack"}, command...)
	for _, of := range []struct{ flag, value string }{
		{"--cpu", c.cpu}, {"--model", c.model}, {"--smt", c.smt}, {"--workload", c.workload}, {"--penalties", c.penalties},
	} {
		if of.value != "" {
			words = append(words, of.flag, of.value)
		}
	}
	for _, file := range c.files {
		words = append(words, "--model-file", file)
	}
	for _, param := range c.params {
		words = append(words, "--param", param)
	}
	return words
}

// programs are the given flags that say where programs are.
func (f *placeFlags) programs() []string {
	var words []string
	for _, of := range []struct{ flag, value string }{
		{"--sysroot", f.symbols.Root}, {"--vmlinux", f.symbols.Vmlinux}, {"--kallsyms", f.symbols.Kallsyms},
	} {
		if of.value != "" {
			words = append(words, of.flag, of.value)
		}
	}
	return words
}
