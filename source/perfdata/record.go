package perfdata

import "github.com/cyclestack/cyclestack/internal/perffile"

// A Record is one record of a file: a pointer to one of the types of this
// package that embed a [Header]. It belongs to the reader and is valid until the
// next call of Next, with the slices in it; what is to be kept must be copied.
type Record interface {
	// Head returns what all records have.
	Head() *Header
}

// A Header is what all records have.
type Header struct {
	Type   RecordType
	Misc   Misc
	Offset int64 // in the file; of a record that was compressed, that of the record it was in

	raw []byte
	d   *decoder
}

// Head returns the header.
func (h *Header) Head() *Header { return h }

// Bytes returns the record as it is in the file, header included. What follows
// an [Auxtrace] or a [TracingData] is not in it.
func (h *Header) Bytes() []byte { return h.raw }

// Mode says where the processor was.
func (h *Header) Mode() Mode { return Mode(h.Misc & perffile.MiscModeMask) }

// A Trailer has the time and place of a record's event. The kernel writes it if
// FlagSampleIDAll was set. Fields that were not recorded are zero. Has says which
// were recorded.
type Trailer struct {
	Has      SampleType
	PID, TID int
	Time     uint64 // ns
	ID       uint64
	StreamID uint64
	CPU      int // -1 if not recorded
}

// Trailer returns the end of a kernel's record that is no sample. It is zero
// for others, and for records that have none.
func (h *Header) Trailer() Trailer {
	out := Trailer{CPU: -1}
	if h.Type >= perffile.RecordHeaderAttr || h.Type == perffile.RecordSample || len(h.raw) < 8 {
		return out
	}
	body := h.raw[8:]
	e := h.d.trailerEvent(body)
	if e == nil || e.layout.trailer > len(body) {
		return out
	}
	c := cursor{b: body[len(body)-e.layout.trailer:], big: h.d.big}
	const all = perffile.SampleTID | perffile.SampleTime | perffile.SampleID | perffile.SampleStreamID | perffile.SampleCPU | perffile.SampleIdentifier
	out.Has = e.SampleType & all
	if out.Has&perffile.SampleTID != 0 {
		out.PID, out.TID = int(int32(c.u32())), int(int32(c.u32()))
	}
	if out.Has&perffile.SampleTime != 0 {
		out.Time = c.u64()
	}
	if out.Has&perffile.SampleID != 0 {
		out.ID = c.u64()
	}
	if out.Has&perffile.SampleStreamID != 0 {
		out.StreamID = c.u64()
	}
	if out.Has&perffile.SampleCPU != 0 {
		out.CPU = int(int32(c.u32()))
		c.skip(4)
	}
	if out.Has&perffile.SampleIdentifier != 0 {
		out.ID = c.u64()
	}
	return out
}

// Raw is a record without a Go type of its own. The reader has taken in those that describe
// events and the machine. The content of others is not decoded: nobody has asked for it, or it
// is not what its type says. Bytes has all of it.
type Raw struct {
	Header
	Why string // what is wrong with the content; "" for nothing
}

// Mmap is MMAP or MMAP2: a file or the kernel was mapped into memory.
type Mmap struct {
	Header
	PID, TID  int
	Addr, Len uint64
	PgOff     uint64 // offset in the file
	Filename  []byte

	// Of MMAP2 only.
	BuildID         []byte // with MiscMmapBuildID, which leaves out the next four
	Maj, Min        uint32
	Inode           uint64
	InodeGeneration uint64
	Prot, Flags     uint32
}

// Comm is COMM: a thread's name. With MiscCommExec it was set by an exec.
type Comm struct {
	Header
	PID, TID int
	Comm     []byte
}

// Task is FORK or EXIT of a thread.
type Task struct {
	Header
	PID, PPID int
	TID, PTID int
	Time      uint64 // ns
}

// Lost is LOST: records that did not fit into the ring buffer.
type Lost struct {
	Header
	ID   uint64
	Lost uint64 // records
}

// LostSamples is LOST_SAMPLES: samples that the kernel or the PMU dropped.
type LostSamples struct {
	Header
	Lost uint64
}

// Throttle is THROTTLE or UNTHROTTLE: the kernel stopped sampling an event that
// was too frequent, or went on.
type Throttle struct {
	Header
	Time     uint64 // ns
	ID       uint64
	StreamID uint64
}

// Read is READ: the counters of a thread that has ended.
type Read struct {
	Header
	PID, TID int
	Reading  Reading
}

// Switch is SWITCH or SWITCH_CPU_WIDE: a thread began to run, or with
// MiscSwitchOut ceased to. PID and TID are those of the next or previous one,
// and -1 if it was not recorded; Trailer has the thread itself.
type Switch struct {
	Header
	PID, TID int
}

// KSymbol is KSYMBOL: kernel code that came, or with KSymbolUnregister went,
// after boot: BPF programs, trampolines.
type KSymbol struct {
	Header
	Addr  uint64
	Len   uint32
	Kind  uint16 // 1 BPF, 2 out of line
	Flags uint16
	Name  []byte
}

// Cgroup is CGROUP: the path of a cgroup's id.
type Cgroup struct {
	Header
	ID   uint64
	Path []byte
}

// CallchainDeferred is CALLCHAIN_DEFERRED: the user's part of the callchains
// that end with ContextUserDeferred and Cookie.
type CallchainDeferred struct {
	Header
	Cookie    uint64
	Callchain Words
}

// BuildID is HEADER_BUILD_ID, and an entry of the header's table.
type BuildID struct {
	Header
	PID      int // -1 for the host
	BuildID  []byte
	Filename []byte
}

// FinishedRound is FINISHED_ROUND: what comes later is not older than the
// latest record before the previous round's end.
type FinishedRound struct{ Header }

// ThreadMap is THREAD_MAP: the threads that events were opened on.
type ThreadMap struct {
	Header
	Threads []MappedThread
}

// A MappedThread is a thread, -1 for any, and its name.
type MappedThread struct {
	TID  int
	Comm []byte
}

// CPUMap is CPU_MAP: the logical processors that events were opened on; -1 is
// any.
type CPUMap struct {
	Header
	CPUs []int
}

// StatConfig is STAT_CONFIG: how perf stat record was called.
type StatConfig struct {
	Header
	Aggregation uint64 // enum aggr_mode of the perf that wrote it
	Interval    uint64 // ms; 0 for none
	Scale       bool
}

// Stat is STAT: an instance of an event as perf stat record read it.
type Stat struct {
	Header
	ID               uint64
	CPU              int // -1 for any
	Thread           int // index into the ThreadMap
	Value            uint64
	Enabled, Running uint64 // ns
}

// StatRound is STAT_ROUND: an interval of perf stat record, or all of it, is
// complete.
type StatRound struct {
	Header
	Final bool
	Time  uint64 // ns since the beginning
}
