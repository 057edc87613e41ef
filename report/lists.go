package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/model"
)

// Methods is a document: a list of methods.
type Methods struct {
	List []model.ModelInfo
	CPUs []*model.CPU // of the catalogue
}

// writeMethods prints the methods, each with the processors it is for, and the
// processors that have none.
func writeMethods(w io.Writer, d Methods, o Options) error {
	list, cpus := d.List, d.CPUs
	t := newTree(w, o)
	covered := map[string]bool{}
	var order []string
	by := map[string][]model.ModelInfo{}
	for _, m := range list {
		if by[m.Name] == nil {
			order = append(order, m.Name)
		}
		by[m.Name] = append(by[m.Name], m)
	}
	for _, name := range order {
		var names []string
		for _, m := range by[name] {
			names = append(names, m.CPUs...)
		}
		names = inOrder(names, cpus)
		for _, n := range names {
			covered[n] = true
		}
		t.Paragraph("", name, 0, bold)
		t.Paragraph("", commonTitle(by[name]), 2, plain)
		t.Paragraph("", strings.Join(names, ", "), 2, faint)
		t.Out.WriteByte('\n')
	}
	var rest []string
	for _, c := range cpus {
		if !covered[c.Name] {
			rest = append(rest, c.Name)
		}
	}
	if len(rest) > 0 {
		t.Paragraph("", "processors known by name, without a method so far", 0, bold)
		t.Paragraph("", strings.Join(rest, ", "), 2, faint)
		t.Out.WriteByte('\n')
	}
	if s := o.Hint("", counts.Fix{Action: counts.ListTrees}); s != "" {
		t.Paragraph("", s, 0, plain)
	}
	return t.Flush()
}

// commonTitle is what the titles of a method's models begin with, in whole
// words.
func commonTitle(list []model.ModelInfo) string {
	words := strings.Fields(list[0].Title)
	for _, m := range list[1:] {
		other := strings.Fields(m.Title)
		n := 0
		for n < min(len(words), len(other)) && words[n] == other[n] {
			n++
		}
		words = words[:n]
	}
	if len(list) > 1 && len(words) > 0 && slices.Contains([]string{"for", "of", "on"}, words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return list[0].Title + ", and others"
	}
	return strings.TrimRight(strings.Join(words, " "), ",:;")
}

// inOrder sorts names of processors as the catalogue has them, without
// duplicates.
func inOrder(names []string, cpus []*model.CPU) []string {
	var out []string
	for _, c := range cpus {
		if slices.Contains(names, c.Name) && !slices.Contains(out, c.Name) {
			out = append(out, c.Name)
		}
	}
	return out
}

// Trees is a document: methods of a processor with all that they say.
type Trees struct {
	CPU  *model.CPU
	List []*model.Model
}

// writeTrees prints models with their nodes, parameters and event sets.
func writeTrees(w io.Writer, d Trees, o Options) error {
	cpu, list := d.CPU, d.List
	t := newTree(w, o)
	if len(list) == 0 {
		t.Paragraph("", "there is no method for "+cpu.Name+" yet", 0, plain)
	}
	for i, m := range list {
		if i > 0 {
			t.Out.WriteByte('\n')
		}
		t.model(cpu, m)
	}
	t.narrow("methods")
	return t.Flush()
}

// screenLines is how many lines a terminal has.
const screenLines = 24

// narrow ends a list of more than a screen: it says what prints less of it.
func (t *tree) narrow(list string) {
	if how := t.o.Hint("", counts.Fix{Action: counts.ShowMore, Name: list}); how != "" && t.lines() > screenLines {
		t.Out.WriteByte('\n')
		t.Paragraph("less", how, 10, faint)
	}
}

func (t *tree) model(cpu *model.CPU, m *model.Model) {
	t.Paragraph("", fmt.Sprintf("%s %s for %s: %s", m.Name, m.Version, cpu.Name, m.Title), 0, bold)
	t.about(m.About)
	for _, section := range sections(m) {
		title := section
		if title == "" {
			title = unitText(m)
		}
		t.Paragraph("", title, 2, faint)
		width := 0
		for i := range m.Nodes {
			if m.Nodes[i].Section == section {
				width = max(width, indent*depth(m, i)+page.Runes(m.Nodes[i].Name))
			}
		}
		for i := range m.Nodes {
			n := &m.Nodes[i]
			if n.Section != section || t.o.Level > 0 && n.Level > t.o.Level {
				continue
			}
			name := strings.Repeat(" ", indent*depth(m, i)) + n.Name
			pad := strings.Repeat(" ", width-page.Runes(name)+gap)
			room := max(20, t.Width-indent-width-gap)
			t.Out.WriteString(strings.Repeat(" ", indent) + name + pad + t.Paint(page.Cut(n.Title, room), faint) + "\n")
		}
		t.Out.WriteByte('\n')
	}
	t.parameters(m)
	t.sets(m)
}

func (t *tree) parameters(m *model.Model) {
	for i := range m.Parameters {
		p := &m.Parameters[i]
		label := ""
		if i == 0 {
			label = "parameters"
		}
		value := "(no default)"
		if p.Value != nil {
			value = "= " + page.Trim(*p.Value)
		}
		s := p.Name + " " + value
		if p.Unit != "" && p.Unit != "1" {
			s += " " + p.Unit
		}
		for _, c := range slices.Sorted(maps.Keys(p.Choices)) {
			s += fmt.Sprintf(", %s is %s", c, page.Trim(p.Choices[c]))
		}
		t.Paragraph(label, s+": "+p.About, 14, plain)
	}
	if len(m.Parameters) > 0 {
		t.Out.WriteByte('\n')
	}
}

func (t *tree) sets(m *model.Model) {
	for i := range m.EventSets {
		s := &m.EventSets[i]
		text := s.Name
		if s.Runs > 0 {
			text += fmt.Sprintf(", %d runs", s.Runs)
		}
		if s.About != "" {
			text += ": " + s.About
		}
		label := ""
		if i == 0 {
			label = "event sets"
		}
		t.Paragraph(label, text, 14, plain)
		for _, e := range s.Events {
			text := e.Event
			if e.SampleAfter > 0 {
				text += " every " + page.Group(strconv.FormatUint(e.SampleAfter, 10))
			}
			t.Paragraph("", text, 16, faint)
		}
	}
}

// Events is a document: a list of a processor's events.
type Events struct {
	CPU  *model.CPU
	List []*model.Event
}

// writeEvents prints events with their encodings.
func writeEvents(w io.Writer, d Events, o Options) error {
	cpu, list := d.CPU, d.List
	t := newTree(w, o)
	width := 0
	for _, ev := range list {
		width = max(width, page.Runes(ev.Name))
	}
	for _, ev := range list {
		facts := []string{model.Spell(cpu, ev)}
		if ev.Counters != "" {
			facts = append(facts, counterText(ev.Counters))
		}
		if ev.Flags != "" {
			facts = append(facts, ev.Flags)
		}
		if ev.SampleAfter > 0 {
			facts = append(facts, "every "+page.Group(strconv.FormatUint(ev.SampleAfter, 10)))
		}
		if len(ev.Aliases) > 0 {
			facts = append(facts, "also "+strings.Join(ev.Aliases, ", "))
		}
		t.Out.WriteString(t.Paint(ev.Name, bold) + strings.Repeat(" ", width-page.Runes(ev.Name)+gap) + strings.Join(facts, "; ") + "\n")
	}
	t.narrow("events")
	return t.Flush()
}

func counterText(counters string) string {
	if n, ok := strings.CutPrefix(counters, "fixed"); ok {
		return "fixed counter " + n
	}
	return "counters " + counters
}

// Findings is a document: what is wrong with models.
type Findings struct {
	List []model.Finding
	All  bool // in text also those that are only good to know
}

// writeFindings prints a line for each finding.
func writeFindings(w io.Writer, d Findings, o Options) error {
	t := newTree(w, o)
	hidden := 0
	for _, f := range d.List {
		if f.Severity == model.SevNote && !d.All {
			hidden++
			continue
		}
		fmt.Fprintln(&t.Out, f)
	}
	if hidden > 0 {
		fmt.Fprintln(&t.Out, o.Hint(fmt.Sprintf("%d notes", hidden), counts.Fix{Action: counts.ShowNotes}))
	}
	return t.Flush()
}
