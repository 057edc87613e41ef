package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// inputs finds the events that the nodes of a model need.
type inputs struct {
	*catalog
	m      *model.Model
	index  map[string]int // nodes by name
	params map[string]bool
	of     *needs
	nodes  []*needs // by node; nil until it is asked for
	open   []bool   // nodes being worked out, to find circles
}

// needs are what the value of a node is computed from.
type needs struct {
	expr   *metric.Expr // nil for a rest
	events []int        // all, down to the counts, in the order of the formulas
	direct []int        // those that its own formula names, directly or through a mere amount
	shares []int        // nodes that it names whose values are ratios in themselves
	mixed  bool         // shares are amounts instead, which belong together
	err    error        // why it cannot be counted
}

func newInputs(m *model.Model, c *catalog) (*inputs, error) {
	in := &inputs{catalog: c, m: m, index: map[string]int{}, params: map[string]bool{}, nodes: make([]*needs, len(m.Nodes)), open: make([]bool, len(m.Nodes))}
	for i := range m.Nodes {
		in.index[m.Nodes[i].Name] = i
	}
	for i := range m.Parameters {
		in.params[m.Parameters[i].Name] = true
	}
	for name := range c.cpu.Params {
		in.params[name] = true
	}
	of, err := m.OfExpr()
	if err != nil {
		return nil, fmt.Errorf("%s: of: %w", m.File, err)
	}
	if of != nil {
		in.of = in.formula(of)
	}
	return in, nil
}

// node returns what a node needs.
func (in *inputs) node(i int) *needs {
	if in.nodes[i] != nil {
		return in.nodes[i]
	}
	n := &in.m.Nodes[i]
	if in.open[i] {
		return &needs{err: fmt.Errorf("the formula of %s leads back to itself", n.Name)}
	}
	in.open[i] = true
	defer func() { in.open[i] = false }()
	var need *needs
	e, err := n.Expr()
	switch {
	case err != nil:
		need = &needs{err: err}
	case e == nil:
		need = in.rest(i)
	default:
		need = in.formula(e)
	}
	if in.of != nil && n.Unit == "" && need.err == nil { // its value is a share of the whole
		need.events = union(need.events, in.of.events)
		need.direct = union(need.direct, in.of.events)
		need.err = in.of.err
	}
	in.nodes[i] = need
	return need
}

// rest returns what a node needs that is what its siblings leave of its parent.
// A sibling that cannot be counted stays in the rest.
func (in *inputs) rest(i int) *needs {
	need := &needs{mixed: in.of != nil}
	parent, ok := in.index[in.m.Nodes[i].Parent]
	if !ok {
		return &needs{err: fmt.Errorf("the parent of %s is not known", in.m.Nodes[i].Name)}
	}
	from := append([]int{parent}, in.m.Nodes[parent].Children...)
	for k, j := range from {
		if j == i {
			continue
		}
		other := in.node(j)
		switch {
		case other.err == nil:
			need.events = union(need.events, other.events)
			need.shares = append(need.shares, j)
		case k == 0:
			need.err = other.err
		}
	}
	return need
}

// formula returns what a formula needs.
func (in *inputs) formula(e *metric.Expr) *needs {
	need := &needs{expr: in.fold(e)}
	for _, name := range need.expr.Names() {
		if j, ok := in.index[name]; ok {
			other := in.node(j)
			if need.err == nil {
				need.err = other.err
			}
			need.events = union(need.events, other.events)
			if in.isRatio(j) {
				need.shares = append(need.shares, j)
			} else {
				need.direct = union(need.direct, other.events)
			}
			continue
		}
		event, found, err := in.event(name)
		if err != nil && need.err == nil {
			need.err = err
		}
		if found {
			more, err := in.withCompanions(event)
			if need.err == nil {
				need.err = err
			}
			need.events = union(need.events, more)
			need.direct = union(need.direct, more)
		}
	}
	return need
}

// event returns the event of a name in a formula that is not a node. found is
// false for a parameter, and where there is no such event.
func (in *inputs) event(name string) (event int, found bool, err error) {
	for i := range in.m.Inputs {
		if input := &in.m.Inputs[i]; input.Name == name {
			return in.firstOf(input)
		}
	}
	if in.params[name] {
		return 0, false, nil
	}
	event, err = in.number(name)
	return event, err == nil, err
}

// firstOf returns the first event of an input that the processor has.
func (in *inputs) firstOf(input *model.Input) (event int, found bool, err error) {
	for _, spelling := range input.Events {
		i, e := in.number(spelling)
		if e == nil {
			return i, true, nil
		}
		if err == nil {
			err = e
		}
	}
	return 0, false, err
}

// fold puts in what is known without counting: whether logical processors share
// the core, and which events the processor has.
func (in *inputs) fold(e *metric.Expr) *metric.Expr {
	return e.Fold(metric.Constants{Literal: in.literal, HasEvent: in.hasInput})
}

func (in *inputs) literal(name string) (float64, bool) {
	switch {
	case name != "#smt_on":
		return 0, false
	case in.opt.SMT:
		return 1, true
	}
	return 0, true
}

func (in *inputs) hasInput(name string) bool {
	for i := range in.m.Inputs {
		if input := &in.m.Inputs[i]; input.Name == name {
			return slices.ContainsFunc(input.Events, in.has)
		}
	}
	return in.has(name)
}

// withCompanions returns an event after those that it needs in its group. Events
// derived from slots need slots. A load latency needs its auxiliary event. A cache's
// event needs the one of its bank.
func (in *inputs) withCompanions(event int) ([]int, error) {
	e := &in.events[event]
	first, err := -1, error(nil)
	switch {
	case e.demand.can.isMetric() && in.pmu.Slots != "":
		first, err = in.number(in.pmu.Slots)
	case e.demand.ldlat() && in.pmu.LdlatAux != nil:
		first = in.ldlatAux()
	case e.ID.PMU == "" && e.ID.Name == "" && in.driver.leader(e.ID.Config) != 0:
		first, err = in.number(fmt.Sprintf("r%x", in.driver.leader(e.ID.Config)))
	}
	if err != nil {
		return []int{event}, fmt.Errorf("%s needs another event in its group: %w", e.Name, err)
	}
	if first < 0 {
		return []int{event}, nil
	}
	return []int{first, event}, nil
}

// ldlatAux returns the auxiliary event of load latencies.
func (in *inputs) ldlatAux() int {
	aux := in.pmu.LdlatAux
	id := model.Identity{Config: aux.Config}
	if i, ok := in.byID[id]; ok {
		return i
	}
	can, _ := parseCounters(aux.Counters) // checked when the list was read
	e := Event{Name: aux.Event, ID: id, Core: true, demand: demand{can: can &^ in.missing}}
	e.Perf = model.Spell(in.cpu, &model.Event{Name: aux.Event, Config: aux.Config})
	return in.add(id, e)
}

// union adds the members of b to a that it does not have.
func union(a, b []int) []int {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// isRatio reports whether a node's value is a ratio of counts, or made of such
// ratios: it does not change if all counts double. Such a node needs its own inputs
// in one group, but not those of other nodes. It is tried with numbers.
func (in *inputs) isRatio(i int) bool {
	e, err := in.writtenOut(i, 0)
	if err != nil {
		return false
	}
	names := e.Names()
	prog, err := metric.Compile(e, func(name string) int { return slices.Index(names, name) })
	if err != nil {
		return false
	}
	known := 0
	for try := range trials {
		x, y := trial(names, in.params, try)
		a, b := prog.Eval(x), prog.Eval(y)
		if math.IsNaN(a) || math.IsNaN(b) {
			continue
		}
		if math.Abs(a-b) > 1e-9*math.Abs(a) {
			return false
		}
		known++
	}
	return known > 0
}

// trials is how often a formula is tried with other numbers: often enough that
// every branch of its choices, and both sides of its limits, are met.
const trials = 40

// trial returns values for the names of a formula, over four orders of magnitude. The
// second result has all counts doubled. Parameters stay as they are.
func trial(names []string, params map[string]bool, try int) (x, y []float64) {
	rng := rand.New(rand.NewPCG(seed, uint64(try)))
	x, y = make([]float64, len(names)), make([]float64, len(names))
	for i, name := range names {
		x[i] = math.Pow(10, 4+4*rng.Float64())
		y[i] = 2 * x[i]
		if params[name] {
			x[i] = 1 + float64(9*rng.Float64())
			y[i] = x[i]
		}
	}
	return x, y
}

// maxDepth bounds how deep nodes may refer to nodes.
const maxDepth = 64

// writtenOut returns a node's formula down to the events.
func (in *inputs) writtenOut(i, depth int) (*metric.Expr, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nodes refer to nodes more than %d deep", maxDepth)
	}
	e, err := in.m.Nodes[i].Expr()
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, fmt.Errorf("%s is a rest and cannot be written out", in.m.Nodes[i].Name)
	}
	var failed error
	out := in.fold(e).Substitute(func(name string) *metric.Expr {
		j, ok := in.index[name]
		if !ok {
			return nil
		}
		sub, err := in.writtenOut(j, depth+1)
		if err != nil {
			failed = err
			return nil
		}
		return sub
	})
	return out, failed
}
