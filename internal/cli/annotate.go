package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
)

// annotateFlags are the flags of annotate.
type annotateFlags struct {
	symbols  profile.Config
	source   []string // --source-path
	lines    bool
	assembly bool
	full     bool
	syntax   disasm.Syntax
}

func (a *app) annotate() *cobra.Command {
	c, f := &common{}, &annotateFlags{}
	cmd := &cobra.Command{
		Use:     "annotate [FILE] [SYMBOL]",
		GroupID: "account",
		Short:   "Print a function's source and assembly with each line's account",
		Long: `annotate prints the code of one function of a perf.data file, with the samples of
each line and instruction: cycles, stalled cycles, and the events that could cause
them, at their usual cost. Figures are percentages of the function's cycles: those of
all instructions add up to its own. An event with no stalled cycles near it is marked
as hidden: the processor did other work meanwhile, and fewer such events would gain
nothing.

Without FILE it is what was measured last: by stat, or perf.data, or callgrind.data.
SYMBOL is a function by its name, demangled or not, or a part of its name that no
other has; MODULE:SYMBOL, where several modules have it; an address or a range of
addresses as objdump shows them, 0x1136, 0x1136-0x1160 or MODULE:0x1136; or a line
of the source, FILE:LINE. Without SYMBOL it is the function with the most cycles.

Of a file of callgrind or cachegrind the lines of a function are annotated, by what
the simulator counted.

Loops are listed with their share. Iterations need precise samples of retired
instructions, or branch stacks. With these, loops also have their average trip counts
and events per iteration, and blocks the number of their executions.`,
		Example: `  cyclestack annotate --sysroot examples/annotate examples/annotate.data
  cyclestack annotate --sysroot examples/annotate examples/annotate.data solve --source-only
  cyclestack annotate --sysroot examples/annotate --asm-only examples/annotate.data solve:0x4000f6-0x400102
  cyclestack annotate --sysroot examples/annotate --nodes Stalls,L2_Miss --format csv examples/annotate.data solve.c:20`,
		Args: arguments(0, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			err := a.runAnnotate(c, f, args)
			switch {
			case (errors.Is(err, recorded.ErrNoFunction) || errors.Is(err, errNoRecording)) && len(args) == 1 && !namesFile(args):
				return fmt.Errorf("%w; nor is there a file %s: cyclestack record -o FILE makes a recording", err, args[0])
			case len(args) > 0 && errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("%w; cyclestack record -o %s makes a recording", err, args[0])
			}
			return err
		},
	}
	c.addModel(cmd)
	c.addParams(cmd)
	flags := cmd.Flags()
	flags.IntVar(&c.level, "level", 0, "columns for the nodes up to this level (default: stalls, and the events that could cause them)")
	flags.StringVar(&c.nodes, "nodes", "", "columns for the nodes whose name or path matches `PATTERN` (*, ?; several by commas)")
	flags.BoolVar(&f.lines, "source-only", false, "the source's lines without the instructions")
	flags.BoolVar(&f.assembly, "asm-only", false, "the instructions without the source's lines")
	flags.BoolVar(&f.full, "full", false, "also the code without samples, however much of it there is")
	flags.Var(&f.syntax, "syntax", "of x86 instructions: `att|intel`")
	a.addSymbols(cmd, &f.symbols)
	flags.StringArrayVar(&f.source, "source-path", nil, "another `DIRECTORY` to look for sources in, by their paths, parts of them or names (may be repeated)")
	c.addOutput(cmd, report.Formats[render.Annotation]()...)
	return cmd
}

func (a *app) runAnnotate(c *common, f *annotateFlags, args []string) error {
	if err := c.check(); err != nil {
		return err
	}
	if f.lines && f.assembly {
		return usageError("--source-only and --asm-only: one of them")
	}
	var run *recorded.KeptRun
	if !namesFile(args) {
		name, last, err := a.last("annotate", true)
		if err != nil {
			return err
		}
		args, run = append([]string{name}, args...), last
	}
	recs, err := a.recordings(c, args[0])
	if err != nil {
		return err
	}
	defer recs.Close()
	recs.Kept = run
	o := recorded.AnnotateOptions{Instructions: f.assembly, Syntax: f.syntax, Symbols: f.symbols, Sources: f.source}
	if len(args) > 1 {
		o.Symbol = args[1]
	}
	code, err := recs.Annotate(o)
	if err != nil {
		return err
	}
	code.Source, code.Assembly, code.Full = f.lines, f.assembly, f.full
	return a.document(c, *code, args[0])
}

// namesFile reports whether the first of annotate's arguments is a recording. A single
// one that is no file, and looks like no path, is a symbol of what was measured last.
func namesFile(args []string) bool {
	if len(args) != 1 {
		return len(args) == 2
	}
	_, err := os.Stat(args[0])
	return err == nil || args[0] == "-" || strings.ContainsRune(args[0], os.PathSeparator) || strings.HasSuffix(args[0], ".data")
}
