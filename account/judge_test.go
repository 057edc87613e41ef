package account_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// judged is a method of four categories, with ranges for them, and two issues. Two of
// the categories have parts.
func judged(t *testing.T, w model.Workload) *account.Method {
	t.Helper()
	own := maps.Clone(files)
	own["models/toy.toml"] = &fstest.MapFile{Data: []byte(`
name = "judged"
unit = "slots"
cpus = ["toy"]
of = "CYC"
[[node]]
name = "Front"
formula = "HIT"
threshold = "Front > 0.15"
[[node]]
name = "Back"
formula = "STALL"
threshold = "Back > 0.2"
[[node]]
name = "Memory"
parent = "Back"
formula = "MISS"
threshold = "Memory > 0.1"
[[node]]
name = "Core"
parent = "Back"
formula = "STALL - MISS"
threshold = "Core > 0.1"
[[node]]
name = "Retiring"
formula = "INST"
threshold = "Retiring > 0.3"
[[node]]
name = "Figure"
section = "More"
formula = "MISS / CYC"
unit = "loads/cycles"
`)}
	own["judgement.toml"] = &fstest.MapFile{Data: []byte(
		expected("Front", "0.05 0.10", "0.10 0.25", "0.05 0.10") +
			expected("Back", "0.20 0.40", "0.20 0.60", "0.20 0.40") +
			expected("Memory", "0 0.20", "0 0.40", "0 0.20") +
			expected("Retiring", "0.20 0.50", "0.10 0.30", "0.30 0.70") + `
[[issue]]
name = "first"
method = "judged"
nodes = ["Front", "Core"]
source = "a test"
[[issue]]
name = "second"
method = "judged"
nodes = ["Core", "Retiring", "Elsewhere"]
source = "a test"
[[issue]]
name = "figure"
method = "judged"
nodes = ["Memory", "Figure"]
source = "a test"
[[issue]]
name = "behind"
method = "judged"
lead = "Retiring"
nodes = ["Memory"]
source = "a test"
[[issue]]
name = "a figure that says nothing by itself"
method = "judged"
lead = "Retiring"
nodes = ["Figure", "Core"]
source = "a test"
[[issue]]
name = "of others"
method = "judged"
nodes = ["Elsewhere", "Front"]
source = "a test"
`)}
	return compile(t, own, account.Options{Workload: w})
}

// expected is the entry of a file of ranges for a node: the lowest and the highest
// value by kind of program.
func expected(node, client, server, hpc string) string {
	text := fmt.Sprintf("[[range]]\nnode = %q\nmethod = \"judged\"\nsource = \"a test\"\n", node)
	for kind, bounds := range map[string]string{"client": client, "server": server, "hpc": hpc} {
		low, high, _ := strings.Cut(bounds, " ")
		text += fmt.Sprintf("%s = { low = %s, high = %s }\n", kind, low, high)
	}
	return text
}

// judgedReadings are those of a run of 1000 slots.
func judgedReadings(front, back, memory, retiring float64) []reading {
	return []reading{{event: "CYC", value: 1000}, {event: "HIT", value: front}, {event: "STALL", value: back},
		{event: "MISS", value: memory}, {event: "INST", value: retiring}}
}

func names(a *account.Account, nodes []int) string {
	var list []string
	for _, i := range nodes {
		list = append(list, a.Model().Nodes[i].Name)
	}
	return strings.Join(list, " ")
}

// TestWorkload: for a program of a known kind the ranges decide about the categories. Useful
// work is the bottleneck only where nothing else is.
func TestWorkload(t *testing.T) {
	for _, tt := range []struct {
		workload                      model.Workload
		front, back, memory, retiring float64
		standing, path                string
	}{
		// The thresholds: the largest of all that are over theirs, but useful work last.
		{model.AnyWorkload, 120, 350, 250, 450, "within within within within", "Back Memory"},
		{model.AnyWorkload, 120, 150, 100, 630, "within below within within", "Retiring"},
		// Memory is over its threshold, but there is more of Core, which is not.
		{model.AnyWorkload, 100, 400, 390, 200, "within within within within", "Back Memory"},
		{model.AnyWorkload, 30, 700, 450, 50, "below above above below", "Back Memory"},
		// With a share of 160 % nothing is to be named.
		{model.AnyWorkload, 1600, 500, 300, 100, "above within within within", ""},
		// Front is over a client program's range though not over its threshold.
		{model.Client, 120, 350, 250, 450, "above within above within", "Front"},
		{model.Server, 120, 350, 250, 450, "within within within above", "Retiring"},
		{model.Server, 200, 550, 250, 200, "within within within within", ""},
		{model.Server, 20, 620, 250, 320, "below above within above", "Back Core"},
		// Memory is within its range, but over its threshold: only categories go by ranges.
		{model.Server, 20, 620, 380, 320, "below above within above", "Back Memory"},
		{model.HPC, 90, 300, 100, 600, "within within within within", "Retiring"},
		{model.HPC, 90, 410, 300, 500, "within above above within", "Back Memory"},
	} {
		a := run(t, judged(t, tt.workload), 1, judgedReadings(tt.front, tt.back, tt.memory, tt.retiring)...)
		var standing []string
		for i := range a.Nodes {
			if _, s := a.Expected(i); s != account.Unjudged {
				standing = append(standing, s.String())
			}
		}
		if got := strings.Join(standing, " "); got != tt.standing {
			t.Errorf("%q %v: %s, want %s", tt.workload, tt.back, got, tt.standing)
		}
		if got := names(a, a.Bottleneck); got != tt.path {
			t.Errorf("%q %v: bottleneck %q, want %q", tt.workload, tt.back, got, tt.path)
		}
	}
}

// TestStandingWithin: what is outside a range by less than its error is not
// outside.
func TestStandingWithin(t *testing.T) {
	method := judged(t, model.Server)
	for _, tt := range []struct {
		node string
		at   int        // its reading
		slot [4]float64 // the readings
		sd   float64    // of that one, in slots
		of   string     // value and limit
		want account.Standing
	}{
		{"Back", 2, [4]float64{150, 620, 400, 230}, 0, "0.62 and at most 0.6", account.Above},
		{"Back", 2, [4]float64{150, 620, 400, 230}, 5, "0.62 and at most 0.6", account.Above},
		{"Back", 2, [4]float64{150, 620, 400, 230}, 20, "0.62 and at most 0.6", account.Within},
		{"Retiring", 4, [4]float64{150, 620, 400, 80}, 0, "0.08 and at least 0.1", account.Below},
		{"Retiring", 4, [4]float64{150, 620, 400, 80}, 5, "0.08 and at least 0.1", account.Below},
		{"Retiring", 4, [4]float64{150, 620, 400, 80}, 20, "0.08 and at least 0.1", account.Within},
	} {
		readings := judgedReadings(tt.slot[0], tt.slot[1], tt.slot[2], tt.slot[3])
		readings[tt.at].variance = tt.sd * tt.sd
		a := run(t, method, 1, readings...)
		i, _ := a.Node(tt.node)
		if _, got := a.Expected(i); got != tt.want {
			t.Errorf("%s, %s ± %v: it is %v the range, want %v", tt.node, tt.of, a.Nodes[i].Error, got, tt.want)
		}
		if got := a.Nodes[i].Flagged; tt.node == "Back" && got != (tt.want == account.Above) {
			t.Errorf("%s, %s ± %v is flagged: %v", tt.node, tt.of, a.Nodes[i].Error, got)
		}
	}
}

// TestRivals: siblings whose errors overlap are both named.
func TestRivals(t *testing.T) {
	set := func(r []reading, f func(*reading)) []reading {
		for i := range r {
			f(&r[i])
		}
		return r
	}
	for _, tt := range []struct {
		name     string
		readings []reading
		want     string
	}{
		{"all counted, apart", judgedReadings(300, 500, 300, 100), ""},
		{"all counted, a little apart", judgedReadings(300, 500, 265, 100), ""},
		{"all counted, as good as equal", judgedReadings(300, 500, 254, 100), "Core of Memory"},
		{"both levels", judgedReadings(495, 500, 254, 100), "Front of Back, Core of Memory"},
		{"some of the time", set(judgedReadings(300, 500, 270, 100), func(r *reading) { r.coverage = 0.5 }), "Core of Memory"},
		{"some of the time, apart", set(judgedReadings(300, 500, 280, 100), func(r *reading) { r.coverage = 0.5 }), ""},
		{"an impossible sibling", judgedReadings(1600, 500, 300, 100), ""},
		// 0.5 ± 0.029 and 0.44 ± 0.035: their own events vary.
		{"repeats", []reading{{event: "CYC", value: 1000}, {event: "STALL", value: 500, variance: 225}, {event: "HIT", value: 440, variance: 324},
			{event: "MISS", value: 400}, {event: "INST", value: 100}}, "Front of Back"},
		// Their errors are as large, but it is the slots that vary: what is larger is larger in every run.
		{"repeats with a common cause", []reading{{event: "CYC", value: 1000, variance: 3600}, {event: "STALL", value: 500}, {event: "HIT", value: 440},
			{event: "MISS", value: 400}, {event: "INST", value: 100}}, ""},
	} {
		a := run(t, judged(t, model.AnyWorkload), 1, tt.readings...)
		var got []string
		for _, r := range a.Rivals {
			if d := math.Abs(a.Nodes[r.Node].Value - a.Nodes[r.Of].Value); !(d <= r.Margin) {
				t.Errorf("%s: %v apart is more than the margin %v", tt.name, d, r.Margin)
			}
			got = append(got, fmt.Sprintf("%s of %s", a.Model().Nodes[r.Node].Name, a.Model().Nodes[r.Of].Name))
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: rivals %q, want %q (bottleneck %s)", tt.name, s, tt.want, names(a, a.Bottleneck))
		}
	}
}

// TestUsefulIsNoRival: useful work is no alternative to a bottleneck, however large it is.
func TestUsefulIsNoRival(t *testing.T) {
	for _, workload := range []model.Workload{model.AnyWorkload, model.Client} {
		a := run(t, judged(t, workload), 1, judgedReadings(450, 50, 20, 455)...)
		got := ""
		for _, r := range a.Rivals {
			got += a.Model().Nodes[r.Node].Name + " of " + a.Model().Nodes[r.Of].Name
		}
		if got != "" || names(a, a.Bottleneck) != "Front" {
			t.Errorf("%q: rivals %q, want none (bottleneck %s, want Front)", workload, got, names(a, a.Bottleneck))
		}
	}
}

// TestDifferenceLeavesNodes: the error of a difference is found without a change
// to the account.
func TestDifferenceLeavesNodes(t *testing.T) {
	readings := judgedReadings(440, 500, 400, 100)
	readings[0].variance = 3600
	a := run(t, judged(t, model.AnyWorkload), 1, readings...)
	if len(a.Nodes) != len(a.Model().Nodes) {
		t.Fatalf("%d values of %d nodes", len(a.Nodes), len(a.Model().Nodes))
	}
	for name, want := range map[string]float64{"Front": 0.44, "Back": 0.5, "Memory": 0.4, "Core": 0.1, "Retiring": 0.1} {
		if got := a.Value(name); !near(got, want) {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
		i, _ := a.Node(name)
		// The cell moves by a standard error, and its effect is no tangent: 1/1000 − 1/1060.
		if got, want := a.Nodes[i].Error, 1.959964*want*(1-1000.0/1060); math.Abs(got-want) > 0.1*want {
			t.Errorf("error of %s = %v, want about %v", name, got, want)
		}
	}
}

// TestLinked: a flagged node draws in what shows the same issues, and a figure
// without threshold what shows its own.
func TestLinked(t *testing.T) {
	for _, tt := range []struct {
		front, back, memory, retiring float64
		want                          string
	}{
		{100, 100, 50, 100, "Memory"},                 // by the figure
		{200, 100, 50, 100, "Memory Core Retiring"},   // Front, Core by it, Retiring by that
		{200, 100, 50, 400, "Memory Core"},            // Retiring is flagged itself
		{100, 300, 250, 100, ""},                      // Memory is flagged itself
		{100, 300, 100, 100, "Front Memory Retiring"}, // Core
	} {
		a := run(t, judged(t, model.AnyWorkload), 1, judgedReadings(tt.front, tt.back, tt.memory, tt.retiring)...)
		var linked []string
		for i := range a.Nodes {
			if a.IsLinked(i) && a.Model().Nodes[i].Section == "" {
				linked = append(linked, a.Model().Nodes[i].Name)
			}
			if a.Nodes[i].Flagged && a.IsLinked(i) {
				t.Errorf("%s is flagged and linked", a.Model().Nodes[i].Name)
			}
		}
		if got := strings.Join(linked, " "); got != tt.want {
			t.Errorf("%v: linked %q, want %q", tt, got, tt.want)
		}
	}
	a := run(t, judged(t, model.AnyWorkload), 1, judgedReadings(200, 100, 50, 400)...)
	for name, want := range map[string]string{"Front": "Core", "Core": "Front Retiring", "Back": "", "Retiring": "Core Memory Figure", "Memory": "Figure"} {
		i, _ := a.Node(name)
		if got := names(a, a.Linked(i)); got != want {
			t.Errorf("%s is linked to %q, want %q", name, got, want)
		}
	}
	c := a.Clone()
	if i, _ := c.Node("Core"); !c.IsLinked(i) {
		t.Error("a clone has lost the links")
	}
}

func TestDominance(t *testing.T) {
	for _, tt := range []struct {
		instructions, branches, mispredictions float64
		want                                   account.Dominance
		trips                                  float64
	}{
		{1e9, 2e8, 1e5, account.DominanceLoops, 2000},      // a tight loop
		{1e9, 1e7, 9e5, account.DominanceLoops, 100.0 / 9}, // a few branches, badly predicted: not worth a thing
		{1e9, 5e8, 4e6, account.DominanceLoops, 125},       // many branches: one in 125
		{1e9, 2e8, 6e6, account.DominanceBranches, 200.0 / 6},
		{1e9, 2e8, 2.5e6, account.DominanceNeither, 80},
		{1e9, 2e8, 0, account.DominanceLoops, math.Inf(1)},
		{1e9, math.NaN(), 1e6, account.DominanceUnknown, math.NaN()},
		{math.NaN(), 1e6, 1e3, account.DominanceUnknown, 1000},
		{1e9, 0, 0, account.DominanceUnknown, math.NaN()},
		{0, 0, 0, account.DominanceUnknown, math.NaN()},
	} {
		b := account.Branching{Instructions: tt.instructions, Branches: tt.branches, Mispredictions: tt.mispredictions}
		if got := b.Dominance(); got != tt.want {
			t.Errorf("%+v: %v, want %v", b, got, tt.want)
		}
		if got := b.Trips(); !near(got, tt.trips) && !(math.IsNaN(got) && math.IsNaN(tt.trips)) && got != tt.trips {
			t.Errorf("%+v: %v trips, want %v", b, got, tt.trips)
		}
	}
}

// TestBranching: the events are found whatever the recording calls them.
func TestBranching(t *testing.T) {
	for _, tt := range []struct {
		cpu      string
		readings []reading
		want     account.Branching
	}{
		{"skylakex", []reading{{event: "instructions:u", value: 1000}, {event: "cpu/event=0xc4/u", value: 200}, {event: "branch-misses:u", value: 4}},
			account.Branching{Instructions: 1000, Branches: 200, Mispredictions: 4}},
		{"amdzen4", []reading{{event: "ex_ret_instr", value: 1000}, {event: "ex_ret_brn", value: 200}, {event: "ex_ret_brn_misp", value: 4}},
			account.Branching{Instructions: 1000, Branches: 200, Mispredictions: 4}},
		{"neoverse-n2", []reading{{event: "r8", value: 1000}, {event: "branches", value: 200}, {event: "r10", value: 4}},
			account.Branching{Instructions: 1000, Branches: 200, Mispredictions: 4}},
		{"core2", []reading{{event: "INST_RETIRED.ANY", value: 1000}, {event: "BR_CND_EXEC", value: 150}, {event: "BR_CND_MISSP_EXEC", value: 3}},
			account.Branching{Instructions: 1000, Branches: 150, Mispredictions: 3}},
		{"skylakex", []reading{{event: "instructions:k", value: 1000}, {event: "branches:k", value: 200}, {event: "branch-misses:k", value: 3}},
			account.Branching{Instructions: 1000, Branches: 200, Mispredictions: 3}},
		{"generic", []reading{{event: "Ir", value: 1000}, {event: "Bc", value: 100}, {event: "Bi", value: 20}, {event: "Bcm", value: 3}, {event: "Bim", value: 1}},
			account.Branching{Instructions: 1000, Branches: 120, Mispredictions: 4}},
		{"skylakex", []reading{{event: "instructions", state: counts.NotCounted}, {event: "instructions", value: 1000}, {event: "branches", value: 200},
			{event: "branch-misses", value: 3}}, account.Branching{Instructions: 1000, Branches: 200, Mispredictions: 3}},
		{"skylakex", []reading{{event: "instructions:u", value: 1000}, {event: "branches:u", value: 200}, {event: "branch-misses", value: 3}},
			account.Branching{Instructions: math.NaN(), Branches: math.NaN(), Mispredictions: math.NaN()}}, // of different modes
		{"skylakex", []reading{{event: "instructions", value: 1000}, {event: "branches", value: 200}},
			account.Branching{Instructions: 1000, Branches: math.NaN(), Mispredictions: math.NaN()}},
	} {
		method, err := account.Load(tt.cpu, "", account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, method, 1, tt.readings...).Branching()
		if math.IsNaN(tt.want.Mispredictions) {
			if got.Dominance() != account.DominanceUnknown {
				t.Errorf("%s: %+v is decided", tt.cpu, got)
			}
			continue
		}
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.cpu, got, tt.want)
		}
	}
}

// TestBranchingOfCore: of a core it is the counts of its logical processors
// together, and not known unless all of them counted.
func TestBranchingOfCore(t *testing.T) {
	method, err := account.Load("skylakex", "", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("core"), counts.RunScope("CPU0"), counts.RunScope("CPU1")}}
	for _, event := range []string{"instructions", "branches", "branch-misses"} {
		l.Columns = append(l.Columns, counts.Column{Event: event})
	}
	table := counts.NewTable(l)
	for row := range l.Scopes {
		for col, value := range []float64{1000, 100, 10} {
			*table.Cell(row, col) = counts.Cell{Value: value * float64(row), State: counts.Counted}
		}
	}
	b, core := method.Bind(l), account.Place{Self: 0, LP: []int{1, 2}}
	if got, want := b.Evaluate(table, core, nil).Branching(), (account.Branching{Instructions: 3000, Branches: 300, Mispredictions: 30}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	*table.Cell(2, 1) = counts.Cell{State: counts.NotCounted, Enabled: 1e9}
	if got := b.Evaluate(table, core, nil).Branching(); got.Dominance() != account.DominanceUnknown {
		t.Errorf("%+v is decided, without the branches of CPU1", got)
	}
}

// TestRanges checks the catalogue's ranges against the table of Intel's Tuning Applications
// Using a Top-down Microarchitecture Analysis Method.
func TestRanges(t *testing.T) {
	published := map[string]string{ // in percent: client, server, HPC
		"Retiring": "20-50 10-30 30-70", "Backend_Bound": "20-40 20-60 20-40", "Frontend_Bound": "5-10 10-25 5-10", "Bad_Speculation": "5-10 5-10 1-5",
	}
	for cpu, name := range map[string]func(string) string{
		"skylakex": strings.Clone, "alderlake:atom": strings.Clone, "amdzen4": strings.ToLower, "neoverse-n2": strings.ToLower,
	} {
		method, err := account.Load(cpu, "", account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for node, want := range published {
			n := method.Model.Node(name(node))
			if n == nil || n.Expected == nil {
				t.Errorf("%s: nothing is expected of %s", cpu, name(node))
				continue
			}
			var got []string
			for _, w := range model.Workloads {
				r := n.Expected.Ranges[w]
				got = append(got, fmt.Sprintf("%.0f-%.0f", 100*r.Low, 100*r.High))
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s: %s of %s, want %s", cpu, s, n.Name, want)
			}
		}
		for i := range method.Model.Nodes {
			n := &method.Model.Nodes[i]
			if method.Model.Name == "tma" && n.Section == "" && n.Level <= 2 && n.Expected == nil {
				t.Errorf("%s: nothing is expected of %s", cpu, n.Path)
			}
			if n.Expected == nil || n.Level != 2 {
				continue
			}
			parent := method.Model.Node(n.Parent)
			for _, w := range append(slices.Clone(model.Workloads), model.AnyWorkload) {
				if n.Expected.Ranges[w].High > parent.Expected.Ranges[w].High {
					t.Errorf("%s: more is expected of %s than of %s", cpu, n.Path, parent.Name)
				}
			}
		}
	}
}
