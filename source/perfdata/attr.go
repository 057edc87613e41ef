package perfdata

import (
	"fmt"
	"strings"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// SampleType is the kernel's enum perf_event_sample_format: what a sample holds.
type SampleType uint64

var sampleTypeNames = [...]string{"IP", "TID", "TIME", "ADDR", "READ", "CALLCHAIN", "ID", "CPU", "PERIOD", "STREAM_ID",
	"RAW", "BRANCH_STACK", "REGS_USER", "STACK_USER", "WEIGHT", "DATA_SRC", "IDENTIFIER", "TRANSACTION", "REGS_INTR",
	"PHYS_ADDR", "AUX", "CGROUP", "DATA_PAGE_SIZE", "CODE_PAGE_SIZE", "WEIGHT_STRUCT"}

// String returns the kernel's names of the bits: "IP|TID|TIME".
func (t SampleType) String() string { return bitNames(uint64(t), sampleTypeNames[:]) }

// An Attr is the kernel's struct perf_event_attr, field by field: an event's encoding,
// and what was asked for with it. Fields that the writer's version of the struct lacks are
// zero. The values are those of perf_event_open(2).
type Attr struct {
	Type         uint32
	Size         uint32 // bytes of the struct in the file
	Config       uint64
	SamplePeriod uint64 // events from one sample to the next, or Hz with FlagFreq
	SampleType   SampleType
	ReadFormat   uint64 // PERF_FORMAT_…
	Flags        uint64 // the bits of the struct, the first one declared in bit 0 whatever the byte order
	Precise      uint8  // 0 (any skid) to 3 (none)
	Wakeup       uint32 // events, or bytes with FlagWatermark
	BPType       uint32
	Config1      uint64 // or a breakpoint's address
	Config2      uint64 // or a breakpoint's length
	BranchType   uint64 // PERF_SAMPLE_BRANCH_…
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

// Sizes of struct perf_event_attr: of the first version, and of the last one known.
const (
	attrSize0   = 64
	attrSizeMax = 144
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
		ReadFormat:   c.u64(),
	}
	flags := c.u64()
	a.Precise = uint8(bitfield(flags, perffile.PrecisePos, 2, big))
	for i := range 64 {
		a.Flags |= bitfield(flags, i, 1, big) << i
	}
	a.Flags &^= perffile.PreciseMask
	a.Wakeup, a.BPType = c.u32(), c.u32()
	a.Config1, a.Config2 = c.u64(), c.u64()
	a.BranchType = c.u64()
	a.RegsUser, a.StackUser, a.ClockID, a.RegsIntr = c.u64(), c.u32(), int32(c.u32()), c.u64()
	a.AuxWatermark, a.MaxStack = c.u32(), c.u16()
	c.skip(2)
	a.AuxSize, a.AuxAction = c.u32(), c.u32()
	a.SigData, a.Config3, a.Config4 = c.u64(), c.u64(), c.u64()
	return a
}

// Has reports whether all flags of f are set.
func (a *Attr) Has(f uint64) bool { return a.Flags&f == f }

// modifiers returns the letters that perf puts behind a colon: whose events are
// counted, and how precisely.
func (a *Attr) modifiers() string {
	var b strings.Builder
	if a.Flags&(perffile.FlagExcludeUser|perffile.FlagExcludeKernel|perffile.FlagExcludeHV) != 0 {
		for _, m := range []struct {
			exclude uint64
			letter  byte
		}{{perffile.FlagExcludeKernel, 'k'}, {perffile.FlagExcludeUser, 'u'}, {perffile.FlagExcludeHV, 'h'}} {
			if !a.Has(m.exclude) {
				b.WriteByte(m.letter)
			}
		}
	}
	for range a.Precise {
		b.WriteByte('p')
	}
	if a.Has(perffile.FlagExcludeHost) && !a.Has(perffile.FlagExcludeGuest) {
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
