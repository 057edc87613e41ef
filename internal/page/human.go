package page

import (
	"math"
	"strconv"
)

// Human is an amount with four digits and a decimal unit: "1.234 G". Amounts below
// 100,000 are as by [Trim].
func Human(v float64) string {
	const unitFrom = 1e5
	if !(math.Abs(v) >= unitFrom) || math.IsInf(v, 0) {
		return Trim(v)
	}
	units := []string{"k", "M", "G", "T", "P", "E"}
	unit := ""
	for len(units) > 0 && math.Abs(v) >= 999.95 {
		v, unit, units = v/1e3, units[0], units[1:]
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + unit
}

// IsTime reports whether a unit that perf prints is one of time.
func IsTime(unit string) bool {
	switch unit {
	case "ns", "usec", "us", "msec", "ms", "sec", "s", "seconds":
		return true
	}
	return false
}
