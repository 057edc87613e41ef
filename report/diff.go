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
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/model"
)

// A DiffHeader says what was compared.
type DiffHeader struct {
	Header
	Old, New string        // the names of the two sides
	Commands [2]string     // what the two sides ran, where that is known
	What     string        // that runs took: "cycles", "time", or an event
	Per      string        // the unit of work: "instruction"
	Assumed  bool          // nobody said that it is the unit of work
	Paired   bool          // runs were to be compared in pairs
	By       counts.Kind   // of place in the code; Run for nodes
	Notes    []counts.Note // what the recordings are short of
}

// A Comparison is a document: what changed, by nodes.
type Comparison struct {
	Header DiffHeader
	*account.Difference
}

func newNodeDiff(w io.Writer, c Comparison, o Options) *diffWriter {
	n := &nodeDiff{d: c.Difference}
	n.diffWriter = newDiffWriter(w, c.Header, o, &c.Total, c.Runs, c.Basis)
	n.method = slices.ContainsFunc(c.Nodes, func(c account.Change) bool { return !math.IsNaN(c.Delta) })
	n.body = n
	return n.diffWriter
}

// newDiffWriter returns the writer of a comparison.
func newDiffWriter(w io.Writer, h DiffHeader, o Options, total *account.Change, runs [2]int, basis account.Basis) *diffWriter {
	t := &diffWriter{tree: newTree(w, o), h: h, total: total, runs: runs, basis: basis, unit: 1}
	if h.What == account.Time.String() || h.What == account.Elapsed.String() {
		t.unit, t.unitName = timeUnit(total.Old)
	}
	return t
}

// timeUnit is the unit that suits a time in nanoseconds.
func timeUnit(ns float64) (float64, string) {
	switch {
	case ns >= 1e9:
		return 1e9, "s"
	case ns >= 1e6:
		return 1e6, "ms"
	case ns >= 1e3:
		return 1e3, "µs"
	}
	return 1, "ns"
}

// A diffWriter prints what all comparisons have.
type diffWriter struct {
	*tree
	h        DiffHeader
	total    *account.Change
	runs     [2]int
	basis    account.Basis
	unit     float64 // of printed amounts
	unitName string
	method   bool // the parts are a method's
	body     diffBody
	renames  []string // what modules were called in the old runs
}

// A diffBody is what a comparison has of its own.
type diffBody interface {
	heads() []string // of columns; the first and the last are words
	rows() []diffRow // the first is the total
	more() []string  // what the answer adds to that about the total
	doubts() []string
	fill(*jsonDiff) // the parts, for JSON

	seen() (name string, part float64) // the largest unchanged part, and the change of it that would show
}

func (t *diffWriter) print(format string) error {
	switch format {
	case "markdown":
		return t.markdown()
	case "json":
		return page.JSON(t.To, t.document())
	}
	return t.text()
}

// A diffRow is one line of a comparison.
type diffRow struct {
	name   string
	depth  int
	change *account.Change
	rest   bool   // what the lines before leave of a change
	about  string // besides the verdict
	own    bool   // the change in parts of its own old value has a column
}

// A nodeDiff is a comparison by nodes.
type nodeDiff struct {
	*diffWriter
	d *account.Difference
}

// rows are the lines: the total, the known nodes, and below each what its children leave of its
// change, if it matters.
func (t *nodeDiff) rows() []diffRow {
	rows := []diffRow{{name: "all " + t.h.What, change: t.total}}
	var roots []int
	for i := range t.d.Model.Nodes {
		if n := &t.d.Model.Nodes[i]; n.Parent == "" && n.Section == "" {
			roots = append(roots, i)
		}
	}
	if len(roots) == 1 && t.d.Model.Nodes[roots[0]].Level == 0 {
		roots = t.d.Model.Nodes[roots[0]].Children // the root is the total
	}
	return t.below(rows, 1, roots, t.total)
}

func (t *nodeDiff) below(rows []diffRow, depth int, nodes []int, parent *account.Change) []diffRow {
	shown := sorting.Delete(slices.Clone(nodes), func(i int) bool {
		return math.IsNaN(t.d.Nodes[i].Delta) || !t.visible(i)
	})
	slices.SortStableFunc(shown, func(i, j int) int {
		a, b := math.Abs(t.d.Nodes[i].Delta), math.Abs(t.d.Nodes[j].Delta)
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	left := parent.Delta
	for _, i := range shown {
		c := &t.d.Nodes[i]
		left -= c.Delta
		rows = append(rows, diffRow{name: t.d.Model.Nodes[i].Name, depth: depth, change: c})
		rows = t.below(rows, depth+1, t.d.Model.Nodes[i].Children, c)
	}
	if len(shown) > 0 {
		rows = t.leftOver(rows, "(in none of these)", depth, left)
	}
	return rows
}

// leftOver adds the line of what others leave of a change, unless that is next to
// nothing.
func (t *diffWriter) leftOver(rows []diffRow, name string, depth int, left float64) []diffRow {
	if !t.total.Leaves(left) {
		return rows
	}
	nan := math.NaN()
	rest := &account.Change{Old: nan, New: nan, Delta: left, Low: nan, High: nan, P: nan, Effect: nan}
	return append(rows, diffRow{name: name, depth: depth, change: rest, rest: true})
}

// visible reports whether the options ask for a node.
func (t *nodeDiff) visible(i int) bool {
	return t.o.Level == 0 || t.d.Model.Nodes[i].Level <= t.o.Level
}

func (t *nodeDiff) heads() []string {
	return []string{t.took(), "old", "new", "change", "95 %", "p", ""}
}

func (t *nodeDiff) more() []string { return nil }

func (t *nodeDiff) seen() (name string, part float64) { return "", 0 }

// took says what is compared: "cycles per instruction".
func (t *diffWriter) took() string {
	text := t.h.What + " per " + t.h.Per
	if t.unitName != "" {
		text += ", " + t.unitName
	}
	return text
}

// ofAll is a change in parts of all that the old runs took. Those of a node's children add up
// to its own.
func (t *diffWriter) ofAll(v float64) float64 { return v / t.total.Old }

func signed(share float64) string {
	if math.IsNaN(share) || math.IsInf(share, 0) {
		return "–"
	}
	if math.Abs(share) > partsMost {
		return fmt.Sprintf("%+.0f ×", share)
	}
	return fmt.Sprintf("%+.2f %%", share*100)
}

// interval is the 95 % interval of a change, in parts of all that the old runs took.
func (t *diffWriter) interval(c *account.Change) string {
	if math.IsNaN(c.Low) || t.basis == account.ByExactCounts && math.IsNaN(c.P) {
		return ""
	}
	return fmt.Sprintf("%+.2f…%+.2f", t.ofAll(c.Low)*100, t.ofAll(c.High)*100)
}

func (t *diffWriter) cells(r diffRow) []string {
	verdict := r.change.Verdict.String()
	if r.rest {
		verdict = ""
	}
	verdict = join(verdict, r.about)
	p := ""
	if !math.IsNaN(r.change.P) {
		p = strconv.FormatFloat(r.change.P, 'g', 2, 64)
	}
	list := []string{r.name, page.Trim(r.change.Old / t.unit), page.Trim(r.change.New / t.unit), signed(t.ofAll(r.change.Delta))}
	if r.own {
		list = append(list, signed(r.change.Relative()))
	}
	return append(list, t.interval(r.change), p, verdict)
}

func (t *diffWriter) title() string {
	text := fmt.Sprintf("%s (%s) → %s (%s)", t.h.Old, page.Several(t.runs[0], "run"), t.h.New, page.Several(t.runs[1], "run"))
	if !t.method {
		return text
	}
	return text + fmt.Sprintf(", on %s, %s %s", t.h.CPU.Name, t.h.Model.Name, t.h.Model.Version)
}

// summary is the answer in one sentence.
func (t *diffWriter) summary() string {
	c := t.total
	took := t.h.What + " per " + t.h.Per
	switch c.Verdict {
	case account.More, account.Less:
		return fmt.Sprintf("%s %s: %s", took, signed(c.Relative()), c.Verdict)
	case account.Same:
		return fmt.Sprintf("no change of %s: one of 1 %% or more is ruled out", took)
	}
	few := fmt.Sprintf("cannot tell: %s %s, but with fewer than", took, signed(c.Relative()))
	switch least := min(t.runs[0], t.runs[1]); {
	case t.basis == account.ByExactCounts: // of a simulator
	case t.h.Paired && least < account.PairsEnough:
		return fmt.Sprintf("%s %d pairs, nothing says how much they differ by chance", few, account.PairsEnough)
	case least < account.RunsEnough:
		return fmt.Sprintf("%s %d runs of each, nothing says how much runs differ by chance", few, account.RunsEnough)
	}
	return fmt.Sprintf("cannot tell: %s %s, which may be chance; more runs tell", took, signed(c.Relative()))
}

// remarks are what has to be known to read the figures.
func (t *diffWriter) remarks() []string {
	list := append(slices.Clone(t.renames), t.o.Texts(t.h.builds(false))...)
	if t.h.Assumed && t.h.Per == "run" {
		list = append(list, t.o.Hint("each run is taken to have done the same work", counts.Fix{Action: counts.NameWork}))
	}
	return list
}

// partsMost is the largest change that is printed in percent, in parts of one.
const partsMost = 10

// doubts are what may make the comparison pointless. They precede its figures.
func (t *diffWriter) doubts() []string {
	var list []string
	if old, new := t.h.Commands[0], t.h.Commands[1]; old != "" && new != "" && old != new {
		list = append(list, fmt.Sprintf("the command lines differ: %s → %s", page.Cut(old, nameMost), page.Cut(new, nameMost)))
	}
	return append(append(list, t.o.Texts(t.h.builds(true))...), t.body.doubts()...)
}

// builds are the notes that are about other builds, or the others.
func (h *DiffHeader) builds(other bool) []counts.Note {
	return sorting.Delete(slices.Clone(h.Notes), func(n counts.Note) bool { return (n.Kind == counts.NoteOtherBuild) != other })
}

// doubts says which sides are mostly unexplained: their parts add up to less than half.
func (t *nodeDiff) doubts() []string {
	rows := t.rows()
	var parts [2]float64
	known := false
	for _, r := range rows[1:] {
		if r.depth != 1 || r.rest || t.isRest(r.name) {
			continue
		}
		known = true
		parts[0] += max(r.change.Old, 0)
		parts[1] += max(r.change.New, 0)
	}
	if !known {
		return nil
	}
	var list []string
	for i, whole := range []float64{t.total.Old, t.total.New} {
		if side := []string{"old", "new"}[i]; parts[i] < whole/2 {
			list = append(list, fmt.Sprintf("the %s side is mostly unexplained: its parts are %s of its %s", side, page.Percent(parts[i]/whole), t.h.What))
		}
	}
	return list
}

// isRest reports whether a node is what others leave.
func (t *nodeDiff) isRest(name string) bool {
	i := slices.IndexFunc(t.d.Model.Nodes, func(n model.Node) bool { return n.Name == name })
	return i >= 0 && (t.d.Model.Nodes[i].Rest || name == "Unaccounted")
}

func (t *diffWriter) text() error {
	t.Paragraph("", t.title(), 0, bold)
	for _, text := range t.doubts() {
		t.Paragraph("", text, 0, bold)
	}
	t.Out.WriteByte('\n')
	rows := t.body.rows()
	table := [][]string{t.body.heads()}
	for _, r := range rows {
		cells := t.cells(r)
		cells[0] = strings.Repeat(" ", 2*r.depth) + cells[0]
		table = append(table, cells)
	}
	if t.h.By != counts.Run {
		table = t.narrowed(table)
	}
	table = withoutEmpty(table)
	t.aligned(table, func(k int) style {
		if k == 0 {
			return faint
		}
		return verdictStyle(rows[k-1])
	})
	t.Out.WriteByte('\n')
	const hang = 10
	t.Paragraph("answer", t.summary(), hang, plain)
	for _, text := range t.body.more() {
		t.Paragraph("", text, hang, plain)
	}
	change := fmt.Sprintf("in percent of all old %s, so that those of %s add up", t.h.What, t.parts())
	if t.h.By != counts.Run {
		change += fmt.Sprintf("; own: in percent of what the %s took", t.h.By)
	}
	if s := t.power(); s != "" {
		t.Paragraph("power", s, hang, faint)
	}
	t.Paragraph("change", change, hang, faint)
	t.Paragraph("chance", t.chance(), hang, faint)
	notes := t.h.withMeasured(t.remarks())
	if len(notes) > 1 && t.o.Lines > 0 && !t.o.Notes {
		t.Paragraph("notes", t.o.Hint(fmt.Sprint(len(notes)), counts.Fix{Action: counts.ShowNotes}), hang, plain)
		return t.Flush()
	}
	for _, n := range notes {
		t.Paragraph("note", n, hang, faint)
	}
	return t.Flush()
}

// shortName shortens what a line is about: a function's name, and not its module.
func shortName(name string, width int) string {
	text := strings.TrimLeft(name, " ")
	depth := name[:len(name)-len(text)]
	function, module, ok := strings.Cut(text, "  (")
	if !ok || page.Runes(name) <= width {
		return depth + page.Cut(page.Shorter(text, width-len(depth)), width-len(depth))
	}
	module = "  (" + module
	left := max(width-len(depth)-page.Runes(module), nameLeastRoom/2)
	return depth + page.Cut(page.Cut(page.Shorter(function, left), left)+module, width-len(depth))
}

// power says how small a change the runs would show.
func (t *diffWriter) power() string {
	c := t.total
	if !(c.Seen > 0) || !(c.Old > 0) {
		return ""
	}
	text := fmt.Sprintf("such runs show a change of all by %s four times in five", percentOf(c.Seen/c.Old))
	if name, seen := t.body.seen(); name != "" {
		text += fmt.Sprintf(", and of %s by %s of its own", name, percentOf(seen))
	}
	if changed(c) {
		return text
	}
	return text + "; four times as many runs show half as much"
}

// percentOf is a part of one in percent, with two digits.
func percentOf(v float64) string { return fmt.Sprintf("%.2g %%", 100*v) }

// parts are what changes are added up of.
func (t *diffWriter) parts() string {
	if t.h.By == counts.Run {
		return "a node's parts"
	}
	return t.h.By.String() + "s"
}

// chance names the test that separates changes from chance.
func (t *diffWriter) chance() string {
	how := "a permutation test of the runs; without a change at most 1 comparison in 20 reports one"
	switch {
	case t.basis == account.ByPairs:
		how = "old and new runs alternated and were compared in pairs; without a change at most 1 comparison in 20 reports one"
	case t.basis == account.ByExactCounts && !math.IsNaN(t.total.P):
		return "from the ± of both simulations, as their windows are samples; without a change at most 1 comparison in 20 reports one"
	case t.basis == account.ByExactCounts:
		return "none in counts of a simulator"
	case t.basis == account.BySampling:
		return fmt.Sprintf("from the sampling error alone: how runs differ is unknown; count at least %d runs of each, better 10 alternating ones", account.RunsEnough)
	case t.basis == account.NoBasis:
		return fmt.Sprintf("unknown: how runs differ takes at least %d runs of each, better 10 alternating ones", account.RunsEnough)
	}
	return how
}

// nameLeastRoom is how long a name may always be, however narrow the terminal is.
const nameLeastRoom = 24

// narrowed leaves out the columns that can be done without, until the names have
// room.
func (t *diffWriter) narrowed(table [][]string) [][]string {
	for _, head := range []string{"p", "new"} {
		width := page.Sizes(table...)
		if t.room(width) >= width[0] {
			break
		}
		k := slices.Index(table[0], head)
		for i := range table {
			table[i] = slices.Delete(table[i], k, k+1)
		}
	}
	return table
}

// room is what the other columns leave for the first.
func (t *diffWriter) room(width []int) int {
	room := t.Width - indent
	for _, w := range width[1:] {
		room -= gap + w
	}
	return max(room, nameLeastRoom)
}

// aligned writes lines of cells, aligned: the first and the last of each to the left.
// The first, which are names, are shortened if there is no room.
func (t *diffWriter) aligned(table [][]string, styleOf func(int) style) {
	width := page.Sizes(table...)
	width[0] = min(width[0], t.room(width))
	for k, cells := range table {
		cells[0] = shortName(cells[0], width[0])
		line := page.Aligned(cells, width, gap, func(i int) bool { return i == 0 || i == len(cells)-1 })
		t.Out.WriteString(t.Paint(strings.TrimRight(line, " "), styleOf(k)) + "\n")
	}
}

func verdictStyle(r diffRow) style {
	switch {
	case r.rest:
		return faint
	case r.change.Verdict == account.More:
		return hot
	case r.change.Verdict == account.Less:
		return bold
	}
	return plain
}

// withoutEmpty leaves out the columns that say nothing in any row: intervals and chances of
// single runs. The first row has the headings.
func withoutEmpty(table [][]string) [][]string {
	for k := len(table[0]) - 2; k > 0; k-- { // the last is the verdict
		if slices.ContainsFunc(table[1:], func(row []string) bool { return row[k] != "" }) {
			continue
		}
		for i := range table {
			table[i] = slices.Delete(table[i], k, k+1)
		}
	}
	return table
}

func (t *diffWriter) markdown() error {
	for _, text := range t.doubts() {
		fmt.Fprintf(&t.Out, "%s\n\n", markdownText(text))
	}
	fmt.Fprintf(&t.Out, "**%s**\n\n", markdownText(t.summary()))
	for _, text := range t.body.more() {
		fmt.Fprintf(&t.Out, "%s\n\n", markdownText(text))
	}
	heads := t.body.heads()
	t.Out.WriteString("| " + strings.Join(heads, " | ") + " |\n|---|" + strings.Repeat("--:|", len(heads)-2) + "---|\n")
	for _, r := range t.body.rows() {
		cells := t.cells(r)
		for k := range cells {
			cells[k] = markdownText(cells[k])
		}
		cells[0] = strings.Repeat("&nbsp;&nbsp;", r.depth) + cells[0]
		t.Out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	fmt.Fprintf(&t.Out, "\n%s\n", markdownText(t.title()+"; chance: "+t.chance()))
	for _, n := range t.h.withMeasured(t.remarks()) {
		fmt.Fprintf(&t.Out, "\n%s\n", markdownText(n))
	}
	return t.Flush()
}

// markdownText keeps a text from being read as markdown or HTML: names of functions may
// have all its signs in them.
func markdownText(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '|', '*', '`', '[', ']', '\\', '<', '>', '~', '#':
			b.WriteByte('\\')
		case '&':
			b.WriteString("&amp;")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

type jsonDiff struct {
	Schema string       `json:"schema"`
	CPU    jsonCPU      `json:"cpu"`
	Model  jsonModel    `json:"model"`
	What   string       `json:"what"`
	Unit   string       `json:"unit"`
	Per    string       `json:"per"`
	By     string       `json:"by"`
	Basis  string       `json:"basis"`
	Old    jsonSide     `json:"old"`
	New    jsonSide     `json:"new"`
	Total  jsonChange   `json:"total"`
	Nodes  []jsonChange `json:"nodes"`
	Places []jsonChange `json:"places,omitempty"`
	Notes  []string     `json:"notes,omitempty"`
}

type jsonSide struct {
	Name string `json:"name"`
	Runs int    `json:"runs"`
}

type jsonChange struct {
	Node      string       `json:"node,omitempty"`
	Parent    string       `json:"parent,omitempty"`
	Place     string       `json:"place,omitempty"`
	Module    string       `json:"module,omitempty"`
	OldModule string       `json:"old_module,omitempty"`
	Old       *page.Number `json:"old,omitempty"`
	New       *page.Number `json:"new,omitempty"`
	Change    *page.Number `json:"change,omitempty"`
	Relative  *page.Number `json:"relative,omitempty"`
	Low       *page.Number `json:"low,omitempty"`
	High      *page.Number `json:"high,omitempty"`
	P         *page.Number `json:"p,omitempty"`
	Effect    *page.Number `json:"effect,omitempty"`
	Verdict   string       `json:"verdict"`
	Seen      *page.Number `json:"seen,omitempty"`
	Samples   []int64      `json:"samples,omitempty"`
}

func changeOf(c *account.Change) jsonChange {
	return jsonChange{Old: page.Known(c.Old), New: page.Known(c.New), Change: page.Known(c.Delta), Relative: page.Known(c.Relative()),
		Low: page.Known(c.Low), High: page.Known(c.High), P: page.Known(c.P), Effect: page.Known(c.Effect), Verdict: c.Verdict.String(), Seen: page.Known(c.Seen)}
}

func (t *diffWriter) document() jsonDiff {
	h := t.h
	by, unit := "node", "cycles"
	if h.By != counts.Run {
		by = h.By.String()
	}
	switch h.What {
	case account.Cycles.String():
	case account.Time.String(), account.Elapsed.String():
		unit = "ns"
	case account.Slots.String():
		unit = h.What
	default:
		unit = "events"
	}
	head := h.Head("cyclestack.diff/v1")
	doc := jsonDiff{
		Schema: head.Schema, CPU: head.CPU, Model: head.Model,
		What: h.What, Unit: unit, Per: h.Per, By: by, Basis: t.basis.String(),
		Old: jsonSide{h.Old, t.runs[0]}, New: jsonSide{h.New, t.runs[1]},
		Total: changeOf(t.total),
		Nodes: []jsonChange{},
		Notes: append(t.doubts(), t.remarks()...),
	}
	t.body.fill(&doc)
	return doc
}

func (t *nodeDiff) fill(doc *jsonDiff) {
	for i := range t.d.Model.Nodes {
		if c := &t.d.Nodes[i]; !math.IsNaN(c.Delta) && t.visible(i) {
			j := changeOf(c)
			j.Node, j.Parent = t.d.Model.Nodes[i].Name, t.d.Model.Nodes[i].Parent
			doc.Nodes = append(doc.Nodes, j)
		}
	}
}
