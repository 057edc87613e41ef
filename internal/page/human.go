package page

import (
	"math"
	"strconv"
)

// scaled is an amount with four digits and a decimal unit: "1.234 G".
func scaled(v float64) string {
	units := []string{"k", "M", "G", "T", "P", "E"}
	unit := ""
	for len(units) > 0 && math.Abs(v) >= 999.95 {
		v, unit, units = v/1e3, units[0], units[1:]
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + unit
}

// Bytes is a number of bytes as a person reads it: "512 bytes", "1.5 kB", "12 MB".
func Bytes(v float64) string {
	if !(math.Abs(v) >= 999.95) || math.IsInf(v, 0) {
		return Trim(v) + " bytes"
	}
	return scaled(v) + "B"
}

// IsTime reports whether a unit that perf prints is one of time.
func IsTime(unit string) bool {
	switch unit {
	case "ns", "usec", "us", "msec", "ms", "sec", "s", "seconds":
		return true
	}
	return false
}
