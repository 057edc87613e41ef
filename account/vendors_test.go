package account_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

// These tests compare the models of AMD, Arm and IBM with others' values and formulas, from the
// shared reference material: what perf printed in published recordings, the vendors' own
// metrics, and those of Linux.

// vendorMethod makes a model ready for a processor.
func vendorMethod(t *testing.T, cpuName, modelName string) *account.Method {
	t.Helper()
	method, err := account.Load(cpuName, modelName, account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return method
}

// countsAccount makes the account of counts by event.
func countsAccount(method *account.Method, values map[string]float64) *account.Account {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}}
	for _, event := range slices.Sorted(maps.Keys(values)) {
		l.Columns = append(l.Columns, counts.Column{Event: event})
	}
	table := counts.NewTable(l)
	for i, c := range l.Columns {
		*table.Cell(0, i) = counts.Cell{Value: values[c.Event], State: counts.Counted}
	}
	return method.Bind(l).Evaluate(table, account.Place{}, nil)
}

// Published recordings.

// TestVendorsPrinted compares all that perf derived from counts in the published recordings of
// AMD's and Arm's processors: to the printed digit.
func TestVendorsPrinted(t *testing.T) {
	for file, cpus := range map[string][][2]string{
		"KeithJH-notes_*.txt":                                    {{"amdzen4", "pipeline"}, {"generic", "generic"}},
		"hand-neoverse-n2-*.txt":                                 {{"neoverse-n2", "topdown"}},
		"hand-armlp-n1-stride-*.txt":                             {{"cortex-a76", "topdown"}},
		"lore-linux-arm-kernel-Re_PATCH_3_3_arm64_tlb_*.txt":     {{"generic", "generic"}},
		"lore-linux-tip-commits-_tip_perf_core_perf_bench_*.txt": {{"amdzen2", "dispatch-stalls"}, {"generic", "generic"}},
	} {
		files, err := filepath.Glob(filepath.Join(testshared.Dir(t, "corpus", "perfstat"), file))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no such files (%v)", file, err)
		}
		for _, path := range files {
			t.Run(filepath.Base(path), func(t *testing.T) { comparePrinted(t, path, cpus) })
		}
	}
}

// printedValue matches a derived value as perf prints it.
var printedValue = regexp.MustCompile(`#\s+([\d.]+)\s*(.*?)(?:\s+\([\d.]+%\)|\s+\( \+-.*\))?\s*$`)

// printedNodes are the nodes that compute what perf derives, by its words.
var printedNodes = map[string]struct {
	node  string
	scale float64
}{
	"insn per cycle":               {"IPC", 1},
	"% of all branches":            {"Branch_Miss_Ratio", 100},
	"% frontend cycles idle":       {"Frontend_Stalled", 100},
	"% backend cycles idle":        {"Backend_Stalled", 100},
	"% of all L1-dcache accesses":  {"L1D_Miss_Ratio", 100},
	"% of all cache refs":          {"Cache_Miss_Ratio", 100},
	"% of all dTLB cache accesses": {"DTLB_Miss_Ratio", 100},
	"% of all dTLB cache hits":     {"DTLB_Miss_Ratio", 100},
	"GHz":                          {"Frequency", 1},
	"CPUs utilized":                {"CPUs_Utilised", 1},
	"PKI  branch_pki":              {"branch_pki", 1},
	"MPKI  branch_mpki":            {"branch_mpki", 1},
	"%  branch_miss_pred_rate":     {"branch_misprediction_ratio", 100},
}

// otherNames are the same nodes in models that name them otherwise.
var otherNames = map[string][]string{
	"IPC":               {"ipc"},
	"Branch_Miss_Ratio": {"branch_misprediction_ratio"},
	"Frontend_Stalled":  {"op_queue_empty", "frontend_stalled_cycles"},
	"Backend_Stalled":   {"backend_stalled_cycles"},
}

// notCompared are derived values that no node has: rates per second, and ratios
// of the kernel's cache events that say little.
var notCompared = regexp.MustCompile(`^([GMK]?/sec|% of all (L1-icache|iTLB cache) accesses|stalled cycles per insn)$`)

// comparePrinted compares the derived values of a recording with its accounts on
// the given processors, by the given models.
func comparePrinted(t *testing.T, path string, cpus [][2]string) {
	accounts := printedAccounts(t, path, cpus)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Without the elapsed time, which perf then did not print, there is no use of
	// processors.
	timed := strings.Contains(string(text), "elapsed")
	compared := 0
	for line := range strings.Lines(string(text)) {
		m := printedValue.FindStringSubmatch(strings.TrimRight(line, " \r\n"))
		if m == nil || notCompared.MatchString(m[2]) || m[2] == "CPUs utilized" && !timed {
			continue
		}
		want, ok := printedNodes[m[2]]
		if name, isMetric := strings.CutPrefix(m[2], "%  "); !ok && isMetric {
			want.node, want.scale, ok = name, 100, true
		}
		if !ok {
			t.Errorf("%q is not compared with anything", strings.TrimSpace(line))
			continue
		}
		compared++
		_, digits, _ := strings.Cut(m[1], ".")
		if got := printedAs(accounts, want.node, want.scale, len(digits)); !slices.Contains(got, m[1]) {
			t.Errorf("%s: perf printed %s, the accounts say %q", want.node, m[1], got)
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// printedAs prints a node of all accounts that know it.
func printedAs(accounts []*account.Account, node string, scale float64, digits int) []string {
	var list []string
	for _, a := range accounts {
		for _, name := range append([]string{node}, otherNames[node]...) {
			if v := a.Value(name) * scale; !math.IsNaN(v) {
				list = append(list, strings.TrimPrefix(strconv.FormatFloat(v, 'f', digits, 64), "-"))
			}
		}
	}
	return list
}

// printedAccounts makes the accounts of all blocks of a recording.
func printedAccounts(t *testing.T, path string, cpus [][2]string) []*account.Account {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var accounts []*account.Account
	r := perfstat.NewReader(f, path, perfstat.Options{})
	for r.Next() {
		for _, c := range cpus {
			method := vendorMethod(t, c[0], c[1])
			accounts = append(accounts, method.Bind(r.Table().Layout).Evaluate(r.Table(), account.Place{}, nil).Clone())
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return accounts
}

// Formulas of others.

// A foreign is a metric of someone else, with what to multiply its value by to
// have it as ours.
type foreign struct {
	name    string
	formula *metric.Expr
	scale   float64
}

// compareForeign compares metrics with the nodes of the same names, for random counts. It
// returns the names of metrics whose values differ, that are no nodes, and that agree.
func compareForeign(t *testing.T, method *account.Method, metrics []foreign) (differ, absent, agree []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 11))
	wrong := map[string]bool{}
	for range 5 {
		values := map[string]float64{}
		draw := func(name string) float64 {
			// Spellings of one event have one count.
			key := strings.ToLower(name)
			for spelling, v := range values {
				if strings.ToLower(spelling) == key {
					return v
				}
			}
			return math.Floor(math.Exp(12 + 10*rng.Float64()))
		}
		for _, m := range metrics {
			for _, name := range m.formula.Names() {
				if _, ok := values[name]; !ok {
					values[name] = draw(name)
				}
			}
		}
		a := countsAccount(method, values)
		for _, m := range metrics {
			i, ok := a.Node(m.name)
			if !ok {
				continue
			}
			want := evaluateForeign(t, m.formula, values) * m.scale
			got := a.Nodes[i].Value
			if !(math.Abs(got-want) <= 1e-9*max(math.Abs(got), math.Abs(want), 1e-3)) {
				if !wrong[m.name] {
					t.Logf("%s is %v (%s), theirs %v", m.name, got, a.Why(i), want)
				}
				wrong[m.name] = true
			}
		}
	}
	for _, m := range metrics {
		switch _, ok := countsAccount(method, nil).Node(m.name); {
		case !ok:
			absent = append(absent, m.name)
		case wrong[m.name]:
			differ = append(differ, m.name)
		default:
			agree = append(agree, m.name)
		}
	}
	return differ, absent, agree
}

func evaluateForeign(t *testing.T, e *metric.Expr, values map[string]float64) float64 {
	t.Helper()
	names := e.Names()
	p, err := metric.Compile(e, func(name string) int { return slices.Index(names, name) })
	if err != nil {
		t.Fatal(err)
	}
	in := make([]float64, len(names))
	for i, name := range names {
		in[i] = values[name]
	}
	return p.Eval(in)
}

// A linuxMetric is one of Linux's JSON files. ArchStdEvent is the name of one that
// the architecture defines, whose formula a file may leave to sbsa.json.
type linuxMetric struct{ MetricName, ArchStdEvent, MetricExpr, ScaleUnit, Unit string }

// readLinux reads the metrics of a file.
func readLinux(t *testing.T, file string) []linuxMetric {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []linuxMetric
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	architecture := filepath.Join(filepath.Dir(file), "..", "..", "sbsa.json")
	for i := range list {
		m := &list[i]
		m.MetricName = cmp.Or(m.MetricName, m.ArchStdEvent)
		if m.ArchStdEvent == "" || m.MetricExpr != "" || filepath.Base(file) != "metrics.json" {
			continue
		}
		for _, a := range readLinux(t, architecture) {
			if a.MetricName == m.ArchStdEvent {
				m.MetricExpr, m.ScaleUnit = a.MetricExpr, a.ScaleUnit
			}
		}
	}
	return slices.DeleteFunc(list, func(m linuxMetric) bool { return m.MetricName == "" || m.MetricExpr == "" })
}

// linuxMetrics reads the metrics of Linux's perf for a processor, written out
// down to events.
func linuxMetrics(t *testing.T, cpuid string, slots float64, path ...string) []foreign {
	t.Helper()
	dir := testshared.Dir(t, append([]string{"data", "reference-only", "linux-pmu-events", "7.3"}, path...)...)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []linuxMetric
	for _, file := range files {
		all = append(all, readLinux(t, file)...)
	}
	exprs := map[string]*metric.Expr{}
	for _, m := range all {
		e, err := metric.Parse(m.MetricExpr)
		if err != nil {
			t.Fatalf("%s: %v", m.MetricName, err)
		}
		exprs[m.MetricName] = e.Fold(metric.Constants{
			Literal: func(name string) (float64, bool) { return slots, name == "#slots" },
			CPUID:   func(pattern string) bool { return pattern == cpuid },
		})
	}
	var out []foreign
	for _, m := range all {
		e := exprs[m.MetricName]
		if e == nil || m.Unit != "" {
			continue
		}
		for range 4 { // metrics that refer to metrics
			e = e.Substitute(func(name string) *metric.Expr { return exprs[name] })
		}
		out = append(out, foreign{m.MetricName, e, linuxScale(t, m.MetricExpr, m.ScaleUnit)})
	}
	return out
}

// scaleUnit takes a ScaleUnit apart: "1e3per_1k_instr", "100%", "1percent of slots".
var scaleUnit = regexp.MustCompile(`^([\d.]*(?:e-?\d+)?)(.*)$`)

// linuxScale returns the factor from the value of a formula of perf to that of a node. "100%"
// scales a share to percent for printing; "1percent of …", or nothing, says that the formula
// gives percent already.
func linuxScale(t *testing.T, formula, unit string) float64 {
	parts := scaleUnit.FindStringSubmatch(unit)
	scale := 1.0
	if parts[1] != "" {
		var err error
		if scale, err = strconv.ParseFloat(parts[1], 64); err != nil {
			t.Fatalf("scale %q: %v", unit, err)
		}
	}
	percent := strings.HasPrefix(parts[2], "%") || strings.HasPrefix(parts[2], "percent") ||
		unit == "" && strings.Contains(formula, "100")
	if percent {
		return scale / 100
	}
	return scale
}

// TestVendorsLikePerf compares the models of AMD's and Arm's processors with the
// metrics that perf has for them.
func TestVendorsLikePerf(t *testing.T) {
	for _, test := range []struct {
		cpu, model string
		cpuid      string
		slots      float64
		path       []string
		atLeast    int // metrics that must be nodes
	}{
		{cpu: "amdzen4", model: "pipeline", path: []string{"x86", "amdzen4"}, atLeast: 16},
		{cpu: "amdzen5", model: "pipeline", path: []string{"x86", "amdzen5"}, atLeast: 45},
		{cpu: "amdzen6", model: "pipeline", path: []string{"x86", "amdzen6"}, atLeast: 44},
		{cpu: "amdzen3", model: "dispatch-stalls", path: []string{"x86", "amdzen3"}, atLeast: 3},
		{cpu: "amdzen2", model: "dispatch-stalls", path: []string{"x86", "amdzen2"}, atLeast: 2},
		{cpu: "amdzen1", model: "dispatch-stalls", path: []string{"x86", "amdzen1"}, atLeast: 2},
		{cpu: "neoverse-n1", model: "topdown", path: []string{"arm64", "arm", "neoverse-n1"}, atLeast: 31},
		{cpu: "neoverse-v1", model: "topdown", slots: 8, path: []string{"arm64", "arm", "neoverse-v1"}, atLeast: 35},
		{cpu: "neoverse-n2", model: "topdown", cpuid: "0x410fd490", slots: 5, path: []string{"arm64", "arm", "neoverse-n2-v2"}, atLeast: 37},
		{cpu: "neoverse-n2-r0p3", model: "topdown", cpuid: "0x410fd493", slots: 5, path: []string{"arm64", "arm", "neoverse-n2-v2"}, atLeast: 37},
		{cpu: "neoverse-v2", model: "topdown", cpuid: "0x410fd4f0", slots: 8, path: []string{"arm64", "arm", "neoverse-n2-v2"}, atLeast: 37},
		{cpu: "neoverse-n3", model: "topdown", slots: 5, path: []string{"arm64", "arm", "neoverse-n3"}, atLeast: 67},
		{cpu: "neoverse-v3", model: "topdown", slots: 10, path: []string{"arm64", "arm", "neoverse-v3"}, atLeast: 67},
	} {
		t.Run(test.cpu, func(t *testing.T) {
			method := vendorMethod(t, test.cpu, test.model)
			differ, _, agree := compareForeign(t, method, linuxMetrics(t, test.cpuid, test.slots, test.path...))
			if len(differ) > 0 {
				t.Errorf("these differ: %q", differ)
			}
			if len(agree) < test.atLeast {
				t.Errorf("%d metrics of perf are nodes with the same value, want at least %d: %q", len(agree), test.atLeast, agree)
			}
		})
	}
}

// TestArmTelemetry compares the models of Arm's processors with the formulas of
// Arm's telemetry data: every metric is a node, and has its value.
func TestArmTelemetry(t *testing.T) {
	for cpu, files := range map[string][]string{
		"neoverse-n1": {"neoverse/neoverse-n1"}, "neoverse-n2": {"neoverse/neoverse-n2"},
		"neoverse-n2-r0p3": {"neoverse/neoverse-n2-r0p3"}, "neoverse-n3": {"neoverse/neoverse-n3"},
		"neoverse-v1": {"neoverse/neoverse-v1"}, "neoverse-v2": {"neoverse/neoverse-v2"}, "neoverse-v3": {"neoverse/neoverse-v3"},
		"c1-nano":    {"lumex/arm-c1-nano-r0p0-pmu"},
		"c1-pro":     {"lumex/arm-c1-pro-r0p0-pmu", "lumex/arm-c1-pro-r1p1-pmu", "lumex/arm-c1-pro-r1p2-pmu"},
		"c1-premium": {"lumex/arm-c1-premium-r0p0-pmu"}, "c1-ultra": {"lumex/arm-c1-ultra-r0p0-pmu"},
	} {
		method := vendorMethod(t, cpu, "topdown")
		for _, file := range files {
			t.Run(cpu+"/"+filepath.Base(file), func(t *testing.T) {
				text, err := os.ReadFile(testshared.Dir(t, "data", "arm-telemetry", "pmu", "cpu", file+".json"))
				if err != nil {
					t.Fatal(err)
				}
				var doc struct {
					Metrics map[string]struct{ Formula, Units string }
				}
				if err := json.Unmarshal(text, &doc); err != nil {
					t.Fatal(err)
				}
				var list []foreign
				for name, m := range doc.Metrics {
					e, err := metric.Parse(m.Formula)
					if err != nil {
						t.Fatal(err)
					}
					scale := 1.0
					if strings.HasPrefix(m.Units, "percent") {
						scale = 0.01
					}
					list = append(list, foreign{name, e, scale})
				}
				differ, absent, agree := compareForeign(t, method, list)
				if len(differ)+len(absent) > 0 || len(agree) == 0 {
					t.Errorf("%d metrics agree, these differ: %q, these are no nodes: %q", len(agree), differ, absent)
				}
			})
		}
	}
}

// POWER.

// An ibmMetric is one of IBM's cpi-breakdown tool.
type ibmMetric struct {
	name       string
	formula    *metric.Expr
	components []string
}

// readIBM reads the metrics of IBM's tool. Its files are YAML of one form.
func readIBM(t *testing.T, processor string) []ibmMetric {
	t.Helper()
	text, err := os.ReadFile(testshared.Dir(t, "corpus", "tables", "ibm-cpi-breakdown-"+processor+"-metrics.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var list []ibmMetric
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " : ")
		last := len(list) - 1
		switch key {
		case "NAME":
			list = append(list, ibmMetric{name: value})
		case "FORMULA":
			if list[last].formula, err = metric.Parse(value); err != nil {
				t.Fatalf("%s: %v", list[last].name, err)
			}
		case "COMPONENTS":
			for c := range strings.SplitSeq(strings.Trim(value, "[]"), ",") {
				if c = strings.TrimSpace(c); c != "" {
					list[last].components = append(list[last].components, c)
				}
			}
		}
	}
	return list
}

// A difference is a row of power-cpi-differences.csv.
type difference struct{ processor, node, against, kind, theirs, reason string }

const differencesFile = "../model/testdata/power-cpi-differences.csv"

func readDifferences(t *testing.T) []difference {
	t.Helper()
	var list []difference
	for _, row := range readTable(t, differencesFile) {
		list = append(list, difference{row[0], row[1], row[2], row[3], row[4], row[5]})
	}
	return list
}

// TestPowerTrees compares the CPI breakdowns of POWER8 to POWER10 with the trees
// of IBM's tool and with Linux's metrics. Every difference is explained in
// power-cpi-differences.csv, and everything there is a difference.
func TestPowerTrees(t *testing.T) {
	explained := readDifferences(t)
	var found []difference
	for _, processor := range []string{"power8", "power9", "power10"} {
		method := vendorMethod(t, processor, processor+"-cpi")
		found = append(found, ibmDifferences(t, processor, method)...)
		found = append(found, linuxDifferences(t, processor, method, explained)...)
	}
	same := func(a, b difference) bool {
		return a.processor == b.processor && a.node == b.node && a.against == b.against && a.kind == b.kind
	}
	for _, d := range found {
		i := slices.IndexFunc(explained, func(e difference) bool { return same(d, e) })
		if i < 0 || explained[i].reason == "" {
			t.Errorf("not explained: %s,%s,%s,%s,%q", d.processor, d.node, d.against, d.kind, d.theirs)
		}
	}
	for _, e := range explained {
		if !slices.ContainsFunc(found, func(d difference) bool { return same(d, e) }) {
			t.Errorf("%s: no such difference: %v", differencesFile, e)
		}
	}
}

func ibmDifferences(t *testing.T, processor string, method *account.Method) (found []difference) {
	m := method.Model
	theirs := readIBM(t, processor)
	var list []foreign
	parent := map[string]string{}
	for _, x := range theirs {
		list = append(list, foreign{x.name, x.formula, 1})
		for _, c := range x.components {
			parent[c] = x.name
		}
	}
	differ, absent, _ := compareForeign(t, method, list)
	add := func(node, kind string) { found = append(found, difference{processor, node, "ibm", kind, "", ""}) }
	for _, name := range differ {
		add(name, "formula")
	}
	for _, name := range absent {
		add(name, "theirs only")
	}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		switch known := slices.ContainsFunc(theirs, func(x ibmMetric) bool { return x.name == n.Name }); {
		case !known:
			add(n.Name, "ours only")
		case n.Parent != parent[n.Name]:
			add(n.Name, "place")
		}
	}
	return found
}

// linuxDifferences compares with Linux's metrics, whose names are in lower case
// for two processors. A metric that is there under another name is looked for
// under that which the table gives.
func linuxDifferences(t *testing.T, processor string, method *account.Method, explained []difference) (found []difference) {
	var list []foreign
	for _, m := range linuxMetrics(t, "", 0, "powerpc", processor) {
		if !cpiBreakdown.MatchString(m.name) {
			continue
		}
		m.name = strings.ToUpper(m.name)
		for _, e := range explained {
			if e.processor == processor && e.against == "linux" && e.kind == "name" && e.theirs == m.name {
				found = append(found, difference{processor, e.node, "linux", "name", m.name, ""})
				m.name = e.node
				break
			}
		}
		if !slices.ContainsFunc(list, func(o foreign) bool { return o.name == m.name }) {
			list = append(list, m)
		}
	}
	differ, absent, agree := compareForeign(t, method, list)
	if len(agree) < 50 {
		t.Errorf("%s: only %d metrics of Linux agree", processor, len(agree))
	}
	for _, name := range differ {
		found = append(found, difference{processor, name, "linux", "formula", "", ""})
	}
	for _, name := range absent {
		found = append(found, difference{processor, name, "linux", "theirs only", "", ""})
	}
	return found
}

// cpiBreakdown matches the names of Linux's metrics that are of the CPI
// breakdown.
var cpiBreakdown = regexp.MustCompile(`(?i)^(\w+_(cpi|stall)|cpi|cycles_per_instruction)$`)

// String is for messages.
func (d difference) String() string {
	return fmt.Sprintf("%s,%s,%s,%s,%s", d.processor, d.node, d.against, d.kind, d.theirs)
}
