package plan

import (
	"math/bits"
	"slices"
)

// A set is a set of events by their numbers in a space.
type set []uint64

func newSet(size int) set { return make(set, (size+63)/64) }

func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) drop(i int)     { s[i/64] &^= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s set) len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// common returns the number of members that s and t share.
func (s set) common(t set) int {
	n := 0
	for i, w := range s {
		n += bits.OnesCount64(w & t[i])
	}
	return n
}

// and returns the members that s and t share.
func (s set) and(t set) set {
	u := make(set, len(s))
	for i, w := range s {
		u[i] = w & t[i]
	}
	return u
}

func (s set) meets(t set) bool {
	for i, w := range s {
		if w&t[i] != 0 {
			return true
		}
	}
	return false
}

// within reports whether all members of s are in t.
func (s set) within(t set) bool {
	for i, w := range s {
		if w&^t[i] != 0 {
			return false
		}
	}
	return true
}

func (s set) empty() bool {
	return !slices.ContainsFunc(s, func(w uint64) bool { return w != 0 })
}

// join adds the members of t to s.
func (s set) join(t set) {
	for i, w := range t {
		s[i] |= w
	}
}

func (s set) clear() { clear(s) }

func (s set) clone() set { return append(set(nil), s...) }

// members returns the members in ascending order.
func (s set) members() []int {
	var all []int
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			all = append(all, i*64+bits.TrailingZeros64(w))
		}
	}
	return all
}
