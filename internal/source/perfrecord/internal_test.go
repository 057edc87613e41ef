package perfrecord

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/source/perfdata"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// record makes a record of the kernel's, of words behind the header.
func record(kind perfdata.RecordType, misc perfdata.Misc, words ...uint64) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(kind))
	b = binary.NativeEndian.AppendUint16(b, uint16(misc))
	b = binary.NativeEndian.AppendUint16(b, uint16(8+8*len(words)))
	for _, w := range words {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}

// mmap2 makes an MMAP2 of a file.
func mmap2(misc perfdata.Misc, major, minor uint32, inode uint64, name string) []byte {
	b := record(perffile.RecordMmap2, misc, make([]uint64, 8)...)
	binary.NativeEndian.PutUint32(b[40:], major)
	binary.NativeEndian.PutUint32(b[44:], minor)
	binary.NativeEndian.PutUint64(b[48:], inode)
	b = append(b, name...)
	b = append(b, make([]byte, 8-len(name)%8)...)
	binary.NativeEndian.PutUint16(b[6:], uint16(len(b)))
	return b
}

// Records are counted wherever the pieces are cut that they come in.
func TestTally(t *testing.T) {
	data := slices.Concat(
		record(perffile.RecordSample, 0, 1, 0x400000, 7, 500, 0),
		record(perffile.RecordLost, 0, 1, 17, 0),
		mmap2(0, 8, 1, 99, "/bin/true"),
		mmap2(perffile.MiscMmapBuildID, 8, 1, 98, "/bin/known"),
		mmap2(perffile.MiscMmapData, 8, 1, 97, "/bin/data"),
		mmap2(0, 0, 0, 0, "[vdso]"),
		record(perffile.RecordThrottle, 0, 1, 2, 3),
		record(perffile.RecordSample, 0, 1, 0x400000, 7, 300, 0),
		record(perffile.RecordSample, 0, 1), // without a time
	)
	want := tally{samples: 3, lost: 17, throttled: 1, bytes: int64(len(data)), first: 300, last: 500,
		files: map[string]inode{"/bin/true": {8, 1, 99}}}
	for cut := 0; cut <= len(data); cut += 8 {
		for size := 8; size <= 64; size += 24 {
			var out bytes.Buffer
			got := tally{to: &out}
			pieces := slices.Collect(slices.Chunk(data[cut:], size))
			for _, p := range append([][]byte{data[:cut]}, pieces...) {
				if n, err := got.Write(p); n != len(p) || err != nil {
					t.Fatal(n, err)
				}
			}
			if !bytes.Equal(out.Bytes(), data) {
				t.Fatal("what passes is not what comes out")
			}
			got.to, got.part = nil, nil
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(tally{}, inode{})); diff != "" {
				t.Fatalf("cut at %d, in pieces of %d: %s", cut, size, diff)
			}
		}
	}
}

func TestHeaderCPUID(t *testing.T) {
	for in, want := range map[string]string{
		"GenuineIntel-6-55-4": "GenuineIntel,6,85,4", "AuthenticAMD-25-11-1": "AuthenticAMD,25,17,1",
		"0x00000000410fd0c0": "0x00000000410fd0c0", "0x004e1202": "78,4610", "0x0-0x0-0x0": "0x0-0x0-0x0", "": "",
	} {
		if got := headerCPUID(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if back := (&perfdata.Features{CPUID: want}).CPUIDString(); in != "" && back != in {
			t.Errorf("%s is read as %s, want %s", want, back, in)
		}
	}
}

// machine is the part of a machine's files that a recording looks at.
var machine = fstest.MapFS{
	"proc/kallsyms": {Data: []byte("ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000040 t other_text\n" +
		"ffffffff82000000 T _etext\nffffffff83000000 D _edata\n")},
	"proc/modules":                                              {Data: []byte("dm_mod 16384 1 - Live 0xffffffffc0000000 (E)\nloop 8192 0 - Live 0xffffffffc0010000\nhidden 4096 0 - Live 0x0000000000000000\n")},
	"proc/sys/kernel/osrelease":                                 {Data: []byte("6.1.0-9-amd64\n")},
	"proc/sys/kernel/hostname":                                  {Data: []byte("host\n")},
	"lib/modules/6.1.0-9-amd64/modules.dep":                     {Data: []byte("kernel/drivers/md/dm-mod.ko.xz: kernel/x.ko\n")},
	"proc/cpuinfo":                                              {Data: []byte("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n")},
	"proc/meminfo":                                              {Data: []byte("MemTotal:       1024 kB\nMemFree: 1 kB\n")},
	"sys/devices/system/cpu/possible":                           {Data: []byte("0-1\n")},
	"sys/devices/system/cpu/online":                             {Data: []byte("0-1\n")},
	"sys/devices/system/cpu/cpu0/topology/core_id":              {Data: []byte("0\n")},
	"sys/devices/system/cpu/cpu0/topology/physical_package_id":  {Data: []byte("0\n")},
	"sys/devices/system/cpu/cpu0/topology/core_siblings_list":   {Data: []byte("0-1\n")},
	"sys/devices/system/cpu/cpu0/topology/thread_siblings_list": {Data: []byte("0\n")},
	"sys/devices/system/cpu/cpu1/topology/core_id":              {Data: []byte("1\n")},
	"sys/devices/system/cpu/cpu1/topology/physical_package_id":  {Data: []byte("0\n")},
	"sys/devices/system/cpu/cpu1/topology/core_siblings_list":   {Data: []byte("0-1\n")},
	"sys/devices/system/cpu/cpu1/topology/thread_siblings_list": {Data: []byte("1\n")},
	"sys/bus/event_source/devices/cpu/type":                     {Data: []byte("4\n")},
	"sys/bus/event_source/devices/software/type":                {Data: []byte("1\n")},
	"sys/kernel/notes":                                          {Data: note(1, 2, 3)},
	"proc/5/task/5/comm":                                        {Data: []byte("first\n")},
	"proc/5/task/7/comm":                                        {Data: []byte("second\n")},
	"proc/5/maps":                                               {Data: []byte(processMaps)},
	"proc/7/status":                                             {Data: []byte("Name:\tsecond\nTgid:\t5\nPid:\t7\n")},
	"proc/self/something":                                       {Data: []byte("no number\n")},
	"sys/fs/cgroup/a/b/tasks":                                   {},
}

const processMaps = `00400000-00401000 r-xp 00001000 08:01 42                         /bin/a program
00600000-00601000 rw-p 00002000 08:01 42                         /bin/a program
7f0000000000-7f0000002000 rwxs 00000000 00:00 0 
7fff00000000-7fff00001000 r-xp 00000000 00:00 0                  [vdso]
this is no mapping
`

// note is an ELF note with a build id.
func note(id ...byte) []byte {
	b := make([]byte, 20)
	for i := range b {
		b[i] = id[i%len(id)]
	}
	return append([]byte("\x04\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00"), b...)
}

func TestHost(t *testing.T) {
	h := host{root: machine}
	h.readKernel()
	if want := (module{name: "[kernel.kallsyms]_text", addr: 0xffffffff81000000, len: 0x1000000}); h.kernel != want {
		t.Errorf("the kernel is %+v, want %+v", h.kernel, want)
	}
	want := []module{{"/lib/modules/6.1.0-9-amd64/kernel/drivers/md/dm-mod.ko.xz", "dm_mod", 0xffffffffc0000000, 16384}, {"[loop]", "loop", 0xffffffffc0010000, 8192}}
	if !slices.Equal(h.modules, want) {
		t.Errorf("modules %+v, want %+v", h.modules, want)
	}
	if ids := h.buildIDs(); len(ids) != 1 || ids[0].Filename != "[kernel.kallsyms]" || !bytes.Equal(ids[0].BuildID, note(1, 2, 3)[16:]) {
		t.Errorf("build ids %+v", ids)
	}
	f := h.features(Options{Cmdline: []string{"cyclestack", "record"}, Version: "1", CPUID: "AuthenticAMD-25-11-1"})
	f.Arch = ""
	wantFeatures := &perfdata.Features{Hostname: "host", OSRelease: "6.1.0-9-amd64", Version: "1", CPUDesc: "A CPU @ 2 GHz", CPUID: "AuthenticAMD,25,17,1",
		CPUs: 2, Online: 2, TotalMem: 1024, Cmdline: []string{"cyclestack", "record"}, CoreSiblings: []string{"0-1"}, ThreadSiblings: []string{"0", "1"},
		Topology: []perfdata.Place{{Core: 0, Socket: 0, Die: -1}, {Core: 1, Socket: 0, Die: -1}},
		PMUs:     []perfdata.PMU{{Type: 4, Name: "cpu"}, {Type: 1, Name: "software"}}}
	if diff := cmp.Diff(wantFeatures, f, cmp.AllowUnexported(perfdata.Features{}, perfdata.Event{})); diff != "" {
		t.Error(diff)
	}
}

// A kernel that hides its addresses has none.
func TestHostHidden(t *testing.T) {
	for _, text := range []string{"0000000000000000 T _stext\n0000000000000000 T _etext\n", "", "garbage _text\n", "ffffffff81000000 T _text\n"} {
		h := host{root: fstest.MapFS{"proc/kallsyms": {Data: []byte(text)}, "proc/modules": machine["proc/modules"]}}
		h.readKernel()
		if h.kernel.len != 0 || len(h.modules) > 0 {
			t.Errorf("%q: %+v", text, h)
		}
	}
}

// What runs is recorded as its files say.
func TestSynthesis(t *testing.T) {
	for _, data := range []bool{false, true} {
		var got []string
		var tally tally
		s := synthesis{root: machine, tally: &tally, data: data, write: func(r perfdata.Record) {
			switch r := r.(type) {
			case *perfdata.Comm:
				got = append(got, string(r.Comm))
			case *perfdata.Mmap:
				text := string(r.Filename)
				if r.Misc&perffile.MiscMmapData != 0 {
					text += ", data"
				}
				got = append(got, text)
				if r.PID != 5 || r.Len == 0 || text == "/bin/a program" && (r.PgOff != 0x1000 || r.Maj != 8 || r.Min != 1 || r.Inode != 42 || r.Prot != 5) {
					t.Errorf("%+v", r)
				}
			}
		}}
		s.processes([]int{5, 99}, nil)
		want := []string{"first", "second", "/bin/a program", "//anon", "[vdso]"}
		if data {
			want = []string{"first", "second", "/bin/a program", "/bin/a program, data", "//anon", "[vdso]"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("data %t: %q, want %q", data, got, want)
		}
		if _, ok := tally.files["/bin/a program"]; !ok || len(tally.files) != 1 {
			t.Errorf("files %v", tally.files)
		}
		all := got
		for _, again := range []func(){func() { s.processes(nil, []int{7}) }, s.everything} {
			if got = nil; true {
				again()
			}
			if !slices.Equal(got, all) {
				t.Errorf("%q, want %q", got, all)
			}
		}
	}
}

// An event is the same in the file as for the kernel: each flag is where it was.
func TestFileAttr(t *testing.T) {
	a := perfevent.Attr{Type: 1, Config: 2, Config1: 3, Config2: 4, Config3: 5, Sample: 6, Freq: true, SampleType: 7, ReadFormat: 8, Precise: 2,
		Inherit: true, ExcludeKernel: true, Mmap2: true, BuildID: true, SampleIDAll: true, SampleMaxStack: 9}
	got := fileAttr(&a)
	want := perfdata.Attr{Type: 1, Config: 2, Config1: 3, Config2: 4, Config3: 5, SamplePeriod: 6, SampleType: 7, ReadFormat: 8, Precise: 2, MaxStack: 9,
		Flags: perffile.FlagFreq | perffile.FlagInherit | perffile.FlagExcludeKernel | perffile.FlagMmap2 | perffile.FlagBuildID | perffile.FlagSampleIDAll}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// BenchmarkTally looks at samples as they pass.
func BenchmarkTally(b *testing.B) {
	data := bytes.Repeat(record(perffile.RecordSample, 0, 1, 2, 3, 4, 5, 6), 1<<13)
	t := tally{to: io.Discard}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Write(data); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTracing: perf reads the formats of tracepoints from the header, and refuses a file
// without them. Another reader of them names the events.
func TestTracing(t *testing.T) {
	format := func(name, id string) string {
		return "name: " + name + "\nID: " + id + "\nformat:\n\tfield:int prev_pid;\n"
	}
	for _, dir := range tracefs {
		root := fstest.MapFS{
			dir + "/events/header_page":                   {Data: []byte("\tfield: u64 timestamp;\n")},
			dir + "/events/header_event":                  {Data: []byte("# compressed entry header\n")},
			dir + "/events/sched/sched_switch/id":         {Data: []byte("372\n")},
			dir + "/events/sched/sched_switch/format":     {Data: []byte(format("sched_switch", "372"))},
			dir + "/events/kmem/kfree/id":                 {Data: []byte("500\n")},
			dir + "/events/kmem/kfree/format":             {Data: []byte(format("kfree", "500"))},
			dir + "/events/sched/sched_wakeup/id":         {Data: []byte("7\n")},
			dir + "/events/sched/sched_wakeup/format":     {Data: []byte(format("sched_wakeup", "7"))},
			"sys/kernel/security/events/elsewhere/nosuch": {Data: nil},
		}
		h := &host{root: root}
		events := []*perfdata.Event{
			{Name: "sched:sched_switch:k", Attr: perfdata.Attr{Type: perffile.TypeTracepoint, Config: 372}, IDs: []uint64{1}},
			{Name: "kmem:kfree", Attr: perfdata.Attr{Type: perffile.TypeTracepoint, Config: 500}, IDs: []uint64{2}},
			{Name: "cycles", IDs: []uint64{3}},
		}
		data := h.tracing(events)
		if data == nil {
			t.Fatalf("%s: no formats", dir)
		}
		for _, e := range events[:2] {
			e.Name = "" // so that it is taken from the formats
		}
		var out bytes.Buffer
		w, err := perfwrite.NewPipeWriter(&out, perfwrite.WriterOptions{Events: events, Tracing: data}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(nil); err != nil {
			t.Fatal(err)
		}
		r, err := perfdata.NewReader(&out, "pipe", perfdata.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
		}
		var names []string
		for _, e := range r.Events() {
			names = append(names, e.Name)
		}
		if want := []string{"sched:sched_switch", "kmem:kfree", "cycles"}; !slices.Equal(names, want) {
			t.Errorf("%s: events %q, want %q", dir, names, want)
		}
		for _, e := range []perfdata.Event{
			{Name: "sched:sched_switch", Attr: perfdata.Attr{Type: perffile.TypeTracepoint, Config: 373}}, // another number
			{Name: "sched:lost", Attr: perfdata.Attr{Type: perffile.TypeTracepoint, Config: 1}},
			{Name: "mine", Attr: perfdata.Attr{Type: perffile.TypeTracepoint, Config: 372}},
			{Name: "cycles"},
		} {
			if b := h.tracing([]*perfdata.Event{&e}); b != nil {
				t.Errorf("%s: formats for %+v", dir, e)
			}
		}
	}
}
