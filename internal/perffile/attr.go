package perffile

// The parts of a sample, in the order of their bits.
const (
	SampleIP = 1 << iota
	SampleTID
	SampleTime
	SampleAddr
	SampleRead
	SampleCallchain
	SampleID
	SampleCPU
	SamplePeriod
	SampleStreamID
	SampleRaw
	SampleBranchStack
	SampleRegsUser
	SampleStackUser
	SampleWeight
	SampleDataSrc
	SampleIdentifier
	SampleTransaction
	SampleRegsIntr
	SamplePhysAddr
	SampleAux
	SampleCgroup
	SampleDataPageSize
	SampleCodePageSize
	SampleWeightStruct

	KnownSampleTypes = 1<<iota - 1
)

// The parts of a counter's reading.
const (
	FormatTotalTimeEnabled = 1 << iota
	FormatTotalTimeRunning
	FormatID
	FormatGroup
	FormatLost

	KnownReadFormats = 1<<iota - 1
)

// The bits of a BranchType that decide how a branch stack looks.
const (
	BranchUser      = 1 << 0
	BranchCallStack = 1 << 11 // the open calls
	BranchNoFlags   = 1 << 14
	BranchNoCycles  = 1 << 15
	BranchTypeSave  = 1 << 16
	BranchHWIndex   = 1 << 17 // an index precedes the entries
	BranchPrivSave  = 1 << 18
	BranchCounters  = 1 << 19 // a word of counters for each entry follows them
)

// The flags of an event. Bits 15 and 16 are [Attr.Precise].
const (
	FlagDisabled = 1 << iota
	FlagInherit
	FlagPinned
	FlagExclusive
	FlagExcludeUser
	FlagExcludeKernel
	FlagExcludeHV
	FlagExcludeIdle
	FlagMmap
	FlagComm
	FlagFreq // SamplePeriod is a frequency
	FlagInheritStat
	FlagEnableOnExec
	FlagTask
	FlagWatermark
	_
	_
	FlagMmapData
	FlagSampleIDAll // records that are no samples end with a Trailer
	FlagExcludeHost
	FlagExcludeGuest
	FlagExcludeCallchainKernel
	FlagExcludeCallchainUser
	FlagMmap2
	FlagCommExec
	FlagUseClockID
	FlagContextSwitch
	FlagWriteBackward
	FlagNamespaces
	FlagKSymbol
	FlagBPFEvent
	FlagAuxOutput
	FlagCgroup
	FlagTextPoke
	FlagBuildID
	FlagInheritThread
	FlagRemoveOnExec
	FlagSigtrap
	FlagDeferCallchain
	FlagDeferOutput
)

// The types of events, perf_event_attr.type. Larger ones are numbers of PMUs,
// see [Features.PMUs].
const (
	TypeHardware   = 0
	TypeSoftware   = 1
	TypeTracepoint = 2
	TypeHWCache    = 3
	TypeRaw        = 4
	TypeBreakpoint = 5
)

// PrecisePos is the first bit of precise_ip among the flags, and PreciseMask its
// two bits.
const (
	PrecisePos  = 15
	PreciseMask = 3 << PrecisePos
)

// The ABI of a sample's registers: PERF_SAMPLE_REGS_ABI_NONE and PERF_SAMPLE_REGS_ABI_64.
const (
	RegsNone = 0
	Regs64   = 2
)

// MaxStackUser is the largest copy of a user's stack that the kernel makes: a sample has at
// most 64 KiB.
const MaxStackUser = 65528
