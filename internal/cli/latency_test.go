package cli

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A memoryKind is loads of the example that are alike: how many are sampled, where their
// data comes from and is, and how long they take.
type memoryKind struct {
	samples     int
	source      uint64 // as the kernel writes it
	ip, addr    uint64
	least, more uint64 // cycles: from least on, up to more in addition
}

// The values of the kernel's union perf_mem_data_src of a Skylake server.
const (
	hitL1, hitLFB, hitL2, hitL3, hitRAM = 0x10268100142, 0x11868100242, 0x10468100442, 0x10668100842, 0x11a68501042
	missTLB                             = 0x10650100842 // in the L3, and the TLB was missed
)

// memoryKinds are the loads of the example: lookup misses the caches in a large table,
// hash finds its data near.
var memoryKinds = []memoryKind{
	{160, hitL1, 0x10410, 0x20008, 31, 12}, {60, hitLFB, 0x10310, 0x7f0000001000, 60, 200}, {70, hitL2, 0x10410, 0x20400, 31, 20},
	{80, hitL3, 0x10310, 0x7f0000002000, 50, 60}, {20, missTLB, 0x10310, 0x7f0000802000, 80, 90}, {110, hitRAM, 0x10310, 0x7f0000403000, 190, 260},
}

// recordLoads writes a recording of loads with their latencies.
func recordLoads(t testing.TB, file string) {
	t.Helper()
	const period = 5000
	e := &perfdata.Event{Name: "cpu/mem-loads,ldlat=30/P", IDs: []uint64{1}, Attr: perfdata.Attr{Type: perffile.TypeRaw, Config: 0x1cd, Config1: 30, Precise: 3,
		SamplePeriod: period, Flags: perffile.FlagSampleIDAll | perffile.FlagMmapData,
		SampleType: perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleAddr | perffile.SampleWeight | perffile.SampleDataSrc}}
	w, end := newExample(t, file, []*perfdata.Event{e})
	data := perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser) | perffile.MiscMmapData}
	for _, m := range []*perfdata.Mmap{
		{Header: data, PID: 42, TID: 42, Addr: 0x20000, Len: 0x1000, Filename: []byte("[heap]")},
		{Header: data, PID: 42, TID: 42, Addr: 0x7f0000000000, Len: 0x1000000, PgOff: 0x7f0000000000, Filename: []byte("//anon")},
	} {
		if err := w.WriteRecord(m, perfdata.Trailer{ID: 1}); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	time := uint64(1)
	for _, k := range memoryKinds {
		for range k.samples {
			time += 100_000
			writeSample(t, w, perfdata.Misc(perfdata.ModeUser)|perffile.MiscExactIP, 1, k.ip, task, time, k.addr, k.least+rng.Uint64N(k.more+1), k.source)
		}
	}
	end()
}

const loadsRoot = "../../examples/loads"

// A latencyReport is what the tests read of latencies in JSON.
type latencyReport struct {
	Schema  string
	Sampled []struct {
		Event     string
		Threshold int
		Facility  string
		All       latencyGroup
		Groups    []latencyGroup
	}
}

type latencyGroup struct {
	Name            string
	Samples         int
	Loads, Cycles   float64
	Share           float64  `json:"load_share"`
	Mean            float64  `json:"mean"`
	Error           *float64 `json:"mean_error"`
	TLB             float64  `json:"tlb_misses"`
	Quantiles, Bins []map[string]any
}

// TestSampledLatency reads the loads of a recording whose latencies are known.
func TestSampledLatency(t *testing.T) {
	file := filepath.Join(t.TempDir(), "loads.data")
	recordLoads(t, file)
	want := map[string]map[string]int{
		"level":    {"L1": 160, "LFB": 60, "L2": 70, "L3": 100, "RAM": 110},
		"function": {"lookup  (perf-42.map)": 270, "hash  (perf-42.map)": 230},
		"mapping":  {"[heap]": 230, "anonymous memory": 270},
	}
	for by, groups := range want {
		var r latencyReport
		out := runMain(t, "latency", "--format", "json", "--by", by, "--sysroot", loadsRoot, file)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		x := r.Sampled[0]
		if x.All.Samples != 500 || x.All.Loads != 500*5000 || x.Threshold != 30 || x.Facility != "PEBS load latency" || x.All.TLB != 0.04 {
			t.Errorf("%+v", x)
		}
		if len(x.Groups) != len(groups) {
			t.Errorf("by %s: %d groups, want %d", by, len(x.Groups), len(groups))
		}
		cycles := 0.0
		for _, g := range x.Groups {
			cycles += g.Cycles
			if g.Samples != groups[g.Name] || g.Loads != 5000*float64(groups[g.Name]) || g.Mean != g.Cycles/g.Loads || g.Error == nil {
				t.Errorf("by %s: %+v, want %d samples", by, g, groups[g.Name])
			}
		}
		if cycles != x.All.Cycles {
			t.Errorf("by %s: %v cycles in groups, %v in all", by, cycles, x.All.Cycles)
		}
	}
}

// TestLatencySchema holds the JSON of both kinds of latencies to its schema.
func TestLatencySchema(t *testing.T) {
	file := filepath.Join(t.TempDir(), "loads.data")
	recordLoads(t, file)
	for _, args := range [][]string{
		{"--sysroot", loadsRoot, file}, {"--by", "mapping", "--top", "1", file},
		{"../../examples/loop-latency-case1.txt", "../../examples/loop-latency-case2.txt"},
	} {
		if err := testschema.Validate(t, testschema.Rendered(t, "latency"), runMain(t, append([]string{"latency", "--format", "json"}, args...)...)); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	if testschema.Validate(t, testschema.Rendered(t, "latency"), `{"schema":"cyclestack.latency/v1","sampled":[{"event":"x"}]}`) == nil {
		t.Error("the schema takes anything")
	}
}

// TestLatencyOfPublishedSamples compares with what perf mem report prints of a published
// recording: 14 samples with weights that sum to 1725.
func TestLatencyOfPublishedSamples(t *testing.T) {
	t.Parallel()
	file := testshared.Dir(t, "corpus", "perfdata", "quipper-perf.data.weight_struct")
	var r latencyReport
	if err := json.Unmarshal([]byte(runMain(t, "latency", "--format", "json", file)), &r); err != nil {
		t.Fatal(err)
	}
	x := r.Sampled[0]
	if x.All.Samples != 14 || x.All.Cycles != 1725*10009 || x.Threshold != 64 {
		t.Errorf("%d samples, %v cycles, threshold %d", x.All.Samples, x.All.Cycles, x.Threshold)
	}
}

// TestLatencyOfOtherFiles: what has no latencies is told so in one line.
func TestLatencyOfOtherFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "source", "perfdata", "testdata")
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if filepath.Ext(f.Name()) != ".data" && filepath.Ext(f.Name()) != ".pipe" {
			continue
		}
		var out, msg bytes.Buffer
		status := Main(t.Context(), []string{"latency", filepath.Join(dir, f.Name())}, strings.NewReader(""), &out, &msg)
		stderr := msg.String()
		if status == 0 {
			if f.Name() != "mem.data" {
				t.Errorf("%s has latencies", f.Name())
			}
			continue
		}
		if status > 4 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d: %s", f.Name(), status, stderr)
		}
	}
}
