package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/model"
)

// tree is the writer for people.
type tree struct {
	page.Page
	o     Options
	h     Header
	shown []bool
	n     int
	later []string // accounts behind the first of a screen, in a line each
	used  int      // lines of the first
}

func newTree(w io.Writer, o Options) *tree { return &tree{Page: page.New(w, o.Width, o.Color), o: o} }

func (t *tree) Begin(h Header) error {
	t.h, t.shown = h, t.o.shown(h.Model)
	return nil
}

func (t *tree) Account(a *account.Account) error {
	t.Out.Reset()
	if t.n > 0 {
		t.Out.WriteByte('\n')
	}
	t.n++
	if t.o.Lines > 0 {
		return t.brief(a)
	}
	t.heading(a)
	states := a.Hotspots != nil && len(a.Hotspots.States) > 0
	if states {
		t.hotspots(a, math.MaxInt)
	}
	t.times(a)
	if a.Known() || len(a.Also)+len(a.Rest()) == 0 {
		t.section(a, "")
	}
	if h := a.Hotspots; h != nil && !states {
		t.places(h, len(h.Places))
		t.Out.WriteByte('\n')
	}
	t.links(a)
	t.more(a)
	t.own(a)
	t.further(a)
	t.audit(a)
	t.notes(a)
	t.judgement(a)
	t.next(a, math.MaxInt)
	return t.Flush()
}

// heading says what was measured, for how long, on what, by what.
func (t *tree) heading(a *account.Account) {
	parts := []string{}
	if l := scopeLabel(a); l != "" {
		parts = append(parts, l)
	}
	if a.Interval && !math.IsNaN(a.Start) {
		parts = append(parts, fmt.Sprintf("%s s to %s s", page.Trim(a.Start), page.Trim(a.Start+a.Duration)))
	} else if !math.IsNaN(a.Duration) {
		parts = append(parts, page.Duration(a.Duration))
	}
	if a.Runs > 1 {
		parts = append(parts, fmt.Sprintf("mean of %d runs", a.Runs))
	}
	if t.h.Unknown.Text == "" {
		parts = append(parts, "on "+t.h.CPU.Name)
	}
	parts = append(parts, t.h.Model.Name+" "+t.h.Model.Version, t.h.source())
	t.Paragraph("", strings.Join(parts, ", "), 0, bold)
	t.Out.WriteByte('\n')
}

// source says where the counts are from.
func (h Header) source() string {
	if h.How != "" {
		return h.How
	}
	return "from " + kindText(h.Kind)
}

// kindText says a kind of source in words: "perf-stat-csv" is "perf stat CSV".
func kindText(kind string) string {
	words := strings.Split(kind, "-")
	for i, w := range words {
		if w == "csv" || w == "json" {
			words[i] = strings.ToUpper(w)
		}
	}
	return strings.Join(words, " ")
}

// sections lists the headings of a model in order; "" is the main tree.
func sections(m *model.Model) []string {
	var list []string
	seen := map[string]bool{}
	for i := range m.Nodes {
		if s := m.Nodes[i].Section; !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	return list
}

// more writes the sections besides the main tree, if all are asked for or there
// is nothing else; otherwise it names those that have something to say.
func (t *tree) more(a *account.Account) {
	m := a.Model()
	var names []string
	for _, section := range sections(m) {
		if section == "" {
			continue
		}
		known := false
		for i := range m.Nodes {
			known = known || m.Nodes[i].Section == section && a.Nodes[i].Known()
		}
		switch {
		case t.o.All || t.o.Nodes != "" || known && !saysMuch(a):
			t.section(a, section)
		case known:
			names = append(names, section)
		}
	}
	if len(names) > 0 {
		t.Paragraph("more", t.o.Hint(strings.Join(names, ", "), counts.Fix{Action: counts.ShowAll}), 10, plain)
	}
}

// saysMuch reports whether the main tree has a value besides the whole's.
func saysMuch(a *account.Account) bool {
	m := a.Model()
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Section == "" && n.Level > 0 && a.Nodes[i].Known() {
			return true
		}
	}
	return false
}

// section writes the lines of one section under its heading.
func (t *tree) section(a *account.Account, section string) {
	m := a.Model()
	var lines []page.Line
	low, unknown := 0, 0 // nodes left out
	for i := range m.Nodes {
		switch {
		case m.Nodes[i].Section != section || !t.shown[i] || !a.Nodes[i].Known() && (m.Nodes[i].Optional || t.o.Known):
		case t.folds(a, i) && a.Nodes[i].Known():
			low++
		case t.folds(a, i):
			unknown++
		default:
			lines = append(lines, t.line(a, i))
		}
	}
	if len(lines) == 0 {
		return
	}
	title := section
	if title == "" {
		title = unitText(m)
	}
	t.Table(title, lines)
	var folded []string
	if low > 0 {
		folded = append(folded, fmt.Sprintf("%d deeper nodes are not over their thresholds", low))
	}
	if unknown > 0 {
		folded = append(folded, fmt.Sprintf("%d deeper nodes are not known", unknown))
	}
	if len(folded) > 0 {
		text := strings.Repeat(" ", indent) + t.o.Hint(strings.Join(folded, ", "), counts.Fix{Action: counts.ShowLevel, Number: deepest(m)})
		t.Out.WriteString(t.Paint(text, faint) + "\n")
	}
	t.Out.WriteByte('\n')
}

const (
	// foldFrom is the least size of a main tree that is folded: deeper nodes are
	// then shown only where they matter. A screen has fewer lines.
	foldFrom = 45
	// foldBelow is the deepest level that is always shown.
	foldBelow = 2
)

// folds says whether a node is left out because nothing asked for it: it lies
// deep in a large tree and is not over its threshold.
func (t *tree) folds(a *account.Account, i int) bool {
	m := a.Model()
	n := &m.Nodes[i]
	switch {
	case n.Section != "" || a.Nodes[i].Flagged || t.o.Level > 0 || t.o.All || t.o.Nodes != "":
		return false
	case !saysMuch(a):
		return n.Level > 1 // of a tree that says nothing, what it lacks is enough
	case n.Level <= foldBelow:
		return false
	}
	size := 0
	for j := range m.Nodes {
		if m.Nodes[j].Section == "" {
			size++
		}
	}
	return size >= foldFrom
}

// deepest is the deepest level of a model's tree.
func deepest(m *model.Model) int {
	level := 0
	for i := range m.Nodes {
		level = max(level, m.Nodes[i].Level)
	}
	return level
}

func unitText(m *model.Model) string {
	switch {
	case m.Of == "TSC":
		return "share of elapsed time (TSC)"
	case m.Of == "WALL_TIME":
		return "share of the threads' time"
	case m.Of != "":
		return "share of " + m.Unit
	case m.Unit == "cycles/instruction":
		return "cycles per instruction"
	}
	return m.Unit
}

// line makes the parts of one node's line.
func (t *tree) line(a *account.Account, i int) page.Line {
	m := a.Model()
	n, v := &m.Nodes[i], &a.Nodes[i]
	l := page.Line{Name: strings.Repeat(" ", indent*depth(m, i)) + n.Name}
	if t.o.Titles {
		l.Title = n.Title
	}
	if !v.Known() {
		l.Value, l.Style, l.Why = "–", dim, t.o.note(a.Why(i))
		return l
	}
	l.Value = page.Figure(m, i, v.Value)
	switch own := "of " + n.Unit; {
	case n.Section != "" && !m.Share(i) && n.Unit != "1":
		l.Unit = page.UnitBehind(m, i)
	case m.Share(i) && n.Unit != "" && n.Unit != m.Unit && l.Title != "":
		l.Title = own + ". " + l.Title
	case m.Share(i) && n.Unit != "" && n.Unit != m.Unit:
		l.Unit = own
	}
	if v.Doubt != account.DoubtRange {
		l.Bar = page.Bar(v.Value, scale(a, i))
	}
	if !math.IsNaN(v.Error) {
		l.Error = page.Figure(m, i, v.Error)
	}
	if !math.IsNaN(v.Coverage) {
		l.Cover = page.Coverage(v.Coverage)
	}
	end := t.end(a) == i
	mark := bottleneckMark
	if end && m.Nodes[a.Bottleneck[0]].Useful() {
		mark = usefulMark
	}
	switch {
	case v.Doubt == account.DoubtRange:
		l.Mark, l.Style = "impossible", dim
	case !v.Reliable():
		l.Mark, l.Style = "uncertain", dim
	case end:
		l.Mark, l.Style = mark, hot
	case onPath(a, i):
		l.Style = bold
	}
	if end && l.Mark != mark {
		l.Mark = mark + ", " + l.Mark
	}
	for _, more := range []string{t.rivalry(a, i), t.standing(a, i)} {
		l.Mark = join(l.Mark, more)
	}
	return l
}

// join puts two remarks behind each other.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// end is the deepest node of the bottleneck path that is shown; -1 if none is.
func (t *tree) end(a *account.Account) int {
	for k := len(a.Bottleneck) - 1; k >= 0; k-- {
		if t.shown[a.Bottleneck[k]] {
			return a.Bottleneck[k]
		}
	}
	return -1
}

func onPath(a *account.Account, i int) bool {
	return slices.Contains(a.Bottleneck, i)
}

func depth(m *model.Model, i int) int {
	d := 0
	for j := m.Nodes[i].Above; j >= 0; j = m.Nodes[j].Above {
		d++
	}
	return d
}

// scale is the value of a full bar: 1 for shares, else the value of the root.
func scale(a *account.Account, i int) float64 {
	m := a.Model()
	if m.Share(i) {
		return 1
	}
	root := i
	for j := i; j >= 0; j = m.Nodes[j].Above {
		root = j
	}
	if root == i && len(m.Nodes[i].Children) == 0 {
		return math.NaN()
	}
	return a.Nodes[root].Value
}

// audit says what adds up and what does not: identities and the closure of the
// levels; what relations say about the program is the audit command's.
func (t *tree) audit(a *account.Account) {
	hold, findings := 0, 0
	var bad []string
	for i := range a.Checks {
		c := &a.Checks[i]
		switch {
		case c.State == account.Skipped || c.Common && !c.Contradicts():
		case !c.Identity && !c.Closure():
			findings++
		case c.State == account.Holds:
			hold++
		default:
			bad = append(bad, failText(c))
		}
	}
	text := ""
	switch n := hold + len(bad); {
	case n == 0:
	case len(bad) == 0 && n == 1:
		text = "the one check that could be made holds"
	case len(bad) == 0:
		text = fmt.Sprintf("all %d checks that could be made hold", hold)
	default:
		text = fmt.Sprintf("%d of %d checks fail:", len(bad), n)
	}
	if findings > 0 && len(t.h.Files) == 1 && len(bad) == 0 {
		if s := t.o.Hint("", counts.Fix{Action: counts.Audit}); s != "" && text != "" {
			text += "; " + s
		} else {
			text += s
		}
	}
	if text != "" {
		t.Paragraph("audit", text, 10, plain)
	}
	for _, s := range bad {
		t.Paragraph("", s, 10, plain)
	}
}

func failText(c *account.Check) string {
	s := c.Name + ": " + sides(c)
	if len(c.Events) > 0 {
		s += ", of " + listed(c.Events)
	}
	if c.Text != "" {
		s += "; " + c.Text
	}
	return s
}

func (t *tree) notes(a *account.Account) {
	label := "note"
	for _, n := range append(t.h.withMeasured(t.o.Texts(a.Notes)), doubts(a, t.shown)...) {
		t.Paragraph(label, n, 10, plain)
		label = ""
	}
	if u := a.Binding.Other; len(u) > 0 {
		t.Paragraph("other", "counted on the processor's other cores, and no part of this account: "+strings.Join(u, ", "), 10, plain)
	}
	if u := a.Binding.Unknown; len(u) > 0 && t.h.Unknown.Text == "" {
		t.Paragraph("unknown", "not in the event table of "+t.h.CPU.Name+": "+strings.Join(u, ", "), 10, plain)
	}
}

// noError says why a shown node has no error; "" if none lacks one.
func noError(a *account.Account, shown []bool) string {
	for i := range shown {
		if why, _ := a.NoError(i); shown[i] && why != "" {
			return why
		}
	}
	return ""
}

// doubts says why nodes are grey, those with one reason together; for values
// that are possible but look odd, the model's own explanation.
func doubts(a *account.Account, shown []bool) []string {
	m := a.Model()
	by := map[account.Doubt][]string{}
	for i := range m.Nodes {
		if shown[i] && a.Nodes[i].Doubt != account.DoubtNone {
			by[a.Nodes[i].Doubt] = append(by[a.Nodes[i].Doubt], m.Nodes[i].Name)
		}
	}
	var list []string
	for d := account.DoubtRange; d.String() != ""; d++ {
		if names := by[d]; len(names) > 0 {
			list = append(list, "unreliable: "+few(names)+" ("+d.String()+")")
		}
	}
	if why := noError(a, shown); why != "" {
		list = append(list, "± is "+why)
	}
	list = append(list, assumptions(a, shown)...)
	if apart := apart(a, shown); len(apart) > 0 {
		list = append(list, "of events of different runs: "+few(apart))
	}
	for i := range m.Nodes {
		if names := a.Includes(i); shown[i] && len(names) > 0 {
			list = append(list, m.Nodes[i].Name+" includes what is not known: "+strings.Join(names, ", "))
		}
	}
	for i := range m.Nodes {
		if n := &m.Nodes[i]; shown[i] && n.Negative != "" && a.Nodes[i].Value < 0 {
			list = append(list, n.Name+" is negative: "+n.Negative)
		}
	}
	return list
}

// assumptions lists the nodes with numbers that stand for events that were not counted.
func assumptions(a *account.Account, shown []bool) []string {
	var invented, left []string
	for i := range a.Nodes {
		v, name := &a.Nodes[i], a.Model().Nodes[i].Name
		switch {
		case !shown[i] || !v.Known() || len(v.Assumed) == 0:
		case slices.ContainsFunc(v.Assumed, func(s string) bool { return !strings.HasPrefix(s, "0 ") }):
			invented = append(invented, name+" ("+strings.Join(v.Assumed, ", ")+")")
		default:
			left = append(left, name)
		}
	}
	var list []string
	if len(invented) > 0 {
		list = append(list, "numbers stand for missing events: "+few(invented))
	}
	if len(left) > 0 {
		list = append(list, "parts with missing events are taken as 0: "+few(left))
	}
	return list
}

// assumedText says which numbers stand for events that were not counted.
func assumedText(list []string) string { return "the formula takes " + strings.Join(list, ", ") }

// few names the first of many names.
func few(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// apart lists the nodes that rest on events of different runs.
func apart(a *account.Account, shown []bool) (names []string) {
	m := a.Model()
	if !slices.ContainsFunc(a.Binding.Layout.Columns, func(c counts.Column) bool { return c.Parts > 1 }) {
		return nil
	}
	for i := range m.Nodes {
		if v := &a.Nodes[i]; shown[i] && v.Known() && !v.Together {
			names = append(names, m.Nodes[i].Name)
		}
	}
	return names
}

// next says what to try about the bottleneck, and which commands say more. A
// command is never broken: it is to be copied.
func (t *tree) next(a *account.Account, most int) {
	if last := len(a.Bottleneck) - 1; last >= 0 && len(a.Next(t.h.provenance())) > 0 {
		if s := advice(a, a.Bottleneck[last]); s != "" {
			t.Paragraph("try", s, 10, plain)
		}
	}
	label := "next"
	steps := t.o.steps(t.h, a)
	for _, s := range steps[:min(len(steps), most)] {
		t.step(label, s)
		label = ""
	}
}

// stepsMost is how many next steps a screen has.
const stepsMost = 2

// advice is the first thing to try about a node. To follow its parts is what the
// tree itself says.
func advice(a *account.Account, node int) string {
	for _, s := range a.Advice(node) {
		if !strings.HasPrefix(s, "follow the larg") {
			return s
		}
	}
	return ""
}

// step writes a command, and behind it or on the next line what it answers.
func (t *tree) step(label string, s Step) {
	const hang, apart = 10, 5
	front := fmt.Sprintf("%-*s", hang, strings.Repeat(" ", indent)+label)
	t.Out.WriteString(t.Paint(front, faint) + s.Command)
	if hang+page.Runes(s.Command)+apart+page.Runes(s.Why) <= t.Width {
		t.Out.WriteString(strings.Repeat(" ", apart) + t.Paint(s.Why, faint) + "\n")
		return
	}
	t.Out.WriteByte('\n')
	t.Paragraph("", s.Why, hang+indent, faint)
}
