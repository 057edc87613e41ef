package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/testkernel"

	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// walks is a program with three walks: along the rows of an array, along its columns, and
// along a list.
const walks = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int a[1000][1000];
struct node { struct node *next; char pad[120]; } *list;
long rows(void) {
	long sum = 0;
	for (int i = 0; i < 1000; i++)
		for (int j = 0; j < 1000; j++)
			sum += a[i][j]++; // along a row
	return sum;
}
long columns(void) {
	long sum = 0;
	for (int j = 0; j < 1000; j++)
		for (int i = 0; i < 1000; i++)
			sum += a[i][j]++; // along a column
	return sum;
}
long chase(void) {
	enum { n = 1 << 15 };
	list = calloc(n, sizeof *list);
	for (long i = 0; i < n; i++) list[i].next = &list[(i * 7919 + 12345) % n];
	struct node *p = list;
	for (long i = 0; i < 300000; i++)
		p = p->next; // along a list
	return p - list;
}
long sums(void) {
	double sum = 0;
	volatile double one = 1;
	double x = one;
	for (long i = 0; i < 1000000; i++)
		sum += x; // each after the one before
	return sum;
}
int main(int argc, char **argv) {
	const char *what = argc > 1 ? argv[1] : "";
	char line[100] = "";
	if (!strcmp(what, "read") && fgets(line, sizeof line, stdin)) printf("%s", line);
	for (int i = 0; i < 3; i++) printf("%ld\n", !strcmp(what, "chase") ? chase() : !strcmp(what, "sums") ? sums() : !strcmp(what, "columns") ? columns() : rows());
	return argc > 2 ? atoi(argv[2]) : 0;
}
`

// walk compiles the program of walks, once. Its directory is removed by TestMain.
var walk = sync.OnceValues(func() (program string, err error) {
	if walkDir, err = os.MkdirTemp("", "walk"); err != nil {
		return "", err
	}
	source := filepath.Join(walkDir, "walk.c")
	program = filepath.Join(walkDir, "walk")
	if err := os.WriteFile(source, []byte(walks), 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command("gcc", "-O1", "-g", "-o", program, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc cannot compile here: %w: %s", err, out)
	}
	return program, nil
})

var walkDir string

// A simulatedWalk is one of the walks, simulated once: what was kept, and stat's document.
type simulatedWalk struct {
	once       sync.Once
	kept, stat string
	failed     string
}

var simulatedWalks = map[string]*simulatedWalk{"rows": {}, "columns": {}, "chase": {}}

// keptWalk simulates a walk, once, or skips the test.
func keptWalk(t *testing.T, what string) *simulatedWalk {
	t.Helper()
	a, _, stderr, program := compiled(t)
	w := simulatedWalks[what]
	w.once.Do(func() {
		w.kept, w.stat = filepath.Join(walkDir, what+".callgrind"), filepath.Join(walkDir, what+".json")
		args := []string{"stat", "--source", "simulated", "--keep", w.kept, "--format", "json", "-o", w.stat, "--", program, what}
		if status := a.main(context.Background(), args); status != 0 {
			w.failed = fmt.Sprintf("status %d: %s", status, stderr)
		}
	})
	if w.failed != "" {
		t.Fatal(what, ": ", w.failed)
	}
	return w
}

// compiled is what the tests of simulations need: the program on a machine without a
// PMU, what it prints, and a program to be simulated; or they are skipped.
func compiled(t *testing.T) (app *app, out, err *bytes.Buffer, program string) {
	t.Helper()
	if ok, err := condition("counts"); err != nil || !ok {
		t.Skipf("no program may be counted here: %v", err)
	}
	if err := simulation.Installed(); err != nil {
		t.Skip(err)
	}
	program, compileErr := walk()
	if compileErr != nil {
		t.Skip(compileErr)
	}
	return appWithoutPMU(t, program)
}

// appWithoutPMU is the program on a machine with this one's kernel, and no PMU.
func appWithoutPMU(t *testing.T, program string) (*app, *bytes.Buffer, *bytes.Buffer, string) {
	t.Helper()
	k := measure.ThisKernel()
	root := testkernel.Intel(85, 2, 1, nil)
	for i, c := range [][4]string{{"1", "Data", "32K", "8"}, {"1", "Instruction", "32K", "8"}, {"2", "Unified", "1024K", "16"}, {"3", "Unified", "16384K", "16"}} {
		dir := "sys/devices/system/cpu/cpu0/cache/index" + string(rune('0'+i)) + "/"
		for k, name := range []string{"level", "type", "size", "ways_of_associativity"} {
			root[dir+name] = &fstest.MapFile{Data: []byte(c[k])}
		}
		root[dir+"coherency_line_size"] = &fstest.MapFile{Data: []byte("64")}
	}
	k.Root, k.Cache = root, nil
	var out, err bytes.Buffer
	return &app{in: strings.NewReader(""), out: &out, err: &err, kernel: k}, &out, &err, program
}

// document is what these tests read of an account as JSON.
type document struct {
	CPU    struct{ Name string }
	Model  struct{ Name string }
	Source struct {
		Kind     string
		Measured bool
		How      string
	}
	Accounts []struct {
		Nodes []struct {
			Name    string
			Value   *float64
			Flagged bool
		}
		Bottleneck []string
	}
}

func (d *document) value(t *testing.T, node string) float64 {
	t.Helper()
	for _, n := range d.Accounts[0].Nodes {
		if n.Name == node && n.Value != nil {
			return *n.Value
		}
	}
	t.Fatalf("no value of %s", node)
	return 0
}

// TestSimulated checks that simulations name what each of three programs waits for, and do not
// look like measurements. What is waited for is that of the kept simulation, without the noise
// of a native run.
func TestSimulated(t *testing.T) {
	for _, tt := range []struct{ what, bottleneck string }{
		{"rows", ""}, {"columns", "Cycles.L2_Hit"}, {"chase", "Cycles.L3_Hit"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			w := keptWalk(t, tt.what)
			a, _, stderr, _ := appWithoutPMU(t, "")
			again := filepath.Join(t.TempDir(), "report.json")
			if status := a.main(t.Context(), []string{"report", "--format", "json", "-o", again, w.kept}); status != 0 {
				t.Fatalf("%s: status %d: %s", tt.what, status, stderr)
			}
			var d, reported document
			short := false // the native run
			for name, to := range map[string]*document{w.stat: &d, again: &reported} {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				short = short || strings.Contains(string(text), "too short for Kernel and Unaccounted")
				if err := json.Unmarshal(text, to); err != nil {
					t.Fatal(err)
				}
			}
			if d.Source.Measured || !strings.HasPrefix(d.Source.How, "simulated by ") || d.Model.Name != resolve.SimulatedModel {
				t.Errorf("%s: %+v, %+v", tt.what, d.Source, d.Model)
			}
			got := ""
			if path := reported.Accounts[0].Bottleneck; len(path) > 0 {
				got = path[len(path)-1]
			}
			if got != tt.bottleneck {
				t.Errorf("%s: bottleneck %q, want %q: %+v", tt.what, got, tt.bottleneck, reported.Accounts[0].Nodes)
			}
			if short {
				return
			}
			if sum := d.value(t, "Unaccounted") + d.value(t, "Kernel") + d.value(t, "Issue"); math.IsNaN(sum) || sum > 1.001 {
				t.Errorf("%s: %v of the native run's cycles are in these parts", tt.what, sum)
			}
		})
	}
}

// TestSimulatedParts compares the parts of Issue of a simulation with those that report finds
// in the kept one. No native run has a part in them.
func TestSimulatedParts(t *testing.T) {
	t.Parallel()
	if simulation.HostCoreOf("amdzen4", nil) == nil {
		t.Skip("the core has no model here")
	}
	a, _, stderr, program := compiled(t)
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	var documents [2]document
	var hotspots [2]string
	for i, args := range [][]string{
		{"stat", "--source", "simulated", "--cpu", "amdzen4", "--keep", kept, "--", program, "sums"},
		{"report", "--cpu", "amdzen4", kept},
	} {
		name := filepath.Join(dir, args[0])
		if status := a.main(t.Context(), slices.Insert(args, 1, "--format", "json", "-o", name)); status != 0 {
			t.Fatalf("%s: status %d: %s", args[0], status, stderr)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var h struct {
			Accounts []struct {
				Hotspots struct{ Places []json.RawMessage }
			}
		}
		if err := errors.Join(json.Unmarshal(text, &documents[i]), json.Unmarshal(text, &h)); err != nil {
			t.Fatal(err)
		}
		for _, place := range h.Accounts[0].Hotspots.Places[:1] {
			hotspots[i] = string(place)
		}
	}
	for _, node := range []string{"Useful_Dispatch", "Chain_Latency", "Port_Contention", "Divider_Busy", "Front_End", "Parts_And_Forwarding", "Other_Limits", "Issue_Elsewhere"} {
		got, want := documents[0].value(t, node), documents[1].value(t, node)
		if math.Abs(got-want) > 0.001 {
			t.Errorf("%s is %v of the simulation, and %v of what was kept", node, got, want)
		}
	}
	if v := documents[0].value(t, "Chain_Latency"); v < 0.5 {
		t.Errorf("the chain of additions takes %v of the cycles", v)
	}
	for i, place := range hotspots {
		if !strings.Contains(place, "each sum waits for the one before") || !strings.Contains(place, "sums") {
			t.Errorf("place %d is %s", i, place)
		}
	}
}

// TestNotSimulated checks programs and options that cannot be simulated. An explicit
// --source simulated is refused before the program runs.
func TestNotSimulated(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	touch, err := exec.LookPath("touch")
	if err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct {
		name     string
		variable string // of the environment
		args     []string
		status   int
		want     string
	}{
		{"intervals", "", []string{"-I", "100"}, exitUsage, "a simulation has no accounts by interval, CPU or thread"},
		{"threads", "", []string{"--per-thread"}, exitUsage, "a simulation has no accounts by interval, CPU or thread"},
		{"several runs", "", []string{"-r", "2"}, exitUsage, "a simulation counts the same each time"},
		{"a part of the run", "", []string{"--timeout", "1000"}, exitUsage, "a simulation is of a whole run"},
		{"some processes", "", []string{"-i"}, exitUsage, "a simulation is of a whole run"},
		{"no simulator", "PATH", nil, exitMachine, "neither QEMU's user mode emulation nor valgrind is installed: apt-get install qemu-user gcc"},
		{"no temporary files", "TMPDIR", nil, exitMachine, "no temporary files can be written in /nonexistent: no such file or directory: TMPDIR names another directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := simulation.Installed(); err != nil && tt.variable == "TMPDIR" {
				t.Skip(err)
			}
			a, _, stderr, _ := appWithoutPMU(t, "")
			if tt.variable != "" {
				t.Setenv(tt.variable, "/nonexistent")
			}
			args := append(tt.args, "--", touch, ran)
			status := a.main(t.Context(), append([]string{"stat", "--source", "simulated"}, args...))
			prefix := "cyclestack stat: "
			if tt.status == exitUsage {
				prefix += "--source simulated: "
			}
			if text := stderr.String(); status != tt.status || !strings.HasPrefix(text, prefix+tt.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("status %d, want %d: %s", status, tt.status, text)
			}
			if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the program ran: %v", err)
			}
		})
	}
}

// TestKeep checks that what is kept can be reported by line and compared.
func TestKeep(t *testing.T) {
	t.Parallel()
	files := []string{keptWalk(t, "rows").kept, keptWalk(t, "columns").kept}
	run := func(args ...string) string {
		a, out, stderr, _ := appWithoutPMU(t, "")
		if status := a.main(t.Context(), args); status != 0 {
			t.Fatalf("%q: status %d: %s", args, status, stderr)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	if got := run("report", files[1]); !regexp.MustCompile(`simulated by (QEMU|callgrind), not measured`).MatchString(got) || !strings.Contains(got, "L2_Hit") {
		t.Errorf("report:\n%s", got)
	}
	for by, want := range map[string]string{"module": "walk", "function": "columns", "line": "walk.c:18", "instruction": "0x"} {
		if got := run("report", "--by", by, "--width", "160", files[1]); !strings.Contains(got, want) {
			t.Errorf("--by %s lacks %q:\n%s", by, want, got)
		}
	}
	if got := run("diff", files[0], files[1]); !strings.Contains(got, "more") || !strings.Contains(got, "L2_Hit") {
		t.Errorf("diff:\n%s", got)
	}
	again := filepath.Join(t.TempDir(), "again.callgrind")
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(again, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run("diff", files[0], again); !strings.Contains(got, "no change of cycles") {
		t.Errorf("diff of a run with itself:\n%s", got)
	}
}

// TestTimed checks that the kept profile has the cycles of instructions, the same in each
// run. Processors without a model of the core have none.
func TestTimed(t *testing.T) {
	t.Parallel()
	for simulator, said := range map[simulation.Simulator][]string{
		simulation.QEMU:     {"running it again in QEMU", "instructions and branches: as a model of ", " core executes them, in "},
		simulation.Valgrind: {"running it twice more under valgrind", "instructions and branches: as a model of ", " core executes them, from all "},
	} {
		t.Run(string(simulator), func(t *testing.T) {
			if err := simulation.Missing(simulator); err != nil {
				t.Skip(err)
			}
			testTimed(t, string(simulator), said)
		})
	}
}

func testTimed(t *testing.T, simulator string, says []string) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("programs for %s are not traced", runtime.GOARCH)
	}
	a, out, stderr, program := compiled(t)
	dir := t.TempDir()
	simulate := func(name string, args ...string) (kept, said string) {
		stderr.Reset()
		file := filepath.Join(dir, name)
		if status := a.main(t.Context(), slices.Concat([]string{"stat", "-v", "--source", "simulated", "--simulator", simulator, "--keep", file}, args, []string{"--", program, "chase"})); status != 0 {
			t.Fatalf("%s: status %d: %s", name, status, stderr)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^(pid|desc: Timerange): .*$`).ReplaceAllString(string(text), ""), strings.Join(strings.Fields(stderr.String()), " ")
	}
	first, said := simulate("first.callgrind")
	if testlong.Enabled() {
		second, _ := simulate("second.callgrind")
		pattern := `(?m)^(?:totals|summary): .*$` // valgrind's functions have another order in some runs
		if simulator == string(simulation.QEMU) { // its windows are at other places in each run
			pattern = `(?m)^totals: \d+ `
		}
		totals := regexp.MustCompile(pattern)
		if a, b := totals.FindString(first), totals.FindString(second); a == "" || a != b {
			t.Errorf("two runs are different: %q, and %q", a, b)
		}
	}
	for _, want := range says {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing: %s", want, said)
		}
	}
	want := "Ct Cbt C2t C3t Cmt Bct Bit Iru Bcmu Bimu D1mru D1mwu DLmru DLmwu"
	if simulator == string(simulation.QEMU) {
		want += " Vt Vbt Vwt" // variances, as its windows are samples
	}
	line := regexp.MustCompile(`(?m)^events: .*$`).FindString(first)
	for _, event := range strings.Fields(want) {
		if !slices.Contains(strings.Fields(line), event) {
			t.Errorf("%s is missing: %s", event, line)
		}
	}
	other, said := simulate("power.callgrind", "--cpu", "power7")
	untimed := !strings.Contains(other, " Ct ")
	if simulator == string(simulation.QEMU) {
		untimed = strings.Contains(said, "100 % of the instructions were not timed")
	}
	if !untimed || !strings.Contains(said, "running it again ") {
		t.Errorf("a program is timed for a processor with other instructions: %s", said)
	}
	// Each element of the list waits for the one before: a load is at least 3 cycles. Where other
	// programs slow the native run down, a simulation has few windows, and may have none in the walk.
	longest := 0.0
	for try := 0; try < 3 && longest < 3; try++ {
		if try > 0 {
			simulate("first.callgrind")
		}
		out.Reset()
		if status := a.main(t.Context(), []string{"report", "--by", "instruction", "--function", "chase", "--all", "--format", "json", filepath.Join(dir, "first.callgrind")}); status != 0 {
			t.Fatalf("status %d: %s", status, stderr)
		}
		longest = longestOf(t, out.Bytes(), "chase")
	}
	if longest < 3 || longest > 20 {
		t.Errorf("the longest instruction of a walk along a list takes %v cycles", longest)
	}
}

// longestOf returns the cycles of issue of a function's longest instruction in a document.
func longestOf(t *testing.T, text []byte, function string) (longest float64) {
	t.Helper()
	var d struct {
		Accounts []struct {
			Scope struct{ Kind, Function string }
			Nodes []struct {
				Name  string
				Value *float64
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, a := range d.Accounts {
		for _, n := range a.Nodes {
			if n.Name == "Issue_CPI" && n.Value != nil && a.Scope.Kind == "instruction" && a.Scope.Function == function {
				longest = max(longest, *n.Value)
			}
		}
	}
	return longest
}

// TestNotTraced checks that a program is simulated that cannot be traced, and why it was
// not is said.
func TestNotTraced(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("programs for %s are not traced", runtime.GOARCH)
	}
	a, _, stderr, program := compiled(t)
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!/bin/sh\ncase $* in *tool=lackey*) echo \"valgrind: it is not there\" >&2; exit 1;; esac\nexec " + valgrind + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "valgrind"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if status := a.main(t.Context(), []string{"stat", "-v", "--source", "simulated", "--simulator", "valgrind", "--", program, "rows"}); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	text := strings.Join(strings.Fields(stderr.String()), " ")
	if n := strings.Count(text, "penalties are those of processors of this kind"); n != 1 {
		t.Errorf("%d notes on penalties: %s", n, text)
	}
	for _, want := range []string{"simulated by callgrind", "dependences between instructions are not known: lackey failed: valgrind: it is not there"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing: %s", want, text)
		}
	}
}
