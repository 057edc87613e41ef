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

// laboratories are those without input files, of one thread.
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
	{"core_bound/compiler_intrinsics_4", "solution.cpp", 10, 50},
	{"memory_bound/data_packing", "solution.cpp", 13, 26},
	{"memory_bound/loop_interchange_1", "solution.cpp", 29, 33},
	{"memory_bound/loop_tiling_1", "solution.cpp", 4, 6},
	{"memory_bound/swmem_prefetch_1", "solution.hpp", 23, 26},
}

// TestLaboratories simulates laboratories of a checkout of perf-ninja, whose folder the
// environment names. It prints the class and the line that the simulation says, and whether
// they are right:
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
	all, classes, lines := 0, 0, 0
	for _, l := range laboratories {
		if !strings.Contains(l.name, os.Getenv("CYCLESTACK_PERF_NINJA_ONLY")) {
			continue
		}
		all++
		class, line := l.simulate(t, filepath.Join(dir, "labs", l.name))
		if class {
			classes++
		}
		if line {
			lines++
		}
	}
	t.Logf("%d of %d classes, %d of %d lines", classes, all, lines, all)
	if 4*classes < 3*all || 10*lines < 9*all {
		t.Errorf("%d of %d classes, want three in four; %d lines, want nine in ten", classes, all, lines)
	}
}

// simulate simulates a laboratory: are the class and the line right?
func (l *laboratory) simulate(t *testing.T, folder string) (class, line bool) {
	t.Helper()
	dir := t.TempDir()
	program, kept, whole := filepath.Join(dir, "lab"), filepath.Join(dir, "lab.callgrind"), filepath.Join(dir, "lab.json")
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
		return false, false
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
	file, at := hottestLine(t, kept, filepath.Join(dir, "lines.json"))
	class = strings.HasPrefix(l.name, classOf(part)+"/")
	line = file == l.file && l.first <= at && at <= l.last
	t.Logf("%-40s %.2f s by itself: %-32s class %-5t %s:%d line %t", l.name, native, part, class, file, at, line)
	return class, line
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

// hottestLine returns the line of a laboratory's own files with the most cycles.
func hottestLine(t *testing.T, kept, out string) (file string, line int) {
	t.Helper()
	mustRun(t, "report", "--by", "line", "--all", "--format", "json", "-o", out, kept)
	var d struct {
		Accounts []struct {
			Scope struct {
				Kind, File string
				Line       int
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
		for _, n := range a.Nodes {
			if a.Scope.Kind == "line" && a.Scope.Line > 0 && n.Name == "Simulated_Cycles" && n.Value != nil && *n.Value > most {
				file, line, most = filepath.Base(a.Scope.File), a.Scope.Line, *n.Value
			}
		}
	}
	return file, line
}
