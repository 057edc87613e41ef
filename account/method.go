package account

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// Options are what a user may say about a model.
type Options struct {
	// Params replace the model's parameters. The processor's own and those of
	// the model come behind. Literals ("#smt_on") are given here too.
	Params map[string]float64

	// Workload is the kind of program, which says what is expected of nodes;
	// AnyWorkload if it is not known.
	Workload model.Workload

	// Level is the deepest level of the tree that will be looked at, 0 for all. All
	// are evaluated; a note says if the model has none so deep.
	Level int
}

// A Method is a model made ready for one processor: formulas parsed,
// parameters put in, nodes in the order of evaluation. It is immutable and may
// be bound to any number of layouts, concurrently.
type Method struct {
	Model  *model.Model
	CPU    *model.CPU
	Events *model.EventTable // of the processor

	Workload model.Workload // as in Options

	names
	trees
	of    *metric.Expr  // nil: the formulas give the values
	rules []rule        // the model's relations, then the processor's
	notes []counts.Note // what was assumed
}

// names is what a method knows of the names in its formulas.
type names struct {
	params     map[string]float64
	inputs     []input
	inputIndex map[string]int
	nodeIndex  map[string]int
	own        int            // how many of the inputs are the model's; the others are the processor's relations'
	ruleIndex  map[string]int // inputs of the processor's relations, by name
}

// trees is what a method knows of its nodes, each by node but order.
type trees struct {
	order        []int            // nodes, each after those it names
	formulas     []*metric.Expr   // amounts; nil for a rest
	thresholds   []*metric.Expr   // nil for none
	advice       [][]*metric.Expr // the conditions of the node's advice
	shares       []bool           // whether its value is a share of the whole
	bounds       [][2]float64     // the least and the greatest value that it may have
	assumes      []bool           // its formula asks for what was assumed
	closureNames []string         // the name of the check that its children sum to it
}

// An input is a name that a formula uses and that counts must supply.
type input struct {
	name  string
	any   []inputEvent // alternatives in order of preference
	lp    int          // logical processor of the core, -1 for the scope's own
	anyLP bool
	unit  string
	param bool // a parameter that nobody gave
}

// same reports whether two inputs are read alike.
func (in *input) same(o *input) bool {
	return in.lp == o.lp && in.anyLP == o.anyLP && in.param == o.param && slices.Equal(in.any, o.any)
}

// An inputEvent is one event that an input accepts.
type inputEvent struct {
	name string
	id   model.Identity
}

// Load makes an embedded model ready for a processor, both by name as
// [model.Catalogue.CPU] and [model.Catalogue.Model] take them; the model "" is
// the processor's first.
func Load(cpuName, modelName string, opt Options) (*Method, error) {
	cat, err := model.Embedded()
	if err != nil {
		return nil, err
	}
	cpu, err := cat.CPU(cpuName)
	if err != nil {
		return nil, err
	}
	m, err := cat.Model(modelName, cpu.Name)
	if err != nil {
		return nil, err
	}
	events, err := cat.Events(cpu)
	if err != nil {
		return nil, err
	}
	return Compile(m, cpu, events, opt)
}

// Compile makes a model ready for a processor.
func Compile(m *model.Model, cpu *model.CPU, events *model.EventTable, opt Options) (*Method, error) {
	c := &Method{Model: m, CPU: cpu, Events: events, Workload: opt.Workload,
		names: names{inputIndex: map[string]int{}, nodeIndex: map[string]int{}}}
	if err := c.setParams(opt.Params); err != nil {
		return nil, err
	}
	for i := range m.Nodes {
		c.nodeIndex[m.Nodes[i].Name] = i
	}
	c.describe()
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if opt.Workload != model.AnyWorkload && !slices.ContainsFunc(m.Nodes, func(n model.Node) bool { return n.Expected != nil }) {
		c.notes = append(c.notes, counts.Notef("nobody has published what to expect of %s: the workload %s changes nothing", m.Name, opt.Workload))
	}
	if last := levels(m); opt.Level > last {
		levels := fmt.Sprintf("%d levels", last)
		if last == 1 {
			levels = "one level"
		}
		c.notes = append(c.notes, counts.Notef("%s has %s: there is none deeper", m.Name, levels))
	}
	if err := c.addRelations(); err != nil {
		return nil, err
	}
	return c, c.sort()
}

// levels is the deepest level of a model's main tree.
func levels(m *model.Model) int {
	last := 0
	for i := range m.Nodes {
		if m.Nodes[i].Section == "" {
			last = max(last, m.Nodes[i].Level)
		}
	}
	return last
}

// describe looks up what evaluation asks of the nodes again and again.
func (c *Method) describe() {
	nodes := c.Model.Nodes
	c.shares = make([]bool, len(nodes))
	c.bounds, c.closureNames = make([][2]float64, len(nodes)), make([]string, len(nodes))
	for i := range nodes {
		c.shares[i] = c.Model.Of != "" && nodes[i].Unit == ""
		c.bounds[i] = bounds(c.Model, i)
		c.closureNames[i] = "children of " + nodes[i].Name + " sum to it"
	}
}

// shareSlack is how far a share may lie beyond 0…1. Rounding explains that, or that the ends
// of an interval are read one after the other.
const shareSlack = 0.02

// bounds are the least and the greatest value that a node may have. A share whose
// model gives no range lies between 0 and 1, unless it may be negative.
func bounds(m *model.Model, node int) [2]float64 {
	n := &m.Nodes[node]
	low, high := math.Inf(-1), math.Inf(1)
	if m.Share(node) {
		high = 1 + shareSlack
		if n.Negative == "" {
			low = -shareSlack
		}
	}
	if n.Min != nil {
		low = *n.Min
	}
	if n.Max != nil {
		high = *n.Max
	}
	return [2]float64{low, high}
}

// setParams collects the parameters: the model's, the processor's, the user's.
func (c *Method) setParams(given map[string]float64) error {
	c.params = map[string]float64{}
	known := map[string]bool{}
	for _, p := range c.Model.Parameters {
		known[p.Name] = true
		if p.Value != nil {
			c.params[p.Name] = *p.Value
		}
	}
	for name, v := range c.CPU.Params {
		c.params[name] = v
		known[name] = true
	}
	for name, v := range given {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("parameter %s: %v is not a usable number", name, v)
		}
		if !known[name] && !strings.HasPrefix(name, "#") {
			return c.unknownParam(name)
		}
		c.params[name] = v
	}
	return nil
}

func (c *Method) unknownParam(name string) error {
	var names []string
	for _, p := range c.Model.Parameters {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no parameter %s: it has none", c.Model.Name, name)
	}
	return fmt.Errorf("%s has no parameter %s; it has %s", c.Model.Name, name, strings.Join(names, ", "))
}

// prepare puts the parameters into the model's formulas and registers the
// inputs that these name.
func (c *Method) prepare() error {
	m := c.Model
	of, err := m.OfExpr()
	if err != nil {
		return fmt.Errorf("%s: of: %w", m.File, err)
	}
	c.of = c.fold(of)
	c.formulas = make([]*metric.Expr, len(m.Nodes))
	c.thresholds = make([]*metric.Expr, len(m.Nodes))
	c.assumes = make([]bool, len(m.Nodes))
	for i := range m.Nodes {
		n := &m.Nodes[i]
		formula, err := n.Expr()
		if err != nil {
			return fmt.Errorf("%s:%d: %s: %w", n.File, n.Line, n.Name, err)
		}
		threshold, err := n.ThresholdExpr()
		if err != nil {
			return fmt.Errorf("%s:%d: threshold of %s: %w", n.File, n.Line, n.Name, err)
		}
		c.formulas[i], c.thresholds[i] = c.fold(formula), c.fold(threshold)
		if _, said := c.params[smtOn]; !said && formula != nil {
			c.assumes[i] = slices.Contains(formula.Literals(), smtOn)
		}
	}
	c.advice = make([][]*metric.Expr, len(m.Nodes))
	for i := range m.Nodes {
		for k := range m.Nodes[i].Advice {
			when, err := m.Nodes[i].Advice[k].Expr()
			if err != nil {
				return fmt.Errorf("%s:%d: advice of %s: %w", m.Nodes[i].File, m.Nodes[i].Line, m.Nodes[i].Name, err)
			}
			c.advice[i] = append(c.advice[i], c.fold(when))
		}
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		left, right, when, err := r.Exprs()
		if err != nil {
			return fmt.Errorf("%s:%d: relation %q: %w", r.File, r.Line, r.Name, err)
		}
		c.rules = append(c.rules, rule{Relation: r, left: c.fold(left), right: c.fold(right), when: c.fold(when)})
	}
	return nil
}

// fold puts the parameters into a formula, nil if there is none.
func (c *Method) fold(e *metric.Expr) *metric.Expr {
	if e == nil {
		return nil
	}
	e = e.Fold(metric.Constants{Value: c.param, Literal: c.literal})
	for _, name := range e.Names() {
		if _, isNode := c.nodeIndex[name]; !isNode {
			c.addInput(name)
		}
	}
	return e
}

func (c *Method) param(name string) (float64, bool) {
	v, ok := c.params[name]
	return v, ok
}

// smtOn is the literal for whether logical processors share their cores.
const smtOn = "#smt_on"

// literal returns the value of a literal. Whether SMT was on is rarely recorded;
// it is taken to have been off, which is said.
func (c *Method) literal(name string) (float64, bool) {
	if v, ok := c.params[name]; ok {
		return v, true
	}
	if name != smtOn {
		return 0, false
	}
	if len(c.notes) == 0 {
		c.notes = append(c.notes, counts.Notef("SMT is taken to have been off, or the other logical processor of each core idle").With(counts.Fix{Action: counts.AssumeSMT}))
	}
	return 0, true
}

func (c *Method) addInput(name string) {
	if _, ok := c.inputIndex[name]; ok {
		return
	}
	c.inputIndex[name] = len(c.inputs)
	in := c.input(name, c.Model.Inputs)
	for i := range c.Model.Parameters {
		if c.Model.Parameters[i].Name == name {
			in.param, in.any = true, nil
		}
	}
	c.inputs = append(c.inputs, in)
}

// input makes the input of a name: what one of the definitions says, or else the
// event of that name.
func (c *Method) input(name string, defs []model.Input) input {
	in := input{name: name, lp: -1}
	events := []string{name}
	for i := range defs {
		def := &defs[i]
		if def.Name != name {
			continue
		}
		events, in.anyLP = def.Events, def.Any
		if def.LP != nil {
			in.lp = *def.LP
		}
	}
	for _, ev := range events {
		in.any = append(in.any, inputEvent{ev, c.identify(ev)})
		if e, ok := c.Events.Lookup(ev); ok && in.unit == "" {
			in.unit = e.Unit
		}
	}
	return in
}

// identify returns the identity of an event's spelling on this processor. A
// spelling that cannot be parsed identifies by its text.
func (c *Method) identify(spelling string) model.Identity {
	ref, err := model.ParseEvent(spelling)
	if err != nil {
		return model.Identity{Name: spelling}
	}
	return c.Events.Resolve(ref)
}

// sort orders the nodes so that each comes after those its formula names.
func (c *Method) sort() error {
	const (
		unseen = iota
		open
		done
	)
	state := make([]int, len(c.formulas))
	var visit func(i int) error
	visit = func(i int) error {
		switch state[i] {
		case done:
			return nil
		case open:
			n := &c.Model.Nodes[i]
			return fmt.Errorf("%s:%d: the formula of %s leads back to itself", c.Model.File, n.Line, n.Name)
		}
		state[i] = open
		for _, j := range c.nodesBefore(i) {
			if err := visit(j); err != nil {
				return err
			}
		}
		state[i] = done
		c.order = append(c.order, i)
		return nil
	}
	for i := range c.formulas {
		if err := visit(i); err != nil {
			return err
		}
	}
	return nil
}

// nodesBefore lists the nodes that node i's value is computed from.
func (c *Method) nodesBefore(i int) []int {
	var before []int
	if c.Model.Nodes[i].Rest {
		parent, others := c.family(i)
		return append(append(before, parent), others...)
	}
	for _, name := range c.formulas[i].Names() {
		if j, ok := c.nodeIndex[name]; ok {
			before = append(before, j)
		}
	}
	return before
}

// family returns the parent of a node and its siblings.
func (c *Method) family(i int) (parent int, siblings []int) {
	parent = c.Model.Nodes[i].Above
	for _, j := range c.Model.Nodes[parent].Children {
		if j != i {
			siblings = append(siblings, j)
		}
	}
	return parent, siblings
}

// Inputs lists the events that the model's formulas need, in their order, each by its first
// choice's name.
func (c *Method) Inputs() []string {
	var names []string
	for i := range c.inputs[:c.own] {
		if !c.inputs[i].param {
			names = append(names, c.inputs[i].any[0].name)
		}
	}
	return names
}

// Params returns the parameters as they were put into the formulas.
func (c *Method) Params() map[string]float64 {
	p := make(map[string]float64, len(c.params))
	maps.Copy(p, c.params)
	return p
}
