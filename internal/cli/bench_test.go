package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source"
)

// The benchmark's recording: perf stat -I -A -x, of 20 events on 2 CPUs.
const (
	benchIntervals = 10_000
	benchCPUs      = 2
)

// benchEvents are its events, with consistent counts in millions. They are those of
// examples/power7-cpi.txt, but two contradictory counts there are exchanged.
var benchEvents = []benchEvent{
	{"r400fa", 20642995}, {"r100f2", 6351700}, {"r4001a", 6592401}, {"r100f8", 27815093}, {"r4001c", 255657},
	{"r2001a", 1717232}, {"r200f4", 346189430}, {"r2004a", 3960811}, {"r4004a", 173599}, {"r4004e", 80958163},
	{"r4004c", 81233385}, {"r20016", 191318194}, {"r40018", 564560}, {"r20012", 216813544}, {"r40016", 8553663},
	{"r40012", 243815}, {"r20018", 16396}, {"r4000a", 310390576}, {"r2001c", 250666}, {"r2003c", 296680},
}

type benchEvent struct {
	code  string
	count float64
}

// skylakeEvents are those of the second level of top-down analysis, as toplev counts them.
var skylakeEvents = []benchEvent{
	{"CPU_CLK_UNHALTED.THREAD", 2e9}, {"INST_RETIRED.ANY", 2.2e9}, {"IDQ_UOPS_NOT_DELIVERED.CORE", 1.1e9},
	{"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 1.5e8}, {"UOPS_ISSUED.ANY", 2.9e9}, {"UOPS_RETIRED.RETIRE_SLOTS", 2.6e9},
	{"INT_MISC.RECOVERY_CYCLES", 6e7}, {"BR_MISP_RETIRED.ALL_BRANCHES", 5e6}, {"MACHINE_CLEARS.COUNT", 1e5}, {"UOPS_RETIRED.MACRO_FUSED", 2e8},
	{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 6e8}, {"EXE_ACTIVITY.BOUND_ON_STORES", 4e7}, {"CYCLE_ACTIVITY.STALLS_TOTAL", 8e8},
	{"EXE_ACTIVITY.1_PORTS_UTIL", 3e8}, {"EXE_ACTIVITY.2_PORTS_UTIL", 3.5e8}, {"CPU_CLK_UNHALTED.REF_TSC", 1.9e9}, {"UOPS_EXECUTED.THREAD", 2.9e9},
	{"BR_INST_RETIRED.ALL_BRANCHES", 4e8}, {"CYCLE_ACTIVITY.STALLS_L1D_MISS", 4e8}, {"CYCLE_ACTIVITY.STALLS_L2_MISS", 3e8},
}

// recording makes the benchmark's recording, with the rows of an interval by
// event as perf prints them, in memory. Either its counts go together, and vary
// by a hundredth, or they are random, so that each interval contradicts itself.
func recording(intervals int, sound bool) []byte {
	var b bytes.Buffer
	record(&b, benchEvents, intervals, sound)
	return b.Bytes()
}

// recordingFile makes it in a file, so that it counts for nothing in the memory
// that reading it takes.
func recordingFile(b *testing.B, intervals int, sound bool) (name string, size int64) {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "intervals.csv"))
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	record(w, benchEvents, intervals, sound)
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		b.Fatal(err)
	}
	return f.Name(), info.Size()
}

func record(w io.Writer, events []benchEvent, intervals int, sound bool) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range intervals {
		at := float64(i+1) + r.Float64()/1e3
		for _, ev := range events {
			for cpu := range benchCPUs {
				count := 1_000_000 + r.Int64N(2_000_000_000)
				if sound {
					count = int64(ev.count * (0.995 + 0.01*r.Float64()))
				}
				fmt.Fprintf(w, "%6d.%09d,CPU%d,%d,,%s,%d,%.2f,,\n", int(at), int((at-float64(int(at)))*1e9), cpu,
					count, ev.code, 160_000_000+r.Int64N(1000), 16+r.Float64())
			}
		}
	}
}

// BenchmarkIntervals reads the recording and makes the account of each CPU in
// each interval. rows/s is to be compared with 26,000 for toplev and 12,000
// for PerfSpect on the same input.
func BenchmarkIntervals(b *testing.B) {
	cat, err := model.Embedded()
	if err != nil {
		b.Fatal(err)
	}
	for _, counts := range []struct {
		name  string
		sound bool
	}{{"sound", true}, {"contradictory", false}} {
		b.Run(counts.name, func(b *testing.B) {
			file, size := recordingFile(b, benchIntervals, counts.sound)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				f, err := os.Open(file)
				if err != nil {
					b.Fatal(err)
				}
				n, bad := evaluateAll(b, cat, f)
				f.Close()
				if n != benchIntervals*benchCPUs || counts.sound && bad > 0 || !counts.sound && bad < n*9/10 {
					b.Fatalf("%d accounts, of which %d contradict themselves", n, bad)
				}
			}
			rows := float64(benchIntervals * benchCPUs * len(benchEvents))
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/1e6, "MB-from-OS")
		})
	}
}

// evaluateAll makes all accounts of a recording. It returns their number, and how many of them
// are contradictory.
func evaluateAll(t testing.TB, cat *model.Catalogue, data io.Reader) (n, contradicted int) {
	t.Helper()
	resolver, err := resolve.With(cat, resolve.Choice{CPU: "power7"})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := source.New(data, "bench.csv")
	if err != nil {
		t.Fatal(err)
	}
	r := rec.Tables(0)
	var m *resolve.Method
	total := counts.NewTotal(counts.By(0).With(counts.Interval).With(counts.CPU))
	var binding *account.Binding
	var acc *account.Account
	for r.Next() {
		if m, err = resolver.Table(r.Table(), "bench.csv", resolve.Request{}, m); err != nil {
			t.Fatal(err)
		}
		if err := total.Add(r.Table()); err != nil {
			t.Fatal(err)
		}
		table := total.Table()
		if binding == nil || binding.Layout != table.Layout {
			binding, acc = m.Account.Bind(table.Layout), nil
		}
		for row := range table.Scopes {
			acc = binding.Evaluate(table, account.Place{Self: row}, acc)
			n++
			if acc.Contradicted() {
				contradicted++
			}
		}
		total.Reset()
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return n, contradicted
}

// BenchmarkReport runs the whole command on a tenth of such recordings, with its output: as
// streams of the levels, and in the long form.
func BenchmarkReport(b *testing.B) {
	for cpu, events := range map[string][]benchEvent{"power7": benchEvents, "skylakex": skylakeEvents} {
		var data bytes.Buffer
		record(&data, events, benchIntervals/10, true)
		file := filepath.Join(b.TempDir(), cpu+".csv")
		if err := os.WriteFile(file, data.Bytes(), 0o644); err != nil {
			b.Fatal(err)
		}
		for _, tt := range []struct{ name, args string }{
			{"csv", "csv"}, {"csv-level2", "csv --level 2"}, {"csv-long", "csv -v"},
			{"json", "json"}, {"json-level1", "json --level 1"}, {"json-level2", "json --level 2"}, {"json-long", "json -v"}, {"tree", "tree"},
		} {
			b.Run(cpu+"-"+tt.name, func(b *testing.B) {
				benchReport(b, file, benchIntervals/10*benchCPUs*len(events), cpu, tt.args)
			})
		}
	}
}

// BenchmarkMachine reports 8,192 processors of one recording.
func BenchmarkMachine(b *testing.B) {
	const cpus = 8192
	file := filepath.Join(b.TempDir(), "machine.csv")
	var data bytes.Buffer
	r := rand.New(rand.NewPCG(1, 2))
	for _, ev := range benchEvents {
		for cpu := range cpus {
			fmt.Fprintf(&data, "CPU%d,%d,,%s,%d,%.2f,,\n", cpu, int64(ev.count*(0.995+0.01*r.Float64())), ev.code, 160_000_000, 16+r.Float64())
		}
	}
	if err := os.WriteFile(file, data.Bytes(), 0o644); err != nil {
		b.Fatal(err)
	}
	for _, tt := range []struct{ name, args string }{{"csv", "csv"}, {"json", "json"}, {"json-level1", "json --level 1"}, {"json-long", "json -v"}, {"tree", "tree"}} {
		b.Run(tt.name, func(b *testing.B) { benchReport(b, file, cpus*len(benchEvents), "power7", tt.args+" --by cpu") })
	}
}

// benchReport runs report with a format and more flags on a recording with so many rows.
func benchReport(b *testing.B, file string, rows int, cpu, format string) {
	args := append([]string{"report", "--cpu", cpu, "--by", "interval,cpu", file, "--format"}, strings.Fields(format)...)
	b.ReportAllocs()
	var out counter
	for b.Loop() {
		out = 0
		if s := Main(context.Background(), args, nil, &out, os.Stderr); s != 0 {
			b.Fatalf("exit status %d", s)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(out)/1e6, "MB")
}

// A counter counts what is written.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// TestMemory checks that the memory of reading and evaluating does not grow
// with the number of intervals: what is allocated for ten times as many is
// nearly the same.
func TestMemory(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	evaluateAll(t, cat, bytes.NewReader(recording(10, true)))
	for _, sound := range []bool{true, false} {
		allocated := func(intervals int) uint64 {
			data := recording(intervals, sound)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			evaluateAll(t, cat, bytes.NewReader(data))
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		few, many := allocated(100), allocated(1000)
		if many > few+few/10 {
			t.Errorf("counts that go together %v: %d bytes allocated for 100 intervals, %d for 1000", sound, few, many)
		}
	}
}
