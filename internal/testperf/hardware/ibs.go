package hardware

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// An AMD is a processor with IBS.
type AMD struct {
	CPUID string // as perf has it
	Caps  uint32
}

// AMDs are processors with IBS: Zen 2, the first Zen 3, and Zen 4.
var AMDs = map[string]AMD{
	"zen2": {"AuthenticAMD,23,49,0", 0x3ff},
	"zen3": {"AuthenticAMD,25,1,1", 0x3ff},
	"zen4": {"AuthenticAMD,25,17,1", 0xbff},
}

// An IBSOp is what the registers say of one op.
type IBSOp struct {
	IP, Addr uint64
	Data     uint64 // IBS_OP_DATA
	Data2    uint64
	Data3    uint64
	Target   uint64
	Kernel   bool
}

// The PMU types of the recordings.
const (
	ibsOpType    = 11
	ibsFetchType = 10
)

// RandomIBS returns n ops whose registers are made by chance, with a seed.
func RandomIBS(n int, seed uint64) []IBSOp {
	rng := rand.New(rand.NewPCG(seed, 24))
	list := make([]IBSOp, n)
	for i := range list {
		x := &list[i]
		x.IP, x.Addr, x.Target = 0x400010+rng.Uint64N(0x100)*4, 0x7f0000000000+rng.Uint64N(0x1000), 0x400000+rng.Uint64N(0x100)
		after := rng.Uint64N(200)
		x.Data = after | (after+rng.Uint64N(2000))<<16
		switch rng.IntN(4) {
		case 0: // a branch
			x.Data |= 1<<37 | rng.Uint64N(8)<<34
		case 1: // a store
			x.Data3 = 1<<1 | 1<<17 | rng.Uint64()&memoryBits
		case 2, 3:
			x.Data3 = 1 | 1<<17 | rng.Uint64()&memoryBits | rng.Uint64N(900)<<32 | rng.Uint64N(200)<<48
			x.Data2 = rng.Uint64() & 0x3f7
			if rng.IntN(8) == 0 {
				x.Data3 |= 1 << 14
			}
		}
		x.Data3 &^= 0xf << 22
		x.Data3 |= rng.Uint64N(8) << 22
	}
	return list
}

// memoryBits are those of IBS_OP_DATA3 that chance decides: misses, page sizes, locks.
const memoryBits = 1<<2 | 1<<3 | 1<<7 | 1<<8 | 1<<15 | 1<<16 | 1<<18 | 1<<20 | 1<<21 | 0x3f<<26

// IBS returns a recording of ops and fetches of a processor, in a program.
func IBS(t testing.TB, cpu AMD, program string, ops []IBSOp, fetches [][4]uint64) []byte {
	t.Helper()
	parts := perfdata.SampleType(perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU | perffile.SampleRaw)
	f := New(t, &perfdata.Event{Name: "ibs_op//", Attr: perfdata.Attr{Type: ibsOpType, Config: 1 << 19, SampleType: parts}},
		&perfdata.Event{Name: "ibs_fetch//", Attr: perfdata.Attr{Type: ibsFetchType, SampleType: parts}})
	f.Process(program, 42)
	time := uint64(1000)
	for _, x := range ops {
		time += 1000
		b := binary.LittleEndian.AppendUint32(nil, cpu.Caps)
		phys := uint64(0x123456000) + x.Addr&0xfff
		b = append(b, Words(1<<17|1<<18|1<<19|0x1000, x.IP, x.Data, x.Data2, x.Data3, x.Addr, phys, x.Target)...)
		f.Sample(User, append([]uint64{1, x.IP, 42 | 42<<32, time, 3}, Raw(b)...)...)
	}
	for _, x := range fetches {
		time += 1000
		b := append(binary.LittleEndian.AppendUint32(nil, cpu.Caps), Words(x[:]...)...)
		f.Sample(User, append([]uint64{2, x[1], 42 | 42<<32, time, 3}, Raw(b)...)...)
	}
	features := &perfdata.Features{Hostname: "test", Arch: "x86_64", CPUID: cpu.CPUID, CPUs: 4, Online: 4, Cmdline: []string{"perf", "record", "-e", "ibs_op//", "./program"},
		PMUs: []perfdata.PMU{{Type: 4, Name: "cpu"}, {Type: ibsFetchType, Name: "ibs_fetch"}, {Type: ibsOpType, Name: "ibs_op"}}}
	if cpu.Caps>>11&1 != 0 {
		features.PMUCaps = []perfdata.PMUCap{{PMU: "ibs_op", Caps: []perfdata.Cap{{Name: "zen4_ibs_extensions", Value: "1"}}}}
	}
	return f.Bytes(features)
}

// RandomFetches returns the registers of n fetches, made by chance.
func RandomFetches(n int, seed uint64) [][4]uint64 {
	rng := rand.New(rand.NewPCG(seed, 7))
	list := make([][4]uint64, n)
	for i := range list {
		ctl := uint64(1<<48|1<<49|0x1000) | rng.Uint64N(500)<<32 | rng.Uint64()&(1<<50|1<<51|1<<52|1<<55|1<<56|1<<58|1<<61)
		list[i] = [4]uint64{ctl, 0x400000 + rng.Uint64N(0x100)*4, 0x123400000, rng.Uint64N(100)}
	}
	return list
}
