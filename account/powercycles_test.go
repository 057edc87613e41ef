package account_test

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPowerCycles holds the cycle accounting of POWER against the CPI breakdown of
// the same counts: what both count directly is the same, a share of the cycles here
// and cycles per instruction there.
func TestPowerCycles(t *testing.T) {
	before := map[string]string{
		"Retired": "COMPLETION_CPI", "Frontend_Stalls": "GCT_EMPTY_CPI", "Backend_Stalls": "STALL_CPI",
		"Data_Miss_Stalls": "LSU_STALL_DCACHE_MISS_CPI", "Translation_Stalls": "LSU_STALL_ERAT_MISS_CPI",
		"Long_Integer_Stalls": "FXU_MULTI_CYC_CPI", "Mispredict_Stalls": "GCT_EMPTY_BR_MPRED_CPI",
		"Fetch_Stalls": "GCT_EMPTY_IC_MISS_CPI", "CPI": "RUN_CPI",
	}
	power8 := map[string]string{
		"Near_Miss_Stalls": "LSU_STALL_DCACHE_MISS_L2L3_CPI", "Far_Miss_Stalls": "LSU_STALL_DCACHE_MISS_L3MISS_CPI",
		"Store_Overlap_Stalls": "LSU_STALL_LHS_CPI",
	}
	for here, there := range before {
		power8[here] = there
	}
	since := map[string]string{
		"Frontend_Stalls": "NOTHING_DISPATCHED_CPI", "Near_Miss_Stalls": "DMISS_L2L3_STALL_CPI", "Far_Miss_Stalls": "DMISS_L3MISS_STALL_CPI",
	}
	power9 := map[string]string{
		"Retired": "COMPLETION_CPI", "Backend_Stalls": "STALL_CPI", "Completion_Stalls": "THREAD_BLOCK_STALL_CPI",
		"Data_Miss_Stalls": "DCACHE_MISS_STALL_CPI", "Translation_Stalls": "ERAT_MISS_STALL_CPI", "Store_Overlap_Stalls": "LHS_STALL_CPI",
		"Long_Integer_Stalls": "FXLONG_STALL_CPI", "Mispredict_Stalls": "ICT_NOSLOT_BR_MPRED_CPI", "Fetch_Stalls": "ICT_NOSLOT_IC_MISS_CPI", "CPI": "RUN_CPI",
	}
	power10 := map[string]string{
		"Completion_Stalls": "COMPLETION_STALL_CPI", "Translation_Stalls": "TRANSLATION_STALL_CPI", "CPI": "CPI",
		"Mispredict_Stalls": "NOTHING_DISPATCHED_BR_MPRED_CPI", "Fetch_Stalls": "NOTHING_DISPATCHED_IC_MISS_CPI",
	}
	for here, there := range since {
		power9[here], power10[here] = there, there
	}
	for cpu, pairs := range map[string]map[string]string{"power7": before, "power8": power8, "power9": power9, "power10": power10} {
		comparePowerCycles(t, cpu, pairs)
	}
}

func comparePowerCycles(t *testing.T, cpu string, pairs map[string]string) {
	t.Helper()
	cycles, stack := vendorMethod(t, cpu, "cycles"), vendorMethod(t, cpu, cpu+"-cpi")
	random := rand.New(rand.NewPCG(7, 8))
	values := map[string]float64{}
	for _, name := range append(cycles.Inputs(), stack.Inputs()...) {
		values[name] = math.Floor(math.Exp(12 + 10*random.Float64()))
	}
	here, there := countsAccount(cycles, values), countsAccount(stack, values)
	perInstruction := values["PM_RUN_CYC"] / values["PM_RUN_INST_CMPL"]
	for a, b := range pairs {
		i, ok1 := here.Node(a)
		j, ok2 := there.Node(b)
		if !ok1 || !ok2 {
			t.Errorf("%s: there is no node %s or %s", cpu, a, b)
			continue
		}
		got, want := here.Nodes[i].Value, there.Nodes[j].Value
		if a != "CPI" {
			got *= perInstruction
		}
		if !(math.Abs(got-want) <= 1e-12*want) {
			t.Errorf("%s: %s is %v cycles per instruction, %s %v", cpu, a, got, b, want)
		}
	}
}
