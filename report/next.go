package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/model"
)

// A Step is a command to run next, and what it answers.
type Step struct {
	Command string `json:"command"`
	Why     string `json:"why"`
}

// Next lists what to run next. For an account without a bottleneck that is, of samples,
// what says where they are; for one with a bottleneck: what counts it
// again where it is not certain, or else its parts, where these are not known yet;
// what finds the places in the code; what counts more where loops or branches
// dominate, if the method has a set of events for that; and what says more about the
// bottleneck. Each is a complete command for where the counts are from: it counts the
// same again where they were taken live, reads the same file again where that can say
// more, and is one for perf, to be run where the recording was made, otherwise.
func Next(h Header, a *account.Account) []Step {
	if a.Interval || a.Scope.Kind != counts.Run || len(h.Files) > 1 {
		return nil
	}
	if len(a.Bottleneck) == 0 {
		if g := (guide{h: h, a: a}); len(h.Files) == 1 && !h.Kept && g.sampled() {
			return []Step{g.places()}
		}
		return nil
	}
	g := guide{h, a, a.Bottleneck[len(a.Bottleneck)-1]}
	deeper := g.surer()
	if deeper.Command == "" {
		deeper = g.parts()
	}
	var steps []Step
	for _, s := range []Step{deeper, g.places(), g.set(), g.explain()} {
		if s.Command != "" {
			steps = append(steps, s)
		}
	}
	return steps
}

// A guide knows the way on from the bottleneck of an account.
type guide struct {
	h    Header
	a    *account.Account
	node int
}

func (g *guide) name() string { return g.a.Model().Nodes[g.node].Name }

// surer counts the bottleneck again, all of the time, if it is uncertain for not
// having been counted so.
func (g *guide) surer() Step {
	switch g.a.Nodes[g.node].Doubt {
	case account.DoubtError, account.DoubtCoverage, account.DoubtTogether:
	default:
		return Step{}
	}
	if g.h.Simulated || g.sampled() || g.a.Runs > 1 || !(g.a.Nodes[g.node].Coverage < 1) {
		return Step{}
	}
	names := g.contenders()
	switch {
	case len(g.h.Again) > 0 && g.h.Again[0] != "--":
		return Step{} // what runs already cannot be run once for each group
	case len(g.h.Again) > 0:
		return Step{"cyclestack stat --no-multiplex --nodes " + names + g.h.modelFlags() + g.params() + " " + CommandLine(g.h.Again),
			"whether it is: each group of events in a run of its own"}
	}
	return Step{"cyclestack plan --perf --no-multiplex --cpu " + g.h.modelCPU() + g.h.modelFlags() + " --nodes " + names,
		"prints the perf commands to count with: whether it is"}
}

// contenders are the nodes of the bottleneck path and those that cannot be told
// apart from them, as --nodes takes them.
func (g *guide) contenders() string {
	m := g.a.Model()
	var names []string
	for _, i := range g.a.Bottleneck {
		names = append(names, m.Nodes[i].Name)
	}
	for _, r := range g.a.Rivals {
		names = append(names, m.Nodes[r.Node].Name)
	}
	return quote(strings.Join(names, ","))
}

// parts counts the parts of the bottleneck that are not known, if there are any,
// and those of nodes that cannot be told apart from it: which of them it is may show
// below.
func (g *guide) parts() Step {
	m := g.a.Model()
	nodes := []int{g.node}
	for _, r := range g.a.Rivals {
		if r.Of == g.node {
			nodes = append(nodes, r.Node)
		}
	}
	var patterns []string
	for _, i := range nodes {
		if slices.ContainsFunc(m.Nodes[i].Children, g.unknown) {
			patterns = append(patterns, m.Nodes[i].Path+".*")
		}
	}
	level := fmt.Sprintf(" --level %d", m.Nodes[g.node].Level+1)
	if len(patterns) == 0 {
		patterns, level = g.behind(), ""
	}
	if len(patterns) == 0 || g.h.Simulated {
		return Step{}
	}
	pattern := quote(strings.Join(patterns, ",")) + level
	s := Step{Why: "which part of " + g.name() + " it is"}
	if level == "" {
		s.Why = "what can be behind " + g.name()
	}
	switch {
	case len(g.h.Again) > 0 && !g.hardware():
		return Step{} // the operating system has said all that it knows
	case len(g.h.Again) > 0:
		s.Command = "cyclestack stat --nodes " + pattern + g.h.modelFlags() + g.params() + " " + CommandLine(g.h.Again)
	case g.sampled():
		return Step{}
	default:
		s.Command = "cyclestack plan --perf --cpu " + g.h.modelCPU() + g.h.modelFlags() + " --nodes " + pattern
		s.Why = "prints the perf command to count with: " + s.Why
	}
	return s
}

func (g *guide) unknown(node int) bool { return !g.a.Nodes[node].Known() }

// behind lists the nodes that can be behind the bottleneck, where it has no parts
// that say so and they are not known.
func (g *guide) behind() []string {
	m := g.a.Model()
	var names []string
	for k := range m.Issues {
		issue := &m.Issues[k]
		if issue.Lead != g.node || !slices.ContainsFunc(issue.Nodes, g.unknown) {
			continue
		}
		for _, i := range issue.Nodes {
			if i != g.node {
				names = append(names, m.Nodes[i].Name)
			}
		}
	}
	return names
}

// places finds the code that the bottleneck is in.
func (g *guide) places() Step {
	switch {
	case g.h.Kept:
		return Step{}
	case len(g.h.Files) == 1 && g.h.Simulated:
		return Step{"cyclestack report --by line" + g.fileFlags() + " " + quote(g.h.Files[0]), "which lines it is in"}
	case len(g.h.Files) == 1 && g.sampled() && slices.Contains(g.h.Reading, "--function"):
		return Step{"cyclestack report --by line" + g.fileFlags() + " " + quote(g.h.Files[0]), "which lines it is in"}
	case len(g.h.Files) == 1 && g.sampled():
		return Step{"cyclestack report --by function" + g.fileFlags() + " " + quote(g.h.Files[0]), "which functions it is in"}
	case g.h.Simulated:
		return Step{}
	case len(g.h.Again) > 0 && !g.hardware():
		return Step{"cyclestack record " + CommandLine(g.h.Again), "samples where the time goes"}
	case len(g.h.Again) > 0:
		return Step{"cyclestack record --nodes " + g.name() + g.h.modelFlags() + " " + CommandLine(g.h.Again), "which lines it is in"}
	}
	return Step{"perf record -e " + quote(g.precise()) + " " + g.target(), "run where it was counted; cyclestack report --by line perf.data then says where it is"}
}

// setNames are the sets of events for programs in which loops or branches
// dominate, as the methods that have them call them.
var setNames = map[account.Dominance]string{account.DominanceLoops: "loops", account.DominanceBranches: "branch-dominated"}

// set counts the method's events for the kind of program, unless they were.
func (g *guide) set() Step {
	m := g.a.Model()
	name := setNames[g.a.Branching().Dominance()]
	i := slices.IndexFunc(m.EventSets, func(s model.EventSet) bool { return s.Name == name })
	if i < 0 || g.sampled() || !slices.ContainsFunc(m.EventSets[i].Events, g.lacks) {
		return Step{}
	}
	return Step{"cyclestack plan --perf --cpu " + g.h.modelCPU() + g.h.modelFlags() + " --set " + name, "prints the perf command that counts what matters in it"}
}

// lacks reports whether an event was not counted.
func (g *guide) lacks(e model.SetEvent) bool {
	name := e.Event
	if known, ok := g.a.Binding.Method.Events.Lookup(name); ok {
		name = known.Name
	}
	return !slices.ContainsFunc(g.a.Counts(), func(c account.Count) bool { return c.Event == name && c.State == counts.Counted })
}

// sampled reports whether the recording's counts are of samples.
func (g *guide) sampled() bool {
	return slices.ContainsFunc(g.a.Counts(), func(c account.Count) bool { return c.Samples > 0 })
}

// hardware reports whether the account rests on the processor's counters.
func (g *guide) hardware() bool {
	return slices.ContainsFunc(g.a.Counts(), func(c account.Count) bool {
		ref, err := model.ParseEvent(c.Event)
		return err == nil && c.Used && g.a.Binding.Method.Events.Resolve(ref).Hardware()
	})
}

// precise is the event that locates the bottleneck as perf takes it: the first of
// the node's own, or of the nearest node above it that has any, or the cycles. It is
// precise where the processor can name the instruction.
func (g *guide) precise() string {
	m := g.a.Model()
	events := g.a.Binding.Method.Events
	name := ""
	for i := g.node; i >= 0; i = parent(m, i) {
		if s := m.Nodes[i].Sample; len(s) > 0 {
			name = s[0]
			break
		}
	}
	e, ok := events.Lookup(name)
	switch vendor := g.a.CPU().Vendor; {
	case name == "" && (vendor == "intel" || vendor == "amd"):
		return "cycles:pp"
	case name == "":
		return "cycles"
	case !ok:
		return name
	}
	return perfEvent(g.a.CPU(), e)
}

// perfEvent is an event as perf record takes it without knowing its name: precise,
// if the processor can name the instruction at which it happened.
func perfEvent(cpu *model.CPU, e *model.Event) string {
	text := model.Spell(cpu, e)
	switch {
	case (cpu.Vendor == "arm" || cpu.Vendor == "riscv") && e.PMU == "": // their PMUs have a name for each kind of core
		return fmt.Sprintf("r%x", e.Config)
	case !strings.Contains(e.Flags, "pebs"):
		return text
	case strings.HasSuffix(text, "/"):
		return text + "pp"
	}
	return text + ":pp"
}

// target is what was counted as perf takes it at the end of a command line, as far
// as the recording says: where the quotes of a program's words are lost, or it is
// not named, it is the whole machine for a while.
func (g *guide) target() string {
	const forSomeTime = " -- sleep 10"
	label := g.a.Label
	for _, of := range []struct{ prefix, flag string }{{"CPU(s) ", "-C "}, {"process id ", "-p "}, {"thread id ", "-t "}} {
		if list, ok := strings.CutPrefix(label, of.prefix); ok {
			return of.flag + quote(strings.Trim(list, "'")) + forSomeTime
		}
	}
	switch {
	case label == "system wide":
		return "-a" + forSomeTime
	case label == "" || strings.ContainsAny(label, "&;|<>()$`\\\"'*?[]{}!#~\n"):
		return "-a" + forSomeTime
	}
	return "-- " + label
}

// explain says more about the node.
func (g *guide) explain() Step {
	command := fmt.Sprintf("cyclestack explain %s --cpu %s%s", g.name(), g.h.modelCPU(), g.h.modelFlags())
	if len(g.h.Files) > 0 {
		command += g.params() + " " + quote(g.h.Files[0])
	}
	return Step{command, "what it means, and what to try"}
}

// fileFlags are the flags with which a file is read in the same way again.
func (g *guide) fileFlags() string {
	cpu := ""
	if g.h.CPUID != "" {
		cpu = " --cpu " + quote(g.h.CPUID)
	}
	reading := ""
	if len(g.h.Reading) > 0 {
		reading = " " + CommandLine(g.h.Reading)
	}
	return cpu + g.h.modelFlags() + g.params() + reading
}

// params are the flags for the parameters that the user set.
func (g *guide) params() string {
	var flags string
	for _, name := range slices.Sorted(maps.Keys(g.h.Params)) {
		switch v := g.h.Params[name]; {
		case name == "#smt_on" && len(g.h.Again) > 0: // it was found out, and will be again
		case name == "#smt_on" && v != 0:
			flags += " --smt on"
		case name == "#smt_on":
			flags += " --smt off"
		default:
			flags += " --param " + quote(name+"="+page.Decimal(v))
		}
	}
	if w := g.a.Binding.Method.Workload; w != model.AnyWorkload {
		flags += " --workload " + string(w)
	}
	return flags
}

// CommandLine joins words so that a shell takes them apart again.
func CommandLine(list []string) string {
	quoted := make([]string, len(list))
	for i, w := range list {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

// modelCPU names the processor with which the method is found: a method for any
// processor was perhaps used on another one.
func (h Header) modelCPU() string {
	if h.ModelFlag == "" && len(h.Model.CPUs) > 0 && !slices.Contains(h.Model.CPUs, h.CPU.Name) {
		return h.Model.CPUs[0] + " --model " + quote(h.Model.Name)
	}
	return h.CPU.Name
}

// modelFlags are the flags by which the user chose the method, as other commands
// need them too.
func (h Header) modelFlags() string {
	var flags string
	for _, f := range h.ModelFiles {
		flags += " --model-file " + quote(f)
	}
	if h.ModelFlag != "" {
		flags += " --model " + quote(h.ModelFlag)
	}
	return flags
}

// quote makes a word safe to paste into a shell.
func quote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+:@%,=") == "" && s != "" {
		return s
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return dollarQuote(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// dollarQuote is quote for what must not reach a terminal as it is.
func dollarQuote(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i, r := range s {
		switch _, size := utf8.DecodeRuneInString(s[i:]); {
		case r == '\'' || r == '\\':
			b.WriteString("\\" + string(r))
		case unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			b.WriteRune(r)
		default:
			for _, c := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, "\\%03o", c)
			}
		}
	}
	b.WriteByte('\'')
	return b.String()
}
