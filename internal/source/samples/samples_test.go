package samples_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/testperf"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

const (
	user   = perfdata.Misc(perfdata.ModeUser)
	kernel = perfdata.Misc(perfdata.ModeKernel)
)

// twoFunctions is a recording of code made at run time by process 42: hot and
// cold, and of a library that is not there, the kernel and nothing.
func twoFunctions(t testing.TB) (b []byte, root string) {
	r := newRecording(t, sampleType, "cycles", "instructions")
	r.mmap(1, 42, 0x10000, "//anon")
	r.mmap(2, 42, 0x40000, "/lib/libgone.so")
	for i := range uint64(100) {
		r.sample(1, 42, 0x10010+i%4, 10+i, 1000, user)
	}
	r.sample(1, 42, 0x10110, 200, 3000, user|perffile.MiscExactIP)
	r.sample(2, 42, 0x10110, 201, 7000, user)
	r.sample(1, 42, 0x40100, 202, 500, user)
	r.sample(1, 42, 0xffffffff81000000, 203, 600, kernel)
	r.sample(1, 43, 0x99, 204, 700, user)
	return r.bytes(), perfMap(t, t.TempDir(), "tmp/perf-42.map", "10000 100 hot\n10100 100 cold\n")
}

func TestReader(t *testing.T) {
	b, root := twoFunctions(t)
	for _, tt := range []struct {
		by   counts.Kind
		want map[string]float64 // cycles
	}{
		{counts.Module, map[string]float64{"": 104800, "perf-42.map": 103000, "libgone.so": 500, "[kernel]": 600, "[unknown]": 700}},
		{counts.Function, map[string]float64{"": 104800, "hot  (perf-42.map)": 100000, "cold  (perf-42.map)": 3000,
			"[unknown]  (libgone.so)": 500, "[unknown]  ([kernel])": 600, "[unknown]  ([unknown])": 700}},
		{counts.Line, map[string]float64{"": 104800, "hot  (perf-42.map)": 100000, "cold  (perf-42.map)": 3000,
			"[unknown]  (libgone.so)": 500, "[unknown]  ([kernel])": 600, "[unknown]  ([unknown])": 700}},
		{counts.Instruction, map[string]float64{"": 104800, "0x10010  hot  (perf-42.map)": 25000, "0x10011  hot  (perf-42.map)": 25000,
			"0x10012  hot  (perf-42.map)": 25000, "0x10013  hot  (perf-42.map)": 25000, "0x10110  cold  (perf-42.map)": 3000,
			"0x100  [unknown]  (libgone.so)": 500, "0xffffffff81000000  [unknown]  ([kernel])": 600, "[unknown]  ([unknown])": 700}},
	} {
		got := table(t, b, tt.by, root)
		if d := cmp.Diff(tt.want, values(got, 0)); d != "" {
			t.Errorf("%v: (-want +got)\n%s", tt.by, d)
		}
		if got.Label != "./prog" || got.CPU != "GenuineIntel-6-55-4" || math.Abs(got.Duration-194e-9) > 1e-15 {
			t.Errorf("%q on %q, %v s", got.Label, got.CPU, got.Duration)
		}
		if got.Scopes[0].Kind != counts.Run || got.Scopes[1].Kind != tt.by {
			t.Errorf("scopes of %v and %v", got.Scopes[0].Kind, got.Scopes[1].Kind)
		}
	}
}

// TestVariance has the variances that the errors of places come from.
func TestVariance(t *testing.T) {
	b, root := twoFunctions(t)
	got := table(t, b, counts.Function, root)
	type cell struct {
		value, variance float64
		samples         int64
	}
	mean := (100*1000.*1000 + 3000*3000 + 500*500 + 600*600 + 700*700) / 104
	want := map[string][2]cell{
		"":                        {{104800, 0, 104}, {7000, 0, 1}},
		"hot  (perf-42.map)":      {{100000, 1e8, 100}, {0, 49e6, 0}},
		"cold  (perf-42.map)":     {{3000, 9e6, 1}, {7000, 49e6, 1}},
		"[unknown]  (libgone.so)": {{500, 25e4, 1}, {0, 49e6, 0}},
		"[unknown]  ([kernel])":   {{600, 36e4, 1}, {0, 49e6, 0}},
		"[unknown]  ([unknown])":  {{700, 49e4, 1}, {0, 49e6, 0}},
	}
	for i := range got.Scopes {
		for col, w := range want[got.Scopes[i].Label] {
			if c := got.Cell(i, col); c.Value != w.value || c.Variance != w.variance || c.Samples != w.samples || c.State != counts.Counted {
				t.Errorf("%q, column %d: %+v, want %+v", got.Scopes[i].Label, col, *c, w)
			}
		}
	}
	// And the other way round: nothing of the first event.
	r := newRecording(t, sampleType, "cycles", "instructions")
	r.mmap(1, 42, 0x10000, "//anon")
	r.sample(1, 42, 0x10010, 5, 1000, user)
	r.sample(2, 42, 0x10110, 6, 10, user)
	got = table(t, r.bytes(), counts.Function, root)
	if c := got.Cell(2, 0); c.Value != 0 || c.Variance != 1e6 {
		t.Errorf("of no sample: %+v, want a variance of %v; the recording's mean square is %v", *c, 1e6, mean)
	}
}

// TestOrder has a program replaced by another: the records of two processors come
// one after the other in each round.
func TestOrder(t *testing.T) {
	record := func(rounds bool) []byte {
		r := newRecording(t, sampleType, "cycles")
		round := func() {
			if rounds {
				r.round()
			}
		}
		r.mmap(0, 42, 0x10000, "/bin/old")
		r.sample(1, 42, 0x10001, 100, 1, user)
		r.sample(1, 42, 0x10001, 310, 10, user) // behind the exec, which is on another processor
		round()
		r.add(300, &perfdata.Comm{Header: perfdata.Header{Misc: perffile.MiscCommExec}, PID: 42, TID: 42, Comm: []byte("new")})
		r.mmap(301, 42, 0x10000, "/bin/new")
		r.sample(1, 42, 0x10001, 299, 100, user)
		r.sample(1, 42, 0x10001, 400, 1000, user)
		round()
		r.add(450, &perfdata.Task{Header: perfdata.Header{Type: perffile.RecordFork}, PID: 43, TID: 43, PPID: 42, PTID: 42, Time: 450})
		r.sample(1, 43, 0x10001, 460, 10000, user)
		round()
		r.round()
		return r.bytes()
	}
	for _, rounds := range []bool{true, false} {
		got := values(table(t, record(rounds), counts.Module, t.TempDir()), 0)
		if d := cmp.Diff(map[string]float64{"": 11111, "old": 101, "new": 11010}, got); d != "" {
			t.Errorf("rounds %v: (-want +got)\n%s", rounds, d)
		}
	}
}

// TestManyHeld has more samples than are held until a round ends.
func TestManyHeld(t *testing.T) {
	r := newRecording(t, sampleType, "cycles")
	r.mmap(0, 42, 0x10000, "/bin/prog")
	const n = 1<<20 + 1000
	for i := range uint64(n) {
		r.sample(1, 42, 0x10001, 100+i, 1, user)
	}
	got := values(table(t, r.bytes(), counts.Module, t.TempDir()), 0)
	if d := cmp.Diff(map[string]float64{"": n, "prog": n}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestUntimed reads a recording without times in the order of the file.
func TestUntimed(t *testing.T) {
	r := newRecording(t, sampleType&^perffile.SampleTime, "cycles")
	r.mmap(0, 42, 0x10000, "/bin/old")
	r.sample(1, 42, 0x10001, 0, 1, user)
	r.mmap(0, 42, 0x10000, "/bin/new")
	r.sample(1, 42, 0x10001, 0, 10, user)
	got := table(t, r.bytes(), counts.Module, t.TempDir())
	if d := cmp.Diff(map[string]float64{"": 11, "old": 1, "new": 10}, values(got, 0)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if !math.IsNaN(got.Duration) {
		t.Errorf("a duration of %v", got.Duration)
	}
}

// TestGroupReads has the counters of a group that its leader's samples read: what
// they grew by belongs to the place of the sample.
func TestGroupReads(t *testing.T) {
	r := newRecording(t, perffile.SampleIdentifier|perffile.SampleIP|perffile.SampleTID|perffile.SampleTime|perffile.SampleRead, "cycles", "instructions")
	t.Cleanup(func() {})
	for _, e := range r.e {
		e.ReadFormat = perffile.FormatID | perffile.FormatGroup | perffile.FormatTotalTimeEnabled | perffile.FormatTotalTimeRunning
	}
	r.out = testperf.MemFile{}
	w, err := perfwrite.NewWriter(&r.out, perfwrite.WriterOptions{Events: r.e})
	if err != nil {
		t.Fatal(err)
	}
	r.w = w
	r.mmap(0, 42, 0x10000, "//anon")
	for _, s := range [][]uint64{{1, 0x10010, 10, 1000, 500}, {2, 0x10110, 20, 1500, 2500}, {3, 0x10010, 30, 2500, 2600}} {
		le := binary.LittleEndian
		b := le.AppendUint64(le.AppendUint64(nil, 1), s[1])
		b = le.AppendUint32(le.AppendUint32(b, 42), 42)
		// time, then the reading: how many, enabled, running, and value and id of each
		for _, v := range []uint64{s[2], 2, 100 * s[0], 50 * s[0], s[3], 1, s[4], 2} {
			b = le.AppendUint64(b, v)
		}
		r.raw(b, user)
	}
	root := perfMap(t, t.TempDir(), "tmp/perf-42.map", "10000 100 hot\n10100 100 cold\n")
	got := table(t, r.bytes(), counts.Function, root)
	// Each counter was on for half of the time.
	if d := cmp.Diff(map[string]float64{"": 5000, "hot  (perf-42.map)": 4000, "cold  (perf-42.map)": 1000}, values(got, 0)); d != "" {
		t.Errorf("cycles: (-want +got)\n%s", d)
	}
	if d := cmp.Diff(map[string]float64{"": 5200, "hot  (perf-42.map)": 1200, "cold  (perf-42.map)": 4000}, values(got, 1)); d != "" {
		t.Errorf("instructions: (-want +got)\n%s", d)
	}
	if c := got.Cell(1, 0); c.Coverage() != 0.5 {
		t.Errorf("coverage %v, want 0.5", c.Coverage())
	}
}

// TestJitdump has code with a file that says when it was made. That file is read ahead.
func TestJitdump(t *testing.T) {
	le := binary.LittleEndian
	dump := []byte("DTiJ")
	for _, v := range []uint32{1, 40, 62, 0, 42} {
		dump = le.AppendUint32(dump, v)
	}
	dump = le.AppendUint64(le.AppendUint64(dump, 0), 0)
	code := func(time, addr uint64, name string) {
		body := le.AppendUint32(le.AppendUint32(nil, 42), 42)
		for _, v := range []uint64{addr, addr, 16, 1} {
			body = le.AppendUint64(body, v)
		}
		body = append(append(body, name...), 0)
		body = append(body, make([]byte, 16)...)
		dump = le.AppendUint32(le.AppendUint32(dump, 0), uint32(16+len(body)))
		dump = append(le.AppendUint64(dump, time), body...)
	}
	code(50, 0x70000, "first")
	code(150, 0x70000, "second")
	root := perfMap(t, t.TempDir(), "tmp/jit-42.dump", string(dump))
	r := newRecording(t, sampleType, "cycles")
	r.sample(1, 42, 0x70004, 100, 1, user)
	r.round()
	r.mmap(40, 42, 0x10000, "/tmp/jit-42.dump")
	r.sample(1, 42, 0x70004, 200, 10, user)
	r.round()
	r.sample(1, 42, 0x70004, 300, 100, user)
	b := r.bytes()
	got := table(t, b, counts.Function, root)
	if d := cmp.Diff(map[string]float64{"": 111, "first  (jit-42.dump)": 1, "second  (jit-42.dump)": 110}, values(got, 0)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	stream := samples.NewReader(struct{ io.Reader }{bytes.NewReader(b)}, "stream", samples.Options{By: counts.Function, Symbols: profile.Config{Root: root}})
	if got := values(tableOf(t, stream), 0); got[""] != 111 {
		t.Errorf("of a stream: %v", got)
	}
}

// TestDirectory has a directory of files, whose records are in no order.
func TestDirectory(t *testing.T) {
	r := newRecording(t, sampleType, "cycles")
	r.sample(1, 42, 0x10001, 100, 1, user)
	head := r.bytes()
	part := newRecording(t, sampleType, "cycles")
	before := len(part.out.B)
	part.mmap(50, 42, 0x10000, "/bin/prog")
	part.sample(1, 42, 0x10001, 60, 10, user)
	if err := part.w.Flush(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"data": head, "data.0": part.out.B[before:]} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got := open(t, dir).Samples(samples.Options{By: counts.Module, Symbols: profile.Config{Root: t.TempDir()}})
	if d := cmp.Diff(map[string]float64{"": 11, "prog": 11}, values(tableOf(t, got), 0)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if err := got.Close(); err != nil {
		t.Error(err)
	}
}

// TestNotes has what the figures are short of.
func TestNotes(t *testing.T) {
	b, root := twoFunctions(t)
	all := strings.Join(counts.Texts(table(t, b, counts.Instruction, t.TempDir()).Notes), "\n")
	for _, want := range []string{"cycles, instructions: not sampled precisely", "no names for perf-42.map: code made at run time"} {
		if !strings.Contains(all, want) {
			t.Errorf("no note of %q in %q", want, all)
		}
	}
	if notes := table(t, b, counts.Function, root).Notes; len(notes) > 0 {
		t.Errorf("notes of a function: %q", notes)
	}
	root = perfMap(t, t.TempDir(), "tmp/perf-42.map", "10000 100 hot\n10100 100 cold\nlost\n")
	if notes := counts.Texts(table(t, b, counts.Function, root).Notes); len(notes) != 1 || !strings.HasSuffix(notes[0], "perf-42.map: 1 lines are no symbols") {
		t.Errorf("notes of a damaged file of names: %q", notes)
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"text", "cycles 5", "test.data"},
		{"no samples", string(newRecording(t, sampleType, "cycles").bytes()), "it holds neither samples nor counts"},
	} {
		r := samples.NewReader(strings.NewReader(tt.text), "test.data", samples.Options{By: counts.Function})
		if r.Next() || r.Err() == nil || !strings.Contains(r.Err().Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, r.Err(), tt.want)
		}
	}
}

// FuzzReader reads damaged recordings, divided and filtered in all ways: they end in a
// table whose parts add up to the whole, or in an error of one line.
func FuzzReader(f *testing.F) {
	files, err := filepath.Glob("../../../source/perfdata/testdata/*.data")
	if err != nil || len(files) == 0 {
		f.Fatal("no recordings", err)
	}
	for i, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint8(counts.Function), uint16(i), uint8(0))
	}
	f.Add(scenario(f), uint8(counts.Function), uint16(1), uint8(0))
	b, _ := twoFunctions(f)
	f.Add(b, uint8(counts.Instruction), uint16(0), uint8(0))
	b, _ = server(f)
	f.Add(b, uint8(counts.Run), uint16(0xffff), uint8(0))
	f.Add(b, uint8(counts.Line), uint16(0x55), uint8(0xff))
	root := f.TempDir() // without programs
	within := []counts.Kind{counts.Process, counts.Thread, counts.Cgroup, counts.CPU, counts.Core, counts.Socket, counts.Interval, counts.Function}
	f.Fuzz(func(t *testing.T, b []byte, kind uint8, told uint16, filter uint8) {
		o := samples.Options{Waits: true, By: append(samples.Kinds, counts.Run)[int(kind)%(len(samples.Kinds)+1)], Symbols: profile.Config{Root: root}}
		for i, k := range within {
			if told>>i&1 != 0 && k != o.By {
				o.Within = o.Within.With(k)
			}
		}
		for i, set := range []func(){
			func() { o.Filter.Processes = []string{"4?", "ls"} },
			func() { o.Filter.Threads = []string{"*"} },
			func() { o.Filter.Cgroups = []string{"/*"} },
			func() { o.Filter.CPUs = []int{0, 1} },
			func() { o.Filter.Time = &samples.Window{From: 0.001, To: 1e9} },
			func() { o.Filter.Modules = []string{"*l*"} },
			func() { o.Filter.Functions = []string{"*"} },
			func() { o.Filter.Addresses = []samples.Range{{To: 1 << 62}} },
		} {
			if filter>>i&1 != 0 {
				set()
			}
		}
		r := samples.NewReader(bytes.NewReader(b), "fuzz.data", o)
		defer r.Close()
		if !r.Next() {
			if r.Err() == nil || strings.Contains(r.Err().Error(), "\n") {
				t.Fatalf("error %q", r.Err())
			}
			return
		}
		table := r.Table()
		for col := range table.Columns {
			n := int64(0)
			for i := 1; i < len(table.Scopes); i++ {
				n += table.Cell(i, col).Samples
			}
			if divided := o.By != counts.Run || o.Within != 0; divided && n != table.Cell(0, col).Samples {
				t.Fatalf("%s: parts have %d samples, the whole %d", table.Columns[col].Event, n, table.Cell(0, col).Samples)
			}
		}
		for i := range table.Scopes {
			if s := &table.Scopes[i]; s.Start < 0 || s.Duration < 0 || math.IsNaN(s.Start+s.Duration) || math.IsInf(s.Start+s.Duration, 0) {
				t.Fatalf("an interval from %v for %v s", s.Start, s.Duration)
			}
		}
	})
}
