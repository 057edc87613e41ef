package perfdata

import (
	"math/bits"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A layout says where the fields of an event's samples are, worked out once for
// each event. A sample is runs of fields at fixed offsets, and between them
// parts that say their own size; see PERF_RECORD_SAMPLE in perf_event.h.
type layout struct {
	// Offsets in the first run, from the end of the record's header; -1 for
	// what samples do not have.
	identifier, ip, tid, time, addr, id, stream, cpu, period int

	head  int                // bytes of the first run
	parts []part             // what has its own size, in order
	after [numTails]place    // fields of later runs
	index [numParts]int8     // of parts, by kind; -1 for what samples do not have
	words [2 * numParts]int8 // registers that the masks ask for, by kind

	read           uint64
	branchIndex    bool
	branchCounters bool
	unknown        bool // samples have fields that this package does not know; they are the last

	idAt      int // where the id is, the better of two; -1 without
	trailerID int // where it is in trailers, from the end; -1 without
	trailer   int // bytes of trailers
}

// A part is a piece of a sample that says its own size.
type part struct {
	kind  partKind
	after int // bytes of the run of fields after it
}

type partKind uint8

const (
	partRead partKind = iota
	partCallchain
	partRaw
	partBranches
	partRegsUser
	partStackUser
	partRegsIntr
	partAux

	numParts = iota
)

// A tail is a field behind a part, of one word.
type tail uint8

const (
	tailWeight tail = iota
	tailDataSrc
	tailTransaction
	tailPhysAddr
	tailCgroup
	tailDataPageSize
	tailCodePageSize

	numTails = iota
)

// A place is where a tail is: in a run, counting from the run behind part 0 on
// as 1, and the offset in it. The run 0 is "not there", as no tail is in the
// first run without being behind its head.
type place struct {
	run    uint8
	offset uint16
	ok     bool
}

func newLayout(a *Attr) layout {
	l := layout{
		read:           a.ReadFormat,
		branchIndex:    a.BranchType&perffile.BranchHWIndex != 0,
		branchCounters: a.BranchType&perffile.BranchCounters != 0,
		unknown:        a.SampleType&^perffile.KnownSampleTypes != 0 || a.ReadFormat&^perffile.KnownReadFormats != 0,
	}
	l.words[partRegsUser] = int8(bits.OnesCount64(a.RegsUser))
	l.words[partRegsIntr] = int8(bits.OnesCount64(a.RegsIntr))
	l.placeHead(a.SampleType)
	l.placeRest(a.SampleType)
	l.placeTrailer(a.SampleType)
	return l
}

func (l *layout) placeHead(t SampleType) {
	for _, f := range []struct {
		bit SampleType
		at  *int
	}{
		{perffile.SampleIdentifier, &l.identifier}, {perffile.SampleIP, &l.ip}, {perffile.SampleTID, &l.tid}, {perffile.SampleTime, &l.time},
		{perffile.SampleAddr, &l.addr}, {perffile.SampleID, &l.id}, {perffile.SampleStreamID, &l.stream}, {perffile.SampleCPU, &l.cpu},
		{perffile.SamplePeriod, &l.period},
	} {
		*f.at = -1
		if t&f.bit != 0 {
			*f.at = l.head
			l.head += 8
		}
	}
	l.idAt = l.identifier
	if l.idAt < 0 {
		l.idAt = l.id
	}
}

func (l *layout) placeRest(t SampleType) {
	for i := range l.index {
		l.index[i] = -1
	}
	run := 0
	for _, f := range []struct {
		bit  SampleType
		part partKind
		tail tail
		size bool // has its own size
	}{
		{perffile.SampleRead, partRead, 0, true},
		{perffile.SampleCallchain, partCallchain, 0, true},
		{perffile.SampleRaw, partRaw, 0, true},
		{perffile.SampleBranchStack, partBranches, 0, true},
		{perffile.SampleRegsUser, partRegsUser, 0, true},
		{perffile.SampleStackUser, partStackUser, 0, true},
		{perffile.SampleWeight | perffile.SampleWeightStruct, 0, tailWeight, false},
		{perffile.SampleDataSrc, 0, tailDataSrc, false},
		{perffile.SampleTransaction, 0, tailTransaction, false},
		{perffile.SampleRegsIntr, partRegsIntr, 0, true},
		{perffile.SamplePhysAddr, 0, tailPhysAddr, false},
		{perffile.SampleCgroup, 0, tailCgroup, false},
		{perffile.SampleDataPageSize, 0, tailDataPageSize, false},
		{perffile.SampleCodePageSize, 0, tailCodePageSize, false},
		{perffile.SampleAux, partAux, 0, true},
	} {
		switch {
		case t&f.bit == 0:
		case f.size:
			l.index[f.part] = int8(len(l.parts))
			l.parts = append(l.parts, part{kind: f.part})
			run = len(l.parts)
		case run == 0:
			l.after[f.tail] = place{0, uint16(l.head), true}
			l.head += 8
		default:
			p := &l.parts[run-1]
			l.after[f.tail] = place{uint8(run), uint16(p.after), true}
			p.after += 8
		}
	}
}

// placeTrailer follows struct sample_id of perf_event.h.
func (l *layout) placeTrailer(t SampleType) {
	l.trailerID = -1
	behindID := 0
	for _, bit := range []SampleType{perffile.SampleTID, perffile.SampleTime, perffile.SampleID, perffile.SampleStreamID, perffile.SampleCPU, perffile.SampleIdentifier} {
		if t&bit == 0 {
			continue
		}
		l.trailer += 8
		behindID += 8
		if bit == perffile.SampleID || bit == perffile.SampleIdentifier {
			behindID = 0
			l.trailerID = 0
		}
	}
	if l.trailerID == 0 {
		l.trailerID = behindID + 8
	}
}

// readWords returns how many words a reading has for a group or event, and for
// each member.
func readWords(f uint64) (head, each int) {
	if f&perffile.FormatTotalTimeEnabled != 0 {
		head++
	}
	if f&perffile.FormatTotalTimeRunning != 0 {
		head++
	}
	each = 1
	if f&perffile.FormatID != 0 {
		each++
	}
	if f&perffile.FormatLost != 0 {
		each++
	}
	return head, each
}

// partSize returns how long a part is that begins b. It is -1 if b is too short.
func (l *layout) partSize(kind partKind, b []byte, big bool) int {
	const word = 8
	if kind == partRaw {
		if len(b) < 4 {
			return -1
		}
		return within(4, uint64(get32(b, big)), 1, b)
	}
	if len(b) < word {
		return -1
	}
	n := get64(b, big)
	switch kind {
	case partCallchain:
		return within(word, n, word, b)
	case partRead:
		head, each := readWords(l.read)
		if l.read&perffile.FormatGroup == 0 {
			return within(0, uint64(head+each), word, b)
		}
		return within(word*(1+head), n, word*each, b)
	case partBranches:
		head, each := word, 24
		if l.branchIndex {
			head += word
		}
		if l.branchCounters {
			each += word
		}
		return within(head, n, each, b)
	case partRegsUser, partRegsIntr:
		if n == 0 { // no ABI, no registers
			return word
		}
		return within(word, uint64(l.words[kind]), word, b)
	case partStackUser:
		if n == 0 { // and no word for how much of it is valid
			return word
		}
		return within(2*word, n, 1, b)
	default: // partAux
		return within(word, n, 1, b)
	}
}

// within returns head + n·each, or -1 if that is more than b has.
func within(head int, n uint64, each int, b []byte) int {
	if head > len(b) || n > uint64((len(b)-head)/each) {
		return -1
	}
	return head + int(n)*each
}
