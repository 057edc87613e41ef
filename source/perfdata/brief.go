package perfdata

import (
	"encoding/binary"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A Brief is what a flat profile needs of a sample; see [Reader.Skim].
type Brief struct {
	Time, IP uint64
	Value    float64 // what it adds to the count of its event; see [Amount]
	PID      int32
	Event    uint16 // its Index
	Misc     Misc
}

// Mode says where the processor was.
func (b *Brief) Mode() Mode { return Mode(b.Misc & perffile.MiscModeMask) }

// A sketch says where in an event's samples the fields of a Brief are, counted from
// the beginning of the record. What samples do not have is not among them.
type sketch struct {
	least     int     // bytes of the shortest sample
	place     int     // offset of the address, which process and time follow
	period    int     // offset; 0 for a fixed one
	fixed     float64 // period
	callchain bool    // follows the first run of fields, and is the last part
	parts     bool    // there are others, or in between
	index     uint16
	brief     bool // samples can be skimmed
}

const recordHeader = 8

// newSketch works out the sketch of an event. Samples are not brief that lack any of
// the fields, read counters, or whose periods are not known.
func newSketch(e *Event) sketch {
	l := &e.layout
	k := sketch{least: recordHeader + l.head, place: recordHeader + l.ip, index: uint16(e.Index)}
	switch {
	case l.ip < 0 || l.tid < 0 || l.time < 0 || l.index[partRead] >= 0 || e.IsDummy():
		return k
	case l.period >= 0:
		k.period = recordHeader + l.period
	default:
		if k.fixed = float64(e.fixedPeriod()); k.fixed == 0 {
			return k
		}
	}
	k.brief = true
	k.callchain = len(l.parts) == 1 && l.parts[0] == part{kind: partCallchain}
	k.parts = len(l.parts) > 0 && !k.callchain
	return k
}

// Skim appends to dst, as far as its capacity goes, the samples that come next: those
// that Next would return one by one, for callers that need no more of them. It stops
// ahead of what is no sample, is not in memory yet, or is a sample of which a Brief
// does not say all that it counts; Next then goes on there.
func (r *Reader) Skim(dst []Brief) []Brief {
	switch {
	case r.done || r.dirty || r.d.big || r.pass > 0 || len(r.d.events) == 0 || len(r.d.events) > 1 && len(r.d.idAt) != 1:
		return dst
	case r.unpack != nil:
		u := r.unpack
		dst, n := r.skim(dst, u.out[u.lo:])
		u.take(n)
		return dst
	}
	dst, n := r.skim(dst, r.win.buf[r.win.lo:r.win.hi])
	r.win.lo += n
	return dst
}

// skim is Skim for the records that b begins with. It returns how many bytes they are.
func (r *Reader) skim(dst []Brief, b []byte) ([]Brief, int) {
	le := binary.LittleEndian
	list := dst[len(dst):cap(dst)]
	n, at := 0, 0
	k := &r.d.events[0].sketch
	several, idAt, id := len(r.d.events) > 1, 0, uint64(0)
	if several {
		idAt, k = recordHeader+r.d.idAt[0], &sketch{}
	}
	for n < len(list) && len(b)-at >= recordHeader {
		head := le.Uint64(b[at:])
		size := int(head >> 48)
		if uint32(head) != uint32(perffile.RecordSample) || size > len(b)-at || size < recordHeader {
			break
		}
		rec := b[at : at+size : at+size]
		if several {
			if idAt+8 > size {
				break
			}
			if now := le.Uint64(rec[idAt:]); now != id || !k.brief {
				in := r.d.instance(now)
				if in == nil || in.event.layout.idAt != r.d.idAt[0] {
					break
				}
				id, k = now, &in.event.sketch
			}
		}
		if !k.brief || size < k.least || k.parts && !r.d.events[k.index].layout.whole(rec[recordHeader:]) {
			break
		}
		if k.callchain && (size-k.least < 8 || le.Uint64(rec[k.least:]) > uint64(size-k.least-8)/8) {
			break
		}
		to, place := &list[n], (*[24]byte)(rec[k.place:])
		to.IP, to.PID, to.Time = le.Uint64(place[:]), int32(le.Uint32(place[8:])), le.Uint64(place[16:])
		if to.Value = k.fixed; k.period > 0 {
			to.Value = float64(le.Uint64(rec[k.period:]))
		}
		to.Event, to.Misc = k.index, Misc(head>>32)
		n++
		at += size
	}
	r.tally.known[perffile.RecordSample] += int64(n)
	r.stats.Samples += int64(n)
	return dst[:len(dst)+n], at
}

// whole reports whether the parts of a sample are all there, of a little-endian file.
func (l *layout) whole(body []byte) bool {
	at := l.head
	for _, p := range l.parts {
		n := l.partSize(p.kind, body[at:], false)
		if n < 0 || at+n+p.after > len(body) {
			return false
		}
		at += n + p.after
	}
	return true
}
