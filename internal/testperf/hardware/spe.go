package hardware

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// An SPEOp is what a record of SPE says of one operation.
type SPEOp struct {
	PC, Addr, Target                 uint64
	Kernel                           bool
	Total, Issue, Translation, Ticks uint64
	Events                           uint64
	Class, Op                        byte // 0 other, 1 load or store, 2 branch
	Source                           int  // -1 for none
	Context                          int  // thread; -1 for none
}

// Append appends the packets of a record, in the order that processors write them.
func (x *SPEOp) Append(b []byte) []byte {
	le := binary.LittleEndian
	pc := x.PC&(1<<56-1) | 1<<63
	if x.Kernel {
		pc |= 2 << 61
	}
	b = le.AppendUint64(append(b, 0xb0), pc)
	if x.Context >= 0 {
		b = le.AppendUint32(append(b, 0x64), uint32(x.Context))
	}
	b = append(b, 0x48|x.Class, x.Op)
	b = le.AppendUint32(append(b, 0x62), uint32(x.Events))
	b = le.AppendUint16(append(b, 0x99), uint16(x.Issue))
	b = le.AppendUint16(append(b, 0x98), uint16(x.Total))
	switch x.Class {
	case 1:
		b = le.AppendUint64(append(b, 0xb2), x.Addr)
		b = le.AppendUint16(append(b, 0x9a), uint16(x.Translation))
		b = le.AppendUint64(append(b, 0xb3), 1<<63|x.Addr&0xffffff|0x80000000)
		if x.Source >= 0 {
			b = append(b, 0x43, byte(x.Source))
		}
	case 2:
		b = le.AppendUint64(append(b, 0xb1), x.Target&(1<<56-1)|1<<63)
	}
	if x.Ticks == 0 {
		b = append(b, 0x01)
	} else {
		b = le.AppendUint64(append(b, 0x71), x.Ticks)
	}
	for len(b)%64 != 0 { // records are aligned
		b = append(b, 0)
	}
	return b
}

// RandomSPE returns n operations by chance, with a seed.
func RandomSPE(n int, seed uint64, tids ...int) []SPEOp {
	rng := rand.New(rand.NewPCG(seed, 5))
	list := make([]SPEOp, n)
	for i := range list {
		x := &list[i]
		*x = SPEOp{PC: 0x400010 + rng.Uint64N(0x40)*4, Addr: 0x7f0000000000 + rng.Uint64N(0x40)*8, Target: 0x400100, Source: -1, Context: -1,
			Issue: rng.Uint64N(40), Ticks: 100_000 + uint64(i)*50, Events: 1 << 1}
		x.Total = x.Issue + 4 + rng.Uint64N(300)
		if len(tids) > 0 {
			x.Context = tids[rng.IntN(len(tids))]
		}
		switch x.Class = byte(rng.IntN(3)); x.Class {
		case 1:
			x.Op = byte(rng.IntN(2))
			x.Translation = rng.Uint64N(4)
			x.Events |= 1<<2 | rng.Uint64()&(1<<3|1<<4|1<<5|1<<8|1<<9|1<<10|1<<11)
			if x.Op == 0 && rng.IntN(4) > 0 {
				x.Source = []int{0, 8, 9, 0xa, 0xb, 0xc, 0xd, 0xe}[rng.IntN(8)]
			}
		case 2:
			x.Op = byte(rng.IntN(4))
			x.Events |= rng.Uint64() & (1<<6 | 1<<7)
		}
	}
	return list
}

// speType is the PMU type of the recordings.
const speType = 8

// SPE returns a recording of a processor, by its MIDR in hexadecimal digits, with the
// packets of each logical processor.
func SPE(t testing.TB, midr string, area map[int][]byte) []byte {
	t.Helper()
	parts := perfdata.SampleType(perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU)
	f := New(t, &perfdata.Event{Name: "arm_spe_0//", Attr: perfdata.Attr{Type: speType, SamplePeriod: 1024, SampleType: parts}},
		&perfdata.Event{Name: "dummy:u", Attr: perfdata.Attr{Type: perffile.TypeSoftware, Config: 9, SampleType: parts}})
	f.Record(perffile.RecordTimeConv, 0, Words(0, 40, 1000, 0, 0, 1), nil) // 25 MHz
	// The PMU's type, and whether there is an area for each processor.
	f.Record(perffile.RecordAuxtraceInfo, 0, Words(4, speType, 1), nil)
	f.Process("/nowhere/program", 42, 43)
	at := func(cpu int, time uint64) []byte {
		return Words(42|42<<32, time, uint64(cpu), 1)
	}
	for cpu := range len(area) {
		f.Record(perffile.RecordItraceStart, 0, append(Words(42|42<<32), at(cpu, 2)...), nil)
		b := area[cpu]
		f.Record(perffile.RecordAux, 0, append(Words(0, uint64(len(b)), 0), at(cpu, 1<<30)...), nil)
		f.Record(perffile.RecordAuxtrace, 0, Words(uint64(len(b)), 0, 0, uint64(cpu)|0xffffffff<<32, uint64(cpu)), b)
	}
	f.Add(&perfdata.Task{Header: perfdata.Header{Type: perffile.RecordExit}, PID: 42, PPID: 1, TID: 42, PTID: 1, Time: 1 << 31}, perfdata.Trailer{PID: 42, TID: 42, Time: 1 << 31})
	return f.Bytes(&perfdata.Features{Hostname: "test", Arch: "aarch64", CPUID: midr, CPUs: 4, Online: 4, Cmdline: []string{"perf", "record", "-e", "arm_spe_0//", "./program"},
		PMUs: []perfdata.PMU{{Type: 7, Name: "armv8_pmuv3_0"}, {Type: speType, Name: "arm_spe_0"}}})
}

// Midrs are identifications as perf has them in the header: of a Neoverse N1, and of a
// processor without known data sources.
var Midrs = map[string]string{"neoverse": "0x00000000413fd0c1", "other": "0x00000000411fd070"}

// Area is the packets of operations.
func Area(ops []SPEOp) []byte {
	var b []byte
	for i := range ops {
		b = ops[i].Append(b)
	}
	return b
}
