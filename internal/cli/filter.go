package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cpulist"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// filterFlags say which samples of a recording count.
type filterFlags struct {
	names      [counts.Instruction + 1][]string // by kind, of nameFilters
	cpus, time string
}

// nameFilters are the flags that take names, or addresses.
var nameFilters = []struct {
	kind              counts.Kind
	flag, short, what string
}{
	{counts.Process, "process", "", "of the processes `NAME|PID`,… (* and ? stand for letters); perf's --pid"},
	{counts.Thread, "thread", "c", "of the threads `NAME|TID`,…; perf's --comm and --tid"},
	{counts.Cgroup, "cgroup", "G", "of the cgroups `PATH`,…"},
	{counts.Module, "module", "d", "in the modules `NAME`,…; perf's --dso"},
	{counts.Function, "function", "S", "in the functions `NAME`,…; perf's --symbol"},
	{counts.Line, "line", "", "of the lines `FILE:N`,…, of FILE:N-M, or of all of FILE"},
	{counts.Instruction, "instruction", "", "at the addresses `ADDR`,… in their module, or from ADDR-ADDR"},
}

// perfNames are perf's names of the flags.
var perfNames = map[string]string{
	"pid": "process", "tid": "thread", "comm": "thread", "comms": "thread", "dso": "module", "dsos": "module",
	"symbol": "function", "symbols": "function",
}

// add adds the flags.
func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, n := range nameFilters {
		flags.StringArrayVarP(&f.names[n.kind], n.flag, n.short, nil, "only samples "+n.what)
	}
	flags.StringVarP(&f.cpus, "cpu-list", "C", "", "only samples on the CPUs `0-3,8`")
	flags.StringVar(&f.time, "time", "", "only samples `FROM,TO` seconds from the beginning, or as perf script prints times; either may be empty")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if own, ok := perfNames[name]; ok {
			name = own
		}
		return pflag.NormalizedName(name)
	})
}

// A givenFilter is a flag for samples of a kind, with its value.
type givenFilter struct {
	kind       counts.Kind
	flag, text string
}

// given are the flags that are given.
func (f *filterFlags) given() []givenFilter {
	list := []givenFilter{{counts.Interval, "--time", f.time}, {counts.CPU, "-C", f.cpus}}
	for _, n := range nameFilters {
		list = append(list, givenFilter{n.kind, "--" + n.flag, strings.Join(f.names[n.kind], ",")})
	}
	return slices.DeleteFunc(list, func(g givenFilter) bool { return g.text == "" })
}

// used reports whether any of the flags is given.
func (f *filterFlags) used() bool {
	return f.cpus != "" || f.time != "" || slices.ContainsFunc(f.names[:], func(list []string) bool { return len(list) > 0 })
}

// more reports whether a given flag is not about places in the code.
func (f *filterFlags) more() bool {
	return slices.ContainsFunc(f.given(), func(g givenFilter) bool {
		return !slices.Contains([]counts.Kind{counts.Module, counts.Function, counts.Line, counts.Instruction}, g.kind)
	})
}

// words are the given flags as a command line has them.
func (f *filterFlags) words() []string {
	var list []string
	for _, g := range f.given() {
		list = append(list, g.flag, g.text)
	}
	return list
}

// String is the flags as they were given.
func (f *filterFlags) String() string { return strings.Join(f.words(), " ") }

// filter reads the flags.
func (f *filterFlags) filter() (recorded.Filter, error) {
	keep, err := f.samples()
	return recorded.Filter{Filter: keep, Text: f.String(), Code: !f.more()}, err
}

func (f *filterFlags) samples() (keep samples.Filter, err error) {
	to := map[counts.Kind]*[]string{counts.Process: &keep.Processes, counts.Thread: &keep.Threads, counts.Cgroup: &keep.Cgroups,
		counts.Module: &keep.Modules, counts.Function: &keep.Functions, counts.Line: &keep.Lines}
	for _, n := range nameFilters {
		for _, text := range f.names[n.kind] {
			names := splitNames(text)
			if slices.Contains(names, "") {
				return keep, usageError("--%s %q: a name is empty", n.flag, text)
			}
			if list := to[n.kind]; list != nil {
				*list = append(*list, names...)
				continue
			}
			for _, address := range names {
				r, err := addressRange(address)
				if err != nil {
					return keep, err
				}
				keep.Addresses = append(keep.Addresses, r)
			}
		}
	}
	if f.cpus != "" {
		if keep.CPUs, err = cpulist.Parse(f.cpus); err != nil {
			return keep, usageError("-C %s: %v", f.cpus, err)
		}
	}
	if f.time != "" {
		keep.Time, err = window(f.time)
	}
	return keep, err
}

// splitNames divides a list at its commas, but for those in brackets, as the names of
// C++ functions have them.
func splitNames(text string) []string {
	var names []string
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '(', '<', '[':
			depth++
		case ')', '>', ']':
			depth--
		case ',':
			if depth <= 0 {
				names = append(names, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(names, strings.TrimSpace(text[from:]))
}

// addressRange reads ADDR or ADDR-ADDR.
func addressRange(text string) (samples.Range, error) {
	first, last, isRange := strings.Cut(strings.TrimSpace(text), "-")
	if !isRange {
		last = first
	}
	from, err := strconv.ParseUint(first, 0, 64)
	to, err2 := strconv.ParseUint(last, 0, 64)
	if errors.Join(err, err2) != nil || to < from {
		return samples.Range{}, usageError("--instruction %s: it is an address such as 0x1234, or two with - between them", text)
	}
	return samples.Range{From: from, To: to}, nil
}

// window reads FROM,TO.
func window(text string) (*samples.Window, error) {
	bad := usageError("--time %s: it is FROM,TO in seconds; either may be empty", text)
	first, last, ok := strings.Cut(text, ",")
	if !ok {
		return nil, bad
	}
	w := &samples.Window{To: math.Inf(1)}
	for _, t := range []struct {
		text string
		to   *float64
	}{{first, &w.From}, {last, &w.To}} {
		if t.text = strings.TrimSpace(t.text); t.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, bad
		}
		*t.to = v
	}
	if w.To < w.From || first == "" && last == "" {
		return nil, bad
	}
	return w, nil
}

// namesMost is how many names a message has.
const namesMost = 4

// explained is an error of a filter that left nothing, with what it could have been.
// Other errors are returned as they are.
func (f *filterFlags) explained(err error) error {
	var e *samples.NoMatchError
	if !errors.As(err, &e) {
		return err
	}
	if e.Last {
		return inputError(fmt.Errorf("%v: each has samples, but no sample has all", e))
	}
	flag, want := "", ""
	for _, g := range f.given() {
		if g.kind == e.Kind {
			flag, want = g.flag, g.text
		}
	}
	near := spelling.Near(strings.Trim(want, "*?"), e.Names, namesMost)
	switch {
	case len(near) > 0 && e.Kind != counts.CPU && e.Kind != counts.Interval:
		return inputError(fmt.Errorf("%s: %s %s: no sample matches; did you mean %s?", e.File, flag, want, strings.Join(near, ", ")))
	case len(e.Names) > 0:
		names := strings.Join(e.Names[:min(len(e.Names), namesMost)], ", ")
		if len(e.Names) > namesMost {
			names += ", …"
		}
		return inputError(fmt.Errorf("%s: %s %s: no sample matches; there are %s", e.File, flag, want, names))
	}
	return inputError(fmt.Errorf("%s: %s %s: no sample matches", e.File, flag, want))
}
