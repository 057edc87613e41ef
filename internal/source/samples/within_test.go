package samples_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/testperf"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// fullType is the type of samples that can be split by every kind.
const fullType = sampleType | perffile.SampleCPU | perffile.SampleCgroup

// A shot is one sample of a recording of fullType.
type shot struct {
	id       uint64
	pid, tid int
	cpu      uint32
	cgroup   uint64
	ip, time uint64
	period   uint64
}

func (r *recording) shot(s shot) {
	le := binary.LittleEndian
	b := le.AppendUint64(le.AppendUint64(nil, s.id), s.ip)
	b = le.AppendUint32(le.AppendUint32(b, uint32(s.pid)), uint32(s.tid))
	b = le.AppendUint64(b, s.time)
	b = le.AppendUint32(le.AppendUint32(b, s.cpu), 0)
	r.raw(le.AppendUint64(le.AppendUint64(b, s.period), s.cgroup), user)
}

func (r *recording) comm(time uint64, pid, tid int, name string) {
	r.add(time, &perfdata.Comm{PID: pid, TID: tid, Comm: []byte(name)})
}

const ms = uint64(time.Millisecond)

// server is a recording of two processes on two CPUs, in two cgroups and 100 ms. One
// process has two threads and changes its name.
func server(t testing.TB) (b []byte, root string) {
	r := newRecording(t, fullType, "cycles", "instructions")
	r.add(1, &perfdata.Cgroup{ID: 5, Path: []byte("/web")})
	r.add(1, &perfdata.Cgroup{ID: 6, Path: []byte("/batch")})
	r.comm(1, 42, 42, "sh")
	r.comm(2, 42, 43, "io")
	r.comm(2, 50, 50, "job")
	for _, pid := range []int{42, 50} {
		r.mmap(3, pid, 0x10000, "//anon")
	}
	r.comm(40*ms, 42, 42, "httpd")
	for _, s := range []shot{
		{1, 42, 42, 0, 5, 0x10010, 10 * ms, 1},
		{1, 42, 42, 1, 5, 0x10110, 30 * ms, 10},
		{1, 42, 42, 0, 5, 0x10010, 50 * ms, 100},
		{1, 42, 43, 1, 5, 0x10110, 70 * ms, 1000},
		{1, 50, 50, 0, 6, 0x10010, 90 * ms, 10000},
		{2, 50, 50, 0, 6, 0x10010, 110 * ms, 5},
	} {
		r.shot(s)
	}
	root = perfMap(t, t.TempDir(), "tmp/perf-42.map", "10000 100 hot\n10100 100 cold\n")
	perfMap(t, root, "tmp/perf-50.map", "10000 100 crunch\n")
	return r.bytes(), root
}

// by is a set of kinds.
func by(kinds ...counts.Kind) (set counts.By) {
	for _, k := range kinds {
		set = set.With(k)
	}
	return set
}

func TestWithin(t *testing.T) {
	b, root := server(t)
	for _, tt := range []struct {
		code   counts.Kind
		within counts.By
		want   map[string]float64 // cycles
	}{
		{counts.Run, 0, map[string]float64{}},
		{counts.Run, by(counts.Process), map[string]float64{"httpd-42": 1111, "job-50": 10000}},
		{counts.Run, by(counts.Thread), map[string]float64{"httpd-42": 111, "io-43": 1000, "job-50": 10000}},
		{counts.Run, by(counts.Process, counts.Thread), map[string]float64{"httpd-42 httpd-42": 111, "httpd-42 io-43": 1000, "job-50 job-50": 10000}},
		{counts.Run, by(counts.Comm), map[string]float64{"sh": 11, "httpd": 100, "io": 1000, "job": 10000}},
		{counts.Run, by(counts.Process, counts.Comm), map[string]float64{"sh httpd-42": 11, "httpd httpd-42": 100, "io httpd-42": 1000, "job job-50": 10000}},
		{counts.Run, by(counts.Comm, counts.CPU), map[string]float64{"sh CPU0": 1, "sh CPU1": 10, "httpd CPU0": 100, "io CPU1": 1000, "job CPU0": 10000}},
		{counts.Function, by(counts.Comm), map[string]float64{"sh hot  (perf-42.map)": 1, "sh cold  (perf-42.map)": 10, "httpd hot  (perf-42.map)": 100,
			"io cold  (perf-42.map)": 1000, "job crunch  (perf-50.map)": 10000}},
		{counts.Run, by(counts.Cgroup), map[string]float64{"/web": 1111, "/batch": 10000}},
		{counts.Run, by(counts.CPU), map[string]float64{"CPU0": 10101, "CPU1": 1010}},
		{counts.Run, by(counts.Cgroup, counts.CPU), map[string]float64{"/web CPU0": 101, "/web CPU1": 1010, "/batch CPU0": 10000}},
		{counts.Run, by(counts.Interval), map[string]float64{"0 s": 11, "0.04 s": 1100, "0.08 s": 10000}},
		{counts.Function, by(counts.Interval), map[string]float64{"0 s hot  (perf-42.map)": 1, "0 s cold  (perf-42.map)": 10, "0.04 s hot  (perf-42.map)": 100,
			"0.04 s cold  (perf-42.map)": 1000, "0.08 s crunch  (perf-50.map)": 10000}},
		{counts.Function, by(counts.Thread), map[string]float64{"httpd-42 hot  (perf-42.map)": 101, "httpd-42 cold  (perf-42.map)": 10,
			"io-43 cold  (perf-42.map)": 1000, "job-50 crunch  (perf-50.map)": 10000}},
		{counts.Module, by(counts.CPU), map[string]float64{"CPU0 perf-42.map": 101, "CPU1 perf-42.map": 1010, "CPU0 perf-50.map": 10000}},
		{counts.Instruction, by(counts.Process, counts.Function), map[string]float64{"httpd-42 0x10010  hot  (perf-42.map)": 101,
			"httpd-42 0x10110  cold  (perf-42.map)": 1010, "job-50 0x10010  crunch  (perf-50.map)": 10000}},
	} {
		r := samples.NewReader(bytes.NewReader(b), "test.data", samples.Options{By: tt.code, Within: tt.within, Interval: 40 * time.Millisecond, Symbols: profile.Config{Root: root}})
		got := values(tableOf(t, r), 0)
		tt.want[""] = 11111
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%v within %b: (-want +got)\n%s", tt.code, tt.within, d)
		}
	}
}

// TestWithinScopes has the numbers of scopes.
func TestWithinScopes(t *testing.T) {
	b, root := server(t)
	r := samples.NewReader(bytes.NewReader(b), "test.data", samples.Options{By: counts.Function,
		Within: by(counts.Interval, counts.Thread, counts.CPU, counts.Cgroup), Symbols: profile.Config{Root: root}})
	table := tableOf(t, r)
	s := table.Scopes[1]
	if s.Kind != counts.Function || s.Thread != "httpd-42" || s.TID != 42 || s.CPU != 0 || s.CPUs != 1 || s.Cgroup != "/web" ||
		s.Code == nil || s.Code.Function != "hot" {
		t.Errorf("the first scope is %+v", s)
	}
	// 100 ms are some twenty intervals of a round length. Each sample has an interval of
	// its own. The first begins with the first sample.
	if math.Abs(s.Start) > 1e-12 || math.Abs(s.Duration-0.005) > 1e-12 {
		t.Errorf("an interval from %v for %v s", s.Start, s.Duration)
	}
	if last := table.Scopes[len(table.Scopes)-1]; math.Abs(last.Start+last.Duration-0.1) > 2e-9 {
		t.Errorf("the last interval ends after %v s", last.Start+last.Duration)
	}
	if table.Start != 0 || math.Abs(table.Duration-0.1) > 1e-12 {
		t.Errorf("the run is from %v for %v s", table.Start, table.Duration)
	}
}

// TestNames has names that would change a terminal.
func TestNames(t *testing.T) {
	r := newRecording(t, fullType, "cycles")
	r.comm(1, 42, 42, "a\x1b[31mb")
	r.add(1, &perfdata.Cgroup{ID: 5, Path: []byte("/c\nd")})
	r.mmap(2, 42, 0x10000, "/bin/e\rf")
	r.shot(shot{1, 42, 42, 0, 5, 0x10010, 10, 1})
	in := samples.NewReader(bytes.NewReader(r.bytes()), "test.data", samples.Options{By: counts.Module, Within: by(counts.Process, counts.Thread, counts.Cgroup), Symbols: profile.Config{Root: t.TempDir()}})
	for _, s := range tableOf(t, in).Scopes {
		for _, name := range []string{s.Label, s.Process, s.Thread, s.Cgroup} {
			if strings.ContainsAny(name, "\x1b\n\r") {
				t.Errorf("%q", name)
			}
		}
	}
}

// TestInheritedGroupReads has a group that each thread has of its own behind the same
// ids: what a counter grew by is told for each thread.
func TestInheritedGroupReads(t *testing.T) {
	r := newRecording(t, perffile.SampleIdentifier|perffile.SampleIP|perffile.SampleTID|perffile.SampleTime|perffile.SampleRead, "cycles", "instructions")
	for _, e := range r.e {
		e.ReadFormat = perffile.FormatID | perffile.FormatGroup | perffile.FormatLost
		e.Flags |= perffile.FlagInherit
	}
	r.out = testperf.MemFile{}
	w, err := perfwrite.NewWriter(&r.out, perfwrite.WriterOptions{Events: r.e})
	if err != nil {
		t.Fatal(err)
	}
	r.w = w
	for i, s := range []struct {
		tid                  uint32
		cycles, instructions uint64
	}{{42, 100, 10}, {43, 50, 500}, {42, 300, 40}, {43, 80, 800}} {
		le := binary.LittleEndian
		b := le.AppendUint64(le.AppendUint64(nil, 1), 0x10010)
		b = le.AppendUint32(le.AppendUint32(b, 42), s.tid)
		for _, v := range []uint64{uint64(10 + i), 2, s.cycles, 1, 0, s.instructions, 2, 7} {
			b = le.AppendUint64(b, v)
		}
		r.raw(b, user)
	}
	in := samples.NewReader(bytes.NewReader(r.bytes()), "test.data", samples.Options{Within: by(counts.Thread)})
	got := tableOf(t, in)
	for col, want := range []map[string]float64{{"": 380, "42": 300, "43": 80}, {"": 840, "42": 40, "43": 800}} {
		if d := cmp.Diff(want, values(got, col)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", got.Columns[col].Event, d)
		}
	}
}

func TestWithinMissing(t *testing.T) {
	b, _ := twoFunctions(t)
	for _, tt := range []struct {
		kind counts.Kind
		want string
	}{{counts.Cgroup, "do not have their cgroup: perf record --all-cgroups"}, {counts.CPU, "do not have their CPU: perf record --sample-cpu"},
		{counts.Core, "do not have their CPU"}} {
		r := samples.NewReader(bytes.NewReader(b), "test.data", samples.Options{Within: by(tt.kind)})
		if r.Next() || r.Err() == nil || !strings.Contains(r.Err().Error(), tt.want) {
			t.Errorf("by %v: %v, want %q", tt.kind, r.Err(), tt.want)
		}
	}
	untimed := newRecording(t, sampleType&^perffile.SampleTime, "cycles")
	untimed.sample(1, 42, 0x10001, 0, 1, user)
	r := samples.NewReader(bytes.NewReader(untimed.bytes()), "test.data", samples.Options{Within: by(counts.Interval)})
	if r.Next() || r.Err() == nil || !strings.Contains(r.Err().Error(), "do not have their time: perf record --timestamp") {
		t.Errorf("without times: %v", r.Err())
	}
}

// TestVersions: a symbol's version may be left out of a function's name.
func TestVersions(t *testing.T) {
	b, root := server(t)
	perfMap(t, root, "tmp/perf-42.map", "10000 100 read@@GLIBC_2.2.5\n10100 100 read@plt\n")
	if got := samples.Unversioned("read@V1"); got != "read" {
		t.Errorf("read@V1 without its version is %s", got)
	}
	for name, want := range map[string]float64{"read": 101, "read@plt": 1010, "read@@GLIBC_2.2.5": 101, "read*": 1111} {
		r := samples.NewReader(bytes.NewReader(b), "test.data", samples.Options{By: counts.Function, Filter: samples.Filter{Functions: []string{name}}, Symbols: profile.Config{Root: root}})
		if got := tableOf(t, r).Cell(0, 0).Value; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestFilter has what filters leave.
func TestFilter(t *testing.T) {
	b, root := server(t)
	for _, tt := range []struct {
		filter samples.Filter
		want   float64 // cycles
	}{
		{samples.Filter{}, 11111},
		{samples.Filter{Processes: []string{"42"}}, 1111},
		{samples.Filter{Processes: []string{"httpd"}}, 1100}, // by its name at the time
		{samples.Filter{Processes: []string{"sh", "job"}}, 10011},
		{samples.Filter{Processes: []string{"h*d"}}, 1100},
		{samples.Filter{Threads: []string{"io"}}, 1000},
		{samples.Filter{Threads: []string{"43", "50"}}, 11000},
		{samples.Filter{Threads: []string{"io-43"}}, 1000},
		{samples.Filter{Cgroups: []string{"/w*"}}, 1111},
		{samples.Filter{CPUs: []int{1, 7}}, 1010},
		{samples.Filter{Modules: []string{"perf-50.map"}}, 10000},
		{samples.Filter{Modules: []string{"/tmp/perf-5?.map"}}, 10000},
		{samples.Filter{Functions: []string{"hot", "crunch"}}, 10101},
		{samples.Filter{Addresses: []samples.Range{{From: 0x10100, To: 0x101ff}}}, 1010},
		{samples.Filter{Time: &samples.Window{From: 0.02, To: 0.06}}, 1110},
		{samples.Filter{Time: &samples.Window{From: 0.02, To: math.Inf(1)}}, 11110},
		{samples.Filter{Functions: []string{"hot"}, Threads: []string{"42"}, CPUs: []int{0}, Cgroups: []string{"/web"}, Time: &samples.Window{To: 0.02}}, 1},
	} {
		for _, within := range []counts.By{0, by(counts.Process), by(counts.Thread, counts.Comm), by(counts.Interval, counts.Cgroup)} {
			for _, code := range []counts.Kind{counts.Run, counts.Function} {
				r := samples.NewReader(bytes.NewReader(b), "test.data", samples.Options{By: code, Within: within, Filter: tt.filter, Symbols: profile.Config{Root: root}})
				table := tableOf(t, r)
				if got := table.Cell(0, 0).Value; got != tt.want {
					t.Errorf("%+v by %v within %b: %v, want %v", tt.filter, code, within, got, tt.want)
				}
				parts := 0.0
				for i := range table.Scopes[1:] {
					parts += table.Cell(1+i, 0).Value
				}
				if within != 0 && parts != tt.want {
					t.Errorf("%+v by %v within %b: parts of %v, want %v", tt.filter, code, within, parts, tt.want)
				}
				if note := strings.Join(counts.Texts(table.Notes), "\n"); tt.want < 11111 && !strings.Contains(note, "after filtering: ") {
					t.Errorf("%+v: no note in %q", tt.filter, note)
				}
			}
		}
	}
}

// TestFilterClock has a recording whose clock does not begin with it, and whose file has no
// length.
func TestFilterClock(t *testing.T) {
	r := newRecording(t, fullType, "cycles")
	r.shot(shot{id: 1, time: 1000_000 * ms, period: 1})
	r.shot(shot{id: 1, time: 1000_100 * ms, period: 10})
	r.shot(shot{id: 1, time: 1000_200 * ms, period: 100})
	b := r.bytes()
	for _, tt := range []struct {
		from, to, want float64
	}{{0.05, 0.15, 10}, {0, 0.15, 11}, {0.1, math.Inf(1), 110}, {0.05, 100, 110}, {1000.05, 1000.15, 10}, {0, 1000.15, 11}, {1000.1, math.Inf(1), 110}} {
		in := samples.NewReader(bytes.NewReader(b), "test.data", samples.Options{Filter: samples.Filter{Time: &samples.Window{From: tt.from, To: tt.to}}})
		if got := tableOf(t, in).Cell(0, 0).Value; got != tt.want {
			t.Errorf("from %v to %v: %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestFilterNothing(t *testing.T) {
	b, root := server(t)
	for _, tt := range []struct {
		filter samples.Filter
		kind   counts.Kind
		names  string
	}{
		{samples.Filter{Processes: []string{"http"}}, counts.Process, "sh-42 httpd-42 job-50"},
		{samples.Filter{Threads: []string{"44"}}, counts.Thread, "sh-42 httpd-42 io-43 job-50"},
		{samples.Filter{Cgroups: []string{"web"}}, counts.Cgroup, "/web /batch"},
		{samples.Filter{CPUs: []int{2}}, counts.CPU, "0 1"},
		{samples.Filter{Modules: []string{"libc"}}, counts.Module, "perf-42.map perf-50.map"},
		{samples.Filter{Functions: []string{"hott"}}, counts.Function, "hot cold crunch"},
		{samples.Filter{Processes: []string{"job"}, Functions: []string{"hot"}}, counts.Function, "crunch"}, // of what the process leaves
		{samples.Filter{Time: &samples.Window{From: 0.2, To: 0.3}}, counts.Interval, "samples from 0 to 0.1 s, which are 0.010000 to 0.110000 by the recording's clock"},
	} {
		r := samples.NewReader(bytes.NewReader(b), "test.data", samples.Options{By: counts.Function, Filter: tt.filter, Symbols: profile.Config{Root: root}})
		var none *samples.NoMatchError
		if r.Next() || !errors.As(r.Err(), &none) {
			t.Errorf("%+v: %v", tt.filter, r.Err())
			continue
		}
		if none.Kind != tt.kind || strings.Join(none.Names, " ") != tt.names || none.Last {
			t.Errorf("%+v: %+v, want %v of %s", tt.filter, none, tt.kind, tt.names)
		}
	}
}

// TestSums: the parts of every split add up to the run. So do the samples that a filter
// leaves and those that it removes.
func TestSums(t *testing.T) {
	kinds := []counts.Kind{counts.Interval, counts.CPU, counts.Thread, counts.Process, counts.Cgroup, counts.Module, counts.Function}
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		r := newRecording(t, fullType, "cycles", "instructions")
		for i := range rapid.IntRange(1, 60).Draw(rt, "samples") {
			if i%7 == 0 {
				r.round()
			}
			pid := rapid.IntRange(40, 43).Draw(rt, "pid")
			if rapid.Bool().Draw(rt, "map") {
				r.mmap(uint64(i), pid, 0x10000, fmt.Sprintf("/bin/prog%d", pid%2))
			}
			r.shot(shot{id: 1 + rapid.Uint64Range(0, 1).Draw(rt, "event"), pid: pid, tid: pid + rapid.IntRange(0, 2).Draw(rt, "thread"),
				cpu: rapid.Uint32Range(0, 3).Draw(rt, "cpu"), cgroup: rapid.Uint64Range(0, 2).Draw(rt, "cgroup"), ip: 0x10000 + rapid.Uint64Range(0, 0x20000).Draw(rt, "ip"),
				time: rapid.Uint64Range(1, 1000*ms).Draw(rt, "time"), period: rapid.Uint64Range(1, 1000).Draw(rt, "period")})
		}
		b := r.bytes()
		read := func(o samples.Options) *counts.Table {
			o.Symbols.Root = root
			in := samples.NewReader(bytes.NewReader(b), "test.data", o)
			if !in.Next() {
				var none *samples.NoMatchError
				if errors.As(in.Err(), &none) {
					return nil
				}
				rt.Fatal(in.Err())
			}
			return in.Table()
		}
		run := read(samples.Options{})
		o := samples.Options{By: rapid.SampledFrom([]counts.Kind{counts.Run, counts.Module, counts.Function, counts.Line, counts.Instruction}).Draw(rt, "by")}
		for _, k := range kinds {
			if k != o.By && rapid.Bool().Draw(rt, k.String()) {
				o.Within = o.Within.With(k)
			}
		}
		parts := read(o)
		for col := range run.Columns {
			want := run.Cell(0, col)
			if got := parts.Cell(0, col); got.Value != want.Value || got.Samples != want.Samples {
				rt.Fatalf("the whole has %v of %d samples, the run %v of %d", got.Value, got.Samples, want.Value, want.Samples)
			}
			var sum counts.Cell
			for i := range parts.Scopes[1:] {
				sum.Add(parts.Cell(1+i, col))
			}
			if (o.By != counts.Run || o.Within != 0) && (sum.Value != want.Value || sum.Samples != want.Samples) {
				rt.Fatalf("by %v within %b: parts have %v of %d samples, the run %v of %d", o.By, o.Within, sum.Value, sum.Samples, want.Value, want.Samples)
			}
		}
		seen := map[string]bool{}
		for _, s := range parts.Scopes {
			if seen[s.Label] {
				rt.Fatalf("by %v within %b: two scopes %q", o.By, o.Within, s.Label)
			}
			seen[s.Label] = true
		}
		// What a filter leaves and what the opposite one does are the whole.
		all := [][]string{{"40", "41"}, {"42", "43"}}
		var sum float64
		for _, pids := range all {
			o.Filter.Processes = pids
			if part := read(o); part != nil {
				sum += part.Cell(0, 0).Value
			}
		}
		if want := run.Cell(0, 0).Value; sum != want {
			rt.Fatalf("two filters leave %v, want %v", sum, want)
		}
	})
}

// TestManyParts has more parts than there is room for: the rest is together.
func TestManyParts(t *testing.T) {
	r := newRecording(t, fullType, "cycles")
	const n = 1<<18 + 1000
	for i := range uint64(n) {
		r.shot(shot{id: 1, pid: int(i % 1000), tid: int(i % 1000), time: 1 + i*ms, period: 1})
	}
	in := samples.NewReader(bytes.NewReader(r.bytes()), "test.data", samples.Options{Within: by(counts.Interval, counts.Process), Interval: time.Millisecond})
	got := tableOf(t, in)
	others := &got.Scopes[len(got.Scopes)-1]
	if got.Cell(0, 0).Value != n || others.Label != "others" || got.Cell(len(got.Scopes)-1, 0).Value != 1000 {
		t.Errorf("%v in all, %q has %v", got.Cell(0, 0).Value, others.Label, got.Cell(len(got.Scopes)-1, 0).Value)
	}
	if !strings.Contains(strings.Join(counts.Texts(got.Notes), "\n"), "the others are together") {
		t.Errorf("notes %q", got.Notes)
	}
}

// TestSharedSums holds recordings of all kinds to the same, and to what the reader of
// tables says of the run.
func TestSharedSums(t *testing.T) {
	dir := testshared.Dir(t, "corpus", "perfdata")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	divisions := []samples.Options{
		{Within: by(counts.Process)}, {Within: by(counts.Thread, counts.CPU)}, {By: counts.Module, Within: by(counts.Process, counts.Interval)}, {Within: by(counts.Socket)},
	}
	empty := t.TempDir()
	read := 0
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		tables := perfdata.NewTableReader(bytes.NewReader(b), f.Name(), perfdata.TableOptions{})
		if !tables.Next() || tables.Kind() != "perf-data" {
			continue
		}
		read++
		want := tables.Table()
		for _, o := range divisions {
			o.Symbols.Root = empty
			r := samples.NewReader(bytes.NewReader(b), f.Name(), o)
			if !r.Next() {
				if r.Err() == nil || !strings.Contains(r.Err().Error(), "its samples do not have") {
					t.Errorf("%s by %v within %b: %v", f.Name(), o.By, o.Within, r.Err())
				}
				continue
			}
			got := r.Table()
			for col := range got.Columns {
				at := columnOf(want, got.Columns[col], col)
				if at < 0 {
					continue // it came later than the first sample
				}
				var sum counts.Cell
				for i := range got.Scopes[1:] {
					sum.Add(got.Cell(1+i, col))
				}
				whole := want.Cell(0, at)
				if sum.Samples != whole.Samples || math.Abs(sum.Value-whole.Value) > 1e-9*math.Abs(whole.Value) {
					t.Errorf("%s by %v within %b, %s: %v of %d samples, the run has %v of %d", f.Name(), o.By, o.Within, got.Columns[col].Event, sum.Value, sum.Samples, whole.Value, whole.Samples)
				}
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if read < 50 {
		t.Errorf("%d recordings were read", read)
	}
}

// columnOf finds a column of the same event at the same place.
func columnOf(t *counts.Table, c counts.Column, at int) int {
	if at < len(t.Columns) && t.Columns[at].Event == c.Event {
		return at
	}
	return -1
}

// TestStacksByCgroup: threads of one name are apart by cgroup, if that is asked for.
func TestStacksByCgroup(t *testing.T) {
	r := newRecording(t, fullType, "cycles")
	r.add(1, &perfdata.Cgroup{ID: 5, Path: []byte("/web")})
	r.add(1, &perfdata.Cgroup{ID: 6, Path: []byte("/batch")})
	r.comm(1, 42, 42, "sh")
	r.mmap(3, 42, 0x10000, "//anon")
	for i, cgroup := range []uint64{5, 6, 5, 7} {
		r.shot(shot{id: 1, pid: 42, tid: 42, cgroup: cgroup, ip: 0x10010, time: uint64(10 + i), period: 1 << i})
	}
	for _, tt := range []struct {
		within counts.By
		want   map[string]float64
	}{
		{by(counts.Cgroup), map[string]float64{"/web": 5, "/batch": 2, "cgroup 0x7": 8}},
		{0, map[string]float64{"": 15}},
	} {
		s, err := samples.ReadStacks(bytes.NewReader(r.bytes()), "test.data", samples.Options{By: counts.Function, Within: tt.within, Symbols: profile.Config{Root: t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for x := range s.All() {
			if x.Thread != "sh" {
				t.Errorf("thread %q", x.Thread)
			}
			got[x.Cgroup] += x.Cells[0].Value
		}
		want(t, got, tt.want)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
