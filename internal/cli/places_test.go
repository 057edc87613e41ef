package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// runMain runs a command, which must succeed, and returns its output.
func runMain(t testing.TB, args ...string) string {
	t.Helper()
	var out, msg bytes.Buffer
	if status := Main(context.Background(), args, strings.NewReader(""), &out, &msg); status != 0 {
		t.Fatalf("cyclestack %s: exit status %d: %s", strings.Join(args, " "), status, msg.String())
	}
	return out.String()
}

// A placeReport is what the tests read of a report in JSON.
type placeReport struct {
	Model    struct{ Name string }
	Accounts []struct {
		Scope struct {
			Kind, Label, Function, Module string
			Of                            string `json:"share_of"`
			Share                         float64
			Samples                       int     `json:"share_samples"`
			Duration                      float64 `json:"duration_s"`
		}
		Nodes []struct {
			Name         string
			Value, Error *float64
			Reliable     bool
		}
		Counts []struct {
			Event string
			Value *float64
		}
	}
}

func reportPlaces(t testing.TB, args ...string) placeReport {
	t.Helper()
	var r placeReport
	if err := json.Unmarshal([]byte(runMain(t, append([]string{"report", "--format", "json"}, args...)...)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A rate is how many events happen in a million cycles of two functions: one that
// waits for memory, and one that waits for instructions.
type rate struct {
	name      string
	wait, run float64
}

// topdown are the events of the first level on a Skylake.
var topdown = []rate{
	{"CPU_CLK_UNHALTED.THREAD", 1e6, 1e6},
	{"IDQ_UOPS_NOT_DELIVERED.CORE", 0.2e6, 2e6},
	{"UOPS_ISSUED.ANY", 0.6e6, 1.6e6},
	{"UOPS_RETIRED.RETIRE_SLOTS", 0.4e6, 1.6e6},
	{"INT_MISC.RECOVERY_CYCLES", 0.2e6, 0},
}

// exampleRoot has the names of the functions of a recording that recordSkylake
// makes.
const exampleRoot = "../../examples/functions"

// recordSkylake writes a recording with so many samples for a million cycles. One
// function runs three times as long as another.
func recordSkylake(t testing.TB, file string, samples float64) {
	t.Helper()
	recordRates(t, file, samples, topdown, 0)
}

// recordRates is recordSkylake for any events. The events after the first so many are
// sampled precisely; with 0 no event is.
func recordRates(t testing.TB, file string, samples float64, rates []rate, precise int) {
	t.Helper()
	anonymous := recordedProgram{cpu: "GenuineIntel,6,85,4", mapping: "//anon", at: 0x10000, wait: 0x10010, run: 0x10110}
	anonymous.record(t, file, samples, rates, precise)
}

// A recordedProgram is a program with samples at two addresses.
type recordedProgram struct {
	cpu, mapping  string
	at, wait, run uint64
}

// record is recordRates for the program.
func (p *recordedProgram) record(t testing.TB, file string, samples float64, rates []rate, precise int) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var events []*perfdata.Event
	period := uint64(1e6 / samples)
	for i, e := range rates {
		events = append(events, &perfdata.Event{Name: e.name, IDs: []uint64{uint64(i + 1)}, Attr: perfdata.Attr{
			Type: perffile.TypeRaw, SamplePeriod: period, Flags: perffile.FlagSampleIDAll,
			SampleType: perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime}})
	}
	w, err := perfwrite.NewWriter(f, perfwrite.WriterOptions{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	code := &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: 42, TID: 42, Addr: p.at, Len: 0x1000, Filename: []byte(p.mapping)}
	if err := w.WriteRecord(code, perfdata.Trailer{ID: 1}); err != nil {
		t.Fatal(err)
	}
	time := uint64(1)
	add := func(id int, ip uint64, n float64) {
		misc := uint16(perfdata.ModeUser)
		if precise > 0 && id > precise {
			misc |= uint16(perffile.MiscExactIP)
		}
		for range int(math.Round(n / float64(period))) {
			time += 20_000
			le := binary.LittleEndian
			b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, uint32(perffile.RecordSample)), misc), 40)
			b = le.AppendUint64(le.AppendUint64(b, uint64(id)), ip)
			b = le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 42), 42), time)
			if _, err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, e := range rates {
		add(i+1, p.wait, 3*e.wait)
		add(i+1, p.run, e.run)
	}
	if err := w.Close(&perfdata.Features{CPUID: p.cpu, Cmdline: []string{"perf", "record", "--", "./prog"}}); err != nil {
		t.Fatal(err)
	}
}

// deeper are the events of three levels on a Skylake. Those of the first level are
// sampled precisely.
var deeper = append([]rate{
	{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0.5e6, 0.02e6},
	{"CYCLE_ACTIVITY.STALLS_TOTAL", 0.6e6, 0.06e6},
	{"EXE_ACTIVITY.BOUND_ON_STORES", 0.02e6, 0.01e6},
	{"EXE_ACTIVITY.1_PORTS_UTIL", 0.1e6, 0.2e6},
	{"EXE_ACTIVITY.2_PORTS_UTIL", 0.1e6, 0.3e6},
	{"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0.03e6, 0.4e6},
	{"BR_MISP_RETIRED.ALL_BRANCHES", 0.05e6, 0},
	{"MACHINE_CLEARS.COUNT", 0.02e6, 0},
	{"CYCLE_ACTIVITY.STALLS_L1D_MISS", 0.45e6, 0.01e6},
	{"CYCLE_ACTIVITY.STALLS_L2_MISS", 0.4e6, 0.01e6},
	{"CYCLE_ACTIVITY.STALLS_L3_MISS", 0.35e6, 0},
}, topdown...)

// TestExampleRecording has the recordings of the examples, which are made here: -update
// makes them anew.
func TestExampleRecording(t *testing.T) {
	for name, record := range map[string]func(file string){
		"functions.data": func(file string) { recordSkylake(t, file, 50) },
		"levels.data":    func(file string) { recordRates(t, file, 100, deeper, len(deeper)-len(topdown)) },
	} {
		example := filepath.Join("../../examples", name)
		if *update {
			record(example)
		}
		file := filepath.Join(t.TempDir(), name)
		record(file)
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(example); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is made here (%v)", example, err)
		}
	}
}

// TestReportFunctions has the first level of the top-down method for functions with
// known counts. The errors shrink as the square root of the samples.
func TestReportFunctions(t *testing.T) {
	want := map[string]map[string]float64{
		"wait": {"Retiring": 0.1, "Frontend_Bound": 0.05, "Bad_Speculation": 0.25, "Backend_Bound": 0.6},
		"run":  {"Retiring": 0.4, "Frontend_Bound": 0.5, "Bad_Speculation": 0, "Backend_Bound": 0.1},
	}
	errors := map[float64]float64{}
	for _, samples := range []float64{5, 1000, 4000} {
		file := filepath.Join(t.TempDir(), "perf.data")
		recordSkylake(t, file, samples)
		r := reportPlaces(t, "--by", "function", "--sysroot", exampleRoot, "--smt", "off", "--level", "1", file)
		if r.Model.Name != "tma" || len(r.Accounts) != 3 || r.Accounts[0].Scope.Kind != "run" {
			t.Fatalf("%d accounts of %s", len(r.Accounts), r.Model.Name)
		}
		for i, name := range []string{"wait", "run"} {
			a := &r.Accounts[1+i]
			if a.Scope.Function != name || a.Scope.Module != "perf-42.map" || a.Scope.Of != "CPU_CLK_UNHALTED.THREAD" || !(math.Abs(a.Scope.Share-[]float64{0.75, 0.25}[i]) <= 1e-9) {
				t.Errorf("place %d: %+v", i, a.Scope)
			}
			for _, n := range a.Nodes {
				if _, ok := want[name][n.Name]; !ok {
					continue
				}
				if n.Value == nil || !(math.Abs(*n.Value-want[name][n.Name]) <= 1e-9) || n.Error == nil || !(*n.Error > 0) {
					t.Errorf("%v samples, %s of %s: %v ± %v, want %v", samples, n.Name, name, *n.Value, n.Error, want[name][n.Name])
				}
				if n.Name == "Frontend_Bound" && name == "wait" {
					errors[samples] = *n.Error
					if reliable := samples > 5; n.Reliable != reliable {
						t.Errorf("%v samples, %s of %s: reliable %v", samples, n.Name, name, n.Reliable)
					}
				}
			}
		}
	}
	if ratio := errors[1000] / errors[4000]; !(math.Abs(ratio-2) <= 0.01) {
		t.Errorf("four times the samples: errors of %v", errors)
	}
}

// A workload is a program of two functions. One does a known multiple of the other's
// work.
type workload struct {
	name, source string
	build        []string // with the names of source and program appended
	heavy, light string   // the functions' names
}

// text is the source, with the number of its rounds.
func (w *workload) text() string {
	return strings.ReplaceAll(w.source, "ROUNDS", strconv.Itoa(testlong.Size(120, 400)))
}

var workloads = []workload{
	{"main.c", `
#include <stdlib.h>
#define STEPS(n) unsigned long x = 1; for (long i = 0; i < (n); i++) x = x * 6364136223846793005ul + 1442695040888963407ul; return x
__attribute__((noinline)) unsigned long heavy(long n) { STEPS(4 * n); }
__attribute__((noinline)) unsigned long light(long n) { STEPS(n); }
int main(void) { unsigned long sum = 0; for (int i = 0; i < ROUNDS; i++) sum += heavy(200000 + i) ^ light(200000 + i); return sum == 1; }
`, []string{"gcc", "-g", "-O1", "-o"}, "heavy", "light"},
	{"main.go", `package main

import "os"

//go:noinline
func heavy(n int) (x uint64) {
	for i := 0; i < 4*n; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func light(n int) (x uint64) {
	for i := 0; i < n; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func main() {
	sum := uint64(0)
	for i := 0; i < ROUNDS; i++ {
		sum += heavy(200000) ^ light(200000)
	}
	if sum == 1 {
		os.Exit(1)
	}
}
`, []string{"go", "build", "-trimpath=false", "-o"}, "main.heavy", "main.light"},
}

// recordWorkload builds and records a program, or skips the test where that cannot
// be done.
func recordWorkload(t testing.TB, w workload, args ...string) string {
	t.Helper()
	for _, tool := range []string{"perf", w.build[0]} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, w.name), []byte(w.text()), 0o666); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(w.build[0], append(w.build[1:], "prog", w.name)...)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !slices.Contains(args, "-c") {
		args = append([]string{"-F", "4000"}, args...)
	}
	record := exec.Command("perf", append(append([]string{"record", "-q", "-o", "perf.data"}, args...), "--", "./prog")...)
	record.Dir = dir
	record.Env = append(os.Environ(), "HOME="+dir) // perf keeps copies of what it records there
	if out, err := record.CombinedOutput(); err != nil {
		t.Skipf("perf cannot record here: %v: %.300s", err, out)
	}
	return filepath.Join(dir, "perf.data")
}

// perfShares are the shares of the functions that perf report prints.
func perfShares(t testing.TB, file string) map[string]float64 {
	t.Helper()
	c := exec.Command("perf", "report", "--no-children", "-g", "none", "--stdio", "--sort", "symbol", "-F", "overhead,sym", "-t", "\t", "-i", file)
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	shares := map[string]float64{}
	for line := range strings.Lines(string(out)) {
		percent, symbol, ok := strings.Cut(strings.TrimSpace(line), "\t")
		symbol, _, _ = strings.Cut(symbol, "\t") // some print empty columns after it
		share, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(percent), "%"), 64)
		if !ok || err != nil {
			continue
		}
		_, name, _ := strings.Cut(symbol, "] ")
		shares[strings.TrimSpace(name)] += share / 100
	}
	return shares
}

// TestReportWorkloads records programs on this machine. It compares the shares of their
// functions with those of perf report, and with the known multiple.
func TestReportWorkloads(t *testing.T) {
	for i, w := range workloads {
		for _, args := range [][]string{{"-e", "cpu-clock"}, {"-e", "cpu-clock", "-g"}, {"-e", "{cpu-clock,page-faults}:S"}} {
			if i > 0 && !testlong.Enabled() {
				continue
			}
			t.Run(w.name+" "+strings.Join(args, " "), func(t *testing.T) {
				file := recordWorkload(t, w, args...)
				r := reportPlaces(t, "--by", "function", file)
				got := map[string]float64{}
				for _, a := range r.Accounts[1:] {
					got[a.Scope.Function] += a.Scope.Share
				}
				// A machine that is busy otherwise takes time from either at random.
				if ratio := got[w.heavy] / got[w.light]; !(ratio > 2.5 && ratio < 6.5) {
					t.Errorf("%s has %v times the share of %s, want 4", w.heavy, ratio, w.light)
				}
				// Of a group perf takes the time between two samples too, but prints the
				// two events by themselves.
				want := perfShares(t, file)
				if len(want) == 0 || args[1] != "cpu-clock" {
					return
				}
				for name, share := range want {
					if share >= 0.005 && !(math.Abs(got[name]-share) <= 0.001) {
						t.Errorf("%s: %.4f, perf says %.4f", name, got[name], share)
					}
				}
			})
		}
	}
}

// TestReportLines finds the line of a loop, and the instructions of a function.
func TestReportLines(t *testing.T) {
	file := recordWorkload(t, workloads[0], "-e", "cpu-clock")
	lines := reportPlaces(t, "--by", "line", file)
	if got := lines.Accounts[1].Scope; got.Label != "main.c:4  (prog)" || !(math.Abs(got.Share-0.8) <= 0.15) {
		t.Errorf("the first line is %+v, want main.c:4 with 80 %%", got)
	}
	sum := 0.0
	for _, a := range reportPlaces(t, "--by", "instruction", file).Accounts[1:] {
		if a.Scope.Function == "heavy" {
			sum += a.Scope.Share
		}
	}
	if !(math.Abs(sum-0.8) <= 0.15) {
		t.Errorf("the instructions of heavy have %v, want 0.8", sum)
	}
	if got := reportPlaces(t, "--by", "module", file).Accounts[1].Scope; got.Label != "prog" || got.Share < 0.8 {
		t.Errorf("the first module is %+v", got)
	}
}

// TestReportSeveral adds up recordings of the same thing, how long they took among it, and
// refuses those of another processor.
func TestReportSeveral(t *testing.T) {
	dir := t.TempDir()
	record := func(name, cpu string) string {
		file := filepath.Join(dir, name)
		s := newSampler(t, file, sampledEvent{"cycles", 1000, 0, 0})
		s.mmap(0x400000, 0x1000, 0, "/bin/prog")
		s.happened(0, 100_000, 0x400010)
		s.close(cpu)
		return file
	}
	a, b, other := record("a.data", "GenuineIntel,6,85,4"), record("b.data", "GenuineIntel,6,85,7"), record("c.data", "AuthenticAMD,25,17,1")
	one, two := reportPlaces(t, "--by", "module", a).Accounts[0].Scope, reportPlaces(t, "--by", "module", "--together", a, a).Accounts[0].Scope
	if one.Samples != 100 || two.Samples != 200 || !(one.Duration > 0) || two.Duration != 2*one.Duration {
		t.Errorf("one has %d samples in %v s, twice the same %d in %v s", one.Samples, one.Duration, two.Samples, two.Duration)
	}
	for _, second := range []string{b, other} {
		var out, msg bytes.Buffer
		status := Main(t.Context(), []string{"report", "--by", "module", "--together", a, second}, strings.NewReader(""), &out, &msg)
		if status != exitInput || !strings.Contains(msg.String(), filepath.Base(second)) || !strings.Contains(msg.String(), "one processor at a time") {
			t.Errorf("status %d: %s", status, msg.String())
		}
	}
}

// TestReportShares: where no method fits, places are ordered by one event. A place with
// little of that event has a line if it has much of another.
func TestReportShares(t *testing.T) {
	file := filepath.Join(t.TempDir(), "perf.data")
	s := newSampler(t, file, sampledEvent{"raw 0xfff1", 1, 0, 0}, sampledEvent{"raw 0xfff2", 1, 0, 0})
	s.mmap(0x400000, 0x1000, 0, "/bin/prog")
	for _, place := range []struct {
		addr          uint64
		first, second float64 // samples
	}{{0x400010, 997, 77}, {0x400020, 2, 20}, {0x400030, 1, 3}} {
		s.happened(0, place.first, place.addr)
		s.happened(1, place.second, place.addr)
	}
	s.close("GenuineIntel,6,85,4")
	text := runMain(t, "report", "--by", "instruction", "--sysroot", t.TempDir(), "--width", "120", file)
	for place, want := range map[string]bool{"0x10": true, "0x20": true, "0x30": false} {
		if strings.Contains(text, place+" ") != want {
			t.Errorf("a line of %s: %v, want %v in\n%s", place, !want, want, text)
		}
	}
	if !strings.Contains(text, "1 more of 3 instructions, 0.1 % of") {
		t.Errorf("nothing about what is left out in\n%s", text)
	}
}

// TestReportPlacesJSON holds what is printed for places, with and without a method
// that fits, to the schema.
func TestReportPlacesJSON(t *testing.T) {
	t.Parallel()
	for _, by := range placeNames() {
		for _, cpu := range []string{"skylakex", "power7"} {
			text := runMain(t, "report", "--format", "json", "--by", by, "--cpu", cpu, "--sysroot", exampleRoot, "../../examples/functions.data")
			if err := testschema.Validate(t, report.Schema[report.Accounts](), text); err != nil {
				t.Errorf("by %s on %s: %#v", by, cpu, err)
			}
		}
	}
}

// TestReportOneEvent: of cycles alone a method can say no more than where they are, and
// of cycles and instructions their ratio.
func TestReportOneEvent(t *testing.T) {
	const text = 0x1000
	for _, tt := range []struct {
		events    []sampledEvent
		args      []string
		want, not []string
	}{
		{[]sampledEvent{{"cycles", 100, 0, 0}}, nil,
			[]string{"share of cycles", "user", "100.0 %", "where (40 samples)", "cyclestack report --by function"}, []string{"Info_", "Frontend_Bound"}},
		{[]sampledEvent{{"cycles", 100, 0, 0}}, []string{"-v"},
			[]string{"cycles by process, module", "shares only: no method for skylakex uses cycles", "100.0 %", "cyclestack report --by function"}, []string{"Info_", "Frontend_Bound"}},
		{[]sampledEvent{{"cycles", 100, 0, 0}}, []string{"--by", "function"},
			[]string{"cycles by function", "samples    function", "module"}, []string{"Info_"}},
		{[]sampledEvent{{"cycles", 100, 0, 0}, {"instructions", 100, 0, 0}}, nil,
			[]string{"Info_Thread_IPC", "cyclestack report --by function"}, nil},
		{[]sampledEvent{{"cycles", 100, 0, 0}, {"instructions", 100, 0, 0}}, []string{"--by", "function"},
			[]string{"IPC", "samples    function"}, []string{"CLKS", "MUX", "Likely"}},
	} {
		file := filepath.Join(t.TempDir(), "perf.data")
		s := newSampler(t, file, tt.events...)
		s.mmap(text, 0x1000, 0, "/nonexistent/app")
		for i := range tt.events {
			s.happened(i, 4000, text+8)
		}
		s.close("GenuineIntel-6-55-4")
		out, stderr, status := call(testkernel.Skylake(1), append(append([]string{"report"}, tt.args...), file)...)
		if status != 0 {
			t.Fatalf("%v: status %d: %s", tt.args, status, stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v of %d events: no %q:\n%s", tt.args, len(tt.events), want, out)
			}
		}
		for _, not := range tt.not {
			if strings.Contains(out, not) {
				t.Errorf("%v of %d events: %q:\n%s", tt.args, len(tt.events), not, out)
			}
		}
	}
}
