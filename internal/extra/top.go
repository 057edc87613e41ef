package extra

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/top"
	"github.com/cyclestack/cyclestack/report"
)

// newTop makes the command top.
func newTop(k *cli.Kit) *cobra.Command {
	f, once, by, most := k.Flags(), false, "", 0
	cmd := &cobra.Command{
		Use:   "top [-p PID | -a | -- PROGRAM ARGS…]",
		Short: "Follow the account of what runs, in the terminal",
		Long: `top follows the account of the machine, of processes, cgroups or a program, once a
second: the tree with the course of each node, or a line for each processor, process,
thread, cgroup, module or function. Without a PMU it follows the operating system's
times, and samples by the clock.

Keys: q quits. p pauses. Tab or a digit changes the view. Enter opens what is selected:
the tree of a process, thread, cgroup or processor, the functions of a module, the lines
of a function. Esc goes back. + and - change the depth. w keeps what is seen as a document
of JSON.

--once prints one account, for scripts and screen readers. The flags of the output are
its own.`,
		Example: `  cyclestack top
  cyclestack top -p 1234 -I 500
  cyclestack top -a --by function
  cyclestack top --once -a
  cyclestack top --once -a --by function --top 30 --format csv`,
		RunE: func(cmd *cobra.Command, program []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			if len(program) == 0 && !f.Target() {
				f.WholeMachine()
			}
			first, err := viewNamed(by)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("top") && most < 1 {
				return fault.Optionf("top", strconv.Itoa(most), "at least one line")
			}
			if once {
				return printOnce(cmd.Context(), k, f, program, first, most)
			}
			return runTop(cmd.Context(), k, f, program, first)
		},
	}
	f.AddModel(cmd)
	f.AddLive(cmd)
	f.AddScreen(cmd)
	f.AddOutput(cmd, "tree", "json", "csv")
	cmd.Flags().IntVar(&most, "top", 0, "of --once: how many lines (default: a screen, or 100 in json and csv)")
	cmd.Flags().StringVar(&by, "by", "run", "the first view: `KIND`, one of "+viewNames())
	cmd.Flags().BoolVar(&once, "once", false, "print one account as text, and end")
	return cmd
}

// viewKinds are what can be the first view.
var viewKinds = append(slices.Clone(top.Views), counts.Core, counts.Die, counts.Socket, counts.Node)

// viewNames lists the views that can be the first.
func viewNames() string {
	var list []string
	for _, k := range viewKinds {
		list = append(list, k.String())
	}
	return strings.Join(list, ", ")
}

// viewNamed returns the view of a name.
func viewNamed(name string) (counts.Kind, error) {
	for _, k := range viewKinds {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, fault.Usagef("--by %s: there are %s", name, viewNames())
}

// printOnce prints the first account, or those of the first window.
func printOnce(ctx context.Context, k *cli.Kit, f *cli.Flags, program []string, by counts.Kind, most int) error {
	feeds, err := newFeeds(k, f, program)
	if err != nil {
		return err
	}
	feeds.once, feeds.most = true, most
	defer feeds.close()
	own := f.Report()
	own.Top = most > 0
	scope := top.Scope{By: by}
	switch {
	case feeds.sampled(&scope):
		own.Layout = report.LayoutParts
	case by != counts.Run:
		own.Layout = report.LayoutRows
	}
	return f.Write(func(out io.Writer) error {
		w, err := report.New(f.Format(), out, own)
		if err != nil {
			return err
		}
		return feeds.feed(ctx, scope, w)
	})
}

// runTop follows until the user or a signal ends it. The terminal is put back in any case.
func runTop(ctx context.Context, k *cli.Kit, f *cli.Flags, program []string, by counts.Kind) (err error) {
	if out, ok := k.Out.(*os.File); !ok || !term.IsTerminal(int(out.Fd())) {
		return fault.Usagef("standard output is not a terminal: --once prints one account")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	feeds, err := newFeeds(k, f, program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, feeds.close()) }()
	debug.SetGCPercent(400) // lists of symbols are most of the heap, and stay
	v := top.New(feeds.o.Label, by, f.Report())
	v.Keep, v.Feed = keepAccounts, feeds.feed
	screen, err := tcell.NewScreen()
	if err != nil {
		return fault.As(fault.Machine, err)
	}
	if err := screen.Init(); err != nil {
		return fault.As(fault.Machine, err)
	}
	defer screen.Fini()
	return v.Run(ctx, screen)
}

// keepAccounts writes what is seen into a new file of the working directory.
func keepAccounts(print func(io.Writer) error) (string, error) {
	name := "cyclestack-top-" + time.Now().Format("20060102-150405") + ".json"
	return name, output.WriteFile(name, print)
}
