package report

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// hotspots writes where the time of an account went: what its threads did, and the code.
func (t *tree) hotspots(a *account.Account, room int) {
	h := a.Hotspots
	title := "share of elapsed time"
	switch {
	case h.Whole == account.Cycles:
		title = "share of cycles"
	case h.Whole == account.Time:
		title = "share of processor time"
		if h.Running < wholly {
			title = "share of processor time and run queue"
		}
	}
	var lines []page.Line
	for _, s := range h.States {
		l := page.Line{Name: s.State, Value: page.PercentOf(s.Share), Bar: page.Bar(s.Share, 1)}
		if s.Error >= worthError {
			l.Error = page.PercentOf(s.Error)
		}
		if s.Events >= 1 && s.Share > 0 {
			l.Mark = page.Trim(s.Events) + " " + noun(s.What, s.Events)
		}
		if s.State == largest(h) {
			l.Style = bold
		}
		lines = append(lines, l)
	}
	own := t.emptyPage()
	own.Table(title, lines)
	where := t.placesWithin(h, len(h.Places), room-own.lines()-1)
	t.Out.WriteString(own.Out.String() + where.Out.String() + "\n")
}

// placesWithin are at most so many functions: as many as there is room for, one at least.
func (t *tree) placesWithin(h *account.Hotspots, most, room int) *tree {
	for ; ; most-- {
		where := t.emptyPage()
		where.places(h, most)
		if most <= 1 || where.lines() <= room {
			return where
		}
	}
}

// noun is a plural noun, or its singular for one thing: "page faults", "context switches".
func noun(nouns string, n float64) string {
	switch one, ches := strings.CutSuffix(nouns, "ches"); {
	case n != 1:
		return nouns
	case ches:
		return one + "ch"
	}
	return strings.TrimSuffix(nouns, "s")
}

// wholly is the least share that is printed as all there is.
const wholly = 0.9995

// worthError is the smallest error of a share that is written.
const worthError = 0.005

// largest is the state with most of the time.
func largest(h *account.Hotspots) string {
	best, share := "", -1.0
	for _, s := range h.States {
		if s.Share > share {
			best, share = s.State, s.Share
		}
	}
	return best
}

// Widths of the columns of places.
const (
	functionMost = 32
	placeMost    = 28
)

// places writes the functions with the most samples.
func (t *tree) places(h *account.Hotspots, most int) {
	if len(h.Places) == 0 {
		if h.Samples > 0 {
			t.Out.WriteString(t.Paint(fmt.Sprintf("\n  where: %s, too few to tell", page.Several(int(h.Samples), "sample")), faint) + "\n")
		}
		return
	}
	type row struct{ share, function, at, remark, cause string }
	var rows []row
	wide := [3]int{}
	add := func(r row) {
		wide[0], wide[1], wide[2] = max(wide[0], page.Runes(r.share)), max(wide[1], page.Runes(r.function)), max(wide[2], page.Runes(r.at))
		rows = append(rows, r)
	}
	shown := h.Places[:min(len(h.Places), most)]
	others, left := h.Others, h.Left
	for _, p := range h.Places[len(shown):] {
		others += p.Share
		left++
	}
	for i := range shown {
		p := &shown[i]
		r := row{share: shareOf(h, p), function: page.Cut(page.Shorter(functionOf(p), functionMost), functionMost), at: page.CutLeft(placeOf(p), placeMost), remark: join(callerText(p.Caller, p.CallerShare), loopOf(p))}
		if p.Cause != nil {
			r.cause = p.Cause.Kind
			if p.Cause.Text != "" {
				r.cause += ": " + p.Cause.Text
			}
		}
		add(r)
	}
	if left > 0 && others >= othersLeast {
		share := page.PercentOf(others)
		if len(rows) > 0 { // below the shares, and not their errors
			share = page.Padded(share, page.Runes(share)+page.Runes(rows[0].share)-page.Runes(page.PercentOf(shown[0].Share)))
		}
		add(row{share: share, function: page.Trim(float64(left)) + " " + noun("others", float64(left))})
	}
	if !t.blank() {
		t.Out.WriteByte('\n')
	}
	title := "  where"
	if h.Samples > 0 {
		title += fmt.Sprintf(" (%s %s)", page.Trim(float64(h.Samples)), noun("samples", float64(h.Samples)))
	}
	t.Out.WriteString(t.Paint(title, faint) + "\n")
	for i, r := range rows {
		style := plain
		if i < len(shown) && account.IsHotspot(shown[i].Share/h.Running) {
			style = bold
		}
		front := fmt.Sprintf("  %*s  %s  %s", wide[0], r.share, page.Padded(r.function, wide[1]), page.Padded(r.at, wide[2]))
		more := r.remark
		if r.cause != "" {
			if j := join(more, r.cause); page.Runes(front)+2+page.Runes(j) <= t.Width {
				more, r.cause = j, ""
			}
		}
		t.Out.WriteString(t.Paint(strings.TrimRight(front, " "), style))
		if more != "" {
			t.Out.WriteString("  " + t.Paint(more, faint))
		}
		t.Out.WriteByte('\n')
		if r.cause != "" {
			t.Paragraph("", r.cause, wide[0]+6, plain)
		}
	}
}

// callerText says which line of the user's calls a place; "" if it is not known.
func callerText(c *counts.Code, share float64) string {
	if c == nil {
		return ""
	}
	text := "called from " + placeOf(&account.Hot{File: c.File, Line: c.Line})
	if share < wholly {
		text = page.PercentOf(share) + " " + text
	}
	return text
}

// shareOf is the share of a place with its error. Of samples their number is in the title, and no
// error is here.
func shareOf(h *account.Hotspots, p *account.Hot) string {
	if h.Samples == 0 && p.Error > 0 {
		return page.PercentOf(p.Share) + fmt.Sprintf(" ±%7s", page.PercentOf(p.Error))
	}
	return page.PercentOf(p.Share)
}

// othersLeast is the least share of the other functions that is worth a line.
const othersLeast = 0.0005

// blank reports whether the page ends in an empty line.
func (t *tree) blank() bool { return strings.HasSuffix(t.Out.String(), "\n\n") }

// functionOf names the function of a place.
func functionOf(p *account.Hot) string {
	return cmp.Or(p.Function, "[no symbols]")
}

// placeOf says where in the source a place is, or else in its module.
func placeOf(p *account.Hot) string {
	switch {
	case p.Line > 0:
		return fmt.Sprintf("%s:%d", path.Base(p.File), p.Line)
	case p.Kernel && strings.HasPrefix(p.Module, "[kernel"):
		return "kernel"
	case p.Kernel:
		return "kernel " + p.Module
	}
	if p.Addr == 0 {
		return p.Module
	}
	return fmt.Sprintf("%s+%#x", p.Module, p.Addr)
}

// loopOf describes the loop of a place.
func loopOf(p *account.Hot) string {
	l := p.Loop
	switch {
	case l == nil:
		return ""
	case l.First > 0 && l.First < l.Last:
		return fmt.Sprintf("loop, lines %d–%d", l.First, l.Last)
	default:
		return fmt.Sprintf("loop of %d instructions", l.Instructions)
	}
}

// timeHeading says what was measured, for how long, on what, by what.
func (t *tree) timeHeading(a *account.Account) {
	parts := []string{}
	if l := scopeLabel(a); l != "" {
		parts = append(parts, l)
	}
	if !math.IsNaN(a.Duration) {
		parts = append(parts, page.Duration(a.Duration))
	}
	text := strings.Join(parts, ", ") + " on " + t.h.CPU.Name + ", " + t.h.source()
	t.Paragraph("", text, 0, bold)
	t.Out.WriteByte('\n')
}
