package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// An Annotation is a document: a function with the figures of its lines and instructions.
type Annotation struct {
	report.Header
	Code  *annotate.Code
	Core  []LoopInCore
	What  string // that the clock counts, in words: "time", "cycles"; "" is the event
	Label string // what was recorded: the command
	Flat  string // why there is nothing but shares: no method fits. "" if one does
	Notes []counts.Note
	// Intervals are the function's code in parts of the time: see [Annotation.ByInterval].
	Intervals []CodeInterval

	Source   bool // the source's lines alone, in their order
	Assembly bool // the instructions alone
	Full     bool // also what has no samples, however much of it there is
	// Text reads a line of a source file; nil: there are no sources.
	Text func(file string, line int) (string, error)
	// TextNotes says what is odd about the sources that were read; it may be nil.
	TextNotes func() []string
}

func newAnnotation(w io.Writer, d Annotation, o report.Options) *annotation {
	return &annotation{Page: page.New(w, o.Width, o.Color), d: d, c: d.Code, o: o, texts: map[string]error{}}
}

// An annotation is the writer of annotated functions.
type annotation struct {
	page.Page
	d       Annotation
	c       *annotate.Code
	o       report.Options
	columns []annotationColumn
	left    int  // columns that did not fit
	room    int  // columns of the terminal to the right of the figures
	depth   int  // of loops that are drawn
	margin  int  // indentation that all lines of the source have; -1 if they are not there
	counts  bool // there is a column of how often code was executed
	numbers bool // lines are told by their numbers alone
	events  bool // there are columns of nodes and of events
	hot     bool // these marks were used
	grey    bool
	hid     bool
	texts   map[string]error // by source file that was asked for: why it is not there
}

// An annotationColumn is a column of figures: of a node, or of an event where
// there is no method.
type annotationColumn struct {
	head  []string
	node  int // -1 if it is an event
	event int // column of the table
	cost  int // index of Code.Costs, or -1
	width int
}

func (t *annotation) text() error {
	t.choose()
	t.title()
	t.loops()
	t.heads()
	t.whole()
	switch {
	case t.d.Source, t.c.ByLine:
		t.source()
	case t.d.Assembly, t.numbers:
		t.assembly()
	default:
		t.mixed()
	}
	t.foot()
	return t.Flush()
}

// what says what shares are of.
func (d *Annotation) what(event string) string {
	return cmp.Or(d.What, event)
}

func (t *annotation) clock() string { return t.c.Table.Columns[t.c.Clock].Event }

// name is the function, and what of it if that is not all.
func (t *annotation) name() string {
	name := page.Printable(t.c.Function)
	if name == "" {
		name = "[unknown]"
	}
	name += " (" + page.Printable(t.c.Module) + ")"
	if t.c.Part {
		name += fmt.Sprintf(" from %#x to %#x", t.c.Start, t.c.End)
	}
	return name
}

// whose is what the figures are percentages of.
func (t *annotation) whose() string {
	if t.c.Part {
		return "these instructions'"
	}
	return "the function's"
}

// title says which function it is, and how much of the run.
func (t *annotation) title() {
	what := t.d.what(t.clock())
	whole := t.c.Table.Cell(0, t.c.Clock)
	parts := []string{
		t.name(),
		fmt.Sprintf("%s of %s", page.PercentOf(t.c.Whole.OfRun), what),
	}
	if whole.Samples > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s samples of %s", page.Trim(float64(t.c.Whole.Samples)), page.Trim(float64(whole.Samples)), t.clock()))
	} else {
		parts = append(parts, page.Trim(t.c.Table.Cell(t.c.Whole.Row, t.c.Clock).Value)+" "+t.clock())
	}
	if t.d.Label != "" {
		parts = append(parts, page.Printable(t.d.Label))
	}
	if t.d.Flat == "" {
		parts = append(parts, "on "+t.d.CPU.Name, t.d.Model.Name+" "+t.d.Model.Version)
	}
	if t.d.From.Simulated {
		parts = append(parts, t.d.How)
	}
	t.Paragraph("", strings.Join(parts, ", "), 0, bold)
	if t.d.Flat != "" {
		t.Paragraph("", t.d.Flat, 0, faint)
	}
	t.Out.WriteByte('\n')
}

// Widths of the columns of an annotation.
const (
	annotationFigure = 7  // a figure with its mark and a blank before it
	annotationLeast  = 34 // for the code, if there are other columns
	annotationSource = 51 // for the code on a terminal of 80 columns: 45 of the source behind a line's number
	annotationCode   = 16 // for the code in any case
	executedWidth    = 9
	countsFrom       = 100 // the least width where there is a column of executions
	loopsDrawn       = 4
)

// choose chooses the columns: stalled cycles, the events that could cause them,
// the largest first, and what else there is.
func (t *annotation) choose() {
	list := t.nodeColumns()
	t.events = len(list) > 0
	if t.o.Nodes == "" && t.o.Level == 0 || len(list) == 0 {
		list = append(list, t.eventColumns()...)
	}
	t.events = t.events && slices.ContainsFunc(list, func(c annotationColumn) bool { return c.node < 0 })
	t.room = t.Width - annotationFigure - 1
	if t.counts = t.c.Executions != "" && t.Width >= countsFrom; t.counts {
		t.room -= executedWidth
	}
	least := max(annotationLeast, min(annotationSource, t.Width-annotationFigure-3), t.Width/2-4)
	for i, c := range list {
		if t.room-c.width < least {
			t.left = len(list) - i
			break
		}
		t.room -= c.width
		t.columns = append(t.columns, c)
	}
	t.room = max(t.room-2, annotationCode)
	if t.c.Graph != nil {
		for i := range t.c.Graph.Loops {
			t.depth = min(loopsDrawn, max(t.depth, t.c.Graph.Loops[i].Depth))
		}
	}
	t.margin = t.indentation()
	t.numbers = t.margin < 0
}

func (t *annotation) nodeColumns() []annotationColumn {
	if t.c.Account == nil {
		return nil
	}
	m := t.c.Account.Model()
	order := t.usualNodes()
	if t.o.Nodes != "" || t.o.Level > 0 { // the root is all of it, and has no column of its own
		order = slices.DeleteFunc(m.Select(t.o.Nodes, t.o.Level), func(i int) bool { return m.Nodes[i].Level == 0 && m.Share(i) })
	}
	var list []annotationColumn
	for _, i := range order {
		v := t.c.Whole.Figures
		if v == nil || math.IsNaN(v[i].Value) || t.o.Nodes == "" && t.o.Level == 0 && m.Share(i) && number100(v[i].Value) == "0.0" {
			continue
		}
		list = append(list, t.column(m, i))
	}
	return list
}

// usualNodes are the nodes that are shown if none are asked for.
func (t *annotation) usualNodes() []int {
	m := t.c.Account.Model()
	var order []int
	add := func(i int) {
		if !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	for _, c := range t.c.Costs {
		add(c.Stalls)
	}
	costs := slices.Clone(t.c.Costs)
	sorting.Stable(costs, func(a, b annotate.Cost) int {
		return cmp.Compare(t.c.Whole.Figures[b.Node].Value, t.c.Whole.Figures[a.Node].Value)
	})
	for _, c := range costs {
		if t.c.Whole.Figures[c.Node].Value > 0 {
			add(c.Node)
		}
	}
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Section == "" && n.Level == 1 {
			add(i)
		}
	}
	for _, i := range t.c.Account.Bottleneck {
		if m.Nodes[i].Level > 0 {
			add(i)
		}
	}
	return order
}

func (t *annotation) column(m *model.Model, node int) annotationColumn {
	c := annotationColumn{node: node, cost: slices.IndexFunc(t.c.Costs, func(k annotate.Cost) bool { return k.Node == node })}
	return c.titled(m.Nodes[node].Name)
}

// titled gives a column its heading and width.
func (c annotationColumn) titled(name string) annotationColumn {
	c.head, c.width = page.Heading(name, 7, 9), annotationFigure
	for _, w := range c.head {
		c.width = max(c.width, page.Runes(w)+1)
	}
	return c
}

// eventColumns are the events that no node says anything about.
func (t *annotation) eventColumns() []annotationColumn {
	var list []annotationColumn
	for _, col := range t.c.Unnamed {
		list = append(list, annotationColumn{node: -1, event: col, cost: -1}.titled(page.Printable(t.c.Table.Columns[col].Event)))
	}
	return list
}

// heads writes the headings.
func (t *annotation) heads() {
	height := 1
	for _, c := range t.columns {
		height = max(height, len(c.head))
	}
	percent := "percent of " + t.whose() + " " + t.d.what(t.clock())
	if t.events {
		percent += ", and of its events"
	}
	t.Out.WriteString(t.Paint(percent, faint) + "\n")
	what := t.d.what(t.clock())
	if page.Runes(what) >= annotationFigure {
		what = "share"
	}
	for row := range height {
		line := strings.Repeat(" ", annotationFigure)
		if row == height-1 {
			line = fmt.Sprintf("%*s ", annotationFigure-1, what)
		}
		for _, c := range t.columns {
			word := ""
			if at := row - (height - len(c.head)); at >= 0 {
				word = c.head[at]
			}
			line += fmt.Sprintf("%*s ", c.width-1, word)
		}
		if t.counts && row == height-1 {
			line += fmt.Sprintf("%*s", executedWidth, "executed")
		}
		t.Out.WriteString(t.Paint(strings.TrimRight(line, " "), faint) + "\n")
	}
}

// whole writes the function's own figures, and what of them is hidden.
func (t *annotation) whole() {
	t.row(&t.c.Whole, "", "all of it", bold)
	any := false
	line := strings.Repeat(" ", annotationFigure)
	for _, c := range t.columns {
		text := ""
		if c.cost >= 0 && t.c.Costs[c.cost].Hidden > 0 {
			any = true
			text = number100(t.c.Costs[c.cost].Hidden)
		}
		line += fmt.Sprintf("%*s ", c.width-1, text)
	}
	if any {
		if t.counts {
			line += strings.Repeat(" ", executedWidth)
		}
		t.Out.WriteString(t.Paint(line+"  of that hidden", dim) + "\n")
	}
	t.Out.WriteByte('\n')
}

// number100 is a share in percent, without the sign.
func number100(share float64) string {
	if math.Abs(share) >= 10 {
		return strconv.FormatFloat(share*100, 'f', 0, 64)
	}
	return strconv.FormatFloat(share*100, 'f', 1, 64)
}

// row writes a line: figures, how often it was executed, and the code.
func (t *annotation) row(p *annotate.Part, executed, code string, st style) {
	var b strings.Builder
	cells := []string{t.share(p)}
	styles := []style{plain}
	widths := []int{annotationFigure}
	if account.IsHotspot(p.OfRun) {
		styles[0] = hot
	}
	for i := range t.columns {
		text, st := t.cell(p, &t.columns[i])
		cells, styles, widths = append(cells, text), append(styles, st), append(widths, t.columns[i].width)
	}
	for i, text := range cells {
		if strings.TrimRight(text, "*?h") == text {
			text += " " // in place of a mark
		}
		b.WriteString(strings.Repeat(" ", max(0, widths[i]-page.Runes(text))))
		b.WriteString(t.Paint(text, styles[i]))
	}
	if t.counts {
		b.WriteString(fmt.Sprintf("%*s", executedWidth, executed))
	}
	b.WriteString("  " + t.Paint(code, st))
	t.Out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

func (t *annotation) share(p *annotate.Part) string {
	if p.Row == 0 || p.Share == 0 {
		return ""
	}
	text := number100(p.Share)
	switch {
	case p.Error >= p.Share:
		t.grey = true
		text += "?"
	case account.IsHotspot(p.OfRun):
		t.hot = true
		text += "*"
	}
	return text
}

// cell is the figure of a part in a column.
func (t *annotation) cell(p *annotate.Part, c *annotationColumn) (string, style) {
	if p.Row == 0 {
		return "", plain
	}
	if c.node < 0 {
		x, of := t.c.Table.Cell(p.Row, c.event), t.c.Table.Cell(t.c.Whole.Row, c.event)
		if x.Value == 0 {
			return "", plain
		}
		text, st := number100(x.Value/of.Value), plain
		if account.Rare(x) {
			text, st, t.grey = text+"?", dim, true
		}
		return text, st
	}
	f := p.Figures[c.node]
	switch {
	case f.Value == 0:
		return "", plain
	case math.IsNaN(f.Value):
		return "–", dim
	}
	text := number100(f.Value)
	if m := t.c.Account.Model(); !m.Share(c.node) {
		text = trim3(f.Value)
	}
	switch {
	case c.cost >= 0 && p.Hidden[c.cost].IsHidden():
		t.hid = true
		return text + "h", dim
	case !f.Reliable:
		t.grey = true
		return text + "?", dim
	case account.IsHotspot(f.Value) && t.c.Account.Model().Share(c.node):
		return text, bold
	}
	return text, plain
}

// trim3 is a number with three significant digits.
func trim3(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// foot says what the marks mean, what is not known and why.
func (t *annotation) foot() {
	const width = 8
	t.Out.WriteByte('\n')
	if t.hot {
		t.Paragraph("*", fmt.Sprintf("a hotspot: %g %% of all %s or more", 100*account.Hotspot, t.d.what(t.clock())), width, plain)
	}
	if t.hid {
		t.Paragraph("h", "hidden: there are no stalled cycles near these events, so fewer of them would gain nothing", width, plain)
	}
	if t.grey {
		t.Paragraph("?", "unreliable: the error exceeds the value, mostly for too few samples", width, plain)
	}
	if t.left > 0 {
		t.Paragraph("note", t.o.Hint(fmt.Sprintf("%s left out at width %d", page.Several(t.left, "column"), t.Width), counts.Fix{Action: counts.ShowColumns}), width, plain)
	}
	if t.c.Executions != "" {
		t.Paragraph("note", t.executionsNote(), width, plain)
	}
	for _, n := range withMeasured(t.d.Header, t.notes()) {
		t.Paragraph("note", n, width, plain)
	}
	how := t.o.Hint("", counts.Fix{Action: counts.ShowMore, Name: "code"})
	if how != "" && !t.d.Source && strings.Count(t.Out.String(), "\n") > 24 {
		t.Paragraph("less", how, width, faint)
	}
}

func (t *annotation) executionsNote() string {
	if t.c.Relative {
		return "executed: by branch stacks, in proportion only: what a stack stands for is not known"
	}
	return "executed: by " + t.c.Executions
}

// notes are what is missing.
func (t *annotation) notes() []string {
	list := append(slices.Clone(t.c.Listing.Notes), t.o.Texts(t.d.Notes)...)
	if t.d.TextNotes != nil {
		list = append(list, t.d.TextNotes()...)
	}
	for _, f := range slices.Sorted(maps.Keys(t.texts)) {
		list = append(list, "no source: "+t.texts[f].Error())
	}
	return list
}
