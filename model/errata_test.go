package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testshared"
)

func TestErrata(t *testing.T) {
	cat, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ cpu, event, want string }{
		{"skylake", "BR_INST_RETIRED.ALL_BRANCHES", "SKL091"},
		{"haswell", "INST_RETIRED.ANY", "HSD140 HSD143"},
		{"icelake", "BR_INST_RETIRED.ALL_BRANCHES", ""},
		{"sierraforest", "BR_INST_RETIRED.COND", "SRF7"},
		{"zen4", "ex_ret_brn", ""},
		{"generic", "cycles", ""},
	} {
		cpu, err := cat.CPU(tt.cpu)
		if err != nil {
			t.Fatal(err)
		}
		table, err := cat.Events(cpu)
		if err != nil {
			t.Fatal(err)
		}
		got, err := table.Errata(tt.event)
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s, %s: %v, %v, want %s", tt.cpu, tt.event, got, err, tt.want)
		}
	}
	for text, want := range map[string]string{
		"a,b\n":        "relations/errata.csv:1: wrong number of fields",
		"a,b,c\n\"\n":  "relations/errata.csv:2: extraneous or missing",
		"a,b,c\nd,e\n": "relations/errata.csv:2: wrong number of fields",
	} {
		if _, err := readErrata(text, "a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestErrataComplete checks that every erratum of the vendor's lists of the core
// events of Skylake is there, and none more.
func TestErrataComplete(t *testing.T) {
	dir := testshared.Dir(t, "data", "intel-perfmon", "SKL", "events")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	want := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Events []struct{ EventName, Errata string }
		}
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Events {
			if e.Errata != "" && e.Errata != "null" && e.Errata != "0" {
				want[e.EventName] = true
			}
		}
	}
	text, err := os.ReadFile("data/" + errataFile)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readErrata(string(text), "SKL")
	if err != nil {
		t.Fatal(err)
	}
	var differ []string
	for event := range want {
		if got[event] == nil {
			differ = append(differ, "without "+event)
		}
	}
	for event := range got {
		if !want[event] {
			differ = append(differ, "with "+event)
		}
	}
	slices.Sort(differ)
	if len(want) == 0 || len(differ) > 0 {
		t.Errorf("of %d events: %v", len(want), differ)
	}
}
