package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

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
	b := &builder{
		m:     &Model{File: file},
		names: make(map[string]meaning, len(f.Node)+len(f.Parameter)+len(f.Input)),
		nodes: make(map[string]int, len(f.Node)),
		units: map[string]bool{},
	}
	b.head(f)
	b.parameters(f.Parameter)
	b.inputs(f.Input)
	b.addNodes(f.Node)
	b.relations(f.Relation)
	b.eventSets(f.EventSet)
	b.tree()
	b.references(f)
	return b.m, b.faults
}

// sort puts faults in the order of files and lines.
func (e Errors) sort() {
	slices.SortStableFunc(e, func(x, y *Error) int {
		return cmp.Or(strings.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
	})
}

func (b *builder) fault(at place, format string, args ...any) {
	b.faults = append(b.faults, at.errorf(format, args...))
}

func (b *builder) head(f *modelFile) {
	m := b.m
	m.head = f.pos
	m.Name, m.Version, m.Title = str(f.Name), str(f.Version), str(f.Title)
	m.About, m.Source = strings.TrimSpace(str(f.About)), str(f.Source)
	m.CPUs, m.Unit, m.Of, m.Mode = slices.Clone(f.CPUs), str(f.Unit), str(f.Of), str(f.Mode)
	if !isModelName(m.Name) {
		b.fault(f.pos.at("name"), "name: %s", nameProblem(m.Name, "lower-case letters, digits and hyphens"))
	}
	if m.Unit == "" {
		b.fault(f.pos.at("unit"), "unit: the model does not say what its values are counted in")
	}
	b.unit(f.pos.at("unit"), m.Unit)
	if m.Mode != "" && m.Mode != "u" && m.Mode != "k" {
		b.fault(f.pos.at("mode"), "mode: %q is neither u nor k", spelling.Clip(m.Mode))
	}
	seen := map[string]bool{}
	for _, cpu := range m.CPUs {
		if seen[cpu] {
			b.fault(f.pos.at("cpus"), "cpus: %q is listed twice", spelling.Clip(cpu))
		}
		seen[cpu] = true
	}
	if m.Of != "" {
		m.of = b.formula(f.pos.at("of"), subject{key: "of"}, m.Of)
	}
}

func (b *builder) parameters(tables []parameterTable) {
	b.limit(len(tables), maxTables, "parameters")
	for i := range tables {
		t := &tables[i]
		p := Parameter{
			Name: str(t.Name), Value: t.Value, Unit: str(t.Unit), About: str(t.About), Source: str(t.Source),
			Choices: maps.Clone(t.Choices), Min: t.Min, Max: t.Max, File: t.pos.file, Line: t.pos.line,
		}
		b.declare(p.Name, "parameter", t.pos)
		b.unit(t.pos.at("unit"), p.Unit)
		b.parameterRange(t, &p)
		b.m.Parameters = append(b.m.Parameters, p)
	}
}

// parameterRange checks the range of a parameter, and that its values are in it.
func (b *builder) parameterRange(t *parameterTable, p *Parameter) {
	b.finite(t.pos.at("min"), subject{"parameter", p.Name, "min"}, p.Min)
	b.finite(t.pos.at("max"), subject{"parameter", p.Name, "max"}, p.Max)
	if p.Min != nil && p.Max != nil && !(*p.Min <= *p.Max) {
		b.fault(t.pos.at("max"), "parameter %s: min is above max", p.Name)
		return
	}
	if p.Value != nil {
		if err := p.Check(*p.Value); err != nil {
			b.fault(t.pos.at("value"), "parameter %s: value: %v", p.Name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Choices)) {
		if err := p.Check(p.Choices[name]); err != nil {
			b.fault(t.pos.at("choices"), "parameter %s: %s: %v", p.Name, spelling.Clip(name), err)
		}
	}
}

func (b *builder) inputs(tables []inputTable) {
	b.limit(len(tables), maxTables, "inputs")
	for i := range tables {
		t := &tables[i]
		in := Input{
			Name: str(t.Name), Events: slices.Clone(t.Events), LP: t.LP, Any: isTrue(t.Any), About: str(t.About),
			File: t.pos.file, Line: t.pos.line,
		}
		b.declare(in.Name, "input", t.pos)
		if len(in.Events) == 0 {
			b.fault(t.pos.at("events"), "input %s: it names no events", in.Name)
		}
		b.events(t.pos.at("events"), in.Events)
		if in.LP != nil && (*in.LP < 0 || *in.LP > 255) {
			b.fault(t.pos.at("lp"), "input %s: lp = %d is no logical processor of a core", in.Name, *in.LP)
		}
		if in.LP != nil && in.Any {
			b.fault(t.pos.at("any"), "input %s: either lp or any", in.Name)
		}
		b.m.Inputs = append(b.m.Inputs, in)
	}
}

// domains are the scopes that a node's counts can be about.
var domains = []string{"thread", "core", "package"}

func (b *builder) addNodes(tables []nodeTable) {
	b.m.Nodes = make([]Node, 0, len(tables))
	for i := range tables {
		t := &tables[i]
		n := Node{
			Name: str(t.Name), Parent: str(t.Parent), Section: str(t.Section),
			Formula: str(t.Formula), Rest: isTrue(t.Rest), Unit: str(t.Unit), Domain: cmp.Or(str(t.Domain), domains[0]),
			Threshold: str(t.Threshold), Places: isTrue(t.Places), Standalone: isTrue(t.Standalone), Min: t.Min, Max: t.Max, Negative: str(t.Negative),
			Overlap: isTrue(t.Overlap), Optional: isTrue(t.Optional),
			Title: str(t.Title), About: strings.TrimSpace(str(t.About)), Causes: t.Causes, Try: t.Try,
			Source: str(t.Source), Sample: t.Sample, File: t.pos.file, Line: t.pos.line, pos: t.pos,
		}
		for _, a := range t.Advice {
			n.Advice = append(n.Advice, Advice{Try: a.Try, When: a.When, Unless: a.Unless})
		}
		b.declare(n.Name, "node", t.pos)
		b.unit(t.pos.at("unit"), n.Unit)
		b.checkNode(&n)
		b.nodes[n.Name] = len(b.m.Nodes)
		b.m.Nodes = append(b.m.Nodes, n)
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

func (b *builder) relations(tables []relationTable) {
	b.limit(len(tables), maxTables, "relations")
	for i := range tables {
		t := &tables[i]
		r := Relation{
			Name: str(t.Name), Left: str(t.Left), Right: str(t.Right), Op: cmp.Or(str(t.Op), "="),
			Identity: isTrue(t.Identity), Times: isTrue(t.Times), Plausible: isTrue(t.Plausible), When: str(t.When), Holds: str(t.Holds), Fails: str(t.Fails),
			Slack: str(t.Slack), Source: str(t.Source), CPUs: slices.Clone(t.CPUs), Each: slices.Clone(t.Each), File: t.pos.file, Line: t.pos.line,
		}
		what := "relation " + r.Name
		if strings.TrimSpace(r.Name) == "" {
			b.fault(t.pos.at("name"), "relation: it has no name")
		}
		r.left = b.formula(t.pos.at("left"), subject{"relation", r.Name, "left"}, r.Left)
		r.right = b.formula(t.pos.at("right"), subject{"relation", r.Name, "right"}, r.Right)
		if r.When != "" {
			r.when = b.formula(t.pos.at("when"), subject{"relation", r.Name, "when"}, r.When)
		}
		if !slices.Contains([]string{"=", "<=", ">="}, r.Op) {
			b.fault(t.pos.at("op"), `%s: op %q is not one of "=", "<=", ">="`, what, spelling.Clip(r.Op))
		}
		if t.Tolerance != nil {
			r.Tolerance = *t.Tolerance
		}
		if r.Plausible && r.Identity {
			b.fault(t.pos.at("plausible"), "%s: an identity holds always; plausible is for one that may fail", what)
		}
		if !(r.Tolerance >= 0 && r.Tolerance < 10) {
			b.fault(t.pos.at("tolerance"), "%s: tolerance %v: 0.02 is 2 %%", what, r.Tolerance)
		}
		b.m.Relations = append(b.m.Relations, r)
	}
}

func (b *builder) eventSets(tables []eventSetTable) {
	b.limit(len(tables), maxTables, "event sets")
	for i := range tables {
		t := &tables[i]
		s := EventSet{Name: str(t.Name), About: strings.TrimSpace(str(t.About)), Command: str(t.Command), Note: str(t.Note),
			File: t.pos.file, Line: t.pos.line}
		if strings.TrimSpace(s.Name) == "" {
			b.fault(t.pos.at("name"), "event-set: it has no name")
		}
		if t.Runs != nil {
			s.Runs = *t.Runs
		}
		if s.Runs < 0 {
			b.fault(t.pos.at("runs"), "event-set %s: runs = %d", s.Name, s.Runs)
		}
		if len(t.Events) == 0 {
			b.fault(t.pos.at("events"), "event-set %s: it has no events", s.Name)
		}
		var names []string
		for _, e := range t.Events {
			s.Events = append(s.Events, SetEvent(e))
			names = append(names, e.Event)
		}
		b.events(t.pos.at("events"), names)
		b.m.EventSets = append(b.m.EventSets, s)
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
