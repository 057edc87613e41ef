package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testshared"
)

// TestMetricEvents: the event tables have every core event that Intel's metric
// files name, in their spelling.
func TestMetricEvents(t *testing.T) {
	cat := embeddedCatalogue(t)
	dir := testshared.Dir(t, "data", "intel-perfmon")
	for file, cpu := range map[string]string{
		"HSW/metrics/haswell_metrics.json":                     "haswell",
		"HSX/metrics/haswellx_metrics.json":                    "haswellx",
		"BDW/metrics/broadwell_metrics.json":                   "broadwell",
		"BDX/metrics/broadwellx_metrics.json":                  "broadwellx",
		"SKL/metrics/skylake_metrics.json":                     "skylake",
		"SKX/metrics/skylakex_metrics.json":                    "skylakex",
		"CLX/metrics/cascadelakex_metrics.json":                "cascadelakex",
		"ICL/metrics/icelake_metrics.json":                     "icelake",
		"ICX/metrics/icelakex_metrics.json":                    "icelakex",
		"TGL/metrics/tigerlake_metrics.json":                   "tigerlake",
		"RKL/metrics/rocketlake_metrics.json":                  "rocketlake",
		"SPR/metrics/sapphirerapids_metrics.json":              "sapphirerapids",
		"EMR/metrics/emeraldrapids_metrics.json":               "emeraldrapids",
		"GNR/metrics/graniterapids_metrics.json":               "graniterapids",
		"SRF/metrics/sierraforest_metrics.json":                "sierraforest",
		"GRR/metrics/grandridge_metrics.json":                  "grandridge",
		"ADL/metrics/alderlake_metrics_goldencove_core.json":   "alderlake:core",
		"MTL/metrics/meteorlake_metrics_redwoodcove_core.json": "meteorlake:core",
		"LNL/metrics/lunarlake_metrics_lioncove_core.json":     "lunarlake:core",
		"ARL/metrics/arrowlake_metrics_lioncove_core.json":     "arrowlake:core",
	} {
		table := embeddedTable(t, cat, cpu)
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		var metrics struct {
			Metrics []struct{ Events []struct{ Name string } }
		}
		if err := json.Unmarshal(data, &metrics); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range metrics.Metrics {
			for _, e := range m.Events {
				ref, err := ParseEvent(e.Name)
				if err != nil {
					t.Errorf("%s: %v", cpu, err)
					continue
				}
				if seen[ref.Name] || isUncore(ref.Name) {
					continue
				}
				seen[ref.Name] = true
				if table.byName(ref.Name, "") == nil {
					t.Errorf("%s has no event %s", cpu, e.Name)
				} else if id := table.Resolve(ref); id.Name != "" {
					t.Errorf("%s: %s has no code: %+v", cpu, e.Name, id)
				}
			}
		}
		if len(seen) < 30 {
			t.Errorf("%s: only %d events in its metric file", cpu, len(seen))
		}
	}
}

func isUncore(name string) bool {
	return strings.HasPrefix(name, "UNC_") || strings.HasPrefix(name, "FREERUN_")
}

func embeddedTable(t *testing.T, cat *Catalogue, cpu string) *EventTable {
	t.Helper()
	p, err := cat.CPU(cpu)
	if err != nil {
		t.Fatal(err)
	}
	table, err := cat.Events(p)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestOracleEvents: the counts of the independent implementation name events by
// encoding. Each is an event of the processor's table, or one with a field that
// changes what it counts.
func TestOracleEvents(t *testing.T) {
	cat := embeddedCatalogue(t)
	files, err := filepath.Glob(filepath.Join(testshared.Dir(t, "oracle", "tma"), "*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var expected struct{ CPU string }
		data, err := os.ReadFile(strings.TrimSuffix(file, ".csv") + ".expected.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &expected); err != nil {
			t.Fatal(err)
		}
		table := embeddedTable(t, cat, expected.CPU)
		rows, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, core := 0, 0
		for row := range strings.Lines(string(rows)) {
			fields := strings.Split(row, ";")
			if len(fields) < 3 {
				continue
			}
			ref, err := ParseEvent(fields[2])
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if table.pmuClass(ref.PMU) != "" || kernelName(ref.Name) != nil {
				continue
			}
			core++
			if _, ok := table.Find(ref); ok {
				found++
			} else if id := table.Resolve(ref); (id.Name != "" || !isModified(ref)) && !oracleFaults[expected.CPU+" "+fields[2]] {
				t.Errorf("%s: %s is no event of %s: %+v", filepath.Base(file), fields[2], expected.CPU, id)
			}
		}
		if found*10 < core*8 {
			t.Errorf("%s: of %d events only %d are in the table", filepath.Base(file), core, found)
		}
	}
}

// oracleFaults are events whose extended unit mask (bits 40 to 47) the other
// implementation drops: MEM_LOAD_RETIRED.L1_HIT_L1 and
// BR_MISP_RETIRED.COND_TAKEN_FWD_COST of Lion Cove.
var oracleFaults = map[string]bool{
	"GenuineIntel-6-BD-1:core cpu/event=0xd1,umask=0x0/":  true,
	"GenuineIntel-6-BD-1:core cpu/event=0xc5,umask=0x40/": true,
}

// isModified reports whether a reference has fields that make another count of
// an event.
func isModified(ref EventRef) bool {
	for _, term := range ref.Terms {
		switch term.Key {
		case "cmask", "edge", "inv", "any", "umask":
			if term.Key != "umask" || len(ref.Terms) > 2 {
				return true
			}
		}
	}
	return false
}
