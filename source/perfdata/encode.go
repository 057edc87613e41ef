package perfdata

import "math"

// encode appends what is behind a record's header, and returns its type; 0 for a
// record that is not written by itself. See kernelRecord and perfRecord.
func encode(b builder, rec Record) (RecordType, builder) {
	switch r := rec.(type) {
	case *Mmap:
		return encodeMmap(b, r)
	case *Comm:
		return RecordComm, b.ids(r.PID, r.TID).text(r.Comm)
	case *Task:
		kind := RecordFork
		if r.Type == RecordExit {
			kind = RecordExit
		}
		return kind, b.ids(r.PID, r.PPID, r.TID, r.PTID).u64(r.Time)
	case *Lost:
		return RecordLost, b.u64(r.ID).u64(r.Lost)
	case *LostSamples:
		return RecordLostSamples, b.u64(r.Lost)
	case *Throttle:
		kind := RecordThrottle
		if r.Type == RecordUnthrottle {
			kind = RecordUnthrottle
		}
		return kind, b.u64(r.Time).u64(r.ID).u64(r.StreamID)
	case *Switch:
		if r.Type == RecordSwitchCPUWide {
			return r.Type, b.ids(r.PID, r.TID)
		}
		return RecordSwitch, b
	case *Namespaces:
		b = b.ids(r.PID, r.TID).u64(uint64(len(r.List)))
		for _, n := range r.List {
			b = b.u64(n.Dev).u64(n.Inode)
		}
		return RecordNamespaces, b
	case *KSymbol:
		return RecordKSymbol, b.u64(r.Addr).u32(r.Len).u16(r.Kind).u16(r.Flags).text(r.Name)
	case *BPFEvent:
		var tag [8]byte
		copy(tag[:], r.Tag)
		return RecordBPFEvent, b.u16(r.Kind).u16(r.Flags).u32(r.ID).bytes(tag[:]...)
	case *Cgroup:
		return RecordCgroup, b.u64(r.ID).text(r.Path)
	case *TextPoke:
		return RecordTextPoke, b.u64(r.Addr).u16(uint16(len(r.Old))).u16(uint16(len(r.New))).bytes(r.Old...).bytes(r.New...)
	case *Aux:
		return RecordAux, b.u64(r.AuxOffset).u64(r.AuxSize).u64(r.Flags)
	case *ItraceStart:
		return RecordItraceStart, b.ids(r.PID, r.TID)
	case *AuxOutputHWID:
		return RecordAuxOutputHWID, b.u64(r.HWID)
	case *CallchainDeferred:
		b = b.u64(r.Cookie).u64(uint64(r.Callchain.Len()))
		for i := range r.Callchain.Len() {
			b = b.u64(r.Callchain.At(i))
		}
		return RecordCallchainDeferred, b
	}
	return encodePerf(b, rec)
}

func encodeMmap(b builder, r *Mmap) (RecordType, builder) {
	b = b.ids(r.PID, r.TID).u64(r.Addr).u64(r.Len).u64(r.PgOff)
	if r.Type == RecordMmap {
		return RecordMmap, b.text(r.Filename)
	}
	if r.Misc&MiscMmapBuildID != 0 {
		var id [20]byte
		n := copy(id[:], r.BuildID)
		b = b.bytes(byte(n), 0, 0, 0).bytes(id[:]...)
	} else {
		b = b.u32(r.Maj).u32(r.Min).u64(r.Inode).u64(r.InodeGeneration)
	}
	return RecordMmap2, b.u32(r.Prot).u32(r.Flags).text(r.Filename)
}

// encodePerf is encode of perf's own records.
func encodePerf(b builder, rec Record) (RecordType, builder) {
	switch r := rec.(type) {
	case *BuildID:
		return RecordHeaderBuildID, b.buildID(r.PID, r.BuildID, r.Filename)
	case *FinishedRound:
		return RecordFinishedRound, b
	case *FinishedInit:
		return RecordFinishedInit, b
	case *IDIndex:
		b = b.u64(uint64(len(r.Entries)))
		for _, e := range r.Entries {
			b = b.u64(e.ID).u64(e.Index).u64(uint64(e.CPU)).u64(uint64(e.TID))
		}
		return RecordIDIndex, b
	case *ThreadMap:
		b = b.u64(uint64(len(r.Threads)))
		for _, t := range r.Threads {
			var comm [16]byte
			copy(comm[:15], t.Comm)
			b = b.u64(uint64(t.TID)).bytes(comm[:]...)
		}
		return RecordThreadMap, b
	case *CPUMap:
		b = b.u16(0).u16(uint16(len(r.CPUs)))
		for _, cpu := range r.CPUs {
			b = b.u16(uint16(cpu))
		}
		return RecordCPUMap, b
	case *StatConfig:
		scale := uint64(0)
		if r.Scale {
			scale = 1
		}
		return RecordStatConfig, b.u64(3).u64(0).u64(r.Aggregation).u64(1).u64(r.Interval).u64(2).u64(scale)
	case *Stat:
		return RecordStat, b.u64(r.ID).ids(r.CPU, r.Thread).u64(r.Value).u64(r.Enabled).u64(r.Running)
	case *StatRound:
		final := uint64(0)
		if r.Final {
			final = 1
		}
		return RecordStatRound, b.u64(final).u64(r.Time)
	case *TimeConv:
		return RecordTimeConv, b.u64(r.Shift).u64(r.Mult).u64(r.Zero).u64(r.Cycles).u64(r.Mask).zeros(8)
	case *EventUpdate:
		return encodeUpdate(b, r)
	}
	return 0, b
}

// encodeUpdate writes the event's unit if it has one, else its name.
func encodeUpdate(b builder, r *EventUpdate) (RecordType, builder) {
	switch e := r.Event; {
	case e == nil:
		return 0, b
	case e.Unit != "":
		return RecordEventUpdate, b.u64(0).u64(r.ID).text([]byte(e.Unit))
	case e.Scale != 0 && e.Scale != 1:
		return RecordEventUpdate, b.u64(1).u64(r.ID).u64(math.Float64bits(e.Scale))
	default:
		return RecordEventUpdate, b.u64(2).u64(r.ID).text([]byte(e.Name))
	}
}

func (b builder) ids(ids ...int) builder {
	for _, id := range ids {
		b = b.u32(uint32(id))
	}
	return b
}

// text appends a string, a zero byte, and what it takes to end at a word.
func (b builder) text(s []byte) builder {
	b = b.bytes(untilZero(s)...)
	return b.zeros(align(len(b.b)+1, 8) - len(b.b))
}

func (b builder) buildID(pid int, id, file []byte) builder {
	var space [24]byte
	space[20] = byte(copy(space[:20], id))
	return b.u32(uint32(pid)).bytes(space[:]...).text(file)
}

// A featureSection is a section of the header as it is written.
type featureSection struct {
	feature Feature
	b       []byte
}

// sections returns what there is to write of f, in the order of the numbers.
func (w *Writer) sections(f *Features) []featureSection {
	var out []featureSection
	add := func(x Feature, there bool, content func(b builder) builder) {
		if there {
			out = append(out, featureSection{x, content(builder{big: w.opts.BigEndian}).b})
		}
	}
	text := func(x Feature, s string) {
		add(x, s != "", func(b builder) builder { return b.str(s) })
	}
	add(FeatureBuildID, len(f.BuildIDs) > 0, f.appendBuildIDs)
	// Perf knows a file of the other byte order by the bit of the host's name.
	add(FeatureHostname, true, func(b builder) builder { return b.str(f.Hostname) })
	text(FeatureOSRelease, f.OSRelease)
	text(FeatureVersion, f.Version)
	text(FeatureArch, f.Arch)
	add(FeatureNrCPUs, f.CPUs > 0, func(b builder) builder { return b.ids(f.CPUs, f.Online) })
	text(FeatureCPUDesc, f.CPUDesc)
	text(FeatureCPUID, f.CPUID)
	add(FeatureTotalMem, f.TotalMem > 0, func(b builder) builder { return b.u64(f.TotalMem) })
	add(FeatureCmdline, len(f.Cmdline) > 0, func(b builder) builder { return b.strs(f.Cmdline) })
	add(FeatureEventDesc, true, w.appendDesc)
	add(FeatureCPUTopology, len(f.CoreSiblings) > 0, f.appendTopology)
	add(FeatureNUMATopology, len(f.NUMA) > 0, f.appendNUMA)
	add(FeaturePMUMappings, len(f.PMUs) > 0, func(b builder) builder {
		b = b.u32(uint32(len(f.PMUs)))
		for _, p := range f.PMUs {
			b = b.u32(p.Type).str(p.Name)
		}
		return b
	})
	groups := w.groups()
	add(FeatureGroupDesc, len(groups) > 0, func(b builder) builder {
		b = b.u32(uint32(len(groups)))
		for _, g := range groups {
			b = b.str(g.Name).ids(g.Leader, g.Members)
		}
		return b
	})
	add(FeatureStat, f.Stat, func(b builder) builder { return b })
	add(FeatureCache, len(f.Caches) > 0, f.appendCaches)
	add(FeatureSampleTime, f.SampleTime != [2]uint64{}, func(b builder) builder {
		return b.u64(f.SampleTime[0]).u64(f.SampleTime[1])
	})
	add(FeatureClockID, f.ClockResNanos > 0, func(b builder) builder { return b.u64(f.ClockResNanos) })
	add(FeatureCPUPMUCaps, len(f.CPUCaps) > 0, func(b builder) builder { return b.caps(f.CPUCaps) })
	add(FeatureClockData, f.ClockID != ClockData{}, func(b builder) builder {
		return b.u32(1).u32(f.ClockID.Clock).u64(f.ClockID.TimeOfDay).u64(f.ClockID.ClockNanos)
	})
	add(FeatureHybridTopology, len(f.Hybrid) > 0, func(b builder) builder {
		b = b.u32(uint32(len(f.Hybrid)))
		for _, h := range f.Hybrid {
			b = b.str(h.Name).str(h.CPUs)
		}
		return b
	})
	add(FeaturePMUCaps, len(f.PMUCaps) > 0, func(b builder) builder {
		b = b.u32(uint32(len(f.PMUCaps)))
		for _, p := range f.PMUCaps {
			b = b.caps(p.Caps).str(p.PMU)
		}
		return b
	})
	return out
}

func (b builder) caps(caps []Cap) builder {
	b = b.u32(uint32(len(caps)))
	for _, c := range caps {
		b = b.str(c.Name).str(c.Value)
	}
	return b
}

func (f *Features) appendBuildIDs(b builder) builder {
	const sized Misc = 1 << 15
	for _, id := range f.BuildIDs {
		body := builder{big: b.big}.buildID(id.PID, id.BuildID, []byte(id.Filename))
		body = body.zeros(align(len(body.b), 8) - len(body.b))
		b = b.u32(uint32(RecordHeaderBuildID)).u16(uint16(sized | Misc(id.Mode)&MiscModeMask)).
			u16(uint16(8 + len(body.b))).bytes(body.b...)
	}
	return b
}

// appendDesc writes EVENT_DESC.
func (w *Writer) appendDesc(b builder) builder {
	b = b.ids(len(w.opts.Events), w.attr)
	for _, e := range w.opts.Events {
		b = e.appendTo(b, w.attr).u32(uint32(len(e.IDs))).str(e.Name)
		for _, id := range e.IDs {
			b = b.u64(id)
		}
	}
	return b
}

// groups returns the groups of more than one event.
func (w *Writer) groups() []EventGroup {
	var out []EventGroup
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
			out = append(out, EventGroup{name, i, n})
		}
		i += n
	}
	return out
}

func (f *Features) appendTopology(b builder) builder {
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

func (f *Features) appendNUMA(b builder) builder {
	b = b.u32(uint32(len(f.NUMA)))
	for _, n := range f.NUMA {
		b = b.ids(n.Node).u64(n.MemTotal).u64(n.Free).str(n.CPUs)
	}
	return b
}

func (f *Features) appendCaches(b builder) builder {
	b = b.u32(1).u32(uint32(len(f.Caches)))
	for _, c := range f.Caches {
		b = b.u32(c.Level).u32(c.LineSize).u32(c.Sets).u32(c.Ways).str(c.Kind).str(c.Size).str(c.CPUs)
	}
	return b
}
