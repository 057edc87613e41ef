package export

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// Amounts turn the counts of stacks into amounts of a method's nodes: slots or cycles.
//
// A place has one account, of all its samples, whoever called it: a single stack has too
// few. A stack gets the place's shares of its own slots. So the amounts of a place's stacks
// sum to those of the place, which are the figures of a report.
type Amounts struct {
	nodes  []int
	units  []string    // the wholes that nodes are parts of, each once
	unit   []int       // by node: its index in units
	parts  [][]float64 // by row of the places' table, by node
	limits []string    // the bottlenecks, by row
	notes  []string

	account *account.Account // that was made last
	stacks  *account.Binding
	row     *counts.Table // of one stack
	part    *counts.Table // of one place
	wholes  []float64     // its slots or cycles, by unit
}

// NewAmounts returns the amounts of nodes of a method for the places in a table. The
// table's first row is the whole.
func NewAmounts(m *account.Method, t *counts.Table, nodes []int) *Amounts {
	one := &counts.Layout{Columns: t.Columns, Scopes: []counts.Scope{counts.RunScope("")}}
	s := &Amounts{nodes: nodes, stacks: m.Bind(one), row: counts.NewTable(one), part: counts.NewTable(one)}
	places := m.Bind(t.Layout)
	for _, i := range nodes {
		unit := places.PartUnit(i)
		if !slices.Contains(s.units, unit) {
			s.units = append(s.units, unit)
		}
		s.unit = append(s.unit, slices.Index(s.units, unit))
	}
	s.wholes = make([]float64, len(s.units))
	s.sum(places, t)
	s.account = nil // it is of another binding
	return s
}

// Place returns the amounts of a place in another table of the same layout, and its bottleneck
// there. The whole may be 0 where its parts were counted. Then the amounts are what those add
// to the table of all.
func (s *Amounts) Place(t, all *counts.Table, row int) (list []float64, limit string) {
	amounts := func(cells []counts.Cell) []float64 {
		copy(s.part.Row(0), cells)
		s.account = s.stacks.Evaluate(s.part, account.Place{}, s.account)
		for u, unit := range s.units {
			s.wholes[u] = s.stacks.Whole(s.part, account.Place{}, unit)
		}
		list := make([]float64, len(s.nodes))
		for k, i := range s.nodes {
			list[k] = s.account.Part(i) * s.wholes[s.unit[k]]
		}
		return list
	}
	list = amounts(t.Row(row))
	if len(s.account.Bottleneck) > 0 {
		limit = s.stacks.Method.Model.Nodes[s.account.Bottleneck[len(s.account.Bottleneck)-1]].Name
	}
	if !slices.Contains(s.wholes, 0) {
		return list, limit
	}
	with, without := slices.Clone(t.Row(row)), slices.Clone(all.Row(row))
	for col := range with {
		if with[col].Samples == 0 {
			with[col] = all.Row(row)[col]
		} else {
			without[col] = counts.Cell{State: counts.Counted}
		}
	}
	more, less := amounts(with), amounts(without)
	for k := range list {
		list[k] = more[k] - less[k]
	}
	return list, ""
}

// Wholes appends what a stack has of the wholes.
func (s *Amounts) Wholes(cells []counts.Cell, to []float64) []float64 {
	copy(s.row.Row(0), cells)
	for _, unit := range s.units {
		to = append(to, s.stacks.Whole(s.row, account.Place{}, unit))
	}
	return to
}

// Units are the wholes.
func (s *Amounts) Units() []string { return s.units }

// sum makes the accounts of the places, and notes where they do not add up.
func (s *Amounts) sum(b *account.Binding, t *counts.Table) {
	sums := make([]tally, len(s.nodes))
	run := make([]float64, len(s.units))
	for row := range t.Scopes {
		at := account.Place{Self: row}
		s.account = b.Evaluate(t, at, s.account)
		limit := ""
		if n := len(s.account.Bottleneck); n > 0 {
			limit = s.stacks.Method.Model.Nodes[s.account.Bottleneck[n-1]].Name
		}
		for u, unit := range s.units {
			s.wholes[u] = b.Whole(t, at, unit)
		}
		if row == 0 {
			copy(run, s.wholes)
		}
		parts := make([]float64, len(s.nodes))
		for k, i := range s.nodes {
			parts[k] = s.account.Part(i)
			if row > 0 {
				sums[k].add(parts[k], s.account.Nodes[i].Reliable(), s.wholes[s.unit[k]])
			}
		}
		s.parts, s.limits = append(s.parts, parts), append(s.limits, limit)
	}
	for k, i := range s.nodes {
		if text := sums[k].text(run[s.unit[k]], s.parts[0][k]); text != "" {
			s.notes = append(s.notes, s.stacks.Method.Model.Nodes[i].Path+": "+text)
		}
	}
}

// Types are the kinds of values, in the order of [Amounts.Of].
func (s *Amounts) Types() []Type {
	var list []Type
	for k, i := range s.nodes {
		n := &s.stacks.Method.Model.Nodes[i]
		list = append(list, Type{Name: n.Name, Unit: s.units[s.unit[k]], Path: n.Path})
	}
	return list
}

// Of appends the amounts of a stack whose innermost place is a row of the table.
func (s *Amounts) Of(place int, cells []counts.Cell, to []float64) []float64 {
	copy(s.row.Row(0), cells)
	for u, unit := range s.units {
		s.wholes[u] = s.stacks.Whole(s.row, account.Place{}, unit)
	}
	for k, part := range s.parts[place] {
		whole := s.wholes[s.unit[k]]
		if whole == 0 {
			part = 0 // also if it is not known
		}
		to = append(to, part*whole)
	}
	return to
}

// Bottleneck returns the node that limits a place most, "" for none.
func (s *Amounts) Bottleneck(place int) string { return s.limits[place] }

// Notes says for each node how far its amounts account for the whole. They give the share at
// places without a reliable value, and the difference between the sum and the whole.
func (s *Amounts) Notes() []string { return s.notes }

// Known returns the nodes whose value is known for the whole.
func Known(m *account.Method, t *counts.Table, nodes []int) []int {
	a := m.Bind(t.Layout).Evaluate(t, account.Place{}, nil)
	var list []int
	for _, i := range nodes {
		if !math.IsNaN(a.Part(i)) {
			list = append(list, i)
		}
	}
	return list
}

// A tally adds up a node over the places.
type tally struct{ amount, unknown, doubtful float64 }

func (t *tally) add(part float64, reliable bool, whole float64) {
	switch {
	case whole == 0:
	case math.IsNaN(part):
		t.unknown += whole
	default:
		t.amount += part * whole
		if !reliable {
			t.doubtful += whole
		}
	}
}

// worthNote is the share of the whole that a difference must exceed for a note.
const worthNote = 0.01

// text says how the sum of a node differs from its whole, "" if it does not.
func (t *tally) text(whole, part float64) string {
	var parts []string
	if t.unknown > worthNote*whole {
		parts = append(parts, fmt.Sprintf("not known at places with %.1f %% of the whole", 100*t.unknown/whole))
	}
	if t.doubtful > worthNote*whole {
		parts = append(parts, fmt.Sprintf("uncertain at places with %.1f %%", 100*t.doubtful/whole))
	}
	if math.Abs(t.amount/whole-part) > worthNote {
		parts = append(parts, fmt.Sprintf("%.1f %% of the whole is the sum of the places, and %.1f %% the account of the whole", 100*t.amount/whole, 100*part))
	}
	return strings.Join(parts, "; ")
}

// EventType is the kind of value of an event's counts.
func EventType(c *counts.Column) Type {
	unit, _ := eventUnit(c.Unit)
	return Type{Name: c.Event, Unit: unit}
}

// EventValue is what a stack counted of an event, in the unit of [EventType]; NaN if it
// is not known.
func EventValue(c *counts.Column, cell *counts.Cell) float64 {
	if !cell.Ok() {
		return math.NaN()
	}
	_, scale := eventUnit(c.Unit)
	return cell.Estimate() * scale
}

// eventUnit is the unit of a column's values, and their factor. Times are in nanoseconds,
// because values are rounded.
func eventUnit(unit string) (name string, scale float64) {
	switch unit {
	case "":
		return "count", 1
	case "ns":
		return "nanoseconds", 1
	case "msec", "ms":
		return "nanoseconds", 1e6
	}
	return unit, 1
}
