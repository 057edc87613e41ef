package caches

// A stride is what the first level's prefetcher knows of an instruction.
type stride struct {
	_        uncompared
	pc, last uint64
	by       int64
	seen     uint8 // consecutive times that it advanced by that
}

// The prefetcher of the first level: it trusts a distance that it saw so often, and looks so
// many accesses ahead. It does not leave the page.
const (
	strideSeen  = 2
	strideAhead = 4
	strideMost  = 2048
)

// advance learns the address of an instruction, and prefetches the ones to come.
func (h *Hierarchy) advance(pc, addr uint64) {
	s := &h.strides[(pc^pc>>8)%uint64(len(h.strides))]
	if s.pc != pc {
		*s = stride{pc: pc, last: addr}
		return
	}
	by := int64(addr - s.last)
	s.last = addr
	switch {
	case by == 0:
		return
	case by != s.by:
		s.by, s.seen = by, 0
		return
	case s.seen < strideSeen:
		s.seen++
		return
	case by > strideMost || by < -strideMost:
		return
	}
	next := addr + uint64(by*strideAhead)
	if -64 < by && by < 64 {
		next = addr + 64
		if by < 0 {
			next = addr - 64
		}
	}
	line := next >> LineBits
	if next>>pageBits != addr>>pageBits || h.early.has(line) {
		return
	}
	at := physical(line)
	if _, ok := h.l2.use(at); !ok {
		h.second(line, at, 0, true)
	}
	h.early.fill(line, prefetched)
	h.stream(line)
}

// A stream is lines of a page that are used one after the other.
type stream struct {
	_     uncompared
	last  uint64 // line
	ahead uint64 // the line that was prefetched last
	up    bool
	seen  uint8
}

// Streams are those of some pages. The one that began first is replaced.
type streams struct {
	pages   [4]uint64
	streams [4]stream
	oldest  uint8
}

// The prefetcher of the second level looks so many lines ahead, two at a time. Behind the
// end of a page it goes on in the next one, as that of current cores does. It sees what that of
// the first level asks for, too: Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data
// Prefetching".
const (
	streamSeen  = 2
	streamAhead = 16
	streamStep  = 2
)

// stream learns a line that the first level missed, and prefetches those that follow.
func (h *Hierarchy) stream(line uint64) {
	page := line >> (pageBits - LineBits)
	s := h.of(page)
	if s == nil {
		set := &h.streams[page%uint64(len(h.streams))]
		set.oldest = (set.oldest + 1) % uint8(len(set.pages))
		s, set.pages[set.oldest] = &set.streams[set.oldest], page
		// A stream that comes to the end of its page goes on in the next.
		before, after := h.of(page-1), h.of(page+1)
		switch {
		case before != nil && before.seen >= streamSeen && before.up && line-before.last <= 2:
			*s = *before
		case after != nil && after.seen >= streamSeen && !after.up && after.last-line <= 2:
			*s = *after
		default:
			*s = stream{last: line, ahead: line}
			return
		}
	}
	up := line > s.last
	switch {
	case line == s.last:
		return
	case up != s.up && s.seen > 0, up && line-s.last > 4, !up && s.last-line > 4:
		s.up, s.seen, s.ahead = up, 0, line
	default:
		s.up = up
		if s.seen < streamSeen {
			s.seen++
			s.ahead = line
		}
	}
	s.last = line
	if s.seen >= streamSeen {
		h.ahead(s)
	}
}

// of returns the stream of a page, or nil.
func (h *Hierarchy) of(page uint64) *stream {
	set := &h.streams[page%uint64(len(h.streams))]
	for i, p := range &set.pages {
		if p == page {
			return &set.streams[i]
		}
	}
	return nil
}

// ahead prefetches the next lines of a stream.
func (h *Hierarchy) ahead(s *stream) {
	for range streamStep {
		next := s.ahead + 1
		if !s.up {
			next = s.ahead - 1
		}
		if s.up && (next > s.last+h.lines || next <= s.last) {
			if next > s.last {
				return
			}
			next = s.last + 1
		}
		if !s.up && (next+h.lines < s.last || next >= s.last) {
			if next < s.last {
				return
			}
			next = s.last - 1
		}
		s.ahead = next
		h.bring(next, physical(next))
	}
}

// bring brings a line, also by its physical address, into the second level, if it is not there.
func (h *Hierarchy) bring(line, at uint64) {
	if !h.l2.has(at) {
		h.second(line, at, prefetched, true)
	}
}
