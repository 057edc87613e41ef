package samples

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// Options are what a [Reader] makes of a file.
type Options struct {
	By      counts.Kind    // counts.Module, Function, Line or Instruction
	Symbols profile.Config // where programs and their symbols are
	Reader  perfdata.Options
}

// Kinds are the kinds of places that Options.By takes.
var Kinds = []counts.Kind{counts.Module, counts.Function, counts.Line, counts.Instruction}

// A Reader yields one table of a recording: its first scope is the whole run,
// the others are the places that samples were taken at, with what is known of
// them in Scope.Code.
//
// What a sample counts is what [perfdata.Meter] says. A place's counts have a
// Variance, that of arrivals that are independent of each other: the sum of the
// squares of what was added. Of an event without any sample at a place it is the
// square of what one sample stands for on the average: there might have been
// one. The run's own counts lack at most one period, and have no variance.
type Reader struct {
	src  io.Reader
	name string
	opts Options

	in      *perfdata.Reader
	meter   *perfdata.Meter
	symbols *profile.Symbolizer
	feed    *feed
	order   order
	places  places
	table   counts.Table

	columns []*perfdata.Event
	column  []int32 // by Event.Index; -1 for one that counts nothing
	total   []perfdata.Sum
	exact   []int64 // samples that name the instruction, by column
	left    int64   // samples of events that came too late to have a column
	first   uint64  // times of samples
	last    uint64
	begun   bool
	err     error
	done    bool
}

// NewReader returns a reader of the file that src holds, which is as for
// [perfdata.NewReader]. The name is for messages.
func NewReader(src io.Reader, name string, opts Options) *Reader {
	r := &Reader{src: src, name: name, opts: opts, symbols: profile.NewSymbolizer(opts.Symbols)}
	r.table.Start, r.table.Duration = math.NaN(), math.NaN()
	return r
}

// Kind says what the table comes from.
func (r *Reader) Kind() string { return "perf-data" }

// Table returns the table, once Next has returned true.
func (r *Reader) Table() *counts.Table { return &r.table }

// Err returns the error that ended the reading: that of the input, or of a file
// without samples. Damage behind some samples is among the table's notes.
func (r *Reader) Err() error { return r.err }

// Close gives up the files with symbols. It does not close the recording.
func (r *Reader) Close() error { return r.symbols.Close() }

// Next reads the file. It returns true once, if there are samples.
func (r *Reader) Next() bool {
	if r.done {
		return false
	}
	r.done = true
	if r.err = r.read(); r.err != nil {
		return false
	}
	r.fill()
	return true
}

// errAgain is returned by a pass that found that the file has to be read for its
// events first, and then for its samples.
var errAgain = errors.New("events are needed ahead of the samples")

// read makes one pass over the file, in which samples wait for the events that
// precede them; or two, where an order of time cannot be made in passing: for the
// files of a directory, and for jitdumps, which tell of code all at once.
func (r *Reader) read() error {
	err := errAgain
	if len(r.opts.Reader.Parts) == 0 {
		err = r.pass(inPassing)
	}
	if !errors.Is(err, errAgain) {
		return err
	}
	if err := r.pass(eventsOnly); err != nil {
		return err
	}
	return r.pass(samplesOnly)
}

// A phase is what a pass looks at.
type phase uint8

const (
	inPassing phase = iota
	eventsOnly
	samplesOnly
)

// pass reads the file once.
func (r *Reader) pass(p phase) error {
	if err := r.open(p); err != nil {
		return err
	}
	defer r.in.Close()
	err := r.hand(p)
	r.feed.close()
	if err != nil {
		return err
	}
	r.order.end()
	if p == eventsOnly {
		return nil
	}
	var bad *perfdata.Error
	if err := r.in.Err(); err != nil && (!errors.As(err, &bad) || !r.begun) {
		return err
	}
	switch {
	case r.begun:
		return nil
	case r.in.Stats().Records[perfdata.RecordStat] > 0:
		return fmt.Errorf("%s: it holds counts of perf stat, and no samples", r.name)
	}
	return r.in.Empty()
}

// hand hands the records to the feed.
func (r *Reader) hand(p phase) error {
	for r.in.Next() {
		r.feed.number++
		switch rec := r.in.Record().(type) {
		case *perfdata.Sample:
			if p != eventsOnly {
				r.sample(rec)
			}
		case *perfdata.FinishedRound:
			r.feed.round()
		default:
			if p == samplesOnly {
				break
			}
			if m, ok := rec.(*perfdata.Mmap); ok && p == inPassing && isJitdump(string(m.Filename)) && r.rewindable() {
				return errAgain
			}
			r.feed.event(rec)
		}
	}
	return nil
}

// open begins a pass.
func (r *Reader) open(p phase) error {
	if p != inPassing {
		if err := r.rewind(); err != nil {
			return err
		}
	}
	in, err := perfdata.NewReader(r.src, r.name, r.opts.Reader)
	if err != nil {
		return err
	}
	r.in, r.meter = in, perfdata.NewMeter(in)
	r.begun, r.left = false, 0
	spaces := r.order.spaces
	if p != samplesOnly {
		spaces = profile.NewSpaces()
	}
	r.places = newPlaces(r.opts.By, r.symbols)
	r.order = order{spaces: spaces, places: &r.places, all: p != inPassing, root: r.opts.Symbols.Root}
	for _, b := range in.Features().BuildIDs {
		spaces.BuildID(b.Filename, hex.EncodeToString(b.BuildID))
	}
	r.feed = newFeed(in, &r.order)
	return nil
}

// rewindable reports whether the file can be read again.
func (r *Reader) rewindable() bool {
	s, ok := r.src.(io.Seeker)
	if !ok {
		return false
	}
	_, err := s.Seek(0, io.SeekCurrent)
	return err == nil
}

// rewind goes back to the beginning of the file, or of all files of a directory.
func (r *Reader) rewind() error {
	list := []io.Reader{r.src}
	for _, p := range r.opts.Reader.Parts {
		list = append(list, p.R)
	}
	for _, f := range list {
		s, ok := f.(io.Seeker)
		if !ok {
			return fmt.Errorf("%s: it has to be read twice, which a stream cannot be", r.name)
		}
		if _, err := s.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// begin chooses the columns, at the first sample.
func (r *Reader) begin() {
	r.begun = true
	r.columns, r.column = nil, nil
	for _, e := range r.in.Events() {
		col := int32(-1)
		if !e.IsDummy() && len(r.columns) < maxColumns {
			col = int32(len(r.columns))
			r.columns = append(r.columns, e)
		}
		r.column = append(r.column, col)
	}
	r.exact = make([]int64, len(r.columns))
	r.places.columns = len(r.columns)
	r.first, r.last = math.MaxUint64, 0
}

// Limits of what a file can make a reader remember.
const (
	maxColumns = 1 << 10
	maxCells   = 1 << 21 // of a table
	maxHeld    = 1 << 20 // samples that wait for what precedes them
)

// sample takes a sample: what it counts is known now, where it is perhaps later.
func (r *Reader) sample(rec *perfdata.Sample) {
	if !r.begun {
		r.begin()
	}
	amounts := r.meter.Of(rec)
	if len(amounts) == 0 {
		return
	}
	h := held{time: r.feed.now(rec.Time()), ip: rec.IP(), pid: int32(rec.PID()), mode: profile.Mode(rec.Mode())}
	if rec.Has(perfdata.SampleTime) {
		r.first, r.last = min(r.first, h.time), max(r.last, h.time)
	}
	for i := range amounts {
		e := amounts[i].Event
		if e.Index >= len(r.column) {
			r.left++
			continue
		}
		h.column = r.column[e.Index]
		if rec.Misc&perfdata.MiscExactIP != 0 {
			r.exact[h.column]++
		}
		r.feed.sample(h, &amounts[i])
	}
}

// Open opens a recording, a file or a directory that perf record --threads wrote;
// "-" is standard input. The function it returns closes it.
func Open(name string, opts Options) (*Reader, func() error, error) {
	if name == "-" {
		r := NewReader(os.Stdin, name, opts)
		return r, r.Close, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		d, err := perfdata.OpenDir(name)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil, fmt.Errorf("%s: is a directory, and none that perf record --threads wrote; name the recordings in it", name)
		}
		if err != nil {
			return nil, nil, err
		}
		opts.Reader.Parts = d.Parts
		r := NewReader(d.Head, name, opts)
		return r, func() error { return errors.Join(r.Close(), d.Close()) }, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	r := NewReader(f, name, opts)
	return r, func() error { return errors.Join(r.Close(), f.Close()) }, nil
}
