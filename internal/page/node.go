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

// Figure is a node's value as a person reads it: shares in percent, times and bytes with a
// unit of their size, others as by [Trim].
func Figure(m *model.Model, i int, v float64) string {
	if m.Share(i) {
		return strconv.FormatFloat(v*100, 'f', 1, 64) + " %"
	}
	switch Unit(m, i) {
	case "cycles/instruction":
		return strconv.FormatFloat(v, 'f', 4, 64)
	case "s":
		return Duration(v)
	case "ns":
		return Duration(v / 1e9)
	case "bytes":
		return Bytes(v)
	case "bytes/second":
		return Bytes(v) + "/s"
	}
	return Trim(v)
}

// UnitBehind is the unit that stands behind a node's [Figure]; "" if that has it.
func UnitBehind(m *model.Model, i int) string {
	switch u := Unit(m, i); u {
	case "s", "ns", "bytes", "bytes/second":
		return ""
	default:
		return u
	}
}
