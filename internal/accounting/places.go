package accounting

import (
	"cmp"
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// WholeEvent is the column for the cycles that a model finds in a simulator's counts.
const WholeEvent = "cycles"

// A PlaceReport says which accounts [PlaceReport.Write] makes of a table by place.
type PlaceReport struct {
	Options
	Kinds []counts.Kind // the kinds of places
	Top   int           // how many places; 0 is all that are worth a line
	All   bool          // every place, however small
	Flat  string        // why there are shares only: no method fits; "" if one does
	Calls *Calls        // of callchains; nil for places
	// Next suggests the next command, from the rows that are written; nil for none.
	Next func(t *counts.Table, rows []int) report.Step
}

// Calls are tables of callchains: see [report.Calls].
type Calls struct {
	View string
	Of   string
	Self *counts.Table // with the rows of the other table, the samples of the functions themselves
}

// shown returns what a report says of calls.
func (c *Calls) shown(t *counts.Table, rows []int, col int) *report.Calls {
	if c == nil {
		return nil
	}
	out := &report.Calls{View: c.View, Of: c.Of}
	for _, row := range append([]int{0}, rows...) {
		out.Self = append(out.Self, c.Self.Cell(row, col).Value/t.Cell(0, col).Value)
	}
	return out
}

// Write writes the account of a table's first row, the whole, and those of its other
// rows: the largest first, or by time if intervals are split.
func (o *PlaceReport) Write(w report.Writer, m *resolve.Method, t *counts.Table, kind Kind) error {
	col := Clock(m, t)
	whole := t.Cell(0, col)
	about := &report.Profile{By: o.Kinds, Event: t.Columns[col].Event, What: What(m, &t.Columns[col]), Flat: o.Flat,
		Samples: whole.Samples, Places: len(t.Scopes) - 1}
	rows, left := o.keepLargest(t, col)
	for _, row := range left {
		about.Left++
		about.LeftShare += t.Cell(row, col).Value / whole.Value
	}
	if o.Next != nil {
		about.Next = o.Next(t, rows)
	}
	about.Calls = o.Calls.shown(t, rows, col)
	if err := m.CheckNodes(); err != nil {
		return err
	}
	h := o.Header(m, kind, t)
	h.Profile = about
	if err := w.Begin(h); err != nil {
		return err
	}
	binding := m.Account.Bind(t.Layout)
	var a *account.Account
	for _, row := range append([]int{0}, rows...) {
		a = binding.Evaluate(t, account.Place{Self: row}, a)
		if row > 0 {
			a.Notes = nil // they are the whole's
		} else if note := o.Note(m); note.Text != "" {
			a.Notes = append(slices.Clip(a.Notes), note)
		}
		if err := w.Account(a); err != nil {
			return err
		}
	}
	return w.End()
}

// keepLargest divides the rows of the places into those that are written and those that
// are left out. Without a number, places with a share worth a line are written; if
// there are shares only, also those with much of any event.
func (o *PlaceReport) keepLargest(t *counts.Table, col int) (rows, left []int) {
	const worth = 0.005
	total := t.Cell(0, col).Value
	all := o.All || len(o.Kinds) == 1 && o.Kinds[0] == counts.Interval
	for i, row := range largest(t, col) {
		switch {
		case o.Top > 0 && i < o.Top,
			o.Top == 0 && (all || t.Cell(row, col).Value >= worth*total || o.Flat != "" && much(t, row)):
			rows = append(rows, row)
		default:
			left = append(left, row)
		}
	}
	if slices.Contains(o.Kinds, counts.Interval) {
		slices.SortStableFunc(rows, func(i, j int) int { return cmp.Compare(t.Scopes[i].Start, t.Scopes[j].Start) })
	}
	return rows, left
}

// much reports whether a row has much of any event.
func much(t *counts.Table, row int) bool {
	const share = 0.05
	for col := range t.Columns {
		if part, whole := t.Cell(row, col), t.Cell(0, col); part.Samples > 0 && part.Value >= share*whole.Value {
			return true
		}
	}
	return false
}

// largest returns the rows of the places in order of a column's counts.
func largest(t *counts.Table, col int) []int {
	rows := make([]int, len(t.Scopes)-1)
	for i := range rows {
		rows[i] = i + 1
	}
	slices.SortFunc(rows, func(i, j int) int {
		if c := cmp.Compare(t.Cell(j, col).Value, t.Cell(i, col).Value); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(t.Scopes[i].Label, t.Scopes[j].Label), cmp.Compare(i, j))
	})
	return rows
}

// Clock returns the column that places are compared by: the processor's cycles, else
// time, else the first event that was sampled.
func Clock(m *resolve.Method, t *counts.Table) int {
	best, rank := 0, -1
	for col, c := range t.Columns {
		if cell := t.Cell(0, col); !cell.Ok() || !(cell.Value > 0) {
			continue
		}
		r := 0
		switch What(m, &c) {
		case "cycles":
			r = 2
		case "time":
			r = 1
		}
		r = max(r, derivedClocks[c.Event])
		if r > rank {
			best, rank = col, r
		}
	}
	return best
}

// derivedClocks are the counts derived of samples that places are compared by, before all
// others.
var derivedClocks = map[string]int{"op.cycles": 5, "op.instructions": 4, "fetch.cycles": 3, "taken.cycles": 5, "taken.branches": 4, "wall.time": 5}

// What says what an event counts, if places are compared by it: "cycles", "time" or "".
func What(m *resolve.Method, c *counts.Column) string {
	cycles, known := m.Events.Lookup("cycles")
	e, ok := m.Events.Lookup(c.Event)
	ref, err := model.ParseEvent(c.Event)
	switch {
	case known && ok && e == cycles, err == nil && (ref.Name == "cycles" || ref.Name == "cpu-cycles"):
		return "cycles"
	case c.Unit == "ns", c.Unit == "msec":
		return "time"
	}
	return ""
}

// ClockName is what places are compared by, in words.
func ClockName(m *resolve.Method, t *counts.Table, col int) string {
	return cmp.Or(What(m, &t.Columns[col]), t.Columns[col].Event)
}
