package perfdata

import "github.com/cyclestack/cyclestack/internal/perffile"

// records are the records that a reader hands out, one of each type. Each is used
// again and again.
type records struct {
	raw    Raw
	sample Sample
	kernelRecords
	perfRecords
}

// kernelRecords are the kernel's, other than samples.
type kernelRecords struct {
	mmap        Mmap
	comm        Comm
	task        Task
	lost        Lost
	lostSamples LostSamples
	throttle    Throttle
	read        Read
	sw          Switch
	ksymbol     KSymbol
	cgroup      Cgroup
	deferred    CallchainDeferred
}

// perfRecords are perf's own.
type perfRecords struct {
	buildID       BuildID
	finishedRound FinishedRound
	threadMap     ThreadMap
	cpuMap        CPUMap
	statConfig    StatConfig
	stat          Stat
	statRound     StatRound
}

// leastBody is the size of the fixed part of records that have no Go type.
var leastBody = map[RecordType]int{
	perffile.RecordNamespaces: 16, perffile.RecordBPFEvent: 16, perffile.RecordTextPoke: 12, perffile.RecordAux: 24,
	perffile.RecordItraceStart: 8, perffile.RecordAuxOutputHWID: 8, perffile.RecordAuxtraceInfo: 8,
	perffile.RecordAuxtraceError: 32, perffile.RecordTimeConv: 24,
}

// kernelRecord decodes a record that the kernel writes, other than a sample. It
// returns nil if the type has no Go type. The cursor is short if the record is.
// See enum perf_event_type in perf_event.h.
func (r *records) kernelRecord(h Header, c *cursor) Record {
	switch h.Type {
	case perffile.RecordMmap, perffile.RecordMmap2:
		return r.decodeMmap(h, c)
	case perffile.RecordLost:
		r.lost = Lost{h, c.u64(), c.u64()}
		return &r.lost
	case perffile.RecordComm:
		r.comm = Comm{h, c.id(), c.id(), c.text()}
		return &r.comm
	case perffile.RecordFork, perffile.RecordExit:
		r.task = Task{Header: h, PID: c.id(), PPID: c.id(), TID: c.id(), PTID: c.id(), Time: c.u64()}
		return &r.task
	case perffile.RecordThrottle, perffile.RecordUnthrottle:
		r.throttle = Throttle{h, c.u64(), c.u64(), c.u64()}
		return &r.throttle
	case perffile.RecordRead:
		return r.decodeRead(h, c)
	case perffile.RecordLostSamples:
		r.lostSamples = LostSamples{h, c.u64()}
		return &r.lostSamples
	case perffile.RecordSwitch:
		r.sw = Switch{h, -1, -1}
		return &r.sw
	case perffile.RecordSwitchCPUWide:
		r.sw = Switch{h, c.id(), c.id()}
		return &r.sw
	case perffile.RecordKSymbol:
		r.ksymbol = KSymbol{h, c.u64(), c.u32(), c.u16(), c.u16(), c.text()}
		return &r.ksymbol
	case perffile.RecordCgroup:
		r.cgroup = Cgroup{h, c.u64(), c.text()}
		return &r.cgroup
	case perffile.RecordCallchainDeferred:
		cookie, n := c.u64(), c.u64()
		r.deferred = CallchainDeferred{h, cookie, Words{c.bytes(8 * uint64(c.count(n, 8))), c.big}}
		return &r.deferred
	}
	return nil
}

// id takes a process or thread id, or a processor: -1 is none or any.
func (c *cursor) id() int { return int(int32(c.u32())) }

func (r *records) decodeMmap(h Header, c *cursor) Record {
	r.mmap = Mmap{Header: h, PID: c.id(), TID: c.id(), Addr: c.u64(), Len: c.u64(), PgOff: c.u64()}
	m := &r.mmap
	if h.Type == perffile.RecordMmap2 {
		if h.Misc&perffile.MiscMmapBuildID != 0 {
			n := c.u8()
			c.skip(3)
			id := c.bytes(20)
			if int(n) <= len(id) {
				m.BuildID = id[:n]
			}
		} else {
			m.Maj, m.Min, m.Inode, m.InodeGeneration = c.u32(), c.u32(), c.u64(), c.u64()
		}
		m.Prot, m.Flags = c.u32(), c.u32()
	}
	m.Filename = c.text()
	return m
}

func (r *records) decodeRead(h Header, c *cursor) Record {
	r.read.Header = h
	r.read.PID, r.read.TID = c.id(), c.id()
	e := h.d.trailerEvent(c.b)
	switch {
	case e != nil:
	case len(h.d.events) > 0:
		e = h.d.events[0]
	default:
		c.short = true
		return &r.read
	}
	c.reading(e.ReadFormat, &r.read.Reading)
	return &r.read
}

// perfRecord decodes a record that perf writes for its readers, as kernelRecord
// does. See tools/lib/perf/include/perf/event.h.
func (r *records) perfRecord(h Header, c *cursor) Record {
	switch h.Type {
	case perffile.RecordHeaderBuildID:
		r.buildID.Header = h
		r.buildID.decode(c)
		return &r.buildID
	case perffile.RecordFinishedRound:
		r.finishedRound = FinishedRound{h}
		return &r.finishedRound
	case perffile.RecordThreadMap:
		return r.decodeThreadMap(h, c)
	case perffile.RecordCPUMap:
		r.cpuMap.Header = h
		r.cpuMap.CPUs = c.cpuMap(r.cpuMap.CPUs[:0])
		return &r.cpuMap
	case perffile.RecordStatConfig:
		return r.decodeStatConfig(h, c)
	case perffile.RecordStat:
		r.stat = Stat{h, c.u64(), c.id(), c.id(), c.u64(), c.u64(), c.u64()}
		return &r.stat
	case perffile.RecordStatRound:
		r.statRound = StatRound{h, c.u64() == 1, c.u64()}
		return &r.statRound
	}
	return nil
}

// decode takes what follows a build id's header. The size of the id is stored
// since Linux 5.12 only; before, ids were SHA-1.
func (b *BuildID) decode(c *cursor) {
	const sized Misc = 1 << 15
	b.PID = c.id()
	id := c.bytes(24)
	n := 20
	if b.Misc&sized != 0 && len(id) == 24 && id[20] <= 20 {
		n = int(id[20])
	}
	b.BuildID = nil
	if len(id) >= n {
		b.BuildID = id[:n]
	}
	b.Filename = c.text()
}

func (r *records) decodeThreadMap(h Header, c *cursor) Record {
	m := &r.threadMap
	m.Header, m.Threads = h, m.Threads[:0]
	for range c.count(c.u64(), 24) {
		m.Threads = append(m.Threads, MappedThread{int(int32(c.u64())), untilZero(c.bytes(16))})
	}
	return m
}

func (r *records) decodeStatConfig(h Header, c *cursor) Record {
	r.statConfig = StatConfig{Header: h, Scale: true}
	for range c.count(c.u64(), 16) {
		switch tag, v := c.u64(), c.u64(); tag {
		case 0:
			r.statConfig.Aggregation = v
		case 1:
			r.statConfig.Interval = v
		case 2:
			r.statConfig.Scale = v != 0
		}
	}
	return &r.statConfig
}

// cpuMap takes a struct perf_record_cpu_map_data: a list, a mask of words of 4
// or 8 bytes, or (since Linux 6.2) a range.
func (c *cursor) cpuMap(to []int) []int {
	switch kind := c.u16(); kind {
	case 0:
		for range c.count(uint64(c.u16()), 2) {
			to = append(to, int(int16(c.u16())))
		}
	case 1:
		to = c.cpuMask(to)
	case 2:
		anyCPU := c.u8()
		c.skip(1)
		from, end := int(c.u16()), int(c.u16())
		if anyCPU != 0 {
			to = append(to, -1)
		}
		for cpu := from; cpu <= end && !c.short; cpu++ {
			to = append(to, cpu)
		}
	default:
		c.short = true
	}
	return to
}

func (c *cursor) cpuMask(to []int) []int {
	n, size := c.u16(), int(c.u16())
	switch size {
	case 4:
	case 8:
		c.skip(4) // as the struct of older versions was padded
	default:
		c.short = true
		return to
	}
	for i := range c.count(uint64(n), size) {
		word := uint64(0)
		if size == 8 {
			word = c.u64()
		} else {
			word = uint64(c.u32())
		}
		for b := range size * 8 {
			if word>>b&1 != 0 {
				to = append(to, i*size*8+b)
			}
		}
	}
	return to
}
