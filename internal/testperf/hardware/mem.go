package hardware

import (
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// Data sources as Linux writes them for a Skylake server and its successors.
const (
	LoadL1      = 0x10268100142
	LoadLFB     = 0x11868100242
	LoadL2      = 0x10468100442
	LoadL3      = 0x10668100842
	LoadHITM    = 0x106a9100842&^(0x1f<<19) | 0x10<<19 // level-3 cache, modified in another core
	LoadRAM     = 0x11a68501042
	LoadFarHITM = 0x2<<0 | 1<<37 | 0x10<<19 | 0x400<<5 | 0x2<<5 | 0xb<<33 | 0x1a<<26
	StoreL1     = 0x4 | (0x2|0x8)<<5
	StoreMiss   = 0x4 | (0x4|0x8)<<5
	StoreNA     = 0x4 | 1<<5
)

// A MemOp is samples of accesses that are alike.
type MemOp struct {
	Samples  int
	TID, CPU int
	IP, Addr uint64
	Source   uint64
	Cycles   uint64 // least latency
}

// parts are those of samples of memory accesses.
const memParts = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleAddr | perffile.SampleCPU |
	perffile.SampleWeight | perffile.SampleDataSrc

// Sharing are accesses to lines that the threads 42, 43 and 44 share in different ways: the
// first falsely, the second truly, the third read only, and a fourth that is not shared.
var Sharing = []MemOp{
	{120, 42, 0, 0x400010, 0x7f0000000040, LoadHITM, 180}, {60, 42, 0, 0x400014, 0x7f0000000040, StoreL1, 0},
	{80, 43, 3, 0x400020, 0x7f0000000068, LoadFarHITM, 400}, {90, 43, 3, 0x400024, 0x7f0000000068, StoreMiss, 0}, {30, 43, 3, 0x400020, 0x7f0000000068, LoadL3, 51},
	{40, 44, 1, 0x400030, 0x7f0000000080, LoadHITM, 150}, {25, 42, 0, 0x400034, 0x7f0000000080, StoreL1, 0}, {15, 43, 3, 0x400038, 0x7f0000000084, StoreNA, 0},
	{12, 44, 1, 0x400030, 0x7f0000000080, LoadL3, 60},
	{50, 42, 0, 0x400040, 0x7f00000000c0, LoadL3, 60}, {50, 43, 3, 0x400040, 0x7f00000000c8, LoadL3, 50},
	{70, 44, 1, 0x400050, 0x7f0000000100, LoadRAM, 300}, {33, 44, 1, 0x400054, 0x7f0000000108, StoreL1, 0},
}

// Memory returns a recording of accesses by the threads of a process, as perf c2c record
// makes it. The machine has two NUMA nodes of two processors.
func Memory(t testing.TB, ops []MemOp) []byte {
	t.Helper()
	f := New(t, &perfdata.Event{Name: "cpu/mem-loads,ldlat=30/P", Attr: perfdata.Attr{Type: perffile.TypeRaw, Config: 0x1cd, Config1: 30, Precise: 3, SampleType: memParts}},
		&perfdata.Event{Name: "cpu/mem-stores/P", Attr: perfdata.Attr{Type: perffile.TypeRaw, Config: 0x82d0, Precise: 3, SampleType: memParts}})
	f.Process("//anon", 42, 43, 44)
	rng := rand.New(rand.NewPCG(2, 4))
	time := uint64(1000)
	for _, x := range ops {
		for range x.Samples {
			time += 20_000
			id, cycles := uint64(1), x.Cycles+rng.Uint64N(x.Cycles/4+1)
			if x.Source&4 != 0 {
				id, cycles = 2, 0
			}
			f.Sample(User, id, x.IP, 42|uint64(x.TID)<<32, time, x.Addr, uint64(x.CPU), cycles, x.Source)
		}
	}
	b := f.Bytes(&perfdata.Features{Hostname: "test", Arch: "x86_64", CPUID: "GenuineIntel,6,85,4", CPUs: 4, Online: 4, Cmdline: []string{"perf", "c2c", "record", "--", "./server"},
		NUMA:   []perfdata.NUMANode{{Node: 0, CPUs: "0-1"}, {Node: 1, CPUs: "2-3"}},
		Caches: []perfdata.Cache{{Level: 1, LineSize: 64, Sets: 64, Ways: 8, Kind: "Data", Size: "32K", CPUs: "0"}},
		PMUs:   []perfdata.PMU{{Type: 4, Name: "cpu"}}})
	// Perf c2c wants the blocks of memory of each node: version, size of a block, number of
	// nodes; then of each its number, its blocks, and their bits.
	return withSection(b, perffile.FeatureMemTopology, Words(1, 1<<27, 2, 0, 1, 1, 1, 1, 1, 1, 1))
}

// sources are data sources of all kinds: of Intel's, AMD's and Arm's processors.
var sources = []perffile.DataSrc{LoadL1, LoadLFB, LoadL2, LoadL3, LoadHITM, LoadRAM, LoadFarHITM, StoreL1, StoreMiss, StoreNA,
	load | perffile.SrcRemoteRAM | perffile.SnoopHit.Src(), load | perffile.SrcNearCache | perffile.SnoopHitM.Src(), load | perffile.SrcFarCache | perffile.SnoopHit.Src(),
	load | perffile.SrcL2 | perffile.SnoopPeer.Src(), load | perffile.SrcL3 | perffile.SnoopPeer.Src(), load | perffile.SrcOtherCache | perffile.SnoopPeer.Src(),
	load | perffile.SrcMissL3, load | perffile.SrcUncached, LoadL3 | perffile.SrcLocked, LoadL1 | perffile.DataSrc(perffile.BlockedData)<<40}

const load = perffile.DataSrc(perffile.OpLoad)

// RandomMemory are n accesses by chance, with a seed, to a few lines.
func RandomMemory(n int, seed uint64) []MemOp {
	rng := rand.New(rand.NewPCG(seed, 3))
	list := make([]MemOp, n)
	for i := range list {
		cpu := rng.IntN(3)
		list[i] = MemOp{1, 42 + cpu, cpu, 0x400000 + rng.Uint64N(8)*4, 0x7f0000000000 + rng.Uint64N(20)*24, uint64(sources[rng.IntN(len(sources))]), 40 + rng.Uint64N(300)}
	}
	return list
}
