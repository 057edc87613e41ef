package simulation_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// TestStores checks that stores that miss caches cost what loads do. It logs the times of the
// programs by themselves.
func TestStores(t *testing.T) {
	t.Parallel()
	if err := simulation.Ready(); err != nil {
		t.Skip(err)
	}
	program := filepath.Join(t.TempDir(), "stores")
	if out, err := exec.Command("gcc", "-O2", "-g", "-o", program, "testdata/stores.c").CombinedOutput(); err != nil {
		t.Skipf("gcc: %v: %s", err, out)
	}
	modes := []string{"rows", "columns"}
	if testlong.Enabled() {
		modes = append(modes, "store-columns", "histogram", "histogram-small", "add", "memset", "stream")
	}
	cycles := map[string]float64{}
	for _, mode := range modes {
		all, waits := simulated(t, "skylakex", program, mode, "1")
		begin := time.Now()
		cmd := exec.Command(program, mode, "20")
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		used := cmd.ProcessState.UserTime()
		t.Logf("%-16s simulated %10.0f cycles, %3.0f %% waiting for data; 20 rounds by itself %v of processor time, %v in all",
			mode, all, 100*waits/all, used, time.Since(begin))
		cycles[mode] = all
	}
	if ratio := cycles["columns"] / cycles["rows"]; ratio < 3 {
		t.Errorf("by columns %.2f times as long as by rows, want at least 3", ratio)
	}
	// Columns of rows of 8 KiB are lines of one set, which wait for each other on Zen 4.
	if all, _ := simulated(t, "amdzen4", program, "columns", "1"); all < 1.5*cycles["columns"] {
		t.Errorf("by columns %.0f cycles on Zen 4, want at least 1.5 times the %.0f of a core without waits in a set", all, cycles["columns"])
	}
	if !testlong.Enabled() {
		return
	}
	if ratio := cycles["store-columns"] / cycles["rows"]; ratio < 2 {
		t.Errorf("stores by columns %.2f times as long as by rows, want at least 2", ratio)
	}
	// Natively it is 4 to 5 times: waiting for the store queue is too cheap in the model.
	if ratio := cycles["histogram"] / cycles["histogram-small"]; ratio < 1.5 {
		t.Errorf("a histogram beyond the caches %.2f times as long as one in them, want at least 1.5", ratio)
	}
}

// simulated returns the simulated cycles of a program on a core, and those of waiting for data.
func simulated(t *testing.T, core string, args ...string) (all, waits float64) {
	t.Helper()
	r, err := simulation.Run(t.Context(), simulation.Options{Args: args, Caches: simulation.Typical(), Resident: 64 << 20, Core: simulation.HostCoreOf(core, nil),
		Latencies: simulation.Latencies{L2: 10, L3: 46, Memory: 350, Least: 1. / 12}})
	if err != nil {
		t.Skipf("valgrind does not work here: %v", err)
	}
	defer r.Close()
	table, _, err := r.Tables()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range table.Columns {
		v := table.Cell(0, i).Value
		if slices.Contains([]string{"Ct", "Cbt", "C2t", "C3t", "Cmt"}, c.Event) {
			all += v
		}
		if slices.Contains([]string{"C2t", "C3t", "Cmt"}, c.Event) {
			waits += v
		}
	}
	return all, waits
}
