package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// elsewhere says what flags of perf are here: the line of a command, and lines "FLAG…: what", without dashes. Those of
// record and report are the tables of docs/record.md and docs/profile.md; a test writes them.
//
//go:embed elsewhere.txt
var elsewhere string

// flagOfPerf returns what a flag of perf is here, or "".
func flagOfPerf(command, flag string) string {
	of := ""
	for line := range strings.Lines(elsewhere) {
		flags, here, ok := strings.Cut(line, ": ")
		if !ok {
			of = strings.TrimSpace(line)
		} else if of == command && slices.Contains(strings.Fields(flags), flag) {
			return strings.TrimSpace(here)
		}
	}
	return ""
}

// flagError puts an error about a flag into words for users: it suggests a flag for an
// unknown one, and says what a value should be.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		here := flagOfPerf(cmd.Name(), unknown.GetSpecifiedName())
		if why, not := strings.CutPrefix(here, "no: "); not {
			return fmt.Errorf("%w, as perf has it; not here: %s", err, why)
		} else if here != "" {
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
