package cli

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/testperf/hardware"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// dumpedWeight is what perf report -D has of a sample's weights.
var (
	dumpedSample = regexp.MustCompile(`(?m)PERF_RECORD_SAMPLE\(IP, [^)]*\): \d+/\d+: (0x[0-9a-f]+) `)
	dumpedWeight = regexp.MustCompile(`(?m)^\.\.\. weight: (\d+),0x([0-9a-f]+),0x([0-9a-f]+)`)
)

// TestWeightsLikePerf compares the three weights of samples, by instruction, with what perf
// report -D prints: on Intel's processors the latencies of the access, of the instruction,
// and to its retirement. Of POWER's only the first is a latency of the whole.
func TestWeightsLikePerf(t *testing.T) {
	const parts = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleAddr | perffile.SampleWeightStruct | perffile.SampleDataSrc
	for _, power := range []bool{false, true} {
		f := hardware.New(t, &perfdata.Event{Name: "cpu/mem-loads,ldlat=30/P", Attr: perfdata.Attr{Type: perffile.TypeRaw, Config: 0x1cd, Precise: 3, SampleType: parts}})
		f.Process("//anon", 42, 43)
		rng := rand.New(rand.NewPCG(7, 9))
		retired := map[uint64]float64{} // what the test wrote
		for i := range uint64(3000) {
			ip, access := 0x400000+rng.Uint64N(20)*4, 40+rng.Uint64N(300)
			whole, since := access+rng.Uint64N(60), rng.Uint64N(1<<15)
			f.Sample(hardware.User, 1, ip, 42|43<<32, 1000*(i+1), 0x7f0000000040, access|whole<<32|since<<48, hardware.LoadRAM)
			retired[ip] += float64(since)
		}
		features := &perfdata.Features{Hostname: "test", Arch: "x86_64", CPUID: "GenuineIntel,6,143,8", Cmdline: []string{"perf", "mem", "record"}, PMUs: []perfdata.PMU{{Type: 4, Name: "cpu"}}}
		if power {
			features.Arch, features.CPUID = "ppc64le", "128,512"
		}
		file := hardware.Write(t, "perf.data", f.Bytes(features))
		got := countsByAddr(t, "--model", "instruction-samples", file)
		out := hardware.Perf(t, "report", "-D", "-i", file)
		samples, weights := dumpedSample.FindAllStringSubmatch(out, -1), dumpedWeight.FindAllStringSubmatch(out, -1)
		if len(samples) != 3000 || len(weights) != 3000 {
			t.Fatalf("perf has %d samples and %d weights", len(samples), len(weights))
		}
		want := map[uint64]map[string]float64{}
		perfs := 0.0
		for i := range samples {
			addr, _ := strconv.ParseUint(samples[i][1], 0, 64)
			if want[addr] == nil {
				want[addr] = map[string]float64{"op.since_retired_cycles": retired[addr]}
			}
			access, _ := strconv.ParseFloat(weights[i][1], 64)
			whole, _ := strconv.ParseUint(weights[i][2], 16, 64)
			third, _ := strconv.ParseUint(weights[i][3], 16, 64)
			perfs += float64(third)
			want[addr]["op.instructions"]++
			want[addr]["load.cycles"] += access
			if power {
				whole = uint64(access)
				delete(want[addr], "op.since_retired_cycles")
			}
			want[addr]["op.cycles"] += float64(whole)
		}
		for _, counts := range want {
			for name := range counts {
				counts[name] *= 1000 // a sample stands for so many instructions
			}
		}
		sameCounts(t, got, want)
		sum := 0.0
		for _, v := range retired {
			sum += v
		}
		if perfs != sum && perfs != 0 { // perf before 6.3 drops the third on x86
			t.Errorf("perf's third weights are %.0f, those that were written %.0f", perfs, sum)
		}
		t.Logf("power %v: third weights %.0f, perf's %.0f", power, sum, perfs)
	}
}
