package account

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/peers"
	"github.com/cyclestack/cyclestack/metric"
)

// A Place says which rows of a table an account is about.
type Place struct {
	Self int   // the scope's own row
	LP   []int // for a core: the rows of its logical processors, in order
}

// Evaluate computes the account of a place in a table of the binding's layout.
// The account is written into a, which is made if it is nil; with a given
// account nothing is allocated, so that intervals can be streamed.
func (b *Binding) Evaluate(t *counts.Table, place Place, a *Account) *Account {
	a = b.prepare(t, place, a)
	a.repeated, a.sampled = b.readSlots(t, place, a), false
	b.compute(a)
	b.judgeCoverage(a)
	b.errors(t, place, a)
	b.check(a)
	b.flag(a)
	b.link(a)
	b.doubt(a)
	a.Bottleneck = b.path(a, a.Bottleneck[:0])
	a.Rivals = b.rivals(t, place, a, a.Rivals[:0])
	if n := a.narrower(); n.Text != "" {
		a.Notes = slices.Concat(a.Notes, []counts.Note{n})
	}
	return a
}

// errors finds the errors of the nodes' values, as far as the counts allow.
func (b *Binding) errors(t *counts.Table, place Place, a *Account) {
	switch {
	case a.repeated:
		b.errorBounds(t, place, a)
	case t.Spreads(place.Self) != nil:
		b.errorsOfTurns(t, place, a)
	}
}

func (b *Binding) prepare(t *counts.Table, place Place, a *Account) *Account {
	n := len(b.slots) + len(b.nodes)
	if a == nil {
		a = &Account{}
	}
	if a.Binding != b {
		*a = Account{
			Binding:  b,
			Nodes:    make([]Value, len(b.nodes)),
			Checks:   make([]Check, 0, len(b.checks)+len(b.nodes)+1),
			workings: workings{seen: make([]observation, n), in: make([]float64, n), values: make([]float64, len(b.nodes))},
		}
		for i := range a.in { // what is not live stays so
			a.in[i], a.seen[i] = math.NaN(), unseen
		}
		for i := range a.Nodes {
			a.values[i], a.Nodes[i] = math.NaN(), unknownValue
		}
	}
	a.Notes = b.Notes
	if len(t.Notes) > 0 {
		a.Notes = slices.Concat(b.Notes, t.Notes)
	}
	a.Scope = t.Scopes[place.Self]
	a.Label, a.Start, a.Duration, a.Interval = t.Label, t.Start, t.Duration, t.Interval
	if a.Scope.Duration > 0 {
		a.Start, a.Duration, a.Interval = a.Scope.Start, a.Scope.Duration, true
	}
	a.Runs, a.table, a.place = 1, t, place
	return a
}

// An observation is what is known of the count in a slot in addition to its size.
type observation struct {
	cover   float64 // its coverage; NaN if missing or not known
	enabled float64 // ns; 0 if missing or not known
	ran     float64 // seconds that it was counted; 0 if not known, NaN for what is no event or missing
	torn    bool    // it was read twice with different results
	sampled bool    // it is a sum of samples

	judged            bool // the following was worked out
	deviation, fewest float64
}

// unseen is the observation of what is missing, and unknownValue its value.
var (
	unseen       = observation{cover: math.NaN(), ran: math.NaN()}
	unknownValue = Value{Value: math.NaN(), Amount: math.NaN(), Error: math.NaN(), Coverage: math.NaN()}
)

// readSlots fills the inputs from the table. It reports whether any count came
// with a variance.
func (b *Binding) readSlots(t *counts.Table, place Place, a *Account) (repeats bool) {
	for _, k := range b.live {
		s, at := &b.slots[k], b.slotIndex(k)
		cell, ok := b.cell(t, place, s)
		if !ok {
			a.in[at], a.seen[at] = math.NaN(), unseen
			if s.time && !math.IsNaN(a.Duration) {
				a.in[at] = a.Duration * 1e9
			}
			continue
		}
		a.in[at] = cell.Estimate()
		a.seen[at] = observation{cover: cell.Coverage(), enabled: cell.Enabled, ran: seconds(t, a.Scope.CPUs, &cell), sampled: cell.Samples > 0,
			torn: s.only < 0 && b.disagree(t, place, s)}
		repeats = repeats || cell.Variance > 0
		a.Runs = max(a.Runs, int(cell.Repeats))
	}
	return repeats
}

// seconds is how long a cell was counted, on each logical processor; 0 where it
// is not known.
func seconds(t *counts.Table, cpus int, c *counts.Cell) float64 {
	if t.Relative {
		return 0
	}
	return c.Running / 1e9 / float64(max(1, cpus))
}

// cell returns the reading of a slot in a place. The readings of an event from several windows
// are averaged. Each weighs as much as the time it was counted.
func (b *Binding) cell(t *counts.Table, place Place, s *slot) (counts.Cell, bool) {
	if s.only >= 0 {
		return b.scaled(t, place.Self, s.only)
	}
	in := &b.Method.inputs[s.input]
	if in.lp >= 0 {
		if in.lp >= len(place.LP) {
			return counts.Cell{}, false
		}
		return b.cellIn(t, place.LP[in.lp], s)
	}
	if in.anyLP {
		for _, row := range place.LP {
			if c, ok := b.cellIn(t, row, s); ok {
				return c, true
			}
		}
	}
	return b.cellIn(t, place.Self, s)
}

func (b *Binding) cellIn(t *counts.Table, row int, s *slot) (counts.Cell, bool) {
	if s.column >= 0 {
		return b.scaled(t, row, s.column)
	}
	for _, cols := range b.columns[s.input] {
		if len(cols) == 1 {
			if c, ok := b.scaled(t, row, cols[0]); ok {
				return c, true
			}
			continue
		}
		if c, ok := b.pool(t, row, cols); ok {
			return c, true
		}
	}
	return counts.Cell{}, false
}

// scaled returns a cell in the base unit.
func (b *Binding) scaled(t *counts.Table, row, col int) (counts.Cell, bool) {
	c := *t.Cell(row, col)
	if k := b.scale[col]; k != 1 {
		c.Value = rounded(c.Value * k)
		c.Variance *= k * k
	}
	return c, c.Ok()
}

// rounded takes off what a conversion of units adds to an integer.
func rounded(v float64) float64 {
	if r := math.Round(v); math.Abs(v-r) <= roundings*math.Abs(v) {
		return r
	}
	return v
}

// twiceApart is how far two readings of one event that was counted all of the
// time may lie apart: they can only differ by when they were read.
const twiceApart = 0.02

// disagree says whether an event was counted several times over the whole time,
// with results that cannot all be right.
func (b *Binding) disagree(t *counts.Table, place Place, s *slot) bool {
	if s.column >= 0 {
		return false
	}
	cols := b.readings(s.input)
	if len(cols) < 2 {
		return false
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, col := range cols {
		if c, ok := b.scaled(t, place.Self, col); ok && c.Coverage() >= alwaysCounted {
			low, high = min(low, c.Value), max(high, c.Value)
		}
	}
	return high-low > twiceApart*high
}

// pool averages several readings of one event by the time each was counted.
func (b *Binding) pool(t *counts.Table, row int, cols []int) (counts.Cell, bool) {
	var sum counts.Cell
	var weight float64
	for _, col := range cols {
		c, ok := b.scaled(t, row, col)
		if !ok {
			continue
		}
		w := c.Running
		if c.Enabled <= 0 {
			w = 1
		}
		sum.State = counts.Counted
		sum.Value += w * c.Estimate()
		sum.Variance += w * w * c.Variance
		sum.Enabled = max(sum.Enabled, c.Enabled)
		sum.Running += c.Running
		sum.Repeats = max(sum.Repeats, c.Repeats)
		weight += w
	}
	if weight <= 0 {
		return sum, false
	}
	sum.Value /= weight
	sum.Variance /= weight * weight
	sum.Running = min(sum.Running, sum.Enabled)
	return sum, true
}

// compute evaluates all formulas.
func (b *Binding) compute(a *Account) {
	b.evaluate(a, b.order)
	first := len(b.Method.inputs)
	for _, i := range b.alive {
		a.Nodes[i] = Value{Value: a.values[i], Amount: a.in[first+i], Error: math.NaN()}
	}
	if d := a.difference; d != nil {
		a.Nodes[len(b.nodes)] = Value{Value: a.Nodes[d[0]].Value - a.Nodes[d[1]].Value, Error: math.NaN()}
	}
}

// evaluate evaluates the formulas of some nodes, each after those that it refers
// to: amounts go into the vector, values next to it.
func (b *Binding) evaluate(a *Account, nodes []int) {
	first := len(b.Method.inputs)
	whole := math.NaN()
	if b.of != nil {
		whole = b.of.Eval(a.in)
	}
	for _, i := range nodes {
		p := &b.nodes[i]
		amount := math.NaN()
		switch {
		case p.rest:
			amount = b.rest(a, i)
		case p.prog != nil:
			amount = p.prog.Eval(a.in)
		}
		a.in[first+i], a.values[i] = amount, amount
		if b.Method.shares[i] {
			of := whole
			if p.of != nil {
				of = p.of.Eval(a.in)
			}
			a.values[i] = share(amount, of)
		}
	}
}

func share(amount, of float64) float64 {
	if of == 0 {
		return math.NaN()
	}
	if v := amount / of; !math.IsInf(v, 0) {
		return v
	}
	return math.NaN()
}

// roundings is the part of what is added and subtracted that can be the rounding of quotients
// and sums: a few times the distance of two neighbouring numbers.
const roundings = 0x1p-50

// rest is what a node's siblings leave of its parent. Siblings that are not
// known are part of the rest: that is what it is for. Where they leave no more than
// rounding does, it is 0: of a thread that ran all of the time, one time in two less.
func (b *Binding) rest(a *Account, i int) float64 {
	parent := b.Method.Model.Nodes[i].Above
	first := len(b.Method.inputs)
	left := a.in[first+parent]
	size := math.Abs(left)
	for _, j := range b.Method.Model.Nodes[parent].Children {
		if v := a.in[first+j]; j != i && !math.IsNaN(v) {
			left -= v
			size += math.Abs(v)
		}
	}
	if math.Abs(left) <= roundings*size {
		return 0
	}
	return left
}

// judgeCoverage finds each node's smallest coverage, whether its events were
// counted together, and whether any was counted at all: what follows from an
// assumption alone is not known.
func (b *Binding) judgeCoverage(a *Account) {
	a.known = a.known[:0]
	for _, i := range b.alive {
		v := &a.Nodes[i]
		v.Assumed = b.nodes[i].assumed
		if math.IsNaN(v.Value) && math.IsNaN(v.Amount) {
			v.Coverage = math.NaN()
			continue
		}
		e := b.evidence(a, b.nodes[i].live)
		v.Coverage, v.Together = e.least, e.together && v.Known()
		v.seconds, v.torn, v.counted, v.several = e.seconds, e.torn, e.counted, e.events > 1
		if !e.counted && b.Method.assumes[i] {
			v.Value, v.Amount, v.Together = math.NaN(), math.NaN(), false
		}
		if v.Known() {
			a.known = append(a.known, i)
		}
	}
}

// evidence is what a node's inputs say about how well it is founded.
type evidence struct {
	least    float64 // coverage; NaN if one is not known
	seconds  float64 // that the input of the least coverage was counted; 0 or NaN if not known
	together bool
	counted  bool // any of them was
	torn     bool // one was read twice, with different results
	events   int  // how many of them are known
}

func (b *Binding) evidence(a *Account, deps []int) evidence {
	e := evidence{least: math.NaN(), seconds: math.NaN(), together: true}
	group, unknown := 0, false
	for _, at := range deps {
		if math.IsNaN(a.in[at]) {
			continue
		}
		seen := &a.seen[at]
		e.counted = e.counted || !b.slotAt(at).time // elapsed time is no event
		e.events++
		e.torn = e.torn || seen.torn
		if math.IsNaN(seen.cover) {
			unknown = unknown || !math.IsNaN(seen.ran) // elapsed time is no event
			continue
		}
		if cover := min(1, seen.cover*b.parts[at]); !(cover >= e.least) {
			e.least, e.seconds = cover, seen.ran
		}
		if seen.cover >= alwaysCounted {
			continue
		}
		g := b.groups[at]
		if g == 0 || (group != 0 && g != group) {
			e.together = false
		}
		group = g
	}
	if unknown {
		e.least, e.seconds, e.together = math.NaN(), math.NaN(), false
	}
	return e
}

// doubt applies the rule of [Doubt].
func (b *Binding) doubt(a *Account) {
	for _, i := range a.known {
		v := &a.Nodes[i]
		switch {
		case b.outside(i, v.Value):
			v.Doubt = DoubtRange
		case v.torn:
			v.Doubt = doubtTwice
		case v.Error > 0 && v.Error >= math.Abs(v.Value):
			v.Doubt = DoubtError
			if a.sampled {
				v.Doubt = doubtSamples
			}
		case !v.Together && brief(v.Coverage, a.Duration, v.seconds):
			v.Doubt = DoubtCoverage
		case !v.Together && v.several && math.IsNaN(v.Error) && apart(v.Coverage, a.Duration, v.seconds):
			v.Doubt = DoubtTogether
		case b.assumes(a, i):
			v.Doubt = doubtAssumed
		}
	}
	b.contradict(a)
}

// assumes reports whether a number stands for an event in a value that matters.
func (b *Binding) assumes(a *Account, i int) bool {
	const least = 0.01
	v := &a.Nodes[i]
	return b.nodes[i].invented && !(b.Method.Model.Share(i) && math.Abs(v.Value) < least)
}

// contradict doubts the values that contradictions touch.
func (b *Binding) contradict(a *Account) {
	var t *testimony
	for k := range a.Checks {
		c := &a.Checks[k]
		if !c.Contradicts() || c.twice {
			continue
		}
		if t == nil {
			t = a.testimony()
		}
		guilty := a.guilty(t, c)
		for _, i := range a.known {
			if v := &a.Nodes[i]; v.Doubt == DoubtNone && b.touched(i, c, guilty) {
				v.Doubt = doubtIdentity
			}
		}
	}
}

// touched reports whether a node rests on a contradiction: on all counts of the check that
// fails, or on one that can be the wrong one. A check of the tree is about nodes: an
// impossible value makes no other value impossible.
// Readings of one event in several groups may differ: each group agrees with itself.
func (b *Binding) touched(node int, c *Check, guilty []string) bool {
	if !c.node {
		for _, event := range guilty {
			if b.restsOn(node, event) {
				return true
			}
		}
	}
	for _, event := range c.Events {
		if !b.restsOn(node, event) {
			return false
		}
	}
	return len(c.Events) > 0
}

// restsOn reports whether a node rests on an event.
func (b *Binding) restsOn(node int, event string) bool {
	for _, at := range b.nodes[node].deps {
		s := b.slotAt(at)
		if s.column >= 0 && b.Names[s.column] == event {
			return true
		}
		if s.column < 0 {
			for _, col := range b.readings(s.input) {
				if b.Names[col] == event {
					return true
				}
			}
		}
	}
	return false
}

// outside says whether a value lies outside the range of its node.
func (b *Binding) outside(i int, value float64) bool {
	return value < b.Method.bounds[i][0] || value > b.Method.bounds[i][1]
}

// apart reports whether counts that were not taken together had too few time slices
// each to make up for that. It goes by the run's duration if that is known, or else by
// the time that the event was counted.
func apart(coverage, duration, seconds float64) bool {
	switch {
	case math.IsNaN(coverage) || coverage >= alwaysCounted:
		return false
	case duration > 0:
		return coverage*duration < secondsApart
	}
	return seconds > 0 && seconds < secondsApart
}

// brief reports whether a coverage is too small for a figure. It goes by the run's
// duration if that is known, or else by the time that the event was counted.
func brief(coverage, duration, seconds float64) bool {
	switch {
	case math.IsNaN(coverage) || coverage >= coverageEnough:
		return false
	case duration > 0:
		return coverage*duration < secondsEnough
	case seconds > 0:
		return seconds < secondsEnough
	}
	return coverage < coverageMinimum
}

// why says in words why a node has no value.
func (b *Binding) why(a *Account, i int) counts.Note {
	c := b.Method
	p := &b.nodes[i]
	switch {
	case p.err != "":
		return counts.Notef("%s", p.err)
	case c.Model.Nodes[i].Rest:
		parent, _ := c.family(i)
		return b.why(a, parent)
	case p.prog == nil:
		return counts.Notef("it has no formula")
	}
	if r := p.prog.Why(a.in); r.Kind != metric.None {
		return b.reason(a, r)
	}
	if c.assumes[i] && !a.Nodes[i].counted {
		return counts.Notef("it depends on whether SMT was on").With(counts.Fix{Action: counts.SetSMT})
	}
	if p.of != nil {
		return b.wholeWhy(a, p.of)
	}
	return b.wholeWhy(a, b.of)
}

func (b *Binding) wholeWhy(a *Account, of *metric.Program) counts.Note {
	if of.Eval(a.in) == 0 {
		return counts.Notef("%s is 0", b.Method.Model.Of)
	}
	return b.reason(a, of.Why(a.in))
}

func (b *Binding) reason(a *Account, r metric.Reason) counts.Note {
	switch r.Kind {
	case metric.ZeroDivision:
		return counts.Notef("division by zero in %s", r.Text)
	case metric.Overflow:
		return counts.Notef("the result is too large to represent")
	}
	var absent []absence
	var params []string
	var other counts.Note
	for _, at := range r.Slots {
		if node := at - len(b.Method.inputs); node >= 0 && node < len(b.nodes) {
			other = b.why(a, node)
			continue
		}
		in := &b.Method.inputs[b.slotAt(at).input]
		if in.param {
			params = append(params, in.name)
			continue
		}
		absent = append(absent, absence{in.text(), len(b.readings(b.slotAt(at).input)) > 0})
	}
	switch {
	case len(params) > 0:
		return counts.Notef("parameter %s has no value", params[0]).With(counts.Fix{Action: counts.SetParameter, Name: params[0]})
	case len(absent) > 0:
		return counts.Notef("%s", absenceText(absent))
	case other.Text != "":
		return other
	}
	return counts.Notef("an input is missing")
}

// text names an input for a person.
func (in *input) text() string {
	names := make([]string, len(in.any))
	for k := range in.any {
		names[k] = strings.TrimPrefix(in.any[k].name, peers.Published)
	}
	name := strings.Join(names, " or ")
	if in.lp >= 0 {
		name += fmt.Sprintf(" on logical processor %d", in.lp)
	}
	return name
}

// An absence is an input that is missing: recorded but never counted, or not
// recorded at all.
type absence struct {
	name     string
	recorded bool
}

// absenceText says what is missing in one sentence.
func absenceText(list []absence) string {
	var uncounted, unrecorded []string
	for _, a := range list {
		if a.recorded {
			uncounted = append(uncounted, a.name)
		} else {
			unrecorded = append(unrecorded, a.name)
		}
	}
	var parts []string
	if len(uncounted) > 0 {
		parts = append(parts, enumerate(uncounted)+verb(uncounted, " was", " were")+" not counted")
	}
	if len(unrecorded) > 0 {
		parts = append(parts, enumerate(unrecorded)+verb(unrecorded, " is", " are")+" not in the recording")
	}
	return strings.Join(parts, "; ")
}

func verb(names []string, one, many string) string {
	if len(names) == 1 {
		return one
	}
	return many
}

// operands lists what a formula names with its numbers.
func (b *Binding) operands(a *Account, i int) []Operand {
	c := b.Method
	if c.Model.Nodes[i].Rest {
		parent, siblings := c.family(i)
		var ops []Operand
		for _, j := range append([]int{parent}, siblings...) {
			ops = append(ops, b.nodeOperand(a, j))
		}
		return ops
	}
	formula, err := c.Model.Nodes[i].Expr()
	if err != nil {
		return nil
	}
	var ops []Operand
	for _, name := range formula.Names() {
		switch j, isNode := c.nodeIndex[name]; {
		case isNode:
			ops = append(ops, b.nodeOperand(a, j))
		default:
			ops = append(ops, b.inputOperand(a, i, name))
		}
	}
	return ops
}

func (b *Binding) nodeOperand(a *Account, j int) Operand {
	return Operand{Name: b.Method.Model.Nodes[j].Name, Value: a.Nodes[j].Amount, Coverage: a.Nodes[j].Coverage, Kind: "node"}
}

func (b *Binding) inputOperand(a *Account, node int, name string) Operand {
	c := b.Method
	if v, ok := c.params[name]; ok {
		return Operand{Name: name, Value: v, Coverage: math.NaN(), Kind: "parameter"}
	}
	at, ok := c.inputIndex[name]
	if !ok {
		return Operand{Name: name, Value: math.NaN(), Coverage: math.NaN(), Kind: "event"}
	}
	for _, d := range b.nodes[node].deps {
		if b.slotAt(d).input == at {
			at = d
			break
		}
	}
	op := Operand{Name: name, Value: a.in[at], Unit: c.inputs[b.slotAt(at).input].unit, Coverage: math.NaN(), Kind: "event"}
	if s := b.slotAt(at); s.column >= 0 {
		op.Event = b.Layout.Columns[s.column].Event
	} else if cols := b.readings(s.input); len(cols) > 0 {
		op.Event = b.Layout.Columns[cols[0]].Event
	}
	return op
}
