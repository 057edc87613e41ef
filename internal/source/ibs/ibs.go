// Package ibs decodes the registers of AMD's instruction-based sampling that the kernel puts
// into the raw part of a sample: of ops (ibs_op) and of instruction fetches (ibs_fetch).
//
// The layouts are those of AMD's Processor Programming References and of the Architecture
// Programmer's Manual, volume 2, section 13.3. A raw part has the capabilities (CPUID
// function 8000_001B, EAX), 4 bytes, and a register in each further 8 bytes.
package ibs

import (
	"encoding/binary"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// Capabilities of the facility that change what the registers mean.
const (
	capBranchTarget = 1 << 5
	capFetchExtra   = 1 << 9
	capRIPInvalid   = 1 << 7
	capZen4         = 1 << 11 // finer data sources, misses of the level-3 cache
	capLoadLatency  = 1 << 12 // only loads above a latency can be sampled
)

// A CPU is the processor's family and model. Errata depend on it.
type CPU struct{ Family, Model int }

// zen3 is whether the errata of the first Zen 3 hold: family 19h, models below 10h.
func (c CPU) zen3() bool { return c.Family == 0x19 && c.Model < 0x10 }

// stateValid is whether the processor says what state a line had in a cache: not on Zen 3.
func (c CPU) stateValid() bool {
	return c.Family != 0x19 || c.Model >= 0x10 && (c.Model < 0x20 || c.Model > 0x5f)
}

// registers takes a raw part apart. Registers beyond its end are 0.
type registers struct {
	caps uint32
	b    []byte
}

func newRegisters(raw []byte) (registers, bool) {
	if len(raw) < 4 {
		return registers{}, false
	}
	return registers{binary.LittleEndian.Uint32(raw), raw[4:]}, true
}

func (r registers) at(i int) uint64 {
	if 8*i+8 > len(r.b) {
		return 0
	}
	return binary.LittleEndian.Uint64(r.b[8*i:])
}

// bits returns a field of a register.
func bits(v uint64, at, width int) uint64 { return v >> at & (1<<width - 1) }

func bit(v uint64, at int) bool { return v>>at&1 != 0 }

// An Op is what the processor says of an op that retired.
type Op struct {
	RIP        uint64 // address of the instruction; 0 if it is not valid
	ToComplete uint64 // cycles from when the op was tagged to its completion
	ToRetire   uint64 // cycles from its completion to its retirement
	Microcode  bool
	ByCycles   bool // ops are chosen each so many cycles, and not each so many ops
	Filtered   bool // only ops that missed the level-3 cache are sampled, or loads above a latency

	Branch       bool // a branch that retired
	Taken        bool
	Mispredicted bool
	Return       bool
	Target       uint64 // address that a taken branch led to; 0 if it is not known

	Load, Store bool
	Prefetch    bool // by software
	Misaligned  bool
	Miss        bool // of the level-1 data cache
	MissLatency uint64
	TLBMiss     bool // of the level-1 TLB
	TLBWalk     bool // of both TLBs
	TLBLatency  uint64
	Width       int    // bytes; 0 if it is not known
	Addr, Phys  uint64 // of the data; 0 if they are not valid
	Source      perffile.DataSrc
}

// The registers of an op, by their places.
const (
	opCtl = iota
	opRIP
	opData
	opData2
	opData3
	opAddr
	opPhys
	opTarget
	opLeast = opData3 + 1
)

// DecodeOp decodes the raw part of a sample of ibs_op. It is not ok for one that is too
// short, or not marked as valid.
func DecodeOp(raw []byte, cpu CPU) (op Op, ok bool) {
	r, ok := newRegisters(raw)
	ctl := r.at(opCtl)
	if !ok || len(r.b) < 8*opLeast || !bit(ctl, 17) || !bit(ctl, 18) {
		return op, false
	}
	data, data3 := r.at(opData), r.at(opData3)
	total, after := bits(data, 16, 16), bits(data, 0, 16)
	op = Op{ToComplete: total - min(after, total), ToRetire: min(after, total), Microcode: bit(data, 40), Branch: bit(data, 37), ByCycles: !bit(ctl, 19)}
	op.Filtered = r.caps&capZen4 != 0 && bit(ctl, 16) || r.caps&capLoadLatency != 0 && bit(ctl, 63)
	if r.caps&capRIPInvalid == 0 || !bit(data, 38) {
		op.RIP = r.at(opRIP)
	}
	if op.Branch {
		op.Return, op.Taken, op.Mispredicted = bit(data, 34), bit(data, 35), bit(data, 36)
		if r.caps&capBranchTarget != 0 && op.Taken {
			op.Target = r.at(opTarget)
		}
	}
	op.Load, op.Store = bit(data3, 0), bit(data3, 1)
	if !op.Load && !op.Store {
		return op, true
	}
	op.Prefetch, op.Misaligned, op.Miss = bit(data3, 21), bit(data3, 8), bit(data3, 7)
	if op.Miss && op.Load {
		op.MissLatency = bits(data3, 32, 16)
	}
	if bit(data3, 17) {
		op.Addr = r.at(opAddr)
		op.TLBMiss = bit(data3, 2)
		op.TLBWalk = op.TLBMiss && bit(data3, 3)
	}
	if op.TLBMiss {
		op.TLBLatency = bits(data3, 48, 16)
	}
	if bit(data3, 18) {
		op.Phys = r.at(opPhys)
	}
	if w := bits(data3, 22, 4); w > 0 && w < 8 {
		op.Width = 1 << (w - 1)
	}
	op.Source = source(r, cpu)
	return op, true
}

// invalid2 is whether the second data register and what the caches below said are not
// valid: erratum 1293.
func invalid2(data3 uint64, cpu CPU) bool { return cpu.zen3() && (bit(data3, 16) || bit(data3, 21)) }

// source says where the data came from, as the kernel does in perf_ibs_get_data_src.
func source(r registers, cpu CPU) perffile.DataSrc {
	data2, data3 := r.at(opData2), r.at(opData3)
	if invalid2(data3, cpu) {
		data2 = 0
	}
	d := perffile.DataSrc(perffile.OpStore)
	load := bit(data3, 0)
	if load {
		d = perffile.DataSrc(perffile.OpLoad)
	}
	number := bits(data2, 0, 3)
	fine := r.caps&capZen4 != 0
	if fine {
		number |= bits(data2, 6, 2) << 3
	}
	level := level(data2, data3, number, fine, cpu)
	snoop := perffile.SnoopNA
	if load && cpu.stateValid() && level != perffile.SrcL1 && level != perffile.SrcL2 && !bit(data2, 5) &&
		(fine && (number == 1 || number == 2 || number == 5) || !fine && number == 2) {
		snoop = perffile.SnoopHitM
	}
	lock := perffile.SrcUnlocked
	if bit(data3, 15) {
		lock = perffile.SrcLocked
	}
	return d | level | snoop.Src() | tlb(data3).Src() | lock
}

// level is where the data was found.
func level(data2, data3, number uint64, fine bool, cpu CPU) perffile.DataSrc {
	const io = 7
	switch {
	case bit(data3, 14) && number != io:
		return perffile.SrcUncached
	case !bit(data3, 7):
		return perffile.SrcL1
	case !bit(data3, 20) && !invalid2(data3, cpu):
		return perffile.SrcL2
	}
	if bit(data3, 0) { // only of loads
		if d := fromBeyond(number, fine, bit(data2, 4)); d != 0 {
			return d
		}
	}
	if bit(data3, 16) { // the line was on its way
		return perffile.SrcLFB
	}
	return perffile.SrcNA
}

// fromBeyond decodes the source of data that neither cache of the core had; 0 for one that
// is reserved.
func fromBeyond(number uint64, fine, remote bool) perffile.DataSrc {
	from := perffile.DataSrc(0)
	switch {
	case number == 3 && remote:
		return perffile.SrcRemoteRAM
	case number == 3:
		return perffile.SrcRAM
	case number == 7:
		return perffile.SrcIO
	case !fine && number == 2:
		return perffile.SrcLocalCache
	case !fine && number == 4, fine && number == 5:
		return perffile.SrcFarCache
	case fine && number == 1:
		return perffile.SrcL3
	case fine && number == 2:
		return perffile.SrcNearCache
	case fine && number == 6:
		from = perffile.SrcPMEM
	case fine && number == 8:
		from = perffile.SrcCXL
	}
	if from != 0 && remote {
		from |= perffile.SrcAway | perffile.SrcNode
	}
	return from
}

// tlb says how the address was translated.
func tlb(data3 uint64) perffile.TLB {
	switch {
	case !bit(data3, 17):
		return perffile.TLBNA
	case !bit(data3, 2):
		return perffile.TLBL1 | perffile.TLBHit
	case !bit(data3, 3):
		return perffile.TLBL2 | perffile.TLBHit
	}
	return perffile.TLBL2 | perffile.TLBMiss
}

// A Fetch is what the processor says of an instruction fetch.
type Fetch struct {
	Addr       uint64 // of the fetched code; the kernel drops samples without one
	Complete   bool   // the code was delivered
	Latency    uint64 // cycles from the fetch's begin to its completion, or until it was given up
	Miss       bool   // of the instruction cache
	MissKnown  bool   // Miss is valid: not on Zen 3, erratum 1238
	L2Miss     bool
	L3Miss     bool
	TLBMiss    bool // of the level-1 TLB
	TLBWalk    bool // of both TLBs
	TLBLatency uint64
}

// DecodeFetch is DecodeOp for a sample of ibs_fetch.
func DecodeFetch(raw []byte, cpu CPU) (f Fetch, ok bool) {
	const addr, extra, least = 1, 3, 2
	r, ok := newRegisters(raw)
	ctl := r.at(0)
	if !ok || len(r.b) < 8*least || !bit(ctl, 48) || !bit(ctl, 49) {
		return f, false
	}
	f = Fetch{Addr: r.at(addr), Latency: bits(ctl, 32, 16), Complete: bit(ctl, 50), TLBMiss: bit(ctl, 55)}
	f.TLBWalk = f.TLBMiss && bit(ctl, 56)
	if f.MissKnown = !cpu.zen3(); f.MissKnown {
		f.Miss = bit(ctl, 51)
	}
	f.L2Miss = f.Complete && bit(ctl, 58)
	f.L3Miss = r.caps&capZen4 != 0 && bit(ctl, 61)
	if r.caps&capFetchExtra != 0 {
		f.TLBLatency = bits(r.at(extra), 0, 16)
	}
	return f, true
}
