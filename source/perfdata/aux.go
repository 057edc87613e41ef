package perfdata

import (
	"encoding/binary"
	"io"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// Aux returns the piece of the AUX area that follows the current record, which is an
// AUXTRACE; nothing follows others. Reading it ends the life of the record. What is not
// read is passed over by Next.
func (r *Reader) Aux() io.Reader { return aux{r} }

// An aux reads what follows an AUXTRACE.
type aux struct{ r *Reader }

func (a aux) Read(p []byte) (int, error) {
	r := a.r
	if r.gap.after != perffile.RecordAuxtrace || r.gap.size == 0 || r.done {
		return 0, io.EOF
	}
	n := int(min(r.gap.size, uint64(len(p)), minBuffer))
	n = copy(p[:n], r.data.win.need(n))
	r.data.win.lo += n
	r.gap.size -= uint64(n)
	switch {
	case n == 0 && len(p) > 0:
		return 0, io.EOF // Next says where the file ends
	case r.gap.size == 0:
		r.gap.after = 0
	}
	return n, nil
}

// NewEvent returns an event that is not in the file, for samples made as perf inject makes
// them. Its index must be none of the file's events'.
func NewEvent(a Attr, name string, index int) *Event {
	e := &Event{Attr: a, Index: index, Name: name, Named: true, Scale: 1}
	e.layout = newLayout(&e.Attr)
	e.flat = newFlatLayout(e)
	return e
}

// NewSample returns a sample of an event of [NewEvent]. The words are as the kernel would write
// them, in the order of its PERF_SAMPLE_… . It reports whether they are all there.
func (r *Reader) NewSample(e *Event, misc Misc, words []uint64) (*Sample, bool) {
	s := &Sample{Header: Header{Type: perffile.RecordSample, Misc: misc, d: r.d}}
	order := binary.AppendByteOrder(binary.LittleEndian)
	if r.d.big {
		order = binary.BigEndian
	}
	body := make([]byte, 0, 8*len(words))
	for _, w := range words {
		body = order.AppendUint64(body, w)
	}
	return s, s.reset(e, body, r.d.big)
}
