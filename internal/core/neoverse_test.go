package core_test

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

var mcaTotal = regexp.MustCompile(`(?m)^Total Cycles:\s+(\d+)$`)

// mcaCycles returns what llvm-mca says of loops.
func mcaCycles(t *testing.T, mca, cpu string, loops []*core.Result) []float64 {
	t.Helper()
	const iterations = 1000
	var in strings.Builder
	for n, r := range loops {
		fmt.Fprintf(&in, "# LLVM-MCA-BEGIN %d\n", n)
		for i := range r.Insts {
			in.WriteString(r.Insts[i].Text + "\n")
		}
		in.WriteString("# LLVM-MCA-END\n")
	}
	c := exec.Command(mca, "-mtriple=aarch64-linux", "-mcpu="+cpu, "-iterations="+strconv.Itoa(iterations), "-resource-pressure=false", "-instruction-info=false")
	c.Stdin = strings.NewReader(in.String())
	out, err := c.Output()
	found := mcaTotal.FindAllSubmatch(out, -1)
	if err != nil || len(found) != len(loops) {
		t.Fatalf("%s: %v, %d results of %d for\n%s", mca, err, len(found), len(loops), in.String())
	}
	list := make([]float64, len(loops))
	for i, m := range found {
		n, _ := strconv.Atoi(string(m[1]))
		list[i] = float64(n) / iterations
	}
	return list
}

// TestNeoverse compares the cores of arm64 with llvm-mca, on loops of a cross compiler. Neither
// is a measurement. llvm-mca knows neither taken branches nor the width of dispatch, and lets
// whole instructions wait for an address written back.
func TestNeoverse(t *testing.T) {
	const cc, source = "aarch64-linux-gnu-gcc", "testdata/loops.c"
	if _, err := exec.LookPath(cc); err != nil {
		t.Skip("no cross compiler for arm64")
	}
	mca := ""
	for _, name := range []string{"llvm-mca-21", "llvm-mca-20", "llvm-mca-19"} { // older ones have no model
		if _, err := exec.LookPath(name); err == nil && mca == "" {
			mca = name
		}
	}
	functions := []string{"sum", "axpy", "hash", "divs", "maximum", "list", "copy", "dot", "checksum", "newton", "count", "scale", "zeros", "polynomial"}
	levels := []string{"-O2", "-O3"}
	if testing.Short() {
		levels = levels[:1]
	}
	for _, level := range levels {
		program := filepath.Join(t.TempDir(), "loops")
		if out, err := exec.Command(cc, level, "-g", "-march=armv8.2-a", "-fno-inline", "-shared", "-fPIC", "-o", program, source).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		for _, cpu := range []string{"neoverse-n1", "neoverse-v1", "neoverse-v2"} {
			loops := loopsOf(t, program, cpu, functions)
			if mca == "" {
				continue
			}
			near := 0
			for i, want := range mcaCycles(t, mca, cpu, loops) {
				a := loops[i].Main()
				if math.Abs(a.Cycles-want) <= 0.1*want {
					near++
				}
				t.Logf("%s %s %s: %.2f cycles, %s %.2f; %s", cpu, level, loops[i].Name(), a.Cycles, mca, want, core.Say(a.Limits[0]))
			}
			t.Logf("%s %s: %d of %d loops within 10 %%", cpu, level, near, len(loops))
			if 2*near < len(loops) {
				t.Errorf("%s %s: %d of %d loops within 10 %%, want half", cpu, level, near, len(loops))
			}
		}
	}
	if mca == "" {
		t.Skip("no llvm-mca that knows Neoverse")
	}
}

// loopsOf analyses the loops of functions. All their instructions must be known.
func loopsOf(t *testing.T, program, cpu string, functions []string) (list []*core.Result) {
	t.Helper()
	for _, f := range functions {
		p := core.Program{File: program, Function: f, Cores: []*simulation.Core{simulation.ModelledCore(cpu)}}
		d, err := p.Analyse()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range d.Pieces {
			if r.Loop == 0 {
				t.Errorf("%s has no loop", f)
			}
			for i, in := range r.Main().Instructions {
				if in.Trust == 0 {
					t.Errorf("%s: %s is not known", r.Name(), r.Insts[i].Text)
				}
			}
			list = append(list, r)
		}
	}
	return list
}

// TestOtherCore: code of one instruction set on a core of another is an error that names one
// that fits.
func TestOtherCore(t *testing.T) {
	r := looped(t, "4801f849ffcf75f8")
	_, err := core.Limits(r.Piece, []*simulation.Core{simulation.ModelledCore("neoverse-v2")})
	if err == nil || !strings.Contains(err.Error(), "amdzen4") {
		t.Errorf("%v", err)
	}
}
