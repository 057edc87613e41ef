package perfdata_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

const everything = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime |
	perffile.SampleAddr | perffile.SampleID | perffile.SampleStreamID | perffile.SampleCPU | perffile.SamplePeriod |
	perffile.SampleRead | perffile.SampleCallchain | perffile.SampleRaw | perffile.SampleBranchStack |
	perffile.SampleRegsUser | perffile.SampleStackUser | perffile.SampleWeightStruct | perffile.SampleDataSrc |
	perffile.SampleTransaction | perffile.SampleRegsIntr | perffile.SamplePhysAddr | perffile.SampleAux |
	perffile.SampleCgroup | perffile.SampleDataPageSize | perffile.SampleCodePageSize

// fullAttr is an attribute, of the kernel's version 4, that asks for everything.
func fullAttr(r *raw) []byte {
	flags := uint64(1<<18 | 2<<15) // sample_id_all, precise_ip 2
	if r.order == binary.AppendByteOrder(binary.BigEndian) {
		flags = 1<<(63-18) | 2<<(63-16)
	}
	return r.body().u32(4, 104).u64(0x1a8, 1000, uint64(everything), 31, flags).u32(0, 0).u64(3, 4).
		u64(1<<17|1<<19). // branches with index and counters
		u64(0b101).u32(32, 0).u64(0b11).b
}

// fullSample is the body of a sample with everything in it.
func fullSample(r *raw) []byte {
	b := r.body()
	b.u64(77, 0xffff800012345678).u32(100, 101).u64(5_000_000, 0xdead0000, 77, 78).u32(3, 0).u64(12345)
	b.u64(2, 900, 800, 1111, 77, 1, 2222, 79, 2)       // read, of a group of two
	b.u64(3, perffile.ContextUser, 0x401000, 0x402000) // callchain
	b.u32(12).bytes([]byte("hello, world")...)         // raw, to a multiple of 8 with its size
	flags := uint64(1 | 1<<3 | 42<<4 | 9<<20 | 2<<24 | 3<<26 | 5<<30)
	if r.order == binary.AppendByteOrder(binary.BigEndian) {
		flags = 1<<63 | 1<<60 | 42<<44 | 9<<40 | 2<<38 | 3<<34 | 5<<31
	}
	b.u64(2, 15, 0x10, 0x20, flags, 0x30, 0x40, 0, 0xc1, 0xc2) // branches, with the index and counters
	b.u64(2, 0xaa, 0xbb)                                       // user registers, 64 bits
	b.u64(16).bytes([]byte("0123456789abcdef")...).u64(10)     // user stack: 10 bytes are valid
	b.u64(300 | 40<<32 | 5<<48)                                // weight
	b.u64(0x2<<0 | 0x2<<5 | 0x8<<5 | 1<<33 | 0x2<<19 | 0x2<<26 | 0x8<<26)
	b.u64(0x1_0000_0003)
	b.u64(1, 0xcc, 0xdd)                   // registers at the interrupt, 32 bits
	b.u64(0xfeed000, 4242, 4096, 2<<20)    // physical address, cgroup, page sizes
	b.u64(8).bytes(1, 2, 3, 4, 5, 6, 7, 8) // AUX
	return b.b
}

func TestSampleFields(t *testing.T) {
	for name, r := range map[string]*raw{"little": little(), "big": big()} {
		t.Run(name, func(t *testing.T) {
			r.pipe().record(perffile.RecordHeaderAttr, 0, append(fullAttr(r), r.body().u64(77, 79).b...))
			r.record(perffile.RecordSample, 0x4002, fullSample(r))
			d := open(t, r.b)
			if d.BigEndian() != (name == "big") {
				t.Errorf("BigEndian() = %v", d.BigEndian())
			}
			var s *perfdata.Sample
			for d.Next() {
				if rec, ok := d.Record().(*perfdata.Sample); ok {
					s = rec
					checkSample(t, s)
				}
			}
			if s == nil || d.Err() != nil {
				t.Fatalf("no sample: %v, %q", d.Err(), d.Stats().Notes)
			}
		})
	}
}

func checkSample(t *testing.T, s *perfdata.Sample) {
	t.Helper()
	check := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	e := s.Event()
	check("name", e.Name, "cpu/config=0x1a8,config1=0x3,config2=0x4/pp")
	check("precise", e.Precise, uint8(2))
	check("mode", s.Mode(), perfdata.ModeUser)
	check("exact", s.Misc&perffile.MiscExactIP != 0, true)
	check("IP", s.IP(), uint64(0xffff800012345678))
	check("PID", s.PID(), 100)
	check("TID", s.TID(), 101)
	check("time", s.Time(), uint64(5_000_000))
	check("addr", s.Addr(), uint64(0xdead0000))
	check("ID", s.ID(), uint64(77))
	check("stream", s.StreamID(), uint64(78))
	check("CPU", s.CPU(), 3)
	check("period", s.Period(), uint64(12345))
	var read perfdata.Reading
	check("read", s.Read(&read), true)
	check("enabled", read.Enabled, uint64(900))
	check("running", read.Running, uint64(800))
	if want := []perfdata.ReadValue{{Value: 1111, ID: 77, Lost: 1}, {Value: 2222, ID: 79, Lost: 2}}; !slices.Equal(read.Values, want) {
		t.Errorf("values %v, want %v", read.Values, want)
	}
	chain := []uint64{perffile.ContextUser, 0x401000, 0x402000}
	if got := s.Callchain().AppendTo(nil); !slices.Equal(got, chain) {
		t.Errorf("callchain %x", got)
	}
	check("frame", s.Callchain().At(1), uint64(0x401000))
	check("raw", string(s.Raw()), "hello, world")
	b := s.Branches()
	check("branches", b.Len(), 2)
	index, ok := b.HWIndex()
	check("branch index", index, uint64(15))
	check("has branch index", ok, true)
	check("branch", b.At(0), perfdata.Branch{From: 0x10, To: 0x20, Mispredicted: true, Abort: true, Cycles: 42, Type: 9,
		Spec: 2, NewType: 3, Priv: 5, Counters: 0xc1})
	check("branch 2", b.At(1), perfdata.Branch{From: 0x30, To: 0x40, Counters: 0xc2})
	abi, regs := s.RegsUser()
	check("abi", abi, uint64(2))
	check("regs", regs.At(1), uint64(0xbb))
	abi, regs = s.RegsIntr()
	check("abi at the interrupt", abi, uint64(1))
	check("regs at the interrupt", regs.At(0), uint64(0xcc))
	check("stack", string(s.StackUser()), "0123456789")
	check("weight", s.Weight(), perfdata.Weight{Latency: 300, Var2: 40, Var3: 5})
	check("data source", perffile.DataSrc(s.DataSrc()).String(), "load L1 hit, snoop none, TLB L1 hit")
	check("transaction", s.Transaction(), uint64(0x1_0000_0003))
	check("phys", s.PhysAddr(), uint64(0xfeed000))
	check("cgroup", s.Cgroup(), uint64(4242))
	check("data page", s.DataPageSize(), uint64(4096))
	check("aux", string(s.Aux()), "\x01\x02\x03\x04\x05\x06\x07\x08")
}

// A sample that ends anywhere before its end is not decoded, and nothing panics.
func TestSampleCut(t *testing.T) {
	whole := fullSample(little())
	for n := range whole {
		r := little().pipe()
		r.record(perffile.RecordHeaderAttr, 0, append(fullAttr(r), r.body().u64(77).b...))
		r.record(perffile.RecordSample, 0, whole[:n])
		d := open(t, r.b)
		for d.Next() {
			if s, ok := d.Record().(*perfdata.Sample); ok {
				t.Fatalf("a sample of %d bytes of %d was decoded: %x", n, len(whole), s.Bytes())
			}
		}
		if s := d.Stats(); s.Malformed != 1 || len(s.Notes) != 1 {
			t.Fatalf("%d bytes: %+v", n, s)
		}
	}
}

// Numbers of elements that overflow when multiplied are not believed.
func TestSampleHostileCounts(t *testing.T) {
	for _, n := range []uint64{1 << 61, 1<<64 - 1, 1 << 32, 9} {
		for _, bit := range []perfdata.SampleType{perffile.SampleCallchain, perffile.SampleBranchStack, perffile.SampleStackUser,
			perffile.SampleAux, perffile.SampleRead} {
			r := little().pipe()
			r.record(perffile.RecordHeaderAttr, 0, r.attr(1, 0, 1, uint64(bit), 8, 0))
			r.record(perffile.RecordSample, 0, r.body().u64(n, 0).b)
			d := open(t, r.b)
			for d.Next() {
				if _, ok := d.Record().(*perfdata.Sample); ok {
					t.Errorf("%v: %d elements in 8 bytes", bit, n)
				}
			}
		}
	}
}

func TestPeriod(t *testing.T) {
	const freq = 1 << 10
	for _, tt := range []struct {
		name         string
		kind         uint32
		config       uint64
		period, flag uint64
		want         uint64
	}{
		{"fixed", 0, 0, 1000, 0, 1000},
		{"frequency", 0, 0, 4000, freq, 0},
		{"clock", 1, 0, 4000, freq, 250000},
		{"clock without", 1, 1, 0, freq, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := little().pipe()
			r.record(perffile.RecordHeaderAttr, 0, r.attr(tt.kind, tt.config, tt.period, uint64(perffile.SampleIP), 0, tt.flag))
			r.record(perffile.RecordSample, 0, r.body().u64(1).b)
			d := open(t, r.b)
			for d.Next() {
				if s, ok := d.Record().(*perfdata.Sample); ok && s.Period() != tt.want {
					t.Errorf("period %d, want %d", s.Period(), tt.want)
				}
			}
		})
	}
}

// The ids of events may be at different places in their samples.
func TestSampleEvents(t *testing.T) {
	const (
		plain      = perffile.SampleIP | perffile.SampleID
		identified = perffile.SampleIdentifier | perffile.SampleIP
	)
	r := little().pipe()
	r.record(perffile.RecordHeaderAttr, 0, append(r.attr(1, 0, 1, uint64(plain), 0, 0), r.body().u64(5).b...))
	r.record(perffile.RecordHeaderAttr, 0, append(r.attr(1, 2, 1, uint64(identified), 0, 0), r.body().u64(6).b...))
	r.record(perffile.RecordSample, 0, r.body().u64(0x1000, 5).b)
	r.record(perffile.RecordSample, 0, r.body().u64(6, 0x2000).b)
	r.record(perffile.RecordSample, 0, r.body().u64(0x1000, 99).b)
	r.record(perffile.RecordSample, 0, r.body().u64(5, 6).b) // ids, each where the other event has its own
	d := open(t, r.b)
	var got []string
	for d.Next() {
		switch rec := d.Record().(type) {
		case *perfdata.Sample:
			got = append(got, rec.Event().Name)
		case *perfdata.Raw:
			if rec.Why != "" {
				got = append(got, rec.Why)
			}
		}
	}
	want := []string{"cpu-clock", "page-faults", "its id is no event's", "its id is no event's"}
	if !slices.Equal(got, want) || d.Stats().Orphans != 2 {
		t.Errorf("got %q, want %q; %d orphans", got, want, d.Stats().Orphans)
	}
}

func TestDataSrc(t *testing.T) {
	for _, tt := range []struct {
		src  perffile.DataSrc
		want string
	}{
		{0x68100142, "load L1 hit, snoop none, TLB L1/L2 hit"}, // as Intel's L1 hit
		{0x1e05080021, "unknown"},                              // as written without a PMU
		{0x2 | 0x42<<5 | 0x10<<19, "load L3 hit, snoop hitm"},
		{0x4 | 0x102<<5 | 0x4<<26 | 0x20<<26, "store remote RAM hit, TLB walker miss"},
		{0x2 | 1<<37 | 0x3<<33 | 2<<38 | 3<<43 | 2<<24 | 6<<40, "load remote L3, snoop peer, blocked by data/address, locked"},
		{0x2 | 0x9<<33 | 0x4<<5, "load CXL miss"},
	} {
		if got := tt.src.String(); got != tt.want {
			t.Errorf("%#x: %q, want %q", uint64(tt.src), got, tt.want)
		}
	}
	if h := perffile.DataSrc(3 << 43).Hops(); h != 3 {
		t.Errorf("%d hops", h)
	}
}

// An index of -1 is one that the processor does not tell.
func TestBranchIndex(t *testing.T) {
	for index, want := range map[uint64]bool{0: true, 7: true, ^uint64(0): false} {
		r := little().pipe()
		attr := r.body().u32(4, 80).u64(1, 1, uint64(perffile.SampleBranchStack), 0, 0).u32(0, 0).u64(0, 0, uint64(perffile.BranchHWIndex)).b
		r.record(perffile.RecordHeaderAttr, 0, attr)
		r.record(perffile.RecordSample, 0, r.body().u64(1, index, 1, 2, 0).b)
		d := open(t, r.b)
		for d.Next() {
			if s, ok := d.Record().(*perfdata.Sample); ok {
				if got, has := s.Branches().HWIndex(); has != want || has && got != index {
					t.Errorf("index %d: %d, %v", index, got, has)
				}
			}
		}
		if d.Stats().Samples != 1 {
			t.Errorf("index %d: %+v", index, d.Stats())
		}
	}
}
