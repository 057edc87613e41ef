// Package programs makes the table of docs/programs.md: what cyclestack stat says of twenty
// programs on this machine, next to what is known of them otherwise.
//
//	go build -o /tmp/cyclestack ./cmd/cyclestack
//	go test ./internal/gen/programs -cyclestack /tmp/cyclestack -update
//
// What real programs spent their time on is compared with getrusage, and where with perf
// record and perf report. The programs of examples/programs have one fault each, which
// their source names.
package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// A program is one line of the table.
type program struct {
	name  string
	args  []string
	state string // that it spends its time in by its fault; "" for what getrusage says
	place string // the function with the fault; "" for what perf says
	cause string // what the page says of the place, a part of it; "" for nothing
}

// programs are those of the table. Paths begin in the directory of the inputs.
func programs() []program {
	return []program{
		{name: "gzip", args: []string{"gzip", "-c", "text"}},
		{name: "xz", args: []string{"xz", "-1", "-T1", "-c", "text"}},
		{name: "zstd", args: []string{"zstd", "-q", "-12", "-T1", "-c", "text"}},
		{name: "sqlite3", args: []string{"sqlite3", ":memory:", "with recursive n(i) as (select 1 union all select i+1 from n where i<1500000) select sum(i*i%7) from n"}},
		{name: "python3", args: []string{"python", "-c", "print(sum(i*i for i in range(4000000)))"}},
		{name: "node", args: []string{"node", "-e", "let a=[];for(let i=0;i<4e5;i++)a.push(Math.sin(i));a.sort();console.log(a.length)"}},
		{name: "gcc", args: []string{"gcc", "-O2", "-c", "-o", "/dev/null", "large.c"}},
		{name: "go compile", args: []string{"go", "tool", "compile", "-p", "main", "-o", "/dev/null", "large.go"}},
		{name: "git log", args: []string{"git", "-C", "REPO", "log", "--stat", "-n", "150"}},
		{name: "openssl", args: []string{"openssl", "speed", "-seconds", "1", "-bytes", "16384", "sha256"}},
		{name: "sort", args: []string{"sort", "-S", "200M", "text"}},
		{name: "awk", args: []string{"awk", "{for (i=1; i<=NF; i++) n[$i]++} END {for (w in n) s+=n[w]; print s}", "text"}},
		{name: "chase.c", args: []string{"./chase"}, state: "user", place: "chase"},
		{name: "columns.c", args: []string{"./columns"}, state: "user", place: "sum_columns"},
		{name: "branch.c", args: []string{"./branch"}, state: "user", place: "count_large"},
		{name: "chain.c", args: []string{"./chain"}, state: "user", place: "sum_all", cause: "each sum waits for the one before"},
		{name: "divide.c", args: []string{"./divide"}, state: "user", place: "digit_sum", cause: "each division waits for the one before"},
		{name: "faults.c", args: []string{"./faults"}, state: "kernel"},
		{name: "calls.c", args: []string{"./calls"}, state: "kernel"},
		{name: "sleeps.c", args: []string{"./sleeps"}, state: "blocked"},
	}
}

// A document is what is read of an account.
type document struct {
	CPU      struct{ Name string }
	Accounts []struct {
		Hotspots struct {
			States []struct {
				State string
				Share float64
			}
			Places []struct {
				Function, Module, File, Addr string
				Kernel                       bool
				Line                         int
				Cause                        struct{ Kind, Text string }
			}
			Samples int
		}
	}
}

// A result is what was found of a program.
type result struct {
	program
	lines        int
	native, stat time.Duration // of processors
	said, place  string
	right, there string // "yes", "no", or why that is not known
	samples      int
}

var (
	cyclestack = flag.String("cyclestack", "", "the program to try")
	only       = flag.String("only", "", "programs whose names match; all if it is empty")
	update     = flag.Bool("update", false, "write docs/programs.md")
)

// TestPrograms tries the programs that are installed.
func TestPrograms(t *testing.T) {
	if *cyclestack == "" {
		t.Skip("-cyclestack FILE names the program to try")
	}
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := inputs(t, repo)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(*only)
	var list []*result
	for _, p := range programs() {
		if !match.MatchString(p.name) {
			continue
		}
		for i, arg := range p.args {
			if arg == "REPO" {
				p.args[i] = repo
			}
		}
		r, err := try(p, dir)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		t.Logf("%s: %d lines, %s %s, %s %s", r.name, r.lines, r.said, r.right, r.place, r.there)
		if r.right == "no" || strings.HasPrefix(r.there, "no") {
			t.Errorf("%s: the bottleneck %s is right: %s; the place %s: %s", r.name, r.said, r.right, r.place, r.there)
		}
		list = append(list, r)
	}
	if *update {
		if err := os.WriteFile(filepath.Join(repo, "docs/programs.md"), []byte(page(list)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// inputs makes a directory with what the programs read, and the programs with a fault.
func inputs(t *testing.T, repo string) (string, error) {
	dir := t.TempDir()
	var text, code, goCode bytes.Buffer
	seed := uint32(1)
	for i := 0; text.Len() < 30<<20; i++ {
		seed = seed*1103515245 + 12345
		fmt.Fprintf(&text, "%08x line %d of the text, with %d words and some more %x\n", seed, i, i%17, seed>>7)
	}
	goCode.WriteString("package main\n\nfunc main() {}\n")
	for i := range 1500 {
		fmt.Fprintf(&goCode, "func f%d(a []int) int {\n\ts := %d\n\tfor _, v := range a {\n\t\tif v > s {\n\t\t\ts += v * %d\n\t\t}\n\t}\n\treturn s\n}\n", i, i, i)
		fmt.Fprintf(&code, "int f%d(int *a, int n) { int s = %d; for (int i = 0; i < n; i++) if (a[i] > s) s += a[i] * %d; return s; }\n", i, i, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), text.Bytes(), 0o600); err != nil {
		return dir, err
	}
	if err := os.WriteFile(filepath.Join(dir, "large.c"), code.Bytes(), 0o600); err != nil {
		return dir, err
	}
	if err := os.WriteFile(filepath.Join(dir, "large.go"), goCode.Bytes(), 0o600); err != nil {
		return dir, err
	}
	files, err := filepath.Glob(filepath.Join(repo, "examples/programs/*.c"))
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".c")
		if out, err := exec.Command("gcc", "-O1", "-g", "-o", filepath.Join(dir, name), f).CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%s: %w: %s", f, err, out)
		}
	}
	return dir, err
}

// run runs a command in a directory. It returns the processor time of all that it started,
// and what it wrote to standard error.
func run(dir string, env []string, args ...string) (cpu time.Duration, state *os.ProcessState, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	var text bytes.Buffer
	c.Dir, c.Stderr, c.Env = dir, &text, append(append(os.Environ(), "GOCACHE="+filepath.Join(dir, "gocache")), env...)
	err = c.Run()
	if c.ProcessState == nil {
		return 0, nil, text.String(), err
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime(), c.ProcessState, text.String(), err
}

// try tries one program.
func try(p program, dir string) (*result, error) {
	r := &result{program: p, right: "no", there: "no"}
	if _, err := exec.LookPath(p.args[0]); err != nil && !strings.HasPrefix(p.args[0], "./") {
		return nil, err
	}
	var state *os.ProcessState
	var err error
	for range 2 { // the first fills the caches of files
		if r.native, state, _, err = run(dir, nil, p.args...); err != nil {
			return nil, err
		}
	}
	kept := filepath.Join(dir, "kept")
	defer os.RemoveAll(kept)
	cache := []string{"XDG_CACHE_HOME=" + kept, "XDG_CONFIG_HOME=" + kept}
	var screen string
	r.stat, _, screen, err = run(dir, cache, append([]string{*cyclestack, "stat", "--width", "80", "--"}, p.args...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, screen)
	}
	if at := strings.LastIndex(screen, "\n"+p.args[0]+" "); at >= 0 { // it writes there as well
		screen = screen[at+1:]
	}
	for line := range strings.Lines(screen) {
		r.lines += max(1, (utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))+79)/80)
	}
	return r, r.judge(dir, kept, state)
}

// judge compares what the account says with what is known otherwise.
func (r *result) judge(dir, kept string, state *os.ProcessState) error {
	files, err := filepath.Glob(filepath.Join(kept, "cyclestack/runs/*/account.json"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no run was kept: %v", err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil || len(d.Accounts) == 0 {
		return fmt.Errorf("%s: %v", files[0], err)
	}
	h := d.Accounts[0].Hotspots
	r.samples = h.Samples
	best := -1.0
	for _, s := range h.States {
		if s.State != "run queue" && s.State != "start and end" && s.Share > best { // those are other programs' doing
			r.said, best = s.State, s.Share
		}
	}
	want := r.state
	if want == "" {
		want = "user"
		if u := state.SysUsage().(*syscall.Rusage); time.Duration(u.Stime.Nano()) > time.Duration(u.Utime.Nano()) {
			want = "kernel"
		}
	}
	if r.said == want {
		r.right = "yes"
	}
	switch {
	case r.state == "blocked":
		r.place, r.there = "–", "–"
		return nil
	case len(h.Places) == 0:
		r.place = "none"
		return nil
	}
	p := h.Places[0]
	r.place = p.Function
	if p.Line > 0 {
		r.place += fmt.Sprintf(" (%s:%d)", filepath.Base(p.File), p.Line)
	}
	if p.Cause.Text != "" && r.program.cause != "" {
		if r.place += ": " + p.Cause.Text; !strings.Contains(p.Cause.Text, r.program.cause) {
			r.right = "no"
		}
	}
	if r.program.place != "" {
		if p.Function == r.program.place {
			r.there = "yes"
		}
		return nil
	}
	r.there, err = byPerf(dir, r.args, p.Function, p.Module, p.Kernel)
	return err
}

// byPerf compares the first place with those of perf, of a run of its own. A place is right
// if chance alone may put perf's first before it.
func byPerf(dir string, args []string, function, module string, kernel bool) (string, error) {
	file := filepath.Join(dir, "perf.data")
	if _, _, text, err := run(dir, nil, append([]string{"perf", "record", "-q", "-B", "-N", "-e", "cpu-clock", "-F", "1999", "-o", file, "--"}, args...)...); err != nil {
		return "", fmt.Errorf("perf record: %w: %s", err, text)
	}
	if strings.HasPrefix(function, "0x") { // perf has no name for it
		list, err := reported(file, "dso", 3)
		if err == nil && filepath.Base(list[0][2]) == module {
			return "yes (the file; perf has no names)", nil
		}
		return "no", err
	}
	list, err := reported(file, "dso,symbol", 5)
	if err != nil {
		return "", err
	}
	samples := func(f []string) float64 { n, _ := strconv.ParseFloat(f[1], 64); return n }
	symbol := func(f []string) string { return strings.TrimSpace(strings.TrimRight(strings.Join(f[4:], " "), "- ")) }
	first := samples(list[0])
	for i, f := range list {
		n := samples(f)
		switch is := strings.HasPrefix(f[2], "[kernel") == kernel && symbol(f) == function; {
		case is && i == 0:
			return "yes", nil
		case is && first-n <= 2*math.Sqrt(first+n):
			return fmt.Sprintf("yes: perf has %s with %.0f samples, and it with %.0f", symbol(list[0]), first, n), nil
		}
	}
	return "no: perf has " + symbol(list[0]), nil
}

// reported returns the fields of the lines of perf's report: the share, the samples, and
// what it is sorted by.
func reported(file, sort string, least int) (list [][]string, err error) {
	out, err := exec.Command("perf", "report", "--stdio", "-q", "-n", "-i", file, "--sort", sort, "-w", "60,200").Output()
	if err != nil {
		return nil, fmt.Errorf("perf report: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) >= least && strings.HasSuffix(f[0], "%") {
			list = append(list, f)
		}
	}
	if list == nil {
		return nil, errors.New("perf report: no samples")
	}
	return list, nil
}

// page is the document.
func page(list []*result) string {
	var b strings.Builder
	b.WriteString(`# Twenty programs

What ` + "`cyclestack stat -- PROGRAM`" + ` says of programs, on a machine without counters. [A test of this
repository](../internal/gen/programs/programs_test.go) makes this page:

` + "```sh\ngo build -o /tmp/cyclestack ./cmd/cyclestack\ngo test ./internal/gen/programs -cyclestack /tmp/cyclestack -update\n```" + `

`)
	fmt.Fprintf(&b, "The machine: %s, %d processors, %s. Other programs ran at the same time.\n\n", cpuName(), runtime.NumCPU(), time.Now().UTC().Format("2006-01-02"))
	b.WriteString(`* **lines**: rows of a terminal of 80 columns.
* **time**: the processor time of the run under ` + "`stat`" + `, with that of stat itself, divided by that of a run without.
* **bottleneck**: what most of the time was spent on, besides the run queue, and whether that is right: by getrusage, or
  by the fault of the program.
* **place**: the first of the account, and whether it is right: by perf record and perf report of a further run, or by
  the fault. In a flat profile it may have fewer of perf's samples than the first, within two standard errors.

| program | lines | samples | time | bottleneck | right | place | right |
|---|---:|---:|---:|---|---|---|---|
`)
	rightOnes, places, judged := 0, 0, 0
	for _, r := range list {
		fmt.Fprintf(&b, "| %s | %d | %d | %.2f | %s | %s | %s | %s |\n", r.name, r.lines, r.samples, r.stat.Seconds()/r.native.Seconds(), r.said, r.right, r.place, r.there)
		if r.right == "yes" {
			rightOnes++
		}
		if r.there != "–" {
			judged++
		}
		if strings.HasPrefix(r.there, "yes") {
			places++
		}
	}
	most := slices.MaxFunc(list, func(x, y *result) int { return x.lines - y.lines }).lines
	fmt.Fprintf(&b, "\nThe bottleneck is right for %d of %d programs, the place for %d of %d. The longest page has %d lines.\n", rightOnes, len(list), places, judged, most)
	return b.String()
}

// cpuName is the model name of the processor.
func cpuName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	if m := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return runtime.GOARCH
}
