package account

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// A rule is a relation made ready: one of the model's, or one between the
// events of the processor whatever the model.
type rule struct {
	*model.Relation
	left, right, when *metric.Expr
	common            bool // of the processor
}

// addRelations adds the relations of the processor. One that has the name of a
// relation of the model gives way to it.
func (c *Method) addRelations() error {
	c.own, c.ruleIndex = len(c.inputs), map[string]int{}
	inputs, common, err := c.Events.Relations()
	if err != nil {
		return err
	}
	for i := range common {
		r := &common[i]
		if slices.ContainsFunc(c.Model.Relations, func(own model.Relation) bool { return own.Name == r.Name }) {
			continue
		}
		left, right, when, err := r.Exprs()
		if err != nil {
			return fmt.Errorf("%s:%d: relation %q: %w", r.File, r.Line, r.Name, err)
		}
		for _, e := range []*metric.Expr{left, right, when} {
			c.addRuleInputs(e, inputs)
		}
		c.rules = append(c.rules, rule{r, left, right, when, true})
	}
	return nil
}

// addRuleInputs adds what a formula of the processor's relations names. The
// names are the relations' own: a model may use them for something else. What the
// model has as well is read once.
func (c *Method) addRuleInputs(e *metric.Expr, defs []model.Input) {
	if e == nil {
		return
	}
	for _, name := range e.Names() {
		if _, ok := c.ruleIndex[name]; ok {
			continue
		}
		in := c.input(name, defs)
		at, ok := c.inputIndex[name]
		if !ok || !c.inputs[at].same(&in) {
			at = len(c.inputs)
			c.inputs = append(c.inputs, in)
		}
		c.ruleIndex[name] = at
	}
}

// A boundRule is a rule compiled for a layout.
type boundRule struct {
	*rule
	left, right, when *metric.Program
	sign              int     // how left must stand to right: -1 for at most, 1 for at least, 0 for equal
	first             int     // index of the first of those before it that have its name: a relation may be one for each of several events
	deps              []int   // slots that the two sides rest on
	live              []int   // those of deps that the recording may have a count of
	uses              []sides // by index of deps
	check             Check   // if it is skipped
	err               string
	dead              bool // the recording cannot have what a side needs
}

// sides are those of a relation that read a slot themselves, not through nodes.
type sides struct{ left, right bool }

// compileChecks compiles the model's relations, and those of the processor for
// whose events the recording has columns.
func (b *Binding) compileChecks() {
	for i := range b.Method.rules {
		r := &b.Method.rules[i]
		if !r.common {
			b.checks = append(b.checks, b.compileRule(r))
		} else if b.recorded(r) {
			b.checks = append(b.checks, b.compileCommon(r))
		}
	}
	for i := range b.checks {
		b.checks[i].prepare(b, i)
	}
}

// prepare works out what is the same for all accounts.
func (r *boundRule) prepare(b *Binding, index int) {
	r.sign = map[string]int{"<=": -1, ">=": 1}[r.Op]
	r.first = index
	if index > 0 && b.checks[index-1].Name == r.Name {
		r.first = b.checks[index-1].first
	}
	nan := math.NaN()
	r.check = Check{Name: r.Name, Op: cmp.Or(r.Op, "="), Tolerance: r.Tolerance, Slack: r.Slack, Identity: r.Identity, Side: side(r.Identity || r.Plausible),
		Source: r.Source, Common: r.common, Events: b.eventsOf(r.deps), Left: nan, Right: nan, Residual: nan, rule: index}
	for _, at := range r.deps {
		r.uses = append(r.uses, sides{reads(r.left, at), reads(r.right, at)})
	}
}

func reads(p *metric.Program, slot int) bool { return p != nil && slices.Contains(p.Slots(), slot) }

// sides are the formulas of a rule.
func (r *rule) sides() [3]*metric.Expr { return [3]*metric.Expr{r.left, r.right, r.when} }

// programs are the places for what is compiled of them.
func (r *boundRule) programs() [3]**metric.Program {
	return [3]**metric.Program{&r.left, &r.right, &r.when}
}

// compileRule compiles a relation of the model, which may speak of nodes.
func (b *Binding) compileRule(r *rule) boundRule {
	out := boundRule{rule: r}
	for i, e := range r.sides() {
		if e == nil {
			continue
		}
		e = b.fold(e)
		prog, err := metric.Compile(e, b.slotIn)
		if err != nil {
			out.err = err.Error()
		}
		*out.programs()[i] = prog
		if e != r.when {
			out.deps = union(out.deps, b.allDeps(e))
		}
	}
	return out
}

// recorded reports whether the recording has columns for all that a relation of
// the processor names.
func (b *Binding) recorded(r *rule) bool {
	for _, e := range r.sides() {
		if e == nil {
			continue
		}
		for _, name := range e.Names() {
			at := b.Method.ruleIndex[name]
			if len(b.readings(at)) == 0 && !b.slots[at].time {
				return false
			}
		}
	}
	return true
}

// compileCommon compiles a relation of the processor. Where events were counted
// in several groups, it is checked in the group that has most of them.
func (b *Binding) compileCommon(r *rule) boundRule {
	out := boundRule{rule: r}
	var inputs []int
	for _, e := range r.sides() {
		if e == nil {
			continue
		}
		for _, name := range e.Names() {
			inputs = union(inputs, []int{b.Method.ruleIndex[name]})
		}
	}
	group := b.coherentGroup(inputs)
	for i, e := range r.sides() {
		if e == nil {
			continue
		}
		prog, err := metric.Compile(e, func(name string) int { return b.ruleSlot(name, group, &out.deps) })
		if err != nil {
			out.err = err.Error()
		}
		*out.programs()[i] = prog
	}
	return out
}

// ruleSlot returns the slot of a name in a relation of the processor, and adds it to deps.
// It is read from a group if possible.
func (b *Binding) ruleSlot(name string, group int, deps *[]int) int {
	at := b.Method.ruleIndex[name]
	s := at
	for _, col := range b.readings(at) {
		if group != 0 && b.Layout.Columns[col].Group == group {
			s = b.reading(at, col)
			break
		}
	}
	*deps = union(*deps, []int{s})
	return s
}

// eventsOf names the events behind slots.
func (b *Binding) eventsOf(slots []int) []string {
	var names []string
	for _, at := range slots {
		for _, col := range b.columnsOf(b.slotAt(at)) {
			if !slices.Contains(names, b.Names[col]) {
				names = append(names, b.Names[col])
			}
		}
	}
	return names
}

// columnsOf are the columns that a slot is read from.
func (b *Binding) columnsOf(s *slot) []int {
	if s.column >= 0 {
		return []int{s.column}
	}
	return b.readings(s.input)
}
