package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/report"
)

// TestExplainBrief holds the explanations of all nodes of some processors to fifteen lines,
// without a condition on events.
func TestExplainBrief(t *testing.T) {
	nodes := 0
	for _, of := range []struct{ cpu, model string }{{"skylakex", ""}, {"icelake", ""}, {"amdzen4", ""}, {"neoverse-v1", ""}, {"power9", ""}, {"core2", ""},
		{"generic", "os-time"}, {"generic", "simulated-cycles"}, {"generic", "generic"}} {
		m, err := account.Load(of.cpu, of.model, account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Model.Nodes {
			var b bytes.Buffer
			e := report.Explanation{CPU: m.CPU, Model: m.Model, Node: i, Events: m.Events, Params: m.Params()}
			if err := report.Write(&b, report.Formats[report.Explanation]()[0], e, report.Options{Width: 80}); err != nil {
				t.Fatal(err)
			}
			nodes++
			if n := strings.Count(b.String(), "\n"); n > 15 || strings.Contains(b.String(), "has_event") {
				t.Errorf("%d lines:\n%s", n, b.String())
			}
		}
	}
	if nodes < 300 {
		t.Errorf("%d nodes", nodes)
	}
}
