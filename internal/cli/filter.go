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
	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/source/perfevent"
	"github.com/cyclestack/cyclestack/source/samples"
)

// filterFlags say which samples of a recording count.
type filterFlags struct {
	processes, threads, cgroups []string
	modules, functions, lines   []string
	addresses                   []string
	cpus, time                  string
}

// perfNames are perf's names of the flags.
var perfNames = map[string]string{
	"pid": "process", "tid": "thread", "comm": "thread", "comms": "thread", "dso": "module", "dsos": "module",
	"symbol": "function", "symbols": "function",
}

// add adds the flags.
func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	list := func(to *[]string, name, short, usage string) { flags.StringArrayVarP(to, name, short, nil, usage) }
	list(&f.processes, "process", "", "only samples of the processes `NAME|PID`,… (* and ? stand for letters); perf's --pid")
	list(&f.threads, "thread", "c", "only samples of the threads `NAME|TID`,…; perf's --comm and --tid")
	list(&f.cgroups, "cgroup", "G", "only samples of the cgroups `PATH`,…")
	list(&f.modules, "module", "d", "only samples in the modules `NAME`,…; perf's --dso")
	list(&f.functions, "function", "S", "only samples in the functions `NAME`,…; perf's --symbol")
	list(&f.lines, "line", "", "only samples of the lines `FILE:N`,…, of FILE:N-M, or of all of FILE")
	list(&f.addresses, "instruction", "", "only samples at the addresses `ADDR`,… in their module, or from ADDR-ADDR")
	flags.StringVarP(&f.cpus, "cpu-list", "C", "", "only samples on the CPUs `0-3,8`")
	flags.StringVar(&f.time, "time", "", "only samples `FROM,TO` seconds from the beginning, or as perf script prints times; either may be empty")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if own, ok := perfNames[name]; ok {
			name = own
		}
		return pflag.NormalizedName(name)
	})
}

// used reports whether any of the flags is given.
func (f *filterFlags) used() bool {
	n := len(f.cpus) + len(f.time)
	for _, list := range [][]string{f.processes, f.threads, f.cgroups, f.modules, f.functions, f.lines, f.addresses} {
		n += len(list)
	}
	return n > 0
}

// filter reads the flags.
func (f *filterFlags) filter() (keep samples.Filter, err error) {
	for _, l := range []struct {
		from []string
		to   *[]string
		flag string
	}{
		{f.processes, &keep.Processes, "process"}, {f.threads, &keep.Threads, "thread"}, {f.cgroups, &keep.Cgroups, "cgroup"},
		{f.modules, &keep.Modules, "module"}, {f.functions, &keep.Functions, "function"}, {f.lines, &keep.Lines, "line"},
	} {
		for _, text := range l.from {
			names := splitNames(text)
			if slices.Contains(names, "") {
				return keep, usageError("--%s %q: a name is empty", l.flag, text)
			}
			*l.to = append(*l.to, names...)
		}
	}
	for _, text := range f.addresses {
		for part := range strings.SplitSeq(text, ",") {
			r, err := addressRange(part)
			if err != nil {
				return keep, err
			}
			keep.Addresses = append(keep.Addresses, r)
		}
	}
	if f.cpus != "" {
		if keep.CPUs, err = perfevent.ParseCPUs(f.cpus); err != nil {
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

// String is the flags that are given, as they were.
func (f *filterFlags) String() string {
	var list []string
	for _, k := range []counts.Kind{counts.Interval, counts.CPU, counts.Process, counts.Thread, counts.Cgroup,
		counts.Module, counts.Function, counts.Line, counts.Instruction} {
		if flag, text := f.value(k); text != "" {
			list = append(list, flag+" "+text)
		}
	}
	return strings.Join(list, " ")
}

// value returns the flag about a kind, and what was given with it.
func (f *filterFlags) value(k counts.Kind) (flag, text string) {
	switch k {
	case counts.Process:
		return "--process", strings.Join(f.processes, ",")
	case counts.Thread:
		return "--thread", strings.Join(f.threads, ",")
	case counts.Cgroup:
		return "--cgroup", strings.Join(f.cgroups, ",")
	case counts.Module:
		return "--module", strings.Join(f.modules, ",")
	case counts.Function:
		return "--function", strings.Join(f.functions, ",")
	case counts.Line:
		return "--line", strings.Join(f.lines, ",")
	case counts.Instruction:
		return "--instruction", strings.Join(f.addresses, ",")
	case counts.CPU:
		return "-C", f.cpus
	}
	return "--time", f.time
}

// candidates is how many names a message has.
const candidates = 4

// explain says why a filter left nothing, and what it could have been.
func (f *filterFlags) explain(e *samples.NoMatchError) error {
	if e.Last {
		return inputError(fmt.Errorf("%v: each has samples, but no sample has all", e))
	}
	flag, want := f.value(e.Kind)
	near := spelling.Near(strings.Trim(want, "*?"), e.Names, candidates)
	switch {
	case len(near) > 0 && e.Kind != counts.CPU && e.Kind != counts.Interval:
		return inputError(fmt.Errorf("%s: %s %s: no sample matches; did you mean %s?", e.File, flag, want, strings.Join(near, ", ")))
	case len(e.Names) > 0:
		names := strings.Join(e.Names[:min(len(e.Names), candidates)], ", ")
		if len(e.Names) > candidates {
			names += ", …"
		}
		return inputError(fmt.Errorf("%s: %s %s: no sample matches; there are %s", e.File, flag, want, names))
	}
	return inputError(fmt.Errorf("%s: %s %s: no sample matches", e.File, flag, want))
}
