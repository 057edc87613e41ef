package caches

import "testing"

// TestRecent compares a TLB of one set with a cache of one set, which replaces the page used
// longest ago.
func TestRecent(t *testing.T) {
	const pages = 72
	r, c := newRecent(pages), newCache(pages, pages, true)
	hits := 0
	x := uint64(1)
	for n := range 200_000 {
		x = x*6364136223846793005 + 1442695040888963407
		page := x >> 33 % 100
		if n%3 == 0 {
			page %= 40
		}
		_, want := c.use(page, 0)
		if !want {
			c.fill(page, 0)
		}
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
