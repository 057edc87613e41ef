package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/gen"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/model"
)

// models is the folder of the generated files.
var models = filepath.Join("..", "..", "..", "model", "data", "models", "tma")

// TestGenerated checks that the committed models are what the generator makes
// of the vendor's files; making them checks every node against the vendor's
// expanded formula.
func TestGenerated(t *testing.T) {
	files, err := generate(testshared.Dir(t, "data", "intel-perfmon"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		committed, err := os.ReadFile(filepath.Join(models, f.Name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(committed, f.Data) {
			t.Errorf("%s is not what the generator makes: run go generate ./internal/gen/topdown", f.Name)
		}
	}
}

// TestVendorFormulas checks the vendor's BaseFormula against its Formula as
// they stand, with random counts: all agree but the known ones.
func TestVendorFormulas(t *testing.T) {
	g, err := newGenerator(testshared.Dir(t, "data", "intel-perfmon"))
	if err != nil {
		t.Fatal(err)
	}
	g.fixes = slices.DeleteFunc(g.fixes, func(x *fix) bool { return x.Field != "formula" && x.Field != "drop" })
	var got []string
	for i := range processors {
		for _, name := range brokenFormulas(t, g, &processors[i]) {
			got = append(got, processors[i].stem+" "+name)
		}
	}
	slices.Sort(got)
	want := []string{
		"emeraldrapids Bottleneck_Data_Cache_Memory_Bandwidth", // hbm_bound is no metric
		"emeraldrapids Bottleneck_Data_Cache_Memory_Latency",
		"emeraldrapids Bottleneck_Other_Bottlenecks",             // names the two above
		"emeraldrapids Info_Botlnk_L0_Core_Bound_Likely",         // a blank in a name
		"sapphirerapidshbm Info_Memory_Mix_Offcore_Read_HBM_PKI", // begins with "if"
		"sapphirerapidshbm Info_Memory_SoC_R2C_HBM_BW",
	}
	if !slices.Equal(got, want) {
		t.Errorf("BaseFormula is not Formula for\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// brokenFormulas returns the metrics whose two formulas do not agree. One that
// cannot be read has no value, and neither has what names it.
func brokenFormulas(t *testing.T, g *generator, p *processor) []string {
	t.Helper()
	f, err := readMetrics(filepath.Join(g.dir, p.metrics))
	if err != nil {
		t.Fatal(err)
	}
	c, err := g.converter(p, f.Header.TmaVersion)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := c.keep(f.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	m := &topdown{p: p}
	for _, vm := range kept {
		n := node{Node: model.Node{Name: vm.MetricName}, metric: vm}
		if n.Formula, err = c.formula(vm); err != nil {
			n.Formula = "0 / 0"
		}
		m.nodes = append(m.nodes, n)
	}
	m.params = c.params
	checkErr := m.check(c)
	var names []string
	for _, n := range m.nodes {
		if checkErr != nil && strings.Contains(checkErr.Error(), n.Name+": ") {
			names = append(names, n.Name)
		}
	}
	return names
}

// TestModels checks that all top-down models load for each of their processors. Lint may
// only object to missing texts. Without -long lint looks at each sixth.
func TestModels(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, info := range cat.Models("") {
		if info.Name != "tma" {
			continue
		}
		for _, cpu := range info.CPUs {
			n++
			m, err := cat.Model("tma", cpu)
			if err != nil {
				t.Errorf("%s: %v", cpu, err)
				continue
			}
			if n%testlong.Size(6, 1) != 0 {
				continue
			}
			for _, f := range model.Lint(cat, m) {
				if f.Severity == model.SevError {
					t.Error(f)
				}
			}
		}
	}
	if n < len(processors) {
		t.Errorf("%d processors with a top-down model, %d are generated", n, len(processors))
	}
}

func TestShare(t *testing.T) {
	c := &converter{infos: map[string]info{"Info_Percent": {percent: true}}}
	for _, test := range []struct{ formula, want string }{
		{"100 * A / B", "A / B"},
		{"100 * (A + B)", "(A + B)"},
		{"100 - (Bottleneck_A + Bottleneck_B)", "1 - (Bottleneck_A + Bottleneck_B)"},
		{"100 * (A - B) - Bottleneck_A", "(A - B) - Bottleneck_A"},
		{"100 * (1 - A / B) if C > 0.5 else 0", "(1 - A / B) if C > 0.5 else 0"},
		{"Info_Percent + 50", "Info_Percent + 0.5"},
		{"A", ""},
		{"100 * A + B", ""},
		{"2 * 100 * A", ""},
	} {
		got, ok := c.share(test.formula)
		if ok != (test.want != "") || ok && got != test.want {
			t.Errorf("share of %s = %q, %v, want %q", test.formula, got, ok, test.want)
		}
	}
}

func TestWithoutFallback(t *testing.T) {
	for _, test := range []struct{ formula, want string }{
		{"A + B", "A + B"},
		{
			"(min(A * Retire_Latency_A, A * 7) if Retire_Latency_A >= 0 else A * 7) / C",
			"(min(A * Retire_Latency_A, A * 7)) / C",
		},
		{"(A if Retire_Latency_A >= 0 else B) / C", ""},
		{"(min(A, B) if Retire_Latency_A >= 0 else C) / D", ""},
	} {
		got, err := withoutFallback(test.formula)
		if (err == nil) != (test.want != "") || got != test.want {
			t.Errorf("withoutFallback(%s) = %q, %v, want %q", test.formula, got, err, test.want)
		}
	}
}

func TestWithoutParent(t *testing.T) {
	for _, test := range []struct {
		own, parent, want string
		standalone        bool
	}{
		{"A > 0.1 & P > 0.2", "P > 0.2", "A > 0.1", false},
		{"A > 0.1 & P > 0.2 & Q > 0.3", "P > 0.2 & Q > 0.3", "A > 0.1", false},
		{"A > 0.1", "P > 0.2", "A > 0.1", true},
		{"A > 0.1", "P > 0.2 & Q > 0.3", "A > 0.1", true},
		{"A > 0.1 & P > 0.3", "P > 0.2", "A > 0.1 & P > 0.3", true},
		{"A > 0.1 & P > 0.2", "P > 0.2 & Q > 0.3", "A > 0.1 & P > 0.2", false},
		{"P > 0.2", "P > 0.2", "P > 0.2", false},
		{"A > 0.1", "", "A > 0.1", false},
		{"", "P > 0.2", "", false},
	} {
		if got, standalone := withoutParent(test.own, test.parent); got != test.want || standalone != test.standalone {
			t.Errorf("withoutParent(%s; %s) = %s, %v, want %s, %v", test.own, test.parent, got, standalone, test.want, test.standalone)
		}
	}
}

// TestWrap checks that breaking a formula into lines changes nothing but
// blanks, for random formulas and widths.
func TestWrap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		text, err := canonical(randomFormula(random, 5))
		if err != nil {
			t.Fatal(err)
		}
		room := 20 + random.IntN(80)
		lines := gen.Wrap(text, room, true)
		back, err := canonical(strings.Join(lines, "\n"))
		if err != nil || back != text {
			t.Fatalf("wrapped to %d:\n%s\nreads as %s (%v), want %s", room, strings.Join(lines, "\n"), back, err, text)
		}
	}
}

func randomFormula(random *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"EVENT.A", "EVENT.LONG_NAME_B:c1:e1", "Node_C", "2.5"}[random.IntN(4)]
	}
	x, y := randomFormula(random, depth-1), randomFormula(random, random.IntN(depth))
	switch random.IntN(6) {
	case 0:
		return "(" + x + ") * (" + y + ")"
	case 1:
		return "max(" + x + ", " + y + ")"
	case 2:
		return "((" + x + ") if " + y + " > 1 else (" + y + "))"
	case 3:
		return "(" + x + ") / (" + y + ")"
	case 4:
		return x + " - (" + y + ")"
	}
	return x + " + " + y
}

// TestFaults checks that each fault of a metric file that no fix mends ends the
// generator.
func TestFaults(t *testing.T) {
	sound := func() *vendorMetric {
		m := &vendorMetric{
			MetricName: "Child", LegacyName: "metric_TMA_..Child(%)", Level: 2, ParentCategory: "Root", UnitOfMeasure: "percent",
			Events:  []alias{{"EVENT.A", "a"}, {"EVENT.B", "b"}},
			Formula: "100 * ( a / b ) * ( 1 - a / b )", BaseFormula: " ( event.a / event.b ) * tma_root", Category: "TMA", CountDomain: "Slots",
		}
		m.Threshold.BaseFormula = "metric_TMA_..Child(%) > 10 & metric_TMA_Root(%) > 20"
		return m
	}
	for _, test := range []struct {
		name, want string
		spoil      func(m *vendorMetric)
	}{
		{"none", "", func(*vendorMetric) {}},
		{"undefined metric", "there is no metric tma_trunk", func(m *vendorMetric) { m.BaseFormula = "tma_trunk" }},
		{"undefined event", "there is no event event.c", func(m *vendorMetric) { m.BaseFormula = "event.c" }},
		{"unknown modifier", `the modifier "x1" is not known`, func(m *vendorMetric) { m.BaseFormula = "event.a:x1" }},
		{"no else", `expected "else"`, func(m *vendorMetric) { m.BaseFormula = "event.a if event.b > 1" }},
		{"formulas differ", "the vendor's Formula gives", func(m *vendorMetric) { m.BaseFormula = "( event.a / event.b ) * tma_root * 2" }},
		{"unknown alias", `nothing has the alias "c"`, func(m *vendorMetric) { m.Formula = "100 * c" }},
		{"unknown constant", `the constant "WIDTH" is not known`, func(m *vendorMetric) { m.Constants = []alias{{"WIDTH", "w"}} }},
		{"never a value", "no random counts give it a value", func(m *vendorMetric) { m.BaseFormula, m.Formula = "event.a / 0", "100 * a / 0" }},
		{"own value", "leads back to itself", func(m *vendorMetric) { m.BaseFormula = "tma_child" }},
		{"no parent", `its parent "" is not`, func(m *vendorMetric) { m.ParentCategory = "" }},
		{"wrong parent", `there is no metric "Trunk"`, func(m *vendorMetric) { m.ParentCategory = "Trunk" }},
		{"wrong level", "of level 3", func(m *vendorMetric) { m.Level = 3 }},
		{"unknown domain", `the count domain "Beans" is not known`, func(m *vendorMetric) { m.CountDomain = "Beans" }},
		{"threshold", "there is no metric Trunk", func(m *vendorMetric) { m.Threshold.BaseFormula = "metric_TMA_Trunk(%) > 10" }},
		{"sampling", "sampling: there is no event EVENT.C", func(m *vendorMetric) { m.LocateWith = "EVENT.A;EVENT.C" }},
		{"unknown figure", "info.csv says nothing", func(m *vendorMetric) { m.MetricName, m.ParentCategory = "Info_New", "" }},
		{"two of a name", "there are two metrics Root", func(m *vendorMetric) { m.MetricName = "Root" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := sound()
			test.spoil(m)
			err := convert(m)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got the error %v, want %q", err, test.want)
			}
		})
	}
}

// convert makes a model of a root and one more metric.
func convert(m *vendorMetric) error {
	root := &vendorMetric{
		MetricName: "Root", LegacyName: "metric_TMA_Root(%)", Level: 1, Category: "TMA", CountDomain: "Slots",
		Events:  []alias{{"EVENT.A", "a"}, {"EVENT.B", "b"}},
		Formula: "100 * ( 1 - a / b )", BaseFormula: "1 - event.a / event.b",
	}
	p := &processor{stem: "test", width: 4}
	c := &converter{p: p, costs: &costs{}, events: map[string]string{"EVENT.A": "EVENT.A", "EVENT.B": "EVENT.B"}, names: map[string]string{}, tree: map[string]bool{}}
	made := &topdown{p: p}
	var err error
	if made.nodes, err = c.nodes([]*vendorMetric{root, m}); err != nil {
		return err
	}
	if err := made.order(nil); err != nil {
		return err
	}
	return made.check(c)
}

func TestFixes(t *testing.T) {
	for _, test := range []struct{ name, toml, want string }{
		{"unknown key", "[[fix]]\nmetric = 'A'\nwhy = 'x'", "fixes.toml"},
		{"no reason", "[[fix]]\nmetric = 'A'\nfield = 'part'", "needs a metric, a reason"},
		{"unknown field", "[[fix]]\nmetric = 'A'\nreason = 'x'\nfield = 'level'", "one of the fields"},
	} {
		if _, err := parseFixes([]byte(test.toml)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got the error %v, want %q", test.name, err, test.want)
		}
	}
	all, err := parseFixes([]byte("[[fix]]\nmodels = ['a', 'b']\nmetric = 'A'\nfield = 'parent'\nfrom = 'X'\nto = 'Y'\nreason = 'x'"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := all.replace("a", "A", "parent", "X"); got != "Y" || err != nil {
		t.Errorf("replace = %q, %v, want Y", got, err)
	}
	if _, err := all.replace("b", "A", "parent", "Z"); err == nil {
		t.Error("a parent that is not the one to be mended was replaced")
	}
	if err := all.unused(); err != nil {
		t.Errorf("unused: %v", err)
	}
	delete(all[0].used, [2]string{"b", "A"})
	if err := all.unused(); err == nil || !strings.Contains(err.Error(), "nothing to mend in b") {
		t.Errorf("unused = %v, want b", err)
	}
}

// TestChanges checks that a file that extends another states what differs, and
// takes back what it does not have.
func TestChanges(t *testing.T) {
	base := &model.Node{Parent: "P", Formula: "A", Domain: "core", Threshold: "N > 0.1", Sample: []string{"E"}, Overlap: true}
	for _, test := range []struct {
		n    model.Node
		want string
	}{
		{*base, ""},
		{model.Node{Parent: "P", Formula: "B", Domain: "core", Threshold: "N > 0.1", Sample: []string{"E"}, Overlap: true}, "formula = \"B\"\n"},
		{model.Node{Parent: "Q", Formula: "A"}, "parent = \"Q\"\ndomain = \"thread\"\nthreshold = \"\"\noverlap = false\nsample = []\n"},
	} {
		w := newWriter()
		if w.Keys(&test.n, base, w.Node...); w.String() != test.want {
			t.Errorf("%+v: got\n%swant\n%s", test.n, w, test.want)
		}
	}
}

// TestFormulaSpelling checks the vendor's spellings and what they become.
func TestFormulaSpelling(t *testing.T) {
	c := &converter{
		p:       &processor{stem: "lunarlake-core", width: 8},
		events:  map[string]string{"EVENT.A": "EVENT.A", "IDQ.DSB_UOPS": "IDQ.DSB_UOPS"},
		names:   map[string]string{"4k_aliasing": "4K_Aliasing", "info_system_time": "Info_System_Time", "bottleneck_x": "Bottleneck_X"},
		latency: latencies{means: map[string]float64{"EVENT.A": 7}},
		costs:   &costs{},
		spelled: spellings{{"lunarlake-core", "UNC_CLOCK.SOCKET:ONE_UNIT"}: {"uncore_clock/clockticks/"}},
	}
	for _, test := range []struct{ metric, vendor, want string }{
		{"Node", " ( 8 ) * event.a:c1:e1 / tma_4k_aliasing", "Pipeline_Width * EVENT.A:c1:e1 / 4K_Aliasing"},
		{"Node", "event.a:SUP + event.a:USER", "EVENT.A:k + EVENT.A:u"},
		{"Node", "perf_metrics.retiring / event.a:perf_metrics", "PERF_METRICS.RETIRING / EVENT.A"},
		{"Node", "event.a:ocr_msr_val=0x103b800002", "EVENT.A:ocr_msr_val=0x103b800002"},
		{"Node", "event.a / 2 if smt_on else tsc / num_cpus", "EVENT.A / 2 if #smt_on else TSC / #num_cpus_online"},
		{"Node", "event.a / ( 1000000000 ) / duration_time", "EVENT.A / 1e9 / Info_System_Time"},
		{"Info_System_Time", "duration_time", "duration_time / 1e9"},
		{"Node", "unc_clock.socket:one_unit", "UNC_CLOCK_SOCKET_ONE_UNIT"},
		{"Node", "event.a * event.a:retire_latency", "EVENT.A * Retire_Latency_EVENT_A"},
		{"Node", "tma_bottleneck_x * event.a / 100", "Bottleneck_X * EVENT.A"},
		{"Bottleneck_Y", "100 - tma_bottleneck_x", "1 - Bottleneck_X"},
	} {
		got, err := c.formula(&vendorMetric{MetricName: test.metric, BaseFormula: test.vendor})
		if err != nil || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", test.vendor, got, err, test.want)
		}
	}
	if len(c.inputs) != 1 || c.inputs[0].About == "" {
		t.Errorf("inputs %+v, want one", c.inputs)
	}
	if len(c.params) != 1 || c.params[0].Value == nil || *c.params[0].Value != 7 {
		t.Errorf("parameters %+v, want one of 7", c.params)
	}
}

// Example of what the files look like.
func Example_wrap() {
	for _, line := range gen.Wrap("A.LONG_EVENT_NAME / (A.LONG_EVENT_NAME + B.LONG_EVENT_NAME + C.LONG_EVENT_NAME) * Root", 50, true) {
		fmt.Println(line)
	}
	// Output:
	// A.LONG_EVENT_NAME
	// / (
	//     A.LONG_EVENT_NAME + B.LONG_EVENT_NAME
	//     + C.LONG_EVENT_NAME
	//   )
	// * Root
}

// TestNameLatencies checks that latencies in a formula become parameters. A formula or value
// that does not fit costs.toml ends the generator.
func TestNameLatencies(t *testing.T) {
	const clock = "Info_System_Core_Frequency"
	data := `
[[latency]]
name = "L2"
about = "x"
[[latency]]
name = "L3"
about = "y"
[[metric]]
name = "Hit"
latencies = ["L3", "L2"]
[[metric]]
name = "Both"
latencies = ["L3", "L2", "L3"]
[[metric]]
models = ["icelake"]
name = "Hit"
latencies = ["L2"]
`
	all, err := parseCosts([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ stem, metric, formula, want, fault string }{
		{"skylake", "Other", "A / B", "A / B", ""},
		{"skylake", "Hit", "(10 * " + clock + " - 3.5 * " + clock + ") * A / B", "(L3 - L2) * " + clock + " * A / B", ""},
		{"icelake", "Hit", "3.5 * " + clock + " * A", "L2 * " + clock + " * A", ""},
		{"skylake", "Both", "A * (10 * " + clock + " - 3.5 * " + clock + ") + 10 * " + clock + " * B", "A * ((L3 - L2) * " + clock + ") + L3 * " + clock + " * B", ""},
		{"skylake", "Both", "A * (10 * " + clock + " - 3.5 * " + clock + ") + 11 * " + clock + " * B", "", "L3 is 11 ns here and 10 ns"},
		{"skylake", "Hit", "10 * " + clock + " * A", "", "its formula has 1 latencies, costs.toml 2"},
		{"skylake", "Other", "10 * " + clock + " * A", "", "does not say what 10 ns are"},
	} {
		c := &converter{p: &processor{stem: test.stem}, costs: all, version: "5.1"}
		got, err := c.nameLatencies(test.metric, test.formula)
		if test.fault != "" {
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%s: got the error %v, want %q", test.formula, err, test.fault)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", test.formula, got, err, test.want)
		}
	}
	for _, test := range []struct{ toml, want string }{
		{"[[latency]]\nname = 'A'\nvalue = 1", "costs.toml"},
		{"[[metric]]\nname = 'A'\nlatencies = ['L4']", `there is no latency "L4"`},
		{"[[metric]]\nname = 'A'\nmodels = ['nolake']", `there is no model "nolake"`},
	} {
		if _, err := parseCosts([]byte(test.toml)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got the error %v, want %q", test.toml, err, test.want)
		}
	}
}

func TestAdditions(t *testing.T) {
	for _, test := range []struct{ toml, want string }{
		{"[[node]]\nname = 'A'\nvalue = 1", "additions.toml"},
		{"[[node]]\nname = 'A'\nmodels = ['icelake']\nformula = 'B'", "a reason"},
		{"[[node]]\nname = 'A'\nmodels = ['nolake']\nformula = 'B'\nsource = 'y'\nreason = 'x'", `there is no model "nolake"`},
	} {
		if _, err := parseAdditions([]byte(test.toml)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got the error %v, want %q", test.toml, err, test.want)
		}
	}
	all, err := parseAdditions([]byte("[[node]]\nname = 'A'\nmodels = ['icelake']\nformula = 'B'\nsource = 'y'\nreason = 'x'"))
	if err != nil {
		t.Fatal(err)
	}
	g := &generator{additions: all}
	if n := len(g.added("icelake", nil)); n != 1 {
		t.Errorf("%d nodes are added to icelake, want 1", n)
	}
	if n := len(g.added("skylake", nil)); n != 0 {
		t.Errorf("%d nodes are added to skylake, want none", n)
	}
}
