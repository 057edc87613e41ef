package plan_test

import (
	"encoding/csv"
	"math/bits"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

// This file tells whether Linux would open a group. It follows Linux's drivers, not the
// rules that plans are made by.

// linuxRefuses says why Linux would not open a group, as far as the codes of its events
// tell; "" if it would. claims are what the events need.
func (v *verifier) linuxRefuses(events []plan.Event, claims []claim) string {
	if v.p.CPU.Layout == "power" {
		var codes []uint64
		for i := range events {
			if id := events[i].ID; id.PMU == "" && id.Name == "" {
				codes = append(codes, id.Config)
			}
		}
		if !powerOpens(v.p.CPU.Name, codes) {
			return "the selectors of its events differ"
		}
		return ""
	}
	if v.p.CPU.Layout != "intel" {
		return ""
	}
	order := slices.Clone(claims)
	for k := range events {
		if id := events[k].ID; id.PMU == "" && id.Name == "" {
			const general = 1<<32 - 1
			order[k].on &= intelCounters(v.p.CPU.Name, id.Config) | ^uint64(general)
		}
	}
	if !intelAssigns(order) {
		return "Linux's way of putting events on counters fails"
	}
	return ""
}

// intelAssigns does as Linux does on Intel's processors: the events with the fewest counters
// first, each on the first free fixed counter, or else the first general one. See
// perf_assign_events in arch/x86/events/core.c.
func intelAssigns(claims []claim) bool {
	slices.SortStableFunc(claims, func(a, b claim) int { return bits.OnesCount64(a.on) - bits.OnesCount64(b.on) })
	var used uint64
	for _, c := range claims {
		free := c.on &^ used
		if fixed := free >> 32 << 32; fixed != 0 {
			free = fixed
		}
		if free == 0 {
			return false
		}
		used |= free & -free
	}
	return true
}

type intelRow struct {
	cpus      []string
	kind      string
	low, high uint64
	counters  uint64
}

var intelRows = sync.OnceValue(func() (all []intelRow) {
	f, err := os.Open("testdata/linux-intel.csv")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		panic(err)
	}
	for _, row := range rows[1:] {
		from, to, span := strings.Cut(row[2], "-")
		if !span {
			to = from
		}
		low, err := strconv.ParseUint(from, 0, 16)
		if err != nil {
			panic(err)
		}
		high, err := strconv.ParseUint(to, 0, 16)
		if err != nil {
			panic(err)
		}
		all = append(all, intelRow{strings.Fields(row[0]), row[1], low, high, list(row[3])})
	}
	return all
})

// intelCounters returns the general counters that Linux lets an event use.
func intelCounters(cpu string, config uint64) uint64 {
	for _, row := range intelRows() {
		if !slices.ContainsFunc(row.cpus, func(p string) bool { ok, _ := path.Match(p, cpu); return ok }) {
			continue
		}
		hit := false
		switch row.kind {
		case "event":
			hit = row.low <= config&0xff && config&0xff <= row.high
		case "code":
			hit = config&0xffff == row.low
		case "bits":
			hit = config&(row.low|0xff) == row.low
		}
		if hit {
			return row.counters
		}
	}
	return 1<<32 - 1
}

// powerOpens is power_check_constraints of arch/powerpc/perf/core-book3s.c, with the
// constraints of power7-pmu.c and isa207-common.c. It leaves out alternatives of
// events that are on counters 1 to 4 as well.
func powerOpens(cpu string, codes []uint64) bool {
	for i, code := range codes {
		other := map[uint64]uint64{0x200f4: 0x600f4, 0x400fa: 0x500fa}[code]
		if cpu == "power10" || cpu == "power11" {
			other = 0
		}
		if other != 0 { // with the one or the other
			with := slices.Clone(codes)
			with[i] = other
			if powerOpens(cpu, with) {
				return true
			}
		}
	}
	counters, free := map[uint64]int{}, 0
	fields := map[string]uint64{}
	ok, bank, bank4 := true, false, false
	agree := func(name string, value uint64) {
		if old, seen := fields[name]; seen && old != value {
			ok = false
		}
		fields[name] = value
	}
	for _, code := range codes {
		counter, unit := code>>16&0xf, code>>12&0xf
		if counter > 6 || counter >= 5 && code != 0x500fa && code != 0x600f4 {
			return false
		}
		if counter != 0 {
			counters[counter]++
		}
		if counter >= 5 {
			continue
		}
		free++
		cache := unit >= 6 && unit <= 9
		switch cpu {
		case "power7":
			if unit == 6 {
				agree("l2sel", code>>8&7)
			}
			continue
		case "power8":
			if cache && code>>20&7 != 0 {
				return false
			}
			if !cache && code>>22&1 != 0 {
				agree("l1", code>>20&3)
			}
			if c := code & 0xff0fe; c == 0x30056 || c == 0x4f052 {
				agree("fab", code>>32&0xff)
			} else {
				agree("threshold", code>>29&0x1fffff)
			}
		case "power9":
			if cache {
				bank, bank4 = true, bank4 || counter == 4
				agree("bank", code&0xff)
			} else {
				agree("l1", code>>20&3)
			}
			if code>>29&7 != 0 {
				agree("threshold", code>>29&0x1fffff)
			}
		case "power10", "power11":
			if unit == 6 {
				agree("l2l3", code>>40&0x1f)
			} else if !cache {
				agree("l1", code>>20&3)
			}
			agree("radix", code>>9&1)
			if code>>29&7 != 0 {
				agree("threshold", code>>29&0x7ff)
			}
		}
		if code>>8&1 != 0 {
			agree("sample", code>>24&0x1f)
		}
	}
	for _, n := range counters {
		ok = ok && n == 1
	}
	return ok && free <= 4 && bank == bank4
}

// TestLinuxOpens makes groups of any events of the processors' tables. Linux would
// open all of them, and on POWER it would refuse what they leave out. Without -long
// it takes the sampled processors.
func TestLinuxOpens(t *testing.T) {
	tested := 0
	for _, cpu := range processors(t) {
		table, err := catalogue(t).Events(cpu)
		if err != nil {
			t.Fatal(err)
		}
		if cpu.Layout != "intel" && cpu.Layout != "power" || len(table.Events()) == 0 {
			continue
		}
		tested++
		t.Run(cpu.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkOpens(t, cpu, table) })
		})
	}
	if tested < testlong.Size(10, 30) {
		t.Errorf("only %d processors were tested", tested)
	}
}

func checkOpens(t *rapid.T, cpu *model.CPU, table *model.EventTable) {
	var names []string
	for range rapid.IntRange(1, 20).Draw(t, "events") {
		e := &table.Events()[rapid.IntRange(0, len(table.Events())-1).Draw(t, "event")]
		if e.PMU == "" && !strings.Contains(e.Flags, "metric") {
			names = append(names, e.Name)
		}
	}
	opt := plan.Options{SMT: rapid.Bool().Draw(t, "smt")}
	events, err := plan.Fit(table, opt, names)
	if err != nil {
		t.Fatal(err)
	}
	pmu, err := plan.PMUOf(cpu)
	if err != nil {
		t.Fatal(err)
	}
	v := newVerifier(table)
	v.p = &plan.Plan{CPU: cpu, PMU: pmu, Options: opt}
	var claims []claim
	var codes []uint64
	for i := range events {
		claims = append(claims, v.claim(&events[i]))
		codes = append(codes, events[i].ID.Config)
	}
	if why := v.linuxRefuses(events, claims); why != "" {
		t.Fatalf("%v: %s", describe(events), why)
	}
	if cpu.Layout != "power" {
		return
	}
	for _, name := range names {
		e, _ := table.Lookup(name)
		if more := append(slices.Clone(codes), e.Config); !slices.Contains(codes, e.Config) && powerOpens(cpu.Name, more) {
			t.Fatalf("%v: Linux would also count %s (%#x)", describe(events), name, e.Config)
		}
	}
}

func describe(events []plan.Event) (all []string) {
	for i := range events {
		all = append(all, events[i].Name+" "+strconv.FormatUint(events[i].ID.Config, 16))
	}
	return all
}

// TestPowerSelectors checks groups of POWER's events that Linux takes or refuses
// for the sake of their selectors.
func TestPowerSelectors(t *testing.T) {
	for _, tt := range []struct {
		cpu    string
		events []string
		groups int // 0: an event cannot be counted
	}{
		{"power7", []string{"r16080", "r26082"}, 1},  // both with L2 select 0
		{"power7", []string{"r16080", "r26182"}, 2},  // 0 and 1
		{"power8", []string{"r1f05e", "r2006e"}, 1},  // nothing selected
		{"power8", []string{"r617080", "r500fa"}, 0}, // a cache selector
		{"power9", []string{"r16880", "r26882"}, 2},  // banks 80 and 82
		{"power9", []string{"r16880", "r26880"}, 1},  // one bank, and its event on counter 4
		{"power10", []string{"r1c040", "r2c240"}, 2}, // radix scope
	} {
		m, table := load(t, tt.cpu, "")
		events, err := plan.Fit(table, plan.Options{}, tt.events)
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for i := range events {
			have = append(have, events[i].Perf)
		}
		groups := 1
		for _, e := range tt.events {
			if !slices.Contains(have, e) {
				groups = 2
			}
		}
		if !slices.Contains(have, tt.events[0]) {
			groups = 0
		}
		if groups != tt.groups {
			t.Errorf("%s: of %v a group has %v, want %d groups (%s)", tt.cpu, tt.events, have, tt.groups, m.Name)
		}
		if tt.cpu == "power9" && !slices.ContainsFunc(have, func(e string) bool { return strings.HasPrefix(e, "r4688") }) {
			t.Errorf("the event of the bank on counter 4 is not in %v", have)
		}
	}
}
