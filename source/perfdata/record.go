package perfdata

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
func (h *Header) Mode() Mode { return Mode(h.Misc & MiscModeMask) }

// A Trailer says when and where the event took place that a record tells of,
// if the kernel wrote it and FlagSampleIDAll was set. Fields that were not
// recorded are zero; Has tells.
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
	if h.Type >= RecordHeaderAttr || h.Type == RecordSample || len(h.raw) < 8 {
		return out
	}
	body := h.raw[8:]
	e := h.d.trailerEvent(body)
	if e == nil || e.layout.trailer > len(body) {
		return out
	}
	c := cursor{b: body[len(body)-e.layout.trailer:], big: h.d.big}
	const all = SampleTID | SampleTime | SampleID | SampleStreamID | SampleCPU | SampleIdentifier
	out.Has = e.SampleType & all
	if out.Has&SampleTID != 0 {
		out.PID, out.TID = int(int32(c.u32())), int(int32(c.u32()))
	}
	if out.Has&SampleTime != 0 {
		out.Time = c.u64()
	}
	if out.Has&SampleID != 0 {
		out.ID = c.u64()
	}
	if out.Has&SampleStreamID != 0 {
		out.StreamID = c.u64()
	}
	if out.Has&SampleCPU != 0 {
		out.CPU = int(int32(c.u32()))
		c.skip(4)
	}
	if out.Has&SampleIdentifier != 0 {
		out.ID = c.u64()
	}
	return out
}

// Raw is a record that this package does not decode: of a type it does not
// know, or whose content is not what its type says. Bytes has all of it.
type Raw struct {
	Header
	Why string // what is wrong with it; "" for a type that is not known
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

// Namespaces is NAMESPACES: those a thread is in, in the order of the kernel
// (net, uts, ipc, pid, user, mnt, cgroup).
type Namespaces struct {
	Header
	PID, TID int
	List     []Namespace
}

// A Namespace is the device and inode of a namespace's file.
type Namespace struct{ Dev, Inode uint64 }

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

// KSymbolUnregister is the flag of a symbol that went.
const KSymbolUnregister = 1

// BPFEvent is BPF_EVENT: a program was loaded (Kind 1) or unloaded (2).
type BPFEvent struct {
	Header
	Kind  uint16
	Flags uint16
	ID    uint32
	Tag   []byte
}

// Cgroup is CGROUP: the path of a cgroup's id.
type Cgroup struct {
	Header
	ID   uint64
	Path []byte
}

// TextPoke is TEXT_POKE: the kernel changed its own code.
type TextPoke struct {
	Header
	Addr     uint64
	Old, New []byte
}

// Aux is AUX: new data in the AUX area.
type Aux struct {
	Header
	AuxOffset, AuxSize uint64
	Flags              uint64 // PERF_AUX_FLAG_…: 1 truncated, 2 overwritten, 4 has gaps, 8 collided
}

// ItraceStart is ITRACE_START: instruction tracing of a thread began.
type ItraceStart struct {
	Header
	PID, TID int
}

// AuxOutputHWID is AUX_OUTPUT_HW_ID: how the AUX area's hardware calls the event
// that Trailer has.
type AuxOutputHWID struct {
	Header
	HWID uint64
}

// CallchainDeferred is CALLCHAIN_DEFERRED: the user's part of the callchains
// that end with ContextUserDeferred and Cookie.
type CallchainDeferred struct {
	Header
	Cookie    uint64
	Callchain Words
}

// HeaderAttr is HEADER_ATTR: an event, in pipe mode. The reader has it among its
// Events already.
type HeaderAttr struct {
	Header
	Event *Event
}

// EventType is HEADER_EVENT_TYPE: an event's name, in old pipes.
type EventType struct {
	Header
	Config uint64
	Name   []byte
}

// TracingData is HEADER_TRACING_DATA: descriptions of tracepoints follow it,
// Size bytes that the reader passes over. In files of simpleperf they are in the
// record itself.
type TracingData struct {
	Header
	Size uint32
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

// FinishedInit is FINISHED_INIT: what perf knew before it began is complete.
type FinishedInit struct{ Header }

// IDIndex is ID_INDEX: the processors and threads that ids were opened on.
type IDIndex struct {
	Header
	Entries []IDEntry
}

// An IDEntry is an id's processor and thread; -1 for all.
type IDEntry struct {
	ID       uint64
	Index    uint64
	CPU, TID int
}

// AuxtraceInfo is AUXTRACE_INFO: what the AUX areas hold (PERF_AUXTRACE_…).
type AuxtraceInfo struct {
	Header
	Kind uint32
	Priv Words
}

// Auxtrace is AUXTRACE: a piece of an AUX area follows it, Size bytes that the
// reader passes over.
type Auxtrace struct {
	Header
	Size      uint64
	AuxOffset uint64
	Reference uint64
	Index     uint32
	TID       int
	CPU       int
	Payload   int64 // offset in the file of what follows
}

// AuxtraceError is AUXTRACE_ERROR: a trace could not be decoded or has gaps.
type AuxtraceError struct {
	Header
	Kind, Code uint32
	CPU        int
	PID, TID   int
	IP         uint64
	Time       uint64 // ns; 0 in old files
	Msg        []byte
}

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

// EventUpdate is EVENT_UPDATE: more of an event. The reader has put it into the
// Event already, which is nil if the id is nobody's.
type EventUpdate struct {
	Header
	ID    uint64
	Event *Event
}

// TimeConv is TIME_CONV: how times follow from the processor's counter.
type TimeConv struct {
	Header
	Shift, Mult, Zero uint64
	Cycles, Mask      uint64 // 0 in old files
}

// HeaderFeature is HEADER_FEATURE: a section of the header, in pipe mode. The
// reader has it among its Features already.
type HeaderFeature struct {
	Header
	Feature Feature
	Data    []byte
}
