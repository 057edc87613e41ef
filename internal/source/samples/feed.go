package samples

import (
	"encoding/hex"
	"runtime"
	"sync"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A feed hands a file's records in batches from one goroutine to another. The first
// decodes them; the second sorts them by time and finds the places.
type feed struct {
	in     *perfdata.Reader
	state  timing
	number uint64 // of the record, the time where there are no times

	open  *batch // being filled
	order *order
	full  chan *batch // nil if there is one processor, and one goroutine
	done  chan struct{}
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
	samples []perfdata.FlatSample
	extras  []extra // of the samples, by place; those of the last may be missing
	marks   []mark  // by place
	untimed bool    // Brief.Time is the number of the record
	waiting int     // how many of the first samples wait for what precedes them
}

// An extra is what matters of some samples besides what is brief.
type extra struct {
	context          int32   // its number
	enabled, running float64 // how much the times of the event grew
}

// A spare holds batches that are not in use.
type spare struct {
	mu   sync.Mutex
	list []*batch
	room []perfdata.FlatSample // for further ones
	many bool                  // one does not suffice
}

// take returns an empty batch. It prefers the one that was given back last, which is
// likely to be in the processor's cache.
func (s *spare) take() *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.list)
	switch {
	case n == 0 && !s.many:
		s.many = true
		return &batch{samples: make([]perfdata.FlatSample, 0, batchSize)}
	case n == 0:
		if len(s.room) == 0 {
			s.room = roomFor[perfdata.FlatSample](batchesTogether * batchSize)
		}
		b := &batch{samples: s.room[:0:batchSize]}
		s.room = s.room[batchSize:]
		return b
	}
	b := s.list[n-1]
	s.list = s.list[:n-1]
	return b
}

func (s *spare) give(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, b)
}

// extra returns what matters of a sample besides what is brief.
func (b *batch) extra(i int) extra {
	if i < len(b.extras) {
		return b.extras[i]
	}
	return extra{}
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

// Batches are small enough for the processor's caches.
const (
	batchSize = 2048
	// batches are under way between the goroutines, at most. So some ten MB can be decoded
	// while symbols are read for the first samples.
	batches = 64
	// batchesTogether have their memory together.
	batchesTogether = 16
)

// newFeed starts to bring a recording into order.
func newFeed(in *perfdata.Reader, o *order) *feed {
	f := &feed{in: in, order: o, open: o.spare.take()}
	if runtime.GOMAXPROCS(0) == 1 {
		return f
	}
	f.full, f.done = make(chan *batch, batches), make(chan struct{})
	go func() {
		defer close(f.done)
		for b := range f.full {
			o.take(b)
		}
	}()
	return f
}

// send hands over what was gathered.
func (f *feed) send() {
	f.open.untimed = f.state == untimed
	if f.full == nil {
		f.order.take(f.open)
	} else {
		f.full <- f.open
	}
	f.open = f.order.spare.take()
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
			if e.SampleType&perffile.SampleTime == 0 || !e.Has(perffile.FlagSampleIDAll) {
				f.state = untimed
			}
		}
	}
	if f.state == untimed {
		return f.number
	}
	return time
}

// scan hands in the samples that come next, in brief. It returns false at a record that
// has to be read in full.
func (f *feed) scan() bool {
	b := f.open
	b.samples = f.in.NextFlat(b.samples, nil)
	if len(b.samples) < cap(b.samples) {
		return false
	}
	f.send()
	return true
}

// sample hands in a sample.
func (f *feed) sample(s perfdata.FlatSample, x extra) {
	b := f.open
	if x != (extra{}) {
		b.extras = append(b.extras, make([]extra, len(b.samples)-len(b.extras))...)
		b.extras = append(b.extras, x)
	}
	b.samples = append(b.samples, s)
	if len(b.samples) == cap(b.samples) {
		f.send()
	}
}

// round hands in the end of a round.
func (f *feed) round() { f.mark(mark{}) }

// context hands in a context. Contexts are numbered in this order.
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
		pid, tid, name, exec := rec.PID, rec.TID, string(rec.Comm), rec.Misc&perffile.MiscCommExec != 0
		f.change(rec.Trailer().Time, func(s *profile.Spaces, t uint64) { s.SetComm(t, pid, tid, name, exec) })
	case *perfdata.Task:
		f.task(rec)
	case *perfdata.KSymbol:
		addr, size, name, gone := rec.Addr, uint64(rec.Len), string(rec.Name), rec.Flags&perffile.KSymbolUnregister != 0
		f.change(rec.Trailer().Time, func(s *profile.Spaces, t uint64) { s.KernelSymbol(t, addr, size, name, gone) })
	case *perfdata.Cgroup:
		if f.order.keep.named() {
			id, path, o := rec.ID, counts.Name(string(rec.Path)), f.order
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
	case rec.Type != perffile.RecordFork:
		f.change(rec.Time, func(s *profile.Spaces, t uint64) { s.Exit(t, pid, tid) })
	case rec.Misc&perffile.MiscForkExec == 0:
		f.change(rec.Time, func(s *profile.Spaces, t uint64) { s.Fork(t, pid, tid, parent, thread) })
	}
}

func mapping(rec *perfdata.Mmap) profile.Mapping {
	return profile.Mapping{PID: rec.PID, Kernel: rec.Mode() == perfdata.ModeKernel, Start: rec.Addr, Len: rec.Len, PgOff: rec.PgOff,
		File: string(rec.Filename), BuildID: hex.EncodeToString(rec.BuildID), Data: rec.Misc&perffile.MiscMmapData != 0}
}
