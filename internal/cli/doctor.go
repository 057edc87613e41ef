package cli

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/internal/doctor"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/report"
)

func (a *app) doctor() *cobra.Command {
	c := &common{}
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: "catalogue",
		Short:   "Say what can be counted here, what cannot, and what changes that",
		Long: `doctor looks at what this machine can count and may count. It opens the processor's
counters. It looks for permissions, the watchdog, other users of counters, and the
limits and settings that matter. Each obstacle comes with the command that removes it.
The last part is what works now.

The exit status is 0 if the processor's cycles can be counted, and 4 if they cannot.
User mode is enough, for programs of the same user.`,
		Example: `  cyclestack doctor -o doctor.txt
  cyclestack doctor --format json -o doctor.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.runDoctor(c) },
	}
	cmd.Flags().BoolVar(&c.all, "all", false, "also what is as usual, and other remedies")
	c.addOutput(cmd, report.Formats[render.Diagnosis]()...)
	return cmd
}

func (a *app) runDoctor(c *common) error {
	if err := c.check(); err != nil {
		return err
	}
	m, err := a.kernel.Machine()
	if err != nil {
		return err
	}
	cat, err := c.catalogue()
	if err != nil {
		return err
	}
	d := doctor.Examine(m, cat, doctor.Commands{
		NameProcessor: "cyclestack stat --cpu NAME, if it is one of those that cyclestack models lists",
		Elsewhere:     "or record elsewhere: cyclestack plan --script prints what to run there, cyclestack report reads it",
		WholeCores:    "cyclestack stat -a --per-core -- sleep 10",
		NoTopDown:     "a hypervisor may hide them: cyclestack stat --model cycles",
		Simulate:      "cyclestack simulate -- PROGRAM",
	})
	if err := a.document(c, render.Diagnosis{Diagnosis: d, Symbols: showsSymbols(a.terminal(c, a.out))}); err != nil || d.Cycles {
		return err
	}
	return &failure{exitMachine, errors.New("")}
}

// showsSymbols reports whether an output is a terminal whose character set is Unicode.
func showsSymbols(out io.Writer) bool {
	f := file(out)
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return false
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
