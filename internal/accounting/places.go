package accounting

import (
	"cmp"
	"slices"
	"sort"

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

	dropped []float64 // what places count that Pick did not choose, the largest first
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
		Samples: whole.Samples, Places: len(t.Scopes) - 1 + len(o.dropped), Left: len(o.dropped)}
	rows, left := o.keepLargest(t, col)
	for _, row := range left {
		about.Left++
		about.LeftShare += t.Cell(row, col).Value / whole.Value
	}
	for _, value := range o.dropped {
		about.LeftShare += value / whole.Value
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

// Pick chooses the places that Write may write, by the whole and the cells of each place. It is for
// tables without the rows of the others: Write knows what these count. All are kept if it is nil.
func (o *PlaceReport) Pick(m *resolve.Method, whole *counts.Table, places int, cells func(place int) []counts.Cell) []bool {
	if o.all() {
		return nil
	}
	col := Clock(m, whole)
	keep, values := make([]bool, places), make([]float64, places)
	for i := range places {
		row := cells(i)
		values[i], keep[i] = row[col].Value, o.Top == 0 && o.worth(whole.Row(0), row, col)
	}
	if o.Top > 0 {
		sorted := slices.Clone(values)
		slices.Sort(sorted)
		least := sorted[max(0, places-o.Top):]
		for i, value := range values {
			keep[i] = cmp.Compare(value, least[0]) >= 0
		}
	}
	o.dropped = values[:0]
	for i, value := range values {
		if !keep[i] {
			o.dropped = append(o.dropped, value)
		}
	}
	slices.Sort(o.dropped)
	slices.Reverse(o.dropped)
	return keep
}

// all reports whether all places are written, if no number is given.
func (o *PlaceReport) all() bool {
	return o.Top == 0 && (o.All || len(o.Kinds) == 1 && o.Kinds[0] == counts.Interval)
}

// keepLargest divides the rows of the places into those that are written and those that
// are left out. Without a number, places with a share worth a line are written; if
// there are shares only, also those with much of any event.
func (o *PlaceReport) keepLargest(t *counts.Table, col int) (rows, left []int) {
	all := o.all()
	for i, row := range largest(t, col) {
		if i < o.Top || all || o.Top == 0 && o.worth(t.Row(0), t.Row(row), col) {
			rows = append(rows, row)
		} else {
			left = append(left, row)
		}
	}
	if slices.Contains(o.Kinds, counts.Interval) {
		slices.SortStableFunc(rows, func(i, j int) int { return cmp.Compare(t.Scopes[i].Start, t.Scopes[j].Start) })
	}
	return rows, left
}

// worth reports whether a place is worth a line.
func (o *PlaceReport) worth(whole, place []counts.Cell, col int) bool {
	const worth, much = 0.005, 0.05
	if place[col].Value >= worth*whole[col].Value {
		return true
	}
	for i := range place {
		if o.Flat != "" && place[i].Samples > 0 && place[i].Value >= much*whole[i].Value {
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
	sort.Slice(rows, func(x, y int) bool { // slices.SortFunc would be 6 kB of code
		i, j := rows[x], rows[y]
		if c := cmp.Compare(t.Cell(j, col).Value, t.Cell(i, col).Value); c != 0 {
			return c < 0
		}
		return cmp.Or(cmp.Compare(t.Scopes[i].Label, t.Scopes[j].Label), cmp.Compare(i, j)) < 0
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
