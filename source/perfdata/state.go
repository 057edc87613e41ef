package perfdata

import (
	"math"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
)

// account counts what a record says.
func (r *Reader) account(rec Record) {
	switch rec := rec.(type) {
	case *Lost:
		r.stats.Lost = plus(r.stats.Lost, rec.Lost)
	case *LostSamples:
		r.stats.LostSamples = plus(r.stats.LostSamples, rec.Lost)
	case *Throttle:
		if rec.Type == perffile.RecordThrottle {
			r.stats.Throttled++
		} else {
			r.stats.Unthrottled++
		}
	case *BuildID:
		if r.known.texts += len(rec.Filename); r.known.texts <= maxText && len(r.known.features.BuildIDs) < maxEvents {
			r.known.features.BuildIDs = append(r.known.features.BuildIDs, FileBuildID{rec.PID, rec.Mode(),
				append([]byte(nil), rec.BuildID...), string(rec.Filename)})
		}
	}
}

// learn takes in a record that describes events or the machine, or says what
// follows it. It returns false for other types.
func (r *Reader) learn(h Header, c *cursor) bool {
	switch h.Type {
	case perffile.RecordHeaderAttr:
		r.takeAttr(c)
	case perffile.RecordEventUpdate:
		r.takeUpdate(c)
	case perffile.RecordHeaderFeature:
		r.takeFeature(h, c)
	case perffile.RecordHeaderEventType:
		config, name := c.u64(), c.text()
		if !c.short {
			r.typeName(config, string(name))
			r.known.dirty = true
		}
	case perffile.RecordHeaderTracingData:
		r.takeTracing(h, c)
	case perffile.RecordIDIndex:
		r.takeIDIndex(c)
	case perffile.RecordAuxtrace:
		size := c.u64()
		c.skip(8 + 8 + 4 + 4 + 4) // offset, reference, index, thread, processor
		if !c.short {
			r.gap.size, r.gap.after = size, h.Type
		}
	default:
		return false
	}
	return true
}

// takeIDIndex takes ID_INDEX: the processors and threads that ids were opened on.
func (r *Reader) takeIDIndex(c *cursor) {
	for range c.count(c.u64(), 32) {
		id := c.u64()
		c.skip(8) // index
		cpu, tid := int(int64(c.u64())), int(int64(c.u64()))
		if in := r.d.instance(id); in != nil {
			in.cpu, in.tid = cpu, tid
		}
	}
}

// takeTracing takes in the descriptions of tracepoints. Perf writes them behind the
// record, and simpleperf into it.
func (r *Reader) takeTracing(h Header, c *cursor) {
	size, inside := c.u32(), c.b
	switch {
	case c.short:
	case size == 0 || uint64(len(inside)) < uint64(size):
		r.gap.size, r.gap.after = uint64(size), h.Type
	default:
		r.known.features.set(perffile.FeatureTracingData, inside[:size], r.d.big)
		r.known.dirty = true
	}
}

// plus adds what a file says to a count, which stays where it is at most.
func plus(sum int64, n uint64) int64 {
	const most = 1 << 60
	return min(sum+int64(min(n, most)), most)
}

// takeAttr takes in an event of a pipe.
func (r *Reader) takeAttr(c *cursor) {
	if len(c.b) < attrSize0 || len(r.d.events) >= maxEvents {
		c.short = true
		return
	}
	size := uint64(get32(c.b[4:], c.big))
	if size == 0 {
		size = attrSize0
	}
	a := decodeAttr(c.bytes(size), c.big)
	if c.short {
		return
	}
	r.d.add(a, Words{c.b, c.big}.AppendTo(nil))
	r.known.dirty = true
}

// takeUpdate takes in what EVENT_UPDATE says of an event.
func (r *Reader) takeUpdate(c *cursor) {
	kind, id := c.u64(), c.u64()
	in := r.d.instance(id)
	if in == nil || c.short {
		return
	}
	e := in.event
	switch kind {
	case 0:
		e.Unit = c.name()
	case 1:
		if scale := c.float(); scale > 0 && !math.IsInf(scale, 0) {
			e.Scale = scale
		}
	case 2:
		e.Name, e.Named = c.name(), true
	case 3:
		if cpus := c.cpuMap(nil); len(cpus) <= maxIDs-r.known.cpus {
			e.CPUs = cpus
			r.known.cpus += len(cpus)
		}
	}
}

// takeFeature takes in a section of the header of a pipe.
func (r *Reader) takeFeature(h Header, c *cursor) {
	f := Feature(c.u64())
	if c.short {
		return
	}
	if !r.known.features.set(f, c.b, r.d.big) {
		r.note(h.Offset, "the header's "+f.String()+" cannot be read")
	}
	r.known.dirty = true
}

// typeName remembers the name of an event of an old file.
func (r *Reader) typeName(config uint64, name string) {
	if r.known.types == nil {
		r.known.types = map[uint64]string{}
	}
	if name != "" && len(r.known.types) < maxEvents {
		r.known.types[config] = counts.Name(name[:min(len(name), maxName)])
	}
}

// settle names the events and puts them into groups, from what is known.
func (r *Reader) settle() {
	if !r.known.dirty {
		return
	}
	r.known.dirty = false
	r.applyDesc()
	for _, e := range r.d.events {
		if e.Type == perffile.TypeTracepoint {
			e.trace, e.fields = r.known.features.tracepoints[e.Config], nil
		}
		if e.Named {
			continue
		}
		e.Name = e.encodingName(&r.known.features)
		// Names of old files are by the event's number alone.
		if name, ok := r.known.types[e.Config]; ok && e.Type <= perffile.TypeTracepoint {
			e.Name, e.Named = name, true
		}
	}
	r.applyGroups()
}

// applyDesc takes names from EVENT_DESC, by the ids or, without them, by the
// order.
func (r *Reader) applyDesc() {
	desc := r.known.features.desc
	for i, d := range desc {
		e := (*Event)(nil)
		if len(d.ids) > 0 {
			e, _, _ = r.Instance(d.ids[0])
		}
		if e == nil && len(desc) == len(r.d.events) && r.d.events[i].Config == d.attr.Config {
			e = r.d.events[i]
		}
		if e != nil && !e.Named && d.name != "" {
			e.Name, e.Named = counts.Name(d.name), true
		}
	}
}

func (r *Reader) applyGroups() {
	events := r.d.events
	for _, g := range r.known.features.groups {
		if g.leader < 0 || g.members < 1 || g.leader >= len(events) || g.members > len(events)-g.leader {
			continue
		}
		for _, e := range events[g.leader : g.leader+g.members] {
			e.Leader, e.Group = events[g.leader], g.name
		}
	}
}

// name takes the rest as a name of bounded length.
func (c *cursor) name() string {
	b := c.text()
	return counts.Name(string(b[:min(len(b), maxName)]))
}
