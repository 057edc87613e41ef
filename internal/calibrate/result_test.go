package calibrate

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sameNumbers compares numbers: NaN is NaN.
var sameNumbers = cmp.Comparer(func(a, b Number) bool {
	return a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b))
})

// example is what a calibration of a virtual machine printed.
const example = "../../examples/calibration-zen4.json"

func readExample(t testing.TB) *Result {
	t.Helper()
	f, err := os.Open(example)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRead writes an example and reads it again: nothing is lost, neither what is
// known nor what is not.
func TestRead(t *testing.T) {
	r := readExample(t)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again, sameNumbers); diff != "" {
		t.Errorf("the example differs when it is read again:\n%s", diff)
	}
	absent := 0
	for _, p := range r.Curve {
		if p.Why != "" {
			absent++
		}
	}
	for _, l := range r.Levels {
		if l.Why != "" {
			absent++
			if !math.IsNaN(float64(l.Cycles)) {
				t.Errorf("%s is absent but has a latency of %v", l.Name, l.Cycles)
			}
		}
	}
	for _, f := range r.Bandwidth {
		if f.Why != "" {
			absent++
			if !math.IsNaN(float64(f.Value)) {
				t.Errorf("%s is absent but %v", f.Name, f.Value)
			}
		}
	}
	if absent == 0 {
		t.Error("the example has nothing that is absent: it does not show how that is read")
	}
}

func TestReadErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{``, "not the JSON of a calibration"},
		{`[]`, "not the JSON of a calibration"},
		{`{}`, `schema is ""`},
		{`{"schema":"cyclestack.account/v1"}`, `schema is "cyclestack.account/v1"`},
		{`{"schema":"cyclestack.calibration/v1","clock":7}`, "not a calibration"},
		{`{"schema":"cyclestack.calibration/v1","speed":7}`, `unknown field "speed"`},
		{`{"schema":"cyclestack.calibration/v1"} {}`, "not the JSON of a calibration"},
		{`{"schema":"cyclestack.calibration/v1","curve":[{"bytes":8,"cycles":4,"ns":1,"error":0},{"bytes":4,"cycles":4,"ns":1,"error":0}]}`, "sizes have to grow"},
		{`{"schema":"cyclestack.calibration/v1","curve":[{"bytes":8,"cycles":null,"ns":1,"error":0}]}`, "neither a latency nor a reason"},
		{`{"schema":"cyclestack.calibration/v1","levels":[{"name":"L1","cycles":0,"ns":0,"error":0}]}`, "neither a latency nor a reason"},
		{`{"schema":"cyclestack.calibration/v1","costs":[{"name":"call","value":null}]}`, "neither a value nor a reason"},
		{strings.Repeat(" ", mostJSON+1), "larger than"},
	} {
		_, err := Read(strings.NewReader(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

// FuzzRead reads anything: a result that is accepted can be used.
func FuzzRead(f *testing.F) {
	text, err := os.ReadFile(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"schema":"cyclestack.calibration/v1","levels":[{"name":"L1","cycles":4,"ns":1,"error":0},{"name":"memory","cycles":null,"why":"busy"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, p := range r.Penalties() {
			if p.Why == "" && (math.IsNaN(p.Value) || p.Value < 0) {
				t.Errorf("%s is %v without a reason", p.Name, p.Value)
			}
		}
		findLevels(r.Curve)
	})
}

func TestPenalties(t *testing.T) {
	r := &Result{
		Clock: Figure{Name: "clock", Value: 3e9, Unit: "Hz"},
		Levels: []Level{{Name: "L1", Cycles: 4}, {Name: "L2", Cycles: 14}, absentLevel("L3", "not to be seen"),
			{Name: "memory", Cycles: 304, Error: 2}},
		Costs: []Figure{
			{Name: "stlb-hit", Value: 7}, {Name: "page-walk", Value: 30, Error: 1},
			{Name: "branch-mispredict", Value: 18}, {Name: "alias-4k", Value: -0.01},
			{Name: "store-address", Value: -3, Error: 0.1},
			{Name: "split-line-load", Value: Number(nan), Why: "busy"},
			{Name: "memory-node-1", Value: 404}, {Name: "memory-node-2", Value: 504},
		},
	}
	want := map[string]float64{
		"L2_HIT_PENALTY": 10, "L3_HIT_PENALTY": nan, "L3_MISS_PENALTY": 300, "REMOTE_DRAM_PENALTY": 500,
		"STLB_HIT_PENALTY": 7, "DTLB_WALK_PENALTY": 30, "PAGE_WALK_PENALTY": 30, "DTLB_MISS_PENALTY": 30,
		"BRANCH_MISPREDICT_PENALTY": 18, "BRANCH_RESTEER_PENALTY": 18,
		"ALIAS_PENALTY": 0, "STORE_ADDRESS_PENALTY": nan, "SPLIT_LOAD_PENALTY": nan, "FREQUENCY": 3e9, "MEMORY_BANDWIDTH": nan, "BUS_BANDWIDTH": nan, "L3_SIZE": nan,
	}
	check := func(want map[string]float64) {
		t.Helper()
		got := map[string]float64{}
		for _, p := range r.Penalties() {
			got[p.Name] = p.Value
			if math.IsNaN(p.Value) != (p.Why != "") {
				t.Errorf("%s = %v, because %q", p.Name, p.Value, p.Why)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("penalties (-want +got):\n%s", diff)
		}
	}
	check(want)

	// The bus: the best of what moves as many bytes as the program sees.
	bandwidth := func(kernel string, streaming bool, threads int, value float64) Bandwidth {
		return Bandwidth{Figure: Figure{Value: Number(value)}, Kernel: kernel, Streaming: streaming, Threads: threads}
	}
	r.Bandwidth = []Bandwidth{bandwidth("read", false, 1, 8e9), bandwidth("read", false, 4, 11e9), bandwidth("triad", true, 4, 12e9), bandwidth("triad", false, 4, 13e9)}
	want["MEMORY_BANDWIDTH"], want["BUS_BANDWIDTH"] = 8e9, 12e9
	check(want)
	r.Bandwidth = nil

	// Two levels: memory is what the second does not have.
	r.Levels = []Level{{Name: "L1", Cycles: 3}, {Name: "L2", Cycles: 14}, {Name: "memory", Cycles: 168}}
	r.Costs = nil
	check(map[string]float64{"L2_HIT_PENALTY": 11, "L2_MISS_PENALTY": 165, "FREQUENCY": 3e9, "MEMORY_BANDWIDTH": nan, "BUS_BANDWIDTH": nan, "L3_SIZE": nan})

	// Nothing to subtract.
	r.Levels = r.Levels[1:]
	check(map[string]float64{"L2_HIT_PENALTY": nan, "L2_MISS_PENALTY": nan, "FREQUENCY": 3e9, "MEMORY_BANDWIDTH": nan, "BUS_BANDWIDTH": nan, "L3_SIZE": nan})
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int]string{64: "64 bytes", 1536: "1.5 KiB", 3 << 20: "3 MiB", 1 << 30: "1 GiB"} {
		if got := Size(bytes); got != want {
			t.Errorf("Size(%d) = %s, want %s", bytes, got, want)
		}
	}
}
