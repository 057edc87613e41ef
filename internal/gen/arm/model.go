package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/cyclestack/cyclestack/internal/gen"
	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// An armModel is one model, complete: what it extends is merged in.
type armModel struct {
	p     *processor
	spec  *spec
	nodes []model.Node
	sets  []eventSet
}

// An eventSet is a table [[event-set]].
type eventSet struct {
	name, about string
	events      []string
}

// Names of nodes in the tree of a processor without slots.
const (
	allCycles   = "all_cycles"
	otherCycles = "issuing_cycles"
)

func newModel(p *processor, s *spec, all texts) (*armModel, error) {
	m := &armModel{p: p, spec: s}
	parents := s.parents()
	for _, name := range keys(s.metrics) {
		t, err := all.of(name)
		if err != nil {
			return nil, err
		}
		if t.Parent != "" && parents[name] == "" {
			parents[name] = t.Parent
		}
		n, err := m.node(name, t, parents)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m.nodes = append(m.nodes, n)
	}
	for _, t := range all.own() {
		n, err := m.ownNode(t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		m.nodes = append(m.nodes, n)
	}
	if p.Cycles {
		m.nodes = append(m.nodes, cycleNodes...)
	}
	m.settleTree()
	m.sort(parents)
	m.eventSets()
	return m, nil
}

// corrected matches the formulas that take off what flushes of the pipeline cost,
// so that their value can be negative.
var corrected = regexp.MustCompile(` - \(?(BR_MIS_PRED|STALL_FRONTEND_FLUSH)\b`)

// node makes a node of a metric.
func (m *armModel) node(name string, t *text, parents map[string]string) (model.Node, error) {
	s := m.spec
	vendor := s.metrics[name]
	unit, percent, err := unitOf(vendor.Units)
	if err != nil {
		return model.Node{}, err
	}
	n := model.Node{
		Name: name, Parent: parents[name], Unit: unit,
		Title: t.Title, About: t.About, Causes: t.Causes, Try: t.Try, Advice: t.Advice, Sample: vendor.SampleEvents,
	}
	for _, e := range n.Sample {
		if s.events[e] == nil {
			return model.Node{}, fmt.Errorf("there is no event %s to sample", e)
		}
	}
	root := slices.Contains(s.tree.RootNodes, name)
	c := conversion{percent: percent}
	switch {
	case root && m.p.Cycles:
		c.amount = true
		n.Parent, n.Threshold, n.Min, n.Max = allCycles, t.Threshold, gen.Number(0), gen.Number(1.02)
	case root:
		c.slots, c.spurious = s.slots, m.p.Spurious
		n.Threshold, n.Min, n.Max = t.Threshold, gen.Number(-0.05), gen.Number(1.05)
		if corrected.MatchString(vendor.Formula) {
			n.Negative, n.Min = t.Negative, gen.Number(-0.5)
		}
	case n.Parent != "":
		n.Unit = "cycles" // of the node above
		n.Threshold, n.Min, n.Max, n.Optional = t.Threshold, gen.Number(-0.05), gen.Number(1.05), true
	default:
		n.Optional = true
		if n.Section, err = s.section(name, t.Group); err != nil {
			return model.Node{}, err
		}
		if percent && m.p.Cycles {
			n.Unit = "1" // an empty one would be a share of the cycles
		}
	}
	n.Formula, err = c.convert(vendor.Formula)
	return n, err
}

// ownNode makes a node of a metric that the vendor's files do not have.
func (m *armModel) ownNode(t *text) (model.Node, error) {
	t.used = true
	if m.spec.metrics[t.Name].Formula != "" {
		return model.Node{}, errors.New("the vendor has it now: metrics.toml must not give a formula")
	}
	n := model.Node{Name: t.Name, Unit: t.Unit, Title: t.Title, About: t.About, Causes: t.Causes, Try: t.Try, Advice: t.Advice, Optional: true}
	var err error
	if n.Section, err = headingOf(t.Group); err != nil {
		return model.Node{}, err
	}
	e, err := metric.Parse(t.Formula)
	if err != nil {
		return model.Node{}, err
	}
	for _, name := range e.Names() {
		if m.spec.events[name] == nil {
			return model.Node{}, fmt.Errorf("there is no event %s", name)
		}
	}
	n.Formula = e.String()
	return n, nil
}

// section returns the heading that a metric outside the tree is shown under: that
// of its group, or of the one that the text names where there are several.
func (s *spec) section(metric, chosen string) (string, error) {
	in := s.groupsOf(metric)
	if !slices.Contains(in, chosen) {
		if len(in) != 1 {
			return "", fmt.Errorf("it is in the groups %q: metrics.toml has to name one", in)
		}
		chosen = in[0]
	}
	return headingOf(chosen)
}

// cycleNodes are the nodes of a tree of cycles that are no metrics of the
// vendor's.
var cycleNodes = []model.Node{
	{
		Name: allCycles, Formula: "CPU_CYCLES",
		Title: "All cycles", About: "The cycles of the core while it is not halted. Everything below is a share of them.",
		Sample: []string{"CPU_CYCLES"},
	},
	{
		Name: otherCycles, Parent: allCycles, Rest: true,
		Negative: "The two kinds of stalled cycles were counted at different times, or some cycles as both.",
		Title:    "At least one operation issued",
		About:    "Cycles when the core issued at least one operation: what the stalled cycles leave. How many more it could have issued is not counted.",
	},
}

// settleTree sets what follows from the shape of the tree: below a share of
// slots, children are shares of something else, and do not sum to it.
func (m *armModel) settleTree() {
	for i := range m.nodes {
		n := &m.nodes[i]
		if n.Name == allCycles {
			continue
		}
		n.Overlap = slices.ContainsFunc(m.nodes, func(c model.Node) bool { return c.Parent == n.Name })
	}
}

// sort puts the nodes in the order of display: the tree depth first, its roots as
// the vendor has them, then the sections.
func (m *armModel) sort(parents map[string]string) {
	order := []string{allCycles}
	var visit func(name string)
	visit = func(name string) {
		order = append(order, name)
		for _, child := range keys(parents) {
			if parents[child] == name {
				visit(child)
			}
		}
	}
	for _, root := range m.spec.tree.RootNodes {
		visit(root)
	}
	order = append(order, otherCycles)
	place := func(n model.Node) int {
		if n.Section != "" {
			return len(order) + slices.IndexFunc(facts.Section, func(h heading) bool { return h.Text == n.Section })
		}
		return slices.Index(order, n.Name)
	}
	slices.SortStableFunc(m.nodes, func(a, b model.Node) int { return place(a) - place(b) })
}

// eventSets collects the events of level 1, and of the whole tree where it has
// more levels.
func (m *armModel) eventSets() {
	level1 := map[string]bool{}
	tree := map[string]bool{}
	for name, vendor := range m.spec.metrics {
		i := slices.IndexFunc(m.nodes, func(n model.Node) bool { return n.Name == name })
		if m.nodes[i].Section != "" {
			continue
		}
		for _, e := range vendor.Events {
			tree[e] = true
			if slices.Contains(m.spec.tree.RootNodes, name) {
				level1[e] = true
			}
		}
	}
	m.sets = []eventSet{{"level-1", "The events of the first level of the tree.", keys(level1)}}
	if len(tree) > len(level1) {
		m.sets = append(m.sets, eventSet{"tree", "The events of the whole tree. They need several groups.", keys(tree)})
	}
}
