package model

import (
	"slices"

	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/metric"
)

// Expr returns the parsed formula of a node; nil for one that is the rest of
// its parent. It is parsed once, when the model is read; a node made by hand is
// parsed here.
func (n *Node) Expr() (*metric.Expr, error) { return parsed(n.expr, n.Formula) }

// ThresholdExpr returns the parsed threshold of a node; nil where it has none.
func (n *Node) ThresholdExpr() (*metric.Expr, error) { return parsed(n.threshold, n.Threshold) }

// OfExpr returns the parsed formula of the whole; nil where there is none.
func (m *Model) OfExpr() (*metric.Expr, error) { return parsed(m.of, m.Of) }

// Exprs returns the parsed formulas of a relation; when is nil for a relation
// that is always checked.
func (r *Relation) Exprs() (left, right, when *metric.Expr, err error) {
	if left, err = parsed(r.left, r.Left); err != nil {
		return nil, nil, nil, err
	}
	if right, err = parsed(r.right, r.Right); err != nil {
		return nil, nil, nil, err
	}
	when, err = parsed(r.when, r.When)
	return left, right, when, err
}

func parsed(e *metric.Expr, src string) (*metric.Expr, error) {
	if e != nil || src == "" {
		return e, nil
	}
	return metric.Parse(src)
}

// Node returns a node by its name or path, nil if there is none.
func (m *Model) Node(name string) *Node {
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Name == name || n.Path == name {
			return n
		}
	}
	return nil
}

// A mention is an event that a model names, and where.
type mention struct {
	event string
	what  subject
	at    place
}

// mentions yields the events that a model names in its formulas and inputs: the
// names in formulas that are neither nodes nor parameters nor inputs. Those of
// event sets and samples are advice, and not among them.
func (m *Model) mentions(yield func(mention) bool) {
	declared := m.declared()
	add := func(names []string, what subject, at place) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !declared[name] && !yield(mention{name, what, at}) })
	}
	if m.of != nil && !add(m.of.Names(), subject{key: "of"}, m.pos.at("of")) {
		return
	}
	for i := range m.Inputs {
		in := &m.Inputs[i]
		for _, e := range in.Events {
			if !yield(mention{e, subject{"input", in.Name, ""}, place{file: in.File, line: in.Line}}) {
				return
			}
		}
	}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if !add(n.uses, subject{"node", n.Name, "formula"}, n.pos.at("formula")) {
			return
		}
		for k := range n.Advice {
			if e := n.Advice[k].when; e != nil && !add(e.Names(), subject{"node", n.Name, "advice"}, n.pos.at("advice")) {
				return
			}
		}
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		at := place{file: r.File, line: r.Line}
		for _, e := range []*metric.Expr{r.left, r.right, r.when} {
			if e != nil && !add(e.Names(), subject{"relation", r.Name, ""}, at) {
				return
			}
		}
	}
}

// declared returns the names that the model itself gives a meaning.
func (m *Model) declared() map[string]bool {
	names := make(map[string]bool, len(m.Nodes)+len(m.Parameters)+len(m.Inputs))
	for i := range m.Nodes {
		names[m.Nodes[i].Name] = true
	}
	for i := range m.Parameters {
		names[m.Parameters[i].Name] = true
	}
	for i := range m.Inputs {
		names[m.Inputs[i].Name] = true
	}
	return names
}

// bind checks the names in a model against the events of the processor that it
// was read for. A name that is no event of this processor must be one of
// another that the model is for.
func (lib *library) bind(m *Model, p *CPU) (Errors, error) {
	table, err := lib.events(p)
	if err != nil {
		return nil, err
	}
	faults := m.collisions(table)
	known := map[string]bool{}
	for use := range m.mentions {
		if known[use.event] {
			continue
		}
		ref, err := ParseEvent(use.event)
		if err != nil {
			if use.what.kind != "input" { // whose events were checked when it was built
				faults = append(faults, use.at.errorf("%s: %v", use.what, err))
			}
			continue
		}
		if table.knows(ref) {
			known[use.event] = true
			continue
		}
		elsewhere, err := lib.knownElsewhere(m, p, ref)
		if err != nil {
			return nil, err
		}
		if !elsewhere {
			faults = append(faults, use.at.errorf("%s: %q is no node, parameter, input or event of %s", use.what, spelling.Clip(use.event), p.Name))
		}
	}
	return faults, nil
}

// knownElsewhere reports whether another processor of the model has an event.
func (lib *library) knownElsewhere(m *Model, p *CPU, ref EventRef) (bool, error) {
	for _, name := range m.CPUs {
		other := lib.named(name)
		if other == nil || other == p {
			continue
		}
		table, err := lib.events(other)
		if err != nil {
			return false, err
		}
		if table.knows(ref) {
			return true, nil
		}
	}
	return false, nil
}

// collisions returns a fault for every name of the model's own that is also an event's,
// letter for letter: a formula could mean either. An input may have the name of one of
// its events.
func (m *Model) collisions(t *EventTable) Errors {
	var faults Errors
	check := func(kind, name, file string, line int) {
		e := t.own(name, "")
		if e != nil && (e.Name == name || slices.Contains(e.Aliases, name)) {
			at := place{file: file, line: line}
			faults = append(faults, at.errorf("%s %q has the name of an event of %s", kind, name, t.cpu.Name))
		}
	}
	for i := range m.Parameters {
		p := &m.Parameters[i]
		check("parameter", p.Name, p.File, p.Line)
	}
	for i := range m.Inputs {
		in := &m.Inputs[i]
		if !slices.Contains(in.Events, in.Name) {
			check("input", in.Name, in.File, in.Line)
		}
	}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		check("node", n.Name, n.File, n.Line)
	}
	return faults
}
