package perfwrite

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// WriterOptions say what a file contains.
type WriterOptions struct {
	Events    []*perfdata.Event // with Attr, IDs and Name; those of a group follow each other and have the same Leader
	BigEndian bool
	Tracing   []byte // the formats of tracepoints, as perf has them in its header; nil for none
	Level     int    // of the compression of the kernel's records, 1 to 22; 0 for none
}

// A Writer writes a perf.data file of version 2: what perf record writes into a file.
//
//	w, err := perfwrite.NewWriter(f, perfwrite.WriterOptions{Events: events})
//	…
//	w.WriteRecord(&perfdata.Comm{PID: pid, TID: pid, Comm: name}, perfdata.Trailer{})
//	w.Write(ring) // as the kernel wrote them
//	err = w.Close(&perfdata.Features{Hostname: host, …})
//
// Until it is closed, the file's header says so, and it can be read as far as it goes.
type Writer struct {
	f      io.WriteSeeker
	w      *bufio.Writer
	opts   WriterOptions
	attr   int // size of an attribute
	data   perffile.Section
	buf    []byte
	err    error
	closed bool

	compressor *compressor // nil for none
}

// NewWriter writes the beginning of a file to f.
func NewWriter(f io.WriteSeeker, opts WriterOptions) (*Writer, error) {
	if len(opts.Events) == 0 {
		return nil, errors.New("perfwrite: a file needs an event")
	}
	w := &Writer{f: f, w: bufio.NewWriterSize(f, 1<<20), opts: opts, attr: attrSizeOurs}
	if w.compressor, w.err = newCompressor(opts.Level); w.err != nil {
		return nil, w.err
	}
	for _, e := range opts.Events {
		w.attr = max(w.attr, attrSize(&e.Attr))
	}
	b := w.builder()
	b.b = make([]byte, perffile.HeaderSize)
	ids := make([]perffile.Section, len(opts.Events))
	for i, e := range opts.Events {
		ids[i] = perffile.Section{Off: uint64(len(b.b)), Size: uint64(8 * len(e.IDs))}
		for _, id := range e.IDs {
			b = b.u64(id)
		}
	}
	attrs := len(b.b)
	for i, e := range opts.Events {
		b = appendAttr(b, &e.Attr, w.attr).section(ids[i])
	}
	w.data.Off = uint64(len(b.b))
	copy(b.b, w.header(nil, perffile.Section{Off: uint64(attrs), Size: uint64(len(b.b) - attrs)}))
	if _, err := w.w.Write(b.b); err != nil {
		return nil, err
	}
	return w, w.w.Flush()
}

func (w *Writer) builder() builder { return builder{b: w.buf[:0], big: w.opts.BigEndian} }

func (b builder) section(s perffile.Section) builder { return b.u64(s.Off).u64(s.Size) }

// header returns the header with the size of the data so far.
func (w *Writer) header(features []perfdata.Feature, attrs perffile.Section) []byte {
	b := builder{big: w.opts.BigEndian}
	b = b.u64(0).u64(perffile.HeaderSize).u64(uint64(w.attr + perffile.SectionSize)).section(attrs).section(w.data).section(perffile.Section{})
	copy(b.b, perffile.Magic2)
	if b.big {
		copy(b.b, perffile.Magic2Big)
	}
	var words [perffile.MaxFeatures / 64]uint64
	for _, f := range features {
		words[f/64] |= 1 << (f % 64)
	}
	for _, word := range words {
		b = b.u64(word)
	}
	return b.b
}

// attrs returns where the attributes are.
func (w *Writer) attrs() perffile.Section {
	n := uint64(len(w.opts.Events) * (w.attr + perffile.SectionSize))
	return perffile.Section{Off: w.data.Off - n, Size: n}
}

// Write appends records as the kernel wrote them: whole ones, in the byte order
// of the file.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.compressor != nil {
		w.err = w.pack(p)
	} else {
		w.err = w.write(p)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// write writes what is not to be compressed.
func (w *Writer) write(p []byte) error {
	n, err := w.w.Write(p)
	w.data.Size += uint64(n)
	w.err = err
	return err
}

// Size returns how many bytes of records were written.
func (w *Writer) Size() int64 { return int64(w.data.Size) }

// Flush writes what is buffered, so that a reader of the unfinished file sees
// it.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.err = w.flushPacked()
	}
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// WriteRecord appends a record with the Misc of its Header. Where one Go type stands for
// two, the Type of the Header decides: without it, MMAP2, FORK, THROTTLE and SWITCH are
// written. A record of the kernel's gets the trailer of the first event's SampleType,
// with the fields of t. Samples are written as bytes, with Write.
func (w *Writer) WriteRecord(rec perfdata.Record, t perfdata.Trailer) error {
	b := w.builder().zeros(8)
	kind, b := encode(b, rec)
	if kind == 0 {
		return fmt.Errorf("perfwrite: a record of type %T cannot be written", rec)
	}
	if kind < perffile.RecordHeaderAttr {
		b = w.trailer(b, t)
	}
	if len(b.b) > 1<<16-8 {
		return fmt.Errorf("perfwrite: a record (%v) of %d bytes is too long", kind, len(b.b))
	}
	b = b.zeros(perffile.Align(len(b.b), 8) - len(b.b))
	w.buf = b.b
	head := builder{big: b.big}.u32(uint32(kind)).u16(uint16(rec.Head().Misc)).u16(uint16(len(b.b)))
	copy(b.b, head.b)
	if w.err == nil {
		w.err = w.flushPacked()
	}
	if w.err != nil {
		return w.err
	}
	return w.write(b.b)
}

func (w *Writer) trailer(b builder, t perfdata.Trailer) builder {
	e := w.opts.Events[0]
	if !e.Has(perffile.FlagSampleIDAll) {
		return b
	}
	b = b.zeros(perffile.Align(len(b.b), 8) - len(b.b))
	for _, f := range []struct {
		bit  perfdata.SampleType
		word func() builder
	}{
		{perffile.SampleTID, func() builder { return b.u32(uint32(t.PID)).u32(uint32(t.TID)) }},
		{perffile.SampleTime, func() builder { return b.u64(t.Time) }},
		{perffile.SampleID, func() builder { return b.u64(t.ID) }},
		{perffile.SampleStreamID, func() builder { return b.u64(t.StreamID) }},
		{perffile.SampleCPU, func() builder { return b.u32(uint32(t.CPU)).u32(0) }},
		{perffile.SampleIdentifier, func() builder { return b.u64(t.ID) }},
	} {
		if e.SampleType&f.bit != 0 {
			b = f.word()
		}
	}
	return b
}

// Close writes what f says of the machine and the recording, and makes the file
// complete; it does not close it. The events' names and groups are written in
// any case. A nil f says nothing.
func (w *Writer) Close(f *perfdata.Features) error {
	if w.closed || w.err != nil {
		return w.err
	}
	w.closed = true
	if f == nil {
		f = &perfdata.Features{}
	}
	if w.err = w.flushPacked(); w.err != nil {
		return w.err
	}
	sections := w.sections(f)
	at := w.data.End() + uint64(len(sections))*perffile.SectionSize
	table := builder{big: w.opts.BigEndian}
	present := make([]perfdata.Feature, len(sections))
	for i, s := range sections {
		table = table.section(perffile.Section{Off: at, Size: uint64(len(s.b))})
		at += uint64(len(s.b))
		present[i] = s.feature
	}
	_, w.err = w.w.Write(table.b)
	for _, s := range sections {
		if w.err == nil {
			_, w.err = w.w.Write(s.b)
		}
	}
	if w.Flush() != nil {
		return w.err
	}
	if _, w.err = w.f.Seek(0, io.SeekStart); w.err == nil {
		_, w.err = w.f.Write(w.header(present, w.attrs()))
	}
	if w.err == nil {
		_, w.err = w.f.Seek(0, io.SeekEnd)
	}
	return w.err
}
