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

// armSharedUnits is how the files begin that describe a unit which cores share, not a
// core: no processor identifies itself as it.
const armSharedUnits = "lumex/arm-c1-sme2-"

// armCommon is the key of the events that the architecture defines: what any
// core with the PMUv3 extension may have.
const armCommon = "armv8"

// readArm reads the core events of Arm's telemetry data. Events that the
// architecture defines make up a processor of their own, the first.
func readArm(dir string, t *table) error {
	dir = filepath.Join(dir, "arm-telemetry", "pmu", "cpu")
	err := t.onlyKnown(dir, "*/*.json", func(file string) bool {
		// Some files hold nothing but the name of another one.
		data, err := os.ReadFile(filepath.Join(dir, file))
		return strings.HasPrefix(file, armSharedUnits) || err == nil && strings.HasSuffix(strings.TrimSpace(string(data)), ".json")
	})
	if err != nil {
		return err
	}
	common := &processor{key: armCommon}
	t.processors = []*processor{common}
	for _, s := range t.sources {
		p, err := readRevisions(dir, s, common)
		if err != nil {
			return err
		}
		t.processors = append(t.processors, p)
	}
	return nil
}

func finishArm(e *event, units []unitRule) {
	e.unit = unitOf(units, e.name)
	if e.name == "CPU_CYCLES" {
		e.counters = "fixed0"
	}
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

// readRevisions reads the files of a core's revisions, which must agree, and adds
// what the architecture defines to common.
func readRevisions(dir string, s source, common *processor) (*processor, error) {
	var p *processor
	for _, name := range s.files {
		data, err := os.ReadFile(filepath.Join(dir, name))
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
			return nil, fmt.Errorf("%s: the events differ from those of %s: give it a key of its own", name, s.files[0])
		}
		p = revision
	}
	p.key = s.key
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
