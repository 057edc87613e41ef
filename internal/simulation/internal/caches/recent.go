package caches

// A recent is pages in the order of their use: a TLB of one set. Others are searched entry by
// entry, which takes too long for 72.
type recent struct {
	pages        []uint64
	newer, older []uint8 // a ring of places; 0 is between the page used last and the one used longest ago
	first        [256]uint8
	same         []uint8 // the next place with the same hash; 0 is none
}

// mostRecent is the pages that a recent has at most.
const mostRecent = 255

// noPage is none that a program accesses.
const noPage = ^uint64(0)

func newRecent(n int) *recent {
	r := &recent{pages: make([]uint64, n+1), newer: make([]uint8, n+1), older: make([]uint8, n+1), same: make([]uint8, n+1)}
	for i := range r.pages {
		r.pages[i] = noPage
		r.older[i], r.newer[i] = uint8((i+1)%(n+1)), uint8((i+n)%(n+1))
	}
	return r
}

// use makes a page the one used last. It replaces another, and returns false, if it is missing.
func (r *recent) use(page uint64) bool {
	list := r.list(page)
	for i := *list; i != 0; i = r.same[i] {
		if r.pages[i] == page {
			r.touch(i)
			return true
		}
	}
	i := r.newer[0] // the one used longest ago
	if old := r.pages[i]; old != noPage {
		at := r.list(old)
		for *at != i {
			at = &r.same[*at]
		}
		*at = r.same[i]
	}
	r.pages[i], r.same[i] = page, *list
	*list = i
	r.touch(i)
	return false
}

// list returns where the places of a hash begin.
func (r *recent) list(page uint64) *uint8 { return &r.first[page*spread>>56] }

// touch moves a place to the one used last.
func (r *recent) touch(i uint8) {
	r.older[r.newer[i]], r.newer[r.older[i]] = r.older[i], r.newer[i]
	last := r.older[0]
	r.older[0], r.newer[i] = i, 0
	r.older[i], r.newer[last] = last, i
}
