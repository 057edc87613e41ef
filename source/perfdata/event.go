package perfdata

import (
	"fmt"
	"math"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// An Event is what was opened: an attribute, and what else the file says of it.
type Event struct {
	Attr
	Index int      // place among the file's events
	IDs   []uint64 // of its instances, one for each processor or thread it was opened on
	Name  string   // as perf wrote it; made from the encoding where perf did not: see [Reader.Events]
	Named bool     // Name is perf's
	Unit  string   // of a count; "" for a plain one
	Scale float64  // factor of a count, for it to be in Unit; 1 where the file says nothing
	CPUs  []int    // it was opened on these; nil where the file does not say

	// Leader is the first event of its group, nil if it was in none or the file does not say; a
	// leader is its own Leader.
	Leader *Event
	Group  string // perf's name of the group

	layout layout
	flat   flatLayout
	bpf    bool // a BPF program writes the samples
	trace  tracepoint
	fields map[string]traceField // of trace, as far as they were asked for
}

// An instance is one opening of an event, which an id stands for.
type instance struct {
	event *Event
	cpu   int // that it was opened on; -1 for any, or where the file does not say
	tid   int // likewise
}

// Limits of what a file can make this package remember.
const (
	maxEvents = 1 << 16
	maxIDs    = 1 << 20  // of all events
	maxName   = 1 << 10  // bytes
	maxText   = 16 << 20 // bytes of all names of a kind
)

// A decoder is what it takes to read a record: the byte order, the events, and the
// event of each id.
type decoder struct {
	big       bool
	events    []*Event
	ids       map[uint64]*instance
	total     int   // ids of all events
	sampleIDs bool  // records that are no samples have a trailer
	idAt      []int // where ids are in samples: each offset that occurs
	idEnd     []int // where ids are in trailers, from the end: each offset that occurs

	recent [256]struct {
		id uint64
		in *instance
	}
}

// add makes an event known. Its ids are not if there are too many.
func (d *decoder) add(a Attr, ids []uint64) *Event {
	if len(ids) > maxIDs-d.total {
		ids = nil
	}
	d.total += len(ids)
	e := &Event{Attr: a, Index: len(d.events), IDs: ids, Scale: 1}
	e.layout, e.bpf = newLayout(&e.Attr), e.Attr.isBPF()
	e.flat = newFlatLayout(e)
	d.events = append(d.events, e)
	if e.Has(perffile.FlagSampleIDAll) {
		d.sampleIDs = true
		d.idEnd = addOffset(d.idEnd, e.layout.trailerID)
	}
	d.idAt = addOffset(d.idAt, e.layout.idAt)
	for _, id := range ids {
		d.bind(id, e)
	}
	return e
}

func addOffset(offsets []int, at int) []int {
	if at < 0 {
		return offsets
	}
	for _, o := range offsets {
		if o == at {
			return offsets
		}
	}
	return append(offsets, at)
}

// bind makes id stand for an event. The first binding counts.
func (d *decoder) bind(id uint64, e *Event) *instance {
	if in := d.ids[id]; in != nil || id == 0 || len(d.ids) >= maxIDs {
		return in
	}
	if d.ids == nil {
		d.ids = map[uint64]*instance{}
	}
	in := &instance{event: e, cpu: -1, tid: -1}
	d.ids[id] = in
	return in
}

// instance returns what an id stands for, nil if nothing.
func (d *decoder) instance(id uint64) *instance {
	slot := &d.recent[id%uint64(len(d.recent))]
	if slot.in != nil && slot.id == id {
		return slot.in
	}
	in := d.ids[id]
	if in != nil {
		slot.id, slot.in = id, in
	}
	return in
}

// sampleEvent returns the event of a sample: the only one, or that of its id.
// Without ids all samples are the first event's, as they are for perf. It is
// nil if the id is nobody's. See perf's evlist__event2evsel.
func (d *decoder) sampleEvent(body []byte) *Event {
	if len(d.events) == 1 {
		return d.events[0]
	}
	if len(d.events) == 0 {
		return nil
	}
	if len(d.idAt) == 0 {
		return d.events[0]
	}
	zero := false
	for _, at := range d.idAt {
		if at+8 > len(body) {
			continue
		}
		id := get64(body[at:], d.big)
		zero = zero || id == 0
		if in := d.instance(id); in != nil && in.event.layout.idAt == at {
			return in.event
		}
	}
	if zero {
		return d.events[0]
	}
	return nil
}

// trailerEvent returns the event whose sample type describes the trailer of a record other than
// a sample, nil without one.
func (d *decoder) trailerEvent(body []byte) *Event {
	if !d.sampleIDs {
		return nil
	}
	for _, end := range d.idEnd {
		if end > len(body) {
			continue
		}
		in := d.instance(get64(body[len(body)-end:], d.big))
		if in != nil && in.event.layout.trailerID == end {
			return in.event
		}
	}
	for _, e := range d.events {
		if e.Has(perffile.FlagSampleIDAll) {
			return e
		}
	}
	return nil
}

// encodingName makes a name from an event's encoding, in perf's spelling.
func (e *Event) encodingName(f *Features) string {
	name := e.plainName(f)
	if m := e.modifiers(); m != "" {
		if name[len(name)-1] == '/' {
			return name + m
		}
		return name + ":" + m
	}
	return name
}

func (e *Event) plainName(f *Features) string {
	config := e.Config
	prefix, suffix := "", ""
	if e.Type == perffile.TypeHardware || e.Type == perffile.TypeHWCache {
		// On machines with several core PMUs the upper half names the PMU.
		if pmu := uint32(config >> 32); pmu != 0 {
			prefix, suffix = f.pmuName(pmu)+"/", "/"
			config &= math.MaxUint32
		}
	}
	switch e.Type {
	case perffile.TypeHardware:
		if config < uint64(len(hardwareNames)) {
			return prefix + hardwareNames[config] + suffix
		}
		return fmt.Sprintf("hardware 0x%x", e.Config)
	case perffile.TypeSoftware:
		if config < uint64(len(softwareNames)) {
			return softwareNames[config]
		}
		return fmt.Sprintf("software 0x%x", config)
	case perffile.TypeHWCache:
		if name := cacheName(config); name != "" {
			return prefix + name + suffix
		}
		return fmt.Sprintf("cache 0x%x", e.Config)
	case perffile.TypeTracepoint:
		if name := f.tracepoints[config].name; name != "" {
			return name
		}
		return fmt.Sprintf("tracepoint %d", config)
	case perffile.TypeBreakpoint:
		return e.breakpointName()
	case perffile.TypeRaw:
		return e.rawName("r", "")
	}
	return e.rawName(f.pmuName(e.Type)+"/config=0x", "/")
}

// rawName writes the event's code between head and tail, with the extra
// registers that it has.
func (e *Event) rawName(head, tail string) string {
	b := strconv.AppendUint([]byte(head), e.Config, 16)
	if e.Config1|e.Config2|e.Config3 == 0 {
		return string(b) + tail
	}
	if tail == "" {
		b = fmt.Appendf(nil, "cpu/config=0x%x", e.Config)
	}
	for i, c := range []uint64{e.Config1, e.Config2, e.Config3} {
		if c != 0 {
			b = fmt.Appendf(b, ",config%d=0x%x", i+1, c)
		}
	}
	return string(b) + "/"
}

func (e *Event) breakpointName() string {
	access := ""
	for i, c := range "rwx" {
		if e.BPType&(1<<i) != 0 {
			access += string(c)
		}
	}
	if e.Config2 != 0 {
		return fmt.Sprintf("mem:0x%x/%d:%s", e.Config1, e.Config2, access)
	}
	return fmt.Sprintf("mem:0x%x:%s", e.Config1, access)
}

// The names of generic events, from the kernel's enums perf_hw_id and
// perf_sw_ids as perf list spells them.
var (
	hardwareNames = [...]string{"cycles", "instructions", "cache-references", "cache-misses", "branches",
		"branch-misses", "bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"}
	softwareNames = [...]string{"cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations",
		"minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy", "bpf-output",
		"cgroup-switches"}
	cacheNames   = [...]string{"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"}
	cacheOps     = [...]string{"load", "store", "prefetch"}
	cacheOpsMany = [...]string{"loads", "stores", "prefetches"}
)

// The generic software events whose periods are times, in nanoseconds.
const (
	softwareCPUClock  = 0
	softwareTaskClock = 1
)

// isClock reports whether the event counts nanoseconds.
func (e *Event) isClock() bool {
	return e.Type == perffile.TypeSoftware && (e.Config == softwareCPUClock || e.Config == softwareTaskClock)
}

// IsDummy reports whether the event counts nothing: it was opened for the
// records that come with it.
func (e *Event) IsDummy() bool { return e.Type == perffile.TypeSoftware && e.Config == 9 }

func cacheName(config uint64) string {
	cache, op, result := config&0xff, config>>8&0xff, config>>16
	if cache >= uint64(len(cacheNames)) || op >= uint64(len(cacheOps)) || result > 1 {
		return ""
	}
	if result == 1 {
		return cacheNames[cache] + "-" + cacheOps[op] + "-misses"
	}
	return cacheNames[cache] + "-" + cacheOpsMany[op]
}
