package perfdata

import (
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// account counts what a record says, and remembers what it tells of others.
func (r *Reader) account(rec Record) {
	switch rec := rec.(type) {
	case *Lost:
		r.stats.Lost = plus(r.stats.Lost, rec.Lost)
	case *LostSamples:
		r.stats.LostSamples = plus(r.stats.LostSamples, rec.Lost)
	case *Throttle:
		if rec.Type == RecordThrottle {
			r.stats.Throttled++
		} else {
			r.stats.Unthrottled++
		}
	case *IDIndex:
		for _, e := range rec.Entries {
			if in := r.d.instance(e.ID); in != nil {
				in.cpu, in.tid = e.CPU, e.TID
			}
		}
	case *EventType:
		r.typeName(rec.Config, string(rec.Name))
		r.dirty = true
	case *BuildID:
		if r.texts += len(rec.Filename); r.texts <= maxText && len(r.features.BuildIDs) < maxEvents {
			r.features.BuildIDs = append(r.features.BuildIDs, FileBuildID{rec.PID, rec.Mode(),
				append([]byte(nil), rec.BuildID...), string(rec.Filename)})
		}
	case *Auxtrace:
		r.pass, r.after = rec.Size, rec.Type
	case *TracingData:
		r.takeTracing(rec)
	}
}

// takeTracing takes in the descriptions of tracepoints. Perf writes them behind the
// record, and simpleperf into it.
func (r *Reader) takeTracing(rec *TracingData) {
	inside := rec.raw[recordHeader+4:]
	if rec.Size == 0 || uint64(len(inside)) < uint64(rec.Size) {
		r.pass, r.after = uint64(rec.Size), rec.Type
		return
	}
	r.features.set(FeatureTracingData, inside[:rec.Size], r.d.big)
	r.dirty = true
}

// plus adds what a file says to a count, which stays where it is at most.
func plus(sum int64, n uint64) int64 {
	const most = 1 << 60
	return min(sum+int64(min(n, most)), most)
}

// takeAttr takes in an event of a pipe.
func (r *Reader) takeAttr(h Header, c *cursor) Record {
	if len(c.b) < attrSize0 || len(r.d.events) >= maxEvents {
		c.short = true
		return &r.recs.attr
	}
	size := uint64(get32(c.b[4:], c.big))
	if size == 0 {
		size = attrSize0
	}
	a := decodeAttr(c.bytes(size), c.big)
	if c.short {
		return &r.recs.attr
	}
	ids := Words{c.b, c.big}.AppendTo(nil)
	r.recs.attr = HeaderAttr{h, r.d.add(a, ids)}
	r.dirty = true
	return &r.recs.attr
}

// takeUpdate takes in what EVENT_UPDATE says of an event.
func (r *Reader) takeUpdate(h Header, c *cursor) Record {
	kind, id := c.u64(), c.u64()
	e := r.EventByID(id)
	r.recs.eventUpdate = EventUpdate{h, id, e}
	if e == nil || c.short {
		return &r.recs.eventUpdate
	}
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
		if cpus := c.cpuMap(nil); len(cpus) <= maxIDs-r.cpus {
			e.CPUs = cpus
			r.cpus += len(cpus)
		}
	}
	return &r.recs.eventUpdate
}

// takeFeature takes in a section of the header of a pipe.
func (r *Reader) takeFeature(h Header, c *cursor) Record {
	f := Feature(c.u64())
	r.recs.feature = HeaderFeature{h, f, c.b}
	if !c.short {
		if !r.features.set(f, c.b, r.d.big) {
			r.note(h.Offset, "the header's "+f.String()+" cannot be read")
		}
		r.dirty = true
	}
	return &r.recs.feature
}

// typeName remembers the name of an event of an old file.
func (r *Reader) typeName(config uint64, name string) {
	if r.types == nil {
		r.types = map[uint64]string{}
	}
	if name != "" && len(r.types) < maxEvents {
		r.types[config] = counts.Name(name[:min(len(name), maxName)])
	}
}

// settle names the events and puts them into groups, from what is known.
func (r *Reader) settle() {
	if !r.dirty {
		return
	}
	r.dirty = false
	r.applyDesc()
	for _, e := range r.d.events {
		if e.Named {
			continue
		}
		e.Name = e.encodingName(&r.features)
		// Names of old files are by the event's number alone.
		if name, ok := r.types[e.Config]; ok && e.Type <= TypeTracepoint {
			e.Name, e.Named = name, true
		}
	}
	r.applyGroups()
}

// applyDesc takes names from EVENT_DESC, by the ids or, without them, by the
// order.
func (r *Reader) applyDesc() {
	desc := r.features.desc
	for i, d := range desc {
		e := (*Event)(nil)
		if len(d.ids) > 0 {
			e = r.EventByID(d.ids[0])
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
	for _, g := range r.features.Groups {
		if g.Leader < 0 || g.Members < 1 || g.Leader >= len(events) || g.Members > len(events)-g.Leader {
			continue
		}
		for _, e := range events[g.Leader : g.Leader+g.Members] {
			e.Leader, e.Group = events[g.Leader], g.Name
		}
	}
}

// name takes the rest as a name of bounded length.
func (c *cursor) name() string {
	b := c.text()
	return counts.Name(string(b[:min(len(b), maxName)]))
}
