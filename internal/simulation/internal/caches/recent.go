package caches

// A recent is pages in the order of their use: a TLB of one set. Others are searched entry by
// entry, which takes too long for 72.
type recent struct {
	places [256]place // a ring; 0 is between the page used last and the one used longest ago
	first  [256]uint8 // places by hash
}

type place struct {
	_                  uncompared
	page               uint64
	newer, older, same uint8 // the next place with the same hash; 0 is none
}

// An uncompared is in structs that are not compared: the compiler makes no code for that.
type uncompared [0]func()

// mostRecent is the pages that a recent has at most.
const mostRecent = 255

// noPage is none that a program accesses.
const noPage = ^uint64(0)

func newRecent(n int) *recent {
	r := &recent{}
	for i := range n + 1 {
		r.places[i] = place{page: noPage, older: uint8((i + 1) % (n + 1)), newer: uint8((i + n) % (n + 1))}
	}
	return r
}

// use makes a page the one used last. It replaces another, and returns false, if it is missing.
func (r *recent) use(page uint64) bool {
	list := r.list(page)
	for i := *list; i != 0; i = r.places[i].same {
		if r.places[i].page == page {
			r.touch(i)
			return true
		}
	}
	i := r.places[0].newer // the one used longest ago
	p := &r.places[i]
	if p.page != noPage {
		at := r.list(p.page)
		for *at != i {
			at = &r.places[*at].same
		}
		*at = p.same
	}
	p.page, p.same = page, *list
	*list = i
	r.touch(i)
	return false
}

// list returns where the places of a hash begin.
func (r *recent) list(page uint64) *uint8 { return &r.first[page*spread>>56] }

// touch moves a place to the one used last.
func (r *recent) touch(i uint8) {
	p, ends := &r.places[i], &r.places[0]
	r.places[p.newer].older, r.places[p.older].newer = p.older, p.newer
	last := ends.older
	ends.older, p.newer = i, 0
	p.older, r.places[last].newer = last, i
}
