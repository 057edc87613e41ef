package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// The events that the user named: a table of their own in every format.

// leftOver splits the counts that no method uses: those of events that the user named, and
// the others.
func leftOver(a *account.Account) (named, rest []account.Rate) {
	for _, r := range a.Rest() {
		if r.Named {
			named = append(named, r)
		} else {
			rest = append(rest, r)
		}
	}
	return named, rest
}

// named lists the counts of the events that the user named.
func named(a *account.Account) []account.Rate {
	list, _ := leftOver(a)
	return list
}

// own writes the events that the user named, with their rates.
func (t *tree) own(a *account.Account) {
	list := named(a)
	if len(list) == 0 {
		return
	}
	if t.Out.Len() > 0 && !t.blank() {
		t.Out.WriteByte('\n')
	}
	t.counts("events", list)
	t.Out.WriteByte('\n')
}

// counts writes a table of counts, with their rates.
func (t *tree) counts(title string, list []account.Rate) {
	var lines []page.Line
	per := ""
	for _, r := range list {
		l := page.Line{Name: cmp.Or(r.As, r.Event), Value: ownText(&r)}
		if r.State != counts.Counted {
			l.Style = dim
			lines = append(lines, l)
			continue
		}
		if r.As != "" && !r.Named {
			l.Title = r.Event
		}
		if r.Per != "" && !page.IsTime(r.Unit) {
			per, l.Unit = r.Per, page.Trim(r.Rate)
		}
		if e := r.Estimate(); r.Named && !math.IsNaN(e.Error) {
			l.Error = ownAmount(e.Error, r.Unit)
		}
		if r.Coverage < 1 {
			l.Cover = page.Coverage(r.Coverage)
		}
		lines = append(lines, l)
	}
	if per != "" {
		title += ", and each per " + per
	}
	t.Table(title, lines)
}

// ownText is a count with its unit, or why there is none.
func ownText(r *account.Rate) string {
	if r.State != counts.Counted {
		return r.State.String()
	}
	return ownAmount(r.Value, r.Unit)
}

// ownAmount is an amount with the unit of its event.
func ownAmount(v float64, unit string) string {
	switch {
	case page.IsTime(unit):
		return page.Duration(v / 1e9)
	case unit != "":
		return page.Trim(v) + " " + unit
	}
	return page.Trim(v)
}

// own appends the rows of the events that the user named.
func (c *csvWriter) own(b []byte, a *account.Account) []byte {
	for _, r := range named(a) {
		e, why := r.Estimate(), ""
		if r.State != counts.Counted {
			why = r.State.String()
		}
		b = c.event(b, a, cmp.Or(r.As, r.Event), e, r.Coverage, why)
	}
	return b
}

// Columns of the events that the user named, where each account is a line.

// ownColumns chooses the columns, as far as there is room.
func (r *rows) ownColumns(a *account.Account, room int) {
	list := named(a)
	for i, c := range list {
		name := cmp.Or(c.As, c.Event)
		if room -= ownWidth(name); room < 0 {
			r.left += len(list) - i
			return
		}
		r.named = append(r.named, name)
	}
}

// ownWidth is the width of an event's column.
func ownWidth(name string) int {
	const least = 8
	return max(least, page.Runes(name)) + gap
}

// ownCells writes the counts of the events that the user named.
func (r *rows) ownCells(a *account.Account) {
	list := named(a)
	for _, name := range r.named {
		text, st := "–", dim
		if i := slices.IndexFunc(list, func(c account.Rate) bool { return cmp.Or(c.As, c.Event) == name }); i >= 0 && list[i].State == counts.Counted {
			text, st = ownText(&list[i]), plain
		}
		r.pad(max(1, ownWidth(name)-page.Runes(text)))
		r.text = append(r.text, r.Paint(text, st)...)
	}
}
