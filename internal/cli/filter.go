package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/recorded"
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
	"symbol": "function", "symbols": "function", "sort": "by",
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

// used reports whether any of the flags is given.
func (f *filterFlags) used() bool { return len(f.conditions()) > 0 }

// conditions are those of the given flags.
func (f *filterFlags) conditions() []recorded.Condition {
	list := []recorded.Condition{{Kind: counts.Interval, Flag: "--time", Texts: given(f.time)}, {Kind: counts.CPU, Flag: "-C", Texts: given(f.cpus)}}
	for _, n := range nameFilters {
		list = append(list, recorded.Condition{Kind: n.kind, Flag: "--" + n.flag, Texts: f.names[n.kind]})
	}
	return slices.DeleteFunc(list, func(c recorded.Condition) bool { return len(c.Texts) == 0 })
}

// given is the value of a flag, none if it is empty.
func given(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// filter reads the flags.
func (f *filterFlags) filter() (recorded.Filter, error) { return recorded.NewFilter(f.conditions()...) }
