package samples

import (
	"encoding/hex"
	"math"
	"path"
	"path/filepath"

	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// An order brings samples and the events that they depend on, such as mappings,
// into order of time while a file is read. The records of each processor are in
// order, and perf ends a round when it has read what all processors had written:
// what comes then is not older than what had come before the previous round
// ended (perf's ordered_events).
//
// Samples among themselves need no order: what is mapped can be asked about any
// time once the events up to it are settled.
type order struct {
	in     *perfdata.Reader
	spaces *profile.Spaces
	cursor *profile.Cursor
	place  func(profile.Place, *held)
	all    bool // all events are settled at once, and samples are passed on as they come
	root   string

	state  timing
	number uint64 // of the record, where there are no times

	samples      []held
	events       []change
	newest, safe uint64 // the latest time when the last round ended, and when the one before did
	last         uint64
	changes      int // since the last Forget
}

// timing says whether records have times.
type timing uint8

const (
	undecided timing = iota
	timed
	untimed
)

// held is a sample, as far as it counts.
type held struct {
	time, ip uint64
	amount   perfdata.Amount
	column   int32
	pid      int32
	mode     profile.Mode
}

// A change is an event that waits.
type change struct {
	time  uint64
	apply func(s *profile.Spaces, time uint64)
}

// buildIDs hands in the table of build ids.
func (o *order) buildIDs() {
	for _, b := range o.in.Features().BuildIDs {
		o.spaces.BuildID(b.Filename, hex.EncodeToString(b.BuildID))
	}
}

// now returns the time of a record: its own if all events record times, else its
// place in the file.
func (o *order) now(time uint64) uint64 {
	if o.state == undecided {
		o.state = timed
		for _, e := range o.in.Events() {
			if e.SampleType&perfdata.SampleTime == 0 || !e.Has(perfdata.FlagSampleIDAll) {
				o.state = untimed
			}
		}
	}
	if o.state == untimed {
		return o.number
	}
	o.last = max(o.last, time)
	return time
}

// sample takes a sample.
func (o *order) sample(h *held) {
	if o.all || o.state == untimed || h.time <= o.safe {
		if o.state == untimed && len(o.events) > 0 {
			o.settle(math.MaxUint64)
		}
		o.pass(h)
		return
	}
	if len(o.samples) >= maxHeld {
		o.release(o.last) // rounds do not end
	}
	o.samples = append(o.samples, *h)
}

func (o *order) pass(h *held) {
	if o.cursor == nil {
		o.cursor = o.spaces.Cursor()
	}
	o.place(o.cursor.Find(h.time, int(h.pid), h.ip, h.mode), h)
}

// round notes the end of a round.
func (o *order) round() {
	if o.all || o.state != timed {
		return
	}
	limit := o.newest
	o.newest = o.last
	if limit > o.safe {
		o.release(limit)
	}
}

// end notes the end of the file.
func (o *order) end() { o.release(math.MaxUint64) }

// release settles the events up to a time, and passes on the samples.
func (o *order) release(limit uint64) {
	o.safe = max(o.safe, limit)
	o.settle(limit)
	kept := o.samples[:0]
	for i := range o.samples {
		h := &o.samples[i]
		if h.time > limit {
			kept = append(kept, *h)
			continue
		}
		o.pass(h)
	}
	o.samples = kept
}

// forgetAfter is how many events there are between two calls of Spaces.Forget,
// which looks at all processes.
const forgetAfter = 1 << 14

// settle applies the events up to a time.
func (o *order) settle(limit uint64) {
	if len(o.events) == 0 {
		return
	}
	kept := o.events[:0]
	for _, e := range o.events {
		if e.time > limit {
			kept = append(kept, e)
			continue
		}
		e.apply(o.spaces, e.time)
		o.changes++
	}
	clear(o.events[len(kept):])
	o.events = kept
	if o.all {
		o.jitdumps()
	}
	o.spaces.Settle()
	if o.changes > forgetAfter && !o.all {
		o.changes = 0
		oldest := limit
		for i := range o.samples {
			oldest = min(oldest, o.samples[i].time)
		}
		o.spaces.Forget(oldest)
	}
	o.cursor = nil
}

// event takes a record that is no sample. With again it returns errAgain for one
// that makes it necessary to read the file again.
func (o *order) event(rec perfdata.Record, again bool) error {
	switch rec := rec.(type) {
	case *perfdata.Mmap:
		m := mapping(rec)
		if !o.all && again && isJitdump(m.File) {
			return errAgain
		}
		o.change(rec.Trailer().Time, func(s *profile.Spaces, t uint64) { s.Map(t, m) })
	case *perfdata.Comm:
		pid, tid, name, exec := rec.PID, rec.TID, string(rec.Comm), rec.Misc&perfdata.MiscCommExec != 0
		o.change(rec.Trailer().Time, func(s *profile.Spaces, t uint64) { s.SetComm(t, pid, tid, name, exec) })
	case *perfdata.Task:
		o.task(rec)
	case *perfdata.KSymbol:
		addr, size, name, gone := rec.Addr, uint64(rec.Len), string(rec.Name), rec.Flags&perfdata.KSymbolUnregister != 0
		o.change(rec.Trailer().Time, func(s *profile.Spaces, t uint64) { s.KernelSymbol(t, addr, size, name, gone) })
	case *perfdata.BuildID:
		o.spaces.BuildID(string(rec.Filename), hex.EncodeToString(rec.BuildID))
	}
	return nil
}

func (o *order) task(rec *perfdata.Task) {
	pid, tid, parent, thread := rec.PID, rec.TID, rec.PPID, rec.PTID
	switch {
	case rec.Type != perfdata.RecordFork:
		o.change(rec.Time, func(s *profile.Spaces, t uint64) { s.Exit(t, pid, tid) })
	case rec.Misc&perfdata.MiscForkExec == 0:
		o.change(rec.Time, func(s *profile.Spaces, t uint64) { s.Fork(t, pid, tid, parent, thread) })
	}
}

func (o *order) change(time uint64, apply func(*profile.Spaces, uint64)) {
	o.events = append(o.events, change{o.now(time), apply})
}

// isJitdump reports whether a mapping announces code that a just-in-time compiler
// writes to the file, by the name that the format prescribes.
func isJitdump(file string) bool {
	ok, err := path.Match("jit-*.dump", path.Base(file))
	return ok && err == nil
}

// jitdumps adds the code of the jitdumps that were mapped. One that cannot be
// read costs its names only, which the symbolizer tells.
func (o *order) jitdumps() {
	for _, f := range o.spaces.Files() {
		if f.Kind != profile.JITDump {
			continue
		}
		if d, err := profile.OpenJitdump(filepath.Join(o.root, f.Name)); err == nil {
			o.spaces.AddJitdump(f, d)
		}
	}
}

func mapping(rec *perfdata.Mmap) profile.Mapping {
	m := profile.Mapping{PID: rec.PID, Start: rec.Addr, Len: rec.Len, PgOff: rec.PgOff, File: string(rec.Filename),
		BuildID: hex.EncodeToString(rec.BuildID), Data: rec.Misc&perfdata.MiscMmapData != 0}
	if rec.Mode() == perfdata.ModeKernel {
		m.PID = profile.KernelPID
	}
	return m
}
