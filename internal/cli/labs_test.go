package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A laboratory is one of perf-ninja: a program with a fault. Its hottest line is between two,
// in a file.
type laboratory struct {
	name, file  string
	first, last int
}

// laboratories are those without input files, of one thread. In swmem_prefetch_1 the search is to be
// better, and filling its table takes 83 % of native samples. In data_packing line 10 shuffles the elements
// whose size is at fault. That has most native samples, 44 to 62 % of them.
var laboratories = []laboratory{
	{"bad_speculation/branches_to_cmov_1", "solution.hpp", 43, 95},
	{"bad_speculation/conditional_store_1", "solution.cpp", 8, 11},
	{"bad_speculation/lookup_tables_1", "solution.cpp", 4, 18},
	{"bad_speculation/virtual_call_mispredict", "solution.cpp", 23, 24},
	{"core_bound/vectorization_1", "solution.cpp", 30, 100},
	{"core_bound/vectorization_2", "solution.cpp", 5, 12},
	{"core_bound/dep_chains_1", "solution.cpp", 28, 37},
	{"core_bound/dep_chains_2", "solution.hpp", 20, 80},
	{"core_bound/compiler_intrinsics_1", "solution.cpp", 8, 50},
	{"memory_bound/data_packing", "solution.cpp", 10, 26},
	{"memory_bound/loop_interchange_1", "solution.cpp", 29, 33},
	{"memory_bound/loop_tiling_1", "solution.cpp", 6, 8},
	{"memory_bound/swmem_prefetch_1", "solution.hpp", 16, 26},
	{"misc/warmup", "solution.cpp", 6, 8},
}

// class returns what a laboratory is bound by: the folder's name, but for those of several kinds.
func (l *laboratory) class() string {
	class, _, _ := strings.Cut(l.name, "/")
	if class == "misc" { // a chain of sums
		return "core_bound"
	}
	return class
}

// TestLaboratories simulates laboratories of a checkout of perf-ninja, whose folder the
// environment names, with the penalties that calibrate has stored. It prints the class and the
// line that the simulation says, and whether they are right. Of code of a library a report also shows the
// line of the user's that calls it most often: that may be the right one as well. It also prints the line's share
// of a native run's clock samples, and the line with the most of them. For those with a
// solution in testdata/labs/solutions it prints the change of cycles too, by diff and by processor time:
//
//	CYCLESTACK_PERF_NINJA=~/perf-ninja go test -v -run Laboratories ./internal/cli -timeout 60m
//
// CYCLESTACK_PERF_NINJA_ONLY is a part of the names of those that are wanted.
func TestLaboratories(t *testing.T) {
	dir := os.Getenv("CYCLESTACK_PERF_NINJA")
	if dir == "" {
		t.Skip("CYCLESTACK_PERF_NINJA does not name a checkout of perf-ninja")
	}
	needSimulator(t)
	storedPenalties(t)
	all, classes, lines, changes, near := 0, 0, 0, 0, 0
	for _, l := range laboratories {
		if !strings.Contains(l.name, os.Getenv("CYCLESTACK_PERF_NINJA_ONLY")) {
			continue
		}
		all++
		class, line, change := l.simulate(t, filepath.Join(dir, "labs", l.name))
		if change != nil {
			if changes++; math.Abs(change.simulated-change.native) <= nearPoints {
				near++
			}
		}
		if class {
			classes++
		}
		if line {
			lines++
		}
	}
	t.Logf("%d of %d classes, %d of %d lines, %d of %d changes within %g points", classes, all, lines, all, near, changes, nearPoints)
	if 4*classes < 3*all || 10*lines < 9*all {
		t.Errorf("%d of %d classes, want three in four; %d lines, want nine in ten", classes, all, lines)
	}
	if 4*near < 3*changes {
		t.Errorf("%d of %d changes are within %g points of the native ones, want three in four", near, changes, nearPoints)
	}
}

// A labChange is what a solution changes of a laboratory's cycles, in percent.
type labChange struct{ simulated, native float64 }

// nearPoints is how far the two may be apart.
const nearPoints = 15.0

// compile compiles a laboratory, with the files of a solution in the place of its own; "" is none.
func (l *laboratory) compile(t *testing.T, folder, solution string) (program string) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "lab")
	if solution != "" {
		if err := os.CopyFS(filepath.Join(dir, "files"), os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		folder = filepath.Join(dir, "files")
		own, err := os.ReadDir(solution)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range own {
			text, err := os.ReadFile(filepath.Join(solution, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, f.Name()), text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	args := []string{"-O2", "-g", "-std=c++17", "-I", "testdata/labs", "-I", folder, "-o", program}
	sources, err := filepath.Glob(filepath.Join(folder, "*.cpp"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if filepath.Base(s) != "validate.cpp" {
			args = append(args, s)
		}
	}
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", l.name, err, out)
		return ""
	}
	return program
}

// simulate simulates a laboratory: are the class and the line right? What does its solution
// change?
func (l *laboratory) simulate(t *testing.T, folder string) (class, line bool, change *labChange) {
	t.Helper()
	dir := t.TempDir()
	kept, whole := filepath.Join(dir, "lab.callgrind"), filepath.Join(dir, "lab.json")
	program := l.compile(t, folder, "")
	if program == "" {
		return false, false, nil
	}
	native := 0.0
	for rounds := 1; native < 0.15 && rounds < 1<<20; rounds *= 2 {
		t.Setenv("LAB_ROUNDS", strconv.Itoa(rounds))
		native = userTime(t, []string{program})
	}
	mustRun(t, "stat", "--source", "simulated", "--all", "--format", "json", "-o", whole, "--keep", kept, "--", program)
	var d struct {
		Accounts []struct{ Bottleneck []string }
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&d); err != nil {
		t.Fatal(err)
	}
	part := "nothing"
	if len(d.Accounts) > 0 && len(d.Accounts[0].Bottleneck) > 0 {
		part = strings.TrimPrefix(d.Accounts[0].Bottleneck[len(d.Accounts[0].Bottleneck)-1], "Cycles.")
	}
	file, at, _, caller := hottestLine(t, kept, filepath.Join(dir, "lines.json"), "", 0)
	class = classOf(part) == l.class()
	own := func(file string, at int) bool {
		return filepath.Base(file) == l.file && l.first <= at && at <= l.last
	}
	line = own(file, at) || own(caller.File, caller.Line)
	t.Logf("%-40s %.2f s by itself: %-32s class %-5t %s:%d line %t", l.name, native, part, class, file, at, line)
	if caller.Line > 0 {
		t.Logf("%-40s %.0f %% of that line is called from %s:%d", l.name, 100*caller.Share, filepath.Base(caller.File), caller.Line)
	}
	recorded := filepath.Join(dir, "native.data")
	mustRun(t, "record", "-e", "cpu-clock", "-o", recorded, "--", program)
	most, number, share, _ := hottestLine(t, recorded, filepath.Join(dir, "native.json"), file, at)
	t.Logf("%-40s that line has %.0f %% of the native samples; %s:%d has the most", l.name, 100*share, most, number)
	solution := filepath.Join("testdata", "labs", "solutions", filepath.Base(l.name))
	if _, err := os.Stat(solution); err == nil {
		change = l.change(t, program, kept, l.compile(t, folder, solution))
		t.Logf("%-40s a solution changes %+.0f %% of the cycles, and %+.0f %% of the time by itself", l.name, change.simulated, change.native)
	}
	return class, line, change
}

// change compares a laboratory with its solution: by diff of simulations, and by the least
// processor times of runs in turn.
func (l *laboratory) change(t *testing.T, program, kept, solved string) *labChange {
	t.Helper()
	const runs = 7
	dir := t.TempDir()
	after, whole := filepath.Join(dir, "solved.callgrind"), filepath.Join(dir, "diff.json")
	mustRun(t, "stat", "--source", "simulated", "-o", filepath.Join(dir, "stat"), "--keep", after, "--", solved)
	mustRun(t, "diff", "--format", "json", "-o", whole, kept, after)
	var d struct{ Total struct{ Relative float64 } }
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	before, now := math.Inf(1), math.Inf(1)
	for range runs {
		before = min(before, userTime(t, []string{program}))
		now = min(now, userTime(t, []string{solved}))
	}
	return &labChange{100 * d.Total.Relative, 100 * (now/before - 1)}
}

// classOf returns the laboratories' folder for a part of an account.
func classOf(part string) string {
	top, _, _ := strings.Cut(part, ".")
	switch {
	case top == "Branch_Misprediction":
		return "bad_speculation"
	case slices.Contains([]string{"L2_Hit", "L3_Hit", "Memory", "Page_Walks"}, top):
		return "memory_bound"
	case top == "Issue":
		return "core_bound"
	}
	return top
}

// A calledFrom is the line of the user's that calls another one.
type calledFrom struct {
	File  string
	Line  int
	Share float64
}

// hottestLine returns the line of a laboratory with the most cycles or samples, and its caller. It also
// returns the share of another line.
func hottestLine(t *testing.T, kept, out, other string, number int) (file string, line int, share float64, caller calledFrom) {
	t.Helper()
	mustRun(t, "report", "--by", "line", "--all", "--format", "json", "-o", out, kept)
	var d struct {
		Accounts []struct {
			Scope struct {
				Kind, File string
				Line       int
				Share      float64
				Caller     calledFrom
			}
			Nodes []struct {
				Name  string
				Value *float64
			}
		}
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	most := math.Inf(-1)
	for _, a := range d.Accounts {
		if a.Scope.Kind != "line" || a.Scope.Line == 0 {
			continue
		}
		value := a.Scope.Share
		for _, n := range a.Nodes {
			if n.Name == "Simulated_Cycles" && n.Value != nil {
				value = *n.Value
			}
		}
		name := filepath.Base(a.Scope.File)
		if name == other && a.Scope.Line == number {
			share = a.Scope.Share
		}
		if value > most {
			file, line, most, caller = name, a.Scope.Line, value, a.Scope.Caller
		}
	}
	return file, line, share, caller
}
