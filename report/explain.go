package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// An Explanation is a node to be explained, with the account of a recording if
// there is one.
type Explanation struct {
	CPU     *model.CPU
	Model   *model.Model
	Node    int
	Account *account.Account // nil without a recording
	Events  *model.EventTable
	Params  map[string]float64
	Full    bool // the whole expression, and all that is known; else fifteen lines

	Measured *account.Measured // where parameters come from that were measured; nil if none were
}

// hang is the indentation of an explanation's text.
const hang = 12

// writeExplanation prints what a node means, with the numbers put in if there are any.
func writeExplanation(w io.Writer, e Explanation, o Options) error {
	t := newTree(w, o)
	n := &e.Model.Nodes[e.Node]
	head := n.Name
	if n.Title != "" {
		head += ": " + n.Title
	}
	t.Paragraph("", head, 0, bold)
	t.Paragraph("", fmt.Sprintf("%s, in %s %s for %s", n.Path, e.Model.Name, e.Model.Version, e.CPU.Name), 2, faint)
	t.Out.WriteByte('\n')
	if !e.Full {
		t.explainBrief(e)
		return t.Flush()
	}
	if e.Account != nil {
		t.explainValue(e)
	}
	t.about(concerning(e.CPU, n.About))
	t.formula(e)
	t.list("causes", allConcerning(e.CPU, n.Causes))
	t.list("try", allConcerning(e.CPU, tries(e)))
	t.together(e)
	t.expectations(e)
	t.facts(e)
	if e.Measured != nil {
		t.Paragraph("note", e.Measured.String(), hang, plain)
	}
	return t.Flush()
}

// tries are what to try about the node. Without a recording, a full explanation has
// the conditions of advice.
func tries(e Explanation) []string {
	if e.Account != nil && e.Account.Nodes[e.Node].Known() {
		return e.Account.Advice(e.Node)
	}
	n := &e.Model.Nodes[e.Node]
	var list []string
	for _, a := range n.Advice {
		text := a.Try
		switch {
		case e.Full && a.When != "":
			text += " (if " + a.When + ")"
		case e.Full:
			text += " (unless " + a.Unless + ")"
		}
		list = append(list, text)
	}
	return append(list, n.Try...)
}

func (t *tree) about(text string) {
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			t.Out.WriteByte('\n')
		}
		t.Paragraph("", strings.ReplaceAll(p, "\n", " "), 2, plain)
	}
	t.Out.WriteByte('\n')
}

// explainValue says the node's value in the recording.
func (t *tree) explainValue(e Explanation) {
	m, v := e.Model, &e.Account.Nodes[e.Node]
	if !v.Known() {
		t.Paragraph("here", "not known: "+t.o.note(e.Account.Why(e.Node)), hang, hot)
		t.Out.WriteByte('\n')
		return
	}
	s := page.Figure(m, e.Node, v.Value)
	if m.Share(e.Node) {
		s += " of all " + page.Unit(m, e.Node)
	} else {
		s = strings.TrimSpace(s + " " + page.UnitBehind(m, e.Node))
	}
	if !math.IsNaN(v.Error) {
		s += ", ± " + page.Figure(m, e.Node, v.Error)
	}
	if !math.IsNaN(v.Coverage) && v.Coverage < 0.9999 {
		s += ", its events counted " + page.Percent(v.Coverage) + " of the time"
		if !v.Together {
			s += " and not together"
		}
	}
	t.Paragraph("here", s+verdict(e), hang, bold)
	if len(v.Assumed) > 0 {
		t.Paragraph("", assumedText(v.Assumed), hang, plain)
	}
	if v.Value < 0 && m.Nodes[e.Node].Negative != "" {
		t.Paragraph("", "negative: "+m.Nodes[e.Node].Negative, hang, plain)
	}
	t.Out.WriteByte('\n')
}

// verdict says what a node's value comes to.
func verdict(e Explanation) string {
	v := &e.Account.Nodes[e.Node]
	n := &e.Model.Nodes[e.Node]
	r, standing := e.Account.Expected(e.Node)
	expected := ""
	if standing != account.Unjudged {
		expected = fmt.Sprintf("%v %s, as expected of %s", standing, rangeText(r), e.Account.Binding.Method.Workload.Program())
		if standing != account.Within {
			expected = fmt.Sprintf("%v %s for %s", standing, rangeText(r), e.Account.Binding.Method.Workload.Program())
		}
		expected = "; " + expected
	}
	switch {
	case v.Doubt != account.DoubtNone:
		return "; unreliable: " + v.Doubt.String()
	case v.Flagged && standing != account.Above:
		return "; over its threshold"
	case v.Flagged || standing == account.Above:
		return expected
	case standing == account.Unjudged && n.Threshold == "":
		return ""
	case n.Above >= 0 && math.IsNaN(e.Account.Nodes[n.Above].Value):
		return expected + "; whether it matters is not known, as " + e.Model.Nodes[n.Above].Name + " is not"
	}
	return expected + "; not a bottleneck: leave it"
}

// together shows what belongs together with the node: its parts, nodes with an issue
// in common, and siblings that could as well be the bottleneck.
func (t *tree) together(e Explanation) {
	m := e.Model
	begun := t.Out.Len()
	if n := &m.Nodes[e.Node]; len(n.Children) > 1 {
		var names []string
		for _, i := range n.Children {
			names = append(names, linkText(e, i))
		}
		text := strings.Join(names, ", ")
		if n.Overlap {
			text += "; they overlap: compare them, do not add them"
		}
		t.Paragraph("parts", text, hang, plain)
	}
	label := "see also"
	for k := range m.Issues {
		if !m.Issues[k].Leads(e.Node) {
			continue
		}
		var names []string
		for _, i := range m.Issues[k].Nodes {
			if i != e.Node {
				names = append(names, linkText(e, i))
			}
		}
		t.Paragraph(label, m.Issues[k].Name+": "+strings.Join(names, ", "), hang, plain)
		label = ""
	}
	if e.Account != nil {
		for _, r := range e.Account.Rivals {
			a := e.Account
			smaller := a.Nodes[r.Node].Flagged && !a.Nodes[r.Of].Flagged
			switch {
			case e.Node == r.Node && smaller:
				t.Paragraph(label, fmt.Sprintf("%s is larger, and below its threshold", m.Nodes[r.Of].Name), hang, plain)
			case e.Node == r.Of && smaller:
				t.Paragraph(label, fmt.Sprintf("%s is smaller, and over its threshold", m.Nodes[r.Node].Name), hang, plain)
			case e.Node == r.Node:
				t.Paragraph(label, fmt.Sprintf("%s is as large within the error", m.Nodes[r.Of].Name), hang, plain)
			case e.Node == r.Of:
				t.Paragraph(label, fmt.Sprintf("%s is as large within the error", m.Nodes[r.Node].Name), hang, plain)
			}
		}
	}
	if t.Out.Len() > begun {
		t.Out.WriteByte('\n')
	}
}

// linkText is a node's name, with its value if there is a recording that has it.
func linkText(e Explanation, i int) string {
	name := e.Model.Nodes[i].Name
	if e.Account != nil && e.Account.Nodes[i].Known() {
		name += " " + nodeFigure(e.Model, i, e.Account.Nodes[i].Value)
	}
	return name
}

// expectations are the ranges that a node has in well-tuned programs.
func (t *tree) expectations(e Explanation) {
	x := e.Model.Nodes[e.Node].Expected
	if x == nil {
		return
	}
	var parts []string
	for _, w := range model.Workloads {
		parts = append(parts, fmt.Sprintf("%s in %s", rangeText(x.Ranges[w]), w.Program()))
	}
	t.Paragraph("expected", strings.Join(parts, ", "), hang, plain)
	t.Paragraph("", x.Source, hang, faint)
	t.Out.WriteByte('\n')
}

// formula prints a node's formula, then with numbers.
func (t *tree) formula(e Explanation) {
	n := &e.Model.Nodes[e.Node]
	text := formulaText(e.Model, e.Node)
	t.Paragraph("formula", text, hang, plain)
	if e.Model.Of != "" && n.Unit == "" {
		t.Paragraph("", "as a share of "+e.Model.Of, hang, faint)
	}
	if e.Account != nil {
		if s := withNumbers(e); s != "" {
			t.Paragraph("", "= "+s, hang, plain)
		}
		for _, op := range e.Account.Operands(e.Node) {
			t.Paragraph("", operand(op), hang+2, faint)
		}
	} else {
		t.inputs(e)
	}
	if n.Threshold != "" {
		t.Paragraph("flagged", flaggedIf(n), hang, plain)
	}
	t.Out.WriteByte('\n')
}

// formulaText is a node's formula as a person reads it.
func formulaText(m *model.Model, i int) string {
	n := &m.Nodes[i]
	if !n.Rest {
		return n.Formula
	}
	parts := []string{n.Parent}
	for j := range m.Nodes {
		if m.Nodes[j].Parent == n.Parent && j != i {
			parts = append(parts, m.Nodes[j].Name)
		}
	}
	return strings.Join(parts, " - ")
}

// withNumbers is the formula with the recording's numbers in it, and its
// result.
func withNumbers(e Explanation) string {
	expr, err := metric.Parse(formulaText(e.Model, e.Node))
	if err != nil {
		return ""
	}
	expr = expr.Fold(metric.Constants{HasEvent: e.Account.Binding.Has})
	values := map[string]float64{}
	for _, op := range e.Account.Operands(e.Node) {
		values[op.Name] = op.Value
	}
	unknown := false
	expr = expr.Substitute(func(name string) *metric.Expr {
		v, ok := values[name]
		if !ok || math.IsNaN(v) {
			unknown = true
			return nil
		}
		text := page.Decimal(v)
		if v != math.Trunc(v) {
			text = strconv.FormatFloat(v, 'g', 6, 64)
		}
		num, err := metric.Parse(text)
		if err != nil {
			return nil
		}
		return num
	})
	amount := e.Account.Nodes[e.Node].Amount
	if unknown || math.IsNaN(amount) {
		return expr.String()
	}
	s := withoutZeros(expr.String()) + " = " + page.Trim(amount)
	if e.Model.Of != "" && e.Model.Nodes[e.Node].Unit == "" {
		s += " " + e.Model.Unit
	}
	return s
}

func operand(op account.Operand) string {
	s := op.Name + " = " + page.Trim(op.Value)
	if math.IsNaN(op.Value) {
		s = op.Name + " is missing"
	}
	if op.Event != "" && op.Event != op.Name {
		s += ", recorded as " + op.Event
	}
	if !math.IsNaN(op.Coverage) && op.Coverage < 0.9999 {
		s += ", counted " + page.Percent(op.Coverage) + " of the time"
	}
	return s
}

// inputs says what the names of a formula are.
func (t *tree) inputs(e Explanation) {
	expr, err := metric.Parse(formulaText(e.Model, e.Node))
	if err != nil {
		return
	}
	for _, name := range expr.Names() {
		switch {
		case slices.ContainsFunc(e.Model.Nodes, func(n model.Node) bool { return n.Name == name }):
		case t.parameter(e, name), t.input(e, name):
		default:
			if ev, ok := e.Events.Lookup(name); ok {
				t.Paragraph("", name+" is the event "+model.Spell(e.CPU, ev), hang+2, faint)
			}
		}
	}
}

func (t *tree) parameter(e Explanation, name string) bool {
	i := slices.IndexFunc(e.Model.Parameters, func(p model.Parameter) bool { return p.Name == name })
	if i < 0 {
		return false
	}
	p := &e.Model.Parameters[i]
	s := t.o.Hint(name+" has no default", counts.Fix{Action: counts.SetParameter, Name: name})
	if v, ok := e.Params[name]; ok {
		s = name + " = " + page.Trim(v)
	}
	if p.Unit != "" && p.Unit != "1" {
		s += " " + p.Unit
	}
	t.Paragraph("", s+": "+p.About, hang+2, faint)
	return true
}

func (t *tree) input(e Explanation, name string) bool {
	i := slices.IndexFunc(e.Model.Inputs, func(p model.Input) bool { return p.Name == name })
	if i < 0 {
		return false
	}
	in := &e.Model.Inputs[i]
	s := name + " is " + strings.Join(in.Events, " or ")
	if in.LP != nil {
		s += fmt.Sprintf(" on logical processor %d", *in.LP)
	}
	if in.About != "" {
		s += ": " + in.About
	}
	t.Paragraph("", s, hang+2, faint)
	return true
}

func (t *tree) list(label string, items []string) {
	for _, s := range items {
		t.Paragraph(label, s, hang, plain)
		label = ""
	}
	if len(items) > 0 {
		t.Out.WriteByte('\n')
	}
}

// facts says where to look next and where the node comes from.
func (t *tree) facts(e Explanation) {
	n := &e.Model.Nodes[e.Node]
	if len(n.Sample) > 0 {
		t.Paragraph("sample", "perf record -e "+strings.Join(spellings(e, n.Sample), ",")+" finds the places in the code", hang, plain)
	}
	src := n.Source
	if src == "" {
		src = e.Model.Source
	}
	if src != "" {
		t.Paragraph("source", src, hang, plain)
	}
}

// spellings are events as perf takes them without knowing their names.
func spellings(e Explanation, events []string) []string {
	var out []string
	for _, name := range events {
		if ev, ok := e.Events.Lookup(name); ok {
			name = account.SampleEvent(e.CPU, ev)
		}
		out = append(out, name)
	}
	return out
}

type jsonExplanation struct {
	Schema    string            `json:"schema"`
	CPU       string            `json:"cpu"`
	Model     string            `json:"model"`
	Node      string            `json:"node"`
	Path      string            `json:"path"`
	Title     string            `json:"title,omitempty"`
	About     string            `json:"about,omitempty"`
	Formula   string            `json:"formula"`
	Unit      string            `json:"unit"`
	Threshold string            `json:"threshold,omitempty"`
	Causes    []string          `json:"causes,omitempty"`
	Try       []string          `json:"try,omitempty"`
	Sample    []string          `json:"sample,omitempty"`
	Source    string            `json:"source,omitempty"`
	Penalties *account.Measured `json:"penalties,omitempty"`
	jsonHere
}

// jsonHere is what a recording says of a node.
type jsonHere struct {
	Value    *page.Number  `json:"value,omitempty"`
	Why      string        `json:"why,omitempty"`
	Operands []jsonOperand `json:"operands,omitempty"`
	Expected []jsonRange   `json:"expected,omitempty"`
	Standing string        `json:"standing,omitempty"`
	Linked   []jsonLink    `json:"linked,omitempty"`
}

type jsonRange struct {
	Workload string      `json:"workload"`
	Low      page.Number `json:"low"`
	High     page.Number `json:"high"`
	Source   string      `json:"source"`
}

// A jsonLink is another node that shows an issue of the one explained.
type jsonLink struct {
	Issue string       `json:"issue"`
	Path  string       `json:"path"`
	Value *page.Number `json:"value,omitempty"`
}

type jsonOperand struct {
	Name  string       `json:"name"`
	Kind  string       `json:"kind"`
	Value *page.Number `json:"value"`
	Event string       `json:"event,omitempty"`
}

// explanationDocument is an explanation for JSON.
func explanationDocument(e Explanation, o Options) any {
	n := &e.Model.Nodes[e.Node]
	doc := jsonExplanation{Schema: "cyclestack.explain/v1", CPU: e.CPU.Name, Model: e.Model.Name, Node: n.Name, Path: n.Path,
		Title: n.Title, About: n.About, Formula: formulaText(e.Model, e.Node), Unit: page.Unit(e.Model, e.Node), Threshold: n.Threshold,
		Causes: n.Causes, Try: tries(e), Sample: n.Sample, Source: n.Source, Penalties: e.Measured}
	if e.Account != nil {
		doc.Value, doc.Why = page.Known(e.Account.Nodes[e.Node].Value), o.note(e.Account.Why(e.Node))
		for _, op := range e.Account.Operands(e.Node) {
			doc.Operands = append(doc.Operands, jsonOperand{op.Name, op.Kind, page.Known(op.Value), op.Event})
		}
	}
	if n.Expected != nil {
		for _, w := range model.Workloads {
			r := n.Expected.Ranges[w]
			doc.Expected = append(doc.Expected, jsonRange{string(w), page.Number(r.Low), page.Number(r.High), n.Expected.Source})
		}
	}
	if e.Account != nil {
		_, standing := e.Account.Expected(e.Node)
		doc.Standing = standing.String()
	}
	doc.Linked = jsonLinks(e)
	return doc
}

func jsonLinks(e Explanation) []jsonLink {
	var links []jsonLink
	for k := range e.Model.Issues {
		issue := &e.Model.Issues[k]
		if !issue.Leads(e.Node) {
			continue
		}
		for _, i := range issue.Nodes {
			if i == e.Node {
				continue
			}
			l := jsonLink{Issue: issue.Name, Path: e.Model.Nodes[i].Path}
			if e.Account != nil {
				l.Value = page.Known(e.Account.Nodes[i].Value)
			}
			links = append(links, l)
		}
	}
	return links
}

// flaggedIf says when a node is flagged.
func flaggedIf(n *model.Node) string {
	text := "if " + n.Threshold
	if n.Places {
		text += ", for functions and lines"
	}
	return text
}
