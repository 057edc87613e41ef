package valgrind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// need skips a test where a program is missing.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("needs %s", program)
	}
	return path
}

// programs is the directory of the programs that tests share.
var programs string

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "valgrind-test-"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(programs)
	os.Exit(status)
}

// compile makes a program of a source in testdata/src, once for all tests.
func compile(t *testing.T, compiler, source string) string {
	t.Helper()
	need(t, compiler)
	need(t, "valgrind")
	program := filepath.Join(programs, compiler, "work")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(compiler, "-O1", "-pthread", "-g", "-o", program, filepath.Join("testdata", "src", source)).CombinedOutput()
	if err != nil {
		t.Skipf("%s cannot compile here: %v: %s", compiler, err, out)
	}
	return program
}

// work makes the C program.
func work(t *testing.T) string { return compile(t, "gcc", "work.c") }

// small caches make the test's programs miss.
var small = Geometry{I1: Cache{32 << 10, 8, 64}, D1: Cache{32 << 10, 8, 64}, LL: Cache{256 << 10, 8, 64}}

// simulate runs a program, or skips the test where valgrind does not work.
func simulate(t *testing.T, c Command) *Simulation {
	t.Helper()
	if c.Geometry == (Geometry{}) {
		c.Geometry = small
	}
	s, err := Run(t.Context(), c)
	var failed *ToolError
	if errors.As(err, &failed) {
		t.Skipf("valgrind does not work here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestColumns checks that the two walks differ in the simulation, by the line, and that two
// simulations count the same.
func TestColumns(t *testing.T) {
	t.Parallel()
	program := work(t)
	size := testlong.Size(300, 1000)
	misses := func(what string) (*counts.Table, float64) {
		s := simulate(t, Command{Args: []string{program, what, strconv.Itoa(size)}, Instructions: true})
		if s.Tool != Callgrind || s.Why != "" || len(s.Notes) > 0 || s.State.ExitCode() != 0 {
			t.Fatalf("%s: by %s (%s), notes %q, %v", what, s.Tool, s.Why, s.Notes, s.State)
		}
		got := table(t, Open(s.Files, Options{By: counts.Function})).Clone()
		return got, value(t, got, what+"  (work)", "D1mr")
	}
	_, rows := misses("rows")
	first, columns := misses("columns")
	second, again := misses("columns")
	// A line of 64 bytes holds 16 elements.
	if lines := float64(size) * 1000 / 16; rows < 0.9*lines || rows > 1.2*lines {
		t.Errorf("rows miss %v times, want about %v", rows, lines)
	}
	if all := float64(size) * 1000; columns < 0.9*all || columns > 1.1*all || columns != again {
		t.Errorf("columns miss %v and %v times, want %v twice", columns, again, all)
	}
	for c, col := range first.Columns {
		if a, b := first.Cell(0, c).Value, second.Cell(0, c).Value; a != b {
			t.Errorf("two simulations: %s is %v and %v", col.Event, a, b)
		}
	}
}

// TestForks checks that a forked process does not repeat its parent's counts, and that all
// processes and threads are there.
func TestForks(t *testing.T) {
	t.Parallel()
	program := work(t)
	forked := table(t, Open(simulate(t, Command{Args: []string{program, "fork"}}).Files, Options{By: counts.Function}))
	alone := value(t, forked, "before  (work)", "Ir")
	if child := value(t, forked, "child  (work)", "Ir"); alone > 2.1*child || alone < 1.9*child {
		t.Errorf("before the fork %v instructions, in the child %v: want twice as many", alone, child)
	}
	threads := table(t, Open(simulate(t, Command{Args: []string{program, "threads"}}).Files, Options{By: counts.Function}))
	if got, want := value(t, threads, "child  (work)", "Ir"), 1.5*alone; got < 0.95*want || got > 1.05*want {
		t.Errorf("three threads have %v instructions, want %v", got, want)
	}
	if !testlong.Enabled() {
		return
	}
	shell := table(t, Open(simulate(t, Command{Args: []string{"sh", "-c", program + " threads | " + program + " fork"}}).Files, Options{By: counts.Function}))
	if got, want := value(t, shell, "child  (work)", "Ir"), 2*alone; got < 0.95*want || got > 1.05*want {
		t.Errorf("a pipeline has %v instructions, want %v", got, want)
	}
}

// TestCachegrindForks checks that it is said where a forked process's counts are not
// known.
func TestCachegrindForks(t *testing.T) {
	t.Parallel()
	s := simulate(t, Command{Args: []string{work(t), "fork"}, Tool: Cachegrind})
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0].Text, "once more") {
		t.Errorf("notes %q", s.Notes)
	}
}

// TestEnds checks how a program ends is passed on, and that counts are kept if it is
// by a signal.
func TestEnds(t *testing.T) {
	t.Parallel()
	program := work(t)
	if s := simulate(t, Command{Args: []string{program, "seven"}}); s.State.ExitCode() != 7 {
		t.Errorf("%v, want 7", s.State)
	}
	s := simulate(t, Command{Args: []string{program, "abort"}})
	if s.State.Success() || value(t, table(t, Open(s.Files, Options{})), "", "Ir") == 0 {
		t.Errorf("ended by a signal: %v", s.State)
	}
}

// TestInterrupted checks that nothing is left when a simulation is given up.
func TestInterrupted(t *testing.T) {
	program := work(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(testlong.Size(300, 2000))*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, Command{Args: []string{program, "forever"}, Geometry: small})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that the time is up", err)
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestLeftRunning checks that what a program leaves running is neither waited for nor left.
func TestLeftRunning(t *testing.T) {
	t.Parallel()
	program := work(t)
	need(t, "setsid")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := Command{Args: []string{"sh", "-c", program + " forever & setsid " + program + " forever & exit 0"}, Geometry: small}
	s, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	none(t, program)
	if _, err := Follow(ctx, c, 1e9, func() Follower { return ignorer{} }); err != nil {
		t.Error(err)
	}
	none(t, program)
}

// none waits until no process executes a program, which has been killed.
func none(t *testing.T, program string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		left := ""
		names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range names {
			if args, _ := os.ReadFile(name); bytes.Contains(args, []byte(program)) {
				left = name
			}
		}
		if left == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is left", left)
		}
	}
}

// TestScratchNames checks that temporary files are found whatever their directory is called.
func TestScratchNames(t *testing.T) {
	program := work(t)
	dir := filepath.Join(t.TempDir(), "a[b %p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	c, programs := Command{Args: []string{program, "seven"}}, 1
	if testlong.Enabled() {
		c, programs = Command{Args: []string{"sh", "-c", program + " seven; exit 7"}}, 2
	}
	s := simulate(t, c)
	if v := value(t, table(t, Open(s.Files, Options{By: counts.Function})), "main  (work)", "Ir"); v < 5 || s.State.ExitCode() != 7 {
		t.Errorf("%v instructions, %v", v, s.State)
	}
	trace, err := Follow(t.Context(), c, 1e9, func() Follower { return ignorer{} })
	if err != nil || trace.Programs != programs {
		t.Errorf("%+v, %v", trace, err)
	}
}

const goSource = `package main

import "sync"

//go:noinline
func work(n int) (sum int) {
	for i := range n {
		sum += i * i
	}
	return sum
}

func main() {
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() { println(work(100000)) })
	}
	wait.Wait()
}
`

// TestGo checks that Go programs are simulated by the tool that can follow them.
func TestGo(t *testing.T) {
	t.Parallel()
	need(t, "valgrind")
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "work")
	if err := os.WriteFile(source, []byte(goSource), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", "build", "-o", program, source)
	c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=")
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("go cannot build here: %v: %s", err, out)
	}
	if !IsGo(program) || IsGo(need(t, "sh")) {
		t.Errorf("a Go program is told by its file: %v, sh: %v", IsGo(program), IsGo("/bin/sh"))
	}
	s := simulate(t, Command{Args: []string{program}})
	if s.Tool != Cachegrind || s.Why == "" {
		t.Errorf("by %s (%s)", s.Tool, s.Why)
	}
	got := table(t, Open(s.Files, Options{By: counts.Function}))
	if ir := value(t, got, "main.work  ([unknown])", "Ir"); ir < 8*100000 {
		t.Errorf("%v instructions", ir)
	}
}

// TestAnnotate compares the sums of functions with those of callgrind_annotate and
// cg_annotate.
func TestAnnotate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, compiler, source, arg string
		tool                        Tool
		instructions                bool
		annotate                    string
		timed, long                 bool
	}{
		{"C", "gcc", "work.c", "columns", Callgrind, false, "callgrind_annotate", false, true},
		{"C with threads", "gcc", "work.c", "threads", Callgrind, false, "callgrind_annotate", false, false},
		{"C++", "g++", "work.cc", "", Callgrind, false, "callgrind_annotate", false, true},
		{"C++, timed", "g++", "work.cc", "", Callgrind, true, "callgrind_annotate", true, true},
		{"C, cachegrind", "gcc", "work.c", "columns", Cachegrind, false, "cg_annotate", false, true},
		{"C++, cachegrind", "g++", "work.cc", "", Cachegrind, false, "cg_annotate", false, true},
		{"C, cachegrind, timed", "gcc", "work.c", "columns", Cachegrind, false, "cg_annotate", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long {
				testlong.Only(t)
			}
			need(t, tt.annotate)
			program := compile(t, tt.compiler, tt.source)
			s := simulate(t, Command{Args: []string{program, tt.arg}, Tool: tt.tool, Instructions: tt.instructions})
			if len(s.Files) != 1 {
				t.Fatalf("files %q", s.Files)
			}
			if tt.timed {
				if err := s.Time(made(odd), "made up"); err != nil {
					t.Fatal(err)
				}
			}
			compare(t, annotated(t, tt.annotate, s.Files[0]), table(t, Open(s.Files, Options{By: counts.Function})))
		})
	}
}

// row is a line of what the annotating programs print: counts, and a function behind
// the last of them.
var row = regexp.MustCompile(`^ *((?:(?:[0-9][0-9,]*|\.) *(?:\( *[0-9.]+%\))? +)+)(.*)$`)

// annotated returns the counts of functions, by name, as another program has them.
func annotated(t *testing.T, program, file string) map[string][]float64 {
	t.Helper()
	c := exec.Command(program, "--auto=no", "--threshold=100", file)
	if program == "cg_annotate" {
		c = exec.Command(program, "--auto=no", "--threshold=0", file)
	}
	c.Env = append(os.Environ(), "LC_ALL=C")
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Skipf("%s: %v", program, err)
	}
	if complaints.Len() > 0 {
		t.Errorf("%s: %.200s", program, &complaints)
	}
	_, body, ok := bytes.Cut(out, []byte("file:function"))
	if !ok {
		t.Skipf("%s prints something else: %.200s", program, out)
	}
	sums := map[string][]float64{}
	for _, line := range strings.Split(string(body), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		function, _, _ := strings.Cut(m[2], " [")
		_, function, ok := strings.Cut(function, ":")
		if !ok {
			continue
		}
		function = string(withoutLevel([]byte(function))) // which has the level in its name
		var values []float64
		for _, f := range strings.Fields(regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(m[1], "")) {
			v, err := strconv.ParseFloat(strings.ReplaceAll(strings.Replace(f, ".", "0", 1), ",", ""), 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			values = append(values, v)
		}
		if sums[function] == nil {
			sums[function] = make([]float64, len(values))
		}
		for i, v := range values {
			sums[function][i] += v
		}
	}
	return sums
}

// compare compares by names, since what is inlined stands by itself there.
func compare(t *testing.T, want map[string][]float64, got *counts.Table) {
	t.Helper()
	sums := map[string][]float64{}
	for i, s := range got.Scopes[1:] {
		name := s.Code.Function
		if sums[name] == nil {
			sums[name] = make([]float64, len(got.Columns))
		}
		for c := range got.Columns {
			sums[name][c] += got.Cell(1+i, c).Value
		}
	}
	compared := 0
	for name, values := range want {
		if name = shortAddress(name); name == "???" {
			name = ""
		}
		for c, v := range values {
			if sums[name] == nil || sums[name][c] != v {
				t.Errorf("%s of %s: %v, want %v", got.Columns[c].Event, name, sums[name], v)
				break
			}
		}
		compared++
	}
	if compared < 20 {
		t.Errorf("only %d functions compared: %v", compared, fmt.Sprint(want)[:200])
	}
}

// A tally counts what it is told.
type tally struct {
	blocks, programs int64
	files            []string
}

func (c *tally) Exec()                        { c.programs++ }
func (c *tally) Fork(parent Follower)         { c.files = append(c.files, parent.(*tally).files...) }
func (c *tally) Mapped(file string, _ uint64) { c.files = append(c.files, file) }
func (c *tally) Blocks(addrs []uint64)        { c.blocks += int64(len(addrs)) }
func (c *tally) End()                         {}

// TestFollow checks what is handed on of processes, and that a limit is kept to.
func TestFollow(t *testing.T) {
	program := work(t)
	rows := testlong.Size(100, 1000)
	lines := int64(1000 * rows) // of rows, a block each
	number := strconv.Itoa(rows)
	most := int64(testlong.Size(150_000, 700_000))
	for _, tt := range []struct {
		name      string
		args      []string
		limit     int64
		least     int64 // blocks
		processes int
		programs  int64
		cut, long bool
	}{
		{"a program", []string{program, "rows", number}, 1e9, lines, 1, 1, false, true},
		{"one that forks", []string{program, "fork"}, 1e9, 300_000, 2, 1, false, false},
		{"a limit", []string{program, "forever"}, 100_000, 100_000, 1, 1, true, true},
		{"one after the other", []string{"sh", "-c", "exec env " + program + " rows " + number}, 1e9, lines, 1, 3, false, false},
		{"two at a time", []string{"sh", "-c", program + " threads | " + program + " fork"}, 1e9, 600_000, 4, 3, false, true},
		{"a limit for all", []string{"sh", "-c", program + " forever | " + program + " forever"}, most, most, 3, 3, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long {
				testlong.Only(t)
			}
			var all []*tally
			trace, err := Follow(t.Context(), Command{Args: tt.args}, tt.limit, func() Follower {
				all = append(all, &tally{})
				return all[len(all)-1]
			})
			if err != nil {
				t.Skipf("programs cannot be followed here: %v", err)
			}
			var sum tally
			for _, c := range all {
				sum.blocks, sum.programs, sum.files = sum.blocks+c.blocks, sum.programs+c.programs, append(sum.files, c.files...)
			}
			if len(all) != tt.processes || sum.programs != tt.programs || int64(trace.Programs) != tt.programs {
				t.Errorf("%d processes, %d programs, %d by the trace; want %d and %d", len(all), sum.programs, trace.Programs, tt.processes, tt.programs)
			}
			if sum.blocks != trace.Blocks || sum.blocks < tt.least || sum.blocks > tt.limit || trace.Cut != tt.cut {
				t.Errorf("%d blocks, %d by the trace, cut %v; want %d at least, %v", sum.blocks, trace.Blocks, trace.Cut, tt.least, tt.cut)
			}
			if !slices.Contains(sum.files, program) {
				t.Errorf("mapped %q, not %s", sum.files, program)
			}
		})
	}
}
