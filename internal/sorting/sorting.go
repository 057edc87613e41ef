// Package sorting sorts lists that are short or rarely sorted.
package sorting

import "sort"

// Stable sorts like slices.SortStableFunc. It is slower, and keeps the program small: that
// has 8 kB of code for each type of element, this some hundred bytes.
func Stable[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
