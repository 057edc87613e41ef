package simulation_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation"
)

// TestPrefetch checks that lines that a program asks for early are waited for less.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	if err := simulation.Missing(simulation.QEMU); err != nil {
		t.Skip(err)
	}
	program := filepath.Join(t.TempDir(), "prefetch")
	if out, err := exec.Command("gcc", "-O2", "-g", "-o", program, "testdata/prefetch.c").CombinedOutput(); err != nil {
		t.Skipf("gcc: %v: %s", err, out)
	}
	_, late := simulated(t, program, "late", "4")
	_, ahead := simulated(t, program, "ahead", "4")
	if ahead > 0.8*late {
		t.Errorf("%.0f cycles of waiting for data, and %.0f without prefetches", ahead, late)
	}
}
