package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/metric"
)

// The severities of a [Finding], the worst first.
const (
	SevError   = "error"   // the model says something that cannot be so
	SevWarning = "warning" // the model is unfinished, or does less than it seems to
	SevNote    = "note"    // good to know
)

// rank is 0 for the worst severity.
func rank(severity string) int {
	return slices.Index([]string{SevError, SevWarning, SevNote}, severity)
}

// A Finding is something that [Lint] has to say about a model.
type Finding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Severity string `json:"severity"`
	Msg      string `json:"message"`
}

// String returns the finding in the form of compilers: "file:line: error: …".
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Severity, f.Msg)
}

// Lint checks what loading a model does not. Events must exist on each of the model's
// processors, units must add up, and event sets must fit the counters. Children must be
// able to sum to their parent, and thresholds must be reachable. Every declaration must be
// used, and every node explained. Findings are in the order of the lines.
func Lint(cat *Catalogue, m *Model) []Finding {
	l := newLinter(cat, m)
	l.parse()
	l.parts()
	l.shape()
	l.tryNumbers()
	return l.sorted()
}

func newLinter(cat *Catalogue, m *Model) *linter {
	return &linter{cat: cat, m: m, declared: m.declared()}
}

// parts checks the tables of a model one by one, which works for a model that does not
// load too.
func (l *linter) parts() {
	l.texts()
	l.unused()
	for _, name := range l.m.CPUs {
		if p := l.cat.lib.named(name); p != nil {
			l.onCPU(p)
		}
	}
	if l.table == nil {
		l.table = &EventTable{cpu: &CPU{Layout: layoutNone}}
	}
	l.units()
}

func compareFindings(a, b Finding) int {
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(rank(a.Severity), rank(b.Severity)), strings.Compare(a.Msg, b.Msg))
}

// A linter is one run of Lint.
type linter struct {
	cat      *Catalogue
	m        *Model
	declared map[string]bool
	table    *EventTable // of the model's first processor that has one
	known    []Finding   // what was found when the model was read
	found    []Finding
	reported map[string]bool
}

func (l *linter) report(at place, severity string, format string, args ...any) {
	f := Finding{at.file, max(at.line, 1), severity, oneLine(fmt.Sprintf(format, args...))}
	if key := f.String(); !l.reported[key] {
		if l.reported == nil {
			l.reported = map[string]bool{}
		}
		l.reported[key] = true
		l.found = append(l.found, f)
	}
}

// said reports whether there is an error about a name at a place already.
func (l *linter) said(at place, name string) bool {
	return slices.ContainsFunc(l.known, func(f Finding) bool {
		return f.File == at.file && f.Line == at.line && strings.Contains(f.Msg, strconv.Quote(spelling.Clip(name)))
	})
}

func (l *linter) sorted() []Finding {
	sorting.Stable(l.found, compareFindings)
	return l.found
}

// parse makes sure that the formulas of a model that was made by hand are
// parsed. Those of one from a file are, and are not touched: it may be in use.
func (l *linter) parse() {
	m := l.m
	set := func(to **metric.Expr, src string, at place) {
		if *to != nil || src == "" {
			return
		}
		e, err := metric.Parse(src)
		if err != nil {
			l.report(at, SevError, "%v", err)
			return
		}
		*to = e
	}
	set(&m.of, m.Of, m.pos.at("of"))
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if n.expr == nil {
			set(&n.expr, n.Formula, place{file: n.File, line: n.Line})
			if n.expr != nil {
				n.uses = n.expr.Names()
			}
		}
		set(&n.threshold, n.Threshold, place{file: n.File, line: n.Line})
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		at := place{file: r.File, line: r.Line}
		set(&r.left, r.Left, at)
		set(&r.right, r.Right, at)
		set(&r.when, r.When, at)
	}
}

// texts checks that everything a reader sees is explained.
func (l *linter) texts() {
	m := l.m
	for _, k := range []struct{ key, text string }{
		{"title", m.Title}, {"about", m.About}, {"source", m.Source}, {"version", m.Version},
	} {
		if k.text == "" {
			l.report(m.pos.at("name"), SevWarning, "the model has no %s", k.key)
		}
	}
	for i := range m.Nodes {
		l.nodeTexts(&m.Nodes[i])
		l.standalone(&m.Nodes[i])
	}
	for i := range m.Parameters {
		p := &m.Parameters[i]
		if p.About == "" || p.Unit == "" {
			l.report(place{file: p.File, line: p.Line}, SevWarning, "parameter %s: it needs a unit and an about", p.Name)
		}
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		if r.Holds == "" || r.Fails == "" {
			l.report(place{file: r.File, line: r.Line}, SevWarning, "relation %s: what it means if it holds or fails is not said", r.Name)
		}
	}
}

func (l *linter) nodeTexts(n *Node) {
	var missing []string
	if n.Title == "" {
		missing = append(missing, "title")
	}
	if n.About == "" {
		missing = append(missing, "about")
	}
	if n.Threshold != "" && len(n.Causes) == 0 {
		missing = append(missing, "causes")
	}
	if n.Threshold != "" && len(n.Try)+len(n.Advice) == 0 {
		missing = append(missing, "try")
	}
	if len(missing) > 0 {
		l.report(place{file: n.File, line: n.Line}, SevWarning, "node %s has no %s", n.Name, strings.Join(missing, ", "))
	}
}

// standalone checks that there is something for a threshold to be independent
// of.
func (l *linter) standalone(n *Node) {
	if !n.Standalone {
		return
	}
	at := n.pos.at("standalone")
	switch parent := l.m.Node(n.Parent); {
	case n.Threshold == "":
		l.report(at, SevWarning, "node %s: standalone says nothing: it has no threshold", n.Name)
	case parent == nil:
		l.report(at, SevWarning, "node %s: standalone says nothing: it has no parent", n.Name)
	case parent.Threshold == "":
		l.report(at, SevWarning, "node %s: standalone says nothing: its parent %s has no threshold", n.Name, parent.Name)
	}
}

// shape checks that there is something to show.
func (l *linter) shape() {
	m := l.m
	at := m.pos.at("name")
	if len(m.Nodes) == 0 && len(m.Relations) == 0 {
		l.report(at, SevError, "the model has neither nodes nor relations")
		return
	}
	tree, first := 0, 0
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if n.Section != "" {
			continue
		}
		tree++
		if n.Level == 1 {
			first++
		}
	}
	if tree > 0 && first == 0 {
		l.report(at, SevWarning, "the tree is a whole without parts: no node has level 1")
	}
	if len(m.CPUs) == 0 {
		l.report(at, SevWarning, "the model does not say which processors it is for")
	}
}

// unused finds parameters and inputs that no formula names.
func (l *linter) unused() {
	used := l.namesUsed()
	for i := range l.m.Parameters {
		if p := &l.m.Parameters[i]; !used[p.Name] {
			l.report(place{file: p.File, line: p.Line}, SevWarning, "parameter %s is not used", p.Name)
		}
	}
	for i := range l.m.Inputs {
		if in := &l.m.Inputs[i]; !used[in.Name] {
			l.report(place{file: in.File, line: in.Line}, SevWarning, "input %s is not used", in.Name)
		}
	}
}

// namesUsed returns the names in formulas, those that has_event asks about
// among them.
func (l *linter) namesUsed() map[string]bool {
	used := map[string]bool{}
	asked := func(name string) bool {
		used[name] = true
		return true
	}
	for _, f := range l.formulas() {
		for _, name := range f.expr.Names() {
			used[name] = true
		}
		f.expr.Fold(constants{hasEvent: asked}.metric())
	}
	return used
}

// A formula is one of a model's, and where it is written.
type formula struct {
	expr *metric.Expr
	what subject
	at   place
}

// formulas returns all formulas of the model.
func (l *linter) formulas() []formula {
	var all []formula
	add := func(e *metric.Expr, what subject, at place) {
		if e != nil {
			all = append(all, formula{e, what, at})
		}
	}
	m := l.m
	add(m.of, subject{key: "of"}, m.pos.at("of"))
	for i := range m.Nodes {
		n := &m.Nodes[i]
		add(n.expr, subject{"node", n.Name, "formula"}, n.pos.at("formula"))
		add(n.threshold, subject{"node", n.Name, "threshold"}, n.pos.at("threshold"))
		for k := range n.Advice {
			add(n.Advice[k].when, subject{"node", n.Name, "advice"}, n.pos.at("advice"))
		}
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		at := place{file: r.File, line: r.Line}
		for _, e := range []*metric.Expr{r.left, r.right, r.when} {
			add(e, subject{"relation", r.Name, ""}, at)
		}
	}
	return all
}
