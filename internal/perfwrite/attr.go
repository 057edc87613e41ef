package perfwrite

import (
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// appendAttr appends the first size bytes of a struct perf_event_attr.
func appendAttr(b builder, a *perfdata.Attr, size int) builder {
	start := len(b.b)
	b = b.u32(a.Type).u32(uint32(size)).u64(a.Config).u64(a.SamplePeriod).
		u64(uint64(a.SampleType)).u64(a.ReadFormat)
	var flags uint64
	for i := range 64 {
		flags = setBitfield(flags, i, 1, b.big, a.Flags&^perffile.PreciseMask>>i)
	}
	flags = setBitfield(flags, perffile.PrecisePos, 2, b.big, uint64(a.Precise))
	b = b.u64(flags).u32(a.Wakeup).u32(a.BPType).u64(a.Config1).u64(a.Config2).u64(a.BranchType).
		u64(a.RegsUser).u32(a.StackUser).u32(uint32(a.ClockID)).u64(a.RegsIntr).
		u32(a.AuxWatermark).u16(a.MaxStack).u16(0).
		u32(a.AuxSize).u32(a.AuxAction).u64(a.SigData).u64(a.Config3).u64(a.Config4)
	b.b = b.b[:start+size]
	return b
}

// attrSizeOurs is the smallest size of the struct that this package writes. Perf
// reads it since Linux 4.1.
const attrSizeOurs = 112

// attrSize returns the size of the smallest version of the struct, from
// attrSizeOurs on, that has all fields in use.
func attrSize(a *perfdata.Attr) int {
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

// setBitfield puts x into a C bit-field of 64 bits. Its position is the sum of the widths
// before it. Compilers for big-endian machines allot from the top.
func setBitfield(v uint64, pos, width int, big bool, x uint64) uint64 {
	if big {
		pos = 64 - pos - width
	}
	return v | x&(1<<width-1)<<pos
}
