package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/model"
)

// Models prints the methods, each with the processors it is for, and the
// processors that have none.
func Models(w io.Writer, list []model.ModelInfo, cpus []*model.CPU, o Options) error {
	t := listing(w, o)
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
		t.paragraph("", name, 0, bold)
		t.paragraph("", commonTitle(by[name]), 2, plain)
		t.paragraph("", strings.Join(names, ", "), 2, faint)
		t.out.WriteByte('\n')
	}
	var rest []string
	for _, c := range cpus {
		if !covered[c.Name] {
			rest = append(rest, c.Name)
		}
	}
	if len(rest) > 0 {
		t.paragraph("", "processors known by name, without a method so far", 0, bold)
		t.paragraph("", strings.Join(rest, ", "), 2, faint)
		t.out.WriteByte('\n')
	}
	t.paragraph("", "cyclestack models --cpu NAME prints the trees for a processor", 0, plain)
	return t.flush()
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

// Trees prints models with their nodes, parameters and event sets.
func Trees(w io.Writer, cpu *model.CPU, list []*model.Model, o Options) error {
	t := listing(w, o)
	if len(list) == 0 {
		t.paragraph("", "there is no method for "+cpu.Name+" yet", 0, plain)
	}
	for i, m := range list {
		if i > 0 {
			t.out.WriteByte('\n')
		}
		t.model(cpu, m)
	}
	return t.flush()
}

func (t *tree) model(cpu *model.CPU, m *model.Model) {
	t.paragraph("", fmt.Sprintf("%s %s for %s: %s", m.Name, m.Version, cpu.Name, m.Title), 0, bold)
	t.about(m.About)
	for _, section := range sections(m) {
		title := section
		if title == "" {
			title = unitText(m)
		}
		t.paragraph("", title, 2, faint)
		width := 0
		for i := range m.Nodes {
			if m.Nodes[i].Section == section {
				width = max(width, indent*depth(m, i)+runes(m.Nodes[i].Name))
			}
		}
		for i := range m.Nodes {
			n := &m.Nodes[i]
			if n.Section != section || t.o.Level > 0 && n.Level > t.o.Level {
				continue
			}
			name := strings.Repeat(" ", indent*depth(m, i)) + n.Name
			pad := strings.Repeat(" ", width-runes(name)+gap)
			room := max(20, t.o.Width-indent-width-gap)
			t.out.WriteString(strings.Repeat(" ", indent) + name + pad + t.paint(cut(n.Title, room), faint) + "\n")
		}
		t.out.WriteByte('\n')
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
			value = "= " + trim(*p.Value)
		}
		s := p.Name + " " + value
		if p.Unit != "" && p.Unit != "1" {
			s += " " + p.Unit
		}
		for _, c := range slices.Sorted(maps.Keys(p.Choices)) {
			s += fmt.Sprintf(", %s is %s", c, trim(p.Choices[c]))
		}
		t.paragraph(label, s+": "+p.About, 14, plain)
	}
	if len(m.Parameters) > 0 {
		t.out.WriteByte('\n')
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
		t.paragraph(label, text, 14, plain)
		for _, e := range s.Events {
			text := e.Event
			if e.SampleAfter > 0 {
				text += " every " + group(strconv.FormatUint(e.SampleAfter, 10))
			}
			t.paragraph("", text, 16, faint)
		}
	}
}

// Events prints events with their encodings.
func Events(w io.Writer, cpu *model.CPU, list []*model.Event, o Options) error {
	t := listing(w, o)
	width := 0
	for _, ev := range list {
		width = max(width, runes(ev.Name))
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
			facts = append(facts, "every "+group(strconv.FormatUint(ev.SampleAfter, 10)))
		}
		if len(ev.Aliases) > 0 {
			facts = append(facts, "also "+strings.Join(ev.Aliases, ", "))
		}
		t.out.WriteString(t.paint(ev.Name, bold) + strings.Repeat(" ", width-runes(ev.Name)+gap) + strings.Join(facts, "; ") + "\n")
	}
	return t.flush()
}

func counterText(counters string) string {
	if n, ok := strings.CutPrefix(counters, "fixed"); ok {
		return "fixed counter " + n
	}
	return "counters " + counters
}

// listing is a tree writer for lists.
func listing(w io.Writer, o Options) *tree {
	if o.Width == 0 {
		o.Width = 100
	}
	return &tree{w: w, o: o}
}

func (t *tree) flush() error {
	_, err := io.WriteString(t.w, t.out.String())
	return err
}
