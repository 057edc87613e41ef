package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/peers"
	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// renamed are names of nodes in earlier versions of top-down analysis, and those of today.
var renamed = map[string]string{
	"FE_Bound": "Frontend_Bound", "BE_Bound": "Backend_Bound", "Mem_Bound": "Memory_Bound", "Frontend_Latency": "Fetch_Latency",
	"FE_Latency": "Fetch_Latency", "Frontend_Bandwidth": "Fetch_Bandwidth", "FE_Bandwidth": "Fetch_Bandwidth",
	"Branch_Mispred": "Branch_Mispredicts", "Ports_Util": "Ports_Utilization", "MEM_Bound": "DRAM_Bound",
}

// textsOf is the processor whose method has the titles and thresholds of published nodes if
// the processor is not known.
const textsOf = "skylake"

// figures is the heading of what other tools publish next to the nodes.
const figures = "other figures"

// published returns the method for columns that other tools published. Its nodes are those of
// the processor's method, and more that only the columns have. In tables with such columns
// nodes have the published values, and in others those of their formulas.
func (r *Resolver) published(p Processor, columns []counts.Column) (*Method, error) {
	from := p
	if p.CPU.Name == GenericCPU && r.Choice.Model == "" {
		var err error
		if from.CPU, err = r.Catalogue.CPU(textsOf); err != nil {
			return nil, err
		}
		p.Note = counts.Notef("titles and thresholds are those of %s, as the file does not name its processor", from.CPU.Name).With(counts.Fix{Action: counts.NameProcessor})
	}
	s, err := r.Select(from, "")
	if err != nil {
		return nil, err
	}
	s.Processor = p
	s.Model = withPublished(s.Model, columns)
	if _, given := s.Params["#smt_on"]; !given { // what is published says nothing of it
		return s.Compile(map[string]float64{"#smt_on": 0})
	}
	return s.Compile(nil)
}

// isPublished reports whether a column holds what another tool published.
func isPublished(c counts.Column) bool { return strings.HasPrefix(c.Event, peers.Published) }

// withPublished puts columns into a model in place of formulas.
func withPublished(base *model.Model, columns []counts.Column) *model.Model {
	m := *base
	m.Nodes, m.Inputs = slices.Clone(base.Nodes), slices.Clone(base.Inputs)
	b := publishing{m: &m, at: map[string]int{}, events: map[string][]string{}, marks: map[string][]string{}}
	for i := range m.Nodes {
		b.at[strings.ToLower(m.Nodes[i].Name)] = i
		m.Nodes[i].Children = slices.Clone(m.Nodes[i].Children)
	}
	for _, c := range columns {
		if path, ok := strings.CutPrefix(c.Event, peers.Published); ok && c.Event != peers.Rows && !strings.HasPrefix(c.Event, peers.Marked) {
			b.column(c, path)
		}
	}
	for _, c := range columns {
		if path, ok := strings.CutPrefix(c.Event, peers.Marked); ok {
			name := b.name(path[strings.LastIndexByte(path, '.')+1:])
			if i, ok := b.at[strings.ToLower(name)]; ok {
				name = b.m.Nodes[i].Name
				b.marks[name] = append(b.marks[name], c.Event)
			}
		}
	}
	for i := range m.Nodes {
		b.formulas(&m.Nodes[i])
	}
	b.order()
	return &m
}

// A publishing is a model that columns are put into.
type publishing struct {
	m      *model.Model
	at     map[string]int      // nodes by name in lower case
	events map[string][]string // columns with the values by node
	marks  map[string][]string // columns with the marks
}

// column finds the node of a column, or adds it.
func (b *publishing) column(c counts.Column, path string) {
	list := strings.Split(path, ".")
	name := b.name(list[len(list)-1])
	i, ok := b.at[strings.ToLower(name)]
	if ok && c.Unit != "share" && c.Unit != unitOf(b.m, i) && b.events[b.m.Nodes[i].Name] == nil {
		name += "_published" // in another unit
		i, ok = b.at[strings.ToLower(name)]
	}
	for n := 2; ok && b.m.Nodes[i].Section == figures && b.events[b.m.Nodes[i].Name][0] != c.Event; n++ {
		i, ok = b.at[strings.ToLower(fmt.Sprintf("%s_%d", name, n))] // another of nearly the same name
		if !ok {
			name = fmt.Sprintf("%s_%d", name, n)
		}
	}
	if !ok {
		i = b.add(name, list, c.Unit)
	}
	name = b.m.Nodes[i].Name
	if !slices.Contains(b.events[name], c.Event) {
		b.events[name] = append(b.events[name], c.Event)
	}
}

// unitOf is the unit of a node as columns have it.
func unitOf(m *model.Model, i int) string {
	if m.Nodes[i].Unit == "" {
		return m.Unit
	}
	return m.Nodes[i].Unit
}

// name is the name of a node today, in the characters of names.
func (b *publishing) name(text string) string {
	if now, ok := renamed[text]; ok && b.m.Node(text) == nil && b.m.Node(now) != nil {
		return now
	}
	words := strings.FieldsFunc(text, func(c rune) bool {
		return !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9')
	})
	return strings.Join(words, "_")
}

// add adds a node under the nearest one of its path, or among the other figures.
func (b *publishing) add(name string, path []string, unit string) int {
	n := model.Node{Name: name, Unit: unit, Domain: "thread", Above: -1, Optional: true, Section: figures, Level: 1, Path: name, Overlap: true}
	if _, err := metric.ParseUnit(unit); err != nil || unit == "" || unit == "share" {
		n.Unit = "1"
	}
	i := len(b.m.Nodes)
	for _, above := range slices.Backward(path[:len(path)-1]) {
		if at, ok := b.at[strings.ToLower(b.name(above))]; ok {
			p := &b.m.Nodes[at]
			n.Above, n.Parent, n.Section, n.Level, n.Path = at, p.Name, p.Section, p.Level+1, p.Path+"."+name
			p.Children = append(p.Children, i)
			break
		}
	}
	if n.Above >= 0 && (unit == b.m.Unit || unit == "share") {
		n.Unit = ""
	}
	b.m.Nodes = append(b.m.Nodes, n)
	b.at[strings.ToLower(name)] = i
	return i
}

// formulas lets a node have its published value, and its mark in place of the threshold.
func (b *publishing) formulas(n *model.Node) {
	events := b.events[n.Name]
	if events == nil {
		events = []string{peers.Published + n.Path}
	}
	value, marked := "PUBLISHED_"+n.Name, "MARKED_"+n.Name
	b.m.Inputs = append(b.m.Inputs, model.Input{Name: value, Events: events})
	formula := value
	if n.Formula != "" {
		formula += " if has_event(" + peers.Rows + ") else (" + n.Formula + ")"
	}
	marks := b.marks[n.Name]
	if marks == nil {
		marks = []string{peers.Marked + n.Path}
	}
	b.m.Inputs = append(b.m.Inputs, model.Input{Name: marked, Events: marks})
	limit := "0"
	if n.Threshold != "" {
		limit = "(" + n.Threshold + ")"
	}
	*n = model.Node{Name: n.Name, Parent: n.Parent, Section: n.Section, Formula: formula, Unit: n.Unit, Domain: n.Domain,
		Threshold: marked + " if has_event(" + marked + ") else " + limit, Places: n.Places, Standalone: n.Standalone, Min: n.Min, Max: n.Max, Negative: n.Negative,
		Overlap: n.Overlap, Optional: n.Optional, Title: n.Title, About: n.About, Causes: n.Causes, Try: n.Try, Advice: n.Advice, Source: n.Source,
		Sample: n.Sample, File: n.File, Line: n.Line, Expected: n.Expected, Level: n.Level, Path: n.Path, Children: n.Children, Above: n.Above}
}

// order puts the nodes in the order of display: each before its children.
func (b *publishing) order() {
	old := b.m.Nodes
	list, moved := make([]int, 0, len(old)), make([]int, len(old))
	var visit func(i int)
	visit = func(i int) {
		moved[i] = len(list)
		list = append(list, i)
		for _, c := range old[i].Children {
			visit(c)
		}
	}
	for i := range old {
		if old[i].Above < 0 {
			visit(i)
		}
	}
	nodes := make([]model.Node, len(old))
	for to, from := range list {
		n := old[from]
		if n.Above >= 0 {
			n.Above = moved[n.Above]
		}
		for k, c := range n.Children {
			n.Children[k] = moved[c]
		}
		nodes[to] = n
	}
	b.m.Nodes = nodes
	b.m.Issues = slices.Clone(b.m.Issues)
	for i := range b.m.Issues {
		issue := &b.m.Issues[i]
		issue.Nodes = slices.Clone(issue.Nodes)
		for k, n := range issue.Nodes {
			issue.Nodes[k] = moved[n]
		}
		if issue.Lead >= 0 {
			issue.Lead = moved[issue.Lead]
		}
	}
}
