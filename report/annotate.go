package report

import (
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cyclestack/cyclestack/annotate"
	"github.com/cyclestack/cyclestack/model"
)

// AnnotateFormats are the names that Annotate takes.
var AnnotateFormats = []string{"text", "json", "csv"}

// An AnnotateHeader says what was annotated.
type AnnotateHeader struct {
	Header
	What  string // that the clock counts, in words: "time", "cycles"; "" is the event
	Label string // what was recorded: the command
	Flat  string // why there is nothing but shares: no method fits. "" if one does
	Notes []string
}

// AnnotateOptions say what of an annotated function is shown.
type AnnotateOptions struct {
	Options
	Source   bool // the source's lines alone, in their order
	Assembly bool // the instructions alone
	Full     bool // also what has no samples, however much of it there is
	// Text reads a line of a source file; nil: there are no sources.
	Text func(file string, line int) (string, error)
	// TextNotes says what is odd about the sources that were read; it may be nil.
	TextNotes func() []string
}

// Annotate prints an annotated function in one of the AnnotateFormats.
func Annotate(format string, w io.Writer, h AnnotateHeader, c *annotate.Code, o AnnotateOptions) error {
	if o.Width == 0 {
		o.Width = 100
	}
	t := &annotation{tree: listing(w, o.Options), h: h, c: c, o: o, texts: map[string]error{}}
	switch format {
	case "text":
		return t.text()
	case "json":
		return t.json()
	case "csv":
		return t.csv()
	}
	return fmt.Errorf("no format %q: there are %s", format, strings.Join(AnnotateFormats, ", "))
}

// An annotation is the writer of annotated functions.
type annotation struct {
	*tree
	h       AnnotateHeader
	c       *annotate.Code
	o       AnnotateOptions
	columns []annotationColumn
	left    int  // columns that did not fit
	room    int  // columns of the terminal to the right of the figures
	depth   int  // of loops that are drawn
	margin  int  // indentation that all lines of the source have; -1 if they are not there
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
	case t.o.Source, t.c.ByLine:
		t.source()
	case t.o.Assembly, t.numbers:
		t.assembly()
	default:
		t.mixed()
	}
	t.foot()
	_, err := io.WriteString(t.w, t.out.String())
	return err
}

// what says what shares are of.
func (h *AnnotateHeader) what(event string) string {
	if h.What != "" {
		return h.What
	}
	return event
}

func (t *annotation) clock() string { return t.c.Table.Columns[t.c.Clock].Event }

// name is the function, and what of it if that is not all.
func (t *annotation) name() string {
	name := printable(t.c.Function)
	if name == "" {
		name = "[unknown]"
	}
	name += " (" + printable(t.c.Module) + ")"
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
	what := t.h.what(t.clock())
	whole := t.c.Table.Cell(0, t.c.Clock)
	parts := []string{
		t.name(),
		fmt.Sprintf("%s of %s", percentOf(t.c.Whole.OfRun), what),
	}
	if whole.Samples > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s samples of %s", trim(float64(t.c.Whole.Samples)), trim(float64(whole.Samples)), t.clock()))
	} else {
		parts = append(parts, trim(t.c.Table.Cell(t.c.Whole.Row, t.c.Clock).Value)+" "+t.clock())
	}
	if t.h.Label != "" {
		parts = append(parts, printable(t.h.Label))
	}
	if t.h.Flat == "" {
		parts = append(parts, "on "+t.h.CPU.Name, t.h.Model.Name+" "+t.h.Model.Version)
	}
	t.paragraph("", strings.Join(parts, ", "), 0, bold)
	if t.h.Flat != "" {
		t.paragraph("", "shares only: "+t.h.Flat, 0, faint)
	}
	t.out.WriteByte('\n')
}

// Widths of the columns of an annotation.
const (
	annotationFigure = 7  // a figure with its mark and a blank before it
	annotationLeast  = 34 // for the code, if there are other columns
	annotationCode   = 16 // for the code in any case
	executedWidth    = 9
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
	t.room = t.o.Width - annotationFigure - 1
	if t.c.Executions != "" {
		t.room -= executedWidth
	}
	for i, c := range list {
		if t.room-c.width < max(annotationLeast, t.o.Width/2-4) {
			t.left = len(list) - i
			break
		}
		t.room -= c.width
		t.columns = append(t.columns, c)
	}
	t.room = max(t.room-2, annotationCode)
	for i := range t.loopDepths() {
		t.depth = max(t.depth, i)
	}
	t.margin = t.indentation()
	t.numbers = t.margin < 0
}

func (t *annotation) nodeColumns() []annotationColumn {
	if t.c.Account == nil {
		return nil
	}
	m := t.c.Account.Model()
	var order []int
	add := func(i int) {
		if i >= 0 && !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	if t.o.Nodes != "" || t.o.Level > 0 {
		for i := range m.Nodes {
			if n := &m.Nodes[i]; t.o.match(n) && (t.o.Level == 0 || n.Level <= t.o.Level) && (n.Level > 0 || !m.Share(i)) && (t.o.Nodes != "" || n.Section == "") {
				add(i)
			}
		}
	} else {
		order = t.usualNodes(add, &order)
	}
	var list []annotationColumn
	for _, i := range order {
		if v := t.c.Whole.Figures; v == nil || math.IsNaN(v[i].Value) {
			continue
		}
		list = append(list, t.column(m, i))
	}
	return list
}

// usualNodes are the nodes that are shown if none are asked for.
func (t *annotation) usualNodes(add func(int), order *[]int) []int {
	m := t.c.Account.Model()
	for _, c := range t.c.Costs {
		add(c.Stalls)
	}
	costs := slices.Clone(t.c.Costs)
	slices.SortStableFunc(costs, func(a, b annotate.Cost) int {
		x, y := t.c.Whole.Figures[a.Node].Value, t.c.Whole.Figures[b.Node].Value
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
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
	return *order
}

func (t *annotation) column(m *model.Model, node int) annotationColumn {
	c := annotationColumn{node: node, cost: slices.IndexFunc(t.c.Costs, func(k annotate.Cost) bool { return k.Node == node })}
	return c.titled(m.Nodes[node].Name)
}

// titled gives a column its heading and width.
func (c annotationColumn) titled(name string) annotationColumn {
	c.head, c.width = heading(name), annotationFigure
	for _, w := range c.head {
		c.width = max(c.width, runes(w)+1)
	}
	return c
}

// eventColumns are the events that no node says anything about.
func (t *annotation) eventColumns() []annotationColumn {
	var list []annotationColumn
	for _, col := range t.c.Unnamed {
		list = append(list, annotationColumn{node: -1, event: col, cost: -1}.titled(printable(t.c.Table.Columns[col].Event)))
	}
	return list
}

// heads writes the headings.
func (t *annotation) heads() {
	height := 1
	for _, c := range t.columns {
		height = max(height, len(c.head))
	}
	percent := "percent of " + t.whose() + " " + t.h.what(t.clock())
	if t.events {
		percent += ", and of its events"
	}
	t.out.WriteString(t.paint(percent, faint) + "\n")
	what := t.h.what(t.clock())
	if runes(what) >= annotationFigure {
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
		if t.c.Executions != "" && row == height-1 {
			line += fmt.Sprintf("%*s", executedWidth, "executed")
		}
		t.out.WriteString(t.paint(strings.TrimRight(line, " "), faint) + "\n")
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
		if t.c.Executions != "" {
			line += strings.Repeat(" ", executedWidth)
		}
		t.out.WriteString(t.paint(line+"  of that hidden", dim) + "\n")
	}
	t.out.WriteByte('\n')
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
	if p.OfRun >= hotspot {
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
		b.WriteString(strings.Repeat(" ", max(0, widths[i]-runes(text))))
		b.WriteString(t.paint(text, styles[i]))
	}
	if t.c.Executions != "" {
		b.WriteString(fmt.Sprintf("%*s", executedWidth, executed))
	}
	b.WriteString("  " + t.paint(code, st))
	t.out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
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
	case p.OfRun >= hotspot:
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
		if 2*math.Sqrt(x.Variance) >= x.Value {
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
	case f.Value >= hotspot && t.c.Account.Model().Share(c.node):
		return text, bold
	}
	return text, plain
}

// trim3 is a number with three significant digits.
func trim3(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// counted is how often something happened, in few columns.
func counted(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.size {
			return trim3(v/u.size) + " " + u.name
		}
	}
	return trim3(v)
}

// executed is how often a block was executed.
func (t *annotation) executed(block int) string {
	e := t.c.Blocks[block].Executions
	if math.IsNaN(e.Value) || e.Samples == 0 {
		return ""
	}
	if text := counted(e.Value); e.Error() < e.Value {
		return text
	}
	t.grey = true
	return counted(e.Value) + "?"
}

// mixed writes the instructions below their lines, in the order of their
// addresses. A line has its figures where it comes first.
func (t *annotation) mixed() {
	lines := t.lineOf()
	seen := map[int]bool{}
	shown := t.shownInsts()
	for i, last := 0, -1; i < len(t.c.Insts); i++ {
		if !shown[i] {
			i = t.skip(shown, i)
			last = -1
			continue
		}
		if n := lines[i]; n != last {
			last = n
			t.lineHead(&t.c.Lines[n], seen[n])
			seen[n] = true
		}
		t.inst(i)
	}
}

func (t *annotation) assembly() {
	shown := t.shownInsts()
	for i := 0; i < len(t.c.Insts); i++ {
		if !shown[i] {
			i = t.skip(shown, i)
			continue
		}
		t.inst(i)
	}
}

// lineOf returns the lines of the instructions.
func (t *annotation) lineOf() []int {
	of := make([]int, len(t.c.Insts))
	for n := range t.c.Lines {
		for _, i := range t.c.Lines[n].Insts {
			of[i] = n
		}
	}
	return of
}

// contextInsts is how many instructions without samples are shown around those
// with some.
const contextInsts = 4

// shownInsts says which instructions are shown: those with samples, those around
// them, and gaps too small to be worth a word.
func (t *annotation) shownInsts() []bool {
	n := len(t.c.Insts)
	shown := make([]bool, n)
	for i := range t.c.Parts {
		if t.c.Parts[i].Row > 0 || t.o.Full {
			for j := max(0, i-contextInsts); j <= min(n-1, i+contextInsts); j++ {
				shown[j] = true
			}
		}
	}
	return shown
}

// skip writes that instructions are left out, and returns the last of them.
func (t *annotation) skip(shown []bool, i int) int {
	end := i
	for end < len(shown) && !shown[end] {
		end++
	}
	text := fmt.Sprintf("⋮ %d instructions without a sample", end-i)
	if end-i == 1 {
		text = "⋮ 1 instruction without a sample"
	}
	t.row(&annotate.Part{}, "", t.loopMarks(i, true)+text, faint)
	return end - 1
}

// lineHead writes a line of the source above its instructions.
func (t *annotation) lineHead(l *annotate.Line, again bool) {
	p := &l.Part
	if again {
		p = &annotate.Part{}
	}
	st := bold
	if again || p.Row == 0 {
		st = faint
	}
	t.row(p, "", cut(t.lineText(l.File, l.Line), t.room), st)
}

// lineText is a line of the source with its number.
func (t *annotation) lineText(file string, line int) string {
	if line == 0 {
		return "(no line)"
	}
	text, ok := t.sourceLine(file, line)
	if !ok {
		return fmt.Sprintf("%s:%d", printable(path.Base(file)), line)
	}
	number := fmt.Sprintf("%4d  ", line)
	if file != t.mainFile() {
		number = fmt.Sprintf("%s:%d  ", printable(path.Base(file)), line)
	}
	return number + strings.TrimPrefix(text, strings.Repeat(" ", max(0, min(t.margin, indentOf(text)))))
}

// sourceLine reads a line of the source, ready to be printed.
func (t *annotation) sourceLine(file string, line int) (string, bool) {
	if t.o.Text == nil || file == "" {
		return "", false
	}
	text, err := t.o.Text(file, line)
	if err != nil {
		if t.texts[file] == nil {
			t.texts[file] = err
		}
		return "", false
	}
	return printable(strings.ReplaceAll(text, "\t", "    ")), true
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// indentation is what all lines of the function have, -1 if there are none to read.
func (t *annotation) indentation() int {
	least := math.MaxInt
	for i := range t.c.Lines {
		l := &t.c.Lines[i]
		if l.File != t.mainFile() || l.Line == 0 {
			continue
		}
		if text, ok := t.sourceLine(l.File, l.Line); ok && strings.TrimSpace(text) != "" {
			least = min(least, indentOf(text))
		}
	}
	if least == math.MaxInt {
		return -1
	}
	return least
}

// mainFile is the file that the function begins in.
func (t *annotation) mainFile() string {
	for i := range t.c.Lines {
		if t.c.Lines[i].Line > 0 {
			return t.c.Lines[i].File
		}
	}
	return ""
}

// inst writes an instruction.
func (t *annotation) inst(i int) {
	in := &t.c.Insts[i]
	text := fmt.Sprintf("%x", in.Addr)
	if t.numbers && !t.o.Assembly && in.Line > 0 {
		text = fmt.Sprintf("%x :%d", in.Addr, in.Line)
	}
	if in.Text != "" {
		text += "  " + printable(in.Text)
	}
	executed := ""
	block := t.blockAt(i)
	if block >= 0 && t.c.Blocks[block].First == i && t.c.Executions != "" {
		executed = t.executed(block)
	}
	// What does not fit goes in this order: how often the loop is run through and
	// what is hidden, where the instruction goes, the rest of its text.
	lead, mark := t.loopMarks(i, false), t.mark(i, block, true)
	room := t.room - runes(lead)
	if runes(text)+runes(mark) > room {
		mark = t.mark(i, block, false)
	}
	if in.Note != "" && runes(text)+1+runes(printable(in.Note))+runes(mark) <= room {
		text += " " + printable(in.Note)
	}
	text = cut(text, max(12, room-runes(mark)))
	st := plain
	if p := &t.c.Parts[i]; p.Row == 0 {
		st = faint
	}
	t.row(&t.c.Parts[i], executed, lead+text+mark, st)
}

// mark is what stands behind an instruction: what is hidden there, and that a loop
// begins; in full also which events are hidden, and how often the loop is run
// through.
func (t *annotation) mark(i, block int, full bool) string {
	var words []string
	if block >= 0 && t.c.Blocks[block].First == i {
		for n := range t.c.Loops {
			if t.c.Graph.Loops[n].Header == block {
				words = append(words, t.loopMark(n, full))
			}
		}
	}
	p := &t.c.Parts[i]
	var names []string
	for k := range p.Hidden {
		if p.Hidden[k].IsHidden() && slices.ContainsFunc(t.columns, func(c annotationColumn) bool { return c.cost == k }) {
			names = append(names, t.c.Account.Model().Nodes[t.c.Costs[k].Node].Name)
		}
	}
	switch {
	case len(names) > 0 && full:
		words = append(words, strings.Join(names, ", ")+" hidden")
	case len(names) > 0:
		words = append(words, "hidden")
	}
	if len(words) == 0 {
		return ""
	}
	return "  ◄ " + strings.Join(words, ", ")
}

func (t *annotation) loopMark(n int, trips bool) string {
	l := &t.c.Loops[n]
	text := fmt.Sprintf("loop %d", n+1)
	if trips && !math.IsNaN(l.Executed.Trips) && t.c.Executions != "" {
		text += ": " + trim3(l.Executed.Trips) + " trips"
		if l.Executed.Error >= l.Executed.Trips {
			text += "?"
		}
	}
	return text
}

func (t *annotation) blockAt(i int) int {
	n, ok := slices.BinarySearchFunc(t.c.Blocks, i, func(b annotate.Block, i int) int { return b.First - i })
	if !ok {
		n--
	}
	return n
}

// loopDepths are the depths of the loops that there are.
func (t *annotation) loopDepths() map[int]bool {
	depths := map[int]bool{}
	if t.c.Graph != nil {
		for i := range t.c.Graph.Loops {
			depths[min(loopsDrawn, t.c.Graph.Loops[i].Depth)] = true
		}
	}
	return depths
}

// loopMarks draws the loops around an instruction: a line for each, from its first
// instruction to its last.
func (t *annotation) loopMarks(i int, gap bool) string {
	const out = "  "
	if t.depth == 0 {
		return out
	}
	marks := []rune(strings.Repeat(" ", t.depth+1))
	block := t.blockAt(i)
	if block >= 0 {
		for l := t.c.Graph.Blocks[block].Loop; l >= 0; l = t.c.Graph.Loops[l].Parent {
			loop := &t.c.Graph.Loops[l]
			if loop.Depth > loopsDrawn {
				continue
			}
			first := t.c.Blocks[loop.Blocks[0]].First
			last := t.c.Blocks[loop.Blocks[len(loop.Blocks)-1]].Last
			mark := '│'
			switch {
			case gap:
			case i == first && i == last:
				mark = '∘'
			case i == first:
				mark = '┌'
			case i == last:
				mark = '└'
			}
			marks[loop.Depth-1] = mark
		}
	}
	return out + string(marks)
}

// loops writes the table of the loops that have samples.
func (t *annotation) loops() {
	var rows []int
	for i := range t.c.Loops {
		if t.c.Loops[i].Row > 0 {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		return
	}
	what := t.h.what(t.clock())
	if runes(what) > 10 {
		what = "share"
	}
	places := make([]string, len(t.c.Loops))
	width := 24
	for _, i := range rows {
		places[i] = t.loopPlace(i)
		width = max(width, min(runes(places[i])+gap, t.o.Width-76))
	}
	head := "loop  " + padded("lines", width) + pad(what, 10)
	if t.c.Executions != "" {
		head += fmt.Sprintf("%18s%20s", "iterations", "trips")
	}
	t.out.WriteString(t.paint(head, faint) + "\n")
	for _, i := range rows {
		t.loop(i, padded(cut(places[i], width-gap), width))
	}
	t.iterations(rows)
	if t.c.Executions == "" {
		t.paragraph("", "how often they were executed is not known: sample retired instructions precisely, or branch stacks", 0, faint)
	}
	t.out.WriteByte('\n')
}

// loopPlace is the lines of a loop, indented by how deep it lies.
func (t *annotation) loopPlace(i int) string {
	l := &t.c.Loops[i]
	where := "–"
	if l.First > 0 {
		where = fmt.Sprintf("%s:%d–%d", printable(path.Base(l.File)), l.First, l.Last)
		if l.First == l.Last {
			where = fmt.Sprintf("%s:%d", printable(path.Base(l.File)), l.First)
		}
	}
	return strings.Repeat("  ", min(loopsDrawn, t.c.Graph.Loops[i].Depth)-1) + where
}

func (t *annotation) loop(i int, place string) {
	l := &t.c.Loops[i]
	line := fmt.Sprintf("%4d  %s%s", i+1, place, pad(percentOf(l.Share), 10))
	if t.c.Executions != "" {
		line += pad(plusMinus(l.Executed.Iterations.Value, l.Executed.Iterations.Error()), 18) + pad(t.trips(i), 20)
	}
	st := plain
	if l.Share >= hotspot {
		st = bold
	}
	t.out.WriteString(t.paint(strings.TrimRight(line, " "), st) + "\n")
}

// iterations writes what the events come to in one iteration of each loop.
func (t *annotation) iterations(rows []int) {
	const name, width = 34, 11
	rows = slices.DeleteFunc(rows, func(i int) bool { return len(t.c.Loops[i].PerIter) == 0 })
	rows = rows[:min(len(rows), max(0, t.o.Width-name)/width)]
	if len(rows) == 0 {
		return
	}
	head := fmt.Sprintf("\n%-*s", name, "in each iteration of loop")
	for _, i := range rows {
		head += pad(strconv.Itoa(i+1), width-1) + " "
	}
	t.out.WriteString(t.paint(strings.TrimRight(head, " "), faint) + "\n")
	for col := range t.c.Table.Columns {
		line, any := padded(cut(printable(t.c.Table.Columns[col].Event), name-gap), name), false
		for _, i := range rows {
			text := " "
			for _, p := range t.c.Loops[i].PerIter {
				if p.Event == t.c.Table.Columns[col].Event {
					text, any = t.perIteration(p), true
				}
			}
			line += pad(text, width)
		}
		if any {
			t.out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
}

func (t *annotation) perIteration(p annotate.PerIteration) string {
	if p.Error >= p.Value {
		t.grey = true
		return trim3(p.Value) + "?"
	}
	return trim3(p.Value) + " "
}

func pad(s string, width int) string { return strings.Repeat(" ", max(0, width-runes(s))) + s }

// trips is a loop's average trip count.
func (t *annotation) trips(i int) string {
	l := &t.c.Loops[i]
	switch {
	case !math.IsNaN(l.Executed.Trips) && l.Executed.Error >= l.Executed.Trips:
		t.grey = true
		return plusMinus(l.Executed.Trips, l.Executed.Error) + "?"
	case !math.IsNaN(l.Executed.Trips):
		return plusMinus(l.Executed.Trips, l.Executed.Error)
	case !math.IsNaN(l.Executed.Least):
		return "at least " + trim3(l.Executed.Least)
	}
	return "–"
}

func plusMinus(v, e float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsNaN(e):
		return counted(v)
	}
	return counted(v) + " ± " + counted(e)
}

// source writes the lines of the source in their order, file by file.
func (t *annotation) source() {
	order := make([]int, len(t.c.Lines))
	for i := range order {
		order[i] = i
	}
	main := t.mainFile()
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &t.c.Lines[i], &t.c.Lines[j]
		switch {
		case a.File != b.File && a.File == main:
			return -1
		case a.File != b.File && b.File == main:
			return 1
		case a.File != b.File:
			return strings.Compare(a.File, b.File)
		}
		return a.Line - b.Line
	})
	file, last := "", 0
	for k, i := range order {
		l := &t.c.Lines[i]
		if k == 0 || l.File != file {
			file, last = l.File, 0
			if l.File != "" {
				t.row(&annotate.Part{}, "", printable(l.File), faint)
			}
		}
		if _, ok := t.sourceLine(file, l.Line); !ok && l.Row == 0 && !t.o.Full {
			continue
		}
		t.between(file, last, l.Line)
		last = l.Line
		st := plain
		if l.Row == 0 {
			st = faint
		}
		t.row(&l.Part, "", cut(t.plainLine(file, l.Line)+t.lineMark(l), t.room), st)
	}
}

// lineMark says what is hidden at a line.
func (t *annotation) lineMark(l *annotate.Line) string {
	var names []string
	for k := range l.Hidden {
		if l.Hidden[k].IsHidden() {
			names = append(names, t.c.Account.Model().Nodes[t.c.Costs[k].Node].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "  ◄ " + strings.Join(names, ", ") + " hidden"
}

func (t *annotation) plainLine(file string, line int) string {
	if line == 0 {
		return "(no line)"
	}
	text, _ := t.sourceLine(file, line)
	return fmt.Sprintf("%4d  %s", line, strings.TrimPrefix(text, strings.Repeat(" ", max(0, min(t.margin, indentOf(text))))))
}

// contextLines is how many lines without code are shown between others.
const contextLines = 8

// between writes the lines without code between two with some.
func (t *annotation) between(file string, from, to int) {
	if from == 0 || to-from <= 1 {
		return
	}
	if to-from-1 > contextLines && !t.o.Full {
		t.row(&annotate.Part{}, "", "   ⋮", faint)
		return
	}
	for n := from + 1; n < to; n++ {
		if _, ok := t.sourceLine(file, n); !ok {
			return // a file is as long as it is, whatever the debug information says
		}
		t.row(&annotate.Part{}, "", cut(t.plainLine(file, n), t.room), faint)
	}
}

// foot says what the marks mean, what is not known and why.
func (t *annotation) foot() {
	const width = 8
	t.out.WriteByte('\n')
	if t.hot {
		t.paragraph("*", fmt.Sprintf("a hotspot: %g %% of all %s or more", 100*hotspot, t.h.what(t.clock())), width, plain)
	}
	if t.hid {
		t.paragraph("h", "hidden: the events would cost this much, but there are no stalled cycles near them, so that fewer of them would gain nothing", width, plain)
	}
	if t.grey {
		t.paragraph("?", "not to be relied upon, most often for too few samples: its 95 % interval is as wide as the value", width, plain)
	}
	if t.left > 0 {
		t.paragraph("note", fmt.Sprintf("columns that do not fit in %d: %d (--width, --nodes, or --format csv)", t.o.Width, t.left), width, plain)
	}
	if t.c.Executions != "" {
		t.paragraph("note", t.executionsNote(), width, plain)
	}
	for _, n := range t.notes() {
		t.paragraph("note", n, width, plain)
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
	list := append(slices.Clone(t.c.Listing.Notes), t.h.Notes...)
	if t.o.TextNotes != nil {
		list = append(list, t.o.TextNotes()...)
	}
	var files []string
	for f := range t.texts {
		files = append(files, f)
	}
	slices.Sort(files)
	for _, f := range files {
		list = append(list, "no source: "+t.texts[f].Error())
	}
	return list
}

// printable replaces what would not print in a text from a file.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.IsControl(r) {
			return '?'
		}
		return r
	}, s)
}
