package extra

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/top"
	"github.com/cyclestack/cyclestack/report"
)

// newTop makes the command top.
func newTop(k *cli.Kit) *cobra.Command {
	f, once := k.Flags(), false
	cmd := &cobra.Command{
		Use:   "top [-p PID | -a | -- PROGRAM ARGS…]",
		Short: "Follow the account of what runs, in the terminal",
		Long: `top follows the account of the machine, of processes, cgroups or a program, once a
second: the tree with the course of each node, or with --by a line for each part. Without
a PMU it follows the operating system's times.

Keys: q quits. p pauses. Tab changes between the tree and the parts. Enter shows the tree
of a part. + and - change the depth. w keeps what is seen as a document of JSON.

--once prints one account as text, for scripts and screen readers.`,
		Example: `  cyclestack top
  cyclestack top -p 1234 -I 500
  cyclestack top -a --by cpu
  cyclestack top --once -a`,
		RunE: func(cmd *cobra.Command, program []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			if len(program) == 0 && !f.Target() {
				f.WholeMachine()
			}
			if once {
				return printOnce(cmd.Context(), k, f, program)
			}
			return runTop(cmd.Context(), k, f, program)
		},
	}
	f.AddModel(cmd)
	f.AddLive(cmd)
	f.AddBy(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "print one account as text, and end")
	return cmd
}

// printOnce counts for one interval and prints the account.
func printOnce(ctx context.Context, k *cli.Kit, f *cli.Flags, program []string) error {
	o, err := f.Live(program, time.Second)
	if err != nil {
		return err
	}
	o.Period.Timeout, o.Period.Interval = o.Period.Interval, 0
	o.By &^= counts.By(0).With(counts.Interval)
	o.Client.Writer = func(own report.Options) (report.Writer, error) {
		r := f.Report()
		r.Layout = own.Layout
		return report.New("tree", k.Out, r)
	}
	m, err := measure.New(k.Kernel, o)
	if err != nil {
		return err
	}
	if err := m.Plan(); err != nil {
		return err
	}
	run, err := m.Start(ctx)
	if err != nil {
		return err
	}
	defer run.Close()
	return errors.Join(run.Count(), run.Finish(ctx))
}

// runTop follows until the user or a signal ends it. The terminal is put back in any case.
func runTop(ctx context.Context, k *cli.Kit, f *cli.Flags, program []string) (err error) {
	if out, ok := k.Out.(*os.File); !ok || !term.IsTerminal(int(out.Fd())) {
		return fault.Usagef("standard output is not a terminal: --once prints one account")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o, err := f.Live(program, time.Second)
	if err != nil {
		return err
	}
	v := top.New(o.Label, f.Report())
	v.Keep = keepAccounts
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fault.As(fault.Machine, err)
	}
	defer null.Close()
	if len(program) > 0 { // its output would be drawn over
		o.Target.Stdin, o.Target.Stdout, o.Target.Stderr = null, null, null
	}
	c, err := count(ctx, k, o, v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	screen, err := tcell.NewScreen()
	if err != nil {
		return fault.As(fault.Machine, err)
	}
	if err := screen.Init(); err != nil {
		return fault.As(fault.Machine, err)
	}
	defer screen.Fini()
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-ctx.Done():
		case <-c.failed:
		}
	}()
	return v.Run(screen, over)
}

// keepAccounts writes what is seen into a new file of the working directory.
func keepAccounts(print func(io.Writer) error) (string, error) {
	name := "cyclestack-top-" + time.Now().Format("20060102-150405") + ".json"
	return name, output.WriteFile(name, print)
}
