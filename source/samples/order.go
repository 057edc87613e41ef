package samples

import (
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
	spaces *profile.Spaces
	cursor *profile.Cursor
	places *places
	simple bool       // nothing but the place in the code matters
	keep   *selection // which samples count, by the names they have; nil for all
	all    bool       // all events are settled at once, and samples are passed on as they come
	root   string

	contexts []told            // by the numbers that samples have
	cgroups  map[uint64]string // paths up to now, if they are looked at

	samples      []held
	times        [][2]float64
	events       []change
	newest, safe uint64 // the latest time when the last round ended, and when the one before did
	last         uint64
	changes      int // since the last Forget
}

// A told is a context, and the number of what is told apart of it.
type told struct {
	is     context
	number int32
}

// take takes a piece of the recording.
func (o *order) take(b *batch) {
	from := 0
	for i := range b.marks {
		m := &b.marks[i]
		o.takeSamples(b, b.samples[from:m.at])
		from = m.at
		switch {
		case m.context != nil:
			o.contexts = append(o.contexts, told{*m.context, o.places.context(*m.context)})
			continue
		case m.event.apply == nil:
			o.round(b.untimed)
			continue
		}
		o.last = max(o.last, m.event.time)
		o.events = append(o.events, m.event)
	}
	o.takeSamples(b, b.samples[from:])
}

func (o *order) takeSamples(b *batch, list []held) {
	if b.untimed && len(list) > 0 {
		o.settle(math.MaxUint64)
	}
	for i := range list {
		h := &list[i]
		if o.all || b.untimed || h.time <= o.safe {
			o.pass(h, b.times)
			continue
		}
		if len(o.samples) >= maxHeld {
			o.release(o.last) // rounds do not end
		}
		o.last = max(o.last, h.time)
		o.samples = append(o.samples, *h)
		if h.times > 0 {
			o.times = append(o.times, b.times[h.times-1])
			o.samples[len(o.samples)-1].times = int32(len(o.times))
		}
	}
}

// pass adds a sample to its place.
func (o *order) pass(h *held, times [][2]float64) {
	if o.cursor == nil {
		o.cursor = o.spaces.Cursor()
	}
	a := perfdata.Amount{Value: h.value}
	if h.times > 0 {
		a.Enabled, a.Running = times[h.times-1][0], times[h.times-1][1]
	}
	if o.simple {
		o.places.sum(o.cursor.Find(h.time, int(h.pid), h.ip, h.mode), int(h.column)).Add(&a)
		return
	}
	o.sum(h).Add(&a)
}

// sum returns where a sample is added up, if more than its place in the code matters.
func (o *order) sum(h *held) *perfdata.Sum {
	x := told{}
	if len(o.contexts) > 0 {
		x = o.contexts[h.context]
	}
	if o.keep.named() && !o.keep.names(o.spaces, h.time, x.is, o.cgroup(x.is.cgroup)) {
		return &o.places.dropped[h.column]
	}
	at := profile.Place{}
	if !o.places.codeless() {
		at = o.cursor.Find(h.time, int(h.pid), h.ip, h.mode)
	}
	return o.places.within(x.number, at, int(h.column))
}

// nameCgroup notes the path of a cgroup.
func (o *order) nameCgroup(id uint64, path string) {
	if len(o.cgroups) < maxNames {
		o.cgroups[id] = path
	}
}

// cgroup returns the path of a cgroup, as far as it is known by now.
func (o *order) cgroup(id uint64) string {
	if path := o.cgroups[id]; path != "" {
		return path
	}
	return unknown
}

// round notes the end of a round.
func (o *order) round(untimed bool) {
	if o.all || untimed {
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
	kept, times := o.samples[:0], o.times[:0]
	for i := range o.samples {
		h := &o.samples[i]
		if h.time <= limit {
			o.pass(h, o.times)
			continue
		}
		if h.times > 0 { // those kept move forward, never past the ones to come
			times = append(times, o.times[h.times-1])
			h.times = int32(len(times))
		}
		kept = append(kept, *h)
	}
	o.samples, o.times = kept, times
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
		if d, err := profile.OpenJitdump(filepath.Join(o.root, filepath.Clean("/"+f.Name))); err == nil {
			o.spaces.AddJitdump(f, d)
		}
	}
}
