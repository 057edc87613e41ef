package page

import (
	"strconv"

	"github.com/cyclestack/cyclestack/model"
)

// Unit is the unit of a node's value.
func Unit(m *model.Model, i int) string {
	if u := m.Nodes[i].Unit; u != "" {
		return u
	}
	return m.Unit
}

// Figure is a node's value as a person reads it: shares in percent, others
// with five significant digits or as many as an integer has.
func Figure(m *model.Model, i int, v float64) string {
	if m.Share(i) {
		return strconv.FormatFloat(v*100, 'f', 1, 64) + " %"
	}
	if Unit(m, i) == "cycles/instruction" {
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
	return Trim(v)
}
