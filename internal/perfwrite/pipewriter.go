package perfwrite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A PipeWriter writes what perf record writes into a pipe (-o -): everything in
// records, so that nothing has to be known ahead nor changed afterwards.
type PipeWriter struct{ w Writer }

// NewPipeWriter writes the beginning to out: the events, and what f says of the
// machine and the recording. A nil f says nothing.
func NewPipeWriter(out io.Writer, opts WriterOptions, f *perfdata.Features) (*PipeWriter, error) {
	if len(opts.Events) == 0 {
		return nil, errors.New("perfwrite: a recording needs an event")
	}
	if f == nil {
		f = &perfdata.Features{}
	}
	p := &PipeWriter{Writer{w: bufio.NewWriterSize(out, 1<<20), opts: opts, attr: attrSizeOurs}}
	w := &p.w
	if w.compressor, w.err = newCompressor(opts.Level); w.err != nil {
		return nil, w.err
	}
	for _, e := range opts.Events {
		w.attr = max(w.attr, attrSize(&e.Attr))
	}
	b := w.builder().u64(0).u64(perffile.PipeSize)
	copy(b.b, perffile.Magic2)
	if b.big {
		copy(b.b, perffile.Magic2Big)
	}
	if err := w.write(b.b); err != nil {
		return nil, err
	}
	if err := p.describe(f); err != nil {
		return nil, err
	}
	return p, w.Flush()
}

// describe writes the events, their names and what is known of the machine.
func (p *PipeWriter) describe(f *perfdata.Features) error {
	w := &p.w
	for _, e := range w.opts.Events {
		b := appendAttr(builder{big: w.opts.BigEndian}, &e.Attr, w.attr)
		for _, id := range e.IDs {
			b = b.u64(id)
		}
		if err := p.record(perffile.RecordHeaderAttr, b); err != nil {
			return err
		}
	}
	for _, s := range w.sections(f) {
		switch s.feature {
		case perffile.FeatureBuildID:
			continue // in records of their own
		case perffile.FeatureTracingData:
			if err := p.tracing(s.b); err != nil {
				return err
			}
			continue
		}
		b := builder{big: w.opts.BigEndian}.u64(uint64(s.feature)).bytes(s.b...)
		if err := p.record(perffile.RecordHeaderFeature, b); err != nil {
			return err
		}
	}
	for _, e := range w.opts.Events {
		if len(e.IDs) == 0 || e.Name == "" {
			continue
		}
		const name = 2 // the kind of the update
		b := builder{big: w.opts.BigEndian}.u64(name).u64(e.IDs[0]).text([]byte(e.Name))
		if err := p.record(perffile.RecordEventUpdate, b); err != nil {
			return err
		}
	}
	return p.buildIDs(f)
}

// tracing writes the formats of tracepoints. They follow a record with their size, which is
// padded.
func (p *PipeWriter) tracing(b []byte) error {
	size := perffile.Align(len(b), 8)
	if err := p.record(perffile.RecordHeaderTracingData, builder{big: p.w.opts.BigEndian}.u32(uint32(size))); err != nil {
		return err
	}
	return p.w.write(builder{b: slices.Clone(b)}.zeros(size - len(b)).b)
}

// maxPipeRecord is the size that the header of a record has room for.
const maxPipeRecord = 1<<16 - 8

// record writes one of perf's own records.
func (p *PipeWriter) record(kind perfdata.RecordType, body builder) error {
	body = body.zeros(perffile.Align(len(body.b), 8) - len(body.b))
	size := 8 + len(body.b)
	if size > maxPipeRecord {
		if kind == perffile.RecordHeaderFeature {
			return nil // it can be done without
		}
		return fmt.Errorf("perfwrite: a record (%v) of %d bytes is too long", kind, size)
	}
	head := builder{big: body.big}.u32(uint32(kind)).u16(0).u16(uint16(size))
	if err := p.w.write(head.b); err != nil {
		return err
	}
	return p.w.write(body.b)
}

// Size returns how many bytes were written.
func (p *PipeWriter) Size() int64 { return p.w.Size() }

// Write appends records as the kernel wrote them: see Writer.Write.
func (p *PipeWriter) Write(b []byte) (int, error) { return p.w.Write(b) }

// WriteRecord appends a record: see Writer.WriteRecord.
func (p *PipeWriter) WriteRecord(rec perfdata.Record, t perfdata.Trailer) error {
	return p.w.WriteRecord(rec, t)
}

// Flush writes what is buffered into the pipe.
func (p *PipeWriter) Flush() error { return p.w.Flush() }

// Close writes what only is known at the end, the build ids that f has, and what
// is buffered; it does not close the pipe. A nil f has none.
func (p *PipeWriter) Close(f *perfdata.Features) error {
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

func (p *PipeWriter) buildIDs(f *perfdata.Features) error {
	for _, id := range f.BuildIDs {
		rec := &perfdata.BuildID{PID: id.PID, BuildID: id.BuildID, Filename: []byte(id.Filename)}
		const sized perfdata.Misc = 1 << 15 // the size of the build id is told
		rec.Misc = sized | perfdata.Misc(id.Mode)&perffile.MiscModeMask
		if err := p.w.WriteRecord(rec, perfdata.Trailer{}); err != nil {
			return err
		}
	}
	return nil
}
