package account_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

var update = flag.Bool("update", false, "rewrite tables in docs")

// TestAdvice gives advice about programs of one kind each: the first piece must fit it,
// and what fits another kind must not appear at all.
func TestAdvice(t *testing.T) {
	const second = 1e9
	threads := func(run, queue, threads, faults, system float64) map[string]float64 {
		return map[string]float64{"thread_time": threads * second, "thread_run": run * second, "runqueue_wait": queue * second, "task-clock": run * second,
			"user_time": (run - system) * second, "system_time": system * second, "page-faults": faults}
	}
	misses := func(load, l3 float64) map[string]float64 {
		return map[string]float64{"Ir": 1e8, "Dr": 3e7, "Dw": 1e6, "D1mr": load, "D1mw": 0, "DLmr": 0, "DLmw": 0, "I1mr": 0, "ILmr": 0, "Bc": 1e7, "Bcm": 0, "Bi": 1e5, "Bim": 0,
			"Ct": 5e7, "Cbt": 0, "C2t": 0, "C3t": l3, "Cmt": 0}
	}
	stalls := func(none, far float64) map[string]float64 {
		return map[string]float64{"ls_not_halted_cyc": 1e9, "de_src_op_disp.all:c1:i1": none, "de_src_op_disp.all": 2e9, "ex_ret_ops": 2e9,
			"ls_dmnd_fills_from_sys.local_l2": 0, "ls_dmnd_fills_from_sys.local_ccx": 0, "ls_dmnd_fills_from_sys.near_cache": 0,
			"ls_dmnd_fills_from_sys.dram_io_near": far, "ls_dmnd_fills_from_sys.far_cache": 0, "ls_dmnd_fills_from_sys.dram_io_far": 0}
	}
	core2 := func(none, far float64) map[string]float64 {
		return map[string]float64{"CPU_CLK_UNHALTED.CORE": 1e9, "RS_UOPS_DISPATCHED.CYCLES_NONE": none, "UOPS_RETIRED.ANY": 1e9, "UOPS_RETIRED.FUSED": 0, "RS_UOPS_DISPATCHED": 1e9,
			"MEM_LOAD_RETIRED.L2_LINE_MISS": far}
	}
	power := func(misses, translation float64) map[string]float64 {
		return map[string]float64{"PM_RUN_CYC": 1e9, "PM_RUN_INST_CMPL": 1e9, "PM_CMPLU_STALL_DCACHE_MISS": misses, "PM_CMPLU_STALL_ERAT_MISS": translation}
	}
	skylake := func(more map[string]float64) map[string]float64 {
		m := map[string]float64{"CPU_CLK_UNHALTED.THREAD": 1e9, "INST_RETIRED.ANY": 1e9, "UOPS_ISSUED.ANY": 1e9, "UOPS_RETIRED.RETIRE_SLOTS": 1e9}
		maps.Copy(m, more)
		return m
	}
	memory := func(queued, full float64) map[string]float64 {
		return skylake(map[string]float64{"CYCLE_ACTIVITY.STALLS_L3_MISS": 6e8, "CYCLE_ACTIVITY.STALLS_L1D_MISS": 6e8, "CYCLE_ACTIVITY.STALLS_L2_MISS": 6e8,
			"MEM_LOAD_RETIRED.L2_HIT": 1e3, "MEM_LOAD_RETIRED.FB_HIT": 0, "MEM_LOAD_RETIRED.L1_MISS": 1e7, "L1D_PEND_MISS.FB_FULL:c1": 1e3,
			"OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DATA_RD": queued, "OFFCORE_REQUESTS_OUTSTANDING.ALL_DATA_RD:c4": full})
	}
	branches := func(indirect float64) map[string]float64 {
		return skylake(map[string]float64{"UOPS_ISSUED.ANY": 2e9, "INT_MISC.RECOVERY_CYCLES": 1e8, "INT_MISC.RECOVERY_CYCLES_ANY": 1e8,
			"BR_MISP_RETIRED.ALL_BRANCHES": 2e7, "MACHINE_CLEARS.COUNT": 1e3, "BR_MISP_EXEC.INDIRECT": indirect})
	}
	useful := func(scalar, vector float64) map[string]float64 {
		return skylake(map[string]float64{"UOPS_ISSUED.ANY": 3.6e9, "UOPS_RETIRED.RETIRE_SLOTS": 3.6e9, "FP_ARITH_INST_RETIRED.SCALAR": scalar, "FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE:u0xfc": vector})
	}
	power8 := func(misses, others, far float64) map[string]float64 {
		return map[string]float64{"PM_RUN_CYC": 1e9, "PM_RUN_INST_CMPL": 1e9, "PM_CMPLU_STALL_DCACHE_MISS": misses, "PM_CMPLU_STALL_DMISS_L21_L31": others,
			"PM_CMPLU_STALL_DMISS_REMOTE": far, "PM_CMPLU_STALL_DMISS_L3MISS": others + far, "PM_CMPLU_STALL_DMISS_LMEM": 0}
	}
	arm := func(misses float64) map[string]float64 {
		return map[string]float64{"CPU_CYCLES": 1e9, "STALL_BACKEND": 6e8, "STALL_FRONTEND": 1e7, "INST_RETIRED": 1e9, "L1D_CACHE_REFILL": misses}
	}
	for _, tt := range []struct {
		what, cpu, model, node string
		counts                 map[string]float64
		first, never           string
	}{
		{"one thread on a busy machine", "generic", "os-time", "Runqueue_Wait", threads(0.5, 0.5, 1, 10, 0.01), "other programs use the processors", "as many threads"},
		{"eight busy threads on two processors", "generic", "os-time", "Runqueue_Wait", threads(2, 6, 8, 10, 0.01), "as many threads as processors", "other programs"},
		{"a kernel that serves page faults", "generic", "os-time", "System_Time", threads(1, 0, 1, 1e6, 0.6), "reuse memory, or ask for large pages", "strace"},
		{"a kernel that serves system calls", "generic", "os-time", "System_Time", threads(1, 0, 1, 100, 0.6), "strace -c -f", "large pages"},
		{"a parent that waits for a child that computes", "generic", "os-time", "Blocked", threads(1, 0, 2, 100, 0.01), "", "strace"},
		{"a program that sleeps", "generic", "os-time", "Blocked", threads(0.05, 0, 1, 100, 0.01), "strace -c -f", "larger reads"},
		{"a chain of pointers", "generic", "simulated-cycles", "L3_Hit", misses(3e6, 2e8), "arrays instead of lists", "visit data in memory order"},
		{"columns of a matrix", "generic", "simulated-cycles", "L3_Hit", misses(4e6, 3e5), "visit data in memory order", "arrays instead of lists"},
		{"stalls that are unaccounted for", "amdzen4", "cycles", "Unaccounted", stalls(6e8, 0), "break dependency chains", "take the penalties"},
		{"penalties of more than the stalls", "amdzen4", "cycles", "Unaccounted", stalls(2e8, 4e6), "take the penalties", "break dependency chains"},
		{"stalls of Core 2 that are unaccounted for", "core2", "core2-cycles", "Unaccounted", core2(6e8, 0), "count the events", "penalties"},
		{"penalties of more than Core 2's stalls", "core2", "core2-cycles", "Unaccounted", core2(2e8, 4e6), "lower the penalties", "break dependency chains"},
		{"columns of a matrix on POWER7", "power7", "power7-cpi", "LSU_STALL_DCACHE_MISS_CPI", power(6e8, 2e8), "swap the loops", "strace"},
		{"lists on POWER7", "power7", "power7-cpi", "LSU_STALL_DCACHE_MISS_CPI", power(6e8, 1e6), "find the lines that miss", "swap the loops"},
		{"POWER7 without counts of translation", "power7", "power7-cpi", "LSU_STALL_DCACHE_MISS_CPI", map[string]float64{"PM_RUN_CYC": 1e9, "PM_RUN_INST_CMPL": 1e9, "PM_CMPLU_STALL_DCACHE_MISS": 6e8}, "find the lines that miss", "swap the loops"},
		{"a back end without cache misses", "generic", "generic", "Backend_Stalled", map[string]float64{"cycles": 1e9, "instructions": 1e9, "stalled-cycles-backend": 6e8,
			"cache-misses": 1e3, "cache-references": 1e6}, "break chains", "visit memory"},
		{"a back end with cache misses", "generic", "generic", "Backend_Stalled", map[string]float64{"cycles": 1e9, "instructions": 1e9, "stalled-cycles-backend": 6e8,
			"cache-misses": 2e7, "cache-references": 3e7}, "visit memory in address order", "break chains"},
		{"a back end whose cache misses were not counted", "generic", "generic", "Backend_Stalled", map[string]float64{"cycles": 1e9, "stalled-cycles-backend": 6e8},
			"use a model for this processor", "visit memory"},
		{"a back end that is not stalled", "generic", "generic", "Backend_Stalled", map[string]float64{"cycles": 1e9, "instructions": 1e9, "stalled-cycles-backend": 1e8,
			"cache-misses": 2e7, "cache-references": 3e7}, "", "visit memory"},
		{"a list in memory", "skylakex", "tma", "DRAM_Bound", memory(9e8, 1e7), "have more accesses in flight", "swap nested loops"},
		{"arrays at the limit of the memory", "skylakex", "tma", "DRAM_Bound", memory(9e8, 8e8), "fewer bytes: the bandwidth", "have more accesses in flight"},
		{"loads that miss, with nothing known of the queue", "skylakex", "tma", "DRAM_Bound", memory(math.NaN(), math.NaN()), "visit data in memory order", "have more accesses in flight"},
		{"a search in a sorted array", "skylakex", "tma", "Branch_Mispredicts", branches(1e6), "replace the branch", "test for the commonest target"},
		{"an interpreter", "skylakex", "tma", "Branch_Mispredicts", branches(3e7), "group objects by type", "replace the branch"},
		{"sums of single numbers", "skylakex", "tma", "Retiring", useful(1e9, 1e6), "vectorise", "Heavy_Operations"},
		{"sums of vectors", "skylakex", "tma", "Retiring", useful(1e6, 2e9), "do less", "vectorise"},
		{"a program without floating point", "skylakex", "tma", "Retiring", useful(0, 0), "do the same with fewer instructions", "single numbers"},
		{"a core that retires little", "skylakex", "tma", "Retiring", skylake(nil), "", "do less"},
		{"arrays of one thread on POWER8", "power8", "power8-cpi", "LSU_STALL_DCACHE_MISS_CPI", power8(6e8, 1e6, 1e6), "block loops", "different threads"},
		{"threads that share lines on POWER8", "power8", "power8-cpi", "LSU_STALL_DCACHE_MISS_CPI", power8(6e8, 5e8, 1e6), "keep data that different threads write", "block loops"},
		{"memory of another POWER8 chip", "power8", "power8-cpi", "LSU_STALL_DCACHE_MISS_CPI", power8(6e8, 1e6, 5e8), "put data where its threads run", "different threads"},
		{"few misses on POWER8", "power8", "power8-cpi", "LSU_STALL_DCACHE_MISS_CPI", power8(1e6, 0, 0), "", "find the lines"},
		{"loads that miss on Neoverse N1", "neoverse-n1", "topdown", "backend_stalled_cycles", arm(4e7), "visit memory in address order", "break dependency chains"},
		{"a chain of operations on Neoverse N1", "neoverse-n1", "topdown", "backend_stalled_cycles", arm(1e4), "break dependency chains", "visit memory"},
	} {
		m, err := account.Load(tt.cpu, tt.model, account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
		for event, n := range tt.counts {
			if !math.IsNaN(n) {
				l.Columns = append(l.Columns, counts.Column{Event: event})
			}
		}
		table := counts.NewTable(l)
		table.Duration = 1
		for i, c := range l.Columns {
			*table.Cell(0, i) = counts.Cell{State: counts.Counted, Value: tt.counts[c.Event], Enabled: second, Running: second}
		}
		a := m.Bind(l).Evaluate(table, account.Place{}, nil)
		i, ok := a.Node(tt.node)
		if !ok {
			t.Fatalf("%s has no node %s", tt.model, tt.node)
		}
		list := a.Advice(i)
		has := func(s string) bool { return strings.Contains(s, tt.never) }
		if (len(list) == 0) != (tt.first == "") || len(list) > 0 && !strings.HasPrefix(list[0], tt.first) || slices.ContainsFunc(list, has) {
			t.Errorf("%s: advice is %q, first %q is wanted, and never %q", tt.what, list, tt.first, tt.never)
		}
	}
}

// TestAdviceListed compares all advice of all models, each with its condition, with a list
// to be read: go test ./account -run TestAdviceListed -update makes it. No advice is
// without a condition on the counts.
func TestAdviceListed(t *testing.T) {
	catalogue, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	read, listed := map[*model.Model]bool{}, map[string]bool{}
	for _, p := range catalogue.CPUs() {
		for _, info := range catalogue.Models(p.Name) {
			m, err := catalogue.Model(info.Name, p.Name)
			if err != nil {
				t.Fatal(err)
			}
			if read[m] {
				continue
			}
			read[m] = true
			for i := range m.Nodes {
				n := &m.Nodes[i]
				list := func(try, own string) {
					limit := strings.Join(strings.Fields(n.Threshold), " ")
					both := strings.Trim(limit+"; "+own, "; ")
					if both == "" && !strings.HasPrefix(try, "follow the ") {
						t.Errorf("%s for %s: %s: advice without a condition: %q", m.Name, p.Name, n.Name, try)
					}
					listed[fmt.Sprintf("%s %s: %s [%s]", m.Name, n.Name, try, cmp.Or(both, "always"))] = true
				}
				for _, a := range n.Advice {
					if a.When != "" {
						list(a.Try, a.When)
					} else {
						list(a.Try, "unless "+a.Unless)
					}
				}
				for _, try := range n.Try {
					list(try, "")
				}
			}
		}
	}
	const file = "testdata/advice.txt"
	got := "# All advice of all models, with the node's threshold and the advice's own condition.\n" + strings.Join(slices.Sorted(maps.Keys(listed)), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the advice differs from %s: run go test ./account -run TestAdviceListed -update, and read what it changes", file)
	}
}

// TestWaitsAreNoProcessorTime: what threads waited is no part of the processor time that
// runs are compared by.
func TestWaitsAreNoProcessorTime(t *testing.T) {
	m, err := account.Load("generic", "os-time", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	values := map[string]float64{"thread_time": 4e9, "thread_run": 1e9, "runqueue_wait": 2e9, "task-clock": 1e9, "user_time": 9e8, "system_time": 1e8}
	for event := range values {
		l.Columns = append(l.Columns, counts.Column{Event: event})
	}
	table := counts.NewTable(l)
	table.Duration = 4
	for i, c := range l.Columns {
		*table.Cell(0, i) = counts.Cell{State: counts.Counted, Value: values[c.Event], Enabled: 1e9, Running: 1e9}
	}
	a := m.Bind(l).Evaluate(table, account.Place{}, nil)
	r, err := a.ReadingOf(account.Time, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"CPUs_Utilised": 1e9, "User_Time": 9e8, "Runqueue_Wait": math.NaN(), "Blocked": math.NaN(), "Other_Wait": math.NaN()} {
		i, _ := a.Node(name)
		if got := r.Nodes[i]; math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 1 {
			t.Errorf("%s: %v of processor time, want %v", name, got, want)
		}
	}
}
