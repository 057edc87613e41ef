package account_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// A plant is a program made up for a verdict: shares of the slots, and of each category
// the part that one cause has.
type plant struct {
	latency, bandwidth, mispredicts, clears, memory, core, heavy float64
	cause                                                        map[string]float64 // parts of what the cause's parent has, 0…1
}

// quiet is a program without a problem: what is left retires.
func quiet() plant {
	return plant{latency: 0.03, bandwidth: 0.03, mispredicts: 0.02, clears: 0.01, memory: 0.05, core: 0.05, heavy: 0.02, cause: map[string]float64{}}
}

// counts are those that a Skylake has for a program, by its formulas turned around.
func (p plant) counts() map[string]float64 {
	const clocks, width = 1e9, 4.0
	const slots = clocks * width
	of := func(name string) float64 {
		if v, ok := p.cause[name]; ok {
			return v
		}
		return 0.03
	}
	bad := p.mispredicts + p.clears
	retiring := 1 - p.latency - p.bandwidth - bad - p.memory - p.core
	memory, core := p.memory*clocks, p.core*clocks
	stores := of("Store_Bound") * memory
	mem := memory - stores
	stalls, ports := 0.2*core, 0.8*core
	if p.cause["Divider"]+p.cause["Serializing_Operation"] > 0.5 {
		stalls, ports = 0.8*core, 0.2*core
	}
	l3 := of("DRAM_Bound") * memory
	l2 := l3 + of("L3_Bound")*memory
	l1 := l2 + of("L2_Bound")*memory
	retired := retiring * slots
	recovery := 0.3 * bad * slots / width
	issued := retired + 0.7*bad*slots
	fused := 0.05 * retired
	// Half a share of the slots is of cycles of one kind of delivery, and these are cycles.
	cycles := func(name string, share float64) float64 { return of(name) * share * clocks }
	return map[string]float64{
		"CPU_CLK_UNHALTED.THREAD": clocks, "INST_RETIRED.ANY": retired + fused - p.heavy*slots,
		"IDQ_UOPS_NOT_DELIVERED.CORE":                     (p.latency + p.bandwidth) * slots,
		"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE": p.latency * clocks,
		"UOPS_ISSUED.ANY":                                 issued, "UOPS_RETIRED.RETIRE_SLOTS": retired, "UOPS_RETIRED.MACRO_FUSED": fused,
		"INT_MISC.RECOVERY_CYCLES":         recovery,
		"BR_MISP_RETIRED.ALL_BRANCHES":     1e6 * p.mispredicts / bad,
		"MACHINE_CLEARS.COUNT":             1e6 * p.clears / bad,
		"CYCLE_ACTIVITY.STALLS_MEM_ANY":    mem,
		"CYCLE_ACTIVITY.STALLS_TOTAL":      mem + stalls,
		"CYCLE_ACTIVITY.STALLS_L1D_MISS":   l1,
		"CYCLE_ACTIVITY.STALLS_L2_MISS":    l2,
		"CYCLE_ACTIVITY.STALLS_L3_MISS":    l3,
		"EXE_ACTIVITY.BOUND_ON_STORES":     stores,
		"EXE_ACTIVITY.1_PORTS_UTIL":        0.9 * ports,
		"EXE_ACTIVITY.EXE_BOUND_0_PORTS":   1,
		"EXE_ACTIVITY.2_PORTS_UTIL":        0.1 * ports / retiring,
		"MEM_LOAD_RETIRED.L2_HIT":          1e7,
		"MEM_LOAD_RETIRED.FB_HIT":          1e6,
		"MEM_LOAD_RETIRED.L1_MISS":         2e7,
		"L1D_PEND_MISS.FB_FULL:c1":         1,
		"ICACHE_16B.IFDATA_STALL":          cycles("ICache_Misses", p.latency),
		"ICACHE_16B.IFDATA_STALL:c1:e1":    1,
		"ICACHE_TAG.STALLS":                cycles("ITLB_Misses", p.latency),
		"INT_MISC.CLEAR_RESTEER_CYCLES":    cycles("Branch_Resteers", p.latency),
		"BACLEARS.ANY":                     1,
		"IDQ.MS_SWITCHES":                  cycles("MS_Switches", p.latency) / 2,
		"DECODE.LCP":                       cycles("LCP", p.latency),
		"DSB2MITE_SWITCHES.PENALTY_CYCLES": cycles("DSB_Switches", p.latency),
		"IDQ.ALL_MITE_CYCLES_ANY_UOPS":     min(2*cycles("MITE", p.bandwidth), 0.8*clocks) + 1e7,
		"IDQ.ALL_MITE_CYCLES_4_UOPS":       1e7,
		"IDQ.DSB_CYCLES_ANY":               min(2*cycles("DSB", p.bandwidth), 0.8*clocks) + 1e8,
		"IDQ.DSB_CYCLES_OK":                1e8,
		"ARITH.DIVIDER_ACTIVE":             cycles("Divider", p.core),
		"PARTIAL_RAT_STALLS.SCOREBOARD":    cycles("Serializing_Operation", p.core),
		"IDQ.MS_UOPS":                      of("Microcode_Sequencer") * p.heavy * slots * issued / retired,
	}
}

// planted are the nodes of three levels, and how each becomes the bottleneck.
var planted = []struct {
	node  string
	set   func(p *plant, share float64)
	cause bool // the node is the cause that has most of its parent
}{
	{"Frontend_Bound", func(p *plant, s float64) { p.latency, p.bandwidth = 0.3*s, 0.7*s }, false},
	{"Fetch_Latency", func(p *plant, s float64) { p.latency = s }, false},
	{"ICache_Misses", func(p *plant, s float64) { p.latency = s }, true},
	{"ITLB_Misses", func(p *plant, s float64) { p.latency = s }, true},
	{"Branch_Resteers", func(p *plant, s float64) { p.latency = s }, true},
	{"MS_Switches", func(p *plant, s float64) { p.latency = s }, true},
	{"LCP", func(p *plant, s float64) { p.latency = s }, true},
	{"DSB_Switches", func(p *plant, s float64) { p.latency = s }, true},
	{"Fetch_Bandwidth", func(p *plant, s float64) { p.bandwidth = s }, false},
	{"MITE", func(p *plant, s float64) { p.bandwidth = s }, true},
	{"DSB", func(p *plant, s float64) { p.bandwidth = s }, true},
	{"Bad_Speculation", func(p *plant, s float64) { p.mispredicts, p.clears = 0.7*s, 0.3*s }, false},
	{"Branch_Mispredicts", func(p *plant, s float64) { p.mispredicts = s }, false},
	{"Machine_Clears", func(p *plant, s float64) { p.clears = s }, false},
	{"Backend_Bound", func(p *plant, s float64) { p.memory, p.core = 0.7*s, 0.3*s }, false},
	{"Memory_Bound", func(p *plant, s float64) { p.memory = s }, false},
	{"L1_Bound", func(p *plant, s float64) { p.memory = s }, false}, // what no other cause has
	{"L2_Bound", func(p *plant, s float64) { p.memory = s }, true},
	{"L3_Bound", func(p *plant, s float64) { p.memory = s }, true},
	{"DRAM_Bound", func(p *plant, s float64) { p.memory = s }, true},
	{"Store_Bound", func(p *plant, s float64) { p.memory = s }, true},
	{"Core_Bound", func(p *plant, s float64) { p.core = s }, false},
	{"Divider", func(p *plant, s float64) { p.core = s }, true},
	{"Serializing_Operation", func(p *plant, s float64) { p.core = s }, true},
	{"Ports_Utilization", func(p *plant, s float64) { p.core = s }, false},
	{"Heavy_Operations", func(p *plant, s float64) { p.heavy = s }, false},
	{"Microcode_Sequencer", func(p *plant, s float64) { p.heavy = s }, true},
}

// A constructed recording has an expected verdict.
type constructed struct {
	kind, name, want string
	counts           map[string]float64
	multiplexed      bool
}

// recordings constructs them all.
func constructedRecordings() []constructed {
	var list []constructed
	add := func(kind, name, want string, p plant, multiplexed bool, change func(map[string]float64)) {
		c := p.counts()
		if change != nil {
			change(c)
		}
		list = append(list, constructed{kind, name, want, c, multiplexed})
	}
	make := func(i int, share float64) plant {
		p := quiet()
		planted[i].set(&p, share)
		if planted[i].cause {
			p.cause[planted[i].node] = 0.85
			if p.bandwidth > 0.1 { // of two cycles a slot
				p.cause[planted[i].node] = 0.7
			}
		}
		return p
	}
	for i, n := range planted {
		for _, share := range []float64{0.35, 0.5, 0.65} {
			add("planted", fmt.Sprintf("%s %.0f %%", n.node, 100*share), n.node, make(i, share), false, nil)
		}
	}
	rng := rand.New(rand.NewPCG(8, 9))
	for _, pair := range []struct {
		a, b string
		set  func(p *plant, a, b float64)
	}{
		{"Memory_Bound", "Core_Bound", func(p *plant, a, b float64) { p.memory, p.core = a, b }},
		{"Fetch_Latency", "Fetch_Bandwidth", func(p *plant, a, b float64) { p.latency, p.bandwidth = a, b }},
		{"Branch_Mispredicts", "Machine_Clears", func(p *plant, a, b float64) { p.mispredicts, p.clears = a, b }},
		{"Frontend_Bound", "Backend_Bound", func(p *plant, a, b float64) { p.latency, p.memory, p.bandwidth, p.core = a-0.02, b-0.02, 0.02, 0.02 }},
		{"Bad_Speculation", "Backend_Bound", func(p *plant, a, b float64) { p.mispredicts, p.memory, p.clears, p.core = a-0.02, b-0.02, 0.02, 0.02 }},
		{"Frontend_Bound", "Bad_Speculation", func(p *plant, a, b float64) {
			p.latency, p.mispredicts, p.bandwidth, p.clears = a-0.02, b-0.02, 0.02, 0.02
		}},
	} {
		for _, level := range []float64{0.21, 0.3} {
			for _, apart := range []float64{-0.04, -0.015, -0.004, 0.004, 0.015, 0.04} {
				p := quiet()
				pair.set(&p, level+apart/2, level-apart/2)
				want := pair.a
				if apart < 0 {
					want = pair.b
				}
				add("near tie", fmt.Sprintf("%s and %s, %+.1f points at %.0f %%", pair.a, pair.b, 100*apart, 100*level), want, p, true,
					func(c map[string]float64) { // as groups with other moments have it
						for _, event := range sorted(c) {
							c[event] *= 1 + 0.01*rng.NormFloat64()
						}
					})
			}
		}
	}
	for _, v := range [][2]float64{{0.19, 0.13}, {0.18, 0.16}, {0.195, 0.11}, {0.17, 0.12}, {0.16, 0.145}} {
		p := quiet()
		p.memory, p.core = v[0], v[1]
		add("thresholds", fmt.Sprintf("Memory_Bound %.1f %%, Core_Bound %.1f %%", 100*v[0], 100*v[1]), "Memory_Bound", p, false, nil)
	}
	for _, v := range [][3]float64{{0.25, 0.04, 0.15}, {0.3, 0.05, 0.2}, {0.22, 0.04, 0.12}, {0.04, 0.24, 0.2}, {0.04, 0.35, 0.15}} {
		p := quiet()
		p.memory, p.core, p.heavy = v[0], v[1], v[2]
		want := "Memory_Bound"
		if p.core > p.memory {
			want = "Core_Bound"
		}
		add("useful work last", fmt.Sprintf("%s, Heavy_Operations %.0f %%", want, 100*p.heavy), want, p, false, nil)
	}
	for i, n := range planted {
		for _, event := range []string{"IDQ_UOPS_NOT_DELIVERED.CORE", "UOPS_RETIRED.RETIRE_SLOTS", "CYCLE_ACTIVITY.STALLS_MEM_ANY", "CPU_CLK_UNHALTED.THREAD"} {
			for _, times := range []float64{3, 0.4} {
				add("changed", fmt.Sprintf("%s, %s × %g", n.node, event, times), n.node, make(i, 0.5), false, func(c map[string]float64) { c[event] *= times })
			}
		}
	}
	return list
}

// stopsAbove reports whether the path ends above a node, whose value is doubted.
func stopsAbove(a *account.Account, node string) bool {
	i, _ := a.Node(node)
	end := a.Bottleneck[len(a.Bottleneck)-1]
	for above := i; above >= 0; above = a.Model().Nodes[above].Above {
		if a.Model().Nodes[above].Above == end {
			return !a.Nodes[above].Reliable()
		}
	}
	return false
}

func sorted(c map[string]float64) []string {
	var names []string
	for name := range c {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

const constructedFile = "testdata/constructed.csv"

// TestConstructedVerdicts compares the verdicts on made-up recordings with what was planted. A
// verdict is right if the path goes through the planted node, or names it as likely. It
// is marked if the recording contradicts itself and the path stops or is doubted. No
// other verdict is allowed, but for counts that were changed without a contradiction:
// nothing tells these from another program.
func TestConstructedVerdicts(t *testing.T) {
	testlong.Alone(t)
	method, err := account.Load("skylake", "", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]string{{"kind", "recording", "expected", "given", "also", "outcome"}}
	outcomes := map[string]int{}
	for _, r := range constructedRecordings() {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
		for g, event := range sorted(r.counts) {
			c := counts.Column{Event: event}
			if r.multiplexed {
				c.Group = 1 + g%4
			}
			l.Columns = append(l.Columns, c)
		}
		table := counts.NewTable(l)
		for col, event := range sorted(r.counts) {
			cell := counts.Cell{State: counts.Counted, Value: r.counts[event], Enabled: 1e10, Running: 1e10}
			if r.multiplexed {
				cell.Running /= 4
			}
			*table.Cell(0, col) = cell
		}
		a := method.Bind(l).Evaluate(table, account.Place{}, nil)
		var path, also []string
		doubted := len(a.Bottleneck) == 0
		for _, i := range a.Bottleneck {
			path = append(path, a.Model().Nodes[i].Name)
			doubted = doubted || !a.Nodes[i].Reliable()
		}
		for _, x := range a.Rivals {
			also = append(also, a.Model().Nodes[x.Node].Name)
		}
		outcome := "wrong"
		switch {
		case slices.Contains(path, r.want):
			outcome = "right"
		case slices.Contains(also, r.want):
			outcome = "named beside"
		case a.Contradicted() && (doubted || stopsAbove(a, r.want)):
			outcome = "doubted"
		case a.Contradicted():
			outcome = "contradicted"
		case r.kind == "changed":
			outcome = "another program"
		}
		if outcome == "wrong" || outcome == "contradicted" && !slices.Contains(also, r.want) {
			t.Errorf("%s: %s: path %v, also %v, want %s (suspects %v)", r.kind, r.name, path, also, r.want, a.Suspects())
		}
		outcomes[outcome]++
		if outcome != "another program" {
			rows = append(rows, []string{r.kind, r.name, r.want, strings.Join(path, " "), strings.Join(also, " "), outcome})
		}
	}
	t.Log(len(rows)-1, outcomes)
	if len(rows) < 200 {
		t.Errorf("%d recordings", len(rows)-1)
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(constructedFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile(constructedFile); err != nil || !bytes.Equal(old, b.Bytes()) {
		t.Errorf("%s has other verdicts (%v): -update writes them", constructedFile, err)
	}
}
