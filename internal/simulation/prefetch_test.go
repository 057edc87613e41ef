package simulation_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// TestPrefetch checks that lines that a program asks for early are waited for less.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	if err := simulation.Missing(simulation.QEMU); err != nil {
		t.Skip(err)
	}
	program := filepath.Join(t.TempDir(), "prefetch")
	if out, err := exec.Command("gcc", "-O2", "-g", "-DELEMENTS="+strconv.Itoa(testlong.Size(8<<20, 16<<20)), "-o", program, "testdata/prefetch.c").CombinedOutput(); err != nil {
		t.Skipf("gcc: %v: %s", err, out)
	}
	rounds := strconv.Itoa(testlong.Size(2, 4))
	_, late := simulated(t, program, "late", rounds)
	_, ahead := simulated(t, program, "ahead", rounds)
	if ahead > 0.8*late {
		t.Errorf("%.0f cycles of waiting for data, and %.0f without prefetches", ahead, late)
	}
}
