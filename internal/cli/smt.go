package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
)

// smtModel is the method that the smt command uses.
const smtModel = "smt-occupancy"

func (a *app) smt() *cobra.Command {
	c, f := &common{}, &statFlags{source: sourcePMU, repeat: 1}
	siblings := ""
	cmd := &cobra.Command{
		Use:     "smt FILE | smt [-a | -C CPUS] [-- PROGRAM ARGS…]",
		GroupID: "account",
		Short:   "Say how often none, one or both logical processors of a core were active",
		Long: `smt splits elapsed time, core by core, into neither, only one or both logical
processors active. It counts this machine, until the program ends or Ctrl-C, or
reads a recording of the time-stamp counter, the reference cycles of each logical
processor and those of any of them:

  perf stat -a -A -x, -e msr/tsc/,ref-cycles,cpu/event=0x3c,umask=0x1,any=1/ -o smt.csv -- ./app

(newer processors, which have no any-thread counting, use other events:
cyclestack models --cpu NAME smt-occupancy).

Which logical processors share a core is not in such a recording. A recording of
two is taken to be of one core, and the output says so; otherwise --siblings
tells: pairs such as 0:28,1:29, or +28 if CPU n shares a core with n+28.`,
		Example: `  cyclestack smt -a -o machine.txt -- sleep 1    this machine, for a second
  cyclestack smt examples/smt-skylakex.csv
  cyclestack smt --cpu haswell --param BASE_RATIO=34 --siblings +4 smt.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash == 0 || f.machine() && dash < 0 && len(args) == 0 {
				return a.runLiveSMT(cmd.Context(), c, f, siblings, args)
			}
			if err := arguments(1, 1)(cmd, args); err != nil {
				return err
			}
			if f.machine() {
				return usageError("%s: a recording; to count this machine, put -- before the program", args[0])
			}
			return a.runSMT(c, siblings, args[0])
		},
	}
	f.addCPUs(cmd)
	c.addModel(cmd)
	c.addParams(cmd)
	c.addNodes(cmd)
	cmd.Flags().StringVar(&siblings, "siblings", "", "logical processors that share a core: `0:28,1:29` or +28")
	cmd.Flags().StringVar(&c.by, "by", "run", "one account for each `run|interval`")
	c.addOutput(cmd, report.Formats[report.Accounts]()...)
	return cmd
}

func (a *app) runSMT(c *common, siblings, file string) error {
	if err := c.check(report.Formats[report.Accounts]()...); err != nil {
		return err
	}
	by, err := parseBy(c.by)
	if err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	return a.write(c, func(out io.Writer) error {
		w, err := report.New(c.format, out, c.options(a.terminal(c, a.out)))
		if err != nil {
			return usageError("%v", err)
		}
		r := newReporter(s, w, by.With(counts.CPU), file)
		r.prefer, r.need = smtModel, "smt needs counts of each logical processor (perf stat -A)"
		r.places = func(t *counts.Table) ([]place, error) { return cores(t, siblings) }
		return r.run()
	}, file)
}

// cores are the pairs of logical processors that share a core.
func cores(t *counts.Table, siblings string) ([]place, error) {
	pairs, note, err := pair(t, siblings)
	if err != nil {
		return nil, usageError("%v", err)
	}
	var list []place
	for _, p := range pairs {
		scope := core(t, p)
		list = append(list, place{account.Place{Self: p[0], LP: p}, &scope, note})
	}
	return list, nil
}

// core is the scope of a pair of logical processors.
func core(t *counts.Table, p []int) counts.Scope {
	s := counts.RunScope(fmt.Sprintf("core of CPU%d and CPU%d", t.Scopes[p[0]].CPU, t.Scopes[p[1]].CPU))
	s.Kind, s.CPUs = counts.Core, len(p)
	return s
}

// pair finds the rows of the logical processors of each core.
func pair(t *counts.Table, siblings string) (pairs [][]int, note string, err error) {
	row := map[int]int{}
	for i, s := range t.Scopes {
		row[s.CPU] = i
	}
	if siblings == "" {
		if len(t.Scopes) != 2 {
			return nil, "", fmt.Errorf("the recording has counts of %d, not 2, CPUs: say with --siblings which share a core, such as 0:28,1:29 or +28", len(t.Scopes))
		}
		a, b := t.Scopes[0].CPU, t.Scopes[1].CPU
		return [][]int{{0, 1}}, fmt.Sprintf("CPU%d and CPU%d are taken to share a core, as the recording has only these", a, b), nil
	}
	list, err := siblingList(t, siblings)
	if err != nil {
		return nil, "", err
	}
	for _, p := range list {
		a, okA := row[p[0]]
		b, okB := row[p[1]]
		if !okA || !okB {
			return nil, "", fmt.Errorf("--siblings %d:%d: the recording does not have both", p[0], p[1])
		}
		pairs = append(pairs, []int{a, b})
	}
	return pairs, "", nil
}

// siblingList reads --siblings.
func siblingList(t *counts.Table, text string) (list [][2]int, err error) {
	if offset, ok := strings.CutPrefix(text, "+"); ok {
		n, err := strconv.Atoi(offset)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("--siblings %s: + and the distance between the CPUs of a core", text)
		}
		for _, s := range t.Scopes {
			if slices.ContainsFunc(t.Scopes, func(o counts.Scope) bool { return o.CPU == s.CPU+n }) {
				list = append(list, [2]int{s.CPU, s.CPU + n})
			}
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("--siblings %s: the recording has no two CPUs that far apart", text)
		}
		return list, nil
	}
	for _, p := range strings.Split(text, ",") {
		x, y, ok := strings.Cut(p, ":")
		a, errA := strconv.Atoi(strings.TrimSpace(x))
		b, errB := strconv.Atoi(strings.TrimSpace(y))
		if !ok || errA != nil || errB != nil || a == b {
			return nil, fmt.Errorf("--siblings %s: pairs such as 0:28,1:29, or +28", text)
		}
		for _, q := range list {
			if slices.Contains(q[:], a) || slices.Contains(q[:], b) {
				return nil, fmt.Errorf("--siblings %s: a CPU is in two pairs", text)
			}
		}
		list = append(list, [2]int{a, b})
	}
	return list, nil
}
