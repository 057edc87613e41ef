package core_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// TestParameters finds a function of C++ by its name with parameters, as simulations write it.
func TestParameters(t *testing.T) {
	source, program := filepath.Join(t.TempDir(), "f.cpp"), filepath.Join(t.TempDir(), "f.so")
	text := "long sum(const long *p, int n) { long s = 0; for (int i = 0; i < n; i++) s = s * 3 + p[i]; return s; }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("g++", "-O2", "-g", "-shared", "-fPIC", "-o", program, source).CombinedOutput(); err != nil {
		t.Skipf("g++: %v: %s", err, out)
	}
	for name, found := range map[string]bool{"sum(long const*, int)": true, "sum": true, "sum(int)": false} {
		p := core.Program{File: program, Function: name, Cores: []*simulation.Core{simulation.ModelledCore("skylake")}}
		if listing, err := p.List(); (err == nil) != found || found && len(listing.Graph.Blocks) < 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
