package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// memoryBound is the account of a Skylake program that waits for memory; the parts
// of Memory_Bound were not counted.
func memoryBound(t *testing.T, label string, opt account.Options, samples int64) *account.Account {
	t.Helper()
	method, err := account.Load("skylake", "", opt)
	if err != nil {
		t.Fatal(err)
	}
	readings := []struct {
		event string
		value float64
	}{
		{"CPU_CLK_UNHALTED.THREAD", 12000}, {"INST_RETIRED.ANY", 5400}, {"IDQ_UOPS_NOT_DELIVERED.CORE", 1200},
		{"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 220}, {"UOPS_ISSUED.ANY", 5640}, {"UOPS_RETIRED.RETIRE_SLOTS", 5520},
		{"INT_MISC.RECOVERY_CYCLES", 40}, {"CYCLE_ACTIVITY.STALLS_MEM_ANY", 9000}, {"EXE_ACTIVITY.BOUND_ON_STORES", 80},
		{"CYCLE_ACTIVITY.STALLS_TOTAL", 9400}, {"EXE_ACTIVITY.1_PORTS_UTIL", 880}, {"EXE_ACTIVITY.2_PORTS_UTIL", 600},
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("run")}}
	for _, r := range readings {
		l.Columns = append(l.Columns, counts.Column{Event: r.event})
	}
	table := counts.NewTable(l)
	table.Label, table.Duration = label, 4
	for i, r := range readings {
		*table.Cell(0, i) = counts.Cell{Value: r.value, Enabled: 4e9, Running: 4e9, State: counts.Counted, Samples: samples}
	}
	a := method.Bind(l).Evaluate(table, account.Place{}, nil)
	if len(a.Bottleneck) != 2 {
		t.Fatalf("bottleneck %v", a.Bottleneck)
	}
	return a
}

// TestSteps: the commands are complete for where the counts are from.
func TestSteps(t *testing.T) {
	t.Parallel()
	server := account.Options{Workload: model.Server}
	for _, tt := range []struct {
		name    string
		label   string
		options account.Options
		samples int64
		header  report.Header
		want    []string
	}{
		{"live", "./walk columns", account.Options{}, 0, report.Header{Again: []string{"--", "./walk", "a file"}, Params: map[string]float64{"#smt_on": 1}}, []string{
			"cyclestack stat --nodes 'Backend_Bound.Memory_Bound.*' --level 3 -- ./walk 'a file'",
			"cyclestack record --nodes Memory_Bound -- ./walk 'a file'",
			"cyclestack explain Memory_Bound --cpu skylake"}},
		{"live, a process, the user's choices", "process 12", server, 0, report.Header{Again: []string{"-p", "12"}, ModelFlag: "tma", Params: map[string]float64{"X": 0.5}}, []string{
			"cyclestack stat --nodes 'Backend_Bound.Memory_Bound.*' --level 3 --model tma --param X=0.5 --workload server -p 12",
			"cyclestack record --nodes Memory_Bound --model tma -p 12",
			"cyclestack explain Memory_Bound --cpu skylake --model tma"}},
		{"recorded", "./walk columns", account.Options{}, 0, report.Header{Files: []string{"my counts.txt"}, Params: map[string]float64{"#smt_on": 0}}, []string{
			"cyclestack plan --perf --cpu skylake --nodes 'Backend_Bound.Memory_Bound.*' --level 3",
			"perf record -e cycles:pp -- ./walk columns",
			"cyclestack explain Memory_Bound --cpu skylake --smt off 'my counts.txt'"}},
		{"recorded, the whole machine", "system wide", account.Options{}, 0, report.Header{Files: []string{"c.txt"}}, []string{
			"", "perf record -e cycles:pp -a -- sleep 10", ""}},
		{"recorded, a process", "process id 12", account.Options{}, 0, report.Header{Files: []string{"c.txt"}}, []string{
			"", "perf record -e cycles:pp -p 12 -- sleep 10", ""}},
		{"recorded, some CPUs", "CPU(s) 0-3", account.Options{}, 0, report.Header{Files: []string{"c.txt"}}, []string{
			"", "perf record -e cycles:pp -C 0-3 -- sleep 10", ""}},
		{"recorded, quotes lost", "bash -c make && ./walk", account.Options{}, 0, report.Header{Files: []string{"c.txt"}}, []string{
			"", "perf record -e cycles:pp -a -- sleep 10", ""}},
		{"samples", "./walk", server, 100, report.Header{CPUID: "GenuineIntel-6-5E", Files: []string{"perf.data"}}, []string{
			"cyclestack report --by function --cpu GenuineIntel-6-5E --workload server perf.data",
			"cyclestack explain Memory_Bound --cpu skylake --workload server perf.data"}},
		{"simulated", "./walk", account.Options{}, 0, report.Header{From: account.Provenance{Simulated: true}, Files: []string{"callgrind.out"}}, []string{
			"cyclestack report --by line callgrind.out",
			"cyclestack explain Memory_Bound --cpu skylake callgrind.out"}},
		{"several files", "./walk", account.Options{}, 0, report.Header{Files: []string{"a", "b"}}, nil},
	} {
		a := memoryBound(t, tt.label, tt.options, tt.samples)
		tt.header.CPU, tt.header.Model = a.CPU(), a.Model()
		var got []string
		for i, s := range stepsOf(tt.header, a) {
			if s.Why == "" {
				t.Errorf("%s: %s: why?", tt.name, s.Command)
			}
			if i < len(tt.want) && tt.want[i] == "" {
				s.Command = ""
			}
			got = append(got, s.Command)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
		}
	}
}

// TestStepsSet: where the method has events for programs that loops or branches
// dominate, these come next.
func TestStepsSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mispredicted float64
		more         []string
		want         string
	}{
		{20_000, nil, "cyclestack plan --perf --cpu core2 --set loops"},
		{9_000_000, nil, "cyclestack plan --perf --cpu core2 --set branch-dominated"},
		{2_000_000, nil, ""},
		{20_000, []string{"BUS_TRANS_ANY.SELF"}, "cyclestack plan --perf --cpu core2 --set loops"},
		{20_000, []string{"BUS_TRANS_ANY.SELF", "BUS_TRANS_ANY.ALL_AGENTS"}, ""},
	} {
		method, err := account.Load("core2", "core2-cycles", account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("run")}}
		values := []float64{1e9, 6e8, 1e6, 1e9, 2e8, tt.mispredicted}
		for _, e := range append([]string{"CPU_CLK_UNHALTED.CORE", "RS_UOPS_DISPATCHED.CYCLES_NONE", "MEM_LOAD_RETIRED.L2_LINE_MISS",
			"instructions", "branches", "branch-misses"}, tt.more...) {
			l.Columns = append(l.Columns, counts.Column{Event: e})
		}
		for range tt.more {
			values = append(values, 1e6)
		}
		table := counts.NewTable(l)
		table.Duration = 1
		for i, v := range values {
			*table.Cell(0, i) = counts.Cell{Value: v, Enabled: 1e9, Running: 1e9, State: counts.Counted}
		}
		a := method.Bind(l).Evaluate(table, account.Place{}, nil)
		got := ""
		for _, s := range stepsOf(report.Header{CPU: a.CPU(), Model: a.Model(), Files: []string{"f"}}, a) {
			if strings.Contains(s.Command, "--set") {
				got = s.Command
			}
		}
		if got != tt.want {
			t.Errorf("%v %v: %q, want %q", tt.mispredicted, tt.more, got, tt.want)
		}
	}
}

// TestStepsBehind: where a tree has no deeper level, what can be behind the
// bottleneck is counted next, unless it was.
func TestStepsBehind(t *testing.T) {
	t.Parallel()
	const want = "cyclestack plan --perf --cpu neoverse-n2 --nodes l1d_cache_mpki,l2_cache_mpki,ll_cache_read_mpki,dtlb_mpki"
	all := map[string]float64{"CPU_CYCLES": 1e9, "STALL_SLOT": 4.5e9, "STALL_SLOT_FRONTEND": 0.5e9, "STALL_SLOT_BACKEND": 4e9, "OP_RETIRED": 4e8, "OP_SPEC": 4.2e8,
		"BR_MIS_PRED": 1e5, "INST_RETIRED": 4e8, "L1D_CACHE_REFILL": 1e6, "L2D_CACHE_REFILL": 1e6, "LL_CACHE_MISS_RD": 1e6, "DTLB_WALK": 1e6}
	for _, tt := range []struct {
		without []string
		want    string
	}{
		{[]string{"INST_RETIRED", "L1D_CACHE_REFILL", "L2D_CACHE_REFILL", "LL_CACHE_MISS_RD", "DTLB_WALK"}, want},
		{[]string{"DTLB_WALK"}, want},
		{nil, ""},
	} {
		method, err := account.Load("neoverse-n2", "", account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("run")}}
		var values []float64
		for e, v := range all {
			if !slices.Contains(tt.without, e) {
				l.Columns, values = append(l.Columns, counts.Column{Event: e}), append(values, v)
			}
		}
		table := counts.NewTable(l)
		table.Duration = 1
		for i, v := range values {
			*table.Cell(0, i) = counts.Cell{Value: v, Enabled: 1e9, Running: 1e9, State: counts.Counted}
		}
		a := method.Bind(l).Evaluate(table, account.Place{}, nil)
		name := a.Model().Nodes[a.Bottleneck[len(a.Bottleneck)-1]].Name
		got := ""
		for _, s := range stepsOf(report.Header{CPU: a.CPU(), Model: a.Model(), Files: []string{"f"}}, a) {
			if strings.Contains(s.Why, "behind") {
				got = s.Command
			}
		}
		if name != "backend_bound" || got != tt.want {
			t.Errorf("without %v: %s: %q, want %q", tt.without, name, got, tt.want)
		}
	}
}

// TestStepsWithout: samples without a bottleneck are somewhere in the code, and asking the
// operating system again tells nothing new.
func TestStepsWithout(t *testing.T) {
	t.Parallel()
	a := memoryBound(t, "./app", account.Options{}, 100)
	a.Bottleneck = nil
	h := report.Header{CPU: a.CPU(), Model: a.Model(), Files: []string{"perf.data"}}
	if got := stepsOf(h, a); len(got) != 1 || got[0].Command != "cyclestack report --by function perf.data" {
		t.Errorf("samples: %v", got)
	}
	h.From.Kept = true
	if got := stepsOf(h, a); got != nil {
		t.Errorf("samples of an account that was kept: %v", got)
	}
	h.From.Kept = false
	counted := memoryBound(t, "./app", account.Options{}, 0)
	counted.Bottleneck = nil
	if got := stepsOf(h, counted); got != nil {
		t.Errorf("counts: %v", got)
	}
	method, err := account.Load("generic", "os-time", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &counts.Layout{Columns: []counts.Column{{Event: "thread_time"}, {Event: "thread_run"}, {Event: "runqueue_wait"}}, Scopes: []counts.Scope{counts.RunScope("run")}}
	table := counts.NewTable(l)
	table.Duration = 4
	for i, v := range []float64{4e9, 1e9, 0} {
		*table.Cell(0, i) = counts.Cell{Value: v, Enabled: 4e9, Running: 4e9, State: counts.Counted}
	}
	waits := method.Bind(l).Evaluate(table, account.Place{}, nil)
	for _, s := range stepsOf(report.Header{CPU: waits.CPU(), Model: waits.Model(), Again: []string{"--", "./app"}}, waits) {
		if strings.Contains(s.Command, "cyclestack stat") {
			t.Errorf("the operating system: %s", s.Command)
		}
	}
	if len(waits.Bottleneck) == 0 {
		t.Error("it does not wait")
	}
}

// TestStepsUncertain: a bottleneck that was counted too little is counted again, with its
// rivals; otherwise the parts of both are counted.
func TestStepsUncertain(t *testing.T) {
	t.Parallel()
	program, process := []string{"--", "./app"}, []string{"-p", "12"}
	const parts = "--nodes 'Backend_Bound.Memory_Bound.*,Backend_Bound.Core_Bound.*' --level 3"
	for _, tt := range []struct {
		doubt    account.Doubt
		coverage float64
		again    []string
		want     string
	}{
		{account.DoubtNone, 0.5, program, "cyclestack stat " + parts + " -- ./app"},
		{account.DoubtTogether, 0.5, program, "cyclestack stat --no-multiplex --nodes Backend_Bound,Memory_Bound,Core_Bound -- ./app"},
		{account.DoubtError, 0.5, nil, "cyclestack plan --perf --no-multiplex --cpu skylake --nodes Backend_Bound,Memory_Bound,Core_Bound"},
		{account.DoubtCoverage, 0.5, process, "cyclestack stat " + parts + " -p 12"},
		{account.DoubtError, 1, program, "cyclestack stat " + parts + " -- ./app"}, // it varies, however it is counted
	} {
		a := memoryBound(t, "./app", account.Options{}, 0)
		end := a.Bottleneck[1]
		core, _ := a.Node("Core_Bound")
		a.Nodes[end].Doubt, a.Nodes[end].Coverage = tt.doubt, tt.coverage
		a.Rivals = []account.Rival{{Node: core, Of: end, Margin: 0.5}}
		h := report.Header{CPU: a.CPU(), Model: a.Model(), Again: tt.again}
		if tt.again == nil {
			h.Files = []string{"f"}
		}
		if got := stepsOf(h, a)[0].Command; got != tt.want {
			t.Errorf("%v, %v: %q, want %q", tt.doubt, tt.coverage, got, tt.want)
		}
	}
}

// stepsOf are the next steps of an account, spelled.
func stepsOf(h report.Header, a *account.Account) []report.Step {
	from := provenance(h.Again)
	from.Files, from.Simulated, from.Kept = len(h.Files), h.From.Simulated, h.From.Kept
	var list []report.Step
	for _, s := range a.Next(from) {
		list = append(list, spellStep(h, a, s))
	}
	return list
}
