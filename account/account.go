// Package account evaluates a model over the counts of a scope: every node's value and how far
// to trust it, the bottleneck path, and the audit of what must add up.
//
// It is the fifth step of the flow
//
//	model → plan → source → counts → account → report
//
// and the only place where ratios are formed: once, from sums. Where the counts
// came from is not known here, nor how the account will be shown. The package promises
// that a figure is either reliable or says why it is not.
//
//	method, err := account.Load("power7", "power7-cpi", account.Options{})
//	a := method.Bind(table.Layout).Evaluate(table, account.Place{Self: 0}, nil)
//	fmt.Println(a.Value("Stalls"))
package account

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// An Account is a model evaluated over the counts of one scope. It is reused
// by [Binding.Evaluate]; a caller that keeps one copies it with Clone.
type Account struct {
	Binding  *Binding
	Scope    counts.Scope
	Label    string  // what was measured
	Start    float64 // seconds since the recording's start; NaN where not known
	Duration float64 // seconds; NaN where not known
	Interval bool
	Runs     int // repeats the counts are means of; 1 for a single run

	Nodes      []Value // parallel to the model's nodes
	Checks     []Check // of the tree, of the model's and the processor's relations, of each count
	Bottleneck []int   // indexes of nodes, from the top to the deepest flagged one
	Rivals     []Rival // of the bottleneck's nodes
	Notes      []counts.Note
	Finer      float64 // seconds of intervals that would narrow large errors; 0 if that is not recommended

	// Times is what the threads did with their time, in the same scope and by another
	// method; nil if that is not known.
	Times *Account
	// Hotspots say where the time went, of accounts of the operating system's counters; nil
	// if that was not sampled.
	Hotspots *Hotspots

	// Also are accounts by further methods, each for counts that none before uses.
	Also []Further

	workings
	scratch
}

// workings are what an account's values were computed from.
type workings struct {
	amounts []float64 // standard errors of nodes and of all in parts of the whole, if counts were estimated; nil
	table   *counts.Table
	place   Place
	seen    []observation // of the slots
	in      []float64     // the slots as they were evaluated, for explanations
	values  []float64     // node values by node, as thresholds see them
	known   []int         // the nodes with a value, in order
	linked  []bool        // by node

	repeated bool // counts came with variances
	sampled  bool // counts are sums of samples

	difference *[2]int // nodes whose difference is evaluated behind the model's; nil for none
}

// scratch is room that evaluations of one account use again.
type scratch struct {
	keep  []Value   // for the nodes while others are computed
	bound []float64 // for a figure of each node
	sizes []size    // of the table's rows that were looked at: the place's own; see sizeOf
	said  map[finding]*words
	heard testimony
	used  usage
	whys  []reasoned // by node
}

// A Value is one node's figure.
type Value struct {
	// Value is a share of the whole (0…1) in a tree of shares, else a number in the node's
	// unit. NaN if it is not known; Account.Why says why.
	Value float64
	// Amount is the same before it was divided by the whole: cycles or slots.
	// For other nodes it equals Value.
	Amount float64
	// Error is the half-width of the 95 % confidence interval of Value; NaN where it
	// cannot be estimated. From repeats (perf stat -r) it holds however the counts are
	// correlated, and is about another run like these. From intervals with multiplexed
	// groups it is about this run: what it would have shown without multiplexing, and 0
	// for what was not multiplexed. It comes by the delta method from how the counts
	// change between intervals; [counts.Spread] says how. From samples it is about
	// another recording of the same: the delta method over independent arrivals.
	Error float64
	// Coverage is the smallest share of the time that one of the node's events was on a
	// counter, 0…1; NaN where the source does not say. Events with runs of their own
	// count by the time of these runs.
	Coverage float64
	// Together says that the node's events were counted over the same windows:
	// in one group, or all of the time.
	Together bool
	// Flagged says that the node's threshold is met, and unless it stands by
	// itself those of its parents too.
	Flagged bool
	// Doubt is why the value is not reliable; DoubtNone if it is.
	Doubt Doubt
	// Assumed are the numbers that stand in its formula for events that were not
	// counted, as "1 for EVENT"; not to be changed.
	Assumed []string

	seconds float64 // that its least covered event was counted; NaN if not known
	torn    bool    // an event was counted twice all of the time, with different results
	several bool    // it rests on several events
	counted bool    // any of its events was counted
}

// Known reports whether the value could be computed.
func (v *Value) Known() bool { return !math.IsNaN(v.Value) }

// Reliable reports whether the value is known and nothing speaks against it. The rule is
// [Doubt]'s.
func (v *Value) Reliable() bool { return v.Known() && v.Doubt == DoubtNone }

// Doubt is a reason not to rely on a value. The rule, in this order:
//   - a value outside the range of its definition is impossible;
//   - an event that was counted twice all of the time, with results more than 2 %
//     apart, has no one value;
//   - a 95 % interval as wide as the value makes it uncertain; of samples there are
//     too few;
//   - of events that were not counted together, one had too little time: less than
//     half of it and less than 0.4 seconds, a hundred slices of the kernel's usual
//     rotation. Where no times are known, a tenth is too little;
//   - several events that were not counted together make a ratio of different times:
//     nothing shows how they varied, and one had less than 4 seconds (a thousand
//     slices);
//   - a number other than 0 in place of an event that was not counted is an
//     assumption. It matters from 1 % of the whole on;
//   - a value rests on a contradiction if all counts of a failing identity are in it, or a
//     suspect one.
type Doubt uint8

// The reasons for doubt.
const (
	DoubtNone Doubt = iota
	DoubtRange
	doubtTwice
	DoubtError
	DoubtCoverage
	DoubtCore // given by who counted: an account cannot know it
	doubtIdentity
	doubtSamples
	DoubtTogether
	doubtAssumed
)

const (
	coverageEnough  = 0.5    // of the time
	secondsEnough   = 0.4    // counted, in all
	secondsApart    = 4.0    // counted, of events that were not counted together
	coverageMinimum = 0.1    // where the duration is not known
	alwaysCounted   = 0.9999 // of the time: perf prints two decimals of a percentage
)

func (d Doubt) String() string {
	switch d {
	case DoubtRange:
		return "outside its possible range"
	case doubtTwice:
		return "an event was counted twice, with different results"
	case doubtIdentity:
		return "its counts contradict each other"
	case DoubtError:
		return "its error exceeds the value"
	case DoubtCore:
		return "about a whole core, but only one of its logical processors was counted"
	case DoubtCoverage:
		return "counted too briefly, and not together"
	case doubtSamples:
		return "rests on too few samples"
	case DoubtTogether:
		return "its inputs were not counted together"
	case doubtAssumed:
		return "a number stands for an event that was not counted"
	}
	return ""
}

// Model returns the model that was evaluated.
func (a *Account) Model() *model.Model { return a.Binding.Method.Model }

// CPU returns the processor.
func (a *Account) CPU() *model.CPU { return a.Binding.Method.CPU }

// Value returns the value of the node of that name, NaN if there is none.
func (a *Account) Value(name string) float64 {
	if i, ok := a.Binding.Method.nodeIndex[name]; ok {
		return a.Nodes[i].Value
	}
	return math.NaN()
}

// Node returns the index of the node of that name, and whether there is one.
func (a *Account) Node(name string) (int, bool) {
	i, ok := a.Binding.Method.nodeIndex[name]
	return i, ok
}

// Known reports whether any node of the account could be computed from counts.
func (a *Account) Known() bool {
	for i := range a.Nodes {
		if a.Nodes[i].Known() && a.Nodes[i].counted {
			return true
		}
	}
	return false
}

// Relates reports whether a node is known and relates counts of several events. One that
// does not says no more than the count that it is of.
func (a *Account) Relates(node int) bool {
	b := a.Binding
	event := ""
	if !a.Nodes[node].Known() {
		return false
	}
	for _, input := range b.nodes[node].inputs {
		if math.IsNaN(a.in[b.slotIndex(input)]) {
			continue
		}
		for _, col := range slices.Concat(b.columns[input]...) {
			switch event {
			case "", b.Names[col]:
				event = b.Names[col]
			default:
				return true
			}
		}
	}
	return false
}

// Completeness says how much of the model the counts answer, 0…1: the part of
// the first level's nodes that is known, and next to nothing for knowing only
// others.
func (a *Account) Completeness() float64 {
	const others = 1e-6
	nodes := a.Model().Nodes
	first, known := 0, 0
	for i := range nodes {
		if nodes[i].Section == "" && nodes[i].Level == 1 {
			first++
			if a.Nodes[i].Known() {
				known++
			}
		}
	}
	switch {
	case known > 0:
		return float64(known) / float64(first)
	case a.Known():
		return others
	}
	return 0
}

// Contradicted reports whether the recording contradicts itself: a check fails
// whose failure means that.
func (a *Account) Contradicted() bool {
	for i := range a.Checks {
		if a.Checks[i].Contradicts() {
			return true
		}
	}
	return false
}

// Clone returns a copy that later evaluations do not touch.
func (a *Account) Clone() *Account {
	c := *a
	c.Nodes = append([]Value(nil), a.Nodes...)
	c.Checks = append([]Check(nil), a.Checks...)
	c.Bottleneck = append([]int(nil), a.Bottleneck...)
	c.Rivals = append([]Rival(nil), a.Rivals...)
	c.linked = append([]bool(nil), a.linked...)
	c.Notes = append([]counts.Note(nil), a.Notes...)
	c.in = append([]float64(nil), a.in...)
	c.values = append([]float64(nil), a.values...)
	c.seen = append([]observation(nil), a.seen...)
	c.table = a.table.Clone()
	c.scratch = scratch{}
	if a.Times != nil {
		c.Times = a.Times.Clone()
	}
	c.Also = slices.Clone(a.Also)
	for i, f := range c.Also {
		c.Also[i].Account = f.Clone()
	}
	return &c
}

// Why says why a node is not known, and what would change that; the zero Note if it is.
func (a *Account) Why(node int) counts.Note {
	if a.Nodes[node].Known() {
		return counts.Note{}
	}
	return a.reason(node)
}

// WhySkipped says why a check was skipped; the zero Note if it was not.
func (a *Account) WhySkipped(check int) counts.Note { return a.Binding.whySkipped(a, &a.Checks[check]) }

// Includes lists the siblings of a rest whose own values are not known. What they would have
// explained is part of it.
func (a *Account) Includes(node int) []string {
	if !a.Model().Nodes[node].Rest || !a.Nodes[node].Known() {
		return nil
	}
	var names []string
	_, siblings := a.Binding.Method.family(node)
	for _, j := range siblings {
		if !a.Nodes[j].Known() {
			names = append(names, a.Model().Nodes[j].Name)
		}
	}
	return names
}

// An Operand is one input of a node's formula with its number put in.
type Operand struct {
	Name     string
	Value    float64 // NaN if missing
	Unit     string
	Coverage float64 // NaN if not known
	Kind     string  // "event", "parameter", "node"
	Event    string  // the event as the recording spells it
}

// Operands lists what a node's formula names, in its order.
func (a *Account) Operands(node int) []Operand { return a.Binding.operands(a, node) }

// enumerate names a few things in words.
func enumerate(names []string) string {
	const most = 4
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), n-most+1)
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}
