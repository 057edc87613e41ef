package perfdata

import "fmt"

// Stats count what a [Reader] has met.
type Stats struct {
	Records map[RecordType]int64 // those of compressed records included, and these themselves; -1 counts what did not fit here

	Samples     int64 // that were decoded
	Lost        int64 // records that did not fit into a ring buffer: the sum of LOST
	LostSamples int64 // samples that the kernel or PMU dropped: the sum of LOST_SAMPLES
	Throttled   int64 // THROTTLE
	Unthrottled int64 // UNTHROTTLE

	Unknown   int64 // records of types that this package does not know
	Malformed int64 // records whose content is not what their type says
	Orphans   int64 // samples whose id is no event's

	AuxBytes     int64 // of AUX areas, passed over
	Compressed   int64 // bytes of compressed records
	Decompressed int64 // bytes that came out of them

	Unterminated bool     // perf record was killed: it did not write how long the data is
	Truncated    int64    // offset of the record that the file ends in; -1 for none
	Notes        []string // what else was found, one line each
}

// otherTypes is the key of Stats.Records for the types beyond maxTypes.
const otherTypes = ^RecordType(0)

const (
	knownTypes = 96  // types that are counted in an array
	maxTypes   = 256 // other types that are counted one by one
	maxNotes   = 16
)

// A tally counts records by type.
type tally struct {
	known [knownTypes]int64
	other map[RecordType]int64
}

func (t *tally) add(x RecordType) {
	if x < knownTypes {
		t.known[x]++
		return
	}
	if t.other == nil {
		t.other = map[RecordType]int64{}
	}
	if _, ok := t.other[x]; !ok && len(t.other) >= maxTypes {
		x = otherTypes
	}
	t.other[x]++
}

// Stats returns what has been met so far. The map is a copy.
func (r *Reader) Stats() Stats {
	s := r.stats
	s.Records = map[RecordType]int64{}
	for x, n := range r.tally.known {
		if n > 0 {
			s.Records[RecordType(x)] = n
		}
	}
	for x, n := range r.tally.other {
		s.Records[x] = n
	}
	if r.packed.unpack != nil {
		s.Compressed += r.packed.unpack.given
		s.Decompressed += r.packed.unpack.taken
	}
	s.Notes = append([]string(nil), r.stats.Notes...)
	return s
}

// note keeps a line for Stats. Their number is bounded.
func (r *Reader) note(off int64, msg string) {
	switch n := len(r.stats.Notes); {
	case n < maxNotes:
		r.stats.Notes = append(r.stats.Notes, fmt.Sprintf("at 0x%x: %s", off, msg))
	case n == maxNotes:
		r.stats.Notes = append(r.stats.Notes, "and more of the kind")
	}
}
