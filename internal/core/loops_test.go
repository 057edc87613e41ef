package core_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// TestLoops builds the loops of the examples, measures them on this machine, and compares
// the model. The figures depend on the machine: the test logs them.
func TestLoops(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the loops are code of x86-64")
	}
	program := filepath.Join(t.TempDir(), "loops")
	if out, err := exec.Command("cc", "-O2", "-o", program, "../../examples/loops/loops.c").CombinedOutput(); err != nil {
		t.Skipf("no C compiler: %v %s", err, out)
	}
	measured, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	r := core.Request{Args: []string{program}, Measured: "-", In: strings.NewReader(string(measured)), Cores: []*simulation.Core{simulation.ModelledCore("amdzen4")}}
	found, err := r.Analyse(t.Context())
	if err != nil {
		t.Fatalf("%v; the program says %q", err, measured)
	}
	if n := len(found.Document.Pieces); n != 3 {
		t.Fatalf("%d loops", n)
	}
	for _, p := range found.Document.Pieces {
		m := p.Main()
		t.Logf("%s: measured %.2f here, modelled %.2f on Zen 4", p.Function, p.Measured.Cycles, m.Cycles)
		if len(m.Chain) != 1 || m.Chain[0].By != "rdi" || !m.Chain[0].Address || p.Advice[0].Fault != core.PointerChase {
			t.Errorf("%s: chain %+v, advice %v", p.Function, m.Chain, p.Advice)
		}
		if m.Cycles < 3.9 || m.Cycles > 5.3 { // 4.00, 4.00 and 4.11 are measured on Zen 4
			t.Errorf("%s: %.2f cycles on Zen 4", p.Function, m.Cycles)
		}
	}
}

// TestMeasured refuses files that are no measurements, with their line.
func TestMeasured(t *testing.T) {
	for text, want := range map[string]string{
		"solve 1\nsolve x\n": `standard input:2: "x" is not a number of cycles`,
		"solve 1 2\n":        "standard input:1: not a function and its cycles",
		"solve -1\n":         "not a number of cycles",
		"\n":                 "no measurement",
		"nosuch 3\n":         "no function nosuch",
		"solve 3\n":          "2 innermost loops",
	} {
		p := solve()
		r := core.Request{Args: []string{p.File}, Measured: "-", In: strings.NewReader(text), Cores: p.Cores}
		if _, err := r.Analyse(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
