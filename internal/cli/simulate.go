package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/kept"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/measure/simulated"
	"github.com/cyclestack/cyclestack/internal/progress"
	"github.com/cyclestack/cyclestack/internal/shell"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/report"
)

// simulatedFile is where simulate leaves what it simulated: in the working directory, as
// record does.
const simulatedFile = "callgrind.data"

func (a *app) simulate() *cobra.Command {
	c, f := &common{}, &statFlags{source: string(measure.Simulated), repeat: 1}
	cmd := &cobra.Command{
		Use:     "simulate [flags] [--] PROGRAM ARGS…",
		GroupID: "account",
		Short:   "Run a program in a simulator of caches, branches and the core",
		Long: `simulate is 'cyclestack stat --source simulated'. It runs the program as it is, and
then again in QEMU's user mode emulation, without output: that takes some twenty times
as long. The caches see the whole run, and a model of the core samples of it. A C
compiler builds a plugin for QEMU when it is first needed. Without QEMU the program runs
twice under valgrind, which takes longer. Programs for arm64, riscv64 and ppc64le are
emulated as well, and of these arm64 has a model of a core. The account goes to standard error. What was
simulated goes to callgrind.data, for 'cyclestack report', 'annotate' and 'diff'; the
file that was there before is kept as callgrind.data.old.`,
		Example: `  cyclestack simulate -- ./solver input.csv
  cyclestack simulate --caches 32K,8,64/48K,12,64/2M,16,64/36M,12,64 -- ./solver input.csv
  cyclestack simulate -o before.callgrind -- ./solver input.csv`,
		RunE: func(cmd *cobra.Command, program []string) error {
			if len(program) == 0 {
				return usageError("nothing to simulate: name a program")
			}
			return a.runStat(cmd.Context(), c, f, program)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	f.addCaches(cmd)
	c.addModel(cmd)
	c.addParams(cmd)
	c.addNodes(cmd)
	c.by = "run"
	c.addScreen(cmd)
	c.addOutput(cmd, report.Formats[report.Accounts]()...)
	out := flags.Lookup("output")
	out.Value, out.DefValue, out.Usage = (*plainText)(&f.keep), simulatedFile, "write what was simulated to `FILE`"
	f.keep, f.old = simulatedFile, true
	return cmd
}

// A plainText is a flag's value as it is.
type plainText string

func (p *plainText) String() string        { return string(*p) }
func (p *plainText) Set(text string) error { *p = plainText(text); return nil }
func (p *plainText) Type() string          { return "string" }

// addCaches adds the flag that says what is simulated.
func (f *statFlags) addCaches(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.simulator, "simulator", "", "simulate in `qemu|valgrind` (default: QEMU if it is installed)")
	cmd.Flags().StringVar(&f.caches, "caches", "", "simulate these `CACHES`: first level for instructions, for data, second and third level, such as 32K,8,64/48K,12,64/2M,16,64/36M,12,64 (default: this machine's, or those of --cpu)")
}

// simulation says how stat simulates where it cannot count.
func (l *meter) simulation() simulated.Options {
	o := simulated.Options{Caches: l.f.caches, Indexes: kept.NewIndexes(l.kernel.Cache), Simulator: l.f.simulator, Announce: l.announce, Stopped: func() bool { return l.ended != 0 }}
	o.Keep = func(write func(io.Writer) error) error {
		c := *l.c
		switch c.output = l.f.keep; {
		case c.output == "" && l.keeper == nil:
			return nil
		case c.output == "":
			return l.keeper.run.Write(kept.Simulated, write)
		case l.f.old:
			_ = os.Rename(c.output, c.output+".old") // what cannot be renamed is replaced
		}
		l.unkept = l.write(&c, write)
		return nil
	}
	return o
}

// announce says that the program runs again, and how far it has come.
func (l *meter) announce(p simulation.Plan) (tell func(simulated.Progress), stop func()) {
	where, about := "again in QEMU", ""
	if p.Simulator == simulation.Valgrind { // it says nothing of how far it is
		about = " of about " + simulated.Roughly(p.Takes)
		where = "again under valgrind," + strings.TrimPrefix(about, " of")
	}
	if p.Times > 1 {
		where = strings.Replace(where, "again", "twice more", 1)
	}
	fmt.Fprintf(l.err, "cyclestack stat: running it %s; Ctrl-C keeps what is known\n", where)
	var last atomic.Pointer[simulated.Progress]
	line := progress.On(l.err, func(elapsed time.Duration) string {
		so := about
		if d := last.Load(); d != nil && d.Total > 0 {
			so = fmt.Sprintf(" of about %s, %.0f %% of the run", simulated.Roughly(d.Total), 100*d.Share)
		}
		return fmt.Sprintf("simulating: %.0f s%s", elapsed.Seconds(), so)
	})
	return func(d simulated.Progress) {
		if last.Store(&d); d.Tell && line == nil {
			fmt.Fprintf(l.err, "cyclestack stat: simulating takes about %s (%s of processor time)\n", simulated.Roughly(d.Total), simulated.Roughly(d.Spend))
		}
	}, line.End
}

// next says how to see more of what was simulated.
func (l *meter) next() *bytes.Buffer {
	b := &bytes.Buffer{}
	if name := l.f.keep; name != "" || l.keeper != nil {
		fmt.Fprintf(b, "  next    %s\n          every line, and with --by function or instruction the others; cyclestack diff compares two\n", shell.Line(slices.DeleteFunc([]string{"cyclestack", "report", "--by", "line", name}, func(word string) bool { return word == "" })))
		return b
	}
	name := filepath.Base(l.program[0]) + ".callgrind"
	fmt.Fprintf(b, "  next    cyclestack stat --source simulated --keep %s %s\n          keeps it, for cyclestack report --by line %s and cyclestack diff\n",
		shell.Line([]string{name}), shell.Line(l.f.sameAgain(l.program)), shell.Line([]string{name}))
	return b
}
