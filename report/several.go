package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// columnWriter writes a few accounts next to each other for people: one line for each
// node, one column for each account. It keeps accounts until the end, so that a node
// has a line if any of them knows it.
type columnWriter struct {
	tree
	accounts []*account.Account
}

func (b *columnWriter) Account(a *account.Account) error {
	b.accounts = append(b.accounts, a.Clone())
	return nil
}

// columnLeast is the least width of an account's column: "100.0 % ±10.0?".
const columnLeast = 15

// End writes the lines.
func (b *columnWriter) End() error {
	if len(b.accounts) == 0 {
		return nil
	}
	m := b.h.Model
	b.Paragraph("", strings.Join([]string{fmt.Sprintf("%d accounts", len(b.accounts)), "on " + b.h.CPU.Name, m.Name + " " + m.Version, b.h.source()}, ", "), 0, bold)
	b.Out.WriteByte('\n')
	for i, a := range b.accounts {
		b.Paragraph(letter(i), b.legend(a), indent+len(letter(len(b.accounts)-1))+gap, plain)
	}
	for _, section := range sections(m) {
		b.nodes(section)
	}
	b.foot()
	return b.Flush()
}

// letter names a column: A, B, …, Z, AA.
func letter(i int) string {
	s := string(rune('A' + i%26))
	if i >= 26 {
		return letter(i/26-1) + s
	}
	return s
}

// legend says what an account is of.
func (b *columnWriter) legend(a *account.Account) string {
	parts := []string{}
	if l := scopeLabel(a); l != "" {
		parts = append(parts, l)
	}
	if a.Runs > 1 {
		parts = append(parts, fmt.Sprintf("mean of %d runs", a.Runs))
	}
	if !math.IsNaN(a.Duration) {
		parts = append(parts, page.Duration(a.Duration))
	}
	return strings.Join(parts, ", ")
}

// nodes writes the lines of a section, with as many columns as there is room for.
func (b *columnWriter) nodes(section string) {
	var rows []int
	width := 0
	for i := range b.h.Model.Nodes {
		if b.h.Model.Nodes[i].Section == section && b.wanted(i) {
			rows = append(rows, i)
			width = max(width, page.Runes(b.name(i)))
		}
	}
	if len(rows) == 0 {
		return
	}
	title := section
	if title == "" {
		title = unitText(b.h.Model)
	}
	width = max(width, page.Runes(title)+indent)
	fit := max(1, (b.Width-width)/(columnLeast+gap))
	for from := 0; from < len(b.accounts); from += fit {
		b.Out.WriteByte('\n')
		columns := b.accounts[from:min(from+fit, len(b.accounts))]
		head := page.Padded(strings.Repeat(" ", indent)+title, width)
		for k := range columns {
			head += fmt.Sprintf("%*s", gap+columnLeast, letter(from+k)+strings.Repeat(" ", 7))
		}
		b.Out.WriteString(b.Paint(strings.TrimRight(head, " "), faint) + "\n")
		for _, i := range rows {
			line := page.Padded(b.name(i), width)
			for _, a := range columns {
				text, st := b.cell(a, i)
				line += strings.Repeat(" ", max(1, gap+columnLeast-page.Runes(text))) + b.Paint(text, st)
			}
			b.Out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
}

// wanted reports whether a node has a line: the options ask for it, and one of the accounts
// knows it. Deep nodes of a large tree that nowhere exceed their threshold have no line, as in
// a single account.
func (b *columnWriter) wanted(i int) bool {
	n := &b.h.Model.Nodes[i]
	if !b.shown[i] || n.Section != "" && !b.o.All && b.o.Nodes == "" && b.saysMuch() {
		return false
	}
	return slices.ContainsFunc(b.accounts, func(a *account.Account) bool { return a.Nodes[i].Known() && !b.folds(a, i) })
}

// saysMuch reports whether the main tree of any account has a value.
func (b *columnWriter) saysMuch() bool {
	return slices.ContainsFunc(b.accounts, func(a *account.Account) bool { return saysMuch(a) })
}

func (b *columnWriter) name(i int) string {
	return strings.Repeat(" ", indent+indent*depth(b.h.Model, i)) + b.h.Model.Nodes[i].Name
}

// cell is a node's value in one account, with its error and what marks it.
func (b *columnWriter) cell(a *account.Account, i int) (string, style) {
	v := &a.Nodes[i]
	if !v.Known() {
		return "–" + strings.Repeat(" ", 7), dim
	}
	text, err, mark := page.Figure(a.Model(), i, v.Value), "", " "
	if !math.IsNaN(v.Error) {
		err = "±" + page.Figure(a.Model(), i, v.Error)
		err = strings.TrimSuffix(err, " %")
	}
	st := plain
	switch {
	case !v.Reliable():
		mark, st = "?", dim
	case len(a.Bottleneck) > 0 && a.Bottleneck[len(a.Bottleneck)-1] == i:
		mark, st = "◄", hot
	case onPath(a, i):
		st = bold
	}
	return text + " " + page.Padded(err, 5) + mark, st
}

// foot says what the marks mean.
func (b *columnWriter) foot() {
	var bottleneck, doubt, more bool
	for _, a := range b.accounts {
		bottleneck = bottleneck || len(a.Bottleneck) > 0 && b.wanted(a.Bottleneck[len(a.Bottleneck)-1])
		more = more || a.Runs > 1
		for i := range a.Nodes {
			doubt = doubt || a.Nodes[i].Known() && !a.Nodes[i].Reliable() && b.wanted(i)
		}
	}
	b.Out.WriteByte('\n')
	if bottleneck {
		b.Paragraph("◄", "the bottleneck", 8, faint)
	}
	if doubt {
		b.Paragraph("?", "unreliable", 8, faint)
	}
	if more {
		b.Paragraph("±", "95 % interval of another run like these, from how the runs differ", 8, faint)
	}
	for _, n := range b.h.withMeasured(b.commonNotes()) {
		b.Paragraph("note", n, 8, faint)
	}
	if s := b.o.Hint("", counts.Fix{Action: counts.Compare}); s != "" {
		b.Paragraph("next", s, 8, faint)
	}
}

// commonNotes are the notes of the accounts, each with the letters of those that have
// it, if not all do.
func (b *columnWriter) commonNotes() []string {
	var notes []string
	of := map[string][]string{}
	for i, a := range b.accounts {
		for _, n := range b.o.Texts(a.Notes) {
			if of[n] == nil {
				notes = append(notes, n)
			}
			of[n] = append(of[n], letter(i))
		}
	}
	for k, n := range notes {
		if len(of[n]) < len(b.accounts) {
			notes[k] = strings.Join(of[n], ", ") + ": " + n
		}
	}
	return notes
}
