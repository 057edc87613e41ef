package account

import (
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// PartUnit says what a node is a part of: "slots", "cycles", or another unit of a
// model's whole. It is "" for a node that is no part of anything that adds up.
func (b *Binding) PartUnit(node int) string {
	m := b.Method.Model
	n := &m.Nodes[node]
	switch {
	case n.Unit == cyclesPerInstruction, n.Unit == "" && m.Unit == cyclesPerInstruction:
		if n.Section == "" {
			return "cycles"
		}
	case !m.Share(node):
	case n.Unit == "":
		return m.Unit
	case n.Unit == "cycles" || n.Unit == "slots":
		return n.Unit
	}
	return ""
}

// Part returns a node's share of what it is a part of, 0…1: the value of a node that is
// a share, and of cycles per instruction their part of all cycles. NaN if it is no
// part, or not known.
func (a *Account) Part(node int) float64 {
	switch {
	case a.Binding.PartUnit(node) == "":
		return math.NaN()
	case a.Model().Share(node):
		return a.Nodes[node].Value
	}
	return share(a.Nodes[node].Value*a.Instructions(), a.cycles())
}

// Whole returns what nodes are parts of, in a place of a table: slots or cycles, as
// [Binding.PartUnit] has them. NaN if that was not counted. It adds up: the whole of
// several places is the sum of theirs. A logical processor's slots are those of its
// cycles, also where it shares the core.
func (b *Binding) Whole(t *counts.Table, place Place, unit string) float64 {
	a := &Account{Binding: b, workings: workings{table: t, place: place}}
	switch {
	case b.of != nil && unit == b.Method.Model.Unit:
		b.readOf(a)
		return b.of.Eval(a.in)
	case unit == "slots":
		if slots := a.firstCount("slots"); !math.IsNaN(slots) {
			return slots
		}
		if width := a.CPU().Width; width > 0 {
			return float64(width) * a.firstCount("cycles")
		}
	case unit == "cycles":
		return a.cycles()
	}
	return math.NaN()
}

// readOf fills in what the formula of the whole needs.
func (b *Binding) readOf(a *Account) {
	a.in = make([]float64, len(b.slots)+len(b.nodes))
	for k := range a.in {
		a.in[k] = math.NaN()
	}
	for _, at := range b.ofDeps {
		if cell, ok := b.cell(a.table, a.place, b.slotAt(at)); ok {
			a.in[at] = cell.Estimate()
		}
	}
}
