package perfdata

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// Options are how a file is read.
type Options struct {
	// Buffer is how many bytes are read at a time. 0 is 256 KiB. With more than one processor,
	// files are then read ahead of what is taken from them.
	Buffer int

	// Hold is how many bytes of a stream are held in memory, if it is not in pipe
	// mode. What such a file says of events and the machine follows its data. Of a
	// longer stream that is not known before the last record. 0 is 32 MiB, and less is
	// none at all.
	Hold int

	// Parts are the other files of a directory, as OpenDir finds them. Their records
	// follow those of the head, one file after the other.
	Parts []Part
}

const (
	defaultBuffer = 128 << 10
	minBuffer     = 64 << 10 // the largest record
	defaultHold   = 32 << 20
)

// A Reader walks the records of a file in file order. It keeps everything that
// it creates: a record is valid until the next call of Next. Its memory does not
// grow with the length of the file.
type Reader struct {
	name   string
	in     *input
	header fileHeader
	d      *decoder
	data   dataSection
	packed decompression
	gap    gap
	known  fileFacts

	recs   records
	rec    Record
	stats  Stats
	tally  tally
	err    error
	failed bool // err is the input's, not what it holds
	done   bool
}

// A dataSection is where the records are.
type dataSection struct {
	win   window
	begin int64
	bound int64  // where it ends; -1 if the file does not say
	parts []Part // the next files of a directory
	split bool   // there were such files
}

// A decompression is the state of decompressing a file.
type decompression struct {
	unpack *unpacker
	at     int64 // offset of the record that is being unpacked
	joined int   // bytes that are left of COMPRESSED2 records that were joined
	join   bool  // the current record is one of them
}

// A gap is bytes that follow a record without being one.
type gap struct {
	size  uint64
	after RecordType // the type of that record, if it matters
}

// fileFacts are what the file has said of the events and the machine so far.
type fileFacts struct {
	features Features
	complete bool              // the header's sections are there
	dirty    bool              // names of events are not up to date
	types    map[uint64]string // names of events in old files, by their config
	texts    int               // bytes of names that records brought
	cpus     int               // processors of events that records brought
}

// NewReader returns a reader of the file that src holds, and reads what precedes the data. The
// name is for messages. If src can seek and is an io.ReaderAt, as *os.File is, it is read from
// its beginning whatever its position; otherwise as a stream (see [Options.Hold]). Files that
// were compressed as a whole by gzip or zstd are streams.
func NewReader(src io.Reader, name string, opts Options) (*Reader, error) {
	r := &Reader{name: name, d: &decoder{}, known: fileFacts{dirty: true}}
	r.stats.Truncated = -1
	var err error
	if r.in, err = openInput(src); err != nil {
		return nil, r.fail(0, "", err)
	}
	if err := r.readHeader(opts); err != nil {
		r.Close()
		return nil, err
	}
	if r.in.at != nil && !r.header.pipe {
		r.readFeatures()
	}
	r.openData(opts)
	r.data.parts, r.data.split = opts.Parts, len(opts.Parts) > 0
	return r, nil
}

func (r *Reader) openData(opts Options) {
	data := r.header.data
	r.data.begin, r.data.bound = int64(data.Off), int64(data.End())
	n := int64(data.Size)
	if r.header.pipe || data.Size == 0 && !r.known.complete {
		// Perf writes the size when it ends. A process that was killed leaves
		// what it had written by then.
		r.stats.Unterminated = !r.header.pipe
		r.data.bound, n = -1, -1
	}
	r.data.win = window{r: r.in.from(int64(data.Off), n), base: int64(data.Off)}
	section, ok := r.data.win.r.(*io.SectionReader)
	if ok && opts.Buffer <= 0 && section.Size() > pieces*pieceSize && runtime.GOMAXPROCS(0) > 1 {
		r.data.win.ahead = &ahead{section: section}
		return
	}
	buffer := opts.Buffer
	if buffer <= 0 {
		buffer = defaultBuffer
	}
	r.data.win.buf = make([]byte, max(buffer, minBuffer))
}

// fail makes an Error.
func (r *Reader) fail(off int64, msg string, err error) *Error {
	if err != nil {
		if msg != "" {
			msg += ": "
		}
		msg += strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return &Error{File: r.name, Offset: off, Msg: msg, Err: err}
}

// failShort says that a piece of the file is not there.
func (r *Reader) failShort(off uint64, what string, err error) *Error {
	if err != nil {
		return r.fail(int64(off), what+" "+err.Error(), nil)
	}
	return r.fail(int64(off), what+" lies behind the end of the file", nil)
}

// Close frees what the reader holds. It does not close the file. Next does it at
// the end of the data.
func (r *Reader) Close() {
	r.done = true
	if r.data.win.ahead != nil {
		r.data.win.stopAhead()
	}
	if r.packed.unpack != nil {
		r.packed.unpack.stop()
	}
	if r.in != nil && r.in.close != nil {
		r.in.close()
		r.in.close = nil
	}
}

// Err returns the error that ended the reading: nil at the end of the data, and
// also if the file ends inside a record ([Stats.Truncated]).
func (r *Reader) Err() error { return r.err }

// Record returns the current record, which is valid until the next call of Next.
func (r *Reader) Record() Record { return r.rec }

// Pipe reports whether the file is what perf wrote into a pipe.
func (r *Reader) Pipe() bool { return r.header.pipe }

// Features returns what the header says of the machine and the recording. Of a
// pipe they grow with the records; of a long stream that is none, they are there
// after the last record.
func (r *Reader) Features() *Features { return &r.known.features }

// Events returns what was opened, in the order of the file. Those of a pipe grow
// with the records. Names are perf's where the file has them, else spelled by
// the encoding as perf would: cycles:u, cpu/config=0x1a8,config1=0x3/, r1a8. Of
// a long stream that is no pipe, perf's names are there after the last record.
func (r *Reader) Events() []*Event {
	r.settle()
	return r.d.events
}

// Instance returns the event of an id, nil if it is no event's. cpu and tid are the
// processor and thread that it was opened on: -1 for any, or if the file does not say.
func (r *Reader) Instance(id uint64) (e *Event, cpu, tid int) {
	if in := r.d.instance(id); in != nil {
		return in.event, in.cpu, in.tid
	}
	return nil, -1, -1
}

// Next advances to the next record. It returns false at the end of the data and
// at an error. COMPRESSED records are not seen: what is in them is.
func (r *Reader) Next() bool {
	for !r.done {
		raw, off := r.fetch()
		if raw == nil {
			break
		}
		if rec := r.decode(raw, off); rec != nil {
			r.rec = rec
			return true
		}
	}
	if !r.done {
		r.finish()
	}
	r.rec = nil
	return false
}

// decode makes a Record of a record, and takes in what it says of others. It
// returns nil if the record only holds others.
func (r *Reader) decode(raw []byte, off int64) Record {
	h := Header{RecordType(get32(raw, r.d.big)), Misc(get16(raw[4:], r.d.big)), off, raw, r.d}
	r.tally.add(h.Type)
	if h.Type == perffile.RecordSample {
		return r.decodeSample(h)
	}
	c := &cursor{b: raw[8:], big: r.d.big}
	switch {
	case h.Type == perffile.RecordCompressed || h.Type == perffile.RecordCompressed2:
		r.unpackRecord(h, c)
		return nil
	case r.learn(h, c):
		return r.whole(h, c)
	}
	rec := r.recs.kernelRecord(h, c)
	if rec == nil {
		rec = r.recs.perfRecord(h, c)
	}
	switch {
	case rec == nil:
		c.bytes(uint64(leastBody[h.Type]))
		return r.whole(h, c)
	case c.short:
		return r.whole(h, c)
	}
	r.account(rec)
	return rec
}

// whole returns a record as it is, after a cursor has taken what it should hold.
func (r *Reader) whole(h Header, c *cursor) Record {
	if c.short {
		return r.raw(h, "it is too short for what it should hold")
	}
	return r.raw(h, "")
}

func (r *Reader) decodeSample(h Header) Record {
	if r.known.dirty {
		r.settle()
	}
	s := &r.recs.sample
	body := h.raw[8:]
	e := r.d.sampleEvent(body)
	if e == nil {
		r.stats.Orphans++
		return r.raw(h, "its id is no event's")
	}
	s.Header = h
	if !s.reset(e, body, r.d.big) {
		return r.raw(h, fmt.Sprintf("it is too short for what %q samples (%v)", e.Name, e.SampleType))
	}
	r.stats.Samples++
	return s
}

// raw returns a record as it is.
func (r *Reader) raw(h Header, why string) Record {
	switch {
	case why != "":
		r.stats.Malformed++
		r.note(h.Offset, fmt.Sprintf("a record (%v, %d bytes): %s", h.Type, len(h.raw), why))
	case !h.Type.known():
		r.stats.Unknown++
	}
	r.recs.raw = Raw{h, why}
	return &r.recs.raw
}

// known reports whether the type is one that perf has; not all of them are
// decoded.
func (t RecordType) known() bool { return int64(t) < int64(len(recordNames)) && recordNames[t] != "" }
