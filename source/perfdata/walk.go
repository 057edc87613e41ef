package perfdata

import (
	"fmt"
	"io"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// finish ends the walk, and reads what is behind the data of a stream.
func (r *Reader) finish() {
	if r.err == nil && r.data.win.err != nil && r.data.win.err != io.EOF && r.stats.Truncated < 0 {
		r.err, r.failed = r.fail(r.data.win.offset(), "", r.data.win.err), true
	}
	r.endUnpack()
	if r.err == nil && r.in.at == nil && !r.header.pipe && r.data.bound >= 0 && r.stats.Truncated < 0 {
		if err := r.in.readTail(r.data.bound); err == nil {
			r.readFeatures()
			r.known.dirty = true
			r.settle()
		}
	}
	r.Close()
}

// fetch returns the next record and its offset, nil at the end of the last part.
func (r *Reader) fetch() ([]byte, int64) {
	raw, off := r.fetchHere()
	for raw == nil && r.err == nil && r.nextPart() {
		raw, off = r.fetchHere()
	}
	return raw, off
}

// fetchHere returns the next record of the current part and its offset, nil at
// the end.
func (r *Reader) fetchHere() ([]byte, int64) {
	if r.packed.unpack != nil {
		if raw := r.fetchUnpacked(); raw != nil || r.err != nil {
			return raw, r.packed.at
		}
	}
	if r.gap.size > 0 && !r.passOver() {
		return nil, 0
	}
	b := r.data.win.need(8)
	off := r.data.win.offset()
	if len(b) < 8 {
		if len(b) > 0 || r.data.bound > off || r.data.win.err != io.EOF {
			r.truncated(off)
		}
		return nil, 0
	}
	size := r.recordSize(b)
	if get32(b, r.d.big) == uint32(perffile.RecordCompressed2) {
		size = r.joinedSize(off, size)
	}
	if size < 8 {
		r.badSize(off, b, size)
		return nil, 0
	}
	if len(b) < size {
		if b = r.data.win.need(size); len(b) < size {
			r.overrun(off, b, size)
			return nil, 0
		}
	}
	r.data.win.lo += size
	return b[:size:size], off
}

// fetchUnpacked returns the next record that was compressed, nil if what was fed
// to the decoder is used up.
func (r *Reader) fetchUnpacked() []byte {
	u := r.packed.unpack
	b := u.peek(8)
	if len(b) >= 8 {
		size := int(get16(b[6:], r.d.big))
		if size < 8 {
			r.err = r.fail(r.packed.at, fmt.Sprintf("a record of %d bytes in what was compressed", size), nil)
			return nil
		}
		if len(b) < size {
			b = u.peek(size)
		}
		if len(b) >= size {
			u.take(size)
			return b[:size:size]
		}
	}
	if u.err != nil {
		r.err = r.fail(r.packed.at, "decompressing", u.err)
	}
	return nil
}

// recordSize returns the size of the record that b begins with. Simpleperf uses
// the field before it for the upper half, in records of its own.
func (r *Reader) recordSize(b []byte) int {
	size := int(get16(b[6:], r.d.big))
	const simpleperf = 1 << 15
	if t := get32(b, r.d.big); t >= simpleperf && t < simpleperf+1000 {
		size |= int(get16(b[4:], r.d.big)) << 16
		if size > maxSimpleperf {
			return 0
		}
	}
	return size
}

// maxSimpleperf bounds the records of simpleperf's own.
const maxSimpleperf = 16 << 20

// truncated notes that the file ends inside a record.
func (r *Reader) truncated(off int64) {
	if r.data.win.err != nil && r.data.win.err != io.EOF && r.data.win.err != io.ErrUnexpectedEOF {
		return // finish tells
	}
	r.stats.Truncated = off
}

// badSize ends the reading at a record that cannot be one. A file that was not
// finished may end in space that was not written.
func (r *Reader) badSize(off int64, b []byte, size int) {
	if r.stats.Unterminated && get64(b, false) == 0 {
		r.stats.Truncated = off
		return
	}
	r.err = r.fail(off, fmt.Sprintf("a record (%v) of %d bytes", RecordType(get32(b, r.d.big)), size), nil)
}

// overrun ends the reading at a record that is longer than what is left.
func (r *Reader) overrun(off int64, b []byte, size int) {
	if r.data.bound >= 0 && off+int64(len(b)) >= r.data.bound {
		r.err = r.fail(off, fmt.Sprintf("a record (%v) of %d bytes ends behind the data", RecordType(get32(b, r.d.big)), size), nil)
		return
	}
	r.truncated(off)
}

// passOver skips what follows a record without being one.
func (r *Reader) passOver() bool {
	n, after := r.gap.size, r.gap.after
	r.gap.size, r.gap.after = 0, 0
	off := r.data.win.offset()
	if after == perffile.RecordHeaderTracingData && n <= maxTracing {
		b := r.data.win.need(int(n))
		r.known.features.set(perffile.FeatureTracingData, b[:min(int(n), len(b))], r.d.big)
		r.known.dirty = true
	}
	skipped := r.data.win.skip(n)
	if after == perffile.RecordAuxtrace {
		r.stats.AuxBytes += int64(skipped)
	}
	if skipped < n {
		r.truncated(off)
		return false
	}
	return true
}

// unpackRecord feeds a compressed record to the decoder.
func (r *Reader) unpackRecord(h Header, c *cursor) {
	payload := c.b
	if h.Type == perffile.RecordCompressed2 {
		n := c.u64() // without the padding
		if payload = c.b; !r.packed.join && n < uint64(len(payload)) {
			payload = payload[:n]
		}
	}
	if r.packed.unpack == nil {
		r.packed.unpack = newUnpacker()
	}
	r.packed.at = h.Offset
	r.packed.unpack.feed(payload)
}

// joinedSize returns the size of a COMPRESSED2 record whose header says size.
// Perf 6.15 to 6.19 split what did not fit into one record (KDAB/hotspot#736). The first
// has the length of all: data_size is too large, and size is what is left of it in 16
// bits. The others have no data_size.
func (r *Reader) joinedSize(off int64, size int) int {
	const (
		head = 16
		full = 1<<16 - 1 // size of a record that another one follows
		most = 64 << 20
	)
	if r.packed.joined > 0 {
		r.packed.join = true
		if r.packed.joined -= size; r.packed.joined < 8 {
			r.gap.size, r.packed.joined = uint64(max(r.packed.joined, 0)), 0
		}
		return size
	}
	r.packed.join = false
	b := r.data.win.need(head)
	if len(b) < head {
		return size
	}
	n := get64(b[8:], r.d.big)
	if n <= full-head || n > most || perffile.Align(int(n)+head, 8)&full != size {
		return size
	}
	r.packed.join, r.packed.joined = true, perffile.Align(int(n)+head, 8)-full
	r.note(off, "compressed records were joined, as some versions of perf do")
	return full
}
