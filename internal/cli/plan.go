package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
)

// planFlags are the flags of plan alone.
type planFlags struct {
	set                string
	counters           int
	watchdog, errata   bool
	runs, perf, script bool

	program []string // to be counted by the commands and the script; none for the machine

	given func(flag string) bool // on the command line
}

func (a *app) plan() *cobra.Command {
	c, f := &common{}, &planFlags{}
	cmd := &cobra.Command{
		Use:     "plan [flags] [-- COMMAND [ARGUMENTS…]]",
		GroupID: "catalogue",
		Short:   "Print which events to count together, in how few groups or runs",
		Long: `plan prints what has to be counted for the nodes of a method: as few groups of events
as possible that fit the processor's counters. The events of a node share a group if
they can. plan says what is proved about that, which nodes had to be split, and how
long a run must be. It needs no counters itself: a plan can be made anywhere, for any
processor.

--perf and --script are for the whole machine, or for the command behind --. The
script looks whether the machine is what the plan takes for granted: the processor,
the NMI watchdog, SMT.`,
		Example: `  cyclestack plan --cpu skylakex --level 2
  cyclestack plan --cpu icelakex --nodes DRAM_Bound,L3_Bound --smt on
  cyclestack plan --cpu power7 --perf              the perf commands that collect it elsewhere
  cyclestack plan --cpu amdzen4 --level 1 --script     a shell script that does
  cyclestack plan --cpu icelakex --perf -- ./app --size 5
  cyclestack plan --cpu core2 --set big-4 --no-multiplex`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 {
				return cobra.NoArgs(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.given, f.program = cmd.Flags().Changed, args
			return a.runPlan(c, f)
		},
	}
	c.addModel(cmd)
	c.addNodes(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.set, "set", "", "plan for the method's event set `NAME` instead of nodes")
	flags.StringVar(&c.smt, "smt", "", "whether the other logical processors of each core are in use: `on|off` (default: off, or as this machine has it)")
	flags.BoolVar(&f.runs, "no-multiplex", false, "one group in each of several runs, without multiplexing")
	flags.BoolVar(&f.watchdog, "watchdog", false, "the kernel's NMI watchdog is on and counts, too (default: as this machine has it, if the plan is for it)")
	flags.IntVar(&f.counters, "counters", 0, "general counters that can be used, where a hypervisor or another program leaves `N` only")
	flags.BoolVar(&f.errata, "errata", false, "keep to the counters that Linux's workarounds for errata leave (default: with --perf and --script, and for this machine)")
	flags.BoolVar(&f.perf, "perf", false, "print the perf stat and perf record commands that collect the same")
	flags.BoolVar(&f.script, "script", false, "print a shell script that collects the same with perf")
	c.addOutput(cmd, "text", "json")
	return cmd
}

func (a *app) runPlan(c *common, f *planFlags) error {
	if err := f.check(c); err != nil {
		return err
	}
	o := measure.Offline{Choice: c.choice(), All: c.all, Set: f.set, Counters: f.counters, Commands: f.perf || f.script}
	if f.given("watchdog") {
		o.Watchdog = &f.watchdog
	}
	if f.given("errata") {
		o.Errata = &f.errata
	}
	p, err := a.kernel.Plan(o)
	if err != nil {
		return err
	}
	return a.write(c, func(out io.Writer) error { return a.printPlan(out, c, f, p) })
}

// check refuses values of flags that mean nothing together.
func (f *planFlags) check(c *common) error {
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case c.smt != "" && c.smt != "on" && c.smt != "off":
		return usageError("--smt %s: must be on or off", c.smt)
	case f.counters < 0:
		return usageError("--counters %d: at least one; 0 is all there are", f.counters)
	case f.perf && f.script:
		return usageError("--perf and --script: one of them")
	case len(f.program) > 0 && !f.perf && !f.script:
		return usageError("%s: a command is for --perf and --script: a plan is the same for all", f.program[0])
	case (f.perf || f.script) && c.format != "text":
		return usageError("--format %s: the commands of --perf and --script are text; the JSON of the plan has them as well", c.format)
	case f.set != "" && (c.nodes != "" || c.all || c.level > 0):
		return usageError("--set and --nodes, --level or --all: a set of events has no nodes")
	}
	return nil
}

func (a *app) printPlan(out io.Writer, c *common, f *planFlags, p *plan.Plan) error {
	format := c.format
	switch {
	case f.script:
		_, err := io.WriteString(out, p.Script(f.runs, scriptSpelling(p), spell.Texts(p.Warnings), f.program...))
		return err
	case f.perf:
		format = "perf"
	}
	return report.Write(out, format, report.Plan{Plan: p, Runs: f.runs, Program: f.program, Report: reportCommand(p)}, c.options(a.terminal(c, a.out)))
}

// scriptSpelling spells what a script names.
func scriptSpelling(p *plan.Plan) plan.Spelling {
	s := plan.Spelling{Script: "cyclestack plan --script", Reader: "cyclestack report", CPU: "--cpu", Watchdog: "--watchdog", SMT: "--smt on"}
	s.Report = s.Reader
	if p.Options.SMT {
		s.Report += " " + s.SMT
	}
	s.Report += " --model " + p.Model.Name
	if p.PerCPU() {
		s.Report = "cyclestack smt --model " + p.Model.Name + " --siblings $siblings"
	}
	return s
}

// siblingsCommand prints the logical processors that share a core, as --siblings takes
// them, on the machine that was counted.
const siblingsCommand = "sort -u /sys/devices/system/cpu/cpu*/topology/thread_siblings_list | tr ',-' '::' | paste -s -d , -"

// reportCommand spells the command that reports what the commands of a plan counted.
func reportCommand(p *plan.Plan) func(files string, together bool) string {
	return func(files string, together bool) string {
		flags := ""
		if p.PerCPU() {
			return "cyclestack smt --cpu " + p.CPU.Name + " --model " + p.Model.Name + " --siblings \"$(" + siblingsCommand + ")\" " + files
		}
		if p.Options.SMT {
			flags += " --smt on"
		}
		if together {
			flags += " --together"
		}
		return "cyclestack report --cpu " + p.CPU.Name + " --model " + p.Model.Name + flags + " " + files
	}
}
