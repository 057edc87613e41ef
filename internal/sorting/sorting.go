// Package sorting sorts lists that are short or rarely sorted, and inserts into them.
package sorting

import "sort"

// Sort sorts like slices.SortFunc. It is somewhat slower, and has some hundred bytes of code for a type of
// element. That has 7 kB.
func Sort[T any](list []T, compare func(a, b T) int) {
	sort.Slice(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Stable sorts like slices.SortStableFunc. It is slower, and keeps the program small: that
// has 8 kB of code for each type of element, this some hundred bytes.
func Stable[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Merged returns a list sorted by what is before what. Elements that are not before each other keep
// their order. The list must not be used again. Sorted parts are merged two by two, so the fewer
// these are the faster it is. It has a kilobyte of code for each type of element.
func Merged[T any](list []T, before func(a, b *T) bool) []T {
	end := func(at int) int { // of the sorted part
		for at++; at < len(list) && !before(&list[at], &list[at-1]); {
			at++
		}
		return min(at, len(list))
	}
	for other := []T(nil); end(0) < len(list); {
		if other == nil {
			other = make([]T, 0, len(list))
		}
		out := other[:0]
		for at := 0; at < len(list); {
			middle := end(at)
			last := middle
			if middle < len(list) {
				last = end(middle)
			}
			a, b := list[at:middle], list[middle:last]
			for len(a) > 0 && len(b) > 0 {
				if before(&b[0], &a[0]) {
					out, b = append(out, b[0]), b[1:]
				} else {
					out, a = append(out, a[0]), a[1:]
				}
			}
			out, at = append(append(out, a...), b...), last
		}
		list, other = out, list
	}
	return list
}

// Insert inserts an element like slices.Insert, which has 3 to 6 kB of code for each type of
// element.
func Insert[T any](list []T, at int, element T) []T {
	list = append(list, element)
	copy(list[at+1:], list[at:])
	list[at] = element
	return list
}

// Delete deletes elements like slices.DeleteFunc, which has 0.5 to 1.3 kB of code for each type of
// element. Those behind the list stay as they are.
func Delete[T any](list []T, drop func(T) bool) []T {
	n := 0
	for i := range list {
		if !drop(list[i]) {
			list[n] = list[i]
			n++
		}
	}
	return list[:n]
}
