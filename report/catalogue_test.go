package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// document returns what a function writes, which must be as a schema says. The
// same with one key spelt otherwise must not be.
func document(t *testing.T, schema []byte, key string, write func(w *bytes.Buffer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	if err := testschema.Validate(t, schema, out.String()); err != nil {
		t.Fatalf("%#v", err)
	}
	spoilt := strings.Replace(out.String(), `"`+key+`":`, `"`+strings.ToUpper(key)+`":`, 1)
	if spoilt == out.String() || testschema.Validate(t, schema, spoilt) == nil {
		t.Errorf("the schema takes another spelling of %q", key)
	}
	return out.Bytes()
}

// TestCatalogueSchemas holds the documents of every processor, with the trees of
// its methods and its events, to their schemas.
func TestCatalogueSchemas(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	document(t, report.Schema[report.Methods](), "title", func(w *bytes.Buffer) error {
		return report.Write(w, "json", report.Methods{List: cat.Models(""), CPUs: cat.CPUs()}, report.Options{})
	})
	seen := map[string]bool{} // files
	for _, cpu := range cat.CPUs() {
		var list []*model.Model
		for _, info := range cat.Models(cpu.Name) {
			if seen[info.File] {
				continue
			}
			seen[info.File] = true
			m, err := cat.Model(info.Name, cpu.Name)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, m)
		}
		if len(list) == 0 {
			continue
		}
		document(t, report.Schema[report.Methods](), "vendor", func(w *bytes.Buffer) error {
			return report.Write(w, "json", report.Trees{CPU: cpu, List: list}, report.Options{})
		})
		table, err := cat.Events(cpu)
		if err != nil {
			t.Fatal(err)
		}
		events := table.Events()
		some := make([]*model.Event, min(len(events), 100)) // all take long to validate
		for i := range some {
			some[i] = &events[i*len(events)/len(some)]
		}
		if len(some) > 0 {
			document(t, report.Schema[report.Events](), "perf", func(w *bytes.Buffer) error {
				return report.Write(w, "json", report.Events{CPU: cpu, List: some}, report.Options{})
			})
		}
	}
}

// TestTreesJSON reads back what a method says.
func TestTreesJSON(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := cat.CPU("core2")
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model("core2-cycles", "core2")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		CPUs   []struct{ Name string }
		Models []struct {
			Name  string
			Nodes []struct {
				Path    string
				Level   int
				Formula string
				Rest    bool
			}
			Parameters []struct {
				Name  string
				Value *float64
			}
			EventSets []struct {
				Events []struct {
					SampleAfter uint64 `json:"sample_after"`
				}
			} `json:"event_sets"`
		}
	}
	if err := json.Unmarshal(document(t, report.Schema[report.Methods](), "path", func(w *bytes.Buffer) error {
		return report.Write(w, "json", report.Trees{CPU: cpu, List: []*model.Model{m}}, report.Options{})
	}), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.CPUs) != 1 || doc.CPUs[0].Name != "core2" || len(doc.Models) != 1 || len(doc.Models[0].Nodes) != len(m.Nodes) {
		t.Fatalf("got %+v", doc)
	}
	got := doc.Models[0]
	for i, n := range got.Nodes {
		if want := &m.Nodes[i]; n.Path != want.Path || n.Level != want.Level || n.Formula != want.Formula || n.Rest != want.Rest {
			t.Errorf("node %d is %+v, want %s", i, n, want.Path)
		}
	}
	if len(got.Parameters) != len(m.Parameters) || *got.Parameters[0].Value != *m.Parameters[0].Value {
		t.Errorf("got %d parameters, want %d", len(got.Parameters), len(m.Parameters))
	}
	if got, want := got.EventSets[0].Events[0].SampleAfter, m.EventSets[0].Events[0].SampleAfter; got != want || want == 0 {
		t.Errorf("sampled every %d, want %d", got, want)
	}
	doc.Models = nil
	var out bytes.Buffer
	if err := report.Write(&out, "json", report.Trees{CPU: cpu, List: []*model.Model{m}}, report.Options{Level: 1}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, n := range doc.Models[0].Nodes {
		if n.Level > 1 {
			t.Errorf("%s is of level %d, want 1 at most", n.Path, n.Level)
		}
	}
}

// TestFindingsJSON writes findings of each severity, and none.
func TestFindingsJSON(t *testing.T) {
	got := document(t, report.Schema[report.Findings](), "severity", func(w *bytes.Buffer) error {
		return report.Write(w, "json", report.Findings{List: []model.Finding{{File: "a.toml", Line: 3, Severity: model.SevError, Msg: "no"},
			{File: "a.toml", Line: 4, Severity: model.SevWarning, Msg: "perhaps"}, {File: "a.toml", Line: 5, Severity: model.SevNote, Msg: "well"}}}, report.Options{})
	})
	for _, want := range []string{`"severity": "error"`, `"severity": "warning"`, `"severity": "note"`, `"message": "perhaps"`, `"line": 5`} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	document(t, report.Schema[report.Findings](), "findings", func(w *bytes.Buffer) error { return report.Write(w, "json", report.Findings{}, report.Options{}) })
}
