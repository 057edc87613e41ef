package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// rows is the writer for people where there are many accounts: one line for
// each interval, CPU or thread, one column for each node of the first level.
type rows struct {
	tree
	columns []int
	times   []int // of Account.Times, behind the others
	named   []string
	left    int // columns of nodes that did not fit
	label   int // width of the first column
	text    []byte
}

// labelLeast is the least width of the first column.
const labelLeast = 12

func newRows(w io.Writer, o Options) *rows { return &rows{tree: *newTree(w, o)} }

func (r *rows) Account(a *account.Account) error {
	r.Out.Reset()
	if r.n == 0 {
		r.begin(a)
	}
	r.n++
	r.text = append(r.text[:0], r.Out.String()...)
	r.line(a)
	_, err := r.To.Write(r.text)
	return err
}

// begin chooses the columns and writes their headings.
func (r *rows) begin(a *account.Account) {
	m := a.Model()
	r.label = max(labelLeast, page.Runes(rowLabel(a))+gap)
	level := max(1, r.o.Level)
	room := r.Width - r.label
	for i := range m.Nodes {
		if !r.wanted(a, i, level) {
			continue
		}
		if room -= r.width(a, i); room < 0 {
			r.left++
			continue
		}
		r.columns = append(r.columns, i)
	}
	for _, i := range timesColumns(a.Times) {
		if room -= r.width(a.Times, i); room < 0 {
			r.left++
			continue
		}
		r.times = append(r.times, i)
	}
	r.ownColumns(a, room)
	parts := []string{"on " + r.h.CPU.Name, r.h.Model.Name + " " + r.h.Model.Version, unitText(m), r.h.source()}
	if a.Label != "" {
		parts = append([]string{a.Label}, parts...)
	}
	r.Paragraph("", strings.Join(parts, ", "), 0, bold)
	r.Out.WriteByte('\n')
	head := fmt.Sprintf("%-*s", r.label, "")
	for _, i := range r.columns {
		head += fmt.Sprintf("%*s", r.width(a, i), m.Nodes[i].Name)
	}
	for _, i := range r.times {
		head += fmt.Sprintf("%*s", r.width(a.Times, i), a.Times.Model().Nodes[i].Name)
	}
	for _, name := range r.named {
		head += fmt.Sprintf("%*s", ownWidth(name), name)
	}
	r.Out.WriteString(r.Paint(head, faint) + "\n")
}

// wanted says whether a node gets a column: those asked for by name, else those of the tree's
// upper levels, or the sections' if the tree says nothing.
func (r *rows) wanted(a *account.Account, i, level int) bool {
	m := a.Model()
	n := &m.Nodes[i]
	switch {
	case r.o.Known && !a.Nodes[i].Known():
		return false
	case r.o.Nodes != "":
		return n.Match(r.o.Nodes)
	case n.Level == 0 && m.Share(i):
		return false
	case n.Section == "":
		return n.Level <= level && (saysMuch(a) || !saysAnything(a) || n.Level == 0 && a.Nodes[i].Known())
	}
	return a.Nodes[i].Known() && (r.o.All || !saysMuch(a))
}

// saysAnything reports whether a node outside the main tree is known.
func saysAnything(a *account.Account) bool {
	m := a.Model()
	for i := range m.Nodes {
		if m.Nodes[i].Section != "" && a.Nodes[i].Known() {
			return true
		}
	}
	return false
}

// width is the width of a node's column.
func (r *rows) width(a *account.Account, i int) int {
	const least = 8
	return max(least, page.Runes(a.Model().Nodes[i].Name)) + gap
}

// line writes one account. The value that its bottleneck path begins with stands out,
// and unreliable values are grey.
func (r *rows) line(a *account.Account) {
	label := page.Cut(rowLabel(a), r.label-1)
	r.text = append(r.text, label...)
	r.pad(r.label - page.Runes(label))
	r.cells(a, r.columns)
	if a.Times != nil {
		r.cells(a.Times, r.times)
	}
	r.ownCells(a)
	r.text = append(r.text, '\n')
}

// pad writes blanks.
func (r *rows) pad(n int) {
	for range n {
		r.text = append(r.text, ' ')
	}
}

// cells writes the values of nodes.
func (r *rows) cells(a *account.Account, nodes []int) {
	for _, i := range nodes {
		v := &a.Nodes[i]
		text, st := "–", dim
		if v.Known() {
			text, st = page.Figure(a.Model(), i, v.Value), plain
			switch {
			case !v.Reliable():
				text, st = text+"?", dim
			case onPath(a, i):
				st = hot
			}
		}
		r.pad(max(1, r.width(a, i)-page.Runes(text)))
		r.text = append(r.text, r.Paint(text, st)...)
	}
}

// rowLabel is what a row is about.
func rowLabel(a *account.Account) string {
	label := ""
	if a.Interval {
		label = page.Trim(a.Start+a.Duration) + " s"
	}
	if l := a.Scope.Label; l != "" {
		if label != "" {
			label += " "
		}
		label += l
	}
	return label
}

// End says what was left out.
func (r *rows) End() error {
	r.Out.Reset()
	var notes []string
	if r.left > 0 {
		notes = append(notes, r.o.Hint(fmt.Sprintf("%d more nodes do not fit in %d columns", r.left, r.Width), counts.Fix{Action: counts.ShowColumns}))
	}
	for i, n := range r.h.withMeasured(notes) {
		if i == 0 {
			r.Out.WriteByte('\n')
		}
		r.Paragraph("note", n, 10, plain)
	}
	return r.Flush()
}
