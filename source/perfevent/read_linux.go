package perfevent

import (
	"encoding/binary"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// A reading is what the kernel says about an event or a group, see struct
// read_format in include/uapi/linux/perf_event.h.
type reading struct {
	enabled, running uint64
	values           []value
}

// A value is the count of one event of a reading.
type value struct{ count, id uint64 }

// parse takes a reading of a group apart. It reports whether it is one.
func (r *reading) parse(b []byte, lost bool) bool {
	const head = 24
	size := 16
	if lost {
		size = 24
	}
	if len(b) < head {
		return false
	}
	n := binary.NativeEndian.Uint64(b)
	r.enabled, r.running = binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
	r.values = r.values[:0]
	for b = b[head:]; len(b) >= size && uint64(len(r.values)) < n; b = b[size:] {
		r.values = append(r.values, value{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])})
	}
	return uint64(len(r.values)) == n
}

// parseOne takes a reading of one event apart that is read by itself.
func (r *reading) parseOne(b []byte) bool {
	if len(b) < 32 {
		return false
	}
	r.enabled, r.running = binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
	r.values = append(r.values[:0], value{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[24:])})
	return true
}

// A reader reads sets into tables.
type reader struct {
	buf     []byte
	got     reading
	lost    bool                  // readings have PERF_FORMAT_LOST
	singly  bool                  // each event is read by itself: see opener.singly
	elapsed float64               // nanoseconds since the last reading
	spent   []float64             // by set: the time that a clock measured since then
	deltas  []delta               // by event of the set that is read
	silent  func(cpu int) float64 // how long a processor should have counted and has not
	varied  []int                 // groups that are disabled for a time: see variation
	steady  map[place]float64     // how long what is never disabled was enabled
}

// A delta is what an event counted since it was last read.
type delta struct {
	count float64
	ok    bool
}

// fill reads all sets and adds what they counted since they were last read to
// the cells of a table. elapsed is that time in nanoseconds.
func (r *reader) fill(t *counts.Table, sets []set, elapsed float64) {
	r.elapsed = elapsed
	if len(r.spent) < len(sets) {
		r.spent = make([]float64, len(sets))
	}
	clear(r.steady)
	for i := range sets {
		if s := &sets[i]; s.siblings == nil {
			r.begin(s)
			r.read(s)
			r.spent[i] = r.deltas[0].count
		}
	}
	for i := range sets {
		if s := &sets[i]; s.siblings != nil {
			r.add(t, s)
		}
	}
}

// begin makes room for what the events of a set counted.
func (r *reader) begin(s *set) {
	if n := len(s.events); len(r.deltas) < n {
		r.deltas = make([]delta, n)
		r.buf = make([]byte, 24+24*n)
	}
	clear(r.deltas[:len(s.events)])
}

// add adds what a set counted in all its slots.
func (r *reader) add(t *counts.Table, s *set) {
	r.begin(s)
	enabled, running := r.read(s)
	for i := range s.repeats {
		c := &s.repeats[i]
		_, more := r.read(c)
		running += more
	}
	if s.clocks != nil {
		enabled = 0
		for _, c := range s.clocks {
			enabled += r.spent[c]
		}
	}
	enabled = r.undisturbed(s, enabled)
	// Copies may be on counters at the same time, where these suffice for both. Clocks
	// are read a moment before.
	share := 1.0
	if running > enabled && len(s.repeats) > 0 && enabled > 0 {
		share = enabled / running
	}
	running *= share
	enabled = max(enabled, running)
	for i := range s.events {
		e := &s.events[i]
		if e.column < 0 {
			continue
		}
		d := r.deltas[i]
		d.count *= share
		c := r.cell(s, d, enabled, running)
		c.Value *= e.scale
		t.Cell(s.scope, e.column).Add(&c)
	}
}

// undisturbed returns how long a set was enabled, with the time that it was disabled by a
// variation. What is never disabled comes before it in its place.
func (r *reader) undisturbed(s *set, enabled float64) float64 {
	switch {
	case len(r.varied) == 0 || s.clocks != nil:
	case s.siblings.group < 0:
		if r.steady == nil {
			r.steady = map[place]float64{}
		}
		r.steady[s.place] = max(enabled, r.steady[s.place])
	case slices.Contains(r.varied, s.siblings.group):
		return max(enabled, r.steady[s.place])
	}
	return enabled
}

// cell makes a cell of what an event counted.
func (r *reader) cell(s *set, d delta, enabled, running float64) counts.Cell {
	switch {
	case !d.ok:
		return counts.Cell{State: counts.NotCounted, Enabled: r.elapsed}
	case running > 0 && running < enabled:
		return counts.Cell{State: counts.Counted, Value: d.count * (enabled / running), Enabled: enabled, Running: running}
	case running > 0 || enabled == 0 && s.pid != -1 && !s.pinned:
		// A task that did not run counted nothing, and nothing was missed.
		return counts.Cell{State: counts.Counted, Value: d.count, Enabled: enabled, Running: running}
	case enabled == 0 && s.pid != -1: // or the counters did not take it
		return counts.Cell{State: counts.NotCounted}
	case enabled == 0:
		return counts.Cell{State: counts.NotCounted, Enabled: r.silent(s.cpu)}
	}
	return counts.Cell{State: counts.NotCounted, Enabled: enabled}
}

// read reads a set and adds to the deltas what its events counted. It returns how long
// they were enabled and running since the last reading.
func (r *reader) read(s *set) (enabled, running float64) {
	if !r.singly && r.readGroup(s) {
		for i := range s.events {
			r.count(&s.events[i], i, &r.deltas[i])
		}
		return r.times(s)
	}
	return r.readEach(s)
}

// readGroup reads all events of a set at once. It reports whether it got them:
// there is nothing to read of a pinned group that the counters did not take.
func (r *reader) readGroup(s *set) bool {
	n, err := readEvent(s.leader, r.buf)
	return err == nil && n > 0 && r.got.parse(r.buf[:n], r.lost) && len(r.got.values) == len(s.events)
}

// readEach reads each event of a set by itself. The kernel breaks a group up when its
// processor goes offline, and cannot read a partly inherited group as one.
func (r *reader) readEach(s *set) (enabled, running float64) {
	for i := range s.events {
		e := &s.events[i]
		n, err := readEvent(e.fd, r.buf)
		if err != nil || n == 0 {
			continue
		}
		group := i == 0 && !r.singly
		if group && !r.got.parse(r.buf[:n], r.lost) || !group && !r.got.parseOne(r.buf[:n]) || len(r.got.values) == 0 {
			continue
		}
		r.count(e, 0, &r.deltas[i])
		if !r.deltas[i].ok {
			continue
		}
		enabled, running = max(enabled, float64(int64(r.got.enabled-s.enabled))), max(running, float64(int64(r.got.running-s.running)))
	}
	s.enabled += uint64(enabled)
	s.running += uint64(running)
	return enabled, running
}

// times returns for how long a set was enabled and running since it was last
// read.
func (r *reader) times(s *set) (enabled, running float64) {
	enabled = float64(int64(r.got.enabled - s.enabled))
	running = float64(int64(r.got.running - s.running))
	s.enabled, s.running = r.got.enabled, r.got.running
	return enabled, running
}

// count adds what an event counted. Values are found by their ids, at first at
// the event's own index: the kernel keeps the order of a group unless it
// changes it.
func (r *reader) count(e *setEvent, at int, d *delta) {
	for n := 0; r.got.values[at].id != e.id; n++ {
		if n == len(r.got.values) {
			return
		}
		at = n
	}
	now := r.got.values[at].count
	// Of 64 bits, whose differences are right also when the sum has wrapped
	// around. A count can go back by a little where the kernel derives it from
	// another (PERF_METRICS).
	d.count += float64(int64(now - e.last))
	d.ok = true
	e.last = now
}
