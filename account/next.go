package account

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// A Step is something to do next about an account: what it answers, and what it is done
// with. Who shows the account spells it as a command.
type Step struct {
	Kind   StepKind
	Node   int           // of the bottleneck; -1 without one
	Nodes  []string      // names of nodes, or patterns of their paths
	Level  int           // the deepest level of Nodes to count; 0 for all
	Event  string        // to sample, as perf takes it
	Set    string        // a set of events of the method
	Symbol string        // a function to annotate
	Takes  time.Duration // how long it takes; 0 if that is not known
	Live   bool          // it counts again what was counted live; else it is for where the recording was made
}

// StepKind says what a [Step] is.
type StepKind uint8

// The kinds of step.
const (
	StepConfirm    StepKind = iota // count Nodes, each group of events in a run of its own: whether it is the bottleneck
	StepParts                      // count Nodes: which part of the bottleneck it is
	StepBehind                     // count Nodes: what can be behind the bottleneck
	StepFunctions                  // read the recording's samples by function
	StepLines                      // read the recording by line
	StepSampleTime                 // sample where the time goes
	StepSample                     // sample Event, which locates the bottleneck
	StepSet                        // count Set
	StepExplain                    // what the bottleneck means
	StepSimulate                   // run the program in a simulator, which takes Takes
	StepAnnotate                   // the code of Symbol, line by line
)

// Provenance is where an account's counts are from, as far as the next steps depend on
// it.
type Provenance struct {
	Live      bool // taken now, from what can be counted again
	Started   bool // Live, and of a program that can be started again
	Files     int  // recordings that were read
	Simulated bool // by a simulator, and not by a processor
	Kept      bool // the recording is an account, and has no other places
	Functions bool // samples of some functions only were read
}

// Next lists the steps that say more. For an account without a bottleneck that is, of
// samples, where they are. For one with a bottleneck: counting it again if it is
// uncertain, or else its parts, if these are not known; where in the code it is; the
// method's events for a program of loops or branches; what it means.
func (a *Account) Next(from Provenance) []Step {
	if a.Interval || a.Scope.Kind != counts.Run || from.Files > 1 || a.Binding.published && len(a.CPU().IDs) == 0 {
		return nil
	}
	if a.Hotspots != nil && len(a.Hotspots.States) > 0 {
		return a.nextOfTime(from)
	}
	g := guide{a, from, -1}
	if len(a.Bottleneck) == 0 {
		if s, ok := g.places(); ok && from.Files == 1 && g.sampled() {
			return []Step{s}
		}
		return nil
	}
	g.node = a.Bottleneck[len(a.Bottleneck)-1]
	var steps []Step
	add := func(s Step, ok bool) bool {
		if ok {
			s.Node = g.node
			steps = append(steps, s)
		}
		return ok
	}
	if !add(g.confirmation()) {
		add(g.parts())
	}
	add(g.places())
	add(g.set())
	add(Step{Kind: StepExplain}, true)
	return steps
}

// A guide knows the way on from the bottleneck of an account.
type guide struct {
	*Account
	from Provenance
	node int
}

// confirmation counts the bottleneck again, all of the time, if it is uncertain for not
// having been counted so.
func (g *guide) confirmation() (Step, bool) {
	v := &g.Nodes[g.node]
	switch v.Doubt {
	case DoubtError, DoubtCoverage, DoubtTogether:
	default:
		return Step{}, false
	}
	if g.from.Simulated || g.sampled() || g.Runs > 1 || !(v.Coverage < 1) || g.from.Live && !g.from.Started {
		return Step{}, false
	}
	m := g.Model()
	s := Step{Kind: StepConfirm, Live: g.from.Live}
	for _, i := range g.Bottleneck {
		s.Nodes = append(s.Nodes, m.Nodes[i].Name)
	}
	for _, r := range g.Rivals {
		s.Nodes = append(s.Nodes, m.Nodes[r.Node].Name)
	}
	return s, true
}

// parts counts the parts of the bottleneck that are not known, if there are any,
// and those of its rivals: which of them it is may show below.
func (g *guide) parts() (Step, bool) {
	m := g.Model()
	nodes := []int{g.node}
	for _, r := range g.Rivals {
		if r.Of == g.node {
			nodes = append(nodes, r.Node)
		}
	}
	s := Step{Kind: StepParts, Level: m.Nodes[g.node].Level + 1, Live: g.from.Live}
	for _, i := range nodes {
		if slices.ContainsFunc(m.Nodes[i].Children, g.unknown) {
			s.Nodes = append(s.Nodes, m.Nodes[i].Path+".*")
		}
	}
	if len(s.Nodes) == 0 {
		s.Kind, s.Nodes, s.Level = StepBehind, g.behind(), 0
	}
	switch {
	case len(s.Nodes) == 0 || g.from.Simulated:
		return Step{}, false
	case g.from.Live && !g.hardware(): // the operating system has said all that it knows
		return Step{}, false
	}
	return s, g.from.Live || !g.sampled()
}

func (g *guide) unknown(node int) bool { return !g.Nodes[node].Known() }

// behind lists the unknown nodes that can be behind the bottleneck, where it has no parts that
// say so.
func (g *guide) behind() []string {
	m := g.Model()
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
func (g *guide) places() (Step, bool) {
	s := Step{Node: g.node, Live: g.from.Live}
	switch {
	case g.from.Kept:
		return s, false
	case g.from.Files == 1 && (g.from.Simulated || g.sampled() && g.from.Functions):
		s.Kind = StepLines
	case g.from.Files == 1 && g.sampled():
		s.Kind = StepFunctions
	case g.from.Simulated && g.from.Live:
		s.Kind = StepLines
	case g.from.Simulated:
		return s, false
	case g.from.Live && !g.hardware():
		s.Kind = StepSampleTime
	default:
		s.Kind = StepSample
		if !s.Live && g.node >= 0 {
			s.Event = g.precise()
		}
	}
	return s, true
}

// setNames are the methods' names for the sets of events of programs that loops or branches
// dominate.
var setNames = map[Dominance]string{DominanceLoops: "loops", DominanceBranches: "branch-dominated"}

// set counts the method's events for the kind of program, unless they were.
func (g *guide) set() (Step, bool) {
	m := g.Model()
	name := setNames[g.Branching().Dominance()]
	i := slices.IndexFunc(m.EventSets, func(s model.EventSet) bool { return s.Name == name })
	if i < 0 || g.sampled() || !slices.ContainsFunc(m.EventSets[i].Events, g.lacks) {
		return Step{}, false
	}
	return Step{Kind: StepSet, Set: name}, true
}

// lacks reports whether an event was not counted.
func (g *guide) lacks(e model.SetEvent) bool {
	name := e.Event
	if known, ok := g.Binding.Method.Events.Lookup(name); ok {
		name = known.Name
	}
	return !slices.ContainsFunc(g.Counts(), func(c Count) bool { return c.Event == name && c.State == counts.Counted })
}

// sampledCounts reports whether counts are of samples.
func (a *Account) sampledCounts() bool {
	return slices.ContainsFunc(a.Counts(), func(c Count) bool { return c.Samples > 0 })
}

func (g *guide) sampled() bool { return g.sampledCounts() }

// hardware reports whether the account rests on the processor's counters.
func (a *Account) hardware() bool {
	return slices.ContainsFunc(a.Counts(), func(c Count) bool {
		ref, err := model.ParseEvent(c.Event)
		return err == nil && c.Used && a.Binding.Method.Events.Resolve(ref).Hardware()
	})
}

// precise is the event that locates the bottleneck as perf takes it: the first of
// the node's own, or of the nearest node above it that has any, or the cycles. It is
// precise where the processor can name the instruction.
func (g *guide) precise() string {
	m := g.Model()
	name := ""
	for i := g.node; i >= 0; i = m.Nodes[i].Above {
		if s := m.Nodes[i].Sample; len(s) > 0 {
			name = s[0]
			break
		}
	}
	e, ok := g.Binding.Method.Events.Lookup(name)
	switch vendor := g.CPU().Vendor; {
	case name == "" && (vendor == "intel" || vendor == "amd"):
		return "cycles:pp"
	case name == "":
		return "cycles"
	case !ok:
		return name
	}
	return SampleEvent(g.CPU(), e)
}

// SampleEvent returns an event as perf record takes it without knowing its name: precise,
// if the processor can name the instruction that caused it.
func SampleEvent(cpu *model.CPU, e *model.Event) string {
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

// Leave lists the nodes of the first level that are as expected of the program, if its kind is
// known: they are no bottleneck.
func (a *Account) Leave() []int {
	if a.Binding.Method.Workload == model.AnyWorkload {
		return nil
	}
	var nodes []int
	for i := range a.Nodes {
		if _, standing := a.Expected(i); a.Model().Nodes[i].Level == 1 && standing == Within && !a.Nodes[i].Flagged && a.Nodes[i].Reliable() {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// Healthy reports whether all parts of the whole are known, reliable and within thresholds, of
// counts that can show it: a simulator's, or the processor's.
func (a *Account) Healthy(from Provenance) bool {
	m := a.Model()
	limits := 0
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if n.Section != "" || n.Level != 1 || n.Optional && !a.Nodes[i].Known() {
			continue
		}
		if a.Nodes[i].Flagged || !a.Nodes[i].Reliable() {
			return false
		}
		if n.Threshold != "" {
			limits++
		}
	}
	return limits > 1 && !a.Contradicted() && (from.Simulated || a.hardware())
}
