package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A core is one of Arm's, with the files of the telemetry data that describe
// its revisions.
type core struct {
	key   string
	files []string
}

var armCores = []core{
	{"neoverse-n1", []string{"neoverse/neoverse-n1"}},
	{"neoverse-n2", []string{"neoverse/neoverse-n2", "neoverse/neoverse-n2-r0p3"}},
	{"neoverse-n3", []string{"neoverse/neoverse-n3"}},
	{"neoverse-v1", []string{"neoverse/neoverse-v1"}},
	{"neoverse-v2", []string{"neoverse/neoverse-v2"}},
	{"neoverse-v3", []string{"neoverse/neoverse-v3"}},
	{"c1-nano", []string{"lumex/arm-c1-nano-r0p0-pmu"}},
	{"c1-pro", []string{"lumex/arm-c1-pro-r0p0-pmu", "lumex/arm-c1-pro-r1p1-pmu", "lumex/arm-c1-pro-r1p2-pmu"}},
	{"c1-premium", []string{"lumex/arm-c1-premium-r0p0-pmu"}},
	{"c1-ultra", []string{"lumex/arm-c1-ultra-r0p0-pmu"}},
}

// armSharedUnits is how the files begin that describe a unit which cores share, not a
// core: no processor identifies itself as it.
const armSharedUnits = "lumex/arm-c1-sme2-"

// armCommon is the key of the events that the architecture defines: what any
// core with the PMUv3 extension may have.
const armCommon = "armv8"

// armGenerics are the kernel's names, from drivers/perf/arm_pmuv3.c.
var armGenerics = []generic{
	{0x11, []string{"cycles", "cpu-cycles"}},
	{0x08, []string{"instructions"}},
	{0x04, []string{"cache-references"}},
	{0x03, []string{"cache-misses"}},
	{0x21, []string{"branches", "branch-instructions"}},
	{0x10, []string{"branch-misses"}},
	{0x1d, []string{"bus-cycles"}},
	{0x23, []string{"stalled-cycles-frontend"}},
	{0x24, []string{"stalled-cycles-backend"}},
}

// readArm reads the core events of Arm's telemetry data.
func readArm(vendor string, c *corrections) (*table, error) {
	dir := filepath.Join(vendor, "arm-telemetry", "pmu", "cpu")
	if err := onlyKnownCores(dir); err != nil {
		return nil, err
	}
	t := &table{comment: []string{
		"Core events of Arm's Neoverse and C1 processors.",
		"",
		"Made by internal/gen/events; corrections belong there, not here. The format is",
		"described in docs/format/event-tables.md.",
		"",
		"Facts from Arm's telemetry-solution (Copyright Arm Limited, Apache-2.0, see",
		"THIRD_PARTY_NOTICES.md). The key " + armCommon + " stands for the events that the",
		"architecture defines, for cores without a list of their own; which of them a core",
		"has, its kernel knows. CPU_CYCLES has a counter to itself, fixed0; any other event",
		"can use any of the general ones.",
	}}
	common := &processor{key: armCommon}
	for _, core := range armCores {
		p, err := core.read(dir, common)
		if err != nil {
			return nil, err
		}
		t.processors = append(t.processors, p)
	}
	t.processors = append([]*processor{common}, t.processors...)
	for _, p := range t.processors {
		if err := c.apply(p); err != nil {
			return nil, err
		}
		if err := c.merge(p); err != nil {
			return nil, err
		}
		for _, g := range armGenerics {
			if e := p.core(g.config); e != nil {
				e.aliases = append(e.aliases, g.names...)
			}
		}
		for _, e := range p.events {
			e.unit = unitOf(armUnits, e.name)
			if e.name == "CPU_CYCLES" {
				e.counters = "fixed0"
			}
		}
	}
	return t, nil
}

// onlyKnownCores makes sure that no file is left out.
func onlyKnownCores(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil {
		return err
	}
	for _, f := range files {
		rel, err := filepath.Rel(dir, f)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.ToSlash(rel), ".json")
		if strings.HasPrefix(name, armSharedUnits) || slices.ContainsFunc(armCores, func(c core) bool { return slices.Contains(c.files, name) }) {
			continue
		}
		// Some files hold nothing but the name of another one.
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(strings.TrimSpace(string(data)), ".json") {
			return fmt.Errorf("%s: a new core; add it to armCores", rel)
		}
	}
	return nil
}

// telemetryEvent is an event of the telemetry data.
type telemetryEvent struct {
	Code                     string
	Title, Description       string
	Accesses                 []string
	ArchitectureDefined      bool            `json:"architecture_defined"`
	ProductDefined           bool            `json:"product_defined"`
	ProductDefinedAttributes json.RawMessage `json:"product_defined_attributes"`
}

// read reads the files of a core, which must agree, and adds what the
// architecture defines to common.
func (core *core) read(dir string, common *processor) (*processor, error) {
	var p *processor
	for _, name := range core.files {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)+".json"))
		if err != nil {
			return nil, err
		}
		revision, err := parseTelemetry(data, common)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if p != nil && !slices.EqualFunc(p.events, revision.events, func(a, b *event) bool {
			return a.name == b.name && a.encoding() == b.encoding()
		}) {
			return nil, fmt.Errorf("%s: the events differ from those of %s: give it a key of its own", name, core.files[0])
		}
		p = revision
	}
	p.key = core.key
	return p, nil
}

// parseTelemetry decodes a file of the telemetry data. Events that only the
// trace unit sees are left out.
func parseTelemetry(data []byte, common *processor) (*processor, error) {
	var doc struct {
		Events map[string]json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	p := new(processor)
	for name, raw := range doc.Events {
		var t telemetryEvent
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		code, err := strconv.ParseUint(t.Code, 0, 16)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !slices.Contains(t.Accesses, "PMU") {
			continue
		}
		p.events = append(p.events, &event{name: name, config: code})
		if !t.ArchitectureDefined {
			continue
		}
		switch old := common.find(name); {
		case old == nil:
			common.events = append(common.events, &event{name: name, config: code})
		case old.config != code:
			return nil, fmt.Errorf("%s is %s here and %s elsewhere, though the architecture defines it", name, hex(code), hex(old.config))
		}
	}
	byCode := func(a, b *event) int { return int(a.config) - int(b.config) }
	slices.SortFunc(p.events, byCode)
	slices.SortFunc(common.events, byCode)
	return p, nil
}
