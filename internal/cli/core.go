package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// coreFlags are the flags of core.
type coreFlags struct {
	cpus           []string
	hex            string
	loop, unrolled bool
}

func (a *app) core() *cobra.Command {
	c, f := &common{}, &coreFlags{}
	cmd := &cobra.Command{
		Use:     "core --hex FILE",
		GroupID: "account",
		Short:   "Say how many cycles blocks of code take in the core, and what limits them",
		Long: `core executes blocks of x86-64 code on a model of a processor's core. Caches and branch
prediction are perfect there. It prints the cycles of an execution in the steady state,
and what limits them: the front end, the width of dispatch, a group of ports, the divider,
or a chain of dependences.

A file of --hex has the machine code of one block in hexadecimal on each line. With
--loop each block is a loop, whose last instruction jumps back. With --unrolled copies of
the block follow each other, as harnesses measure blocks without a jump.`,
		Example: `  cyclestack core --cpu amdzen4 --hex examples/blocks.txt --loop
  cyclestack core --cpu skylakex --cpu amdzen4 --hex - --unrolled < examples/blocks.txt`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.runCore(c, f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.cpus, "cpu", nil, "processor, by `ID` or name (may be repeated; default: this machine's)")
	flags.StringVar(&f.hex, "hex", "", "read machine code in hexadecimal from `FILE`, one block a line; - is standard input")
	flags.BoolVar(&f.loop, "loop", false, "each block is a loop")
	flags.BoolVar(&f.unrolled, "unrolled", false, "copies of each block follow each other")
	_ = cmd.RegisterFlagCompletionFunc("cpu", completeCPU)
	c.addOutput(cmd, report.Formats[core.Blocks]()...)
	return cmd
}

func (a *app) runCore(c *common, f *coreFlags) error {
	if err := c.check(); err != nil {
		return err
	}
	if f.hex == "" {
		return usageError("--hex FILE says what to analyse")
	}
	if f.loop == f.unrolled {
		return usageError("--loop or --unrolled says how the blocks are executed")
	}
	cores, err := f.cores()
	if err != nil {
		return err
	}
	in, name := a.in, "standard input"
	if f.hex != "-" {
		file, err := os.Open(f.hex)
		if err != nil {
			return inputError(output.Reason(err))
		}
		defer file.Close()
		in, name = io.Reader(file), f.hex
	}
	return a.document(c, core.Blocks{Cores: cores, Loop: f.loop, Source: in, Name: name}, f.hex)
}

// cores returns the models of the processors that were asked for.
func (f *coreFlags) cores() ([]*simulation.Core, error) {
	names := f.cpus
	if len(names) == 0 {
		names = []string{"native"}
	}
	var list []*simulation.Core
	for _, name := range names {
		p := processor("")
		if err := p.Set(name); err != nil {
			return nil, machineError(err)
		}
		cat, err := model.Embedded()
		if err != nil {
			return nil, err
		}
		r, err := resolve.With(cat, resolve.Choice{CPU: string(p)})
		if err != nil {
			return nil, err
		}
		core, err := core.CoreFor(r.Named())
		if err != nil {
			return nil, err
		}
		list = append(list, core)
	}
	return list, nil
}
