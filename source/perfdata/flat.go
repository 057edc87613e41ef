package perfdata

import (
	"encoding/binary"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A FlatSample is what a flat profile needs of a sample; see [Reader.NextFlat].
type FlatSample struct {
	Time, IP uint64
	Value    float64 // what it adds to the count of its event; see [Amount]
	PID, TID int32
	Event    uint16 // its Index
	Misc     Misc
}

// Mode says where the processor was.
func (b *FlatSample) Mode() Mode { return Mode(b.Misc & perffile.MiscModeMask) }

// A flatLayout says where the fields of a FlatSample are, counted from the beginning of
// the record. Fields that samples do not have are not in it.
type flatLayout struct {
	least     int     // bytes of the shortest sample
	place     int     // offset of the address, which process and time follow
	period    int     // offset; 0 for a fixed one
	fixed     float64 // period
	callchain bool    // follows the first run of fields, and is the last part
	parts     bool    // there are others, or in between
	index     uint16
	ok        bool // samples are flat
}

const recordHeader = 8

// newFlatLayout returns the flat layout of an event. Its samples are not flat if they
// lack one of the fields, read counters, or have unknown periods.
func newFlatLayout(e *Event) flatLayout {
	l := &e.layout
	k := flatLayout{least: recordHeader + l.head, place: recordHeader + l.ip, index: uint16(e.Index)}
	switch {
	case l.ip < 0 || l.tid < 0 || l.time < 0 || l.index[partRead] >= 0 || e.IsDummy() || e.bpf:
		return k
	case l.period >= 0:
		k.period = recordHeader + l.period
	default:
		if k.fixed = float64(e.fixedPeriod()); k.fixed == 0 {
			return k
		}
	}
	k.ok = true
	k.callchain = len(l.parts) == 1 && l.parts[0] == part{kind: partCallchain}
	k.parts = len(l.parts) > 0 && !k.callchain
	return k
}

// NextFlat appends the next samples to dst, as far as its capacity goes: those that
// Next would return one by one. It stops before a record that is no sample or not yet
// in memory. It also stops before a sample that does not fit a FlatSample. Next
// continues there.
//
// With chains, which have at least the room of dst, it fills in the callchains of the samples.
// They are valid until the next call of Next or NextFlat. Then it also stops before a sample that
// has more than a callchain.
func (r *Reader) NextFlat(dst []FlatSample, chains []Words) []FlatSample {
	switch {
	case r.done || r.known.dirty || r.d.big || r.gap.size > 0 || len(r.d.events) == 0 || len(r.d.events) > 1 && len(r.d.idAt) != 1:
		return dst
	case r.packed.unpack != nil:
		u := r.packed.unpack
		dst, n := r.scanFlat(dst, chains, u.out[u.lo:])
		u.take(n)
		return dst
	}
	dst, n := r.scanFlat(dst, chains, r.data.win.buf[r.data.win.lo:r.data.win.hi])
	r.data.win.lo += n
	return dst
}

// scanFlat is NextFlat for the records that b begins with. It returns how many bytes
// they are.
func (r *Reader) scanFlat(dst []FlatSample, chains []Words, b []byte) ([]FlatSample, int) {
	le := binary.LittleEndian
	list := dst[len(dst):cap(dst)]
	n, at := 0, 0
	k := &r.d.events[0].flat
	several, idAt, id := len(r.d.events) > 1, 0, uint64(0)
	if several {
		idAt, k = recordHeader+r.d.idAt[0], &flatLayout{}
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
			if now := le.Uint64(rec[idAt:]); now != id || !k.ok {
				in := r.d.instance(now)
				if in == nil || in.event.layout.idAt != r.d.idAt[0] {
					break
				}
				id, k = now, &in.event.flat
			}
		}
		if !k.ok || size < k.least || k.parts && chains != nil || k.parts && !r.d.events[k.index].layout.whole(rec[recordHeader:]) {
			break
		}
		words := uint64(0)
		if k.callchain {
			if size-k.least < 8 {
				break
			}
			if words = le.Uint64(rec[k.least:]); words > uint64(size-k.least-8)/8 {
				break
			}
		}
		to, place := &list[n], (*[24]byte)(rec[k.place:])
		to.IP, to.PID, to.TID, to.Time = le.Uint64(place[:]), int32(le.Uint32(place[8:])), int32(le.Uint32(place[12:])), le.Uint64(place[16:])
		if to.Value = k.fixed; k.period > 0 {
			to.Value = float64(le.Uint64(rec[k.period:]))
		}
		to.Event, to.Misc = k.index, Misc(head>>32)
		if chains != nil {
			if chains[n] = (Words{}); words > 0 {
				chains[n].b = rec[k.least+8:][:8*words]
			}
		}
		n++
		at += size
	}
	r.tally.known[perffile.RecordSample] += int64(n)
	r.stats.Samples += int64(n)
	return dst[:len(dst)+n], at
}

// whole reports whether all parts of a sample are there, in a little-endian file.
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
