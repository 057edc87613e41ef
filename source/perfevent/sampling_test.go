//go:build linux

package perfevent_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// sampled resolves events for sampling.
func sampled(t testing.TB, sys *perfevent.System, list string) [][]perfevent.Event {
	t.Helper()
	groups, err := sys.ResolveSampled(list, 3989, true)
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// sample starts a sampling, which ends with the test.
func sample(t testing.TB, sys *perfevent.System, spec perfevent.SampleSpec) *perfevent.Sampling {
	t.Helper()
	s, err := perfevent.Sample(context.Background(), sys, spec)
	if e := (*perfevent.OpenError)(nil); errors.As(err, &e) && errors.Is(e, syscall.EACCES) {
		t.Skipf("not allowed here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Types of records, see enum perf_event_type.
const (
	mmapRecord   = 1
	lostRecord   = 2
	commRecord   = 3
	exitRecord   = 4
	forkRecord   = 7
	sampleRecord = 9
	mmap2Record  = 10
)

// found is what the records of a sampling are.
type found struct {
	records map[uint32]int
	samples map[uint64]int // by the event's place among the sampling's
	tids    map[uint32]int // samples by thread
	cpus    map[uint32]int
}

// drain samples until the end, and takes the records apart.
func drain(t testing.TB, s *perfevent.Sampling) found {
	t.Helper()
	return drainUntil(t, s, func(*found) bool { return false })
}

// drainUntil does that and stops the sampling when there is enough.
func drainUntil(t testing.TB, s *perfevent.Sampling, enough func(*found) bool) found {
	t.Helper()
	events := map[uint64]uint64{}
	for i, e := range s.Events() {
		for _, id := range e.IDs {
			events[id] = uint64(i)
		}
	}
	f := found{map[uint32]int{}, map[uint64]int{}, map[uint32]int{}, map[uint32]int{}}
	var data bytes.Buffer
	for s.Next() {
		data.Reset()
		if _, err := s.WriteTo(&data); err != nil {
			t.Fatal(err)
		}
		for b := data.Bytes(); len(b) > 0; {
			size := binary.NativeEndian.Uint16(b[6:])
			if int(size) > len(b) || size < 8 || size%8 != 0 {
				t.Fatalf("a record of %d bytes, and %d are left", size, len(b))
			}
			f.add(t, b[:size], events)
			b = b[size:]
		}
		if enough(&f) {
			s.Stop()
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return f
}

// add adds a record: of samples identifier, address, process, thread, time and
// processor.
func (f *found) add(t testing.TB, b []byte, events map[uint64]uint64) {
	kind := binary.NativeEndian.Uint32(b)
	f.records[kind]++
	if kind != sampleRecord {
		return
	}
	event, ok := events[binary.NativeEndian.Uint64(b[8:])]
	if !ok {
		t.Errorf("a sample of an event that is none of the sampling's")
	}
	f.samples[event]++
	f.tids[binary.NativeEndian.Uint32(b[28:])]++
	f.cpus[binary.NativeEndian.Uint32(b[40:])]++
}

// A page fault each is a sample: there are as many as the kernel's account of the
// program says, children and threads included.
func TestSampleCommand(t *testing.T) {
	sys := machine(t)
	for _, program := range []string{"spin 1000000", "fork 5 1000000"} {
		s := sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "page-faults/period=1/,cpu-clock"), Target: role(program)})
		f := drain(t, s)
		used := usageOf(s.State().SysUsage().(*syscall.Rusage))
		near(t, program+": page faults", float64(f.samples[0]), float64(used.faults), 0.1)
		for kind, what := range map[uint32]string{commRecord: "COMM", mmap2Record: "MMAP2", exitRecord: "EXIT"} {
			if f.records[kind] == 0 {
				t.Errorf("%s: no %s", program, what)
			}
		}
		if children := f.records[forkRecord]; strings.HasPrefix(program, "fork 5") && children < 5 {
			t.Errorf("%s: %d FORK", program, children)
		}
		if e := s.Events(); len(e) != 3 || e[0].Name != "page-faults/period=1/" || len(e[0].IDs) != len(sys.CPUs) || e[2].Attr.Sample != 0 || !e[2].Attr.Mmap2 {
			t.Errorf("events %+v", e)
		}
	}
}

// Threads that come and go are all sampled, and each once: also those that begin
// while the counters are opened. A sampling that may be incomplete says so. That
// happens on machines whose threads wait long for a processor.
func TestSampleProcess(t *testing.T) {
	sys := machine(t)
	for _, threads := range []string{"threads 1 3000000", "threads 5 1000000", "threads 20 10000"} {
		a := cast(t, threads)
		whole := 0
		for range testlong.Size(2, 4) {
			before := a.step()
			s := sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "page-faults/period=1/,context-switches/period=1000/"),
				Target: perfevent.Target{PIDs: []int{a.cmd.Process.Pid}}})
			from := a.step()
			to := a.busy(from)
			s.Stop()
			got := drain(t, s).samples[0]
			lost := int(s.Lost()) // of all records
			after := a.step()
			least, most := to.since(from).faults, after.since(before).faults
			unsure := len(s.Notes()) > 0
			if got+lost < least*99/100 && !unsure || got > most*101/100 {
				t.Errorf("%s: sampled %d page faults and lost %d records, it had %d at least and %d at most; %q", threads, got, lost, least, most, s.Notes())
			}
			if !unsure {
				whole++
			}
			s.Close()
		}
		if whole == 0 {
			t.Errorf("%s: no sampling knows that it was whole", threads)
		}
		a.end()
	}
}

// The threads of a command are not sampled without inheritance, and its first is.
func TestSampleNoInherit(t *testing.T) {
	sys := machine(t)
	s := sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "page-faults/period=1/"), Target: role("fork 3 1000000"), NoInherit: true})
	f := drain(t, s)
	if len(f.tids) != 1 || f.tids[uint32(s.PID())] == 0 {
		t.Errorf("samples of threads %v, want of %d only", f.tids, s.PID())
	}
}

// All processors are sampled, or some.
func TestSampleProcessors(t *testing.T) {
	sys := machine(t)
	spin := role("spin 50000000")
	spin.All = true
	f := drain(t, sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "cpu-clock"), Target: spin}))
	if len(f.cpus) != len(sys.CPUs) {
		t.Errorf("samples of processors %v, want of all %d", f.cpus, len(sys.CPUs))
	}
	last := sys.CPUs[len(sys.CPUs)-1]
	spin.All, spin.CPUs = false, []int{last}
	s := sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "cpu-clock"), Target: spin})
	if f := drain(t, s); len(f.cpus) != 1 || f.cpus[uint32(last)] == 0 {
		t.Errorf("samples of processors %v, want of %d only", f.cpus, last)
	}
	// What runs elsewhere is recorded, too: it may come here.
	if e := s.Events(); len(e) != 2 || len(e[1].IDs) != len(sys.CPUs) || !slices.Equal(e[0].CPUs, []int{last}) {
		t.Errorf("events %+v", e)
	}
}

// Samples of a group with one sampling event have the counts of all.
func TestSampleGroup(t *testing.T) {
	sys := machine(t)
	if !perfevent.InheritedReads() {
		t.Skip("needs Linux 6.13")
	}
	s := sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "{task-clock,page-faults/period=1/,context-switches}:S"), Target: role("spin 1000000")})
	f := drain(t, s)
	used := usageOf(s.State().SysUsage().(*syscall.Rusage))
	near(t, "page faults", float64(f.samples[1]), float64(used.faults), 0.1)
	if f.samples[0]+f.samples[2] > 0 {
		t.Errorf("samples %v, want of the second event only", f.samples)
	}
	const read, group = 1 << 4, 1 << 3
	for i, e := range s.Events()[:3] {
		if got, want := e.Attr.SampleType&read != 0, i == 1; got != want || want && e.Attr.ReadFormat&group == 0 || e.Leader != 0 {
			t.Errorf("event %d: %+v", i, e)
		}
	}
}

// A delay leaves out what comes before, but not what is mapped.
func TestSampleDelay(t *testing.T) {
	sys := machine(t)
	spec := perfevent.SampleSpec{Groups: sampled(t, sys, "page-faults/period=1/"), Delay: time.Hour}
	s, ready := sampleIdle(t, sys, spec)
	go func() {
		<-ready // it has had the faults of its start
		s.Stop()
	}()
	if f := drain(t, s); f.records[sampleRecord] > 0 || f.records[mmap2Record]+f.records[mmapRecord] == 0 {
		t.Errorf("records %v, want no faults, and what it has mapped", f.records)
	}
	s.Close()

	spec.Target = role("exit 0")
	s = sample(t, sys, spec)
	if f := drain(t, s); f.records[sampleRecord] > 0 || s.State() == nil {
		t.Errorf("records %v of a command that ended before sampling began", f.records)
	}
}

// After a delay samples are taken, and a time ends the sampling.
func TestSampleTimeout(t *testing.T) {
	sys := machine(t)
	spec := perfevent.SampleSpec{Groups: sampled(t, sys, "page-faults/period=1/"), Delay: time.Millisecond, Timeout: time.Millisecond}
	s, _ := sampleIdle(t, sys, spec)
	drain(t, s) // the program itself does not end
	s.Close()

	a := cast(t, "threads 2 10000")
	spec.Target, spec.Timeout = perfevent.Target{PIDs: []int{a.cmd.Process.Pid}}, 0
	s = sample(t, sys, spec)
	if f := drainUntil(t, s, func(f *found) bool { return f.records[sampleRecord] > 0 }); f.records[sampleRecord] == 0 {
		t.Errorf("records %v, want faults after the delay", f.records)
	}
	s.Close()
	a.end()
}

// sampleIdle samples a program that waits for the end of its input, which the test
// keeps open. The channel is closed when the program has started.
func sampleIdle(t *testing.T, sys *perfevent.System, spec perfevent.SampleSpec) (*perfevent.Sampling, <-chan struct{}) {
	t.Helper()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	spec.Target = role("idle 0")
	spec.Target.Stdin, _ = pipe()
	says, out := pipe()
	spec.Target.Stdout = out
	s := sample(t, sys, spec)
	out.Close()
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		_, _ = says.Read(make([]byte, len("ready\n")))
	}()
	return s, ready
}

// What there is no room for is counted. On a busy machine there may be room for all
// that a process gets to do in a moment.
func TestSampleLost(t *testing.T) {
	sys := machine(t)
	a := cast(t, "threads 4 1000000")
	for range 10 {
		s := sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "page-faults/period=1/"), RingSize: 1,
			Target: perfevent.Target{PIDs: []int{a.cmd.Process.Pid}}})
		time.Sleep(200 * time.Millisecond)
		s.Stop()
		f := drain(t, s)
		s.Close()
		if s.Lost() > 0 && int(s.Lost()) < f.records[lostRecord] {
			t.Errorf("%d lost, and records %v", s.Lost(), f.records)
		}
		if s.Lost() > 0 || f.records[lostRecord] > 0 {
			return
		}
	}
	t.Error("nothing was lost in rings of a page")
}

// Nothing is left behind: no process, no file, no memory.
func TestSamplingLeavesNothing(t *testing.T) {
	sys := machine(t)
	before := openFiles(t)
	spec := perfevent.SampleSpec{Groups: sampled(t, sys, "cpu-clock,page-faults"), Target: role("sleep 60000")}
	for range 3 {
		s := sample(t, sys, spec)
		s.Stop()
		for s.Next() {
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if s.State() == nil {
			t.Error("the command has not ended")
		}
	}
	for _, command := range [][]string{{"/does/not/exist"}, {"/etc/passwd"}, {"/"}, {""}} {
		for _, apart := range []bool{false, true} {
			spec.Target, spec.NoInherit = perfevent.Target{Command: command}, apart
			s, err := perfevent.Sample(context.Background(), sys, spec)
			if e := (*exec.Error)(nil); !errors.As(err, &e) {
				t.Errorf("%q: %v, %v", command, s, err)
			}
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err != nil || strings.Contains(string(maps), "perf_event") {
		t.Errorf("a ring is left (%v)", err)
	}
}

// A context ends a sampling, and the process that is sampled does.
func TestSamplingEnds(t *testing.T) {
	sys := machine(t)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := perfevent.Sample(ctx, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "cpu-clock"), Target: role("sleep 60000")})
	if err != nil {
		t.Skip(err)
	}
	defer s.Close()
	cancel()
	for s.Next() {
	}
	if !errors.Is(s.Err(), context.Canceled) {
		t.Errorf("ended by %v", s.Err())
	}
	a := cast(t, "threads 2 1000000")
	s = sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "cpu-clock"), Target: perfevent.Target{PIDs: []int{a.cmd.Process.Pid}}})
	a.end()
	if f := drain(t, s); f.records[exitRecord] == 0 {
		t.Errorf("records %v, want its end", f.records)
	}
}

// What cannot be sampled as asked is said.
func TestSampleErrors(t *testing.T) {
	sys := machine(t)
	clock := sampled(t, sys, "cpu-clock")
	plain := [][]perfevent.Event{events(t, sys, "cpu-clock")}
	elapsed := [][]perfevent.Event{events(t, sys, "duration_time")}
	elapsed[0][0].Attr.Sample = 1
	for _, tt := range []struct {
		spec perfevent.SampleSpec
		want string
	}{
		{perfevent.SampleSpec{Target: role("exit 0")}, "nothing to sample: no events"},
		{perfevent.SampleSpec{Groups: clock}, "nothing to count: no command"},
		{perfevent.SampleSpec{Groups: plain, Target: role("exit 0")}, "none of cpu-clock takes samples"},
		{perfevent.SampleSpec{Groups: elapsed, Target: role("exit 0")}, `event "duration_time": not a counter`},
		{perfevent.SampleSpec{Groups: clock, Target: role("exit 0"), RingSize: -1}, "rings of -1 bytes"},
		{perfevent.SampleSpec{Groups: clock, Target: perfevent.Target{PIDs: []int{1 << 30}}}, "there is no process 1073741824"},
		{perfevent.SampleSpec{Groups: sampled(t, sys, "cpu-clock/freq=2000000000/"), Target: role("exit 0")}, "more than kernel.perf_event_max_sample_rate allows"},
	} {
		if s, err := perfevent.Sample(context.Background(), sys, tt.spec); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, %v, want %q", s, err, tt.want)
		}
	}
}

// A thousand threads that come and go, and many processes, are sampled without
// files for each.
func TestSampleMany(t *testing.T) {
	sys := machine(t)
	a := cast(t, "idle 500")
	for dir := fmt.Sprintf("/proc/%d/task", a.cmd.Process.Pid); ; time.Sleep(time.Millisecond) {
		if threads, err := os.ReadDir(dir); err != nil || len(threads) > 500 {
			break
		}
	}
	s := sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, "cpu-clock,page-faults"), Target: perfevent.Target{PIDs: []int{a.cmd.Process.Pid}}})
	if e := s.Events(); len(e[0].IDs) < 500*len(sys.CPUs) {
		t.Errorf("%d instances of 500 threads", len(e[0].IDs))
	}
	a.end()
	drain(t, s)
}
