package cli

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// pipelineZen4 are the events of AMD's pipeline utilisation.
var pipelineZen4 = []rate{
	{"ls_not_halted_cyc", 1e6, 1e6},
	{"de_no_dispatch_per_slot.no_ops_from_frontend", 0.3e6, 0.9e6},
	{"cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/", 0.01e6, 0.1e6},
	{"de_no_dispatch_per_slot.backend_stalls", 4.2e6, 1.8e6},
	{"de_src_op_disp.all", 1.5e6, 3.3e6},
	{"ex_ret_ops", 1.5e6, 3.3e6},
	{"ex_ret_ucode_ops", 0.01e6, 0.03e6},
	{"ex_no_retire.load_not_complete", 0.1e6, 0.1e6},
	{"ex_no_retire.not_complete", 0.7e6, 0.4e6},
}

// coreBound are the events of three levels on a Skylake, of a chain without misses.
var coreBound = []rate{
	{"CPU_CLK_UNHALTED.THREAD", 1e6, 1e6},
	{"IDQ_UOPS_NOT_DELIVERED.CORE", 0.1e6, 1e6},
	{"UOPS_ISSUED.ANY", 1e6, 2e6},
	{"UOPS_RETIRED.RETIRE_SLOTS", 1e6, 2e6},
	{"UOPS_RETIRED.MACRO_FUSED", 0.2e6, 0.4e6},
	{"INST_RETIRED.ANY", 1.2e6, 2.4e6},
	{"INT_MISC.RECOVERY_CYCLES", 0, 0},
	{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0.1e6, 0.02e6},
	{"CYCLE_ACTIVITY.STALLS_TOTAL", 0.6e6, 0.06e6},
	{"EXE_ACTIVITY.EXE_BOUND_0_PORTS", 0.1e6, 0.02e6},
	{"EXE_ACTIVITY.BOUND_ON_STORES", 0.01e6, 0.01e6},
	{"EXE_ACTIVITY.1_PORTS_UTIL", 0.5e6, 0.2e6},
	{"EXE_ACTIVITY.2_PORTS_UTIL", 0.3e6, 0.3e6},
	{"ARITH.DIVIDER_ACTIVE", 0.01e6, 0.01e6},
}

// TestLoopNodes divides Core_Bound and Retiring of recordings by the model of the core.
// Functions solve and _start have one hot loop each. Their accounts have the same shares,
// which are found in another way. The loop of solve is a chain of loads.
func TestLoopNodes(t *testing.T) {
	for _, tt := range []struct {
		name, cpu, model string
		rates            []rate
		core, retiring   string
	}{
		{"skylakex", "GenuineIntel,6,85,4", "tma", coreBound, "Core_Bound", "Light_Operations"},
		{"amdzen4", "AuthenticAMD,25,17,1", "pipeline", pipelineZen4, "backend_bound_cpu", "retiring_fastpath"},
	} {
		file := filepath.Join(t.TempDir(), "perf.data")
		solve := recordedProgram{cpu: tt.cpu, mapping: "/bin/solve", at: 0x400000, wait: 0x4000fa, run: 0x40017f}
		solve.record(t, file, 100, tt.rates, 0)
		args := []string{"--sysroot", "../../examples/annotate", "--model", tt.model, "--smt", "off", file}
		r := reportPlaces(t, args...)
		functions := reportPlaces(t, append([]string{"--by", "function"}, args...)...)
		value := func(r placeReport, account int, name string) float64 {
			for _, n := range r.Accounts[account].Nodes {
				if n.Name == name && n.Value != nil {
					return *n.Value
				}
			}
			return math.NaN()
		}
		if len(functions.Accounts) != 3 || functions.Accounts[1].Scope.Function != "solve" {
			t.Fatalf("%s: %d accounts", tt.name, len(functions.Accounts))
		}
		const share = 0.75 // of the cycles
		sum := 0.0
		for _, name := range []string{"Chain_Latency", "Port_Contention", "Divider_Busy", "Parts_And_Forwarding", "Other_Limits"} {
			sum += value(r, 0, name)
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"the chain of solve", value(r, 0, "Chain_Latency"), share * value(functions, 1, tt.core)},
			{"all parts", sum, share*value(functions, 1, tt.core) + (1-share)*value(functions, 2, tt.core)},
			{"useful dispatch", value(r, 0, "Useful_Dispatch"), share*value(functions, 1, tt.retiring) + (1-share)*value(functions, 2, tt.retiring)},
		} {
			if !(math.Abs(c.got-c.want) < 1e-9) || c.want < 0.1 {
				t.Errorf("%s: %s: %v, the functions have %v", tt.name, c.name, c.got, c.want)
			}
		}
		text := runMain(t, append([]string{"report"}, args...)...)
		if !strings.Contains(text, "Chain_Latency") || !strings.Contains(text, "each address comes from the load before") || strings.Contains(text, "hot-loops") {
			t.Errorf("%s: %s", tt.name, text)
		}
	}
}
