package perfwrite

import (
	"bytes"
	"slices"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// encode appends what is behind a record's header, and returns its type; 0 for a
// record that is not written by itself. See kernelRecord and perfRecord.
func encode(b builder, rec perfdata.Record) (perfdata.RecordType, builder) {
	switch r := rec.(type) {
	case *perfdata.Mmap:
		return encodeMmap(b, r)
	case *perfdata.Comm:
		return perffile.RecordComm, b.ids(r.PID, r.TID).text(r.Comm)
	case *perfdata.Task:
		kind := perfdata.RecordType(perffile.RecordFork)
		if r.Type == perffile.RecordExit {
			kind = perffile.RecordExit
		}
		return kind, b.ids(r.PID, r.PPID, r.TID, r.PTID).u64(r.Time)
	case *perfdata.Lost:
		return perffile.RecordLost, b.u64(r.ID).u64(r.Lost)
	case *perfdata.LostSamples:
		return perffile.RecordLostSamples, b.u64(r.Lost)
	case *perfdata.Throttle:
		kind := perfdata.RecordType(perffile.RecordThrottle)
		if r.Type == perffile.RecordUnthrottle {
			kind = perffile.RecordUnthrottle
		}
		return kind, b.u64(r.Time).u64(r.ID).u64(r.StreamID)
	case *perfdata.Switch:
		if r.Type == perffile.RecordSwitchCPUWide {
			return r.Type, b.ids(r.PID, r.TID)
		}
		return perffile.RecordSwitch, b
	case *perfdata.KSymbol:
		return perffile.RecordKSymbol, b.u64(r.Addr).u32(r.Len).u16(r.Kind).u16(r.Flags).text(r.Name)
	case *perfdata.Cgroup:
		return perffile.RecordCgroup, b.u64(r.ID).text(r.Path)
	}
	return encodePerf(b, rec)
}

func encodeMmap(b builder, r *perfdata.Mmap) (perfdata.RecordType, builder) {
	b = b.ids(r.PID, r.TID).u64(r.Addr).u64(r.Len).u64(r.PgOff)
	if r.Type == perffile.RecordMmap {
		return perffile.RecordMmap, b.text(r.Filename)
	}
	if r.Misc&perffile.MiscMmapBuildID != 0 {
		var id [20]byte
		n := copy(id[:], r.BuildID)
		b = b.bytes(byte(n), 0, 0, 0).bytes(id[:]...)
	} else {
		b = b.u32(r.Maj).u32(r.Min).u64(r.Inode).u64(r.InodeGeneration)
	}
	return perffile.RecordMmap2, b.u32(r.Prot).u32(r.Flags).text(r.Filename)
}

// encodePerf is encode of perf's own records.
func encodePerf(b builder, rec perfdata.Record) (perfdata.RecordType, builder) {
	switch r := rec.(type) {
	case *perfdata.BuildID:
		return perffile.RecordHeaderBuildID, b.buildID(r.PID, r.BuildID, r.Filename)
	case *perfdata.FinishedRound:
		return perffile.RecordFinishedRound, b
	case *perfdata.ThreadMap:
		b = b.u64(uint64(len(r.Threads)))
		for _, t := range r.Threads {
			var comm [16]byte
			copy(comm[:15], t.Comm)
			b = b.u64(uint64(t.TID)).bytes(comm[:]...)
		}
		return perffile.RecordThreadMap, b
	case *perfdata.CPUMap:
		b = b.u16(0).u16(uint16(len(r.CPUs)))
		for _, cpu := range r.CPUs {
			b = b.u16(uint16(cpu))
		}
		return perffile.RecordCPUMap, b
	case *perfdata.StatConfig:
		scale := uint64(0)
		if r.Scale {
			scale = 1
		}
		return perffile.RecordStatConfig, b.u64(3).u64(0).u64(r.Aggregation).u64(1).u64(r.Interval).u64(2).u64(scale)
	case *perfdata.Stat:
		return perffile.RecordStat, b.u64(r.ID).ids(r.CPU, r.Thread).u64(r.Value).u64(r.Enabled).u64(r.Running)
	case *perfdata.StatRound:
		final := uint64(0)
		if r.Final {
			final = 1
		}
		return perffile.RecordStatRound, b.u64(final).u64(r.Time)
	}
	return 0, b
}

func (b builder) ids(ids ...int) builder {
	for _, id := range ids {
		b = b.u32(uint32(id))
	}
	return b
}

// text appends a string, a zero byte, and what it takes to end at a word.
func (b builder) text(s []byte) builder {
	if i := bytes.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	b = b.bytes(s...)
	return b.zeros(perffile.Align(len(b.b)+1, 8) - len(b.b))
}

func (b builder) buildID(pid int, id, file []byte) builder {
	var space [24]byte
	space[20] = byte(copy(space[:20], id))
	return b.u32(uint32(pid)).bytes(space[:]...).text(file)
}

// A featureSection is a section of the header as it is written.
type featureSection struct {
	feature perfdata.Feature
	b       []byte
}

// sections returns what there is to write of f, in the order of the numbers.
func (w *Writer) sections(f *perfdata.Features) []featureSection {
	var out []featureSection
	add := func(x perfdata.Feature, there bool, content func(b builder) builder) {
		if there {
			out = append(out, featureSection{x, content(builder{big: w.opts.BigEndian}).b})
		}
	}
	text := func(x perfdata.Feature, s string) {
		add(x, s != "", func(b builder) builder { return b.str(s) })
	}
	add(perffile.FeatureTracingData, len(w.opts.Tracing) > 0, func(b builder) builder { return b.bytes(w.opts.Tracing...) })
	add(perffile.FeatureBuildID, len(f.BuildIDs) > 0, func(b builder) builder { return appendBuildIDs(b, f) })
	// Perf knows a file of the other byte order by the bit of the host's name.
	add(perffile.FeatureHostname, true, func(b builder) builder { return b.str(f.Hostname) })
	text(perffile.FeatureOSRelease, f.OSRelease)
	text(perffile.FeatureVersion, f.Version)
	text(perffile.FeatureArch, f.Arch)
	add(perffile.FeatureNrCPUs, f.CPUs > 0, func(b builder) builder { return b.ids(f.CPUs, f.Online) })
	text(perffile.FeatureCPUDesc, f.CPUDesc)
	text(perffile.FeatureCPUID, f.CPUID)
	add(perffile.FeatureTotalMem, f.TotalMem > 0, func(b builder) builder { return b.u64(f.TotalMem) })
	add(perffile.FeatureCmdline, len(f.Cmdline) > 0, func(b builder) builder { return b.strs(f.Cmdline) })
	add(perffile.FeatureEventDesc, true, w.appendDesc)
	add(perffile.FeatureCPUTopology, len(f.CoreSiblings) > 0, func(b builder) builder { return appendTopology(b, f) })
	add(perffile.FeatureNUMATopology, len(f.NUMA) > 0, func(b builder) builder { return appendNUMA(b, f) })
	branches := slices.ContainsFunc(w.opts.Events, func(e *perfdata.Event) bool {
		return e.SampleType&perffile.SampleBranchStack != 0 && e.BranchType&perffile.BranchCallStack == 0
	})
	add(perffile.FeatureBranchStack, branches, func(b builder) builder { return b })
	add(perffile.FeaturePMUMappings, len(f.PMUs) > 0, func(b builder) builder {
		b = b.u32(uint32(len(f.PMUs)))
		for _, p := range f.PMUs {
			b = b.u32(p.Type).str(p.Name)
		}
		return b
	})
	groups := w.groups()
	add(perffile.FeatureGroupDesc, len(groups) > 0, func(b builder) builder {
		b = b.u32(uint32(len(groups)))
		for _, g := range groups {
			b = b.str(g.name).ids(g.leader, g.members)
		}
		return b
	})
	add(perffile.FeatureStat, f.Stat, func(b builder) builder { return b })
	add(perffile.FeatureCache, len(f.Caches) > 0, func(b builder) builder { return appendCaches(b, f) })
	add(perffile.FeatureSampleTime, f.SampleTime != [2]uint64{}, func(b builder) builder {
		return b.u64(f.SampleTime[0]).u64(f.SampleTime[1])
	})
	add(perffile.FeatureClockID, f.ClockResNanos > 0, func(b builder) builder { return b.u64(f.ClockResNanos) })
	add(perffile.FeatureCompressed, w.compressor != nil, func(b builder) builder { return w.compressor.feature(b) })
	add(perffile.FeatureCPUPMUCaps, len(f.CPUCaps) > 0, func(b builder) builder { return b.caps(f.CPUCaps) })
	add(perffile.FeatureClockData, f.ClockID != perfdata.ClockData{}, func(b builder) builder {
		return b.u32(1).u32(f.ClockID.Clock).u64(f.ClockID.TimeOfDay).u64(f.ClockID.ClockNanos)
	})
	add(perffile.FeatureHybridTopology, len(f.Hybrid) > 0, func(b builder) builder {
		b = b.u32(uint32(len(f.Hybrid)))
		for _, h := range f.Hybrid {
			b = b.str(h.Name).str(h.CPUs)
		}
		return b
	})
	add(perffile.FeaturePMUCaps, len(f.PMUCaps) > 0, func(b builder) builder {
		b = b.u32(uint32(len(f.PMUCaps)))
		for _, p := range f.PMUCaps {
			b = b.caps(p.Caps).str(p.PMU)
		}
		return b
	})
	return out
}

func (b builder) caps(caps []perfdata.Cap) builder {
	b = b.u32(uint32(len(caps)))
	for _, c := range caps {
		b = b.str(c.Name).str(c.Value)
	}
	return b
}

func appendBuildIDs(b builder, f *perfdata.Features) builder {
	const sized perfdata.Misc = 1 << 15
	for _, id := range f.BuildIDs {
		body := builder{big: b.big}.buildID(id.PID, id.BuildID, []byte(id.Filename))
		body = body.zeros(perffile.Align(len(body.b), 8) - len(body.b))
		b = b.u32(uint32(perffile.RecordHeaderBuildID)).u16(uint16(sized | perfdata.Misc(id.Mode)&perffile.MiscModeMask)).
			u16(uint16(8 + len(body.b))).bytes(body.b...)
	}
	return b
}

// appendDesc writes EVENT_DESC.
func (w *Writer) appendDesc(b builder) builder {
	b = b.ids(len(w.opts.Events), w.attr)
	for _, e := range w.opts.Events {
		b = appendAttr(b, &e.Attr, w.attr).u32(uint32(len(e.IDs))).str(e.Name)
		for _, id := range e.IDs {
			b = b.u64(id)
		}
	}
	return b
}

// An eventGroup is a group's name, the index of its leader, and how many events it has.
type eventGroup struct {
	name            string
	leader, members int
}

// groups returns the groups of more than one event.
func (w *Writer) groups() []eventGroup {
	var out []eventGroup
	for i := 0; i < len(w.opts.Events); {
		leader := w.opts.Events[i]
		n := 1
		for leader.Leader == leader && i+n < len(w.opts.Events) && w.opts.Events[i+n].Leader == leader {
			n++
		}
		if n > 1 {
			name := leader.Group
			if name == "" {
				name = "{anon_group}"
			}
			out = append(out, eventGroup{name, i, n})
		}
		i += n
	}
	return out
}

func appendTopology(b builder, f *perfdata.Features) builder {
	b = b.strs(f.CoreSiblings).strs(f.ThreadSiblings)
	for _, p := range f.Topology {
		b = b.ids(p.Core, p.Socket)
	}
	if len(f.DieSiblings) == 0 || len(f.Topology) == 0 {
		return b
	}
	b = b.strs(f.DieSiblings)
	for _, p := range f.Topology {
		b = b.ids(p.Die)
	}
	return b
}

func appendNUMA(b builder, f *perfdata.Features) builder {
	b = b.u32(uint32(len(f.NUMA)))
	for _, n := range f.NUMA {
		b = b.ids(n.Node).u64(n.MemTotal).u64(n.Free).str(n.CPUs)
	}
	return b
}

func appendCaches(b builder, f *perfdata.Features) builder {
	b = b.u32(1).u32(uint32(len(f.Caches)))
	for _, c := range f.Caches {
		b = b.u32(c.Level).u32(c.LineSize).u32(c.Sets).u32(c.Ways).str(c.Kind).str(c.Size).str(c.CPUs)
	}
	return b
}
