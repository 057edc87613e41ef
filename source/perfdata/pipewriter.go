package perfdata

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// A PipeWriter writes what perf record writes into a pipe (-o -): everything in
// records, so that nothing has to be known ahead nor changed afterwards.
type PipeWriter struct{ w Writer }

// NewPipeWriter writes the beginning to out: the events, and what f says of the
// machine and the recording. A nil f says nothing.
func NewPipeWriter(out io.Writer, opts WriterOptions, f *Features) (*PipeWriter, error) {
	if len(opts.Events) == 0 {
		return nil, errors.New("perfdata: a recording needs an event")
	}
	if f == nil {
		f = &Features{}
	}
	p := &PipeWriter{Writer{w: bufio.NewWriterSize(out, 1<<20), opts: opts, attr: attrSizeOurs}}
	w := &p.w
	for _, e := range opts.Events {
		w.attr = max(w.attr, e.size())
		e.layout = newLayout(&e.Attr)
	}
	b := w.builder().u64(0).u64(pipeSize)
	copy(b.b, magic2)
	if b.big {
		copy(b.b, magic2Big)
	}
	if _, err := w.Write(b.b); err != nil {
		return nil, err
	}
	if err := p.describe(f); err != nil {
		return nil, err
	}
	return p, w.Flush()
}

// describe writes the events, their names and what is known of the machine.
func (p *PipeWriter) describe(f *Features) error {
	w := &p.w
	for _, e := range w.opts.Events {
		b := e.appendTo(builder{big: w.opts.BigEndian}, w.attr)
		for _, id := range e.IDs {
			b = b.u64(id)
		}
		if err := p.record(RecordHeaderAttr, b); err != nil {
			return err
		}
	}
	for _, s := range w.sections(f) {
		if s.feature == FeatureBuildID {
			continue // in records of their own
		}
		b := builder{big: w.opts.BigEndian}.u64(uint64(s.feature)).bytes(s.b...)
		if err := p.record(RecordHeaderFeature, b); err != nil {
			return err
		}
	}
	for _, e := range w.opts.Events {
		if len(e.IDs) == 0 || e.Name == "" {
			continue
		}
		named := &Event{Name: e.Name}
		if err := w.WriteRecord(&EventUpdate{ID: e.IDs[0], Event: named}, Trailer{}); err != nil {
			return err
		}
	}
	return p.buildIDs(f)
}

// maxPipeRecord is the size that the header of a record has room for.
const maxPipeRecord = 1<<16 - 8

// record writes one of perf's own records.
func (p *PipeWriter) record(kind RecordType, body builder) error {
	body = body.zeros(align(len(body.b), 8) - len(body.b))
	size := 8 + len(body.b)
	if size > maxPipeRecord {
		if kind == RecordHeaderFeature {
			return nil // it can be done without
		}
		return fmt.Errorf("perfdata: a record (%v) of %d bytes is too long", kind, size)
	}
	head := builder{big: body.big}.u32(uint32(kind)).u16(0).u16(uint16(size))
	if _, err := p.w.Write(head.b); err != nil {
		return err
	}
	_, err := p.w.Write(body.b)
	return err
}

// Write appends records as the kernel wrote them: see Writer.Write.
func (p *PipeWriter) Write(b []byte) (int, error) { return p.w.Write(b) }

// WriteRecord appends a record: see Writer.WriteRecord.
func (p *PipeWriter) WriteRecord(rec Record, t Trailer) error { return p.w.WriteRecord(rec, t) }

// Flush writes what is buffered, so that who reads the pipe gets it.
func (p *PipeWriter) Flush() error { return p.w.Flush() }

// Close writes what only is known at the end, the build ids that f has, and what
// is buffered; it does not close the pipe. A nil f has none.
func (p *PipeWriter) Close(f *Features) error {
	if p.w.closed || p.w.err != nil {
		return p.w.err
	}
	p.w.closed = true
	if f != nil {
		if err := p.buildIDs(f); err != nil {
			return err
		}
	}
	return p.w.Flush()
}

func (p *PipeWriter) buildIDs(f *Features) error {
	for _, id := range f.BuildIDs {
		rec := &BuildID{PID: id.PID, BuildID: id.BuildID, Filename: []byte(id.Filename)}
		const sized Misc = 1 << 15 // the size of the build id is told
		rec.Misc = sized | Misc(id.Mode)&MiscModeMask
		if err := p.w.WriteRecord(rec, Trailer{}); err != nil {
			return err
		}
	}
	return nil
}
