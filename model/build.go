package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/metric"
)

// Bounds of one model, far above any that a person could read.
const (
	maxNodes  = 10_000
	maxLevels = 32     // of the tree
	maxTables = 10_000 // parameters, inputs, relations, sets; each
	maxEvents = 1_000  // of an input or a set
	maxName   = 100    // bytes of a name
)

// A builder makes a Model of a model file, and notes every fault it finds on
// the way.
type builder struct {
	m      *Model
	faults Errors
	names  map[string]meaning // of nodes, parameters and inputs: what formulas refer to
	nodes  map[string]int     // index in m.Nodes
	units  map[string]bool    // those that are good: most nodes have one of a few
}

// A meaning is what a name in a formula stands for, and where that is written.
type meaning struct {
	kind string
	place
}

// build makes a model of a file merged with what it extends. With faults the model is as
// complete as they allow. Messages call the file by its name, file.
func build(f *modelFile, file string) (*Model, Errors) {
	f.File = file
	b := &builder{
		m:     &f.Model,
		names: make(map[string]meaning, len(f.Nodes)+len(f.Parameters)+len(f.Inputs)),
		nodes: make(map[string]int, len(f.Nodes)),
		units: map[string]bool{},
	}
	b.head()
	b.parameters()
	b.inputs()
	b.addNodes()
	b.relations()
	b.eventSets()
	b.tree()
	b.references()
	return b.m, b.faults
}

// sort puts faults in the order of files and lines.
func (e Errors) sort() {
	sorting.Stable(e, func(x, y *Error) int {
		return cmp.Or(strings.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
	})
}

func (b *builder) fault(at place, format string, args ...any) {
	b.faults = append(b.faults, at.errorf(format, args...))
}

func (b *builder) head() {
	m := b.m
	m.About = strings.TrimSpace(m.About)
	if !isModelName(m.Name) {
		b.fault(m.pos.at("name"), "name: %s", nameProblem(m.Name, "lower-case letters, digits and hyphens"))
	}
	if m.Unit == "" {
		b.fault(m.pos.at("unit"), "unit: the model does not say what its values are counted in")
	}
	b.unit(m.pos.at("unit"), m.Unit)
	if m.Mode != "" && m.Mode != "u" && m.Mode != "k" {
		b.fault(m.pos.at("mode"), "mode: %q is neither u nor k", spelling.Clip(m.Mode))
	}
	seen := map[string]bool{}
	for _, cpu := range m.CPUs {
		if seen[cpu] {
			b.fault(m.pos.at("cpus"), "cpus: %q is listed twice", spelling.Clip(cpu))
		}
		seen[cpu] = true
	}
	if m.Of != "" {
		m.of = b.formula(m.pos.at("of"), subject{key: "of"}, m.Of)
	}
}

func (b *builder) parameters() {
	b.limit(len(b.m.Parameters), maxTables, "parameters")
	for i := range b.m.Parameters {
		p := &b.m.Parameters[i]
		p.File, p.Line = p.pos.file, p.pos.line
		b.declare(p.Name, "parameter", p.pos)
		b.unit(p.pos.at("unit"), p.Unit)
		b.parameterRange(p)
	}
}

// parameterRange checks the range of a parameter, and that its values are in it.
func (b *builder) parameterRange(p *Parameter) {
	b.finite(p.pos.at("min"), subject{"parameter", p.Name, "min"}, p.Min)
	b.finite(p.pos.at("max"), subject{"parameter", p.Name, "max"}, p.Max)
	if p.Min != nil && p.Max != nil && !(*p.Min <= *p.Max) {
		b.fault(p.pos.at("max"), "parameter %s: min is above max", p.Name)
		return
	}
	if p.Value != nil {
		if err := p.Check(*p.Value); err != nil {
			b.fault(p.pos.at("value"), "parameter %s: value: %v", p.Name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Choices)) {
		if err := p.Check(p.Choices[name]); err != nil {
			b.fault(p.pos.at("choices"), "parameter %s: %s: %v", p.Name, spelling.Clip(name), err)
		}
	}
}

func (b *builder) inputs() {
	b.limit(len(b.m.Inputs), maxTables, "inputs")
	for i := range b.m.Inputs {
		in := &b.m.Inputs[i]
		in.File, in.Line = in.pos.file, in.pos.line
		b.declare(in.Name, "input", in.pos)
		if len(in.Events) == 0 {
			b.fault(in.pos.at("events"), "input %s: it names no events", in.Name)
		}
		b.events(in.pos.at("events"), in.Events)
		if in.LP != nil && (*in.LP < 0 || *in.LP > 255) {
			b.fault(in.pos.at("lp"), "input %s: lp = %d is no logical processor of a core", in.Name, *in.LP)
		}
		if in.LP != nil && in.Any {
			b.fault(in.pos.at("any"), "input %s: either lp or any", in.Name)
		}
	}
}

// domains are the scopes that a node's counts can be about.
var domains = []string{"thread", "core", "package"}

func (b *builder) addNodes() {
	for i := range b.m.Nodes {
		n := &b.m.Nodes[i]
		n.About, n.Domain = strings.TrimSpace(n.About), cmp.Or(n.Domain, domains[0])
		n.File, n.Line = n.pos.file, n.pos.line
		b.declare(n.Name, "node", n.pos)
		b.unit(n.pos.at("unit"), n.Unit)
		b.checkNode(n)
		b.nodes[n.Name] = i
	}
}

func (b *builder) checkNode(n *Node) {
	switch {
	case n.Rest && n.Formula != "":
		b.fault(n.pos.at("rest"), "node %s: either a formula or rest", n.Name)
	case n.Rest && n.Parent == "":
		b.fault(n.pos.at("rest"), "node %s: a root cannot be the rest of a parent", n.Name)
	case !n.Rest && n.Formula == "":
		b.fault(n.pos.at("formula"), "node %s: it needs a formula, or rest = true", n.Name)
	}
	if n.Formula != "" {
		n.expr = b.formula(n.pos.at("formula"), subject{"node", n.Name, "formula"}, n.Formula)
	}
	if n.expr != nil {
		n.uses = n.expr.Names()
	}
	if n.Threshold != "" {
		n.threshold = b.formula(n.pos.at("threshold"), subject{"node", n.Name, "threshold"}, n.Threshold)
	}
	for i := range n.Advice {
		a := &n.Advice[i]
		if !a.complete() {
			b.fault(n.pos.at("advice"), "node %s: advice: it needs try, and when or unless", n.Name)
			continue
		}
		a.when = b.formula(n.pos.at("advice"), subject{"node", n.Name, "advice"}, a.condition())
	}
	if !slices.Contains(domains, n.Domain) {
		b.fault(n.pos.at("domain"), "node %s: domain %q is not one of %s", n.Name, spelling.Clip(n.Domain), strings.Join(domains, ", "))
	}
	b.finite(n.pos.at("min"), subject{"node", n.Name, "min"}, n.Min)
	b.finite(n.pos.at("max"), subject{"node", n.Name, "max"}, n.Max)
	if n.Min != nil && n.Max != nil && *n.Min > *n.Max {
		b.fault(n.pos.at("min"), "node %s: min is above max", n.Name)
	}
	b.events(n.pos.at("sample"), n.Sample)
}

func (b *builder) relations() {
	b.limit(len(b.m.Relations), maxTables, "relations")
	for i := range b.m.Relations {
		r := &b.m.Relations[i]
		r.Op, r.File, r.Line = cmp.Or(r.Op, "="), r.pos.file, r.pos.line
		what := "relation " + r.Name
		if strings.TrimSpace(r.Name) == "" {
			b.fault(r.pos.at("name"), "relation: it has no name")
		}
		r.left = b.formula(r.pos.at("left"), subject{"relation", r.Name, "left"}, r.Left)
		r.right = b.formula(r.pos.at("right"), subject{"relation", r.Name, "right"}, r.Right)
		if r.When != "" {
			r.when = b.formula(r.pos.at("when"), subject{"relation", r.Name, "when"}, r.When)
		}
		if !slices.Contains([]string{"=", "<=", ">="}, r.Op) {
			b.fault(r.pos.at("op"), `%s: op %q is not one of "=", "<=", ">="`, what, spelling.Clip(r.Op))
		}
		if r.Plausible && r.Identity {
			b.fault(r.pos.at("plausible"), "%s: an identity holds always; plausible is for one that may fail", what)
		}
		if !(r.Tolerance >= 0 && r.Tolerance < 10) {
			b.fault(r.pos.at("tolerance"), "%s: tolerance %v: 0.02 is 2 %%", what, r.Tolerance)
		}
	}
}

func (b *builder) eventSets() {
	b.limit(len(b.m.EventSets), maxTables, "event sets")
	for i := range b.m.EventSets {
		s := &b.m.EventSets[i]
		s.About, s.File, s.Line = strings.TrimSpace(s.About), s.pos.file, s.pos.line
		if strings.TrimSpace(s.Name) == "" {
			b.fault(s.pos.at("name"), "event-set: it has no name")
		}
		if s.Runs < 0 {
			b.fault(s.pos.at("runs"), "event-set %s: runs = %d", s.Name, s.Runs)
		}
		if len(s.Events) == 0 {
			b.fault(s.pos.at("events"), "event-set %s: it has no events", s.Name)
		}
		var names []string
		for _, e := range s.Events {
			names = append(names, e.Event)
		}
		b.events(s.pos.at("events"), names)
	}
}

// declare notes a name that formulas may use. Nodes, parameters and inputs
// share one set of names.
func (b *builder) declare(name, kind string, pos position) {
	at := pos.at("name")
	if !isFormulaName(name) {
		b.fault(at, "%s: %s", kind, nameProblem(name, "letters, digits and underscores, with a letter among them"))
		return
	}
	if first, ok := b.names[name]; ok {
		b.fault(at, "%s %q: there is already a %s of that name, at line %d", kind, name, first.kind, first.line)
		return
	}
	b.names[name] = meaning{kind, at}
}

func nameProblem(name, wanted string) string {
	if name == "" {
		return "it has no name"
	}
	if len(name) > maxName {
		return fmt.Sprintf("%q is longer than %d bytes", spelling.Clip(name), maxName)
	}
	return fmt.Sprintf("%q is not made of %s", spelling.Clip(name), wanted)
}

// isModelName reports whether a name can be written on a command line without
// thought.
func isModelName(s string) bool {
	return s != "" && s[0] != '-' && len(s) <= maxName && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// isFormulaName reports whether a formula can name s. Dots join the names of a
// path, so no name has one.
func isFormulaName(s string) bool {
	letter := false
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', c == '_':
			letter = true
		case c < '0' || c > '9':
			return false
		}
	}
	return letter && len(s) <= maxName && s != "if" && s != "else"
}

// A subject is what a message is about.
type subject struct{ kind, name, key string }

func (s subject) String() string {
	switch {
	case s.kind == "":
		return s.key
	case s.key == "":
		return s.kind + " " + s.name
	}
	return s.kind + " " + s.name + ": " + s.key
}

// formula parses a formula. A fault is placed on the line of its text.
func (b *builder) formula(at place, what subject, src string) *metric.Expr {
	if strings.TrimSpace(src) == "" {
		b.fault(at, "%s: it is empty", what)
		return nil
	}
	e, err := metric.Parse(src)
	if err == nil {
		return e
	}
	if syntax := (*metric.SyntaxError)(nil); errors.As(err, &syntax) {
		at.line += strings.Count(src[:min(syntax.Pos, len(src))], "\n")
		if at.block {
			at.line++
		}
	}
	b.fault(at, "%s: %s", what, inFormula(err))
	return nil
}

// inFormula returns what package metric says of a formula, without its saying
// that it is one.
func inFormula(err error) string { return strings.TrimPrefix(err.Error(), "formula: ") }

func (b *builder) unit(at place, unit string) {
	if unit == "" || b.units[unit] {
		return
	}
	if _, err := metric.ParseUnit(unit); err != nil {
		b.fault(at, "%v", err)
		return
	}
	b.units[unit] = true
}

func (b *builder) finite(at place, what subject, v *float64) {
	if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
		b.fault(at, "%s: %v is not a usable number", what, *v)
	}
}

func (b *builder) events(at place, events []string) {
	b.limit(len(events), maxEvents, "events in one list")
	for _, e := range events {
		if _, err := ParseEvent(e); err != nil {
			b.fault(at, "%v", err)
		}
	}
}

func (b *builder) limit(n, most int, what string) {
	if n > most {
		b.fault(place{file: b.m.File}, "%d %s: more than %d", n, what, most)
	}
}
