package pipeline

// A memory is the stores that may not have reached the cache yet.
type memory struct {
	queue  [1 << storeBits]storeEntry
	number uint64 // of stores so far
	// latest are the numbers of the latest stores to granules of 8 bytes, by a hash.
	latest    [1 << granuleBits]uint64
	inPage    [pageGranules]uint64 // the same by the place of a granule in its page of 4096 bytes
	committed int64                // the cycle and the part of a line of the latest store to the cache
	part      uint64
	joined    int // stores in that cycle
}

const (
	storeBits    = 7
	granuleBits  = 12
	pageBits     = 12
	pageGranules = 1 << (pageBits - 3)
)

// A storeEntry is a store.
type storeEntry struct {
	by     uint64 // address of the instruction
	addr   uint64
	name   uint64 // of its address: see names
	size   uint8
	vector bool
	joins  bool     // it can reach the cache together with others
	data   int64    // when its data is known
	placed int64    // when its address is known
	commit int64    // when it reaches the cache; not known yet until it has retired
	value  int32    // 1 + the recorder's number of the data; 0 if it is not recorded
	from   [2]int32 // the same of the registers of its address
}

// slot returns the place of a granule in latest.
func slot(granule uint64) uint64 { return granule * 0x9e3779b97f4a7c15 >> (64 - granuleBits) }

// granules returns how many an access touches.
func granules(addr uint64, size uint8) uint64 { return (addr&7 + uint64(size) + 7) >> 3 }

// add adds a store.
func (q *memory) add(s storeEntry) {
	q.number++
	q.queue[q.number%uint64(len(q.queue))] = s
}

// note notes where the latest store is, to be found.
func (q *memory) note() {
	s := &q.queue[q.number%uint64(len(q.queue))]
	for i := range granules(s.addr, s.size) {
		q.latest[slot(s.addr>>3+i)] = q.number
		q.inPage[(s.addr>>3+i)%pageGranules] = q.number
	}
}

// at returns a store, and how many came after it; nil for number 0.
func (q *memory) at(number uint64) (s *storeEntry, after uint64) {
	if number == 0 {
		return nil, 0
	}
	return &q.queue[number%uint64(len(q.queue))], q.number - number
}

// alias returns the number of the latest store to the same bytes of another page as an access, or 0.
// Unknown numbers are farther apart than real addresses.
func (q *memory) alias(addr uint64, size uint8) (number uint64) {
	const far, page = 1 << 40, 1 << pageBits
	newest := uint64(0)
	for i := range granules(addr, size) {
		newest = max(newest, q.inPage[(addr>>3+i)%pageGranules])
	}
	if newest == 0 || newest+uint64(len(q.queue)) <= q.number {
		return 0
	}
	s := &q.queue[newest%uint64(len(q.queue))]
	apart := addr>>pageBits - s.addr>>pageBits
	if apart == 0 || apart+far>>pageBits >= 2*far>>pageBits {
		return 0
	}
	at, of := addr%page, s.addr%page
	if at < of+uint64(s.size) && of < at+uint64(size) {
		return newest
	}
	return 0
}

// find returns the number of the latest store that an access overlaps with, or 0.
func (q *memory) find(addr uint64, size uint8) (number uint64) {
	newest := uint64(0)
	for i := range granules(addr, size) {
		newest = max(newest, q.latest[slot(addr>>3+i)])
	}
	for n := newest; n > 0 && n+uint64(len(q.queue)) > q.number; n-- {
		s := &q.queue[n%uint64(len(q.queue))]
		if addr < s.addr+uint64(s.size) && s.addr < addr+uint64(size) {
			return n
		}
	}
	return 0
}

// covers says whether the store holds all that an access reads.
func (s *storeEntry) covers(addr uint64, size uint8) bool {
	return s.addr <= addr && addr+uint64(size) <= s.addr+uint64(s.size)
}

// enters finds when the latest store reaches the cache, after it has retired and its line
// has arrived. A cycle writes one part of a line, of all stores to it that follow each other.
func (q *memory) enters(c *memoryUnits, retired, arrives int64) int64 {
	s := &q.queue[q.number%uint64(len(q.queue))]
	first, last := s.addr>>c.written, (s.addr+uint64(max(s.size, 1))-1)>>c.written
	if first == q.part && (c.joined == 0 || q.joined < c.joined) && s.joins && q.committed > max(retired, arrives) {
		q.joined++
	} else {
		q.committed, q.joined = max(q.committed, retired, arrives)+1, 1
	}
	if last != first {
		q.committed, q.joined = q.committed+1, 1
	}
	q.part, s.commit = last, q.committed
	return s.commit
}
