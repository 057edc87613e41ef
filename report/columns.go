package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/model"
)

// The columns of a profile: what the parts are, and one for each node, below the head of the
// node's parent.

// Widths of the columns of parts.
const (
	nameLeast   = 16
	moduleLeast = 8
	moduleMost  = 24
	labelMost   = 24 // of what is no place in the code
	shareWidth  = 8
	sampleWidth = 10
	markWidth   = 4  // of the hotspot's mark, with the blanks around it
	figureWidth = 8  // that figures need
	headMost    = 20 // of a word of a column's head
)

// skidMark stands behind the heads of nodes whose samples skid.
const skidMark = "~"

// bottleneckPath is what --expand calls the nodes that the whole's bottleneck path
// goes through.
const bottleneckPath = "bottleneck"

// Expandable reports whether Options.Expand may be a text: it names a node that has
// parts, or the bottleneck.
func Expandable(m *model.Model, expand string) bool {
	return slices.Contains(strings.Split(expand, ","), bottleneckPath) ||
		slices.ContainsFunc(m.Nodes, func(n model.Node) bool { return len(n.Children) > 0 && n.Match(expand) })
}

// expanded reports whether a node has a column because --expand asks for its parent's parts or
// a sibling's.
func (p *profile) expanded(a *account.Account, i int) bool {
	m := a.Model()
	for up := m.Nodes[i].Above; p.o.Expand != "" && up >= 0; up = m.Nodes[up].Above {
		if p.opens(a, up) {
			return m.Nodes[i].Above == up || p.above(a, m.Nodes[i].Above)
		}
	}
	return p.o.Expand != "" && p.above(a, m.Nodes[i].Above)
}

// opens reports whether --expand names a node.
func (p *profile) opens(a *account.Account, i int) bool {
	n := &a.Model().Nodes[i]
	for _, name := range strings.Split(p.o.Expand, ",") {
		if name == bottleneckPath && onPath(a, i) {
			return true
		}
	}
	return n.Match(p.o.Expand)
}

// above reports whether a node is one that --expand names, or above such a one.
func (p *profile) above(a *account.Account, i int) bool {
	m := a.Model()
	if i < 0 {
		return false
	}
	return p.opens(a, i) || slices.ContainsFunc(m.Nodes[i].Children, func(c int) bool { return p.above(a, c) })
}

// A widths is how much room the columns have that do not belong to nodes.
type widths struct {
	self    bool
	samples bool
	errors  bool
	labels  []int
	module  int // 0 for none
}

func (w *widths) total() int {
	sum := shareWidth + markWidth + w.module
	if w.self {
		sum += shareWidth
	}
	if w.samples {
		sum += sampleWidth
	}
	if w.errors {
		sum += figureWidth
	}
	for _, l := range w.labels {
		sum += l
	}
	return sum
}

// natural are the widths that nothing is cut to, but for limits.
func (p *profile) natural() widths {
	kinds := p.parts.labels()
	w := widths{self: p.parts.Calls != nil, samples: p.parts.Samples > 0, labels: make([]int, len(kinds))}
	for k, kind := range kinds {
		w.labels[k] = page.Runes(kind.String()) + gap
	}
	for i := range p.lines {
		l := &p.lines[i]
		w.errors = w.errors || !w.samples && l.part.Error > 0
		for k, text := range l.labels {
			if i > 0 || len(kinds) == 1 {
				w.labels[k] = max(w.labels[k], page.Runes(text)+gap)
			}
		}
		if l.module != "" {
			w.module = max(w.module, moduleLeast, min(page.Runes(l.module)+gap, moduleMost))
		}
	}
	for k, kind := range kinds {
		if kind < counts.Module {
			w.labels[k] = min(w.labels[k], labelMost)
		} else {
			w.labels[k] = max(w.labels[k], nameLeast)
		}
	}
	return w
}

// placeMostWide is the most room that the place itself takes of a label.
const placeMostWide = 32

// least is the least width of a column of labels: a line or an instruction keeps its number.
func (p *profile) least(k int) int {
	least := nameLeast
	if p.parts.labels()[k] < counts.Line {
		return least
	}
	for i := range p.lines {
		if l := p.lines[i].labels; k < len(l) {
			at, _, _ := strings.Cut(l[k], labelGap)
			least = max(least, min(page.Runes(at)+gap, placeMostWide))
		}
	}
	return least
}

// labelGap is between a place in the code and its function.
const labelGap = "  "

// cutLabel shortens the label of a part: of a line or an instruction the function, and the
// path at its beginning.
func cutLabel(text string, room int, kind counts.Kind) string {
	if kind < counts.Line || page.Runes(text) <= room {
		return page.Cut(page.Shorter(text, room), room)
	}
	at, function, _ := strings.Cut(text, labelGap)
	at = page.CutLeft(at, room)
	if left := room - page.Runes(at) - gap; left >= functionLeast {
		return at + labelGap + page.Cut(page.Shorter(function, left), left)
	}
	return at
}

// functionLeast is how many letters of a function say something.
const functionLeast = 4

// fit chooses the widths so that the columns of nodes need the fewest panels. It cuts
// names first, then leaves out the samples and the module.
func (p *profile) fit(width []int) widths {
	nodes := 0
	for _, w := range width {
		nodes += w
	}
	natural := p.natural()
	best, fewest := natural, math.MaxInt
	for dropped := range 3 {
		w := natural
		w.labels = slices.Clone(natural.labels)
		w.samples = natural.samples && dropped < 1
		if dropped > 1 {
			w.module = 0
		}
		p.shrink(&w, nodes)
		if n := p.panels(width, p.Width-w.total()); n < fewest {
			best, fewest = w, n
		}
	}
	return best
}

// panels returns how many panels columns need in some room.
func (p *profile) panels(width []int, room int) int {
	n := 0
	for from := 0; from < len(width); n++ {
		from = p.panel(width, from, room)
	}
	return n
}

// shrink cuts the longest label, if there is one to be cut.
func (p *profile) shrink(w *widths, nodes int) {
	for {
		over := w.total() + nodes - p.Width
		k := 0
		for i := range w.labels {
			if w.labels[i] > w.labels[k] {
				k = i
			}
		}
		if over <= 0 || len(w.labels) == 0 || w.labels[k] <= p.least(k) {
			return
		}
		w.labels[k] = max(p.least(k), w.labels[k]-over)
	}
}

// table writes the parts, in as many panels as the columns need: those that were asked
// for, otherwise one.
func (p *profile) table() {
	width := make([]int, len(p.columns)+len(p.events))
	for k := range width {
		width[k] = p.columnWidth(k)
	}
	w := p.fit(width)
	asked := p.o.Level > 1 || p.o.Nodes != "" || p.o.Expand != ""
	for from := 0; ; {
		to := p.panel(width, from, p.Width-w.total())
		p.head(&w, width, from, to)
		for i := range p.lines {
			p.place(&p.lines[i], &w, width, from, to)
		}
		if from = to; from >= len(width) {
			return
		}
		if !asked {
			p.left = len(width) - from
			return
		}
		p.Out.WriteByte('\n')
		w.samples, w.errors = false, false
	}
}

// panel returns the end of the columns that begin with from and fit into some room, one at
// least. A node and its parts begin a new panel rather than being divided. If they must be, the
// node is not left alone.
func (p *profile) panel(width []int, from, room int) int {
	fits := func(from, to int) bool {
		sum := 0
		for _, w := range width[from:to] {
			sum += w
		}
		return sum <= room
	}
	to := from
	for to < len(width) && fits(from, to+1) {
		end := to + 1 // of the node and its parts
		for end < len(width) && p.level(end) > p.level(to) {
			end++
		}
		if to > from && end > to+1 && !fits(from, end) && fits(to, end) {
			break
		}
		to++
	}
	if to < len(width) && to > from+1 && p.divided(p.node(to-1)) {
		to-- // its parts are all in the next one
	}
	return max(to, min(from+1, len(width)))
}

// node returns the node of a column, -1 for one of an event.
func (p *profile) node(k int) int {
	if k >= len(p.columns) {
		return -1
	}
	return p.columns[k]
}

// level is how deep in the tree a column's node is.
func (p *profile) level(k int) int {
	if i := p.node(k); i >= 0 {
		return p.h.Model.Nodes[i].Level
	}
	return 0
}

// heads returns the nodes above a column that have columns, the outermost first. The node
// itself is last if it has parts among the columns.
func (p *profile) heads(k int) []int {
	var list []int
	for i := p.node(k); i >= 0; i = p.h.Model.Nodes[i].Above {
		if p.divided(i) {
			list = append([]int{i}, list...)
		}
	}
	return list
}

// divided reports whether a node has a column, and parts that have some.
func (p *profile) divided(i int) bool {
	return slices.Contains(p.columns, i) && slices.ContainsFunc(p.columns, func(j int) bool { return p.h.Model.Nodes[j].Above == i })
}

// ownColumn heads the column of a node whose parts have columns too.
const ownColumn = "all"

// head writes the headings: the heads of nodes whose parts are shown, above these, then the
// nodes' names in as many lines as needed.
func (p *profile) head(w *widths, width []int, from, to int) {
	h := p.parts
	deep, height := 0, 1
	for k := from; k < to; k++ {
		deep = max(deep, len(p.heads(k)))
		height = max(height, len(p.columnHead(k)))
	}
	blank := strings.Repeat(" ", w.total())
	for row := range deep {
		p.Out.WriteString(p.Paint(strings.TrimRight(blank+p.spans(width, from, to, row), " "), faint) + "\n")
	}
	for row := range height {
		line := blank
		if row == height-1 {
			line = p.labelHead(w, h)
		}
		for k := from; k < to; k++ {
			lines := p.columnHead(k)
			word := ""
			if at := row - (height - len(lines)); at >= 0 {
				word = lines[at]
			}
			line += fmt.Sprintf("%*s", width[k], word)
		}
		p.Out.WriteString(p.Paint(strings.TrimRight(line, " "), faint) + "\n")
	}
}

// spans is one line of heads: each over its own column and those of its parts.
func (p *profile) spans(width []int, from, to, row int) string {
	line := ""
	for k := from; k < to; {
		heads := p.heads(k)
		if len(heads) <= row {
			line += strings.Repeat(" ", width[k])
			k++
			continue
		}
		room := 0
		end := k
		for ; end < to; end++ {
			if other := p.heads(end); len(other) <= row || other[row] != heads[row] {
				break
			}
			room += width[end]
		}
		name := page.Cut(p.h.Model.Nodes[heads[row]].Name, room-gap)
		line += strings.Repeat(" ", gap) + name
		if rule := room - gap - page.Runes(name); rule > 1 {
			line += " " + strings.Repeat("─", rule-1)
		} else {
			line += strings.Repeat(" ", rule)
		}
		k = end
	}
	return line
}

// labelHead is the headings of what is no node.
func (p *profile) labelHead(w *widths, h *parts) string {
	share := h.what()
	if page.Runes(share) > shareWidth {
		share = "share"
	}
	line := fmt.Sprintf("%*s", shareWidth, share)
	if w.self {
		line += fmt.Sprintf("%*s", shareWidth, "self")
	}
	if w.samples {
		line += fmt.Sprintf("%*s", sampleWidth, "samples")
	}
	if w.errors {
		line += fmt.Sprintf("%*s", figureWidth, "±")
	}
	line += strings.Repeat(" ", markWidth)
	for k, kind := range h.labels() {
		line += page.Padded(page.Cut(kind.String(), w.labels[k]-1), w.labels[k])
	}
	if w.module > 0 {
		line += page.Padded("module", w.module)
	}
	return line
}

// columnHead is the heading of a node's own column, in lines.
func (p *profile) columnHead(k int) []string {
	i := p.node(k)
	if i < 0 {
		c := &p.events[k-len(p.columns)]
		return page.Heading(cmp.Or(c.As, c.Event), figureWidth, headMost)
	}
	lines := page.Heading(p.h.Model.Nodes[i].Name, figureWidth, headMost)
	if p.divided(i) {
		lines = []string{ownColumn}
	}
	if p.skids[k] {
		lines[len(lines)-1] += skidMark
	}
	return lines
}

// columnWidth returns the width of a node's column.
func (p *profile) columnWidth(k int) int {
	width := figureWidth
	for _, w := range p.columnHead(k) {
		width = max(width, page.Runes(w))
	}
	for i := range p.lines {
		width = max(width, page.Runes(p.lines[i].cells[k].text))
	}
	return width + gap
}

// place writes the line of a part.
func (p *profile) place(l *profileLine, w *widths, width []int, from, to int) {
	mark, st := " ", plain
	if l.hot {
		mark, st = "*", bold
	}
	share, shareStyle := fmt.Sprintf("%*s", shareWidth, l.share)+" ", plain
	if !l.part.Reliable() {
		share, shareStyle = strings.TrimSuffix(share, " ")+"?", dim
	}
	out := p.Paint(share, shareStyle)
	if w.self {
		out += fmt.Sprintf("%*s ", shareWidth-1, page.PercentOf(l.part.self))
	}
	if w.samples {
		out += fmt.Sprintf("%*s", sampleWidth-1, l.samples) + " "
	}
	if w.errors {
		text := ""
		if l.part.Error > 0 {
			text = page.PercentOf(l.part.Error)
		}
		out += fmt.Sprintf("%*s ", figureWidth-1, text)
	}
	out += " " + mark + " "
	for k, room := range w.labels {
		text := ""
		if k < len(l.labels) {
			text = l.labels[k]
		}
		if w.module == 0 && k == len(w.labels)-1 {
			text = nameless(text, l.module)
		}
		out += p.Paint(page.Padded(cutLabel(text, room-gap, p.parts.labels()[min(k, len(p.parts.labels())-1)]), room), st)
	}
	if w.module > 0 {
		out += page.Padded(page.Cut(l.module, max(1, w.module-gap)), w.module)
	}
	for k := from; k < to; k++ {
		c := l.cells[k]
		out += strings.Repeat(" ", max(0, width[k]-page.Runes(c.text))) + p.Paint(c.text, c.st)
	}
	p.Out.WriteString(strings.TrimRight(out, " ") + "\n")
}

// nameless is the label of a place where there is no room for modules: one without a name
// is told from others by its module.
func nameless(label, module string) string {
	switch {
	case module == "":
	case label == unknownPart:
		return "[" + strings.Trim(module, "[]") + "]"
	case strings.HasPrefix(label, "0x"):
		return module + " " + label
	}
	return label
}
