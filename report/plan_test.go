package report_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
)

// makePlan makes a plan for the default model of a processor.
func makePlan(t *testing.T, name string, opt plan.Options) *plan.Plan {
	t.Helper()
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := cat.CPU(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model("", cpu.Name)
	if err != nil {
		t.Fatal(err)
	}
	events, err := cat.Events(cpu)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(m, events, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func planJSON(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.Write(&out, "json", report.Plan{Plan: p}, report.Options{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestPlanSchema checks that the JSON of all sorts of plans follows its schema, and that the
// schema can fail.
func TestPlanSchema(t *testing.T) {
	text := ""
	for _, tt := range []struct {
		cpu string
		opt plan.Options
	}{
		{"skylakex", plan.Options{Level: 2, SMT: true, Watchdog: true}},
		{"haswell", plan.Options{SMT: true}},
		{"power7", plan.Options{}},
		{"core2", plan.Options{Set: "big-4"}},
		{"generic", plan.Options{}},
		{"neoverse-v1", plan.Options{Level: 1}},
	} {
		text = planJSON(t, makePlan(t, tt.cpu, tt.opt))
		if err := testschema.Validate(t, report.Schema[report.Plan](), text); err != nil {
			t.Errorf("%s: %#v", tt.cpu, err)
		}
	}
	if testschema.Validate(t, report.Schema[report.Plan](), strings.Replace(text, `"lower_bound":`, `"lowest":`, 1)) == nil {
		t.Error("a misspelt key passes")
	}
}

// TestPlanJSON checks the document that other programs read.
func TestPlanJSON(t *testing.T) {
	p := makePlan(t, "sandybridge", plan.Options{Level: 2})
	var got struct {
		Groups []struct {
			Events, Counters, Nodes []string
			Coverage                float64
		}
		Runs       int
		LowerBound int `json:"lower_bound"`
		Optimal    bool
		Rotation   []int
		Nodes      []struct {
			Path     string
			Together bool
			Groups   []int
			Parts    []struct{ Events []string }
		}
		Together struct {
			Nodes, Of int
			Share     float64
		}
	}
	if err := json.Unmarshal([]byte(planJSON(t, p)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Runs != 2 || got.LowerBound != 2 || !got.Optimal || len(got.Groups) != 2 || len(got.Rotation) != 2 {
		t.Errorf("%d groups, %d runs, bound %d, optimal %t, rotation %v", len(got.Groups), got.Runs, got.LowerBound, got.Optimal, got.Rotation)
	}
	if !slices.Contains(got.Groups[0].Nodes, "Retiring") || !slices.Contains(got.Groups[0].Events, "UOPS_RETIRED.RETIRE_SLOTS") {
		t.Errorf("the first group is %+v", got.Groups[0])
	}
	if len(got.Groups[0].Events) != len(got.Groups[0].Counters) || got.Groups[0].Coverage != 0.5 {
		t.Errorf("the first group is %+v", got.Groups[0])
	}
	if got.Together.Nodes != 10 || got.Together.Of != 12 {
		t.Errorf("together: %+v", got.Together)
	}
	for _, n := range got.Nodes {
		if n.Together != (len(n.Parts) == 0) || n.Together != (len(n.Groups) == 1) {
			t.Errorf("%s: %+v", n.Path, n)
		}
	}
}

// TestPlanText checks what a plan says about itself.
func TestPlanText(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    *plan.Plan
		runs bool
		want []string
	}{
		{"one group", makePlan(t, "icelakex", plan.Options{Level: 1}), false,
			[]string{"everything is counted at one time", "4 of 4 nodes (100 %)", "TOPDOWN.SLOTS (fixed 3), PERF_METRICS.FRONTEND_BOUND, "}},
		{"optimal", makePlan(t, "sandybridge", plan.Options{}), false,
			[]string{"5, which is optimal", "Memory_Bound: 4 ratios, each from one of groups 1, ", "order     1 ", "; or count 5 runs"}},
		{"erratum", makePlan(t, "ivybridge", plan.Options{SMT: true}), false,
			[]string{"all logical processors", "errata BJ122", "mixed from groups"}},
		{"runs", makePlan(t, "power7", plan.Options{}), true,
			[]string{"\nrun 10\n", "runs      10, each with one group"}},
		{"set", makePlan(t, "core2", plan.Options{Set: "big-4"}), false, []string{"event set big-4", "2, which is optimal"}},
		{"assumed", makePlan(t, "generic", plan.Options{}), false, []string{"is not known: 2 general ones are assumed"}},
	} {
		var out bytes.Buffer
		if err := report.Write(&out, "text", report.Plan{Plan: tt.p, Runs: tt.runs}, report.Options{Width: 200}); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", tt.name, want, out.String())
			}
		}
	}
}

// TestGap checks that what is not proved is said. The bound is lowered by hand:
// which plans have a gap is up to the search.
func TestGap(t *testing.T) {
	p := makePlan(t, "sandybridge", plan.Options{})
	p.LowerBound = len(p.Groups) - 2
	var out bytes.Buffer
	if err := report.Write(&out, "text", report.Plan{Plan: p}, report.Options{Width: 200}); err != nil {
		t.Fatal(err)
	}
	if want := "5, gap 2: fewer than 3 are proved"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
	if text := planJSON(t, p); !strings.Contains(text, `"optimal": false`) || !strings.Contains(text, `"gap": 2`) {
		t.Errorf("the JSON says that it is optimal: %s", text)
	}
}

// TestChosen checks which nodes options choose.
func TestChosen(t *testing.T) {
	p := makePlan(t, "skylakex", plan.Options{Level: 1})
	m := p.Model
	names := func(o report.Options) []string {
		t.Helper()
		chosen, err := m.Choose(o.Nodes, o.Level, o.All)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, i := range chosen {
			all = append(all, m.Nodes[i].Name)
		}
		return all
	}
	if got, want := names(report.Options{Nodes: "l3_bound"}), []string{"Backend_Bound", "Memory_Bound", "L3_Bound"}; !slices.Equal(got, want) {
		t.Errorf("L3_Bound chooses %v, want %v", got, want)
	}
	if got := names(report.Options{Level: 1}); len(got) != 4 {
		t.Errorf("level 1 is %v", got)
	}
	if all := names(report.Options{All: true}); len(all) != len(m.Nodes) {
		t.Errorf("all are %d of %d nodes", len(all), len(m.Nodes))
	}
	for _, pattern := range []string{"nosuch", "["} {
		if _, err := m.Choose(pattern, 0, false); err == nil {
			t.Errorf("%q chooses something", pattern)
		}
	}
}
