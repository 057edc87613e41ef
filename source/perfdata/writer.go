package perfdata

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// WriterOptions are what a file is about.
type WriterOptions struct {
	Events    []*Event // with Attr, IDs and Name; those of a group follow each other and have the same Leader
	BigEndian bool
}

// A Writer writes a perf.data file of version 2: what perf record writes without
// -z and into a file.
//
//	w, err := perfdata.NewWriter(f, perfdata.WriterOptions{Events: events})
//	…
//	w.WriteRecord(&perfdata.Comm{PID: pid, TID: pid, Comm: name}, perfdata.Trailer{})
//	w.Write(ring) // as the kernel wrote them
//	err = w.Close(&perfdata.Features{Hostname: host, …})
//
// Until it is closed the file has a header that says so, and can be read as far
// as it goes.
type Writer struct {
	f      io.WriteSeeker
	w      *bufio.Writer
	opts   WriterOptions
	attr   int // size of an attribute
	data   section
	buf    []byte
	err    error
	closed bool
}

// NewWriter writes the beginning of a file to f.
func NewWriter(f io.WriteSeeker, opts WriterOptions) (*Writer, error) {
	if len(opts.Events) == 0 {
		return nil, errors.New("perfdata: a file needs an event")
	}
	w := &Writer{f: f, w: bufio.NewWriterSize(f, 1<<20), opts: opts, attr: attrSizeOurs}
	for _, e := range opts.Events {
		w.attr = max(w.attr, e.size())
		e.layout = newLayout(&e.Attr)
	}
	b := w.builder()
	b.b = make([]byte, headerSize)
	ids := make([]section, len(opts.Events))
	for i, e := range opts.Events {
		ids[i] = section{uint64(len(b.b)), uint64(8 * len(e.IDs))}
		for _, id := range e.IDs {
			b = b.u64(id)
		}
	}
	attrs := len(b.b)
	for i, e := range opts.Events {
		b = e.appendTo(b, w.attr).section(ids[i])
	}
	w.data.off = uint64(len(b.b))
	copy(b.b, w.header(nil, section{uint64(attrs), uint64(len(b.b) - attrs)}))
	if _, err := w.w.Write(b.b); err != nil {
		return nil, err
	}
	return w, w.w.Flush()
}

func (w *Writer) builder() builder { return builder{b: w.buf[:0], big: w.opts.BigEndian} }

func (b builder) section(s section) builder { return b.u64(s.off).u64(s.size) }

// header returns the header with the size of the data so far.
func (w *Writer) header(features []Feature, attrs section) []byte {
	b := builder{big: w.opts.BigEndian}
	b = b.u64(0).u64(headerSize).u64(uint64(w.attr + sectionSize)).section(attrs).section(w.data).section(section{})
	copy(b.b, magic2)
	if b.big {
		copy(b.b, magic2Big)
	}
	var words [maxFeatures / 64]uint64
	for _, f := range features {
		words[f/64] |= 1 << (f % 64)
	}
	for _, word := range words {
		b = b.u64(word)
	}
	return b.b
}

// attrs returns where the attributes are.
func (w *Writer) attrs() section {
	n := uint64(len(w.opts.Events) * (w.attr + sectionSize))
	return section{w.data.off - n, n}
}

// Write appends records as the kernel wrote them: whole ones, in the byte order
// of the file.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.w.Write(p)
	w.data.size += uint64(n)
	w.err = err
	return n, err
}

// Flush writes what is buffered, so that a reader of the unfinished file sees
// it.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// WriteRecord appends a record. Its Header's Misc counts, and its Type where one
// Go type stands for two: without it, MMAP2, FORK, THROTTLE and SWITCH are
// written. A record of the kernel's gets
// the trailer that the first event's SampleType asks for, with the fields of t.
// Samples are not written this way: they are as the kernel wrote them.
func (w *Writer) WriteRecord(rec Record, t Trailer) error {
	b := w.builder().zeros(8)
	kind, b := encode(b, rec)
	if kind == 0 {
		return fmt.Errorf("perfdata: a record of type %T cannot be written", rec)
	}
	if kind < RecordHeaderAttr {
		b = w.trailer(b, t)
	}
	if len(b.b) > 1<<16-8 {
		return fmt.Errorf("perfdata: a record (%v) of %d bytes is too long", kind, len(b.b))
	}
	b = b.zeros(align(len(b.b), 8) - len(b.b))
	w.buf = b.b
	head := builder{big: b.big}.u32(uint32(kind)).u16(uint16(rec.Head().Misc)).u16(uint16(len(b.b)))
	copy(b.b, head.b)
	_, err := w.Write(b.b)
	return err
}

func (w *Writer) trailer(b builder, t Trailer) builder {
	e := w.opts.Events[0]
	if !e.Has(FlagSampleIDAll) {
		return b
	}
	b = b.zeros(align(len(b.b), 8) - len(b.b))
	for _, f := range []struct {
		bit  SampleType
		word func() builder
	}{
		{SampleTID, func() builder { return b.u32(uint32(t.PID)).u32(uint32(t.TID)) }},
		{SampleTime, func() builder { return b.u64(t.Time) }},
		{SampleID, func() builder { return b.u64(t.ID) }},
		{SampleStreamID, func() builder { return b.u64(t.StreamID) }},
		{SampleCPU, func() builder { return b.u32(uint32(t.CPU)).u32(0) }},
		{SampleIdentifier, func() builder { return b.u64(t.ID) }},
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
func (w *Writer) Close(f *Features) error {
	if w.closed || w.err != nil {
		return w.err
	}
	w.closed = true
	if f == nil {
		f = &Features{}
	}
	sections := w.sections(f)
	at := w.data.end() + uint64(len(sections))*sectionSize
	table := builder{big: w.opts.BigEndian}
	present := make([]Feature, len(sections))
	for i, s := range sections {
		table = table.section(section{at, uint64(len(s.b))})
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
