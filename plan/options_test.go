package plan_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

const ownEvents = `cpus,name,config,config1,pmu,counters,counters_smt,flags,sample_after,unit,aliases
X,CYCLES,0x3c,,,fixed1,,,,cycles,cycles
X,INSTRUCTIONS,0xc0,,,fixed0,,,,instructions,
X,A,0x1,,,"0,1,2,3,4,5,6,7","0,1,2,3",,,,
X,B,0x2,,,"0,1,2,3,4,5,6,7","0,1,2,3",,,,
X,C,0x3,,,"0,1,2,3,4,5,6,7","0,1,2,3",,,,
X,D,0x4,,,"0,1,2,3,4,5,6,7","0,1,2,3",,,,
X,E,0x5,,,"0,1,2,3,4,5,6,7","0,1,2,3",,,,
X,F,0x6,,,"0,1,2,3,4,5,6,7","0,1,2,3",,,,
X,ONLY_2,0x7,,,2,,,,,
X,ALSO_2,0x8,,,2,,,,,
X,LONELY,0x9,,,1,,alone,,,
X,LOAD_1,0x1d0,,,"0,1,2,3",,,,,
X,LOAD_2,0x2d0,,,"0,1,2,3",,,,,
X,OCR_1,0x1b7,0x10001,,"0,1,2,3",,offcore_rsp,,,
X,OCR_2,0x1b7,0x10002,,"0,1,2,3",,offcore_rsp,,,
X,OCR_3,0x1b7,0x10004,,"0,1,2,3",,offcore_rsp,,,
X,LATENCY_4,0x1cd,0x4,,"1,2,3,4,5,6,7",,ldlat alone,,,
X,LATENCY_8,0x1cd,0x8,,"1,2,3,4,5,6,7",,ldlat alone,,,
X,SLOTS,0x400,,,fixed3,,,,slots,
X,TOPDOWN.SLOTS,0x400,,,fixed3,,,,slots,
X,PERF_METRICS.RETIRING,0x8000,,,fixed16,,metric,,slots,
X,PERF_METRICS.BAD_SPECULATION,0x8100,,,fixed17,,metric,,slots,
`

// ownPlan makes a plan for a model of the given nodes, with its own events, on a processor's
// PMU.
func ownPlan(t *testing.T, cpu, nodes string, opt plan.Options) (*plan.Plan, error) {
	t.Helper()
	const head = "name = \"own\"\nversion = \"1\"\ntitle = \"t\"\nabout = \"a\"\nsource = \"s\"\ncpus = [\"CPU\"]\nunit = \"1\"\n"
	const cpus = "[[cpu]]\nname = \"CPU\"\ntitle = \"t\"\nvendor = \"intel\"\npmus = [\"cpu\"]\nthreads = 2\nlayout = \"intel\"\nevents = \"X\"\n"
	named := func(s string) []byte { return []byte(strings.ReplaceAll(s, "CPU", cpu)) }
	cat, err := model.Load(fstest.MapFS{
		"cpus.toml":        {Data: named(cpus)},
		"models/own.toml":  {Data: append(named(head), nodes...)},
		"events/intel.csv": {Data: []byte(ownEvents)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := cat.CPU(cpu)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model("own", cpu)
	if err != nil {
		t.Fatal(err)
	}
	events, err := cat.Events(p)
	if err != nil {
		t.Fatal(err)
	}
	made, err := plan.New(m, events, opt)
	if err != nil {
		return nil, err
	}
	for _, f := range newVerifier(events).verify(made) {
		t.Error(f)
	}
	return made, nil
}

// formulas returns nodes N1, N2, … with the formulas.
func formulas(list ...string) string {
	var b strings.Builder
	for i, f := range list {
		b.WriteString("[[node]]\nname = \"N" + string(rune('1'+i)) + "\"\nformula = \"" + f + "\"\n")
	}
	return b.String()
}

func names(g plan.Group) []string {
	var all []string
	for i := range g.Events {
		all = append(all, g.Events[i].Name)
	}
	return all
}

// TestConstraints plans for few events, so that the constraints decide how many
// groups there are.
func TestConstraints(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cpu   string
		nodes string
		opt   plan.Options
		want  int
	}{
		{"eight general counters", "skylakex", formulas("(A + B + C + D + E + F) / CYCLES"), plan.Options{}, 1},
		{"four with SMT", "skylakex", formulas("(A + B) / CYCLES", "(C + D) / CYCLES", "(E + F) / CYCLES"), plan.Options{SMT: true}, 2},
		{"fewer are left", "skylakex", formulas("(A + B) / CYCLES", "(C + D) / CYCLES", "(E + F) / CYCLES"), plan.Options{Counters: 3}, 3},
		{"two that need one counter", "skylakex", formulas("ONLY_2 / CYCLES", "ALSO_2 / CYCLES"), plan.Options{}, 2},
		{"one to be counted alone", "skylakex", formulas("LONELY / CYCLES", "A / CYCLES"), plan.Options{}, 2},
		{"alone, but for fixed counters", "skylakex", formulas("LONELY / CYCLES", "INSTRUCTIONS / CYCLES"), plan.Options{}, 1},
		{"two offcore registers", "skylakex", formulas("OCR_1 / CYCLES", "OCR_2 / CYCLES"), plan.Options{}, 1},
		{"a third value", "skylakex", formulas("OCR_1 / CYCLES", "OCR_2 / CYCLES", "OCR_3 / CYCLES"), plan.Options{}, 2},
		{"one offcore register", "nehalemep", formulas("OCR_1 / CYCLES", "OCR_2 / CYCLES"), plan.Options{}, 2},
		{"one latency register", "skylakex", formulas("LATENCY_4 / CYCLES", "LATENCY_8 / CYCLES"), plan.Options{}, 2},
		{"watchdog and cycles", "skylakex", formulas("(A + B + C + D) / CYCLES"), plan.Options{SMT: true}, 1},
		{"watchdog without cycles", "skylakex", formulas("(A + B) / (C + D)"), plan.Options{SMT: true, Watchdog: true}, 1},
		{"cycles any thread and not", "skylakex", formulas("(A + B + C) / CYCLES", "(A + B + C) / CYCLES:any1"), plan.Options{SMT: true}, 1},
		{"the same with one more", "skylakex", formulas("(A + B + C + D) / CYCLES", "(A + B + C + D) / CYCLES:any1"), plan.Options{SMT: true}, 2},
		{"nothing of the core", "skylakex", formulas("duration_time / 1e9"), plan.Options{}, 0},
		{"erratum ignored", "haswell", formulas("(LOAD_1 + LOAD_2 + A) / CYCLES"), plan.Options{SMT: true}, 1},
		{"erratum kept to", "haswell", formulas("(LOAD_1 + LOAD_2) / CYCLES", "A / CYCLES"), plan.Options{SMT: true, Errata: true}, 2},
		{"erratum without SMT", "haswell", formulas("(LOAD_1 + LOAD_2) / CYCLES", "A / CYCLES"), plan.Options{Errata: true}, 1},
		{"erratum, the counters divided", "haswell", formulas("(LOAD_1 + LOAD_2) / CYCLES", "A / CYCLES"), plan.Options{Errata: true, Counters: 4}, 2},
		{"erratum and watchdog", "haswell", formulas("LOAD_1 / CYCLES", "LOAD_2 / CYCLES"), plan.Options{SMT: true, Errata: true, Watchdog: true}, 2},
	} {
		p, err := ownPlan(t, tt.cpu, tt.nodes, tt.opt)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if len(p.Groups) != tt.want || !p.Optimal() {
			t.Errorf("%s: %d groups, bound %d, want %d", tt.name, len(p.Groups), p.LowerBound, tt.want)
		}
	}
}

// TestWatchdogCostsCycles checks that the watchdog, which counts cycles, leaves
// one general counter less to a group with cycles.
func TestWatchdogCostsCycles(t *testing.T) {
	nodes := formulas("(A + B) / CYCLES", "(C + D) / CYCLES")
	for _, watchdog := range []bool{false, true} {
		p, err := ownPlan(t, "skylakex", nodes, plan.Options{SMT: true, Watchdog: watchdog})
		if err != nil {
			t.Fatal(err)
		}
		want := 1
		if watchdog {
			want = 2
		}
		if len(p.Groups) != want {
			t.Errorf("watchdog %t: %d groups, want %d", watchdog, len(p.Groups), want)
		}
	}
}

// TestWatchdogCountedOnce checks a number of counters that was found while the
// watchdog counted. The watchdog's general counter is not subtracted again. An
// exception is cycles, if the watchdog leaves a fixed counter to them.
func TestWatchdogCountedOnce(t *testing.T) {
	for _, tt := range []struct {
		cpu      string
		counters int
		same     bool // with or without the watchdog
	}{
		{"amdzen4", 5, true},
		{"skylakex", 4, false},
	} {
		groups := func(opt plan.Options) int { return len(planFor(t, tt.cpu, "", opt).Groups) }
		left, beside := groups(plan.Options{Counters: tt.counters}), groups(plan.Options{Counters: tt.counters, Watchdog: true})
		if (left == beside) != tt.same {
			t.Errorf("%s: %d groups on %d counters, %d beside the watchdog", tt.cpu, left, tt.counters, beside)
		}
		if all := groups(plan.Options{Watchdog: true}); tt.same && all != beside {
			t.Errorf("%s: %d groups beside the watchdog, %d if it is said what it leaves", tt.cpu, all, beside)
		}
	}
}

// TestAlso checks that events with counters of their own need no other.
func TestAlso(t *testing.T) {
	p := planFor(t, "power9", "", plan.Options{Level: 1, Counters: 1})
	if n := &p.Nodes[0]; n.Missing != "" {
		t.Errorf("%s: %s", p.Model.Nodes[n.Index].Name, n.Missing)
	}
}

// TestOrderInGroup checks what must stand before what.
func TestOrderInGroup(t *testing.T) {
	p, err := ownPlan(t, "sapphirerapids", formulas("A * LATENCY_4 / PERF_METRICS.RETIRING", "PERF_METRICS.BAD_SPECULATION / CYCLES"), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Groups) != 1 {
		t.Fatalf("%d groups, want 1", len(p.Groups))
	}
	got := names(p.Groups[0])
	before := func(x, y string) {
		if i, j := slices.Index(got, x), slices.Index(got, y); i < 0 || j < 0 || i > j {
			t.Errorf("%s does not stand before %s: %v", x, y, got)
		}
	}
	if got[0] != "TOPDOWN.SLOTS" && got[0] != "SLOTS" {
		t.Errorf("%s leads the group, and not slots: %v", got[0], got)
	}
	before("mem-loads-aux", "LATENCY_4")
	before("PERF_METRICS.RETIRING", "A")
	before("PERF_METRICS.BAD_SPECULATION", "A")
}

// TestSplit checks how nodes are split whose events do not fit one group.
func TestSplit(t *testing.T) {
	// Three counters: the first node is a product of two ratios, and each
	// can be counted at another time; the second a ratio of six counts.
	p, err := ownPlan(t, "skylakex", formulas("A / (A + B) * (C / (C + D))", "(A + B + C) / (D + E + F)"), plan.Options{Counters: 3})
	if err != nil {
		t.Fatal(err)
	}
	product, ratio := p.Nodes[0], p.Nodes[1]
	if product.Together || len(product.Parts) != 2 {
		t.Fatalf("the product has %d parts, together %t", len(product.Parts), product.Together)
	}
	for _, part := range product.Parts {
		if part.Loose || len(part.Groups) != 1 || len(part.Events) != 2 {
			t.Errorf("the product has a part %+v, want a ratio of two counts in one group", part)
		}
	}
	loose := slices.ContainsFunc(ratio.Parts, func(part plan.Part) bool { return part.Loose })
	if ratio.Together || !loose {
		t.Errorf("the ratio of six counts is %+v, want loose parts", ratio)
	}
	if len(p.Groups) != 2 || !p.Optimal() {
		t.Errorf("%d groups, bound %d, want 2", len(p.Groups), p.LowerBound)
	}
}

// TestSplitByNodes checks that a node made of other nodes' ratios is split into
// these.
func TestSplitByNodes(t *testing.T) {
	p, err := ownPlan(t, "skylakex", formulas("(A + B) / CYCLES", "(C + D) / CYCLES", "N1 - N2"), plan.Options{Counters: 2})
	if err != nil {
		t.Fatal(err)
	}
	n := p.Nodes[2]
	if n.Together || len(n.Parts) != 2 || n.Parts[0].Loose || n.Parts[1].Loose || len(n.Groups) != 2 {
		t.Errorf("the difference is %+v, want two ratios from two groups", n)
	}
	// With an amount the counts belong together.
	p, err = ownPlan(t, "skylakex", formulas("A + B", "C + D", "N1 / N2"), plan.Options{Counters: 2})
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Nodes[2]; !slices.ContainsFunc(n.Parts, func(part plan.Part) bool { return part.Loose }) {
		t.Errorf("the ratio of two amounts is %+v, want loose parts", n)
	}
}

// TestRest checks what a node needs that is the rest of its parent.
func TestRest(t *testing.T) {
	nodes := `[[node]]
name = "All"
formula = "A / CYCLES"
[[node]]
name = "Known"
parent = "All"
formula = "B / CYCLES"
[[node]]
name = "Rest"
parent = "All"
rest = true
`
	p, err := ownPlan(t, "skylakex", nodes, plan.Options{Nodes: []int{2}})
	if err != nil {
		t.Fatal(err)
	}
	got := names(p.Groups[0])
	slices.Sort(got)
	if want := []string{"A", "B", "CYCLES"}; !slices.Equal(got, want) {
		t.Errorf("the rest needs %v, want %v", got, want)
	}
}

// TestMissing checks that a node is said to be missing if the processor lacks its event.
// Others are not.
func TestMissing(t *testing.T) {
	p, err := ownPlan(t, "skylakex", formulas("A / CYCLES", "A:retire_latency"), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Nodes[0].Missing != "" || !p.Nodes[0].Together || len(p.Groups) != 1 {
		t.Errorf("the first node is %+v", p.Nodes[0])
	}
	if n := &p.Nodes[1]; !strings.Contains(n.Missing, "sampled") || n.Together || !math.IsNaN(p.Coverage(n)) || !math.IsNaN(p.Error(n, 1)) {
		t.Errorf("the second node is %+v", n)
	}
	if together, of := p.Together(); together != 1 || of != 1 {
		t.Errorf("%d of %d together, want 1 of 1", together, of)
	}
}

// TestWithout checks that refused events remove their nodes, and the events that
// need them in their groups. Nothing else is removed.
func TestWithout(t *testing.T) {
	nodes := formulas("A / CYCLES", "B / CYCLES", "PERF_METRICS.RETIRING / (PERF_METRICS.RETIRING + PERF_METRICS.BAD_SPECULATION)", "B:c1 / CYCLES",
		"A / CYCLES if has_event(B) else C / CYCLES")
	for _, tt := range []struct {
		without []string
		missing []int // nodes
	}{
		{nil, nil},
		{[]string{"B"}, []int{1}},
		{[]string{"cpu/event=0x2/"}, []int{1}}, // the same
		{[]string{"B:c1"}, []int{3}},
		{[]string{"b:u"}, []int{1}},
		{[]string{"slots"}, []int{2}},
		{[]string{"cycles", "F"}, []int{0, 1, 3, 4}},
	} {
		p, err := ownPlan(t, "icelakex", nodes, plan.Options{Without: tt.without})
		if err != nil {
			t.Fatal(err)
		}
		var missing []int
		for i := range p.Nodes {
			if p.Nodes[i].Missing != "" {
				missing = append(missing, i)
			}
		}
		if !slices.Equal(missing, tt.missing) {
			t.Errorf("without %v nodes %v are missing, want %v", tt.without, missing, tt.missing)
		}
	}
	if _, err := ownPlan(t, "icelakex", nodes, plan.Options{Without: []string{"cpu/"}}); err == nil {
		t.Error("without something that is no event there is a plan")
	}
}

// TestWithoutWatchdog checks that the watchdog takes a counter where the event
// that it counts was refused to others.
func TestWithoutWatchdog(t *testing.T) {
	for _, watchdog := range []bool{false, true} {
		p, err := ownPlan(t, "skylakex", formulas("(A + B) / (C + D)"), plan.Options{SMT: true, Watchdog: watchdog, Without: []string{"CYCLES"}})
		if err != nil {
			t.Fatal(err)
		}
		if p.Nodes[0].Together == watchdog {
			t.Errorf("watchdog %t: four events on four counters together: %t", watchdog, p.Nodes[0].Together)
		}
	}
}

// TestWithoutInput checks inputs that may be one of several events: if the first is
// refused, the next one is taken.
func TestWithoutInput(t *testing.T) {
	nodes := "[[input]]\nname = \"in\"\nevents = [\"A\", \"B\"]\nabout = \"a\"\n" + formulas("in / CYCLES")
	p, err := ownPlan(t, "skylakex", nodes, plan.Options{Without: []string{"A"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(p.Groups[0]); !slices.Contains(got, "B") || slices.Contains(got, "A") {
		t.Errorf("without A the input is counted by %v", got)
	}
}

// TestLevels checks that a level which the model does not have is pointed out.
func TestLevels(t *testing.T) {
	for level, want := range map[int]bool{6: false, 7: true, 99: true} {
		p := planFor(t, "skylakex", "tma", plan.Options{Level: level})
		said := slices.ContainsFunc(p.Warnings, func(w counts.Note) bool { return strings.Contains(w.Text, "has 6 levels") })
		if said != want {
			t.Errorf("level %d: warnings %q", level, p.Warnings)
		}
	}
}

func TestRefuses(t *testing.T) {
	m, events := load(t, "core2", "")
	for _, tt := range []struct {
		opt  plan.Options
		want string
	}{
		{plan.Options{Set: "nosuch"}, "it has big-4"},
		{plan.Options{Nodes: []int{-1}}, "no node number"},
		{plan.Options{Nodes: []int{len(m.Nodes)}}, "no node number"},
		{plan.Options{Level: -1}, "not negative"},
		{plan.Options{Counters: -1}, "not negative"},
	} {
		if _, err := plan.New(m, events, tt.opt); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%+v): error %v, want one with %q", tt.opt, err, tt.want)
		}
	}
	// An event that can be on counter 2 only cannot be counted if that is not
	// available.
	p, err := ownPlan(t, "skylakex", formulas("ONLY_2 / CYCLES", "A / CYCLES"), plan.Options{Counters: 2})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.Nodes[0].Missing, "not available") {
		t.Errorf("a node that needs counter 2 of 2 is %+v", p.Nodes[0])
	}
}

// TestKnownCounts checks the numbers of groups that are known from elsewhere.
func TestKnownCounts(t *testing.T) {
	m, events := load(t, "core2", "core2-cycles")
	p, err := plan.New(m, events, plan.Options{Set: "big-4"})
	if err != nil {
		t.Fatal(err)
	}
	if p.Runs() != 2 || !p.Optimal() {
		t.Errorf("Core 2's Big 4 need %d runs, bound %d, want 2", p.Runs(), p.LowerBound)
	}
	m, events = load(t, "power7", "power7-cpi")
	p, err = plan.New(m, events, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Groups) != 10 || !p.Optimal() {
		t.Errorf("POWER7's breakdown takes %d groups, bound %d, want 10", len(p.Groups), p.LowerBound)
	}
}

// TestSets checks that the event sets of all models need the runs that their
// sources say.
func TestSets(t *testing.T) {
	cat := catalogue(t)
	stated := 0
	for _, cpu := range cat.CPUs() {
		for _, info := range cat.Models(cpu.Name) {
			m, events := load(t, cpu.Name, info.Name)
			for i := range m.EventSets {
				s := &m.EventSets[i]
				for _, opt := range []plan.Options{{}, {Watchdog: true}, {SMT: cpu.Threads > 1, Watchdog: true, Errata: true}} {
					opt.Set = s.Name
					p, err := plan.New(m, events, opt)
					if err != nil {
						t.Errorf("%s, %s, set %s: %v", cpu.Name, m.Name, s.Name, err)
						continue
					}
					for _, f := range newVerifier(events).verify(p) {
						t.Errorf("%s, %s, set %s, watchdog %t, SMT %t: %s", cpu.Name, m.Name, s.Name, opt.Watchdog, opt.SMT, f)
					}
					if s.Runs > 0 && !opt.Watchdog {
						stated++
						if p.Runs() > s.Runs {
							t.Errorf("%s, %s, set %s: %d runs, want %d", cpu.Name, m.Name, s.Name, p.Runs(), s.Runs)
						}
					}
				}
			}
		}
	}
	if stated == 0 {
		t.Error("no event set states its runs")
	}
}

// TestDeterminism makes the same plans twice.
func TestDeterminism(t *testing.T) {
	cpus := []string{"skylakex", "sapphirerapids", "power7"}
	if raceDetector || !testlong.Enabled() {
		cpus = cpus[2:]
	}
	for _, cpu := range cpus {
		m, events := load(t, cpu, "")
		for _, smt := range []bool{false, true} {
			opt := plan.Options{SMT: smt, Nodes: everything(m)}
			a, err := plan.New(m, events, opt)
			if err != nil {
				t.Fatal(err)
			}
			b, err := plan.New(m, events, opt)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s, SMT %t: two plans differ", cpu, smt)
			}
		}
	}
}

// TestVerifierCanFail spoils a plan in every way that the verifier looks for.
func TestVerifierCanFail(t *testing.T) {
	m, events := load(t, "icelakex", "tma")
	fresh := func() *plan.Plan {
		p, err := plan.New(m, events, plan.Options{Level: 3})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	full := func(p *plan.Plan) *plan.Group { // a group whose general counters are all taken
		for i := range p.Groups {
			if slices.Contains(p.Groups[i].Counters, "7") {
				return &p.Groups[i]
			}
		}
		t.Fatal("no group is full")
		return nil
	}
	split := func(p *plan.Plan) *plan.Node { // a node of several parts
		for i := range p.Nodes {
			if len(p.Nodes[i].Parts) > 1 {
				return &p.Nodes[i]
			}
		}
		t.Fatal("no node is split")
		return nil
	}
	for _, tt := range []struct {
		name  string
		spoil func(p *plan.Plan)
		want  string
	}{
		{"an event less", func(p *plan.Plan) { g := &p.Groups[0]; g.Events, g.Counters = g.Events[1:], g.Counters[1:] }, "is not in its groups"},
		{"an event twice", func(p *plan.Plan) { g := &p.Groups[0]; g.Events[1] = g.Events[2] }, "twice"},
		{"an event more", func(p *plan.Plan) {
			g := full(p)
			for i := range p.Groups {
				for k, e := range p.Groups[i].Events {
					if p.Groups[i].Counters[k] == "0" && !slices.Contains(names(*g), e.Name) {
						g.Events, g.Counters = append(g.Events, e), append(g.Counters, "0")
						return
					}
				}
			}
		}, "no way to put"},
		{"another counter", func(p *plan.Plan) { g := full(p); g.Counters[len(g.Counters)-1] = "fixed 2" }, "cannot be on counter"},
		{"slots not first", func(p *plan.Plan) { slices.Reverse(p.Groups[0].Events); slices.Reverse(p.Groups[0].Counters) }, "without slots"},
		{"a better bound", func(p *plan.Plan) { p.LowerBound = len(p.Groups) + 1 }, "proved to need"},
		{"another group", func(p *plan.Plan) { p.Nodes[0].Groups = []int{len(p.Groups) - 1} }, "is not in its groups"},
		{"fewer turns", func(p *plan.Plan) { p.Rotation = p.Rotation[1:] }, "turns of"},
		{"a part less", func(p *plan.Plan) { n := split(p); n.Parts = n.Parts[:1] }, "in none of its parts"},
		{"a part elsewhere", func(p *plan.Plan) { n := split(p); n.Parts[0].Groups = []int{len(p.Groups) - 1} }, "of a part are not in"},
		{"a part in two groups", func(p *plan.Plan) { n := split(p); n.Parts[0].Groups, n.Parts[0].Loose = n.Groups, false }, "not said to be loose"},
		{"a split node", func(p *plan.Plan) { p.Nodes[0].Together = false }, "would fit one group"},
		{"a missing node", func(p *plan.Plan) { p.Nodes[0] = plan.Node{Missing: "lost"} }, "can be counted"},
		{"a counter less", func(p *plan.Plan) { p.Options.Counters = 7 }, "cannot be on counter"},
		{"a watchdog", func(p *plan.Plan) { p.Options.Watchdog = true }, "no way to put"},
		{"an event on counters that are gone", func(p *plan.Plan) { p.Options.Counters = 1 }, "no way to put"},
	} {
		p := fresh()
		tt.spoil(p)
		faults := newVerifier(events).verify(p)
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, tt.want) }) {
			t.Errorf("%s: faults %q, want one with %q", tt.name, faults, tt.want)
		}
	}
}
