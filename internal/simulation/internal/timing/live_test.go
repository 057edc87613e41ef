package timing

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// programs is the directory of the program that tests share.
var programs string

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "timing-"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(programs)
	os.Exit(status)
}

// compile makes the program of testdata/src, once for all tests, or skips the test.
func compile(t *testing.T) string {
	t.Helper()
	for _, needed := range []string{"valgrind", "gcc"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("needs %s", needed)
		}
	}
	program := filepath.Join(programs, "paths")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	out, err := exec.Command("gcc", "-O1", "-g", "-pthread", "-o", program, filepath.Join("testdata", "src", "paths.c")).CombinedOutput()
	if err != nil {
		t.Skipf("gcc cannot compile here: %v: %s", err, out)
	}
	return program
}

// follow follows a program, or skips the test where that does not work.
func follow(t *testing.T, limit int64, args ...string) *Rates {
	t.Helper()
	return followCommand(t, limit, valgrind.Command{Args: args})
}

func followCommand(t *testing.T, limit int64, c valgrind.Command) *Rates {
	t.Helper()
	p, err := Run(t.Context(), c, Options{Core: pipeline.CoreOf("generic"), Limit: limit})
	var failed *valgrind.ToolError
	if errors.As(err, &failed) || errors.Is(err, errUnknown) {
		t.Skipf("programs cannot be followed here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// allRates are those of the program's run that does all.
var (
	allRates *Rates
	allGuard sync.Mutex
)

// followAll follows the program that does all, once for all tests.
func followAll(t *testing.T, program string) *Rates {
	t.Helper()
	allGuard.Lock()
	defer allGuard.Unlock()
	if allRates == nil {
		allRates = follow(t, enough, program, "all")
	}
	return allRates
}

// enough is a limit that these programs do not reach.
const enough = 20e6

// of sums what is known of the instructions of a function.
func of(t *testing.T, p *Rates, path, name string) (f struct{ executed, branches, missed, cycles float64 }) {
	t.Helper()
	file, err := object.Open(path, object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found, err := file.Lookup(object.Named(name))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", name, found, err)
	}
	for _, in := range p.code.images[path].sorted() {
		if in.addr < found[0].Addr || in.addr >= found[0].End() {
			continue
		}
		f.executed += float64(in.executed)
		if in.flow.Branches() {
			f.branches += float64(in.executed)
		}
		f.missed += float64(in.mispredicted)
		if r, ok := p.At(path, in.addr); ok {
			f.cycles += r.Cycles * float64(in.executed)
		}
	}
	return f
}

// simulated returns what another simulator counts, by place, and the column with the
// instructions.
func simulated(t *testing.T, tool valgrind.Tool, by counts.Kind, args ...string) (*counts.Table, int) {
	t.Helper()
	s, err := valgrind.Run(t.Context(), valgrind.Command{Args: args, Tool: tool, Instructions: true,
		Geometry: valgrind.Geometry{I1: valgrind.Typical.L1I, D1: valgrind.Typical.L1D, LL: valgrind.Typical.L2}})
	if err != nil {
		t.Skipf("%s does not work here: %v", tool, err)
	}
	defer s.Close()
	r := valgrind.Open(s.Files, valgrind.Options{By: by})
	if !r.Next() {
		t.Fatal(r.Err())
	}
	return r.Table(), slices.IndexFunc(r.Table().Columns, func(c counts.Column) bool { return c.Event == "Ir" })
}

// TestExecutions compares how often each instruction is executed with callgrind.
func TestExecutions(t *testing.T) {
	t.Parallel()
	program := compile(t)
	p := followAll(t, program)
	table, ir := simulated(t, valgrind.Callgrind, counts.Instruction, program, "all")
	modules := map[string]*image{}
	for path, i := range p.code.images {
		modules[filepath.Base(path)] = i
	}
	compared := 0
	for row, scope := range table.Scopes {
		if scope.Code == nil || modules[scope.Code.Module] == nil {
			continue
		}
		in := modules[scope.Code.Module].at[scope.Code.Addr]
		if in == nil {
			t.Errorf("%#x was not followed", scope.Code.Addr)
			continue
		}
		if modules[scope.Code.Module].stub(in) != nil {
			continue // callgrind counts the stub with it
		}
		if want := table.Cell(row, ir).Value; float64(in.executed) != want {
			t.Errorf("%#x executed %d times, want %v", in.addr, in.executed, want)
		}
		compared++
	}
	if compared < 100 {
		t.Errorf("%d instructions compared", compared)
	}
}

// TestLines checks that files are named as cachegrind names them: that nearly all that it
// counts at lines has a rate.
func TestLines(t *testing.T) {
	t.Parallel()
	program := compile(t)
	p := followAll(t, program)
	table, ir := simulated(t, valgrind.Cachegrind, counts.Line, program, "all")
	known, all := 0.0, 0.0
	for row, scope := range table.Scopes {
		if scope.Code == nil || scope.Code.Line == 0 {
			continue
		}
		n := table.Cell(row, ir).Value
		all += n
		if r, ok := p.Line(scope.Code.File, scope.Code.Line); ok && r.Cycles >= 0 {
			known += n
		}
	}
	if known < 0.95*all || all == 0 {
		t.Errorf("of %v of %v instructions the rate is known", known, all)
	}
	if r, ok := p.Line("no/such/file.c", 1); ok {
		t.Errorf("a line of no file: %+v", r)
	}
}

// TestBranches checks branches and cycles of functions with known ones.
func TestBranches(t *testing.T) {
	t.Parallel()
	program := compile(t)
	p := followAll(t, program)
	if f := of(t, p, program, "turns"); f.branches < 30000 || f.branches > 30002 || f.missed > 10 {
		t.Errorf("a loop: %v branches, %v mispredicted", f.branches, f.missed)
	}
	if f := of(t, p, program, "chance"); f.missed < 0.45*30000 || f.missed > 0.55*30000 {
		t.Errorf("by chance: %v mispredicted, want half of 30000", f.missed)
	}
	if f := of(t, p, program, "calls"); f.missed > 300 {
		t.Errorf("calls: %v mispredicted, want few", f.missed)
	}
	chain, apart := of(t, p, program, "chain").cycles, of(t, p, program, "apart").cycles
	if chain < 5000*8*3*0.99 || chain > 5000*8*3*1.2 || apart > chain/2 { // windows begin and end in the middle
		t.Errorf("multiplications that wait take %v cycles, others %v: want three each, and far fewer", chain, apart)
	}
}

// TestProcesses checks that all processes and threads are followed that are said to be.
func TestProcesses(t *testing.T) {
	t.Parallel()
	program := compile(t)
	for _, tt := range []struct {
		name   string
		args   []string
		branch float64 // branches of the function turns: one for each iteration and one for each call
		long   bool
	}{
		{"threads", []string{program, "threads"}, 3 * 30000, false},
		{"a fork", []string{program, "fork"}, 20000 + 10000, true},
		{"a fork that executes", []string{program, "fork", "exec"}, 20000 + 30000, false}, // what it did before is given up
		{"another program", []string{"sh", "-c", "exec " + program}, 30000, true},
		{"a pipeline", []string{"sh", "-c", program + " threads | " + program + " fork"}, 3*30000 + 20000 + 10000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long {
				testlong.Only(t)
			}
			p := follow(t, enough, tt.args...)
			if got := of(t, p, program, "turns").branches; math.Abs(got-tt.branch) > 10 {
				t.Errorf("%v branches, want %v", got, tt.branch)
			}
		})
	}
}

// TestAlike checks that two runs have the same rates: also if they are cut, and if there
// are several processes.
func TestAlike(t *testing.T) {
	t.Parallel()
	program := compile(t)
	several := []string{"sh", "-c", program + " fork exec | " + program + " fork; (" + program + " all)"}
	for _, tt := range []struct {
		args  []string
		limit int64
		cut   bool
		slack int64 // blocks of a shell, which asks once more where a child's end came late
		long  bool
	}{
		{[]string{program, "all"}, enough, false, 0, true},
		{[]string{program, "all"}, 150_000, true, 0, false},
		{several, enough, false, 100, true},
	} {
		if tt.long && !testlong.Enabled() {
			continue
		}
		a, b := follow(t, tt.limit, tt.args...), follow(t, tt.limit, tt.args...)
		if max(a.Blocks-b.Blocks, b.Blocks-a.Blocks) > tt.slack || a.Cut != tt.cut || b.Cut != tt.cut || a.Blocks > tt.limit {
			t.Errorf("%s: %d and %d blocks of %d, cut %v and %v", tt.args, a.Blocks, b.Blocks, tt.limit, a.Cut, b.Cut)
		}
		known := 0
		for path, i := range a.code.images {
			if i == nil || tt.slack > 0 && path != program {
				continue
			}
			for addr := range i.at {
				one, ok1 := a.At(path, addr)
				two, ok2 := b.At(path, addr)
				if one != two || ok1 != ok2 {
					t.Fatalf("%s %#x: %v and %v", path, addr, one, two)
				}
				if ok1 {
					known++
				}
			}
		}
		if known < 50 {
			t.Errorf("%d instructions known", known)
		}
	}
}

// TestInput checks that standard input is read from where it is.
func TestInput(t *testing.T) {
	t.Parallel()
	program := compile(t)
	name := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(name, []byte("a\nb\nc\nd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(4, 0); err != nil {
		t.Fatal(err)
	}
	p := followCommand(t, enough, valgrind.Command{Args: []string{program, "lines"}, Stdin: f})
	if got := of(t, p, program, "turns").branches; math.Abs(got-2000) > 10 {
		t.Errorf("%v branches, want 2000 for two lines", got)
	}
}

// TestGivenUp checks that nothing is left when the time is up.
func TestGivenUp(t *testing.T) {
	program := compile(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(testlong.Size(400, 2000))*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, valgrind.Command{Args: []string{"sh", "-c", program + " forever | " + program + " forever"}},
		Options{Core: pipeline.CoreOf("generic"), Limit: math.MaxInt64})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that the time is up", err)
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestErrors checks what is said where a program cannot be followed.
func TestErrors(t *testing.T) {
	t.Parallel()
	program := compile(t)
	for _, tt := range []struct {
		name, want string
		c          valgrind.Command
	}{
		{"no program", "executable file not found", valgrind.Command{Args: []string{"no-such-program"}}},
		{"no lackey", "lackey failed: ", valgrind.Command{Args: []string{program}, Env: append(os.Environ(), "VALGRIND_LIB="+t.TempDir())}},
	} {
		_, err := Run(t.Context(), tt.c, Options{Core: pipeline.CoreOf("generic"), Limit: enough})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
