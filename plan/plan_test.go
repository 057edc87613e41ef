package plan_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

func catalogue(t testing.TB) *model.Catalogue {
	t.Helper()
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

// load returns a model and the events of a processor; name "" is the default
// model.
func load(t testing.TB, cpuName, name string) (*model.Model, *model.EventTable) {
	t.Helper()
	cat := catalogue(t)
	cpu, err := cat.CPU(cpuName)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model(name, cpu.Name)
	if err != nil {
		t.Fatal(err)
	}
	events, err := cat.Events(cpu)
	if err != nil {
		t.Fatal(err)
	}
	return m, events
}

// levels returns the deepest level of a model's main tree.
func levels(m *model.Model) int {
	deepest := 1
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Section == "" {
			deepest = max(deepest, n.Level)
		}
	}
	return deepest
}

// everything returns the indexes of all nodes of a model.
func everything(m *model.Model) []int {
	all := make([]int, len(m.Nodes))
	for i := range all {
		all[i] = i
	}
	return all
}

// sampled are the processors that tests of every processor use without -long: of each
// vendor, and of each generation of Intel's and AMD's whose counters differ.
var sampled = []string{
	"core2", "nehalemep", "ivybridge", "skylakex", "icelake", "sapphirerapids", "lunarlake:core",
	"silvermont", "alderlake:atom", "sierraforest", "amdzen1", "amdzen4", "neoverse-n1", "neoverse-v2", "cortex-a76",
	"power7", "power10", "sifive-bullet", "generic",
}

// processors returns every processor with -long, and the sampled ones without.
func processors(t *testing.T) []*model.CPU {
	t.Helper()
	if testlong.Enabled() {
		return catalogue(t).CPUs()
	}
	var list []*model.CPU
	for _, name := range sampled {
		cpu, err := catalogue(t).CPU(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, cpu)
	}
	return list
}

// TestEveryPlan makes the plan of every model of every processor, to every level
// and of all of its nodes. It has plans with and without SMT, and some with fewer
// counters. An independent verifier checks every group. Without -long it takes the sampled
// processors, levels 1, 2 and the deepest.
func TestEveryPlan(t *testing.T) {
	var plans atomic.Int32
	t.Run("cpus", func(t *testing.T) {
		for _, cpu := range processors(t) {
			t.Run(cpu.Name, func(t *testing.T) {
				t.Parallel()
				plans.Add(int32(checkPlans(t, cpu)))
			})
		}
	})
	if n := plans.Load(); int(n) < testlong.Size(100, 300) {
		t.Errorf("only %d plans were made", n)
	}
}

// checkPlans makes and verifies the plans for a processor, and returns how many
// they are.
func checkPlans(t *testing.T, cpu *model.CPU) (plans int) {
	for _, info := range catalogue(t).Models(cpu.Name) {
		m, events := load(t, cpu.Name, info.Name)
		v := newVerifier(events)
		for _, opt := range everyOption(cpu, m) {
			plans++
			p, err := plan.New(m, events, opt)
			if err != nil {
				t.Errorf("%s, %+v: %v", m.Name, opt, err)
				continue
			}
			for _, f := range v.verify(p) {
				t.Errorf("%s, level %d, all %t, SMT %t, watchdog %t, errata %t, counters %d: %s",
					m.Name, opt.Level, opt.Nodes != nil, opt.SMT, opt.Watchdog, opt.Errata, opt.Counters, f)
			}
		}
	}
	return plans
}

// everyOption returns the plans to make for a model: to each level, of all nodes,
// and for machines that leave fewer counters.
func everyOption(cpu *model.CPU, m *model.Model) []plan.Options {
	var all []plan.Options
	for _, smt := range []bool{false, true} {
		if smt && cpu.Threads < 2 {
			continue
		}
		for level := 1; level <= levels(m); level++ {
			all = append(all, plan.Options{Level: level, SMT: smt})
		}
		if len(everything(m)) > 0 {
			all = append(all, plan.Options{Nodes: everything(m), SMT: smt})
		}
		for _, fewer := range fewerCounters {
			fewer.Level, fewer.SMT = min(fewer.Level, levels(m)), smt
			all = append(all, fewer)
		}
	}
	switch {
	case raceDetector: // a plan is made without concurrency; what plans share is met in the first
		all = slices.DeleteFunc(all, func(o plan.Options) bool { return o.Nodes != nil || o.Level > 2 })
	case !testlong.Enabled():
		all = slices.DeleteFunc(all, func(o plan.Options) bool {
			return o.Nodes != nil || o.Level > 2 && (o.Level != levels(m) || o.Watchdog)
		})
	}
	return all
}

// fewerCounters are options that each leave a plan fewer counters, with its level.
// More of them, or more levels, take long.
var fewerCounters = []plan.Options{
	{Level: 4, Watchdog: true, Errata: true},
	{Level: 3, Watchdog: true, Errata: true, Counters: 3},
	{Level: 3, Errata: true, Counters: 4},
	{Level: 2, Counters: 2},
	{Level: 2, Counters: 1},
}
