// Package switches counts by cgroup, with one group of events on each processor, whatever
// the number of cgroups. The kernel writes the group's counts into a ring when a processor
// changes its cgroup, and every 5 ms. The difference to the processor's last
// record belongs to the cgroup that the record names: the one that ran until then.
//
// It belongs to the third step of the flow
//
//	model → plan → source → counts → account → report
//
// A record takes the kernel some microseconds, at each change. So it counts in bursts, as
// long as a budget allows. Counts are those of the bursts: nothing is extrapolated.
package switches

import (
	"encoding/binary"
	"fmt"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// The events that have the counts written. The clock makes a program that is never
// switched away from visible.
const (
	switchEvent = "cgroup-switches" // since Linux 5.13
	clockEvent  = "cpu-clock"
	clockEvery  = 5_000_000 // nanoseconds
)

// A reading is a group's counts at one moment.
type reading struct {
	known            bool
	enabled, running uint64
	values           [maxEvents]uint64
}

// maxEvents bounds the events of a group. No processor has more counters.
const maxEvents = 32

// A decoder reads the records of one burst.
type decoder struct {
	columns map[uint64]int // by identifier of the event: the place in its group
	kinds   map[uint64]bool
	pending []byte
	last    map[uint32]*reading // by processor
	groups  map[uint64]*tally   // by cgroup
	Records int
	lost    uint64
	bad     int // records that are not as expected
}

// A tally is what a cgroup was counted.
type tally struct {
	enabled, running uint64
	values           [maxEvents]float64 // scaled
}

// newDecoder makes a decoder of what a sampling writes. Names has the group's events.
func newDecoder(events []perfevent.SampledEvent, names map[string]int) *decoder {
	d := &decoder{columns: map[uint64]int{}, kinds: map[uint64]bool{}, last: map[uint32]*reading{}, groups: map[uint64]*tally{}}
	for i := range events {
		for _, id := range events[i].IDs {
			if k, ok := names[events[i].Name]; ok {
				d.columns[id] = k
			}
			d.kinds[id] = events[i].Attr.Sample > 0
		}
	}
	return d
}

// Write takes what a ring has. A record may be split between two calls.
func (d *decoder) Write(b []byte) (int, error) {
	n := len(b)
	if len(d.pending) > 0 {
		d.pending = append(d.pending, b...)
		b = d.pending
	}
	const header = 8
	for len(b) >= header {
		size := int(binary.NativeEndian.Uint16(b[6:]))
		if size < header {
			return n, fmt.Errorf("a record of %d bytes", size)
		}
		if len(b) < size {
			break
		}
		d.record(binary.NativeEndian.Uint32(b), b[header:size])
		b = b[size:]
	}
	d.pending = append(d.pending[:0], b...)
	return n, nil
}

// record takes one record.
func (d *decoder) record(kind uint32, b []byte) {
	switch kind {
	case perffile.RecordSample:
		d.Records++
		if !d.sample(b) {
			d.bad++
		}
	case perffile.RecordLost, perffile.RecordLostSamples:
		// What follows is the difference over several cgroups. The processor is in the
		// trailer: thread, time, processor, identifier.
		const trailer = 8 + 8 + 8 + 8
		d.lost++
		if len(b) < trailer {
			clear(d.last)
			return
		}
		delete(d.last, binary.NativeEndian.Uint32(b[len(b)-16:]))
	}
}

// sample takes a sample: identifier, address, thread, time, processor, group, cgroup.
func (d *decoder) sample(b []byte) bool {
	const (
		atCPU, atCount     = 32, 40
		atEnabled, atValue = 48, 64
	)
	if len(b) < atValue+8 {
		return false
	}
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	n := u64(atCount)
	if n > maxEvents+2 || len(b) < atValue+int(n)*16+8 || !d.kinds[u64(0)] {
		return false
	}
	cpu := binary.NativeEndian.Uint32(b[atCPU:])
	now := reading{known: true, enabled: u64(atEnabled), running: u64(atEnabled + 8)}
	for i := range int(n) {
		if k, ok := d.columns[u64(atValue+i*16+8)]; ok {
			now.values[k] = u64(atValue + i*16)
		}
	}
	last := d.last[cpu]
	if last == nil {
		d.last[cpu] = &now
		return true
	}
	d.add(u64(atValue+int(n)*16), last, &now)
	*last = now
	return true
}

// add adds a difference to a cgroup.
func (d *decoder) add(cgroup uint64, last, now *reading) {
	enabled, running := now.enabled-last.enabled, now.running-last.running
	if now.enabled < last.enabled || now.running < last.running || running == 0 {
		return
	}
	t := d.groups[cgroup]
	if t == nil {
		t = &tally{}
		d.groups[cgroup] = t
	}
	t.enabled += enabled
	t.running += running
	scale := 1.0
	if running < enabled {
		scale = float64(enabled) / float64(running)
	}
	for k := range t.values {
		if v := now.values[k]; v > last.values[k] { // a counter that wraps adds nothing
			t.values[k] += float64(v-last.values[k]) * scale
		}
	}
}

// layout returns the columns of groups, and the scopes of names.
func layout(spec *perfevent.Spec, names []string) *counts.Layout {
	l := &counts.Layout{}
	for i, g := range spec.Groups {
		for _, e := range g {
			l.Columns = append(l.Columns, counts.Column{Event: e.Name, Unit: e.Unit, Group: i + 1})
		}
	}
	for _, name := range names {
		s := counts.RunScope(name)
		s.Kind, s.Cgroup, s.CPUs = counts.Cgroup, name, 1
		l.Scopes = append(l.Scopes, s)
	}
	return l
}
