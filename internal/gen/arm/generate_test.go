package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/gen"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/metric"
)

const models = "../../../model/data/models/arm"

// TestGenerated makes sure that the committed models are what the generator
// makes of the vendor's data.
func TestGenerated(t *testing.T) {
	files, err := generate(testshared.Dir(t, "data", "arm-telemetry"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(models, f.Name))
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(want), string(f.Data)); diff != "" {
			t.Errorf("%s (-committed +generated): run go generate ./internal/gen/arm\n%s", f.Name, diff)
		}
	}
}

func TestConvert(t *testing.T) {
	for _, test := range []struct {
		name string
		conversion
		vendor, want string
	}{
		{"a ratio stays", conversion{}, "L1D_CACHE_REFILL / L1D_CACHE", "L1D_CACHE_REFILL / L1D_CACHE"},
		{"percent behind", conversion{percent: true}, "LD_SPEC / INST_SPEC * 100", "LD_SPEC / INST_SPEC"},
		{"percent before", conversion{percent: true}, "100 * (A / B - C / (D + 1))", "A / B - C / (D + 1)"},
		{"percent of each term", conversion{percent: true}, "(1 - A) * B * 100 + C / D * 100", "(1 - A) * B + C / D"},
		{
			"slots", conversion{percent: true, slots: 8},
			"STALL_SLOT_BACKEND / (8 * CPU_CYCLES) * 100", "STALL_SLOT_BACKEND / (Pipeline_Width * CPU_CYCLES)",
		},
		{
			"an event's name has no slots in it", conversion{slots: 3},
			"STALL_SLOT / (3 * CPU_CYCLES) - L3D_CACHE / X3", "STALL_SLOT / (Pipeline_Width * CPU_CYCLES) - L3D_CACHE / X3",
		},
		{
			"mispredictions may be missing", conversion{percent: true, slots: 5},
			"100 * (STALL_SLOT_BACKEND / (CPU_CYCLES * 5) - BR_MIS_PRED * 3 / CPU_CYCLES)",
			"STALL_SLOT_BACKEND / (CPU_CYCLES * Pipeline_Width) - (BR_MIS_PRED * 3 / CPU_CYCLES if has_event(BR_MIS_PRED) else 0)",
		},
		{
			"the erratum", conversion{slots: 5, spurious: true},
			"(STALL_SLOT_FRONTEND - CPU_CYCLES) / (5 * CPU_CYCLES)",
			"(STALL_SLOT_FRONTEND - Spurious_Slots * CPU_CYCLES) / (Pipeline_Width * CPU_CYCLES)",
		},
		{"an amount", conversion{percent: true, amount: true}, "STALL_BACKEND / CPU_CYCLES * 100", "STALL_BACKEND"},
	} {
		got, err := test.convert(test.vendor)
		if err != nil || got != test.want {
			t.Errorf("%s: %q became %q (%v), want %q", test.name, test.vendor, got, err, test.want)
		}
	}
}

// TestConvertNotices makes sure that a conversion which changes the value is an
// error.
func TestConvertNotices(t *testing.T) {
	for _, test := range []struct {
		name string
		conversion
		vendor string
	}{
		{"no percentage", conversion{percent: true}, "A / B"},
		{"a hundred that is something else", conversion{percent: true}, "A * 100 / B + C"},
		{"an amount of something else", conversion{amount: true}, "A / B"},
		{"not a formula", conversion{}, "A /"},
	} {
		if got, err := test.convert(test.vendor); err == nil {
			t.Errorf("%s: %q became %q", test.name, test.vendor, got)
		}
	}
}

func TestUnitOf(t *testing.T) {
	for _, test := range []struct {
		vendor, unit string
		percent      bool
	}{
		{"percent of slots", "", true},
		{"MPKI", "misses/kiloinstruction", false},
		{"per branch", "1", false},
		{"cycles", "cycles", false},
	} {
		if unit, percent, err := unitOf(test.vendor); unit != test.unit || percent != test.percent || err != nil {
			t.Errorf("unitOf(%q) = %q, %v, %v; want %q, %v", test.vendor, unit, percent, err, test.unit, test.percent)
		}
	}
	if _, _, err := unitOf("furlongs"); err == nil {
		t.Error("an unknown unit is no error")
	}
}

// TestBreakFormula makes sure that a broken formula is the same formula.
func TestBreakFormula(t *testing.T) {
	long := strings.Repeat("EVENT_NAME", 4)
	for _, s := range []string{
		"A / B",
		long + " / (" + long + " + " + long + " - " + long + ")",
		long + " - " + long + " * (" + long + " + " + long + ") + " + long,
		"(" + long + " if has_event(A) else 0) * -" + long + " / " + long,
		long + long + long,
	} {
		lines := gen.Wrap(s, 100, false)
		for _, line := range lines[:max(0, len(lines)-1)] {
			if len(line) > 100 && strings.Contains(line, " ") {
				t.Errorf("%q: line of %d characters %q", s, len(line), line)
			}
		}
		want, err := metric.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := metric.Parse(strings.Join(lines, "\n"))
		if err != nil || got.String() != want.String() {
			t.Errorf("%q was broken to %q (%v)", s, lines, err)
		}
	}
}

func TestParents(t *testing.T) {
	s := &spec{
		metrics: map[string]metricSpec{},
		groups:  map[string]groupSpec{"Deep": {Metrics: []string{"e"}}, "Other": {Metrics: []string{"f"}}},
		first:   []string{"Deep"},
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		s.metrics[name] = metricSpec{Formula: "X"}
	}
	s.tree.RootNodes = []string{"a", "b"}
	add := func(name string, next ...string) {
		m := struct {
			Name         string
			Group        string
			NextItems    []string `json:"next_items"`
			SampleEvents []string `json:"sample_events"`
		}{Name: name, NextItems: next}
		s.tree.Metrics = append(s.tree.Metrics, m)
	}
	add("d", "c", "a") // c is nearer to the root through a, and a root has no parent
	add("a", "c", "Other")
	add("b", "d")
	add("c", "Deep")
	want := map[string]string{"c": "a", "d": "b", "e": "c"}
	if diff := cmp.Diff(want, s.parents()); diff != "" {
		t.Errorf("parents (-want +got):\n%s", diff)
	}
}

func TestParseSpec(t *testing.T) {
	const good = `{
		"document": {"sha1": "abc", "timestamp": "08 Aug 10:54:03 2025", "license": "Apache-2.0"},
		"product_configuration": {"num_slots": 5},
		"metrics": {"m": {"formula": "A / B", "units": "per branch"}},
		"methodologies": {"topdown_methodology": {"decision_tree": {"root_nodes": ["m"], "metrics": []}}}
	}`
	s, err := parseSpec([]byte(good))
	if err != nil || s.slots != 5 || s.date != "2025-08-08" || s.metrics["m"].Formula != "A / B" {
		t.Errorf("parseSpec = %+v, %v", s, err)
	}
	for _, bad := range []struct{ name, old, new string }{
		{"another licence", "Apache-2.0", "Proprietary"},
		{"a date of another form", "08 Aug", "Aug 8"},
		{"no metrics", `"m": {"formula": "A / B", "units": "per branch"}`, ""},
		{"no tree", `["m"]`, "[]"},
		{"not JSON", `"metrics"`, "metrics"},
	} {
		if _, err := parseSpec([]byte(strings.Replace(good, bad.old, bad.new, 1))); err == nil {
			t.Errorf("%s is no error", bad.name)
		}
	}
}

// TestTexts makes sure that the texts can be read, and hold no unfinished ones.
func TestTexts(t *testing.T) {
	all, err := readTexts()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range keys(all) {
		x := all[name]
		if x.Threshold != "" && (len(x.Causes) == 0 || len(x.Try)+len(x.Advice) == 0) {
			t.Errorf("%s has a threshold, but no causes or nothing to try", name)
		}
		if x.Threshold != "" {
			e, err := metric.Parse(x.Threshold)
			if err != nil || !slices.Contains(e.Names(), name) {
				t.Errorf("%s: threshold %q (%v)", name, x.Threshold, err)
			}
		}
	}
	if _, err := all.of("nonsense"); err == nil {
		t.Error("a metric without a text is no error")
	}
	if err := all.unused(); err == nil {
		t.Error("texts that no processor used are no error")
	}
}
