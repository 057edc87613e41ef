package account_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/source"
)

// TestPublished makes accounts of published recordings, and compares them with the values that
// their authors' tools printed, to the digit. The recordings are in the shared reference
// material.
func TestPublished(t *testing.T) {
	var blocks []struct {
		Path      string
		CPU       string
		Published json.RawMessage
	}
	text, err := os.ReadFile(testshared.Dir(t, "corpus", "tables", "expected-recomputed.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &blocks); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		want, ok := published[b.Path]
		if !ok {
			t.Errorf("%s (%s) is not checked", b.Path, b.CPU)
			continue
		}
		for _, w := range want {
			t.Run(b.Path+"/"+w.cpu, func(t *testing.T) {
				a := fittest(t, testshared.Dir(t, "corpus", b.Path), w.cpu, w.model)
				for node, v := range w.values {
					i, ok := a.Node(node)
					if !ok {
						t.Errorf("no node %s", node)
						continue
					}
					got := a.Nodes[i].Value * w.scale
					if math.IsNaN(got) {
						t.Errorf("%s: %s", node, a.Why(i))
						continue
					}
					if s := fmt.Sprintf("%.*f", w.digits, got); s != v && s != "-"+v {
						t.Errorf("%s = %s, published as %s", node, s, v)
					}
				}
			})
		}
	}
}

// An expectation is what was published for one processor of a recording: the
// values as printed, of nodes by our names. scale is 100 for percent.
type expectation struct {
	cpu, model string
	scale      float64
	digits     int
	values     map[string]string
}

// published holds the values that expected-recomputed.json gives, by our names.
var published = map[string][]expectation{
	"perfstat/hand-skl-metrics-after-nomux.txt": {{"skylake", "tma", 1, 2, map[string]string{
		"Frontend_Bound": "0.38", "Bad_Speculation": "0.08", "Retiring": "0.14", "Backend_Bound": "0.41"}}},
	"perfstat/hand-armlp-core-bound-div-chain-x86.txt": {{"skylake", "tma", 1, 2, map[string]string{
		"Frontend_Bound": "0.00", "Bad_Speculation": "0.00", "Retiring": "0.09", "Backend_Bound": "0.91"}}},
	"perfstat/hand-rtc-rust-before.txt": {{"icelake", "tma", 100, 1, map[string]string{
		"Frontend_Bound": "17.0", "Bad_Speculation": "9.4", "Retiring": "61.7", "Backend_Bound": "12.0"}}},
	"perfstat/hand-adl-topdownl1-hybrid-metrics.txt": {
		{"alderlake:core", "tma", 100, 1, map[string]string{
			"Frontend_Bound": "19.7", "Bad_Speculation": "10.4", "Retiring": "34.1", "Backend_Bound": "35.7"}},
		{"alderlake:atom", "tma", 100, 1, map[string]string{
			"Frontend_Bound": "34.2", "Bad_Speculation": "15.1", "Retiring": "12.2", "Backend_Bound": "38.4"}},
	},
	"perfstat/hand-neoverse-n2-topdownl1.txt": {{"neoverse-n2", "topdown", 100, 1, map[string]string{
		"frontend_bound": "26.7", "bad_speculation": "0.0", "retiring": "5.1", "backend_bound": "68.8"}}},
	"perfstat/KeithJH-notes_kinematics_StructOfAlignedSim-01.txt": {{"amdzen4", "pipeline", 100, 1, map[string]string{
		"bad_speculation_mispredicts": "0.7", "bad_speculation_pipeline_restarts": "0.0", "backend_bound_cpu": "20.1",
		"backend_bound_memory": "60.3", "retiring_fastpath": "15.4", "retiring_microcode": "0.0",
		"frontend_bound_bandwidth": "0.6", "frontend_bound_latency": "2.7"}}},
	"perfstat/hand-armlp-n1-stride-ipc.txt": {{"generic", "generic", 1, 2, map[string]string{"IPC": "0.22"}}},
}

// fittest makes the account of a recording: of several blocks, the one that says
// most.
func fittest(t *testing.T, file, cpuName, modelName string) *account.Account {
	t.Helper()
	method := vendorMethod(t, cpuName, modelName)
	f, err := source.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var best *account.Account
	tables := f.Tables(0)
	for tables.Next() {
		total := counts.NewTotal(0)
		if err := total.Add(tables.Table()); err != nil {
			t.Fatal(err)
		}
		table := total.Table()
		a := method.Bind(table.Layout).Evaluate(table, account.Place{}, nil)
		if best == nil || a.Completeness() > best.Completeness() {
			best = a.Clone()
		}
	}
	if best == nil {
		t.Fatalf("no counts: %v", tables.Err())
	}
	return best
}
