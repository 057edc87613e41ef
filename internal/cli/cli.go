// Package cli is the command line: flags and calls, no arithmetic.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/optional"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/progress"
)

// The exit statuses.
const (
	exitDone    = 0
	exitNo      = 1 // the answer is "no": an audit or lint found something
	exitUsage   = 2
	exitInput   = 3 // input that cannot be read
	exitMachine = 4 // the machine cannot do it
)

// A failure is an error with an exit status of its own. Other errors have the status of
// their kind.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usageError(format string, args ...any) error { return fault.Usagef(format, args...) }

// inputError gives an error the kind of input that cannot be read, unless it has one.
func inputError(err error) error {
	if errors.As(err, new(*failure)) {
		return err
	}
	return fault.As(fault.Input, err)
}

func machineError(err error) error { return &failure{exitMachine, err} }

// errNo ends the program with the status of a "no" that has already been
// explained on standard output.
var errNo = &failure{exitNo, errors.New("")}

// An app is one run of the program.
type app struct {
	in       io.Reader
	out, err io.Writer
	kernel   measure.Kernel
	other    *Executable     // whose commands these are; nil for those of this package
	files    *progress.Files // the progress of the command; nil if it shows none
}

// Main runs the program with the arguments behind its name and returns its
// exit status.
func Main(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) int {
	a := &app{in: in, out: out, err: stderr, kernel: measure.ThisKernel()}
	return a.main(ctx, args)
}

func (a *app) main(ctx context.Context, args []string) int {
	root := a.root()
	if a.other != nil {
		a.otherRoot(root)
	} else {
		a.addCommands(root, args)
	}
	root.SetArgs(optional.Attached(root, args))
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root, noSuchShell(args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	a.files.End()
	if err == nil {
		return exitDone
	}
	status, own := statusOf(err)
	if msg := oneLine(spelled(err)); msg != "" {
		if !own {
			msg += fmt.Sprintf(" (see '%s --help')", cmd.CommandPath())
		}
		fmt.Fprintf(a.err, "%s: %s\n", cmd.CommandPath(), msg)
	}
	return status
}

// statusOf returns the exit status for an error, and whether it is one of this
// program's. Cobra's own errors are about the command line.
func statusOf(err error) (status int, own bool) {
	var f *failure
	if errors.As(err, &f) {
		return f.status, true
	}
	if s := [...]int{fault.Usage: exitUsage, fault.Input: exitInput, fault.Machine: exitMachine, fault.No: exitNo}[fault.Of(err)]; s != 0 {
		return s, true
	}
	return exitUsage, false
}

// oneLine keeps a message to one line, whatever it quotes.
func oneLine(text string) string {
	return page.Printable(strings.Join(strings.Fields(text), " "))
}

func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false // the list has the order of use
	root := &cobra.Command{
		Use:   "cyclestack",
		Short: "Says where a program's CPU cycles went",
		Long: `cyclestack makes accounts of hardware counter readings. An account puts every cycle or
pipeline slot of a run somewhere, level by level. It prints the error of each
figure, and the next step.`,
		Example: `  cyclestack stat -- ls -R /usr               the account of a program
  cyclestack report examples/power7-cpi.txt   the account of a recorded perf stat
  cyclestack explain IPC --cpu generic        what a node means
  cyclestack models                           the methods and processors`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
	}
	asked := root.Flags().Bool("version", false, "print the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *asked {
			return a.printVersion(&common{})
		}
		return cmd.Help()
	}
	root.AddGroup(
		&cobra.Group{ID: "account", Title: "Accounts:"},
		&cobra.Group{ID: "catalogue", Title: "The catalogue:"},
		&cobra.Group{ID: "second", Title: "In " + secondName + ":"},
	)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommandGroupID("catalogue")
	addHelp(root)
	root.SetCompletionCommandGroupID("catalogue")
	return root
}

// A command is a command's name and what makes it.
type command struct {
	name string
	make func() *cobra.Command
}

// commands are all commands, in the order of use.
func (a *app) commands() []command {
	return []command{{"stat", a.stat}, {"record", a.record}, {"simulate", a.simulate}, {"report", a.report}, {"annotate", a.annotate}, {"core", a.core}, {"diff", a.diff},
		{"smt", a.smt}, {"latency", a.latency}, {"c2c", a.c2c}, {"audit", a.audit}, {"calibrate", a.calibrate}, {"models", a.models},
		{"events", a.events}, {"explain", a.explain}, {"plan", a.plan}, {"lint", a.lint}, {"doctor", a.doctor}, {"version", a.version}}
}

// addCommands gives the program its commands: the one that is called, if the
// first argument names one, and else all of them.
func (a *app) addCommands(root *cobra.Command, args []string) {
	all := a.commands()
	for _, s := range second {
		all = append(all, command{s.name, func() *cobra.Command { return a.elsewhere(s.name, s.short) }})
	}
	if len(args) > 0 {
		if i := slices.IndexFunc(all, func(c command) bool { return c.name == args[0] }); i >= 0 {
			all = all[i : i+1]
			root.CompletionOptions.DisableDefaultCmd = true
		}
	}
	for _, c := range all {
		root.AddCommand(c.make())
	}
}

// noSuchCommand refuses what is no command, and names those that are spelled
// alike.
func noSuchCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	root.SuggestionsMinimumDistance = 2 // edits
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		text += ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return errors.New(text)
}

// arguments takes at least least and at most most arguments; most 0 is any
// number. What they are is in the command's usage.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		switch {
		case len(args) < least:
			return fmt.Errorf("an argument is missing: %s", usage)
		case most > 0 && len(args) > most:
			return fmt.Errorf("%q is one argument too many: %s", args[most], usage)
		}
		return nil
	}
}
