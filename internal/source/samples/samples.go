package samples

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// Options are what a [Reader] makes of a file.
type Options struct {
	// By is the kind of place in the code that samples are split by: counts.Module,
	// SourceFile, Function, Line or Instruction, or counts.Run for none.
	By counts.Kind

	// Within is what else samples are split by: counts.Process, Thread, Cgroup, CPU,
	// Core, Die, Socket, Node and Interval, and further kinds of By: lines by function.
	// Each set of them that occurs becomes a scope.
	Within counts.By

	// Interval is the length of an interval. 0 is some twenty of a round length, or a second if
	// the file does not state its length.
	Interval time.Duration

	// StackMemory is how many bytes the stacks of ReadStacks may take, the other parts of
	// the recording not included; 0 is DefaultStackMemory.
	StackMemory int

	// StackCalls is how many calls the stacks of ReadStacks may have in the end, each caller counted once.
	// The lightest that exceed it are merged, as without memory. 0 is any number.
	StackCalls int

	// Calls is the table of [Stacks.CallTable]; the zero value is none, and keeps the stacks.
	Calls Calls

	// NoInline says that inlined calls are part of the function around them. Otherwise they
	// are functions of their own, where debug information tells. Lines and instructions are
	// the same in both cases.
	NoInline bool

	// NoLines says that functions of stacks need no files. It is for ReadStacks.
	NoLines bool

	// Accesses is for ReadMemory: it hands on all loads and stores whose address is known,
	// with or without a latency.
	Accesses bool

	// Waits says that the time of threads becomes counts of its own: WallEvent and others.
	// It needs a recording of each switch between threads.
	Waits bool

	// Fold is for tables by instruction of [Reader.Places]. Functions with a smaller share of each event
	// have one row, where they begin. Code without a name has one at its hottest instruction, if
	// there is one event.
	Fold float64

	// Again keeps what [Reader.Instructions] and [Reader.Places] need.
	Again bool

	// Enough is asked about the functions of samples while the recording is read, several at a
	// time. If its last answer is true, the rest is not read: Err is ErrEnough. It is for
	// readers by place in the code alone.
	Enough func(f *profile.Function, y *profile.Symbolizer) bool

	// Pick chooses the rows of the table, so that the others take no memory; nil is all. It has a
	// table of the whole alone, the number of places, and the cells of each. Cells are valid until
	// the next call. It returns which places are kept, or nil for all.
	Pick func(whole *counts.Table, places int, cells func(place int) []counts.Cell) (keep []bool)

	Derive  Derivation     // which further counts are made of samples
	Filter  Filter         // the samples that count
	Symbols profile.Config // where programs and their symbols are
	Reader  perfdata.Options
}

// Kinds are the kinds of places that Options.By takes.
var Kinds = []counts.Kind{counts.Module, counts.SourceFile, counts.Function, counts.Line, counts.Instruction}

// A Reader yields one table of a recording. Its first scope is the whole run, or what a
// filter leaves of it. The others are the places of the samples, described in
// Scope.Code. Their counts add up to those of the whole.
//
// [perfdata.Meter] says what a sample counts. A place's counts have a Variance, as of
// independent arrivals: the sum of the squares of what was added. An event without a sample at
// a place has an average sample's square, since there might have been one. The run's own counts
// lack at most one period, and have no variance.
type Reader struct {
	src  io.Reader
	name string
	opts Options

	in      *perfdata.Reader
	unread  *perfdata.Reader // was opened, and only its header was looked at; or nil
	used    bool             // src was read
	meter   *perfdata.Meter
	symbols *profile.Symbolizer
	feed    *feed
	order   order
	places  places
	table   counts.Table

	keep     *selection // nil if every sample counts
	again    gathered   // for Instructions
	contexts contexts
	names    names
	cgroups  bool           // of stacks, which are no contexts
	spans    bool           // likewise intervals
	passed   []perfdata.Sum // of samples that do not count, by column

	trace   *trace
	hw      *hardware
	derive  *deriver          // nil for none
	waits   *waits            // nil for none
	endless bool              // waits would be, of most switches
	wall    []perfdata.Amount // of the sample that was taken last
	stacked bool              // places are where samples were taken, as in stacks

	columns []*perfdata.Event
	column  []int32 // by Event.Index; -1 for one that counts nothing
	total   []perfdata.Sum
	skids   []bool    // by column: not all samples name the instruction
	span    [2]uint64 // times of the first and the last sample, if they had to be looked for
	first   uint64    // times of samples
	last    uint64
	begun   bool
	err     error
	done    bool
}

// NewReader returns a reader of the file that src holds, which is as for
// [perfdata.NewReader]. The name is for messages.
func NewReader(src io.Reader, name string, opts Options) *Reader {
	if opts.Symbols.Cache == 0 && (opts.gathers() || opts.Again) {
		opts.Symbols.Cache, opts.Symbols.Ordered = orderedCache, true
	}
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
func (r *Reader) Close() error {
	if r.unread != nil {
		r.unread.Close()
	}
	return r.symbols.Close()
}

// Next reads the file. It returns true once, if there are samples.
func (r *Reader) Next() bool {
	if r.done {
		return false
	}
	r.done = true
	if r.err = r.read(); r.err == nil && r.order.watch.done() {
		r.err = ErrEnough
	}
	if r.err != nil {
		return false
	}
	if r.err = r.found(); r.err != nil {
		return false
	}
	r.fill()
	return true
}

// errAgain is returned by a pass if the file is to be read for events first, then for samples.
var errAgain = errors.New("events are needed ahead of the samples")

// read makes one pass over the file: samples wait for the events that precede them. It
// makes two where one pass cannot sort by time: for the files of a directory, and for
// jitdumps, which describe all code at once.
func (r *Reader) read() error {
	if err := r.measure(); err != nil {
		return err
	}
	if err := r.wait(); err != nil {
		return err
	}
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

// measure looks for the times of the first and last sample, if they matter and the file lacks
// them.
func (r *Reader) measure() error {
	matters := r.spans || r.opts.Within.Has(counts.Interval) || r.opts.Filter.Time != nil
	if !matters || !r.rewindable() || len(r.opts.Reader.Parts) > 0 {
		return nil
	}
	in, err := r.opened()
	if err != nil || in.Features().SampleTime[0] != 0 {
		return err
	}
	defer in.Close()
	r.unread, r.span[0] = nil, math.MaxUint64
	note := func(time uint64) {
		if time < noTimes {
			r.span[0], r.span[1] = min(r.span[0], time), max(r.span[1], time)
		}
	}
	timed := len(in.Events()) > 0 && !slices.ContainsFunc(in.Events(), func(e *perfdata.Event) bool { return e.SampleType&perffile.SampleTime == 0 })
	for list := make([]perfdata.FlatSample, 0, scannedTogether); ; {
		for more := timed; more; more = len(list) == cap(list) {
			list = in.NextFlat(list[:0], nil)
			for i := range list {
				note(list[i].Time)
			}
		}
		if !in.Next() {
			return nil
		}
		if s, ok := in.Record().(*perfdata.Sample); ok && s.Has(perffile.SampleTime) {
			note(s.Time())
		}
	}
}

// opened returns a reader of the file at its beginning. It opens one if the last was read.
func (r *Reader) opened() (in *perfdata.Reader, err error) {
	if r.unread != nil {
		return r.unread, nil
	}
	if r.used {
		if err := r.rewind(); err != nil {
			return nil, err
		}
	}
	r.used = true
	r.unread, err = perfdata.NewReader(r.src, r.name, r.opts.Reader)
	return r.unread, err
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
	r.feed, r.order.spare = nil, nil // memory for what comes now
	r.first, r.last = min(r.first, r.order.before+1), max(r.last, r.order.till)
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
	case r.in.Stats().Records[perffile.RecordStat] > 0:
		return fmt.Errorf("%s: it holds counts of perf stat, and no samples", r.name)
	}
	return r.in.Empty()
}

// hand hands the records to the feed.
func (r *Reader) hand(p phase) error {
	for {
		r.scan(p)
		if r.order.watch.done() || !r.in.Next() {
			return nil
		}
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
				r.area(rec)
				break
			}
			if r.trace.know(rec); p == inPassing && (r.trace.found || jitdump(rec)) && r.rewindable() {
				return errAgain
			}
			r.feed.event(rec)
			if r.contexts.named() || r.cgroups {
				r.names.know(rec)
			}
		}
	}
}

// scan hands the next samples to the feed in brief, if nothing else of them matters. It
// passes over those that do not matter at all.
func (r *Reader) scan(p phase) {
	if p == eventsOnly && r.feed.state == timed {
		for list := r.feed.open.samples[:0]; len(list) == 0 || len(list) == cap(list); {
			if list = r.in.NextFlat(list[:0], nil); len(list) == 0 {
				return
			}
		}
	}
	if p != eventsOnly && r.begun && r.derive == nil && r.waits == nil && r.feed.state == timed && !r.contexts.any() && !r.keep.records() {
		for r.feed.scan() && !r.order.watch.done() {
		}
	}
}

// open begins a pass.
func (r *Reader) open(p phase) error {
	in, err := r.opened()
	if err != nil {
		return err
	}
	r.in, r.unread, r.meter = in, nil, perfdata.NewMeter(in)
	r.begun, r.derive, r.hw = false, nil, newHardware(in)
	r.waits.again()
	if p != samplesOnly {
		r.trace = newTrace()
	}
	r.trace.settle()
	spaces, cgroups := r.order.spaces, r.order.cgroups
	if p != samplesOnly {
		spaces, cgroups, r.names = profile.NewSpaces(), map[uint64]string{}, newNames()
	}
	r.keep = newSelection(&r.opts.Filter)
	r.places = newPlaces(r.opts.By, r.opts.Within, r.keep, r.functions())
	r.contexts = newContexts(r.opts.Within, &r.opts.Filter, in)
	r.order = order{spaces: spaces, windows: newWindows(spaces), places: &r.places, keep: r.keep, cgroups: cgroups, all: p != inPassing, root: r.opts.Symbols.Root,
		spare: &spare{}, before: math.MaxUint64 - 1,
		simple: !r.contexts.any(), tasks: r.contexts.tasks, recent: make([]recentTask, recentTasks)}
	if r.contexts.tasks && r.contexts.interval {
		r.order.intervals = &r.contexts
	}
	r.places.files = r.order.windows.files
	r.places.gather = !r.stacked && (r.opts.gathers() || r.opts.Again)
	if p != eventsOnly {
		r.order.watch = r.newWatch()
	}
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

// begin chooses the columns at the first sample. Its time is the beginning of the
// recording if the file has no other.
func (r *Reader) begin(now uint64) {
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
	r.beginDerived()
	n := len(r.columns)
	r.order.column, r.order.exact, r.passed = r.column, make([]int64, n), make([]perfdata.Sum, n)
	r.places.begin(n)
	r.first, r.last = math.MaxUint64, 0
	span := r.span
	if span[1] == 0 && r.in.Features().SampleTime[1] < noTimes {
		span = r.in.Features().SampleTime
	}
	r.contexts.begin(r.opts.Interval, now, span)
	if r.keep != nil {
		r.keep.beginAt(now, span)
	}
}

// noTimes is the first time that is none: waits that perf summed up have such times.
const noTimes = math.MaxUint64 - 1<<40

// Limits of what a file can make a reader remember.
const (
	maxColumns = 1 << 10
	maxCells   = 1 << 21 // of a table
	maxRows    = 1 << 18 // of a table that is split by more than code
	maxHeld    = 1 << 20 // samples that wait for what precedes them
)

// sample takes a sample of the file.
func (r *Reader) sample(rec *perfdata.Sample) {
	if rec.Event().Index < derivedBase-1 {
		r.take(rec, nil)
	}
}

// area takes the piece of the AUX area behind a record, if one follows.
func (r *Reader) area(rec perfdata.Record) {
	if raw, ok := rec.(*perfdata.Raw); ok && raw.Type == perffile.RecordAuxtrace {
		r.trace.each(r.in, raw, r.take)
	}
}

// beginDerived adds the columns of what is derived, and that of the AUX area's samples.
func (r *Reader) beginDerived() {
	r.trace.begin(r.in)
	r.derive = newDeriver(r.hw, r.opts.Derive, r.trace.found)
	further := []*perfdata.Event(nil)
	if area := r.trace.event; area != nil {
		for i, e := range r.columns { // its event has no samples of its own
			if e.Type == area.Type && e.Name == area.Name {
				r.column[e.Index] = -1
				r.columns[i] = area
				r.column = append(r.column, slices.Repeat([]int32{-1}, area.Index+1-len(r.column))...)
				r.column[area.Index] = int32(i)
			}
		}
		if len(r.column) <= area.Index {
			further = append(further, area)
		}
	}
	if r.derive != nil {
		further = append(further, r.derive.events...)
	}
	if r.waits != nil {
		further = append(further, r.waits.events[:]...)
	}
	for _, e := range further {
		r.column = append(r.column, slices.Repeat([]int32{-1}, max(0, e.Index+1-len(r.column)))...)
		r.column[e.Index] = int32(len(r.columns))
		r.columns = append(r.columns, e)
	}
}

// amounts returns what a sample counts, and its time; nothing if it does not count.
func (r *Reader) amounts(rec *perfdata.Sample) (list []perfdata.Amount, now uint64) {
	if !r.begun {
		r.begin(rec.Time())
	}
	list = r.meter.Of(rec)
	if r.wall = r.waits.of(rec); len(list) == 0 {
		return nil, 0
	}
	if r.keep != nil && !r.keep.record(r.in, rec) {
		r.skip(list)
		return nil, 0
	}
	now = rec.Time()
	if now >= noTimes {
		now = r.last
	}
	if rec.Has(perffile.SampleTime) && rec.Time() < noTimes {
		r.first, r.last = min(r.first, now), max(r.last, now)
	}
	return list, r.feed.now(now)
}

// take takes a sample: what it counts is known now, where it is perhaps later. The op is
// what the AUX area says of it, nil for a sample of the file.
func (r *Reader) take(rec *perfdata.Sample, op *Op) {
	amounts, now := r.amounts(rec)
	if len(amounts) == 0 {
		return
	}
	x := extra{}
	if r.contexts.any() {
		x.context = r.context(rec)
	}
	s := perfdata.FlatSample{Time: now, IP: rec.IP(), PID: int32(rec.PID()), TID: int32(rec.TID()), Misc: rec.Misc}
	if r.waits != nil && !r.stacked {
		s.IP, s.Misc = r.waits.place(rec)
	}
	for i := range amounts {
		a := &amounts[i]
		s.Event, s.Value, x.enabled, x.running = uint16(a.Event.Index), a.Value, 0, 0
		if a.Enabled > 0 {
			x.enabled, x.running = a.Enabled, a.Running
		}
		r.feed.sample(s, x)
	}
	x.enabled, x.running = 0, 0
	r.walls(s, x)
	r.derived(rec, op, s, x)
}

// walls takes the time of threads that a sample stands for. Where they waited is exact.
func (r *Reader) walls(s perfdata.FlatSample, x extra) {
	misc := s.Misc
	for i := range r.wall {
		s.Event, s.Value, s.Misc = uint16(r.wall[i].Event.Index), r.wall[i].Value, misc
		if s.Event >= wallBase+wallQueue {
			s.Misc |= perffile.MiscExactIP
		}
		r.feed.sample(s, x)
	}
}

// derived takes what is derived of a sample.
func (r *Reader) derived(rec *perfdata.Sample, op *Op, s perfdata.FlatSample, x extra) {
	if r.derive == nil {
		return
	}
	if r.derive.branches {
		r.derive.eachBranch(rec, func(e *perfdata.Event, ip uint64, value float64) {
			s.Event, s.IP, s.Value = uint16(e.Index), ip, value
			s.Misc = perfdata.Misc(perfdata.ModeUser) | perffile.MiscExactIP
			if kernelAddress(ip) {
				s.Misc = perfdata.Misc(perfdata.ModeKernel) | perffile.MiscExactIP
			}
			r.feed.sample(s, x)
		})
		return
	}
	if op == nil {
		op = r.hw.of(rec)
	}
	if op != nil {
		r.derive.each(op, float64(max(1, rec.Period())), func(e *perfdata.Event, value float64) {
			s.Event, s.Value = uint16(e.Index), value
			r.feed.sample(s, x)
		})
	}
}

// context returns the number of a sample's context.
func (r *Reader) context(rec *perfdata.Sample) int32 {
	x := r.contexts.of(rec)
	n, added := r.contexts.find(&x)
	if added {
		r.feed.context(x)
	}
	return n
}

// skip adds up what does not count.
func (r *Reader) skip(amounts []perfdata.Amount) {
	for i := range amounts {
		if e := amounts[i].Event; e.Index < len(r.column) && r.column[e.Index] >= 0 {
			r.passed[r.column[e.Index]].Add(&amounts[i])
		}
	}
}
