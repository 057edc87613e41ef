package account_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

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
	for _, tt := range []struct {
		what, cpu, model, node string
		counts                 map[string]float64
		first, never           string
	}{
		{"one thread on a busy machine", "generic", "os-time", "Runqueue_Wait", threads(0.5, 0.5, 1, 10, 0.01), "account for the whole machine", "as many threads"},
		{"eight busy threads on two processors", "generic", "os-time", "Runqueue_Wait", threads(2, 6, 8, 10, 0.01), "as many threads as processors", "account for the whole machine"},
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
	} {
		m, err := account.Load(tt.cpu, tt.model, account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
		for event := range tt.counts {
			l.Columns = append(l.Columns, counts.Column{Event: event})
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
