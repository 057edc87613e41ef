package perfdata_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// tables reads all tables of a file, which must not end in an error.
func tables(t *testing.T, b []byte, opts perfdata.TableOptions) []*counts.Table {
	t.Helper()
	r := perfdata.NewTableReader(bytes.NewReader(b), "test.data", opts)
	var out []*counts.Table
	for r.Next() {
		out = append(out, r.Table().Clone())
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return out
}

func by(kinds ...counts.Kind) counts.By {
	b := counts.By(0)
	for _, k := range kinds {
		b = b.With(k)
	}
	return b
}

// sampleAt appends a sample of an event.
func sampleAt(r *raw, id uint64, pid, tid uint32, time uint64, cpu uint32, period uint64) {
	r.record(perffile.RecordSample, 2, r.body().u64(id, 0x401000).u32(pid, tid).u64(time).u32(cpu, 0).u64(period).b)
}

// threeThreads is a pipe with samples of two events by three threads of two
// processes on two processors.
func threeThreads() *raw {
	const kind = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU | perffile.SamplePeriod
	r := little().pipe()
	r.record(perffile.RecordHeaderAttr, 0, append(r.attr(0, 0, 1000, uint64(kind), 0, 0), r.body().u64(1).b...))
	r.record(perffile.RecordHeaderAttr, 0, append(r.attr(0, 1, 1000, uint64(kind), 0, 0), r.body().u64(2).b...))
	r.record(perffile.RecordComm, 0, r.body().u32(10, 10).bytes([]byte("main\x00\x00\x00\x00")...).b)
	r.record(perffile.RecordFork, 0, r.body().u32(10, 10, 11, 10).u64(0).b) // a thread that inherits the name
	r.record(perffile.RecordComm, 0, r.body().u32(20, 20).bytes([]byte("other\x00\x00\x00")...).b)
	sampleAt(r, 1, 10, 10, 1e9, 0, 100)
	sampleAt(r, 1, 10, 11, 2e9, 1, 200)
	sampleAt(r, 2, 10, 11, 3e9, 1, 7)
	sampleAt(r, 1, 20, 20, 4e9, 0, 400)
	sampleAt(r, 1, 20, 20, 5e9, 1, 800)
	return r
}

func TestSampleScopes(t *testing.T) {
	type row struct {
		label            string
		kind             counts.Kind
		cpu, tid         int
		cycles, variance float64
		samples          int64
		instructions     float64
	}
	none := counts.Unknown
	for _, tt := range []struct {
		name string
		by   counts.By
		want []row
	}{
		{"run", by(), []row{{"", counts.Run, none, none, 1500, 0, 4, 7}}},
		{"thread", by(counts.Thread), []row{
			{"main-10", counts.Thread, none, 10, 100, 1e4, 1, 0},
			{"main-11", counts.Thread, none, 11, 200, 4e4, 1, 7},
			{"other-20", counts.Thread, none, 20, 1200, 16e4 + 64e4, 2, 0}}},
		{"process", by(counts.Process), []row{
			{"main-10", counts.Process, none, 10, 300, 5e4, 2, 7},
			{"other-20", counts.Process, none, 20, 1200, 80e4, 2, 0}}},
		{"cpu", by(counts.CPU), []row{
			{"CPU0", counts.CPU, 0, none, 500, 17e4, 2, 0},
			{"CPU1", counts.CPU, 1, none, 1000, 68e4, 2, 7}}},
		{"thread and cpu", by(counts.Thread, counts.CPU), []row{
			{"main-10", counts.Thread, 0, 10, 100, 1e4, 1, 0},
			{"main-11", counts.Thread, 1, 11, 200, 4e4, 1, 7},
			{"other-20", counts.Thread, 0, 20, 400, 16e4, 1, 0},
			{"other-20", counts.Thread, 1, 20, 800, 64e4, 1, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := tables(t, threeThreads().b, perfdata.TableOptions{By: tt.by})
			if len(list) != 1 {
				t.Fatalf("%d tables", len(list))
			}
			table := list[0]
			if len(table.Scopes) != len(tt.want) || len(table.Columns) != 2 || table.Columns[0].Event != "cycles" {
				t.Fatalf("scopes %+v, columns %+v", table.Scopes, table.Columns)
			}
			if table.Duration != 4 || table.Interval {
				t.Errorf("duration %v, interval %v", table.Duration, table.Interval)
			}
			for i, want := range tt.want {
				s, c, n := table.Scopes[i], table.Cell(i, 0), table.Cell(i, 1)
				got := row{s.Label, s.Kind, s.CPU, s.TID, c.Value, c.Variance, c.Samples, n.Value}
				if got != want {
					t.Errorf("row %d: %+v, want %+v", i, got, want)
				}
				if !c.Ok() || !n.Ok() {
					t.Errorf("row %d: %+v %+v", i, c, n)
				}
			}
		})
	}
}

func TestSampleIntervals(t *testing.T) {
	r := threeThreads()
	// Rounds: what comes behind the second one is not older than what came
	// before the first.
	r.record(perffile.RecordFinishedRound, 0, nil)
	sampleAt(r, 1, 10, 10, 5.5e9, 0, 1)
	sampleAt(r, 1, 10, 10, 8.5e9, 0, 2)
	r.record(perffile.RecordFinishedRound, 0, nil)
	sampleAt(r, 1, 10, 10, 1.5e9, 0, 4) // too late for its interval
	list := tables(t, r.b, perfdata.TableOptions{Interval: 2 * time.Second})
	want := []struct {
		start, duration, cycles float64
		samples                 int64
	}{{0, 2, 300, 2}, {2, 2, 400, 1}, {4, 2, 805, 3}, {6, 1.5, 2, 1}}
	if len(list) != len(want) {
		t.Fatalf("%d tables, want %d", len(list), len(want))
	}
	for i, w := range want {
		table := list[i]
		c := table.Cell(0, 0)
		if !table.Interval || table.Start != w.start || table.Duration != w.duration || c.Value != w.cycles || c.Samples != w.samples {
			t.Errorf("table %d: start %v, duration %v, %+v, want %+v", i, table.Start, table.Duration, c, w)
		}
		if table.Layout != list[0].Layout {
			t.Errorf("table %d has another layout", i)
		}
	}
	if notes := strings.Join(counts.Texts(list[3].Notes), "\n"); !strings.Contains(notes, "1 samples came too late") {
		t.Errorf("notes %q", notes)
	}
	// An interval that is asked for without a length is a second.
	if list := tables(t, threeThreads().b, perfdata.TableOptions{By: by(counts.Interval)}); len(list) != 5 || list[1].Start != 1 {
		t.Errorf("%d tables of a second", len(list))
	}
}

// TestGroupReads counts the growth of a group's counters between samples of its leader,
// for each thread that inherited it.
func TestGroupReads(t *testing.T) {
	const (
		kind    = perffile.SampleIdentifier | perffile.SampleTID | perffile.SampleRead
		format  = uint64(perffile.FormatGroup | perffile.FormatID | perffile.FormatTotalTimeEnabled | perffile.FormatTotalTimeRunning)
		inherit = 1 << 1
	)
	r := little().pipe()
	r.record(perffile.RecordHeaderAttr, 0, append(r.attr(0, 0, 1000, uint64(kind), format, inherit), r.body().u64(1).b...))
	r.record(perffile.RecordHeaderAttr, 0, append(r.attr(0, 1, 0, uint64(kind), format, inherit), r.body().u64(2).b...))
	sample := func(tid uint32, enabled, running, cycles, instructions uint64) {
		r.record(perffile.RecordSample, 2, r.body().u64(1).u32(10, tid).u64(2, enabled, running, cycles, 1, instructions, 2).b)
	}
	sample(10, 100, 100, 1000, 500)
	sample(11, 50, 50, 70, 30) // its own counters
	sample(10, 200, 150, 1600, 500)
	sample(10, 300, 200, 1700, 900)
	sample(12, 10, 10, 500, 1)
	sample(12, 5, 5, 40, 1) // another thread with the number of one that has ended
	table := tables(t, r.b, perfdata.TableOptions{By: by(counts.Thread)})[0]
	for _, w := range []struct {
		row, col        int
		value           float64
		samples         int64
		enabled, active float64
	}{
		// Scaled by enabled/running.
		{0, 0, 1700 * 300. / 200, 3, 300, 200},
		{0, 1, 900 * 200. / 150, 2, 200, 150}, // nothing between the first two samples
		{1, 0, 70, 1, 50, 50},
		{1, 1, 30, 1, 50, 50},
		{2, 0, 540, 2, 15, 15},
	} {
		c := table.Cell(w.row, w.col)
		if math.Abs(c.Value-w.value) > 1e-9 || c.Samples != w.samples || c.Enabled != w.enabled || c.Running != w.active {
			t.Errorf("%s in row %d: %+v, want %+v", table.Columns[w.col].Event, w.row, c, w)
		}
	}
}

// Samples whose periods are not known are not counted as if they were one event
// each.
func TestUnknownPeriods(t *testing.T) {
	r := little().pipe()
	r.record(perffile.RecordHeaderAttr, 0, r.attr(0, 0, 4000, uint64(perffile.SampleIP), 0, 1<<10))
	r.record(perffile.RecordSample, 2, r.body().u64(1).b)
	table := tables(t, r.b, perfdata.TableOptions{})[0]
	if c := table.Cell(0, 0); c.State != counts.Absent || len(table.Notes) != 1 || !strings.Contains(table.Notes[0].Text, "4000 Hz") {
		t.Errorf("%+v, %q", c, table.Notes)
	}
}

func TestTableNotes(t *testing.T) {
	r := threeThreads()
	r.record(perffile.RecordLost, 0, r.body().u64(1, 5).b)
	r.record(perffile.RecordThrottle, 0, r.body().u64(1, 2, 3).b)
	sampleAt(r, 99, 1, 1, 6e9, 0, 1) // nobody's
	r.record(perffile.RecordSample, 2, r.body().u64(1).b)
	r.record(perffile.RecordSample, 2, nil)
	r.b[len(r.b)-2] = 0 // a record of no bytes
	list := tables(t, r.b, perfdata.TableOptions{})
	if len(list) != 1 || list[0].Cell(0, 0).Value != 1500 {
		t.Fatalf("%d tables", len(list))
	}
	got := strings.Join(counts.Texts(list[0].Notes), "\n")
	for _, want := range []string{"the file is damaged at 0x", "5 records were lost", "50 %", "throttled 1 times", "1 samples were not counted", "1 records cannot be read"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the notes:\n%s", want, got)
		}
	}
}

// What was counted before the input failed is not lost, and neither is that it
// failed.
func TestTableInputFails(t *testing.T) {
	src := io.MultiReader(bytes.NewReader(threeThreads().b), iotest.ErrReader(errors.New("disk on fire")))
	r := perfdata.NewTableReader(src, "x.data", perfdata.TableOptions{})
	if !r.Next() || r.Table().Cell(0, 0).Value != 1500 {
		t.Errorf("no table, %v", r.Err())
	}
	if r.Next() || r.Err() == nil || !strings.Contains(r.Err().Error(), "disk on fire") {
		t.Errorf("error %v", r.Err())
	}
}

func TestNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		b    []byte
		want string
	}{
		"no records": {little().pipe().b, "neither samples nor counts"},
		"a trace": {little().pipe().record(perffile.RecordAuxtrace, 0, little().u64(8, 0, 0).u32(0, 0, 0, 0).b).u64(1).b,
			"a hardware trace and no samples"},
		"cut off": {samplesPipe(little()).u32(9).b, "cut off before it held"},
		"damaged": {samplesPipe(little()).u64(9).b, "a record (SAMPLE) of 0 bytes"},
		"no file": {[]byte("hello, world"), "this is no perf.data"},
	} {
		r := perfdata.NewTableReader(bytes.NewReader(tt.b), "x.data", perfdata.TableOptions{})
		if r.Next() || r.Err() == nil || !strings.Contains(r.Err().Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, r.Err(), tt.want)
		} else {
			oneLine(t, r.Err())
		}
	}
}

// statFile is a recording of perf stat record with intervals on two processors: of a group and
// a refused event.
func statFile(t *testing.T, interval uint64) []byte {
	events := someEvents()
	events[2].IDs = nil
	for _, e := range events {
		e.Attr.ReadFormat = perffile.FormatTotalTimeEnabled | perffile.FormatTotalTimeRunning
	}
	f := someFeatures()
	f.Stat = true
	stat := func(id uint64, cpu int, value, enabled, running uint64) perfdata.Record {
		return &perfdata.Stat{ID: id, CPU: cpu, Value: value, Enabled: enabled, Running: running}
	}
	update := func(kind uint64, content []byte) perfdata.Record {
		r := little()
		return rawRecord{r.record(perffile.RecordEventUpdate, 0, r.body().u64(kind, 41).bytes(content...).b)}
	}
	return writeFile(t, perfwrite.WriterOptions{Events: events}, f,
		update(0, []byte("msec\x00\x00\x00\x00")), update(1, little().u64(math.Float64bits(1e-6)).b),
		&perfdata.ThreadMap{Threads: []perfdata.MappedThread{{TID: -1}}},
		&perfdata.CPUMap{CPUs: []int{0, 1}},
		&perfdata.StatConfig{Aggregation: 1, Interval: interval, Scale: true},
		stat(41, 0, 1e6, 100, 100), stat(42, 1, 2e6, 100, 100), stat(43, 0, 40, 100, 50), stat(43, 1, 0, 100, 0),
		&perfdata.StatRound{Time: 1e8, Final: interval == 0},
		stat(41, 0, 4e6, 200, 200), stat(42, 1, 2e6, 200, 200), stat(43, 0, 70, 200, 150), stat(43, 1, 9, 200, 100),
		&perfdata.StatRound{Time: 3e8},
		stat(41, 0, 5e6, 300, 300), // as perf stops the counters
	)
}

func TestStatTables(t *testing.T) {
	list := tables(t, statFile(t, 100), perfdata.TableOptions{})
	if len(list) != 2 {
		t.Fatalf("%d tables, want 2", len(list))
	}
	for i, w := range []struct {
		start, duration float64
		clock           [2]float64
		faults          [2]counts.Cell
	}{
		{0, 0.1, [2]float64{1, 2}, [2]counts.Cell{{State: counts.Counted, Value: 80, Enabled: 100, Running: 50}, {State: counts.NotCounted, Enabled: 100}}},
		{0.1, 0.2, [2]float64{3, 0}, [2]counts.Cell{{State: counts.Counted, Value: 30, Enabled: 100, Running: 100}, {State: counts.Counted, Value: 9, Enabled: 100, Running: 100}}},
	} {
		table := list[i]
		if table.Start != w.start || math.Abs(table.Duration-w.duration) > 1e-12 || !table.Interval || len(table.Scopes) != 2 {
			t.Fatalf("table %d: %v %v %v %+v", i, table.Start, table.Duration, table.Interval, table.Scopes)
		}
		if table.CPU != "GenuineIntel-6-55-4" || table.Label != "prog -x" || table.Layout != list[0].Layout {
			t.Errorf("table %d: CPU %q, label %q", i, table.CPU, table.Label)
		}
		for cpu := range 2 {
			if s := table.Scopes[cpu]; s.Kind != counts.CPU || s.CPU != cpu || s.Core != cpu || s.Socket != 0 || s.Die != 0 || s.Node != 0 {
				t.Errorf("scope %+v", s)
			}
			if c := table.Cell(cpu, 0); math.Abs(c.Value-w.clock[cpu]) > 1e-9 {
				t.Errorf("table %d, clock of CPU%d: %v", i, cpu, c.Value)
			}
			if c := *table.Cell(cpu, 1); c != w.faults[cpu] {
				t.Errorf("table %d, faults of CPU%d: %+v, want %+v", i, cpu, c, w.faults[cpu])
			}
			if c := table.Cell(cpu, 2); c.State != counts.NotSupported {
				t.Errorf("a refused event: %+v", c)
			}
		}
		if c := table.Columns; c[0].Unit != "msec" || c[0].Group != 1 || c[1].Group != 1 || c[2].Group != 0 {
			t.Errorf("columns %+v", c)
		}
	}
	// Without intervals the first round has it all.
	list = tables(t, statFile(t, 0), perfdata.TableOptions{})
	if len(list) != 1 || list[0].Interval || list[0].Duration != 0.1 || math.Abs(list[0].Cell(0, 0).Value-1) > 1e-9 {
		t.Errorf("without intervals: %d tables, %+v", len(list), list[0].Cell(0, 0))
	}
}

func TestStatThreads(t *testing.T) {
	events := someEvents()[:1]
	events[0].Leader = nil
	b := writeFile(t, perfwrite.WriterOptions{Events: events}, &perfdata.Features{Stat: true},
		&perfdata.ThreadMap{Threads: []perfdata.MappedThread{{TID: 50, Comm: []byte("a")}, {TID: 51, Comm: []byte("b")}}},
		&perfdata.CPUMap{CPUs: []int{-1}},
		&perfdata.StatConfig{Scale: true},
		&perfdata.Stat{ID: 41, CPU: 0, Thread: 0, Value: 5, Enabled: 1, Running: 1},
		&perfdata.Stat{ID: 42, CPU: -1, Thread: 1, Value: 6, Enabled: 1, Running: 1},
		&perfdata.Stat{ID: 77, CPU: -1, Thread: 1, Value: 6, Enabled: 1, Running: 1},
	) // killed before the round ended
	list := tables(t, b, perfdata.TableOptions{})
	if len(list) != 1 || len(list[0].Scopes) != 2 || !math.IsNaN(list[0].Duration) {
		t.Fatalf("%+v", list)
	}
	for i, label := range []string{"a-50", "b-51"} {
		if s := list[0].Scopes[i]; s.Label != label || s.Kind != counts.Thread || s.TID != 50+i || s.CPU != counts.Unknown {
			t.Errorf("scope %+v", s)
		}
		if v := list[0].Cell(i, 0).Value; v != float64(5+i) {
			t.Errorf("%s: %v", label, v)
		}
	}
	if notes := list[0].Notes; len(notes) != 1 || !strings.Contains(notes[0].Text, "1 counts were left out") {
		t.Errorf("notes %q", notes)
	}
}

// Scopes without end are put together in one, and counted all the same.
func TestManyScopes(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 300000 threads")
	}
	r := samplesPipe(little())
	const n = 300_000
	for i := range uint32(n) {
		sampleAt(r, 41, i, i, uint64(i), 0, 1)
	}
	table := tables(t, r.b, perfdata.TableOptions{By: by(counts.Thread)})[0]
	sum := 0.0
	for i := range table.Scopes {
		sum += table.Cell(i, 0).Value
	}
	if last := table.Scopes[len(table.Scopes)-1]; sum != n || len(table.Scopes) > 1<<18+1 || last.Label != "others" || len(table.Notes) != 1 {
		t.Errorf("%v samples in %d scopes, the last %+v; %q", sum, len(table.Scopes), last, table.Notes)
	}
}

func TestTestdataCgroups(t *testing.T) {
	b, err := os.ReadFile("testdata/cgroups.data")
	if err != nil {
		t.Fatal(err)
	}
	table := tables(t, b, perfdata.TableOptions{By: by(counts.Cgroup)})[0]
	if len(table.Scopes) != 1 || table.Scopes[0].Kind != counts.Cgroup || table.Scopes[0].Cgroup != "/" {
		t.Errorf("scopes %+v", table.Scopes)
	}
}

// Where samples do not have the processor, it is the one that the id was opened
// on.
func TestInstances(t *testing.T) {
	const kind = perffile.SampleIdentifier | perffile.SampleIP
	r := little().pipe()
	r.record(perffile.RecordHeaderAttr, 0, append(r.attr(1, 2, 1, uint64(kind), 0, 0), r.body().u64(5, 6).b...))
	r.record(perffile.RecordIDIndex, 0, r.body().u64(2, 5, 0, 3, ^uint64(0), 6, 1, 4, 77).b)
	r.record(perffile.RecordSample, 2, r.body().u64(6, 1).b)
	table := tables(t, r.b, perfdata.TableOptions{By: by(counts.CPU)})[0]
	if len(table.Scopes) != 1 || table.Scopes[0].CPU != 4 {
		t.Errorf("scopes %+v", table.Scopes)
	}
	d := open(t, r.b)
	for d.Next() {
	}
	if e, cpu, tid := d.Instance(5); e != d.Events()[0] || cpu != 3 || tid != -1 {
		t.Errorf("instance 5: %v, CPU %d, thread %d", e, cpu, tid)
	}
	if e, cpu, tid := d.Instance(6); e == nil || cpu != 4 || tid != 77 {
		t.Errorf("instance 6: %v, CPU %d, thread %d", e, cpu, tid)
	}
	if e, cpu, tid := d.Instance(7); e != nil || cpu != -1 || tid != -1 {
		t.Errorf("instance 7: %v, CPU %d, thread %d", e, cpu, tid)
	}
}

// Names that a file brings cannot control a terminal.
func TestNamesAreClean(t *testing.T) {
	r := samplesPipe(little())
	r.record(perffile.RecordEventUpdate, 0, r.body().u64(2, 41).bytes([]byte("bad\n\x1b[31mname\xff\x00")...).b)
	r.record(perffile.RecordComm, 0, r.body().u32(100, 100).bytes([]byte("a\rb\x00\x00\x00\x00\x00")...).b)
	r.b = rawSamples(r, 1)
	table := tables(t, r.b, perfdata.TableOptions{By: by(counts.Thread)})[0]
	if got := table.Columns[0].Event; got != "bad\ufffd\ufffd[31mname\ufffd" {
		t.Errorf("event %q", got)
	}
	if got := table.Scopes[0].Label; got != "a\ufffdb-100" {
		t.Errorf("thread %q", got)
	}
}

// Events that come after the first samples of a pipe get their own columns, also in open
// intervals.
func TestLateEvents(t *testing.T) {
	const kind = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU | perffile.SamplePeriod
	r := threeThreads()
	r.record(perffile.RecordHeaderAttr, 0, append(r.attr(1, 2, 1, uint64(kind), 0, 0), r.body().u64(3).b...))
	sampleAt(r, 3, 10, 11, 2.5e9, 0, 9)
	reader := perfdata.NewTableReader(bytes.NewReader(r.b), "late.data", perfdata.TableOptions{})
	if reader.Reader() != nil {
		t.Error("a reader before the first table")
	}
	reader.Keep(by(counts.Thread))
	if !reader.Next() {
		t.Fatal(reader.Err())
	}
	table := reader.Table()
	if len(table.Columns) != 3 || table.Columns[2].Event != "page-faults" || len(table.Scopes) != 3 {
		t.Fatalf("%+v %+v", table.Columns, table.Scopes)
	}
	for i, want := range [][3]float64{{100, 0, 0}, {200, 7, 9}, {1200, 0, 0}} {
		for j, v := range want {
			if got := table.Cell(i, j).Value; got != v {
				t.Errorf("%s of %s: %v, want %v", table.Columns[j].Event, table.Scopes[i].Label, got, v)
			}
		}
	}
	if reader.Reader().Stats().Samples != 6 {
		t.Errorf("%+v", reader.Reader().Stats())
	}
}

// What is found behind the last interval of perf stat record is not lost.
func TestStatNotes(t *testing.T) {
	for interval, where := range map[uint64]string{100: "behind", 0: "in the table"} {
		b := statFile(t, interval)
		le := binary.LittleEndian
		le.PutUint64(b[48:], le.Uint64(b[48:])-8) // the data ends inside its last record
		r := perfdata.NewTableReader(bytes.NewReader(b), "x.data", perfdata.TableOptions{})
		var notes []counts.Note
		for r.Next() {
			notes = r.Table().Notes
		}
		if where == "behind" {
			notes = r.Notes()
		} else if r.Notes() != nil {
			t.Errorf("twice: %q", r.Notes())
		}
		if r.Err() != nil || len(notes) != 1 || !strings.Contains(notes[0].Text, "is damaged at 0x") {
			t.Errorf("%s: %v, %q", where, r.Err(), notes)
		}
	}
}
