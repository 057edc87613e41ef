package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// elsewhere says what flags of perf are here, by command.
var elsewhere = map[string]map[string]string{
	"stat": {
		"M": "--nodes", "metrics": "--nodes", "x": "--format csv", "field-separator": "--format csv",
		"j": "--format json", "json-output": "--format json", "d": "--level", "detailed": "--level", "v": "--all", "verbose": "--all",
		"topdown": "--level", "td-level": "--level",
	},
	"report": {
		"i": "the file is an argument", "input": "the file is an argument", "s": "--by", "sort": "--by", "F": "--by", "fields": "--by",
		"g": "--format collapsed, flamegraph or pprof", "stdio": "it prints at once, in a terminal or not", "tui": "--format html",
		"percent-limit": "--top", "n": "a column, in --format csv always", "show-nr-samples": "a column, in --format csv always",
		"t": "--format csv", "field-separator": "--format csv", "w": "--width", "column-widths": "--width",
		"b": "--model taken-branches", "branch-stack": "--model taken-branches", "total-cycles": "--model taken-branches",
		"mem-mode": "cyclestack latency", "source": "cyclestack annotate", "prefix": "--sysroot", "k": "--vmlinux",
		"p": "--callers", "parent": "--callers", "inverted": "--callers", "hierarchy": "--by module,function",
		"T": "--by thread", "threads": "--by thread", "tasks": "--by process", "socket-filter": "--by socket",
		"time-quantum": "--by interval", "symbol-filter": "--function", "header": "--format json", "header-only": "--format json",
	},
}

// flagError puts an error about a flag into words for users: it suggests a flag for an
// unknown one, and says what a value should be.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if here := elsewhere[cmd.Name()][unknown.GetSpecifiedName()]; here != "" {
			return fmt.Errorf("%w, as perf has it; here: %s", err, here)
		}
		if unknown.GetSpecifiedShortnames() != "" {
			return err
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := spelling.Near(unknown.GetSpecifiedName(), names, 1); len(near) > 0 {
			return fmt.Errorf("%w: did you mean --%s?", err, near[0])
		}
		return err
	}
	var bad *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &bad) || !errors.As(err, &number) {
		return err
	}
	what := "is not a number"
	switch {
	case errors.Is(number.Err, strconv.ErrRange):
		what = "is out of range"
	case number.Func == "ParseInt":
		what = "is not an integer"
	case number.Func == "ParseUint":
		what = "is not an integer from 0 up"
	case number.Func == "ParseBool":
		what = "is neither true nor false"
	}
	return fmt.Errorf("--%s: %q %s", bad.GetFlag().Name, bad.GetValue(), what)
}
