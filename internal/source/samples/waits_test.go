package samples_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// schedFormats are the formats of the tracepoints of waits, with the fields that matter.
var schedFormats = []struct{ name, fields string }{
	{"sched_switch", "\tfield:pid_t prev_pid;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:long prev_state;\toffset:16;\tsize:8;\tsigned:1;\n\tfield:pid_t next_pid;\toffset:24;\tsize:4;\tsigned:1;\n"},
	{"sched_wakeup", "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"},
}

// schedTracing is what the header says of these tracepoints, whose numbers are 1 and 2.
func schedTracing() []byte {
	le := binary.LittleEndian
	b := append([]byte{23, 8, 68}, "tracing0.6\x00\x00\x08\x00\x10\x00\x00"...)
	for _, name := range []string{"header_page", "header_event"} {
		b = le.AppendUint64(append(b, name+"\x00"...), 0)
	}
	b = le.AppendUint32(le.AppendUint32(b, 0), 1)
	b = le.AppendUint32(append(b, "sched\x00"...), uint32(len(schedFormats)))
	for i, f := range schedFormats {
		text := "name: " + f.name + "\nID: " + string(rune('1'+i)) + "\nformat:\n" + f.fields
		b = append(le.AppendUint64(b, uint64(len(text))), text...)
	}
	return append(b, make([]byte, 16)...)
}

// A waitRecording is a recording of switches between threads.
type waitRecording struct{ *recording }

const waitType = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU | perffile.SamplePeriod

// The ids of its events.
const (
	clockID = iota + 1
	switchID
	wakeupID
)

func newWaitRecording(t testing.TB) *waitRecording {
	t.Helper()
	r := &waitRecording{&recording{t: t}}
	event := func(name string, a perfdata.Attr) {
		a.Flags |= perffile.FlagSampleIDAll
		r.e = append(r.e, &perfdata.Event{Name: name, IDs: []uint64{uint64(len(r.e) + 1)}, Attr: a})
	}
	event("cpu-clock", perfdata.Attr{Type: perffile.TypeSoftware, SamplePeriod: 4000, Flags: perffile.FlagFreq, SampleType: waitType})
	traced := perfdata.SampleType(waitType | perffile.SampleCallchain | perffile.SampleRaw)
	event("sched:sched_switch", perfdata.Attr{Type: perffile.TypeTracepoint, Config: 1, SamplePeriod: 1, SampleType: traced, Flags: perffile.FlagContextSwitch})
	event("sched:sched_wakeup", perfdata.Attr{Type: perffile.TypeTracepoint, Config: 2, SamplePeriod: 1, SampleType: traced})
	var err error
	if r.w, err = perfwrite.NewWriter(&r.out, perfwrite.WriterOptions{Events: r.e, Tracing: schedTracing()}); err != nil {
		t.Fatal(err)
	}
	r.program()
	return r
}

// head begins a sample of a thread of process 7.
func (r *waitRecording) head(id, ip uint64, tid uint32, time, cpu, period uint64) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(le.AppendUint64(nil, id), ip)
	b = le.AppendUint32(le.AppendUint32(b, 7), tid)
	b = le.AppendUint64(le.AppendUint64(b, time), cpu)
	return le.AppendUint64(b, period)
}

func (r *waitRecording) tick(tid uint32, ip, time uint64) {
	r.raw(r.head(clockID, ip, tid, time, 0, 250), perfdata.Misc(perfdata.ModeUser))
}

const schedule = 0xffffffff80000100

// leave has a thread leave a processor at a place in the program, in favour of another.
func (r *waitRecording) leave(cpu uint64, tid uint32, place, time, state uint64, next uint32) {
	le := binary.LittleEndian
	b := r.head(switchID, schedule, tid, time, cpu, 1)
	b = le.AppendUint64(b, 4)
	for _, w := range []uint64{perffile.ContextKernel, schedule, perffile.ContextUser, place} {
		b = le.AppendUint64(b, w)
	}
	b = le.AppendUint32(b, 28)
	raw := make([]byte, 28)
	le.PutUint32(raw[8:], tid)
	le.PutUint64(raw[16:], state)
	le.PutUint32(raw[24:], next)
	r.raw(append(b, raw...), perfdata.Misc(perfdata.ModeKernel))
}

// wake has another thread become ready.
func (r *waitRecording) wake(tid uint32, time uint64) {
	le := binary.LittleEndian
	b := le.AppendUint64(r.head(wakeupID, schedule, 99, time, 0, 1), 0)
	b = le.AppendUint32(b, 12)
	raw := make([]byte, 12)
	le.PutUint32(raw[8:], tid)
	r.raw(append(b, raw...), perfdata.Misc(perfdata.ModeKernel))
}

// in has a thread come back to its processor.
func (r *waitRecording) in(cpu, tid int, time uint64) {
	r.t.Helper()
	if err := r.w.WriteRecord(&perfdata.Switch{PID: -1, TID: -1}, perfdata.Trailer{PID: 7, TID: tid, Time: time, ID: switchID, CPU: cpu}); err != nil {
		r.t.Fatal(err)
	}
}

// The states of threads.
const (
	running = 0
	sleeps  = 1
	disk    = 2
	dead    = 16
	preempt = 256
)

// scenario is three threads: one that sleeps and computes, one that waits for a disk and is
// preempted, one that ends. The records are not in the order of time.
func scenario(t testing.TB) []byte {
	r := newWaitRecording(t)
	r.tick(7, 0x10010, 1000)
	r.tick(7, 0x10010, 1250)
	r.leave(0, 7, 0x10120, 1500, sleeps, 0) // ran 500: the ticks say 500
	r.in(0, 7, 9500)                        // ready since 9000
	r.wake(7, 9000)
	r.wake(7, 9200) // twice changes nothing
	r.tick(7, 0x10010, 9700)
	r.leave(0, 7, 0x10210, 10000, preempt, 8) // ran 500 with one tick
	r.round()
	r.tick(8, 0x10010, 2000)
	r.leave(1, 8, 0x10120, 2100, disk, 0) // no wake-up is recorded
	r.round()
	r.leave(0, 8, 0x10210, 11000, running, 7) // came back at 10000
	r.tick(9, 0x10010, 3000)
	r.leave(2, 9, 0x10120, 3500, dead, 0)
	r.in(1, 8, 12000)
	r.in(1, 8, 12500) // the departure in between is missing: nothing is known of it
	r.tick(7, 0x10010, 12900)
	r.round()
	return r.bytes()
}

// TestWaits: the time of each thread is its running, the run queue and its waits; waits are
// where the program waits.
func TestWaits(t *testing.T) {
	root := perfMap(t, t.TempDir(), "tmp/perf-7.map", "10000 100 compute\n10100 100 sleeper\n10200 100 yields\n")
	data := scenario(t)
	read := func(o samples.Options) map[string]map[string]float64 {
		o.Waits, o.Symbols = true, profile.Config{Root: root}
		tab := tableOf(t, samples.NewReader(bytes.NewReader(data), "test.data", o))
		return wallOf(tab)
	}
	// Thread 7: 1000 to 1500 and 9500 to 10000 and 11000 to 12900 runs; thread 8: 2000 to
	// 2100, 10000 to 11000, 12000 to 12900; thread 9: 3000 to 3500. The end is 12900.
	want := map[string]map[string]float64{
		"run":                   {"running": 2900 + 2000 + 500, "queue": 500 + 1000 + 1000, "blocked": 7500, "disk": 7900},
		"compute  (perf-7.map)": {"running": 2900 + 2000 + 500},
		"sleeper  (perf-7.map)": {"queue": 500, "blocked": 7500, "disk": 7900},
		"yields  (perf-7.map)":  {"queue": 2000},
	}
	if d := cmp.Diff(want, read(samples.Options{By: counts.Function})); d != "" {
		t.Errorf("by function (-want +got)\n%s", d)
	}
	threads := map[string]map[string]float64{
		"run":    want["run"],
		"prog-7": {"running": 2900, "queue": 1500, "blocked": 7500},
		"8":      {"running": 2000, "queue": 1000, "disk": 7900},
		"9":      {"running": 500},
	}
	if d := cmp.Diff(threads, read(samples.Options{Within: counts.By(0).With(counts.Thread)})); d != "" {
		t.Errorf("by thread (-want +got)\n%s", d)
	}
	s, err := samples.ReadStacks(bytes.NewReader(data), "test.data", samples.Options{By: counts.Function, Calls: samples.Calls{View: samples.Children}, Waits: true, Symbols: profile.Config{Root: root}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	calls, _, err := s.CallTable()
	if err != nil {
		t.Fatal(err)
	}
	got := wallOf(calls)
	for name, sums := range want {
		if d := cmp.Diff(sums, got[name]); d != "" {
			t.Errorf("calls of %s (-want +got)\n%s", name, d)
		}
	}
	if tab := tableOf(t, samples.NewReader(bytes.NewReader(data), "test.data", samples.Options{By: counts.Function})); len(tab.Columns) != 3 {
		t.Errorf("%d columns without waits, want 3", len(tab.Columns))
	}
}

// TestEndlessWaits: if more than half of the waits have no end, times are not known. A note
// says so.
func TestEndlessWaits(t *testing.T) {
	for returns, want := range []bool{false, true, true} { // of 3 waits before the last
		r := newWaitRecording(t)
		for i := range uint64(4) {
			r.tick(7, 0x10010, 1000+i*1000)
			r.leave(0, 7, 0x10120, 1500+i*1000, sleeps, 0)
			if int(i) < returns {
				r.in(0, 7, 1900+i*1000)
			}
		}
		tab := tableOf(t, samples.NewReader(bytes.NewReader(r.bytes()), "test.data", samples.Options{Waits: true, Symbols: profile.Config{Root: t.TempDir()}}))
		noted := strings.Contains(strings.Join(counts.Texts(tab.Notes), "\n"), "how long threads ran and waited is not known")
		if has := len(tab.Columns) > 3; has != want || noted == want {
			t.Errorf("%d of 3 waits have an end: times %t, a note %t", returns, has, noted)
		}
	}
}

// TestWaitsOfCopies: with copies of the stack in place of callchains, a wait is where the
// registers say.
func TestWaitsOfCopies(t *testing.T) {
	for arch, pc := range map[string]int{"x86_64": 8, "aarch64": 32} {
		r := newNamedRecording(t, "context-switches", perfdata.Attr{Type: perffile.TypeSoftware, Config: 3, SamplePeriod: 1, Flags: perffile.FlagContextSwitch,
			SampleType: chained | perffile.SampleRegsUser, RegsUser: 3 << (pc - 1)})
		r.program()
		back := func(time uint64) {
			if err := r.w.WriteRecord(&perfdata.Switch{PID: -1, TID: -1}, perfdata.Trailer{PID: 7, TID: 7, Time: time, ID: 1}); err != nil {
				t.Fatal(err)
			}
		}
		kernel := []uint64{perffile.ContextKernel, schedule}
		r.chain(perfdata.ModeKernel, 1000, 1, kernel, perffile.Regs64, 0x7ff0, 0x10110)
		back(1500)
		r.chain(perfdata.ModeKernel, 2000, 1, kernel, perffile.RegsNone) // as of a thread of the kernel
		back(2700)
		if err := r.w.Close(&perfdata.Features{Arch: arch}); err != nil {
			t.Fatal(err)
		}
		root := perfMap(t, t.TempDir(), "tmp/perf-7.map", programMap)
		got := wallOf(tableOf(t, samples.NewReader(bytes.NewReader(r.out.B), "test.data", samples.Options{By: counts.Function, Waits: true, Symbols: profile.Config{Root: root}})))
		if got["work  (perf-7.map)"]["blocked"] != 500 || got["run"]["blocked"] != 1200 {
			t.Errorf("%s: %v", arch, got)
		}
	}
}

// wallOf returns the time of threads of a table's rows.
func wallOf(t *counts.Table) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for i, s := range t.Scopes {
		sums, all := map[string]float64{}, 0.0
		for col, c := range t.Columns {
			name, ok := strings.CutPrefix(c.Event, "wall.")
			if cell := t.Cell(i, col); ok && cell.Value != 0 && name == "time" {
				all = cell.Value
			} else if ok && cell.Value != 0 {
				sums[name] = cell.Value
			}
		}
		if all == 0 {
			continue
		}
		sum := 0.0
		for _, v := range sums {
			sum += v
		}
		if d := sum - all; d < -1e-6 || d > 1e-6 {
			sums["does not add up"] = all
		}
		label := s.Label
		if i == 0 {
			label = "run"
		}
		out[label] = sums
	}
	return out
}

// TestOffCPUTime reads the waits that perf record --off-cpu writes: sums at times beyond all
// others, and raw parts of samples of the next thread.
func TestOffCPUTime(t *testing.T) {
	root := perfMap(t, t.TempDir(), "tmp/perf-7.map", "10000 100 compute\n10100 100 sleeper\n10200 100 yields\n")
	const common = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SamplePeriod
	le := binary.LittleEndian
	words := func(list ...uint64) (b []byte) {
		for _, w := range list {
			b = le.AppendUint64(b, w)
		}
		return b
	}
	for _, direct := range []bool{false, true} {
		r := &recording{t: t}
		kind := perfdata.SampleType(common | perffile.SampleCallchain)
		if direct {
			kind = common | perffile.SampleRaw
		}
		r.e = []*perfdata.Event{
			{Name: "cpu-clock", IDs: []uint64{1}, Attr: perfdata.Attr{Type: perffile.TypeSoftware, SamplePeriod: 4000, SampleType: common, Flags: perffile.FlagFreq | perffile.FlagSampleIDAll}},
			{Name: "offcpu-time", Named: true, IDs: []uint64{2}, Attr: perfdata.Attr{Type: perffile.TypeSoftware, Config: 10, SamplePeriod: 1, SampleType: kind, Flags: perffile.FlagFreq | perffile.FlagSampleIDAll}},
		}
		var err error
		if r.w, err = perfwrite.NewWriter(&r.out, perfwrite.WriterOptions{Events: r.e}); err != nil {
			t.Fatal(err)
		}
		r.program()
		r.raw(words(1, 0x10010, 7<<32|7, 1000, 250), perfdata.Misc(perfdata.ModeUser))
		r.raw(words(1, 0x10010, 7<<32|7, 3000, 250), perfdata.Misc(perfdata.ModeUser))
		for i, at := range []uint64{0x10120, 0x10220} {
			time, ns := uint64(1<<64-1<<32)+uint64(i), 1000*uint64(i+1)
			chain := []uint64{perffile.ContextUser, at, 0x10030}
			if !direct {
				r.raw(append(words(2, at, 7<<32|7, time, ns, 3), words(chain...)...), perfdata.Misc(perfdata.ModeUser))
				continue
			}
			raw := append(words(7<<32|7, ns, 3), append(words(chain...), words(0)...)...)
			b := le.AppendUint32(words(2, 0xffffffff80000000, 5<<32|5, 1500, 1), uint32(len(raw)+4))
			r.raw(append(append(b, raw...), 0, 0, 0, 0), perfdata.Misc(perfdata.ModeKernel))
		}
		data := r.bytes()
		o := samples.Options{By: counts.Function, Within: counts.By(0).With(counts.Process), Waits: true, Symbols: profile.Config{Root: root}}
		tab := tableOf(t, samples.NewReader(bytes.NewReader(data), "test.data", o))
		want := map[string]map[string]float64{
			"run":                          {"running": 500, "blocked": 3000},
			"prog-7 compute  (perf-7.map)": {"running": 500},
			"prog-7 sleeper  (perf-7.map)": {"blocked": 1000},
			"prog-7 yields  (perf-7.map)":  {"blocked": 2000},
		}
		if d := cmp.Diff(want, wallOf(tab)); d != "" {
			t.Errorf("direct %v (-want +got)\n%s", direct, d)
		}
		if tab.Duration != 2e-6 {
			t.Errorf("direct %v: %g s, want 2 µs", direct, tab.Duration)
		}
		o.Calls = samples.Calls{View: samples.Children}
		s, err := samples.ReadStacks(bytes.NewReader(data), "test.data", o)
		if err != nil {
			t.Fatal(err)
		}
		calls, _, err := s.CallTable()
		if err != nil {
			t.Fatal(err)
		}
		if got := wallOf(calls)["compute  (perf-7.map)"]; got["blocked"] != 3000 || got["running"] != 500 {
			t.Errorf("direct %v: compute and what it calls: %v", direct, got)
		}
		s.Close()
	}
}
