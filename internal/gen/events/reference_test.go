package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/gen"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/model"
)

// References are the lists that a processor's events are compared with: a
// folder of Linux's event lists with the PMU that its entries name, and a PMU of
// libpfm4. Names are compared without regard to case and punctuation.
var references = []struct{ key, linux, linuxPMU, libpfm string }{
	{"BNL", "x86/bonnell", "", "atom"},
	{"NHM-EP", "x86/nehalemep", "", "nhm"},
	{"WSM-EP-DP", "x86/westmereep-dp", "", "wsm_dp"},
	{"SNB", "x86/sandybridge", "", "snb"},
	{"JKT", "x86/jaketown", "", "snb_ep"},
	{"IVB", "x86/ivybridge", "", "ivb"},
	{"IVT", "x86/ivytown", "", "ivb_ep"},
	{"HSW", "x86/haswell", "", "hsw"},
	{"HSX", "x86/haswellx", "", "hsw_ep"},
	{"BDW", "", "", "bdw"},
	{"SKL", "", "", "skl"},
	{"SKX", "x86/skylakex", "", "skx"},
	{"CLX", "", "", "clx"},
	{"ICL", "", "", "icl"},
	{"ICX", "", "", "icx"},
	{"SPR", "x86/sapphirerapids", "", "spr"},
	{"GNR", "x86/graniterapids", "", "gnr"},
	{"ADL:core", "x86/alderlake", "cpu_core", "adl_glc"},
	{"ADL:atom", "x86/alderlake", "cpu_atom", "adl_grt"},
	{"LNL:core", "x86/lunarlake", "cpu_core", ""},
	{"LNL:atom", "x86/lunarlake", "cpu_atom", ""},
	{"SLM", "x86/silvermont", "", "slm"},
	{"GLM", "", "", "glm"},
	{"SRF", "x86/sierraforest", "", ""},
	{"zen1", "x86/amdzen1", "", ""},
	{"zen2", "x86/amdzen2", "", ""},
	{"zen3", "x86/amdzen3", "", ""},
	{"zen4", "x86/amdzen4", "", ""},
	{"zen5", "x86/amdzen5", "", ""},
	{"zen6", "x86/amdzen6", "", ""},
	{"POWER8", "powerpc/power8", "", "power8"},
	{"POWER9", "powerpc/power9", "", "power9"},
	{"POWER10", "powerpc/power10", "", "power10"},
	{"neoverse-n1", "arm64/arm/neoverse-n1", "", "arm_n1"},
	{"neoverse-n2", "arm64/arm/neoverse-n2-v2", "", "arm_n2"},
	{"neoverse-n3", "arm64/arm/neoverse-n3", "", "arm_n3"},
	{"neoverse-v1", "arm64/arm/neoverse-v1", "", "arm_v1"},
	{"neoverse-v2", "arm64/arm/neoverse-n2-v2", "", "arm_v2"},
	{"neoverse-v3", "arm64/arm/neoverse-v3", "", "arm_v3"},
	{"armv8", "arm64", "", ""},
}

// A disagreement is a line of testdata/disagreements.csv.
type disagreement struct {
	line                             int
	event, cpu, source, ours, theirs string
	used                             bool
}

func readDisagreements(t *testing.T) []*disagreement {
	t.Helper()
	data, err := os.ReadFile("testdata/disagreements.csv")
	if err != nil {
		t.Fatal(err)
	}
	var list []*disagreement
	err = gen.EachRow("testdata/disagreements.csv", data, "event,cpu,source,ours,theirs,right,why", func(line int, r []string) error {
		if !slices.Contains([]string{"ours", "theirs", "both"}, r[5]) || r[6] == "" {
			return fmt.Errorf("no verdict, or no reason")
		}
		list = append(list, &disagreement{line: line, event: r[0], cpu: r[1], source: r[2], ours: r[3], theirs: r[4]})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestReferences compares every encoding with Linux's and libpfm4's for every
// event that both know. What differs must be listed, with who is right.
func TestReferences(t *testing.T) {
	vendor := testshared.Dir(t, "data")
	tables := readTables(t, vendor)
	known := readDisagreements(t)
	compared := map[string]int{}
	for _, ref := range references {
		ours := tables[ref.key]
		if ours == nil {
			t.Errorf("no processor %s", ref.key)
			continue
		}
		for source, theirs := range map[string][]*event{
			"linux":  linuxEvents(t, vendor, ref.linux, ref.linuxPMU),
			"libpfm": libpfmEvents(t, vendor, ref.libpfm),
		} {
			for _, e := range theirs {
				o := ours[foldName(e.name)]
				if o == nil {
					continue
				}
				compared[source]++
				if o.config == e.config && o.config1 == e.config1 {
					continue
				}
				ourCode, theirCode := code(o), code(e)
				i := slices.IndexFunc(known, func(d *disagreement) bool {
					return d.cpu == ref.key && d.source == source && foldName(d.event) == foldName(e.name) &&
						d.ours == ourCode && d.theirs == theirCode
				})
				if i < 0 {
					t.Errorf("%s,%s,%s,%s,%s", e.name, ref.key, source, ourCode, theirCode)
					continue
				}
				known[i].used = true
			}
		}
	}
	for _, d := range known {
		if !d.used {
			t.Errorf("testdata/disagreements.csv:%d: %s of %s does not differ", d.line, d.event, d.cpu)
		}
	}
	t.Logf("compared: %d encodings with Linux, %d with libpfm4", compared["linux"], compared["libpfm"])
	if compared["linux"] < 10000 || compared["libpfm"] < 8000 {
		t.Error("too few: the names no longer match")
	}
}

// code is an encoding as the list of disagreements spells it.
func code(e *event) string {
	if e.config1 == 0 {
		return hex(e.config)
	}
	return hex(e.config) + "/" + hex(e.config1)
}

// foldName makes UOPS_RETIRED.ANY, UOPS_RETIRED:ANY and uops_retired.any equal.
func foldName(name string) string {
	return strings.NewReplacer(":", "_", ".", "_").Replace(strings.ToLower(name))
}

// readTables returns the events of all processors by folded name, aliases too.
func readTables(t *testing.T, vendor string) map[string]map[string]*event {
	t.Helper()
	c, err := readCorrections()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]*event{}
	for _, v := range vendors {
		table, err := v.table(vendor, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range table.processors {
			m := map[string]*event{}
			for _, e := range p.events {
				for _, name := range append([]string{e.name}, e.aliases...) {
					m[foldName(name)] = e
				}
			}
			all[p.key] = m
		}
	}
	return all
}

// linuxEvents reads a folder of Linux's lists, with the codes that perf makes
// of them.
func linuxEvents(t *testing.T, vendor, dir, pmu string) []*event {
	t.Helper()
	if dir == "" {
		return nil
	}
	root := linuxDir(vendor)
	common := map[string]linuxEvent{}
	if strings.HasPrefix(dir, "arm64") {
		for _, file := range []string{"common-and-microarch.json", "recommended.json"} {
			list, err := readLinuxFile(filepath.Join(root, "arm64", file))
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range list {
				common[l["EventName"]] = l
			}
		}
	}
	list, err := readLinux(filepath.Join(root, filepath.FromSlash(dir)), common)
	if err != nil {
		t.Fatal(err)
	}
	var events []*event
	for _, l := range list {
		if l["Unit"] != pmu {
			continue
		}
		e, err := perfCode(l, strings.HasPrefix(dir, "x86/amd"))
		if err != nil {
			t.Fatalf("%s: %s: %v", dir, l["EventName"], err)
		}
		events = append(events, e)
	}
	return events
}

// perfFixed are the names that perf replaces, whatever the lists say (jevents.py).
var perfFixed = map[string]uint64{
	"inst_retired.any":            0xc0,
	"inst_retired.any_p":          0xc0,
	"cpu_clk_unhalted.ref":        0x300,
	"cpu_clk_unhalted.thread":     0x3c,
	"cpu_clk_unhalted.core":       0x3c,
	"cpu_clk_unhalted.thread_any": 0x3c | anyThread,
}

// perfCode makes config and config1 of an entry of Linux's lists as perf does.
func perfCode(l linuxEvent, amd bool) (*event, error) {
	e := &event{name: l["EventName"]}
	if amd {
		config, err := zenConfig(l)
		e.config = config
		return e, err
	}
	var v [7]uint64
	for i, s := range []string{
		strings.Split(l["EventCode"], ",")[0], strings.Split(l["UMask"], ",")[0], l["CounterMask"], l["Invert"], l["EdgeDetect"], l["AnyThread"], l["MSRValue"],
	} {
		var err error
		if v[i], err = linuxNumber(s); err != nil {
			return nil, err
		}
	}
	e.config = v[0] | v[1]&0xff<<8 | v[1]>>8<<40 | v[2]<<24 | v[3]<<23 | v[4]<<18 | v[5]<<21
	e.config1 = v[6]
	if config, ok := perfFixed[strings.ToLower(l["EventName"])]; ok {
		e.config = config
	}
	return e, nil
}

func libpfmEvents(t *testing.T, vendor, pmu string) []*event {
	t.Helper()
	if pmu == "" {
		return nil
	}
	events, err := readLibpfm(vendor, pmu)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestZenCodes compares AMD's events with libpfm4's by code, as the two name
// them differently: what libpfm4 has must nearly always be in Linux's lists too.
func TestZenCodes(t *testing.T) {
	vendor := testshared.Dir(t, "data")
	zens, err := readSources("amd")
	if err != nil {
		t.Fatal(err)
	}
	for _, z := range zens {
		if z.libpfm == "" {
			continue
		}
		linux := map[uint64]bool{}
		for _, e := range linuxEvents(t, vendor, "x86/"+z.files[0], "") {
			linux[e.config] = true
		}
		known, wide := 0, 0
		theirs := libpfmEvents(t, vendor, z.libpfm)
		for _, e := range theirs {
			if linux[e.config] {
				known++
				if e.config>>32 != 0 {
					wide++
				}
			}
		}
		share := float64(known) / float64(len(theirs))
		t.Logf("%s: %d of libpfm4's %d codes are in Linux's lists, %d of them with more than eight bits", z.key, known, len(theirs), wide)
		if z.key == "zen1" && share < 0.75 || z.key != "zen1" && share < 0.9 {
			t.Errorf("%s: only %d of libpfm4's %d codes are in Linux's lists", z.key, known, len(theirs))
		}
	}
}

// TestMetricEvents looks up every core event that Intel's and Arm's metrics name,
// in the tables as the product reads them.
func TestMetricEvents(t *testing.T) {
	vendor := testshared.Dir(t, "data")
	catalogue, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []struct {
		name  string
		names map[string][]string // by key of the tables
	}{
		{"Intel", intelMetricEvents(t, vendor)},
		{"Arm", armMetricEvents(t, vendor)},
	} {
		found := 0
		for key, names := range source.names {
			table := tableOf(t, catalogue, key)
			for _, name := range names {
				if _, ok := table.Lookup(name); !ok {
					t.Errorf("%s: no event %s", key, name)
				}
				found++
			}
		}
		if found < 1000 {
			t.Errorf("%s: only %d events of metrics were found", source.name, found)
		}
		t.Logf("%s: %d events of metrics", source.name, found)
	}
}

// intelMetricEvents returns the core events of Intel's metric files.
func intelMetricEvents(t *testing.T, vendor string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vendor, "intel-perfmon", "*", "metrics", "*_metrics*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no metric files", err)
	}
	names := map[string][]string{}
	for _, f := range files {
		var doc struct {
			Metrics []struct{ Events []struct{ Name string } }
		}
		decodeFile(t, f, &doc)
		key := filepath.Base(filepath.Dir(filepath.Dir(f)))
		if strings.Contains(f, "_core.json") {
			key += ":core"
		}
		for _, m := range doc.Metrics {
			for _, e := range m.Events {
				name, _, _ := strings.Cut(e.Name, ":") // modifiers change the code, not the event
				if !strings.HasPrefix(name, "UNC_") && !strings.HasPrefix(name, "FREERUN_") {
					names[key] = append(names[key], name)
				}
			}
		}
	}
	return names
}

// armMetricEvents returns the events of the metrics of Arm's telemetry data.
func armMetricEvents(t *testing.T, vendor string) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	cores, err := readSources("arm")
	if err != nil {
		t.Fatal(err)
	}
	for _, core := range cores {
		var doc struct {
			Metrics map[string]struct {
				Events []string `json:"events"`
			} `json:"metrics"`
		}
		decodeFile(t, filepath.Join(vendor, "arm-telemetry", "pmu", "cpu", core.files[0]), &doc)
		for _, m := range doc.Metrics {
			names[core.key] = append(names[core.key], m.Events...)
		}
	}
	return names
}

func decodeFile(t *testing.T, file string, v any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// tableOf returns the events of the first processor that has the key.
func tableOf(t *testing.T, catalogue *model.Catalogue, key string) *model.EventTable {
	t.Helper()
	for _, p := range catalogue.CPUs() {
		if p.Events == key {
			table, err := catalogue.Events(p)
			if err != nil {
				t.Fatal(err)
			}
			return table
		}
	}
	t.Fatalf("no processor has the events %s", key)
	return nil
}
