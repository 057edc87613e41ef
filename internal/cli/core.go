package cli

import (
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/hostinfo"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
)

// coreFlags are the flags of core.
type coreFlags struct {
	cpus     []string
	hex, asm string
	loop     string
	unrolled bool
	same     bool
	measured string
	full     bool
	trace    bool
	explain  bool
	times    int // iterations of the picture
	syntax   disasm.Syntax
	symbols  profile.Config
}

func (a *app) core() *cobra.Command {
	c, f := &common{}, &coreFlags{}
	cmd := &cobra.Command{
		Use:     "core [PROGRAM FUNCTION | RECORDING [FUNCTION]]",
		GroupID: "account",
		Short:   "Say how many cycles loops take in the core, and what limits them",
		Long: `core executes code on a model of a processor's core. Caches and branch prediction are
perfect there. It prints the cycles of an iteration and what limits them: front end,
dispatch width, a group of ports, the divider, a chain of dependences, or a full
queue. Each limit has cycles of its own, so that one sees what comes next.

The code is the innermost loops of a program's FUNCTION; the hottest loops of a
perf.data file or of a kept simulation; blocks of machine code in hexadecimal, one a
line (--hex); or a file of assembly (--asm), which GNU's assembler assembles. --loop N
chooses a loop of a function. Blocks need --loop, for code whose last instruction jumps
back, or --unrolled, for copies that follow each other.

Of a recording the measured cycles of an iteration stand next to the model's. It needs
branch stacks, or retired instructions and cycles.

Several --cpu stand side by side. --format csv prints one row for each block.`,
		Example: `  cyclestack core --cpu amdzen4 examples/annotate/bin/solve solve
  cyclestack core --sysroot examples/annotate examples/annotate.data
  cyclestack core --cpu amdzen4 examples/annotate/bin/solve solve --loop 1 --trace
  cyclestack core --cpu amdzen4 --hex examples/blocks.txt --loop --format csv
  cyclestack core --cpu skylakex --cpu amdzen4 --hex examples/blocks.txt --unrolled
  cyclestack core --cpu sandybridge --explain-model`,
		Args: arguments(0, 3),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runCore(cmd, c, f, args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.cpus, "cpu", nil, "processor, by `ID` or name (may be repeated; default: this machine's)")
	flags.StringVar(&f.hex, "hex", "", "read machine code in hexadecimal from `FILE`, one block a line; - is standard input")
	flags.StringVar(&f.asm, "asm", "", "read assembly from `FILE`; - is standard input")
	flags.StringVar(&f.loop, "loop", "", "the `NUMBER` of a loop of the function; of blocks: each is a loop")
	flags.Lookup("loop").NoOptDefVal = core.EachBlock
	flags.BoolVar(&f.unrolled, "unrolled", false, "copies of each block follow each other")
	flags.BoolVar(&f.same, "same-registers", false, "all registers and memory hold one number when a block starts, as in the measurements of BHive")
	flags.BoolVarP(&f.full, "verbose", "v", false, "all limits, the use of ports by each instruction, all loops")
	flags.StringVar(&f.measured, "measured", "", "lines of a function and its measured cycles an iteration, to compare the model with; a `FILE`, or -")
	flags.BoolVar(&f.trace, "trace", false, "the picture of the pipeline, cycle by cycle; also as svg, konata (its viewer) and o3pipeview (gem5's)")
	flags.IntVar(&f.times, "iterations", 0, "the `NUMBER` of iterations in the picture (default: as many as are clear)")
	flags.BoolVar(&f.explain, "explain-model", false, "explain the model and the sources of each --cpu")
	flags.Var(&f.syntax, "syntax", "of instructions: `att|intel`")
	a.addSymbols(cmd, &f.symbols)
	_ = cmd.RegisterFlagCompletionFunc("cpu", completeNames(resolve.CPUNames))
	formats := report.Formats[render.Cores]()
	for _, name := range report.Formats[render.Pictures]() {
		if !slices.Contains(formats, name) {
			formats = append(formats, name)
		}
	}
	c.addOutput(cmd, formats...)
	return cmd
}

func (a *app) runCore(cmd *cobra.Command, c *common, f *coreFlags, args []string) error {
	if err := c.check(); err != nil {
		return err
	}
	r := core.Request{Args: args, Hex: f.hex, Assembly: f.asm, Loop: f.loop, Unrolled: f.unrolled, Same: f.same, Measured: f.measured, In: a.in, Symbols: f.symbols, Table: c.format == "csv" && !f.trace, Syntax: f.syntax}
	recording := len(args) > 0 && f.hex+f.asm == "" && !core.IsProgram(args[0])
	for _, name := range f.named(recording) {
		model, err := c.coreOf(name)
		if err != nil {
			return err
		}
		r.Cores = append(r.Cores, model)
	}
	if f.explain {
		return a.write(c, func(w io.Writer) error { return core.Explain(w, r.Cores) })
	}
	if recording {
		return a.recordingCore(c, f, &r)
	}
	found, err := r.Analyse(cmd.Context())
	if err != nil {
		return inputError(err)
	}
	defer found.Close()
	if found.Blocks != nil {
		return a.document(c, *found.Blocks, f.hex)
	}
	return a.coreDocument(c, f, found.Document, found.Inputs...)
}

// recordingCore analyses the hot loops of a recording.
func (a *app) recordingCore(c *common, f *coreFlags, r *core.Request) error {
	number, err := r.Number()
	if err != nil {
		return err
	}
	c.cpu = "" // the recording has a processor of its own
	recs, err := a.recordings(c, r.Args[0])
	if err != nil {
		return err
	}
	defer recs.Close()
	o := recorded.CoreOptions{Loop: number, Syntax: r.Syntax, Symbols: f.symbols, Cores: r.Cores, All: f.full}
	if len(r.Args) > 1 {
		o.Function = r.Args[1]
	}
	d, err := recs.Core(&o)
	if err != nil {
		return err
	}
	r.Cores = o.Cores
	return a.coreDocument(c, f, d, r.Args[0])
}

// coreDocument writes what was found, or its picture.
func (a *app) coreDocument(c *common, f *coreFlags, d *core.Document, inputs ...string) error {
	if !f.trace {
		if !slices.Contains(report.Formats[render.Cores](), c.format) {
			return usageError("--format %s: it is for --trace", c.format)
		}
		return a.document(c, render.Cores{Document: d, Full: f.full}, inputs...)
	}
	if !slices.Contains(report.Formats[render.Pictures](), c.format) {
		return usageError("--format %s: not for --trace", c.format)
	}
	pictures, err := d.Trace(f.times)
	if err != nil {
		return err
	}
	return a.document(c, render.Pictures{Pictures: pictures}, inputs...)
}

// named returns the processors that were asked for: of a recording, its own.
func (f *coreFlags) named(recording bool) []string {
	if len(f.cpus) == 0 && recording {
		return nil
	}
	if len(f.cpus) == 0 {
		return []string{"native"}
	}
	return f.cpus
}

// host identifies this machine's processor, "" if it is not known, with its features.
func host() (id string, features []string) {
	root := os.DirFS("/")
	id, err := model.HostID(root)
	if err != nil {
		return "", nil
	}
	return id, hostinfo.Features(root)
}

// coreOf returns the model of the core of a processor.
func (c *common) coreOf(name string) (*simulation.Core, error) {
	if err := (*processor)(&c.cpu).Set(name); err != nil {
		return nil, machineError(err)
	}
	r, err := c.resolver()
	if err != nil {
		return nil, err
	}
	var features []string
	if name == "native" {
		_, features = host()
	}
	return core.CoreFor(r.Named(), features)
}
