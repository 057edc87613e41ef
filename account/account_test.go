package account_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// files is a catalogue of one processor with one method, small enough to work
// out by hand.
var files = fstest.MapFS{
	"cpus.toml": {Data: []byte(`
[[cpu]]
name = "toy"
title = "A processor for tests"
vendor = "intel"
ids = ["GenuineIntel-6-1"]
pmus = ["cpu"]
threads = 2
layout = "intel"
events = "TOY"
`)},
	"events/intel.csv": {Data: []byte(`cpus,name,config,counters,unit,aliases
TOY,CYC,0x3c,fixed1,cycles,cycles
TOY,INST,0xc0,fixed0,instructions,instructions
TOY,STALL,0xa2,,cycles,
TOY,MISS,0x1d1,,loads,
TOY,HIT,0x2d1,,loads,
`)},
	"models/toy.toml": {Data: []byte(`
name = "toy"
version = "1"
title = "A method for tests"
about = "For tests."
source = "none"
cpus = ["toy"]
unit = "cycles"
of = "CYC"

[[parameter]]
name = "MISS_COST"
value = 10
unit = "cycles/loads"
about = "cost"

[[parameter]]
name = "CLOCK"
unit = "cycles/s"
about = "no default"

[[node]]
name = "Cycles"
formula = "CYC"
title = "All"
about = "All."

[[node]]
name = "Busy"
parent = "Cycles"
formula = "CYC - STALL"
title = "Busy"
about = "Busy."

[[node]]
name = "Stalled"
parent = "Cycles"
formula = "STALL"
threshold = "Stalled > 0.2"
min = 0
max = 1
title = "Stalled"
about = "Stalled."

[[node]]
name = "Miss"
parent = "Stalled"
formula = "MISS * MISS_COST"
threshold = "Miss > 0.1"
title = "Misses"
about = "Misses."

[[node]]
name = "Rest"
parent = "Stalled"
rest = true
threshold = "Rest > 0.1"
negative = "costs overlap"
title = "Rest"
about = "Rest."

[[node]]
name = "CPI"
section = "More"
unit = "cycles/instructions"
formula = "CYC / INST"
title = "CPI"
about = "CPI."

[[node]]
name = "Seconds"
section = "More"
unit = "s"
formula = "CYC / CLOCK"
title = "Time"
about = "Time."

[[relation]]
name = "hits"
left = "HIT"
right = "MISS"
op = ">="
tolerance = 0.02
identity = true
fails = "more misses than hits"
`)},
}

func toy(t testing.TB, opt account.Options) *account.Method {
	t.Helper()
	return compile(t, files, opt)
}

// compile returns the method of a catalogue of one processor with one method.
func compile(t testing.TB, files fstest.MapFS, opt account.Options) *account.Method {
	t.Helper()
	cat, err := model.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := cat.CPU("toy")
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model("", "toy")
	if err != nil {
		t.Fatal(err)
	}
	events, err := cat.Events(cpu)
	if err != nil {
		t.Fatal(err)
	}
	method, err := account.Compile(m, cpu, events, opt)
	if err != nil {
		t.Fatal(err)
	}
	return method
}

// A reading is a column of a test's table with its one cell.
type reading struct {
	event    string
	group    int
	value    float64
	coverage float64
	variance float64
	state    counts.State
}

func run(t testing.TB, method *account.Method, duration float64, readings ...reading) *account.Account {
	t.Helper()
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}}
	for _, r := range readings {
		l.Columns = append(l.Columns, counts.Column{Event: r.event, Group: r.group})
	}
	table := counts.NewTable(l)
	table.Duration = duration
	for i, r := range readings {
		if r.coverage == 0 {
			r.coverage = 1
		}
		if r.state == counts.Absent {
			r.state = counts.Counted
		}
		*table.Cell(0, i) = counts.Cell{Value: r.value, Enabled: 1e9, Running: r.coverage * 1e9, Variance: r.variance, State: r.state}
	}
	return method.Bind(l).Evaluate(table, account.Place{}, nil)
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)) }

func TestValues(t *testing.T) {
	a := run(t, toy(t, account.Options{}), 1,
		reading{event: "cycles", value: 1000}, reading{event: "instructions", value: 500},
		reading{event: "cpu/event=0xa2/", value: 400}, reading{event: "MISS", value: 15}, reading{event: "HIT", value: 100})
	for name, want := range map[string]float64{"Cycles": 1, "Busy": 0.6, "Stalled": 0.4, "Miss": 0.15, "Rest": 0.25, "CPI": 2} {
		if got := a.Value(name); !near(got, want) {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	var path []string
	for _, i := range a.Bottleneck {
		path = append(path, a.Model().Nodes[i].Name)
	}
	if got := strings.Join(path, " "); got != "Stalled Rest" {
		t.Errorf("bottleneck %q", got)
	}
	if a.Contradicted() {
		t.Error("a sound recording is called contradictory")
	}
}

func TestWhy(t *testing.T) {
	method := toy(t, account.Options{})
	a := run(t, method, 1, reading{event: "cycles", value: 1000}, reading{event: "instructions", value: 0},
		reading{event: "MISS", state: counts.NotCounted})
	for name, want := range map[string]string{
		"Stalled": "STALL is not in the recording",
		"Rest":    "STALL is not in the recording",
		"Miss":    "MISS was not counted",
		"CPI":     "division by zero in CYC / INST",
		"Seconds": "parameter CLOCK has no value",
	} {
		i, _ := a.Node(name)
		if a.Nodes[i].Known() {
			t.Errorf("%s = %v", name, a.Nodes[i].Value)
		}
		if got := a.Why(i).Text; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	none := run(t, method, 1, reading{event: "STALL", value: 5})
	i, _ := none.Node("Stalled")
	if got := none.Why(i).Text; got != "CYC is not in the recording" {
		t.Errorf("without the whole: %q", got)
	}
	if none.Known() {
		t.Error("an account without its whole knows something")
	}
}

// TestRest checks that a rest takes in siblings that were not counted, and may
// be negative.
func TestRest(t *testing.T) {
	method := toy(t, account.Options{Params: map[string]float64{"MISS_COST": 100}})
	a := run(t, method, 1, reading{event: "cycles", value: 1000}, reading{event: "STALL", value: 400})
	if got := a.Value("Rest"); !near(got, 0.4) {
		t.Errorf("Rest without Miss = %v", got)
	}
	a = run(t, method, 1, reading{event: "cycles", value: 1000}, reading{event: "STALL", value: 400}, reading{event: "MISS", value: 6})
	if got := a.Value("Rest"); !near(got, -0.2) {
		t.Errorf("Rest = %v, want -0.2", got)
	}
}

// TestRestOfAll checks that nothing is left of times that fill the whole exactly. The rounding
// of quotients must not show.
func TestRestOfAll(t *testing.T) {
	method, err := account.Load("generic", "os-time", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1000 {
		run1, wait := float64(1e9+7919*n), float64(104729*n)
		a := run(t, method, 3, reading{event: "thread_time", value: run1 + wait}, reading{event: "thread_run", value: run1}, reading{event: "runqueue_wait", value: wait})
		for _, name := range []string{"Blocked", "Other_Wait"} {
			if got := a.Value(name); got != 0 {
				t.Fatalf("%s = %v of %v + %v", name, got, run1, wait)
			}
		}
	}
	a := run(t, method, 3, reading{event: "thread_time", value: 1e9 + 1}, reading{event: "thread_run", value: 1e9}, reading{event: "runqueue_wait", value: 0})
	if got := a.Value("Blocked"); !(got > 0) {
		t.Errorf("Blocked = %v for a nanosecond", got)
	}
}

// TestRelates checks that what is only one event's count, or the time, relates nothing.
func TestRelates(t *testing.T) {
	method, err := account.Load("skylake", "", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cycles, instructions := reading{event: "cycles", value: 2000}, reading{event: "instructions", value: 1000}
	for _, tt := range []struct {
		node string
		with []reading
		want bool
	}{
		{"Info_Thread_CLKS", []reading{cycles}, false},
		{"Info_System_MUX", []reading{cycles}, false},
		{"Info_Thread_IPC", []reading{cycles}, false},
		{"Info_Thread_IPC", []reading{cycles, instructions}, true},
		{"Info_Thread_CLKS", []reading{cycles, instructions}, false},
	} {
		a := run(t, method, 1, tt.with...)
		if i, ok := a.Node(tt.node); !ok || a.Relates(i) != tt.want {
			t.Errorf("%s of %d events relates: %v, want %v", tt.node, len(tt.with), !tt.want, tt.want)
		}
	}
}

// TestCoherent checks that a formula reads events of several groups from the same group,
// with that group's coverage.
func TestCoherent(t *testing.T) {
	method := toy(t, account.Options{})
	a := run(t, method, 10,
		reading{event: "CYC", group: 1, value: 1000, coverage: 0.5}, reading{event: "INST", group: 1, value: 500, coverage: 0.5},
		reading{event: "CYC", group: 2, value: 3000, coverage: 0.4}, reading{event: "STALL", group: 2, value: 900, coverage: 0.4})
	if got := a.Value("CPI"); !near(got, 2) {
		t.Errorf("CPI = %v, want 1000/500", got)
	}
	if got := a.Value("Stalled"); !near(got, 0.3) {
		t.Errorf("Stalled = %v, want 900/3000", got)
	}
	for name, coverage := range map[string]float64{"CPI": 0.5, "Stalled": 0.4} {
		i, _ := a.Node(name)
		v := a.Nodes[i]
		if !near(v.Coverage, coverage) || !v.Together || v.Doubt != account.DoubtNone {
			t.Errorf("%s: coverage %v, together %v, %v; want %v, true", name, v.Coverage, v.Together, v.Doubt, coverage)
		}
	}
	// Cycles has two readings, which were counted for 0.5 and 0.4 of the time.
	i, _ := a.Node("Cycles")
	if got, want := a.Nodes[i].Amount, 1000.0; !near(got, want) {
		t.Errorf("Cycles = %v, want the first group's %v", got, want)
	}
}

// TestOwnRuns: events of separate runs, counted all of the time there, were not counted
// together. Nothing else is wrong with their ratio.
func TestOwnRuns(t *testing.T) {
	method := toy(t, account.Options{})
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}, Columns: []counts.Column{
		{Event: "CYC", Group: 1, Parts: 3}, {Event: "INST", Group: 1, Parts: 3}, {Event: "STALL", Group: 2, Parts: 3}}}
	table := counts.NewTable(l)
	table.Duration = 0.1
	for i, v := range []float64{1000, 500, 300} {
		*table.Cell(0, i) = counts.Cell{Value: v, Enabled: 1e8, Running: 1e8, State: counts.Counted}
		table.Cell(0, i).OfRuns(3)
	}
	a := method.Bind(l).Evaluate(table, account.Place{}, nil)
	for name, together := range map[string]bool{"CPI": true, "Stalled": false} {
		i, _ := a.Node(name)
		if v := a.Nodes[i]; v.Together != together || v.Doubt != account.DoubtNone || !near(v.Coverage, 1) {
			t.Errorf("%s: together %v, coverage %v, %v", name, v.Together, v.Coverage, v.Doubt)
		}
	}
}

func TestNotTogether(t *testing.T) {
	method := toy(t, account.Options{})
	readings := []reading{
		{event: "CYC", value: 1000, coverage: 0.2}, {event: "STALL", value: 300, coverage: 0.04},
	}
	a := run(t, method, 1, readings...)
	i, _ := a.Node("Stalled")
	if v := a.Nodes[i]; v.Together || v.Doubt != account.DoubtCoverage || v.Coverage != 0.04 {
		t.Errorf("for 0.04 s: %+v", v)
	}
	a = run(t, method, 1000, readings...)
	if v := a.Nodes[i]; v.Together || v.Doubt != account.DoubtNone {
		t.Errorf("for 40 s: %+v", v)
	}
}

// TestErrorBound checks the error of a ratio from repeats: with the worst
// correlation the relative errors add up.
func TestErrorBound(t *testing.T) {
	a := run(t, toy(t, account.Options{}), 1,
		reading{event: "CYC", value: 1000, variance: 1}, reading{event: "INST", value: 500, variance: 0.25})
	i, _ := a.Node("CPI")
	// Relative errors of 0.1 % each, twice that together, 1.96 times for 95 %.
	if got, want := a.Nodes[i].Error, 1.96*2*0.002; math.Abs(got-want) > 1e-5 {
		t.Errorf("error %v, want %v", got, want)
	}
	if got := a.Value("CPI"); !near(got, 2) {
		t.Errorf("the value itself changed: %v", got)
	}
}

func TestRange(t *testing.T) {
	a := run(t, toy(t, account.Options{}), 1, reading{event: "CYC", value: 1000}, reading{event: "STALL", value: 1200})
	i, _ := a.Node("Stalled")
	if a.Nodes[i].Doubt != account.DoubtRange || !a.Contradicted() {
		t.Errorf("more stalls than cycles: %+v", a.Nodes[i])
	}
	a = run(t, toy(t, account.Options{}), 1, reading{event: "HIT", value: 10}, reading{event: "MISS", value: 11})
	if !a.Contradicted() {
		t.Error("a failing identity does not contradict")
	}
}

// TestPrivilege checks that an account of user mode says so, and that filtered and unfiltered
// counts are not mixed.
func TestPrivilege(t *testing.T) {
	method := toy(t, account.Options{})
	a := run(t, method, 1, reading{event: "cycles:u", value: 1000}, reading{event: "STALL:u", value: 100})
	if got := a.Value("Stalled"); !near(got, 0.1) {
		t.Errorf("Stalled in user mode = %v", got)
	}
	if len(a.Notes) != 1 || !strings.Contains(a.Notes[0].Text, ":u") {
		t.Errorf("notes %q", a.Notes)
	}
	a = run(t, method, 1, reading{event: "cycles", value: 1000}, reading{event: "STALL:u", value: 100})
	if got := a.Value("Stalled"); !math.IsNaN(got) {
		t.Errorf("user-mode stalls over all cycles = %v", got)
	}
}

func TestUnused(t *testing.T) {
	a := run(t, toy(t, account.Options{}), 1, reading{event: "cycles", value: 1}, reading{event: "branches", value: 1}, reading{event: "made.up", value: 1})
	if got := fmt.Sprint(a.Binding.Unused, a.Binding.Unknown); got != "[branches] [made.up]" {
		t.Errorf("unused, unknown: %s", got)
	}
}

func TestParams(t *testing.T) {
	cat, err := model.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	cpu, _ := cat.CPU("toy")
	m, _ := cat.Model("", "toy")
	events, _ := cat.Events(cpu)
	_, err = account.Compile(m, cpu, events, account.Options{Params: map[string]float64{"MISS_COTS": 1}})
	if err == nil || !strings.Contains(err.Error(), "has no parameter MISS_COTS; it has MISS_COST, CLOCK") {
		t.Errorf("got %v", err)
	}
	_, err = account.Compile(m, cpu, events, account.Options{Params: map[string]float64{"MISS_COST": math.NaN()}})
	if err == nil {
		t.Error("NaN is taken for a parameter")
	}
}

// TestLevelNote: a level that the tree does not have is said to be none.
func TestLevelNote(t *testing.T) {
	for level, want := range map[int]string{0: "", 2: "", 3: "toy has 2 levels: there is none deeper"} {
		a := run(t, toy(t, account.Options{Level: level}), 1, reading{event: "CYC", value: 1000})
		if got := strings.Join(counts.Texts(a.Notes), "; "); got != want {
			t.Errorf("level %d: notes %q, want %q", level, got, want)
		}
	}
}

func TestEvaluateDoesNotAllocate(t *testing.T) {
	method := toy(t, account.Options{})
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")},
		Columns: []counts.Column{{Event: "CYC"}, {Event: "STALL"}, {Event: "MISS"}, {Event: "INST"}, {Event: "HIT"}}}
	table := counts.NewTable(l)
	for i, value := range []float64{1000, 500, 20, 800, 10} {
		*table.Cell(0, i) = counts.Cell{Value: value, Enabled: 1, Running: 1, State: counts.Counted}
	}
	b := method.Bind(l)
	a := b.Evaluate(table, account.Place{}, nil)
	if n := testing.AllocsPerRun(100, func() { b.Evaluate(table, account.Place{}, a) }); n != 0 {
		t.Errorf("%v allocations for each account", n)
	}
}

// TestTimes checks that times are in nanoseconds whatever unit the recording
// has them in.
func TestTimes(t *testing.T) {
	method := toy(t, account.Options{})
	for unit, value := range map[string]float64{"": 1.5e9, "ns": 1.5e9, "msec": 1500} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")},
			Columns: []counts.Column{{Event: "task-clock", Unit: unit}}}
		table := counts.NewTable(l)
		*table.Cell(0, 0) = counts.Cell{Value: value, State: counts.Counted}
		a := method.Bind(l).Evaluate(table, account.Place{}, nil)
		if got := a.Counts()[0].Value; got != 1.5e9 {
			t.Errorf("%v %s is %v ns", value, unit, got)
		}
	}
}

// TestErrorOfDivision checks the error of what is divided from a whole: what one part has
// too much the other lacks, and nothing else has an error for that.
func TestErrorOfDivision(t *testing.T) {
	for _, samples := range []int64{0, 50} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")},
			Columns: []counts.Column{{Event: "CYC"}, {Event: "STALL", Whole: 2}, {Event: "INST", Whole: 2}, {Event: "MISS"}, {Event: "HIT"}}}
		table := counts.NewTable(l)
		for i, v := range []float64{1000, 200, 400, 3, 30} {
			*table.Cell(0, i) = counts.Cell{Value: v, Enabled: 1, Running: 1, State: counts.Counted}
		}
		table.Cell(0, 1).Variance, table.Cell(0, 2).Variance = 100, 100
		table.Cell(0, 4).Samples = samples
		a := toy(t, account.Options{}).Bind(l).Evaluate(table, account.Place{}, nil)
		for name, want := range map[string]float64{"Stalled": 1.96 * 10 / 1000, "Busy": 1.96 * 10 / 1000, "CPI": 1.96 * 2.5 * 10 / 400, "Rest": 1.96 * 10 / 1000} {
			if i, _ := a.Node(name); !(math.Abs(a.Nodes[i].Error/want-1) < 0.03) {
				t.Errorf("%d samples: %s has an error of %v, want %v", samples, name, a.Nodes[i].Error, want)
			}
		}
		for _, name := range []string{"Cycles", "Miss"} {
			if i, _ := a.Node(name); a.Nodes[i].Error > 0 || samples == 0 && a.Nodes[i].Error == 0 {
				t.Errorf("%d samples: %s has an error of %v", samples, name, a.Nodes[i].Error)
			}
		}
		if got := table.Cell(0, 1).Value; got != 200 || !near(a.Value("Stalled"), 0.2) {
			t.Errorf("the counts have changed: %v, %v", got, a.Value("Stalled"))
		}
	}
}
