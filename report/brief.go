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

// A screen has at most Options.Lines lines for an account: what and how, the tree down to what
// matters, places in the code, advice, next steps, the number of notes. What an account of a
// document has in common with the first is one line.

// treeLeast is how many lines a tree has, however long the rest is.
const treeLeast = 4

// brief writes an account on one screen.
func (t *tree) brief(a *account.Account) error {
	if t.n > 1 {
		t.later = append(t.later, summary(a))
		return nil
	}
	foot := t.foot(a)
	own := t.emptyPage()
	own.own(a)
	below := own.lines() + foot.lines()
	if a.Hotspots != nil && len(a.Hotspots.States) > 0 {
		t.timeHeading(a)
		t.hotspots(a, t.o.Lines-t.lines()-below)
	} else {
		t.heading(a)
		t.time(a)
		t.nodesAndRates(a, t.o.Lines-t.lines()-below)
	}
	t.Out.WriteString(own.Out.String())
	t.Out.WriteString(foot.Out.String())
	t.used = t.lines()
	return t.Flush()
}

// nodesAndRates writes the nodes that matter. Where there is room, or no node is known, it
// writes what further methods and counts say.
func (t *tree) nodesAndRates(a *account.Account, room int) {
	further := t.emptyPage()
	if further.further(a); a.Known() || further.lines() == 0 && len(named(a)) == 0 {
		before := t.lines()
		t.essential(a, room)
		room -= t.lines() - before
		further = t.emptyPage()
		further.processor()
		for _, f := range a.Also {
			further.also(f)
		}
		if room < furtherLeast {
			return
		}
	}
	t.Out.WriteString(further.first(room))
}

// furtherLeast is how many lines further methods need to say something.
const furtherLeast = 4

// first is the beginning of a page, up to so many lines.
func (t *tree) first(most int) string {
	text := t.Out.String()
	if t.lines() <= most {
		return text
	}
	var b strings.Builder
	shown, all := 0, strings.Count(strings.TrimRight(text, "\n"), "\n")+1
	for line := range strings.Lines(text) {
		if shown >= most-2 {
			break
		}
		b.WriteString(line)
		shown++
	}
	if most > 0 {
		b.WriteString(t.Paint(t.o.Hint(fmt.Sprintf("%*s%d more lines", indent, "", all-shown), counts.Fix{Action: counts.ShowMore}), faint) + "\n\n")
	}
	return b.String()
}

// lines is how many lines of a terminal the page takes.
func (t *tree) lines() int {
	n := 0
	for line := range strings.Lines(t.Out.String()) {
		n += max(1, (page.Runes(page.Bare(strings.TrimSuffix(line, "\n")))+t.Width-1)/t.Width)
	}
	return n
}

// emptyPage returns an empty page like this one.
func (t *tree) emptyPage() *tree {
	return &tree{Page: page.New(nil, t.Width, t.Color), o: t.o, h: t.h, shown: t.shown}
}

// foot is what stands below the tree.
func (t *tree) foot(a *account.Account) *tree {
	f := t.emptyPage()
	f.failures(a)
	f.nothing(a)
	f.next(a, stepsMost)
	f.countNotes(a)
	return f
}

// nothing says that nothing is over its threshold, if that is so.
func (t *tree) nothing(a *account.Account) {
	if len(a.Bottleneck) == 0 && a.Healthy(t.h.provenance()) {
		t.healthy(a)
	} else {
		t.remedy(a)
	}
}

// time writes in one line what the threads did.
func (t *tree) time(a *account.Account) {
	if a.Times == nil {
		return
	}
	if text := waited(a.Times); text != "" {
		text, _, _ = strings.Cut(text, ":")
		t.Paragraph("time", text, 10, bold)
	} else {
		t.Paragraph("time", timesText(a.Times), 10, plain)
	}
	t.Out.WriteByte('\n')
}

// essential writes the nodes that matter, and the code that the cycles are in.
func (t *tree) essential(a *account.Account, room int) {
	const around = 3 // a heading, what is left out, and a blank line
	var where *tree
	if h := a.Hotspots; h != nil && len(h.Places) > 0 {
		where = t.placesWithin(h, min(len(h.Places), placesInTree), room-around-treeLeast)
		room -= where.lines()
	}
	nodes := a.Essential(t.shown, max(treeLeast, room-around))
	nodes = slices.DeleteFunc(nodes, func(i int) bool { return !a.Nodes[i].Known() && (t.o.Known || a.Model().Nodes[i].Optional) })
	var lines []page.Line
	for _, i := range nodes {
		lines = append(lines, t.line(a, i))
	}
	if len(lines) > 0 {
		title := a.Model().Nodes[nodes[0]].Section
		if title == "" {
			title = unitText(a.Model())
		}
		t.Table(title, lines)
	}
	known, unknown := 0, 0
	for i := range a.Nodes {
		switch n := &a.Model().Nodes[i]; {
		case !t.shown[i] || (n.Optional || t.o.Known) && !a.Nodes[i].Known() || slices.Contains(nodes, i):
		case a.Nodes[i].Known():
			known++
		case n.Section == "":
			unknown++
		}
	}
	if len(nodes) == 0 {
		t.section(a, "")
	}
	var left []string
	if known > 0 {
		left = append(left, fmt.Sprintf("%d more", known))
	}
	if unknown > 0 {
		left = append(left, fmt.Sprintf("%d not known", unknown))
	}
	if _, rest := leftOver(a); len(rest) > 0 {
		left = append(left, page.Several(len(rest), "count")+" without a method")
	}
	if len(left) > 0 && len(nodes) > 0 {
		text := strings.Repeat(" ", indent) + t.o.Hint("nodes: "+strings.Join(left, ", "), counts.Fix{Action: counts.ShowMore})
		t.Out.WriteString(t.Paint(text, faint) + "\n")
	}
	if where != nil {
		t.Out.WriteString(where.Out.String())
	}
	t.Out.WriteByte('\n')
}

// placesInTree is how many places stand below a tree.
const placesInTree = 3

// failures says how many checks fail.
func (t *tree) failures(a *account.Account) {
	bad := 0
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.State == account.Fails && (c.Identity || c.Closure()) && (!c.Common || c.Contradicts()) {
			bad++
		}
	}
	if bad > 0 {
		t.Paragraph("audit", t.o.Hint(page.Several(bad, "check")+" of the counts failed", counts.Fix{Action: counts.ShowMore}), 10, plain)
	}
}

// countNotes writes how many notes there are, or all if they are asked for.
func (t *tree) countNotes(a *account.Account) {
	if t.o.Notes {
		t.notes(a)
		return
	}
	n := len(t.h.withMeasured(t.o.Texts(a.Notes))) + len(doubts(a, t.shown))
	for _, list := range [][]string{a.Binding.Unused, a.Binding.Other, a.Binding.Unknown} {
		if len(list) > 0 {
			n++
		}
	}
	if n > 0 {
		text := fmt.Sprint(n)
		if incomplete(a) {
			text += notRead
		} else if noError(a, t.shown) != "" {
			text += ", one says why ± is not known"
		} else if a.Finer > 0 {
			text += fmt.Sprintf(", one recommends intervals of %.0f ms", 1000*a.Finer)
		}
		t.Paragraph("notes", t.o.Hint(text, counts.Fix{Action: counts.ShowNotes}), 10, plain)
	}
}

// notRead says in the number of notes that there is a note of what is missing.
const notRead = ", one says what was not read"

// incomplete reports whether a recording lacks its end.
func incomplete(a *account.Account) bool {
	return slices.ContainsFunc(a.Notes, func(n counts.Note) bool { return n.Kind == counts.NoteIncomplete })
}

// summary is an account in one line.
func summary(a *account.Account) string {
	m := a.Model()
	text := scopeLabel(a)
	if !math.IsNaN(a.Duration) {
		text = join(text, page.Duration(a.Duration))
	}
	end := -1
	if n := len(a.Bottleneck); n > 0 {
		end = a.Bottleneck[n-1]
	}
	if end < 0 {
		if i := slices.IndexFunc(a.Nodes, func(v account.Value) bool { return v.Known() }); i >= 0 {
			return fmt.Sprintf("%s: %s %s", text, m.Nodes[i].Name, nodeFigure(m, i, a.Nodes[i].Value))
		}
		_, rest := leftOver(a)
		return fmt.Sprintf("%s: %s without a method", text, page.Several(len(rest), "count"))
	}
	return fmt.Sprintf("%s: %s %s", text, m.Nodes[end].Name, nodeFigure(m, end, a.Nodes[end].Value))
}

// End writes the accounts behind the first, as far as there is room.
func (t *tree) End() error {
	if len(t.later) == 0 {
		return nil
	}
	t.Out.Reset()
	t.Out.WriteByte('\n')
	room := max(1, t.o.Lines-t.used-2)
	shown := t.later
	if len(shown) > room {
		shown = shown[:room]
	}
	for _, text := range shown {
		t.Out.WriteString("  " + page.Cut(text, t.Width-indent) + "\n")
	}
	if more := len(t.later) - len(shown); more > 0 {
		t.Out.WriteString(t.Paint(t.o.Hint(fmt.Sprintf("  and %d more accounts", more), counts.Fix{Action: counts.ShowMore}), faint) + "\n")
	}
	return t.Flush()
}
