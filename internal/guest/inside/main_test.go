//go:build linux && guest

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/guest/loop"
)

func TestMain(m *testing.M) {
	if os.Getenv("CYCLESTACK_GUEST") == "" {
		fmt.Println("skipped: these tests run in guests, and go test ./internal/guest starts them there")
		return
	}
	if len(os.Args) > 1 {
		if task, ok := tasks[os.Args[1]]; ok {
			debug.SetGCPercent(-1) // a collection's instructions are not the task's
			task(os.Args[2:])
			return
		}
	}
	os.Exit(m.Run())
}

// million instructions.
const million = 1_000_000

// exact says whether the emulated counters can leave the kernel's instructions out.
// Those of POWER ignore that they are to.
var exact = runtime.GOARCH != "ppc64le"

// instructions is how long a program is by default.
var instructions = map[bool]uint64{true: 20 * million, false: 40 * million}[exact]

// kernel is how many of the kernel's instructions there may be for one of a program's, if they
// are counted: those of its start and its timer's. Neither is known, but that the kernel's own
// perf sees as many is tested.
var kernel = map[bool]float64{true: 0, false: 0.005}[exact]

// within checks a count of a program's instructions or cycles against the truth.
func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	between(t, what, got, want, -tolerance, tolerance+kernel)
}

// between checks a number's relative difference from the truth.
func between(t *testing.T, what string, got, want, least, most float64) {
	t.Helper()
	off := got/want - 1
	if !(off >= least && off <= most) {
		t.Errorf("%s: %.0f, want %.0f within %g to %g %%: it is off by %.4f %%", what, got, want, 100*least, 100*most, 100*off)
		return
	}
	t.Logf("%s: %.0f of %.0f (%+.4f %%)", what, got, want, 100*off)
}

// program writes a program of about so many instructions, and returns its path and
// how many they are.
func program(t *testing.T, n uint64) (name string, instructions float64) {
	t.Helper()
	p := loop.Program{Loops: uint32(n / 2)}
	return write(t, p), float64(p.Instructions())
}

func write(t *testing.T, p loop.Program) string {
	t.Helper()
	file, err := p.ELF(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "loop")
	if err := os.WriteFile(name, file, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// perfCommand is the kernel's own perf.
var perfCommand = []string{"/perf/ld.so", "--library-path", "/perf", "/perf/perf"}

// perf runs it and returns what it prints on standard error.
func perf(t *testing.T, args ...string) string {
	t.Helper()
	args = slices.Concat(perfCommand, args)
	cmd := exec.Command(args[0], args[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, stderr.String())
	}
	return stderr.String()
}

func TestPMUProgram(t *testing.T) {
	err := exec.Command(write(t, loop.Program{Loops: 1000, Status: 3})).Run()
	if fmt.Sprint(err) != "exit status 3" {
		t.Error(err)
	}
}
