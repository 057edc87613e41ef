package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// A Profile says what the accounts of a report are parts of, if they are those of
// places in the code. The first account is then that of the whole, and those of
// the places follow, the largest first.
type Profile struct {
	By      counts.Kind // Module, Function, Line or Instruction
	Event   string      // by which places are compared, as the recording spells it
	What    string      // that the event counts, in words: "time", "cycles"; "" is the event
	Samples int64       // of the event

	Places    int     // there are in all
	Left      int     // places that are not in the report
	LeftShare float64 // of the event's total, that they have together

	// Flat says why there is nothing but the shares: no method fits. It is "" if
	// one does.
	Flat string

	total float64 // of the event, by the first account
}

// hotspot is the share from which on a place is marked.
const hotspot = 0.05

// share returns an account's part of the whole, which the first account is of,
// and the samples it rests on; NaN if that is not known.
func (p *Profile) share(a *account.Account) (share float64, samples int64) {
	for _, c := range a.Counts() {
		if c.As == p.Event || c.As == "" && c.Event == p.Event {
			if a.Scope.Code == nil {
				p.total = c.Value
			}
			return c.Value / p.total, c.Samples
		}
	}
	return math.NaN(), 0
}

// what says what the shares are of.
func (p *Profile) what() string {
	if p.What != "" {
		return p.What
	}
	return p.Event
}

// profile is the writer for people where accounts are of places in the code: one
// line for each, with its share of the whole, one column for each node. Lines are
// kept until the end, so as to be aligned.
type profile struct {
	rows
	lines  []profileLine
	widths []int // of the nodes' columns
	grey   bool  // a value is not to be relied upon
	notes  []string
}

type profileLine struct {
	name, module   string
	share, samples string
	hot            bool
	cells          []profileCell
}

type profileCell struct {
	text string
	st   style
}

func newProfile(w io.Writer, o Options) *profile {
	return &profile{rows: rows{tree: tree{w: w, o: o}}}
}

func (p *profile) Account(a *account.Account) error {
	share, samples := p.h.Profile.share(a)
	l := profileLine{name: "all", share: percentOf(share), samples: trim(float64(samples))}
	if p.n == 0 {
		p.begin(a)
		for _, n := range a.Notes {
			p.notes = append(p.notes, strings.Clone(n))
		}
	} else {
		l.name, l.module = placeName(&a.Scope)
		l.hot = share >= hotspot
	}
	p.n++
	for _, i := range p.columns {
		l.cells = append(l.cells, p.cell(a, i))
	}
	p.lines = append(p.lines, l)
	return nil
}

// percentOf is a share with one decimal, so that columns of them line up.
func percentOf(share float64) string {
	if math.IsNaN(share) {
		return "–"
	}
	return strconv.FormatFloat(share*100, 'f', 1, 64) + " %"
}

// placeName divides a place's label into what it is and the module that it is in.
func placeName(s *counts.Scope) (name, module string) {
	if s.Code == nil || s.Kind == counts.Module {
		return s.Label, ""
	}
	name, module, _ = strings.Cut(s.Label, "  (")
	return name, strings.TrimSuffix(module, ")")
}

// begin chooses the columns by the account of the whole.
func (p *profile) begin(a *account.Account) {
	m := a.Model()
	level := max(1, p.o.Level)
	for i := range m.Nodes {
		if p.h.Profile.Flat == "" && p.wanted(a, i, level) && a.Nodes[i].Known() {
			p.columns = append(p.columns, i)
		}
	}
	what := fmt.Sprintf("%s by %s", p.h.Profile.what(), p.h.Profile.By)
	parts := []string{what}
	if a.Label != "" {
		parts = append(parts, a.Label)
	}
	if !math.IsNaN(a.Duration) {
		parts = append(parts, duration(a.Duration))
	}
	if p.h.Profile.Flat == "" {
		parts = append(parts, "on "+p.h.CPU.Name, m.Name+" "+m.Version)
	}
	parts = append(parts, fmt.Sprintf("from %s samples of %s", trim(float64(p.h.Profile.Samples)), p.h.Profile.Event))
	p.paragraph("", strings.Join(parts, ", "), 0, bold)
	why := p.h.Profile.Flat
	if why == "" && len(p.columns) == 0 {
		why = fmt.Sprintf("of %s nothing else is known from what was sampled (cyclestack plan --cpu %s lists what it needs)", m.Name, p.h.CPU.Name)
	}
	if why != "" {
		p.paragraph("", "shares only: "+why, 0, faint)
	}
	p.out.WriteByte('\n')
}

func (p *profile) cell(a *account.Account, i int) profileCell {
	v := &a.Nodes[i]
	switch {
	case !v.Known():
		return profileCell{"–", dim}
	case !v.Reliable():
		p.grey = true
		return profileCell{figure(a.Model(), i, v.Value) + "?", dim}
	case onPath(a, i):
		return profileCell{figure(a.Model(), i, v.Value), hot}
	}
	return profileCell{figure(a.Model(), i, v.Value), plain}
}

// End writes the lines.
func (p *profile) End() error {
	if p.n > 0 {
		p.write()
	}
	_, err := io.WriteString(p.w, p.out.String())
	return err
}

// Widths of the columns of places.
const (
	nameLeast   = 16
	moduleLeast = 8
	moduleMost  = 24
	shareWidth  = 8
	sampleWidth = 10
)

func (p *profile) write() {
	name, module := nameLeast, 0
	for i := range p.lines {
		name = max(name, runes(p.lines[i].name)+gap)
		if p.lines[i].module != "" {
			module = max(module, moduleLeast, min(runes(p.lines[i].module)+gap, moduleMost))
		}
	}
	nodes := 0
	p.widths = make([]int, len(p.columns))
	for k := range p.columns {
		p.widths[k] = p.columnWidth(k)
		nodes += p.widths[k]
	}
	room := p.o.Width - shareWidth - sampleWidth - 2*gap - module
	name = min(name, max(nameLeast, room-nodes, room*2/5))
	room -= name
	shown := 0
	for ; shown < len(p.columns) && room >= p.widths[shown]; shown++ {
		room -= p.widths[shown]
	}
	p.left, p.columns = len(p.columns)-shown, p.columns[:shown]
	p.head(name, module)
	for i := range p.lines {
		p.place(&p.lines[i], name, module)
	}
	p.foot()
}

// head writes the headings, in as many lines as the nodes' names need.
func (p *profile) head(name, module int) {
	share := p.h.Profile.what()
	if runes(share) > shareWidth {
		share = "share"
	}
	height := 1
	for _, i := range p.columns {
		height = max(height, len(heading(p.h.Model.Nodes[i].Name)))
	}
	for row := range height {
		line := strings.Repeat(" ", shareWidth+sampleWidth+2+name+gap+module)
		if row == height-1 {
			line = fmt.Sprintf("%*s%*s  %s%s", shareWidth, share, sampleWidth, "samples",
				padded("  "+p.h.Profile.By.String(), name+gap), padded("module", moduleMost)[:module])
		}
		for k, i := range p.columns {
			words := heading(p.h.Model.Nodes[i].Name)
			word := ""
			if at := row - (height - len(words)); at >= 0 {
				word = words[at]
			}
			line += fmt.Sprintf("%*s", p.widths[k], word)
		}
		p.out.WriteString(p.paint(strings.TrimRight(line, " "), faint) + "\n")
	}
}

// figureWidth is the width that a column needs for its figures.
const figureWidth = 8

// heading divides a node's name at its underscores into lines for a narrow
// column.
func heading(name string) []string {
	words := strings.SplitAfter(name, "_")
	width := figureWidth
	for _, w := range words {
		width = max(width, runes(w))
	}
	var lines []string
	for _, w := range words {
		if n := len(lines); n > 0 && runes(lines[n-1])+runes(w) <= width {
			lines[n-1] += w
			continue
		}
		lines = append(lines, w)
	}
	return lines
}

// columnWidth returns the width of a node's column.
func (p *profile) columnWidth(k int) int {
	width := figureWidth
	for _, w := range heading(p.h.Model.Nodes[p.columns[k]].Name) {
		width = max(width, runes(w))
	}
	for i := range p.lines {
		width = max(width, runes(p.lines[i].cells[k].text))
	}
	return width + gap
}

// place writes the line of a place.
func (p *profile) place(l *profileLine, name, module int) {
	mark, st := " ", plain
	if l.hot {
		mark, st = "*", bold
	}
	out := fmt.Sprintf("%*s%*s  %s ", shareWidth, l.share, sampleWidth, l.samples, mark)
	out += p.paint(padded(cut(shorter(l.name, name-gap), name-gap), name), st) + padded(cut(l.module, max(1, module-gap)), module)
	for k, width := range p.widths[:len(p.columns)] {
		c := l.cells[k]
		out += strings.Repeat(" ", max(0, width-runes(c.text))) + p.paint(c.text, c.st)
	}
	p.out.WriteString(strings.TrimRight(out, " ") + "\n")
}

// shorter leaves out the path of a Go package if a name is too long.
func shorter(name string, width int) string {
	if runes(name) <= width {
		return name
	}
	head, _, _ := strings.Cut(name, "(")
	head, _, _ = strings.Cut(head, "[")
	return name[strings.LastIndex(head, "/")+1:]
}

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-runes(s)))
}

// foot says what was left out, and how far to trust the rest.
func (p *profile) foot() {
	h := p.h.Profile
	p.out.WriteByte('\n')
	if h.Left > 0 {
		p.paragraph("left out", fmt.Sprintf("%s more of %s %ss, %s of %s together (--top %d shows all)",
			trim(float64(h.Left)), trim(float64(h.Places)), h.By, percentOf(h.LeftShare), h.what(), h.Places), 12, plain)
	}
	for i := range p.lines {
		if p.lines[i].hot {
			p.paragraph("*", fmt.Sprintf("a hotspot: %g %% of %s or more", 100*hotspot, h.what()), 12, plain)
			break
		}
	}
	if p.grey {
		p.paragraph("?", "not to be relied upon, most often for too few samples: its 95 % interval is as wide as the value", 12, plain)
	}
	if p.left > 0 {
		p.paragraph("note", fmt.Sprintf("%d more nodes do not fit in %d columns: --width, --nodes, or --format csv", p.left, p.o.Width), 12, plain)
	}
	for _, n := range p.notes {
		p.paragraph("note", n, 12, plain)
	}
}
