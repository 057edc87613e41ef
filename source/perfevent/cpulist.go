package perfevent

import (
	"slices"
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
