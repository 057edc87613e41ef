package samples_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/testperf/hardware"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// The fields of the kernel's union perf_mem_data_src.
const (
	opLoad, opStore      = 2, 4
	lvl, snoop, lock     = 5, 19, 24
	tlb, num, remote     = 26, 33, 37
	snoopx, blocks, hops = 38, 40, 43
)

func TestLevelOf(t *testing.T) {
	for _, tt := range []struct {
		source uint64
		want   string
	}{
		{0, "unknown"},
		{opLoad | 1<<lvl, "unknown"}, // not available
		// Before Linux 4.14 there were only the bits of levels.
		{opLoad | (0x08|2)<<lvl | 2<<snoop, "L1"},
		{opLoad | (0x10|2)<<lvl, "LFB"},
		{opLoad | (0x20|2)<<lvl, "L2"},
		{opLoad | (0x40|2)<<lvl, "L3"},
		{opLoad | (0x40|2)<<lvl | 0x10<<snoop, "L3, modified there"},
		{opLoad | (0x40|4)<<lvl, "L3 miss"},
		{opLoad | (0x80|2)<<lvl, "RAM"},
		{opLoad | (0x100|2)<<lvl, "remote RAM"},
		{opLoad | (0x400|2)<<lvl | 0x10<<snoop, "remote cache, modified there"},
		{opLoad | (0x2000|2)<<lvl, "uncached"},
		// As a Skylake server writes both.
		{0x11868100242, "LFB"}, {0x10268100142, "L1"}, {0x10468100442, "L2"}, {0x10650100842, "L3"},
		// Remote memory, a forwarded line, CXL.
		{opLoad | (0x100|2)<<lvl | 0xd<<num | 1<<remote, "remote RAM"},
		{opLoad | (0x40|2)<<lvl | 3<<num | 1<<snoopx, "L3, forwarded"},
		{opLoad | 9<<num | 1<<1, "CXL"},
		// POWER10: the L3 of another core, another socket and its memory.
		{opLoad | 3<<num | 1<<remote | 1<<hops, "cache of another core"},
		{opLoad | 3<<num | 1<<remote | 3<<hops | 0x10<<snoop, "cache of another socket, modified there"},
		{opLoad | 0xd<<num | 1<<remote | 4<<hops, "RAM of another board"},
		// Zen 4: a cache of another complex in the socket.
		{opLoad | (0x400|2)<<lvl | 0xb<<num | 1<<remote | 1<<hops, "cache of another core"},
	} {
		if got := samples.LevelOf(perffile.DataSrc(tt.source)).Name; got != tt.want {
			t.Errorf("%#x: %q, want %q (%v)", tt.source, got, tt.want, perffile.DataSrc(tt.source))
		}
	}
}

// TestLevelsAreRanked: the levels are in order of how far away they are.
func TestLevelsAreRanked(t *testing.T) {
	before := math.MinInt
	for _, source := range []uint64{opLoad | 8<<lvl, opLoad | 0x10<<lvl, opLoad | 0x20<<lvl, opLoad | 0x40<<lvl, opLoad | 0x40<<lvl | 0x10<<snoop,
		opLoad | 0x400<<lvl, opLoad | 0x80<<lvl, opLoad | 0x100<<lvl, opLoad | 0xe<<num, 0} {
		l := samples.LevelOf(perffile.DataSrc(source))
		if l.Rank <= before {
			t.Errorf("%s has rank %d, not above %d", l.Name, l.Rank, before)
		}
		before = l.Rank
	}
}

// loadType is what samples of loads hold.
const loadType = sampleType | perffile.SampleAddr | perffile.SampleWeightStruct | perffile.SampleDataSrc

// newLoads begins a recording of MEM_TRANS_RETIRED.LOAD_LATENCY with a threshold.
func newLoads(t testing.TB) *recording {
	return newAttrRecording(t, perfdata.Attr{Type: perffile.TypeRaw, Config: 0x1cd, Config1: 30, SampleType: loadType, Flags: perffile.FlagMmapData})
}

// load adds a sample of an access.
func (r *recording) load(ip, addr, period, weight, source uint64) {
	le := binary.LittleEndian
	b := le.AppendUint64(le.AppendUint64(nil, 1), ip)
	b = le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 7), 7), 10)
	for _, v := range []uint64{addr, period, weight, source} {
		b = le.AppendUint64(b, v)
	}
	r.raw(b, perfdata.Misc(perfdata.ModeUser)|perffile.MiscExactIP)
}

// data maps memory of process 7 that is no code.
func (r *recording) data(addr, size, offset uint64, file string) {
	r.add(3, &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser) | perffile.MiscMmapData}, PID: 7, TID: 7,
		Addr: addr, Len: size, PgOff: offset, Filename: []byte(file)})
}

// readLoads reads the loads of a recording of program.
func readLoads(t testing.TB, r *recording, root string) (list []samples.Access, m *samples.Memory) {
	t.Helper()
	opts := samples.Options{Symbols: profile.Config{Root: perfMap(t, root, "tmp/perf-7.map", programMap)}}
	m, err := samples.ReadMemory(bytes.NewReader(r.bytes()), "test.data", opts, func(a *samples.Access) { list = append(list, *a) })
	if err != nil {
		t.Fatal(err)
	}
	return list, m
}

func TestReadMemory(t *testing.T) {
	r := newLoads(t)
	r.program()
	r.load(0x10210, 0, 1000, 45<<32|120, opLoad|(0x40|2)<<lvl)
	r.load(0x10010, 0, 10, 7, opLoad|(0x08|2)<<lvl|2<<lock)
	r.load(0x10010, 0, 10, 7, opStore|(0x08|2)<<lvl) // no load
	r.load(0x10010, 0, 10, 0, opLoad|(0x08|2)<<lvl)  // without a latency, as a hit on AMD's
	list, m := readLoads(t, r, t.TempDir())
	type load struct {
		function, level             string
		loads                       float64
		latency, instruction, event uint64
		locked                      bool
	}
	var got []load
	for _, a := range list {
		got = append(got, load{a.Function().Name, a.Level.Name, a.Loads, a.Latency, a.Instruction, a.Event.Config, a.Source.Locked()})
	}
	want := []load{{"leaf", "L3", 1000, 120, 45, 0x1cd, false}, {"main", "L1", 10, 7, 0, 0x1cd, true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(load{})); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
	if e := m.Events[0]; len(m.Events) != 1 || e.Threshold != 30 || e.Loads != 2 || e.Others != 1 || e.Unmeasured != 1 || !e.Struct || !e.Mapped {
		t.Errorf("event %+v", e)
	}
	if m.CPU != "GenuineIntel-6-55-4" || m.Label != "./prog" {
		t.Errorf("CPU %q, label %q", m.CPU, m.Label)
	}
	if len(m.Notes) != 2 {
		t.Errorf("notes %q", m.Notes)
	}
}

// TestMemoryByMapping: what data is in, by the mappings and the program's own symbols.
func TestMemoryByMapping(t *testing.T) {
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	root := t.TempDir()
	program := filepath.Join(root, "data")
	if out, err := exec.Command(compiler, "-O1", "-o", program, "testdata/data.c").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	const base, page = 0x55e000000000, 0x1000
	at := func(name string) uint64 {
		for _, s := range symbols {
			if s.Name == name {
				return base + s.Value
			}
		}
		t.Fatalf("no %s", name)
		return 0
	}
	// As the kernel maps it: the segments' pages from the file, and what is zero behind
	// the last one from nowhere.
	r := newLoads(t)
	r.program()
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		start, fileEnd, end := p.Vaddr&^(page-1), (p.Vaddr+p.Filesz+page-1)&^(page-1), (p.Vaddr+p.Memsz+page-1)&^(page-1)
		r.data(base+start, fileEnd-start, p.Off&^(page-1), "/data")
		if end > fileEnd {
			r.data(base+fileEnd, end-fileEnd, 0, "//anon")
		}
	}
	r.data(0x55f000000000, 0x21000, 0, "[heap]")
	r.data(0x7f0000000000, 0x100000, 0x7f0000000000, "//anon")
	r.data(0x7f1000000000, 0x1000, 0x2000, "/var/lib/table.db")
	r.data(0x7ffc00000000, 0x21000, 0, "[stack]")
	for _, addr := range []uint64{at("filled") + 8, at("zeroed") + 8, at("zeroed") + 0x20000, at("constant") + 4, 0x55f000000010, 0x7f0000000080, 0x7f1000000004,
		0x7ffc00000008, 0xffff888000000000, 0x1234, 0} {
		r.load(0x10010, addr, 1, 50, opLoad)
	}
	list, _ := readLoads(t, r, root)
	var got []string
	for _, a := range list {
		got = append(got, a.Data().Kind.String()+": "+a.Data().Name)
	}
	want := []string{"variable: filled (data .data)", "variable: zeroed (data .bss)", "variable: zeroed (data .bss)", "variable: constant (data .rodata)",
		"heap: [heap]", "anonymous: anonymous memory", "file: table.db", "stack: [stack]", "kernel: kernel memory", "unknown: [unknown]", "unknown: no address"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestThreshold(t *testing.T) {
	for _, tt := range []struct {
		name string
		attr perfdata.Attr
		want uint64
	}{
		{"cpu/mem-loads,ldlat=30/P", perfdata.Attr{Type: 4, Config: 0x1cd, Config1: 99}, 30},
		{"MEM_TRANS_RETIRED.LOAD_LATENCY:ldlat=64:precise=2", perfdata.Attr{Type: 4, Config: 0x1cd}, 64},
		{"loads", perfdata.Attr{Type: 4, Config: 0x1cd, Config1: 128}, 128},
		{"loads", perfdata.Attr{Type: 4, Config: 0x5301cd, Config1: 128}, 128},
		{"efficient", perfdata.Attr{Type: 10, Config: 0x5d0, Config1: 5}, 5},
		{"arm_spe/load_filter=1,min_latency=0x10/", perfdata.Attr{Type: 10}, 16},
		{"ibs_op//", perfdata.Attr{Type: 10, Config1: 7}, 0},
		{"cycles", perfdata.Attr{Type: 0, Config: 0, Config1: 7}, 0},
	} {
		attr := tt.attr
		attr.SampleType = loadType
		r := newNamedRecording(t, tt.name, attr)
		r.load(0x10010, 0, 1, 50, opLoad)
		_, m := readLoads(t, r, t.TempDir())
		if got := m.Events[0].Threshold; got != tt.want || m.Events[0].Name != tt.name {
			t.Errorf("%s: threshold %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestNoLatencies(t *testing.T) {
	r := newRecording(t, sampleType, "cycles")
	r.sample(1, 7, 0x10210, 10, 100, perfdata.Misc(perfdata.ModeUser))
	_, err := samples.ReadMemory(bytes.NewReader(r.bytes()), "test.data", samples.Options{}, func(*samples.Access) { t.Error("an access") })
	if !errors.Is(err, samples.ErrNoLatency) || !strings.Contains(err.Error(), "test.data") {
		t.Errorf("error %v", err)
	}
}

// TestMemoryOfASkylake reads a recording of load latencies that somebody published.
// The figures are those that perf mem report prints of it.
func TestMemoryOfASkylake(t *testing.T) {
	file := testshared.Dir(t, "corpus", "perfdata", "quipper-perf.data.weight_struct")
	weight, levels, tlbMisses, locked := uint64(0), map[string]int{}, 0, 0
	var latencies []uint64
	m, err := open(t, file).Memory(samples.Options{}, func(a *samples.Access) {
		weight += a.Latency
		latencies = append(latencies, a.Latency)
		levels[a.Level.Name]++
		if a.Source.TLB()&perffile.TLBMiss != 0 {
			tlbMisses++
		}
		if a.Source.Locked() {
			locked++
		}
		if a.Loads != 10009 {
			t.Errorf("a sample of %v loads, want 10009", a.Loads)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(latencies)
	want := []uint64{70, 70, 71, 77, 80, 81, 89, 92, 96, 117, 168, 225, 240, 249}
	if weight != 1725 || !slices.Equal(latencies, want) {
		t.Errorf("latencies %v, %d together, want %v, 1725 together", latencies, weight, want)
	}
	if diff := cmp.Diff(map[string]int{"L1": 4, "LFB": 5, "L2": 1, "L3": 4}, levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	if tlbMisses != 1 || locked != 2 || m.Events[0].Threshold != 64 {
		t.Errorf("%d TLB misses, %d locked, threshold %d; want 1, 2, 64", tlbMisses, locked, m.Events[0].Threshold)
	}
}

// FuzzStacks reads what is no recording, or one that was changed: there is an error or
// there are stacks and loads, whose counts are those of the table.
func FuzzStacks(f *testing.F) {
	r := newLoads(f)
	r.program()
	r.data(0x20000, 0x1000, 0, "[heap]")
	r.load(0x10010, 0x20008, 1000, 120, opLoad|(0x40|2)<<lvl)
	f.Add(r.bytes())
	for _, a := range []perfdata.Attr{
		{SampleType: chained, MaxStack: 3},
		{SampleType: chained | perffile.SampleBranchStack, BranchType: 1 << 11},
		{SampleType: chained | perffile.SampleStackUser, StackUser: 16},
	} {
		r := newAttrRecording(f, a)
		r.program()
		r.chain(perfdata.ModeKernel, 10, 100, []uint64{perffile.ContextKernel, 0xffffffff80000010, perffile.ContextUser, 0x10310}, 1, 0x10110, 0x10200, 0)
		f.Add(r.bytes())
	}
	f.Add(hardware.IBS(f, hardware.AMDs["zen4"], "program", hardware.RandomIBS(8, 1), hardware.RandomFetches(2, 1)))
	f.Add(hardware.SPE(f, hardware.Midrs["neoverse"], map[int][]byte{0: hardware.Area(hardware.RandomSPE(6, 1, 42))}))
	f.Add(hardware.Memory(f, hardware.RandomMemory(8, 1)))
	f.Add(scenario(f))
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		opts := samples.Options{By: counts.Function, Waits: true, Symbols: profile.Config{Root: root}}
		s, err := samples.ReadStacks(bytes.NewReader(b), "fuzz", opts)
		if err == nil {
			n := make([]int64, len(s.Table().Columns))
			for x := range s.All() {
				for col := range x.Cells {
					n[col] += x.Cells[col].Samples
				}
			}
			for col := range n {
				if c := s.Table().Cell(0, col); c.Ok() && c.Samples != n[col] {
					t.Errorf("%d samples in stacks, %d in all", n[col], c.Samples)
				}
			}
			s.Close()
		}
		for _, opts.Accesses = range []bool{false, true} {
			loads := int64(0)
			m, err := samples.ReadMemory(bytes.NewReader(b), "fuzz", opts, func(a *samples.Access) {
				loads++
				_, _, _ = a.Line(), a.Instr(), a.Data()
			})
			if err != nil {
				continue
			}
			for _, e := range m.Events {
				loads -= e.Loads
			}
			if loads != 0 {
				t.Errorf("%d loads more were handed on than counted", loads)
			}
		}
		for _, opts.Derive = range []samples.Derivation{samples.DeriveAlone, samples.DeriveOps, samples.DeriveBranches} {
			derived(t, b, opts)
		}
	})
}

// derived reads a recording with what is derived of its samples. The counts of functions add
// up to those of the run.
func derived(t *testing.T, b []byte, opts samples.Options) {
	r := samples.NewReader(bytes.NewReader(b), "fuzz", opts)
	defer r.Close()
	if !r.Next() {
		return
	}
	table := r.Table()
	for col, c := range table.Columns {
		n := int64(0)
		for row := 1; row < len(table.Scopes); row++ {
			n += table.Cell(row, col).Samples
		}
		if whole := table.Cell(0, col); whole.Ok() && n != whole.Samples {
			t.Errorf("%s: %d samples of functions, %d in all", c.Event, n, whole.Samples)
		}
	}
}
