package perfdata_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/testperf"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// writeFile writes a file with records, and returns it.
func writeFile(t testing.TB, opts perfwrite.WriterOptions, f *perfdata.Features, records ...perfdata.Record) []byte {
	t.Helper()
	var out testperf.MemFile
	w, err := perfwrite.NewWriter(&out, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if b, ok := rec.(rawRecord); ok {
			if _, err := w.Write(b.b); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := w.WriteRecord(rec, perfdata.Trailer{PID: 7, TID: 8, Time: 99, ID: 41, CPU: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(f); err != nil {
		t.Fatal(err)
	}
	return out.B
}

// A rawRecord is a record that the writer is given as bytes.
type rawRecord struct{ *raw }

func (rawRecord) Head() *perfdata.Header { return &perfdata.Header{} }

// someEvents is a group of two and a single event.
func someEvents() []*perfdata.Event {
	a := perfdata.Attr{Type: perffile.TypeSoftware, Config: 0, SamplePeriod: 1000, Flags: perffile.FlagSampleIDAll | perffile.FlagFreq | perffile.FlagExcludeKernel,
		SampleType: perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU | perffile.SamplePeriod | perffile.SampleIdentifier, Precise: 1}
	b := a
	b.Config = 2
	c := a
	c.Config3 = 5 // which makes the attribute larger
	list := []*perfdata.Event{{Attr: a, IDs: []uint64{41, 42}, Name: "cpu-clock:up", Group: "g"}, {Attr: b, IDs: []uint64{43}, Name: "faults"},
		{Attr: c, IDs: []uint64{44}, Name: "third"}}
	list[0].Leader, list[1].Leader = list[0], list[0]
	return list
}

func someFeatures() *perfdata.Features {
	return &perfdata.Features{
		Hostname: "host", OSRelease: "6.1.0", Version: "1.0", Arch: "x86_64", CPUDesc: "A processor", CPUID: "GenuineIntel,6,85,4",
		CPUs: 2, Online: 2, TotalMem: 1 << 20, Cmdline: []string{"cyclestack", "record", "--", "prog", "-x"},
		CoreSiblings: []string{"0-1"}, ThreadSiblings: []string{"0", "1"}, DieSiblings: []string{"0-1"},
		Topology: []perfdata.Place{{Core: 0, Socket: 0, Die: 0}, {Core: 1, Socket: 0, Die: 0}},
		NUMA:     []perfdata.NUMANode{{Node: 0, MemTotal: 1 << 20, Free: 1 << 10, CPUs: "0-1"}},
		Caches:   []perfdata.Cache{{Level: 1, LineSize: 64, Sets: 64, Ways: 8, Kind: "Data", Size: "32K", CPUs: "0"}},
		PMUs:     []perfdata.PMU{{Type: 4, Name: "cpu"}, {Type: 1, Name: "software"}},
		BuildIDs: []perfdata.FileBuildID{{PID: -1, Mode: perfdata.ModeKernel, BuildID: bytes.Repeat([]byte{0xab}, 20), Filename: "[kernel.kallsyms]"},
			{PID: -1, Mode: perfdata.ModeUser, BuildID: bytes.Repeat([]byte{1}, 16), Filename: "/usr/bin/prog"}},
		CPUCaps:    []perfdata.Cap{{Name: "branches", Value: "32"}},
		PMUCaps:    []perfdata.PMUCap{{PMU: "cpu", Caps: []perfdata.Cap{{Name: "max_precise", Value: "3"}}}},
		Hybrid:     []perfdata.HybridPMU{{Name: "cpu_core", CPUs: "0"}, {Name: "cpu_atom", CPUs: "1"}},
		SampleTime: [2]uint64{5, 500}, ClockID: perfdata.ClockData{Clock: 1, TimeOfDay: 1e18, ClockNanos: 12}, ClockResNanos: 1,
	}
}

func TestWriterFeatures(t *testing.T) {
	for _, big := range []bool{false, true} {
		want := someFeatures()
		r := open(t, writeFile(t, perfwrite.WriterOptions{Events: someEvents(), BigEndian: big}, want))
		if r.BigEndian() != big || r.Pipe() || r.Version() != 2 {
			t.Errorf("big %v: read as big %v, pipe %v, version %d", big, r.BigEndian(), r.Pipe(), r.Version())
		}
		got := *r.Features()
		if n := len(got.Present); n < 22 {
			t.Errorf("%d sections: %v", n, got.Present)
		}
		if d := cmp.Diff(want, &got, cmpopts.IgnoreUnexported(perfdata.Features{}), cmpopts.IgnoreFields(perfdata.Features{}, "Present")); d != "" {
			t.Errorf("features, -want +got:\n%s", d)
		}
		checkEvents(t, r)
		if id := got.CPUIDString(); id != "GenuineIntel-6-55-4" {
			t.Errorf("CPUIDString() = %q", id)
		}
	}
}

func checkEvents(t *testing.T, r *perfdata.Reader) {
	t.Helper()
	want, got := someEvents(), r.Events()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i, e := range got {
		a := e.Attr
		a.Size = 0
		if a != want[i].Attr || e.Name != want[i].Name || !slices.Equal(e.IDs, want[i].IDs) {
			t.Errorf("event %d: %+v %q %v, want %+v", i, a, e.Name, e.IDs, want[i])
		}
	}
	if got[0].Leader != got[0] || got[1].Leader != got[0] || got[2].Leader != nil || got[1].Group != "g" {
		t.Errorf("groups: %v", got)
	}
	if e, _, _ := r.Instance(42); e != got[0] {
		t.Errorf("Instance(42): %v", e)
	}
	if e, cpu, tid := r.Instance(1); e != nil || cpu != -1 || tid != -1 {
		t.Errorf("Instance(1): %v, %d, %d", e, cpu, tid)
	}
}

// someRecords is one of each record that can be written.
func someRecords() []perfdata.Record {
	id := bytes.Repeat([]byte{7}, 20)
	head := func(t perfdata.RecordType, m perfdata.Misc) perfdata.Header { return perfdata.Header{Type: t, Misc: m} }
	return []perfdata.Record{
		&perfdata.Mmap{Header: head(perffile.RecordMmap, 1), PID: -1, TID: 0, Addr: 1 << 63, Len: 4096, PgOff: 3, Filename: []byte("[kernel.kallsyms]_text")},
		&perfdata.Mmap{Header: head(perffile.RecordMmap2, 2), PID: 5, TID: 6, Addr: 0x400000, Len: 4096, Maj: 8, Min: 1, Inode: 99, InodeGeneration: 1, Prot: 5, Flags: 2, Filename: []byte("/bin/x")},
		&perfdata.Mmap{Header: head(perffile.RecordMmap2, 2|perffile.MiscMmapBuildID), PID: 5, TID: 6, Addr: 0x400000, Len: 4096, BuildID: id, Prot: 5, Flags: 2, Filename: []byte("/bin/x")},
		&perfdata.Comm{Header: head(perffile.RecordComm, perffile.MiscCommExec), PID: 5, TID: 6, Comm: []byte("prog")},
		&perfdata.Task{Header: head(perffile.RecordFork, 0), PID: 5, PPID: 4, TID: 6, PTID: 3, Time: 12},
		&perfdata.Task{Header: head(perffile.RecordExit, 0), PID: 5, PPID: 4, TID: 6, PTID: 3, Time: 13},
		&perfdata.Lost{Header: head(perffile.RecordLost, 0), ID: 41, Lost: 17},
		&perfdata.LostSamples{Header: head(perffile.RecordLostSamples, 0), Lost: 4},
		&perfdata.Throttle{Header: head(perffile.RecordThrottle, 0), Time: 1, ID: 41, StreamID: 2},
		&perfdata.Throttle{Header: head(perffile.RecordUnthrottle, 0), Time: 2, ID: 41, StreamID: 2},
		&perfdata.Switch{Header: head(perffile.RecordSwitch, perffile.MiscSwitchOut), PID: -1, TID: -1},
		&perfdata.Switch{Header: head(perffile.RecordSwitchCPUWide, 0), PID: 3, TID: 4},
		&perfdata.KSymbol{Header: head(perffile.RecordKSymbol, 0), Addr: 1 << 62, Len: 64, Kind: 1, Flags: perffile.KSymbolUnregister, Name: []byte("bpf_prog_1")},
		&perfdata.Cgroup{Header: head(perffile.RecordCgroup, 0), ID: 77, Path: []byte("/user.slice")},
		&perfdata.BuildID{Header: head(perffile.RecordHeaderBuildID, 1<<15|2), PID: -1, BuildID: id, Filename: []byte("/bin/x")},
		&perfdata.FinishedRound{Header: head(perffile.RecordFinishedRound, 0)},
		&perfdata.ThreadMap{Header: head(perffile.RecordThreadMap, 0), Threads: []perfdata.MappedThread{{TID: 5, Comm: []byte("prog")}, {TID: -1}}},
		&perfdata.CPUMap{Header: head(perffile.RecordCPUMap, 0), CPUs: []int{0, 1, -1}},
		&perfdata.StatConfig{Header: head(perffile.RecordStatConfig, 0), Aggregation: 1, Interval: 100, Scale: true},
		&perfdata.Stat{Header: head(perffile.RecordStat, 0), ID: 41, CPU: -1, Thread: 0, Value: 9, Enabled: 8, Running: 7},
		&perfdata.StatRound{Header: head(perffile.RecordStatRound, 0), Final: true, Time: 1234},
	}
}

func TestWriterRecords(t *testing.T) {
	for _, big := range []bool{false, true} {
		want := someRecords()
		r := open(t, writeFile(t, perfwrite.WriterOptions{Events: someEvents(), BigEndian: big}, nil, want...))
		for i := 0; r.Next(); i++ {
			if i >= len(want) {
				t.Fatalf("more than %d records", len(want))
			}
			got, h := r.Record(), r.Record().Head()
			if h.Type != want[i].Head().Type || h.Misc != want[i].Head().Misc {
				t.Errorf("record %d: %v %#x, want %v %#x", i, h.Type, h.Misc, want[i].Head().Type, want[i].Head().Misc)
			}
			if d := cmp.Diff(want[i], got, cmpopts.IgnoreFields(perfdata.Header{}, "Offset", "raw", "d"), cmp.AllowUnexported(perfdata.Header{}), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%v, -want +got:\n%s", h.Type, d)
			}
			if got := h.Trailer(); h.Type < perffile.RecordHeaderAttr &&
				(got.PID != 7 || got.TID != 8 || got.Time != 99 || got.ID != 41 || got.CPU != 2) {
				t.Errorf("%v: trailer %+v", h.Type, got)
			} else if h.Type >= perffile.RecordHeaderAttr && got.Has != 0 {
				t.Errorf("%v: trailer %+v of a record of perf's", h.Type, got)
			}
			want[i] = nil
		}
		if r.Err() != nil || !slices.ContainsFunc(want, func(rec perfdata.Record) bool { return rec == nil }) {
			t.Fatal(r.Err())
		}
		if i := slices.IndexFunc(want, func(rec perfdata.Record) bool { return rec != nil }); i >= 0 {
			t.Errorf("big %v: no record %T", big, want[i])
		}
		s := r.Stats()
		if s.Lost != 17 || s.LostSamples != 4 || s.Throttled != 1 || s.Unthrottled != 1 || s.Malformed+s.Unknown > 0 {
			t.Errorf("stats %+v", s)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	if _, err := perfwrite.NewWriter(&testperf.MemFile{}, perfwrite.WriterOptions{}); err == nil {
		t.Error("a file without events")
	}
	w, err := perfwrite.NewWriter(&testperf.MemFile{}, perfwrite.WriterOptions{Events: someEvents()})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteRecord(&perfdata.Sample{}, perfdata.Trailer{}); err == nil {
		t.Error("a sample")
	}
	if err := w.WriteRecord(&perfdata.Cgroup{Path: bytes.Repeat([]byte("x"), 1<<16)}, perfdata.Trailer{}); err == nil {
		t.Error("a record of more than 64 KiB")
	}
}

// A file that was not closed can be read as far as it was flushed.
func TestWriterUnfinished(t *testing.T) {
	var out testperf.MemFile
	w, err := perfwrite.NewWriter(&out, perfwrite.WriterOptions{Events: someEvents()})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteRecord(&perfdata.FinishedRound{}, perfdata.Trailer{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r := open(t, out.B)
	if got := types(r); len(got) != 1 || r.Err() != nil || !r.Stats().Unterminated {
		t.Errorf("%v, %v, %+v", got, r.Err(), r.Stats())
	}
}

// rawSamples are samples of the first event of someEvents, as the kernel of the
// file's byte order writes them.
func rawSamples(r *raw, n int) []byte {
	for i := range uint64(n) {
		r.record(perffile.RecordSample, 2, r.body().u64(41, 0x401000+i).u32(100, 100).u64(1e9+1e6*i).u32(uint32(i%2), 0).u64(1000).b)
	}
	return r.b
}

// TestWriterPerf has perf read what was written, in both byte orders.
func TestWriterPerf(t *testing.T) {
	perf := needPerf(t)
	for name, isBig := range map[string]bool{"little": false, "big": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "written.data")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			events := someEvents()[:2] // Config3 is newer than many a perf
			w, err := perfwrite.NewWriter(f, perfwrite.WriterOptions{Events: events, BigEndian: isBig})
			if err != nil {
				t.Fatal(err)
			}
			order := little()
			if isBig {
				order = big()
			}
			if err := w.WriteRecord(&perfdata.Comm{PID: 100, TID: 100, Comm: []byte("prog")}, perfdata.Trailer{}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(rawSamples(order, 25)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(someFeatures()); err != nil {
				t.Fatal(err)
			}
			out := run(t, perf, "script", "-i", path, "-F", "comm,tid,cpu,time,period,event,ip")
			if n := strings.Count(out, "cpu-clock:up"); n != 25 {
				t.Errorf("perf script shows %d samples, want 25:\n%.500s", n, out)
			}
			if !strings.Contains(out, "401018") || !strings.Contains(out, "1.024000") || !strings.Contains(out, "prog") {
				t.Errorf("perf script: %.2000s", out)
			}
			head := run(t, perf, "script", "-i", path, "--header-only", "-I")
			for _, want := range []string{"host", "GenuineIntel,6,85,4", "cpu-clock:up", "sibling sockets : 0-1", "group: g{cpu-clock:up,faults}",
				"L1 Data", "node0 meminfo"} {
				if !strings.Contains(head, want) {
					t.Errorf("perf's header has no %q:\n%s", want, head)
				}
			}
		})
	}
}

func needPerf(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("perf")
	if err != nil {
		t.Skip("needs perf")
	}
	return path
}

// run runs a command and returns what it printed.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	var out, msg bytes.Buffer
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
	c.Stdout, c.Stderr = &out, &msg
	if err := c.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, msg.Bytes())
	}
	return out.String()
}

func TestCPUIDString(t *testing.T) {
	for id, want := range map[string]string{
		"":                          "",
		"GenuineIntel,6,85,4":       "GenuineIntel-6-55-4",
		"AuthenticAMD,25,17,1":      "AuthenticAMD-25-11-1",
		"HygonGenuine,24,0,1":       "HygonGenuine-24-0-1",
		"77,512":                    "0x004d0200", // POWER8
		"0x00000000410fd0c0":        "0x00000000410fd0c0",
		"IBM,3906,704,M03,3.5,002f": "IBM,3906,704,M03,3.5,002f",
		"GenuineIntel,6,x,4":        "GenuineIntel,6,x,4",
		"7":                         "7",
	} {
		f := perfdata.Features{CPUID: id}
		if got := f.CPUIDString(); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}
