package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	pprof "github.com/google/pprof/profile"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A callPath is a stack of the example and how its samples are spread: of the rates of a
// function that waits for memory or one that runs.
type callPath struct {
	chain  []uint64 // the innermost first
	waits  bool
	cycles float64 // in millions
}

// callPaths are the stacks of the example: main loads a table, and then answers queries.
// Each query looks up a hash.
var callPaths = []callPath{
	{[]uint64{0x10110, 0x10020}, true, 1},
	{[]uint64{0x10310, 0x10220, 0x10030}, true, 3},
	{[]uint64{0x10410, 0x10320, 0x10220, 0x10030}, false, 2},
	{[]uint64{0x10210, 0x10030}, false, 1},
	{[]uint64{0x10410, 0x10110, 0x10020}, false, 1},
}

// newExample begins a recording of process 42, whose code examples/…/perf-42.map names.
func newExample(t testing.TB, file string, events []*perfdata.Event) (*perfwrite.Writer, func()) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := perfwrite.NewWriter(f, perfwrite.WriterOptions{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	user := perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}
	for _, rec := range []perfdata.Record{
		&perfdata.Comm{PID: 42, TID: 42, Comm: []byte("server")},
		&perfdata.Mmap{Header: user, PID: 42, TID: 42, Addr: 0x10000, Len: 0x1000, Filename: []byte("//anon")},
	} {
		if err := w.WriteRecord(rec, perfdata.Trailer{ID: 1}); err != nil {
			t.Fatal(err)
		}
	}
	return w, func() {
		if err := w.Close(&perfdata.Features{CPUID: "GenuineIntel,6,85,4", Cmdline: []string{"perf", "record", "-g", "--", "./server"}}); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// writeSample writes a sample of words.
func writeSample(t testing.TB, w *perfwrite.Writer, misc perfdata.Misc, words ...uint64) {
	t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, uint32(perffile.RecordSample)), uint16(misc)), uint16(8+8*len(words)))
	for _, v := range words {
		b = le.AppendUint64(b, v)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
}

// task is the word of a sample that says whose it is.
const task = 42<<32 | 42

// recordCalls writes a recording with callchains, with so many samples for a million
// cycles.
func recordCalls(t testing.TB, file string, samples float64) {
	t.Helper()
	var events []*perfdata.Event
	period := uint64(1e6 / samples)
	for i, e := range topdown {
		events = append(events, &perfdata.Event{Name: e.name, IDs: []uint64{uint64(i + 1)}, Attr: perfdata.Attr{
			Type: perffile.TypeRaw, SamplePeriod: period, Flags: perffile.FlagSampleIDAll,
			SampleType: perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCallchain}})
	}
	w, end := newExample(t, file, events)
	time := uint64(1)
	for i, e := range topdown {
		for _, c := range callPaths {
			n := e.run
			if c.waits {
				n = e.wait
			}
			for range int(math.Round(c.cycles * n / float64(period))) {
				time += 20_000
				chain := append([]uint64{perffile.ContextUser}, c.chain...)
				words := append([]uint64{uint64(i + 1), c.chain[0], task, time, uint64(len(chain))}, chain...)
				writeSample(t, w, perfdata.Misc(perfdata.ModeUser), words...)
			}
		}
	}
	end()
}

const stacksRoot = "../../examples/stacks"

// TestExampleStacks has the recordings of the examples of docs/export.md and
// docs/latency.md, which are made here: -update makes them anew.
func TestExampleStacks(t *testing.T) {
	for name, record := range map[string]func(file string){
		"stacks.data": func(file string) { recordCalls(t, file, 20) },
		"loads.data":  func(file string) { recordLoads(t, file) },
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

// exported exports a recording and returns the file.
func exported(t testing.TB, args ...string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out")
	runMain(t, append([]string{"report", "-o", file}, args...)...)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func exportedPprof(t testing.TB, args ...string) *pprof.Profile {
	t.Helper()
	p, err := pprof.ParseData(exported(t, append([]string{"--format", "pprof"}, args...)...))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return p
}

// flat adds up a profile's values by the function that they are in, the function around
// what was inlined.
func flat(p *pprof.Profile, typ int) map[string]float64 {
	out := map[string]float64{}
	for _, s := range p.Sample {
		lines := s.Location[0].Line
		out[lines[len(lines)-1].Function.Name] += float64(s.Value[typ])
	}
	return out
}

// TestPprofIsTheReport: a function's slots in a profile are its share in the report times its
// slots, and events are counts.
func TestPprofIsTheReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stacks.data")
	recordCalls(t, file, 200)
	p := exportedPprof(t, "--smt", "off", "--sysroot", stacksRoot, file)
	r := reportPlaces(t, "--smt", "off", "--by", "function", "--sysroot", stacksRoot, file)
	const width = 4
	nodes := 0
	for i, typ := range p.SampleType {
		got := flat(p, i)
		for _, a := range r.Accounts[1:] {
			cycles := a.Scope.Share * 8e6
			for _, n := range a.Nodes {
				if n.Name != typ.Type || n.Value == nil {
					continue
				}
				nodes++
				if want := *n.Value * cycles * width; typ.Unit != "slots" || !(math.Abs(got[a.Scope.Function]-want) <= 10) {
					t.Errorf("%s of %s: %v %s, want %v", n.Name, a.Scope.Function, got[a.Scope.Function], typ.Unit, want)
				}
			}
			if typ.Type == "CPU_CLK_UNHALTED.THREAD" && !(math.Abs(got[a.Scope.Function]-cycles) <= 1) {
				t.Errorf("%s has %v cycles, want %v", a.Scope.Function, got[a.Scope.Function], cycles)
			}
		}
	}
	if nodes < 4*4 {
		t.Errorf("%d nodes of functions were compared", nodes)
	}
	if p.DefaultSampleType != "CPU_CLK_UNHALTED.THREAD" {
		t.Errorf("the default is %s", p.DefaultSampleType)
	}
}

// TestFirefoxIsPprof: both formats have the same threads with the same amounts of each type, but for
// what pprof rounds.
func TestFirefoxIsPprof(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stacks.data")
	recordCalls(t, file, 200)
	args := []string{"--smt", "off", "--sysroot", stacksRoot, file}
	p := exportedPprof(t, args...)
	var f struct {
		Threads []struct {
			Name, ProcessName string
			Samples           struct{ Weight []float64 }
		}
	}
	if err := json.Unmarshal(exported(t, append([]string{"--format", "firefox"}, args...)...), &f); err != nil {
		t.Fatal(err)
	}
	got, want := map[string]float64{}, map[string]float64{}
	for _, x := range f.Threads {
		for _, v := range x.Samples.Weight {
			got[x.ProcessName+" "+x.Name] += v
		}
	}
	for _, s := range p.Sample {
		for i, v := range s.Value {
			if v != 0 {
				want[p.SampleType[i].Type+" ("+p.SampleType[i].Unit+") "+s.Label["thread"][0]] += float64(v)
			}
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 0.5*float64(len(p.Sample)))); diff != "" || len(want) < 9 {
		t.Errorf("amounts of threads (-pprof +firefox):\n%s", diff)
	}
}

// TestStacksKeepCallers: a function that is called from two places has its amounts where
// it was called from.
func TestStacksKeepCallers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stacks.data")
	recordCalls(t, file, 200)
	out := string(exported(t, "--format", "collapsed", "--nodes", "Retiring", "--smt", "off", "--sysroot", stacksRoot, file))
	// hash retires 0.4 of its slots; two thirds of its cycles are in lookup.
	const want = "server;main;load_table 400000\nserver;main;load_table;hash 1600000\nserver;main;query 1600000\nserver;main;query;lookup 1200000\nserver;main;query;lookup;hash 3200000\n"
	if out != want {
		t.Errorf("Retiring:\n%swant:\n%s", out, want)
	}
}

// TestExportCPI exports a method whose nodes are cycles per instruction.
func TestExportCPI(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpi.data")
	recordRates(t, file, 1000, []rate{{"PM_RUN_CYC", 1e6, 1e6}, {"PM_RUN_INST_CMPL", 0.5e6, 1e6}, {"PM_CMPLU_STALL", 0.8e6, 0.1e6}, {"PM_GCT_NOSLOT_CYC", 0.1e6, 0.2e6}, {"PM_1PLUS_PPC_CMPL", 0.1e6, 0.7e6}}, 0)
	p := exportedPprof(t, "--cpu", "power7", "--model", "power7-cpi", "--nodes", "STALL_CPI,RUN_CPI", "--sysroot", exampleRoot, file)
	want := map[string]map[string]float64{"RUN_CPI": {"wait": 3e6, "run": 1e6}, "STALL_CPI": {"wait": 2.4e6, "run": 0.1e6}}
	for i, typ := range p.SampleType {
		if diff := cmp.Diff(want[typ.Type], flat(p, i)); diff != "" || typ.Unit != "cycles" {
			t.Errorf("%s in %s (-want +got):\n%s", typ.Type, typ.Unit, diff)
		}
	}
	if len(p.SampleType) != 2 {
		t.Errorf("%d types", len(p.SampleType))
	}
}

// recordDeep has perf record a program of known stacks; it skips the test if that cannot
// be.
func recordDeep(t testing.TB, args ...string) (dir string) {
	t.Helper()
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Skip("there is no perf")
	}
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	dir = t.TempDir()
	source, err := filepath.Abs("../source/samples/testdata/deep.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range [][]string{
		{compiler, "-g", "-O0", "-fno-omit-frame-pointer", "-o", "deep", source},
		append(append([]string{perf, "record", "-q", "-o", "perf.data"}, args...), "./deep"),
	} {
		var out []byte
		// Some versions of perf abort now and then when they look for build ids.
		for range 5 {
			c := exec.Command(cmd[0], cmd[1:]...)
			c.Dir = dir
			if out, err = c.CombinedOutput(); err == nil {
				break
			}
		}
		if err != nil {
			t.Skipf("%s: %v: %s", strings.Join(cmd, " "), err, out)
		}
	}
	return dir
}

// perfReport returns what perf report prints for each function: its shares, of itself or
// first with its callees.
func perfReport(t testing.TB, file string, args ...string) map[string][]float64 {
	t.Helper()
	out, err := exec.Command("perf", append([]string{"report", "-i", file, "--stdio", "-q", "-g", "none", "--percent-limit", "0", "-t", ";"}, args...)...).Output()
	if err != nil {
		t.Skipf("perf report: %v", err)
	}
	list := map[string][]float64{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), ";")
		name := strings.TrimSpace(fields[len(fields)-1])
		var shares []float64
		for _, f := range fields[:len(fields)-1] {
			if v, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(f), "%"), 64); err == nil {
				shares = append(shares, v)
			}
		}
		if m := regexp.MustCompile(`^\[[.k]\] (\w+)$`).FindStringSubmatch(name); m != nil && len(shares) > 0 {
			list[m[1]] = shares
		}
	}
	return list
}

// TestPprofAgainstPerf compares what functions have in a profile, with and without what
// they call, with what perf report prints.
func TestPprofAgainstPerf(t *testing.T) {
	t.Parallel()
	file := filepath.Join(recordDeep(t, "-g", "-e", "cpu-clock:u", "-c", "500000"), "perf.data")
	p := exportedPprof(t, file)
	total, self, with := 0.0, flat(p, 0), map[string]float64{}
	for _, s := range p.Sample {
		total += float64(s.Value[0])
		var seen []string
		for _, l := range s.Location {
			for _, line := range l.Line {
				if name := line.Function.Name; !slices.Contains(seen, name) {
					seen = append(seen, name)
					with[name] += float64(s.Value[0])
				}
			}
		}
	}
	for name, shares := range perfReport(t, file, "--no-children", "-F", "overhead,sym") {
		if got := 100 * self[name] / total; !(math.Abs(got-shares[0]) <= 0.011) {
			t.Errorf("%s: %.2f %% by itself, perf report has %.2f %%", name, got, shares[0])
		}
	}
	compared := 0
	for name, shares := range perfReport(t, file, "--children", "-F", "overhead_children,overhead,sym") {
		if !slices.Contains([]string{"main", "work", "recurse", "leaf", "other"}, name) {
			continue
		}
		compared++
		if got := 100 * with[name] / total; !(math.Abs(got-shares[0]) <= 0.011) {
			t.Errorf("%s: %.2f %% with what it calls, perf report has %.2f %%", name, got, shares[0])
		}
	}
	if compared != 5 {
		t.Errorf("%d functions were compared", compared)
	}
}
