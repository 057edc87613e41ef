package samples

import (
	"encoding/hex"
	"runtime"

	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A feed hands what a file holds, in batches, from the goroutine that decodes it
// to the one that brings it into order and finds the places: two processors are
// used if there are two.
type feed struct {
	in     *perfdata.Reader
	state  timing
	number uint64 // of the record, the time where there are no times

	open       *batch // being filled
	order      *order
	full, free chan *batch // nil if there is one processor, and one goroutine
	done       chan struct{}
}

// timing says whether records have times.
type timing uint8

const (
	undecided timing = iota
	timed
	untimed
)

// A batch is a piece of a recording.
type batch struct {
	samples []held
	times   [][2]float64 // by which those of events grew, of some of the samples
	marks   []mark       // by place
	untimed bool
}

// held is a sample, as far as it counts. There may be many that wait.
type held struct {
	time, ip uint64
	value    float64
	pid      int32
	times    int32 // place among the times, and 1; 0 for none
	context  int32 // its number
	column   int16
	mode     profile.Mode
}

// A mark is what comes between samples: an event, the end of a round, or a context
// that was not met before.
type mark struct {
	at      int // how many of the batch's samples precede it
	event   change
	context *context
}

// A change is an event that waits.
type change struct {
	time  uint64
	apply func(s *profile.Spaces, time uint64) // nil for the end of a round
}

// Batches are small enough for the processor's caches, and so few that they stay
// there.
const (
	batchSize = 2048
	batches   = 16
)

// newFeed starts to bring a recording into order.
func newFeed(in *perfdata.Reader, o *order) *feed {
	f := &feed{in: in, order: o, open: &batch{}}
	if runtime.GOMAXPROCS(0) == 1 {
		return f
	}
	f.full, f.free, f.done = make(chan *batch, batches), make(chan *batch, batches), make(chan struct{})
	for range batches {
		f.free <- &batch{}
	}
	go func() {
		defer close(f.done)
		for b := range f.full {
			o.take(b)
			b.reset()
			f.free <- b
		}
	}()
	return f
}

func (b *batch) reset() {
	clear(b.marks)
	b.samples, b.times, b.marks = b.samples[:0], b.times[:0], b.marks[:0]
}

// send hands over what was gathered.
func (f *feed) send() {
	f.open.untimed = f.state == untimed
	if f.full == nil {
		f.order.take(f.open)
		f.open.reset()
		return
	}
	f.full <- f.open
	f.open = <-f.free
}

// close waits until all that was handed in was taken.
func (f *feed) close() {
	f.send()
	if f.full != nil {
		close(f.full)
		<-f.done
	}
}

// now returns the time of a record: its own if all events record times, else its
// place in the file.
func (f *feed) now(time uint64) uint64 {
	if f.state == undecided {
		f.state = timed
		for _, e := range f.in.Events() {
			if e.SampleType&perfdata.SampleTime == 0 || !e.Has(perfdata.FlagSampleIDAll) {
				f.state = untimed
			}
		}
	}
	if f.state == untimed {
		return f.number
	}
	return time
}

// sample hands in a sample, and what it adds to an event.
func (f *feed) sample(h held, a *perfdata.Amount) {
	h.value = a.Value
	if a.Enabled > 0 {
		f.open.times = append(f.open.times, [2]float64{a.Enabled, a.Running})
		h.times = int32(len(f.open.times))
	}
	f.open.samples = append(f.open.samples, h)
	if len(f.open.samples) >= batchSize {
		f.send()
	}
}

// round hands in the end of a round.
func (f *feed) round() { f.mark(mark{}) }

// context hands in a context, the number of which is how many there were before.
func (f *feed) context(x context) { f.mark(mark{context: &x}) }

func (f *feed) mark(m mark) {
	m.at = len(f.open.samples)
	f.open.marks = append(f.open.marks, m)
	if len(f.open.marks) >= batchSize {
		f.send()
	}
}

func (f *feed) change(time uint64, apply func(*profile.Spaces, uint64)) {
	f.mark(mark{event: change{f.now(time), apply}})
}

// event hands in a record that is no sample, if places depend on it.
func (f *feed) event(rec perfdata.Record) {
	switch rec := rec.(type) {
	case *perfdata.Mmap:
		m := mapping(rec)
		f.change(rec.Trailer().Time, func(s *profile.Spaces, t uint64) { s.Map(t, m) })
	case *perfdata.Comm:
		pid, tid, name, exec := rec.PID, rec.TID, string(rec.Comm), rec.Misc&perfdata.MiscCommExec != 0
		f.change(rec.Trailer().Time, func(s *profile.Spaces, t uint64) { s.SetComm(t, pid, tid, name, exec) })
	case *perfdata.Task:
		f.task(rec)
	case *perfdata.KSymbol:
		addr, size, name, gone := rec.Addr, uint64(rec.Len), string(rec.Name), rec.Flags&perfdata.KSymbolUnregister != 0
		f.change(rec.Trailer().Time, func(s *profile.Spaces, t uint64) { s.KernelSymbol(t, addr, size, name, gone) })
	case *perfdata.Cgroup:
		if f.order.keep.named() {
			id, path, o := rec.ID, clean(string(rec.Path)), f.order
			f.change(rec.Trailer().Time, func(*profile.Spaces, uint64) { o.nameCgroup(id, path) })
		}
	case *perfdata.BuildID:
		file, id := string(rec.Filename), hex.EncodeToString(rec.BuildID)
		f.mark(mark{event: change{0, func(s *profile.Spaces, _ uint64) { s.BuildID(file, id) }}})
	}
}

func (f *feed) task(rec *perfdata.Task) {
	pid, tid, parent, thread := rec.PID, rec.TID, rec.PPID, rec.PTID
	switch {
	case rec.Type != perfdata.RecordFork:
		f.change(rec.Time, func(s *profile.Spaces, t uint64) { s.Exit(t, pid, tid) })
	case rec.Misc&perfdata.MiscForkExec == 0:
		f.change(rec.Time, func(s *profile.Spaces, t uint64) { s.Fork(t, pid, tid, parent, thread) })
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
