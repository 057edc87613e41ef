package perfevent

import (
	"slices"
	"strings"
)

// intersect returns what two ordered lists have in common. A nil list stands
// for all processors.
func intersect(a, b []int) []int {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	both := []int{}
	for _, n := range a {
		if _, ok := slices.BinarySearch(b, n); ok {
			both = append(both, n)
		}
	}
	return both
}

// clip shortens what is quoted in an error.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
