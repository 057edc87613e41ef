package caches

import (
	"slices"
	"testing"
)

// TestRecent compares a TLB of one set with a list of pages, which loses the one used longest
// ago.
func TestRecent(t *testing.T) {
	const pages = 72
	r := newRecent(pages)
	var c []uint64 // the latest first
	hits := 0
	x := uint64(1)
	for n := range 200_000 {
		x = x*6364136223846793005 + 1442695040888963407
		page := x >> 33 % 100
		if n%3 == 0 {
			page %= 40
		}
		at := slices.Index(c, page)
		want := at >= 0
		switch {
		case want:
			c = slices.Delete(c, at, at+1)
		case len(c) == pages:
			c = c[:pages-1]
		}
		c = slices.Insert(c, 0, page)
		if got := r.use(page); got != want {
			t.Fatalf("access %d: page %d is there: %t, want %t", n, page, got, want)
		}
		if want {
			hits++
		}
	}
	if hits == 0 || hits == 200_000 {
		t.Errorf("%d hits", hits)
	}
}
