package perfdata

import (
	"fmt"
	"strings"
)

// SampleType is the kernel's enum perf_event_sample_format: what a sample holds.
type SampleType uint64

// The parts of a sample, in the order of their bits.
const (
	SampleIP SampleType = 1 << iota
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

	knownSampleTypes = 1<<iota - 1
)

var sampleTypeNames = [...]string{"IP", "TID", "TIME", "ADDR", "READ", "CALLCHAIN", "ID", "CPU", "PERIOD", "STREAM_ID",
	"RAW", "BRANCH_STACK", "REGS_USER", "STACK_USER", "WEIGHT", "DATA_SRC", "IDENTIFIER", "TRANSACTION", "REGS_INTR",
	"PHYS_ADDR", "AUX", "CGROUP", "DATA_PAGE_SIZE", "CODE_PAGE_SIZE", "WEIGHT_STRUCT"}

// String returns the kernel's names of the bits: "IP|TID|TIME".
func (t SampleType) String() string { return bitNames(uint64(t), sampleTypeNames[:]) }

// ReadFormat is the kernel's enum perf_event_read_format.
type ReadFormat uint64

// The parts of a counter's reading.
const (
	FormatTotalTimeEnabled ReadFormat = 1 << iota
	FormatTotalTimeRunning
	FormatID
	FormatGroup
	FormatLost

	knownReadFormats = 1<<iota - 1
)

var readFormatNames = [...]string{"TOTAL_TIME_ENABLED", "TOTAL_TIME_RUNNING", "ID", "GROUP", "LOST"}

// String returns the kernel's names of the bits: "ID|GROUP".
func (f ReadFormat) String() string { return bitNames(uint64(f), readFormatNames[:]) }

// BranchType is the kernel's enum perf_branch_sample_type.
type BranchType uint64

// The bits of a BranchType that decide how a branch stack looks.
const (
	BranchNoFlags  BranchType = 1 << 14
	BranchNoCycles BranchType = 1 << 15
	BranchTypeSave BranchType = 1 << 16
	BranchHWIndex  BranchType = 1 << 17 // an index precedes the entries
	BranchPrivSave BranchType = 1 << 18
	BranchCounters BranchType = 1 << 19 // a word of counters for each entry follows them
)

// AttrFlags are the one-bit fields of struct perf_event_attr, the first one
// declared in bit 0 whatever the byte order.
type AttrFlags uint64

// The flags of an event. Bits 15 and 16 are [Attr.Precise].
const (
	FlagDisabled AttrFlags = 1 << iota
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

const (
	precisePos  = 15
	preciseMask = 3 << precisePos
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

// An Attr is the kernel's struct perf_event_attr: an event's encoding, and what
// was asked for with it. Fields that the writer's version of the struct did not
// have are zero.
type Attr struct {
	Type         uint32
	Size         uint32 // bytes of the struct in the file
	Config       uint64
	SamplePeriod uint64 // events from one sample to the next, or Hz with FlagFreq
	SampleType   SampleType
	ReadFormat   ReadFormat
	Flags        AttrFlags
	Precise      uint8  // 0 (any skid) to 3 (none)
	Wakeup       uint32 // events, or bytes with FlagWatermark
	BPType       uint32
	Config1      uint64 // or a breakpoint's address
	Config2      uint64 // or a breakpoint's length
	BranchType   BranchType
	RegsUser     uint64 // mask of registers
	StackUser    uint32 // bytes
	ClockID      int32
	RegsIntr     uint64 // mask of registers
	AuxWatermark uint32
	MaxStack     uint16
	AuxSize      uint32 // of an AUX sample, bytes
	AuxAction    uint32
	SigData      uint64
	Config3      uint64
	Config4      uint64
}

// Sizes of struct perf_event_attr: of the first version, of the last one known,
// and the smallest that this package writes, which perf reads since Linux 4.1.
const (
	attrSize0    = 64
	attrSizeMax  = 144
	attrSizeOurs = 112
)

// decodeAttr reads a struct perf_event_attr of any version: b is as long as it
// is in the file. What is behind the known fields is passed over.
func decodeAttr(b []byte, big bool) Attr {
	var whole [attrSizeMax]byte // a field that is cut off reads as zero
	copy(whole[:], b)
	c := cursor{b: whole[:], big: big}
	a := Attr{
		Type:         c.u32(),
		Size:         c.u32(),
		Config:       c.u64(),
		SamplePeriod: c.u64(),
		SampleType:   SampleType(c.u64()),
		ReadFormat:   ReadFormat(c.u64()),
	}
	flags := c.u64()
	a.Precise = uint8(bitfield(flags, precisePos, 2, big))
	for i := range 64 {
		a.Flags |= AttrFlags(bitfield(flags, i, 1, big)) << i
	}
	a.Flags &^= preciseMask
	a.Wakeup, a.BPType = c.u32(), c.u32()
	a.Config1, a.Config2 = c.u64(), c.u64()
	a.BranchType = BranchType(c.u64())
	a.RegsUser, a.StackUser, a.ClockID, a.RegsIntr = c.u64(), c.u32(), int32(c.u32()), c.u64()
	a.AuxWatermark, a.MaxStack = c.u32(), c.u16()
	c.skip(2)
	a.AuxSize, a.AuxAction = c.u32(), c.u32()
	a.SigData, a.Config3, a.Config4 = c.u64(), c.u64(), c.u64()
	return a
}

// appendTo appends the first size bytes of the struct.
func (a *Attr) appendTo(b builder, size int) builder {
	start := len(b.b)
	b = b.u32(a.Type).u32(uint32(size)).u64(a.Config).u64(a.SamplePeriod).
		u64(uint64(a.SampleType)).u64(uint64(a.ReadFormat))
	var flags uint64
	for i := range 64 {
		flags = setBitfield(flags, i, 1, b.big, uint64(a.Flags&^preciseMask)>>i)
	}
	flags = setBitfield(flags, precisePos, 2, b.big, uint64(a.Precise))
	b = b.u64(flags).u32(a.Wakeup).u32(a.BPType).u64(a.Config1).u64(a.Config2).u64(uint64(a.BranchType)).
		u64(a.RegsUser).u32(a.StackUser).u32(uint32(a.ClockID)).u64(a.RegsIntr).
		u32(a.AuxWatermark).u16(a.MaxStack).u16(0).
		u32(a.AuxSize).u32(a.AuxAction).u64(a.SigData).u64(a.Config3).u64(a.Config4)
	b.b = b.b[:start+size]
	return b
}

// size returns the size of the smallest version of the struct, from
// attrSizeOurs on, that has all fields in use.
func (a *Attr) size() int {
	switch {
	case a.Config4 != 0:
		return 144
	case a.Config3 != 0:
		return 136
	case a.SigData != 0:
		return 128
	case a.AuxSize != 0 || a.AuxAction != 0:
		return 120
	}
	return attrSizeOurs
}

// Has reports whether all flags of f are set.
func (a *Attr) Has(f AttrFlags) bool { return a.Flags&f == f }

// modifiers returns the letters that perf puts behind a colon: whose events are
// counted, and how precisely.
func (a *Attr) modifiers() string {
	var b strings.Builder
	if a.Flags&(FlagExcludeUser|FlagExcludeKernel|FlagExcludeHV) != 0 {
		for _, m := range []struct {
			exclude AttrFlags
			letter  byte
		}{{FlagExcludeKernel, 'k'}, {FlagExcludeUser, 'u'}, {FlagExcludeHV, 'h'}} {
			if !a.Has(m.exclude) {
				b.WriteByte(m.letter)
			}
		}
	}
	for range a.Precise {
		b.WriteByte('p')
	}
	if a.Has(FlagExcludeHost) && !a.Has(FlagExcludeGuest) {
		b.WriteByte('G')
	}
	return b.String()
}

func bitNames(v uint64, names []string) string {
	var out []string
	for i, name := range names {
		if v&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	if rest := v &^ (1<<len(names) - 1); rest != 0 {
		out = append(out, fmt.Sprintf("0x%x", rest))
	}
	return strings.Join(out, "|")
}
