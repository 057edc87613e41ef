package core_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// A knownFault is a function of the examples, with its fault as its comment names it.
type knownFault struct {
	function string
	fault    core.Fault
	line     int
}

var (
	functionLine = regexp.MustCompile(`^FUNCTION .*?(\w+)\([^()]*\) \{$`)
	faultLine    = regexp.MustCompile(`;? *// ([a-z ]+)$`)
)

// knownFaults reads the faults from the comments behind the lines.
func knownFaults(t *testing.T, name string) []knownFault {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []knownFault
	function := ""
	s := bufio.NewScanner(f)
	for line := 1; s.Scan(); line++ {
		if m := functionLine.FindStringSubmatch(s.Text()); m != nil {
			function = m[1]
		} else if m := faultLine.FindStringSubmatch(s.Text()); m != nil && function != "" {
			list = append(list, knownFault{function, core.Fault(m[1]), line})
			function = ""
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestFaults analyses functions with a known fault. The reason must be right for nine of ten,
// and the line for all: that of the instruction that the advice is about, or one of the loop's
// if it is about all.
func TestFaults(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the faults are in code of x86-64")
	}
	const source = "../../examples/faults/faults.c"
	program := filepath.Join(t.TempDir(), "faults")
	if out, err := exec.Command("cc", "-O2", "-g", "-o", program, source).CombinedOutput(); err != nil {
		t.Skipf("no C compiler: %v %s", err, out)
	}
	faults := knownFaults(t, source)
	if len(faults) < 15 {
		t.Fatalf("%d faults in %s", len(faults), source)
	}
	right := 0
	for _, k := range faults {
		p := core.Program{File: program, Function: k.function, Cores: []*simulation.Core{simulation.ModelledCore("skylake")}}
		d, err := p.Analyse()
		if err != nil {
			t.Errorf("%s: %v", k.function, err)
			continue
		}
		r := d.Pieces[0]
		got := r.Advice[0]
		if got.Fault == k.fault {
			right++
		} else {
			t.Logf("%s: %s, and not %s; limits %v", k.function, got.Fault, k.fault, r.Main().Limits[:2])
		}
		if got.At >= 0 && r.Insts[got.At].Line != k.line || k.line < r.First || k.line > r.Last {
			t.Errorf("%s: the fault is in line %d, the advice is about %+v, the loop has lines %d to %d", k.function, k.line, got, r.First, r.Last)
		}
	}
	t.Logf("%d of %d reasons are right", right, len(faults))
	if 10*right < 9*len(faults) {
		t.Errorf("%d of %d reasons are right", right, len(faults))
	}
}
