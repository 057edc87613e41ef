package perffile

// The types of records.
const (
	RecordMmap = iota + 1
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
	RecordHeaderAttr = iota + 64
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

// The bits of Misc for all types of records, and those of samples, mappings and switches.
const (
	MiscModeMask = 7 // see Mode

	MiscProcMapTimeout = 1 << 12 // MMAP, MMAP2: reading /proc/PID/maps was given up
	MiscMmapData       = 1 << 13 // MMAP, MMAP2: data, not code
	MiscCommExec       = 1 << 13 // COMM: by exec
	MiscForkExec       = 1 << 13 // FORK: perf's own, before an exec
	MiscSwitchOut      = 1 << 13 // SWITCH, SWITCH_CPU_WIDE
	MiscExactIP        = 1 << 14 // SAMPLE: the address is the instruction's that caused the event
	MiscMmapBuildID    = 1 << 14 // MMAP2: has a build id and no inode
	MiscPreempted      = 1 << 14 // SWITCH, SWITCH_CPU_WIDE: while it could have run on
)

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

// KSymbolUnregister is the flag of a KSYMBOL record whose symbol is gone.
const KSymbolUnregister = 1
