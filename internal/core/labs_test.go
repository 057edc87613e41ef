package core_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// A lab is a laboratory of perf-ninja about the core: its function, a line of its hot loop, and
// the faults that are right answers.
type lab struct {
	name, function string
	line           int
	faults         []core.Fault
}

// labs are those of labs/core_bound with a loop. function_inlining_1 has none: its time is that
// of calls.
var labs = []lab{
	{"dep_chains_1", "solution", 36, []core.Fault{core.PointerChase}},
	{"dep_chains_2", "randomParticleMotion", 62, []core.Fault{core.OtherChain, core.MultiplyChain}},
	{"vectorization_1", "compute_alignment", 63, []core.Fault{core.SelectChain, core.ScalarCode}},
	{"vectorization_2", "checksum", 7, []core.Fault{core.CarryChain, core.OtherChain, core.ScalarCode}},
	{"compiler_intrinsics_1", "imageSmoothing", 27, []core.Fault{core.OtherChain, core.Accumulator}},
	{"compiler_intrinsics_2", "solution", 19, []core.Fault{core.ScalarCode, core.SelectChain}},
	{"compiler_intrinsics_3", "solution", 10, []core.Fault{core.ScalarCode, core.Shuffling, core.Width, core.PortBound}},
	{"compiler_intrinsics_4", "mandelbrot", 28, []core.Fault{core.MultiplyChain, core.Accumulator, core.OtherChain}},
}

// TestPerfNinja analyses the laboratories of a checkout of perf-ninja, whose folder the
// environment names:
//
//	CYCLESTACK_PERF_NINJA=~/perf-ninja go test -v -run PerfNinja ./internal/core
//
// It prints reasons and lines, with -O2 and with the flags of the laboratories
// (tools/labs.cmake there), of three cores. On Skylake with -O2 the dispatch of
// dep_chains_2 takes 9 cycles, and its chain 6: the width is the first limit there.
func TestPerfNinja(t *testing.T) {
	dir := os.Getenv("CYCLESTACK_PERF_NINJA")
	if dir == "" {
		t.Skip("CYCLESTACK_PERF_NINJA does not name a checkout of perf-ninja")
	}
	for _, flags := range [][]string{{"-O2"}, {"-O3", "-ffast-math", "-march=skylake"}} {
		for _, cpu := range []string{"skylake", "alderlake:core", "amdzen4"} {
			reasons, lines := 0, 0
			for _, l := range labs {
				reason, line := l.try(t, dir, flags, simulation.ModelledCore(cpu))
				if reason {
					reasons++
				}
				if line {
					lines++
				}
			}
			t.Logf("%v on %s: %d of %d reasons, %d of %d lines", flags, cpu, reasons, len(labs), lines, len(labs))
			if lines < len(labs) || reasons < len(labs)-1 {
				t.Errorf("%v on %s: %d reasons and %d lines of %d are right", flags, cpu, reasons, lines, len(labs))
			}
		}
	}
}

// try analyses a laboratory: is the reason right, and the line within the loop?
func (l *lab) try(t *testing.T, dir string, flags []string, c *simulation.Core) (reason, line bool) {
	t.Helper()
	folder := filepath.Join(dir, "labs", "core_bound", l.name)
	source, program := filepath.Join(folder, "solution.cpp"), filepath.Join(t.TempDir(), "lab")
	if l.name == "dep_chains_2" { // a template in a header
		source = filepath.Join(t.TempDir(), "solution.cpp")
		text := "#include <cmath>\n#include \"solution.hpp\"\ntemplate void randomParticleMotion<XorShift32>(std::vector<Particle>&, uint32_t);\n"
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append(slices.Clone(flags), "-g", "-std=c++17", "-shared", "-fPIC", "-I", folder, "-o", program, source)
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", l.name, err, out)
	}
	p := core.Program{File: program, Function: l.function, Cores: []*simulation.Core{c}}
	d, err := p.Analyse()
	if err != nil {
		t.Fatalf("%s: %v", l.name, err)
	}
	for _, r := range d.Pieces {
		if r.First > l.line || r.Last < l.line || r.Loop == 0 {
			continue
		}
		line = true
		for _, a := range r.Advice {
			reason = reason || slices.Contains(l.faults, a.Fault)
		}
		t.Logf("%s %v on %s: %s, lines %d to %d: %.2f cycles, %s, advice %s, right %t", l.name, flags, c.Name, r.Name(), r.First, r.Last, r.Main().Cycles, core.Say(r.Main().Limits[0]), r.Advice[0].Fault, reason)
	}
	return reason, line
}
