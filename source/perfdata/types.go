package perfdata

import "fmt"

// RecordType is the type of a record. Those below 64 are the kernel's, those
// from 64 on perf's.
type RecordType uint32

// The types of records.
const (
	RecordMmap RecordType = iota + 1
	RecordLost
	RecordComm
	RecordExit
	RecordThrottle
	RecordUnthrottle
	RecordFork
	RecordRead
	RecordSample
	RecordMmap2
	RecordAux
	RecordItraceStart
	RecordLostSamples
	RecordSwitch
	RecordSwitchCPUWide
	RecordNamespaces
	RecordKSymbol
	RecordBPFEvent
	RecordCgroup
	RecordTextPoke
	RecordAuxOutputHWID
	RecordCallchainDeferred
)

// The types of perf's own records.
const (
	RecordHeaderAttr RecordType = iota + 64
	RecordHeaderEventType
	RecordHeaderTracingData
	RecordHeaderBuildID
	RecordFinishedRound
	RecordIDIndex
	RecordAuxtraceInfo
	RecordAuxtrace
	RecordAuxtraceError
	RecordThreadMap
	RecordCPUMap
	RecordStatConfig
	RecordStat
	RecordStatRound
	RecordEventUpdate
	RecordTimeConv
	RecordHeaderFeature
	RecordCompressed
	RecordFinishedInit
	RecordCompressed2
	RecordBPFMetadata
	RecordSchedstatCPU
	RecordSchedstatDomain
)

var recordNames = [...]string{
	RecordMmap: "MMAP", RecordLost: "LOST", RecordComm: "COMM", RecordExit: "EXIT", RecordThrottle: "THROTTLE",
	RecordUnthrottle: "UNTHROTTLE", RecordFork: "FORK", RecordRead: "READ", RecordSample: "SAMPLE",
	RecordMmap2: "MMAP2", RecordAux: "AUX", RecordItraceStart: "ITRACE_START", RecordLostSamples: "LOST_SAMPLES",
	RecordSwitch: "SWITCH", RecordSwitchCPUWide: "SWITCH_CPU_WIDE", RecordNamespaces: "NAMESPACES",
	RecordKSymbol: "KSYMBOL", RecordBPFEvent: "BPF_EVENT", RecordCgroup: "CGROUP", RecordTextPoke: "TEXT_POKE",
	RecordAuxOutputHWID: "AUX_OUTPUT_HW_ID", RecordCallchainDeferred: "CALLCHAIN_DEFERRED",
	RecordHeaderAttr: "HEADER_ATTR", RecordHeaderEventType: "HEADER_EVENT_TYPE",
	RecordHeaderTracingData: "HEADER_TRACING_DATA", RecordHeaderBuildID: "HEADER_BUILD_ID",
	RecordFinishedRound: "FINISHED_ROUND", RecordIDIndex: "ID_INDEX", RecordAuxtraceInfo: "AUXTRACE_INFO",
	RecordAuxtrace: "AUXTRACE", RecordAuxtraceError: "AUXTRACE_ERROR", RecordThreadMap: "THREAD_MAP",
	RecordCPUMap: "CPU_MAP", RecordStatConfig: "STAT_CONFIG", RecordStat: "STAT", RecordStatRound: "STAT_ROUND",
	RecordEventUpdate: "EVENT_UPDATE", RecordTimeConv: "TIME_CONV", RecordHeaderFeature: "HEADER_FEATURE",
	RecordCompressed: "COMPRESSED", RecordFinishedInit: "FINISHED_INIT", RecordCompressed2: "COMPRESSED2",
	RecordBPFMetadata: "BPF_METADATA", RecordSchedstatCPU: "SCHEDSTAT_CPU",
	RecordSchedstatDomain: "SCHEDSTAT_DOMAIN",
}

// String returns the kernel's or perf's name: "SAMPLE".
func (t RecordType) String() string {
	if int64(t) < int64(len(recordNames)) && recordNames[t] != "" {
		return recordNames[t]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Misc is the field misc of a record's header.
type Misc uint16

// The bits of Misc that do not depend on the type of the record, and those of
// samples, mappings and switches.
const (
	MiscModeMask Misc = 7 // see Mode

	MiscProcMapTimeout Misc = 1 << 12 // MMAP, MMAP2: reading /proc/PID/maps was given up
	MiscMmapData       Misc = 1 << 13 // MMAP, MMAP2: data, not code
	MiscCommExec       Misc = 1 << 13 // COMM: by exec
	MiscForkExec       Misc = 1 << 13 // FORK: perf's own, before an exec
	MiscSwitchOut      Misc = 1 << 13 // SWITCH, SWITCH_CPU_WIDE
	MiscExactIP        Misc = 1 << 14 // SAMPLE: the address is the instruction's that caused the event
	MiscMmapBuildID    Misc = 1 << 14 // MMAP2: has a build id and no inode
	MiscPreempted      Misc = 1 << 14 // SWITCH, SWITCH_CPU_WIDE: while it could have run on
)

// Mode says where a processor was.
type Mode uint8

// The modes of a record.
const (
	ModeUnknown Mode = iota
	ModeKernel
	ModeUser
	ModeHypervisor
	ModeGuestKernel
	ModeGuestUser
)

var modeNames = [...]string{"unknown", "kernel", "user", "hypervisor", "guest kernel", "guest user"}

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Markers in callchains: the addresses behind one are of its mode. Any value
// from ContextMax on is a marker and no address.
const (
	ContextHV           = ^uint64(32 - 1)
	ContextKernel       = ^uint64(128 - 1)
	ContextUser         = ^uint64(512 - 1)
	ContextUserDeferred = ^uint64(640 - 1) // a CallchainDeferred with the cookie that follows has the rest
	ContextGuest        = ^uint64(2048 - 1)
	ContextGuestKernel  = ^uint64(2176 - 1)
	ContextGuestUser    = ^uint64(2560 - 1)
	ContextMax          = ^uint64(4095 - 1)
)
