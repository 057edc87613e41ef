// Package sorting sorts lists that are short or rarely sorted, and inserts into them.
package sorting

import "sort"

// Stable sorts like slices.SortStableFunc. It is slower, and keeps the program small: that
// has 8 kB of code for each type of element, this some hundred bytes.
func Stable[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Insert inserts an element like slices.Insert, which has 3 to 6 kB of code for each type of
// element.
func Insert[T any](list []T, at int, element T) []T {
	list = append(list, element)
	copy(list[at+1:], list[at:])
	list[at] = element
	return list
}
