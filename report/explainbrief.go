package report

import (
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/metric"
)

// A brief explanation fits fifteen lines: what a node means, its value here, the formula
// with numbers, causes and remedies.
const (
	aboutLines   = 3
	formulaLines = 2
	briefLines   = 15
)

// explainBrief writes a brief explanation.
func (t *tree) explainBrief(e Explanation) {
	n := &e.Model.Nodes[e.Node]
	known := e.Account != nil && e.Account.Nodes[e.Node].Known()
	t.explainHere(e)
	t.Paragraph("means", sentences(concerning(e.CPU, n.About), t.room(), aboutLines), hang, plain)
	more := t.briefFormula(e, known)
	if n.Threshold != "" && !known {
		short := *n
		short.Threshold = e.counted(n.Threshold)
		more = more || strings.Contains(n.Threshold, "has_event")
		if text := flaggedIf(&short); len(page.Wrap(text, t.room())) <= aboutLines {
			t.Paragraph("flagged", text, hang, plain)
		} else {
			more = true
		}
	}
	try := allConcerning(e.CPU, tries(e))
	left := briefLines - strings.Count(t.Out.String(), "\n") - 1
	all := t.items("causes", allConcerning(e.CPU, n.Causes), left/2)
	left = briefLines - strings.Count(t.Out.String(), "\n") - 1
	all = t.items("try", try, left) && all
	if more || !all {
		t.Paragraph("", t.o.Hint("…", counts.Fix{Action: counts.ShowFormula}), hang, faint)
	}
}

// briefFormula writes the formula as far as it is short, with numbers if they are known.
// It reports whether there is more.
func (t *tree) briefFormula(e Explanation, known bool) (more bool) {
	fits := func(s string) bool { return len(page.Wrap(s, t.room())) <= formulaLines }
	text, label := shortFormula(e), "formula"
	if fits(text) {
		t.Paragraph(label, text, hang, plain)
		label = ""
	}
	more = label != "" || text != strings.Join(strings.Fields(formulaText(e.Model, e.Node)), " ")
	if !known {
		return more
	}
	if s := withNumbers(e); s != "" && fits("= "+s) {
		t.Paragraph(label, "= "+s, hang, plain)
		return more
	}
	t.terms(e)
	return true
}

// room is the width of an explanation's text.
func (t *tree) room() int { return max(t.Width-hang, hang) }

// explainHere is explainValue in one line.
func (t *tree) explainHere(e Explanation) {
	if e.Account == nil {
		return
	}
	v := &e.Account.Nodes[e.Node]
	if !v.Known() {
		t.Paragraph("here", "not known: "+t.o.note(e.Account.Why(e.Node)), hang, hot)
		return
	}
	t.Paragraph("here", nodeFigure(e.Model, e.Node, v.Value)+verdict(e), hang, bold)
}

// terms writes the largest operands of a formula that is too long for its numbers.
func (t *tree) terms(e Explanation) {
	const most = 4
	var list []string
	for _, op := range e.Account.Operands(e.Node) {
		if op.Kind != "parameter" && op.Value == op.Value && len(list) < most {
			list = append(list, op.Name+" "+page.Trim(op.Value))
		}
	}
	t.Paragraph("from", strings.Join(list, ", "), hang, plain)
}

// items writes the first items of a list that fit so many lines, and at least one. It
// reports whether these are all.
func (t *tree) items(label string, items []string, lines int) bool {
	for i, s := range items {
		lines -= len(page.Wrap(s, t.room()))
		if i > 0 && lines < 0 {
			return false
		}
		t.Paragraph(label, s, hang, plain)
		label = ""
	}
	return true
}

// sentences are the first sentences of a text that fit so many lines.
func sentences(text string, width, lines int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	fits := ""
	for at := 0; at < len(text); {
		end := strings.Index(text[at:], ". ")
		if end < 0 {
			end = len(text) - at - 1
		}
		at += end + 1
		if s := strings.TrimSpace(text[:at]); fits == "" || len(page.Wrap(s, width)) <= lines {
			fits = s
			continue
		}
		break
	}
	return fits
}

// shortFormula is a node's formula without what concerns other processors: the branches
// for events that this one does not have, or the recording does not.
func shortFormula(e Explanation) string {
	return withoutZeros(e.counted(strings.Join(strings.Fields(formulaText(e.Model, e.Node)), " ")))
}

// counted is a formula without its conditions on events: those of the recording, or of the processor.
func (e *Explanation) counted(text string) string {
	expr, err := metric.Parse(text)
	if err != nil {
		return text
	}
	has := e.hasEvent
	if e.Account != nil {
		has = e.Account.Binding.Has
	}
	return expr.Fold(metric.Constants{HasEvent: has}).String()
}

// withoutZeros is a sum without what is 0 at its end.
func withoutZeros(text string) string {
	for strings.HasSuffix(text, " + 0") {
		text = strings.TrimSuffix(text, " + 0")
	}
	return text
}

// hasEvent reports whether the processor has an event, or one of an input's.
func (e *Explanation) hasEvent(name string) bool {
	events := []string{name}
	for i := range e.Model.Inputs {
		if e.Model.Inputs[i].Name == name {
			events = e.Model.Inputs[i].Events
		}
	}
	return slices.ContainsFunc(events, func(event string) bool {
		_, ok := e.Events.Lookup(event)
		return ok
	})
}
