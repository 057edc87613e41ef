//go:build linux && guest

package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/guest/loop"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A document is what these tests look at of cyclestack.account/v1.
type document struct {
	Schema string
	CPU    struct{ Name string }
	Model  struct{ Name string }
	Source struct {
		Kind, How string
		Measured  bool
	}
	Accounts []account
}

type account struct {
	Scope struct {
		Kind, Label, Cgroup string
		Start               float64 `json:"start_s"`
		Duration            float64 `json:"duration_s"`
		Runs                int
	}
	Nodes []struct {
		Path, Name, Unit string
		Value            *float64
		Error, Coverage  *float64
		Reliable         bool
	}
	Missing []struct{ Node, Why string }
	Counts  []struct {
		Event           string
		Value, Coverage float64
	}
	Notes []string
	Times *account // the operating system's account of the same run

	Hotspots *struct {
		Samples int64
		Places  []struct {
			Function, Module string
			Share            float64
		}
	}
	Events []struct {
		Event, As, State string
		Value            *float64
	}

	Bottleneck []string
}

// instructions returns the account's count of instructions.
func (a *account) instructions(t *testing.T) float64 {
	t.Helper()
	for _, c := range a.Counts {
		if slices.Contains([]string{"INST_RETIRED", "PM_RUN_INST_CMPL", "PM_INST_CMPL", "instructions"}, c.Event) {
			return c.Value
		}
	}
	t.Fatalf("no instructions among the counts %v", a.Counts)
	return 0
}

// node returns a node's value.
func (a *account) node(t *testing.T, name string) float64 {
	t.Helper()
	for _, n := range a.Nodes {
		if n.Name == name && n.Value != nil {
			return *n.Value
		}
	}
	t.Fatalf("the account has no value of %s: %v, missing %v", name, a.Nodes, a.Missing)
	return 0
}

// statProgram is where the guest has cyclestack.
const statProgram = "/bin/cyclestack"

// stat runs cyclestack stat and returns the document that it writes.
func stat(t *testing.T, args ...string) document {
	t.Helper()
	d, status, text := statStatus(t, args...)
	if status != 0 {
		t.Fatalf("cyclestack stat %q: status %d\n%s", args, status, text)
	}
	return d
}

// statStatus runs cyclestack stat, which may fail; the document is that of a call that
// wrote one.
func statStatus(t *testing.T, args ...string) (d document, status int, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stat.json")
	out, err := exec.Command(statProgram, append([]string{"stat", "-v", "--format", "json", "-o", file}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		status = exit.ExitCode()
	}
	return readDocument(t, file), status, string(out)
}

// readDocument reads a document; where there is none it is empty.
func readDocument(t *testing.T, file string) (d document) {
	t.Helper()
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return d
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	if d.Schema != "cyclestack.account/v1" {
		t.Errorf("schema %q", d.Schema)
	}
	for _, a := range d.Accounts {
		for _, n := range a.Notes {
			t.Log("note:", n)
		}
	}
	return d
}

// rate is a node that every model has whose processor is emulated: instructions per
// cycle, or cycles per instruction.
var rate = map[string]string{"arm64": "ipc", "ppc64le": "CPI", "riscv64": "IPC"}[runtime.GOARCH]

func TestPMUStat(t *testing.T) {
	name, want := program(t, instructions)
	d := stat(t, "--user", "--nodes", rate, "--", name)
	cpu := map[string]string{"arm64": "neoverse-n1", "ppc64le": "power10", "riscv64": "riscv"}[runtime.GOARCH]
	if d.CPU.Name != cpu || d.Source.Kind != "perf-event" || !d.Source.Measured || len(d.Accounts) != 1 {
		t.Fatalf("%+v, want an account of what was counted on %s", d, cpu)
	}
	a := &d.Accounts[0]
	within(t, "instructions", a.instructions(t), want, 0.001)
	within(t, rate+" × 1000", 1000*a.node(t, rate), 1000, 0.001)
	for _, c := range a.Counts {
		if c.Coverage != 1 {
			t.Errorf("%s was counted for %g of the time", c.Event, c.Coverage)
		}
	}
}

// The program's status is passed on.
func TestPMUStatStatus(t *testing.T) {
	name := write(t, loop.Program{Loops: 1000, Status: 7})
	d, status, text := statStatus(t, "--nodes", rate, "--", name)
	if status != 7 || text != "" || len(d.Accounts) != 1 {
		t.Errorf("status %d, want 7; %d accounts, want one; printed %q", status, len(d.Accounts), text)
	}
}

func TestPMUStatIntervals(t *testing.T) {
	name, want := program(t, 300*million)
	d := stat(t, "--user", "--nodes", rate, "-I", "50", "--", name)
	sum, at := 0.0, 0.0
	for i := range d.Accounts {
		a := &d.Accounts[i]
		if a.Scope.Kind != "interval" || a.Scope.Start < at-1e-6 || a.Scope.Start > at+1e-6 {
			t.Errorf("%s %d begins at %g s, the one before ended at %g s", a.Scope.Kind, i, a.Scope.Start, at)
		}
		sum += a.instructions(t)
		at = a.Scope.Start + a.Scope.Duration
	}
	within(t, fmt.Sprintf("sum of %d intervals", len(d.Accounts)), sum, want, 0.001)
}

func TestPMUStatRepeat(t *testing.T) {
	name, want := program(t, instructions)
	d := stat(t, "--user", "--nodes", rate, "-r", "3", "--", name)
	if len(d.Accounts) != 1 || d.Accounts[0].Scope.Runs != 3 {
		t.Fatalf("%+v, want the account of three runs", d.Accounts)
	}
	within(t, "mean of three runs", d.Accounts[0].instructions(t), want, 0.001)
}

// What reads 0 because the machine does not count it is said to, for it may be that.
func TestPMUStatZeros(t *testing.T) {
	if runtime.GOARCH == "riscv64" {
		t.Skip("events that it does not count are refused there")
	}
	name, _ := program(t, 100*million)
	a := &stat(t, "--", name).Accounts[0]
	if !slices.ContainsFunc(a.Notes, func(n string) bool { return strings.HasPrefix(n, "read 0, ") }) {
		t.Errorf("no note says that events read 0: %q", a.Notes)
	}
	for _, n := range a.Nodes {
		switch {
		case n.Value != nil:
		case !slices.ContainsFunc(a.Missing, func(m struct{ Node, Why string }) bool { return m.Node == n.Path && m.Why != "" }):
			t.Errorf("%s has no value, and no reason is given", n.Path)
		}
	}
}

// The POWER CPI model works live: the cycles per instruction of the whole are known. The parts
// are 0, as the emulator lacks their events.
func TestPMUStatPOWER(t *testing.T) {
	if runtime.GOARCH != "ppc64le" {
		t.Skip("the model is POWER's")
	}
	for _, c := range []struct {
		args     string
		length   uint64
		separate bool
	}{
		{"--level 1", 100 * million, false},
		{"--level 3", 400 * million, false},
		{"--level 3 --no-multiplex", 20 * million, true},
	} {
		t.Run(c.args, func(t *testing.T) {
			name, n := program(t, c.length)
			d := stat(t, slices.Concat([]string{"--model", "power10-cpi"}, strings.Fields(c.args), []string{"--", name})...)
			if d.Model.Name != "power10-cpi" || len(d.Accounts) != 1 {
				t.Fatalf("%s, %d accounts", d.Model.Name, len(d.Accounts))
			}
			a := &d.Accounts[0]
			between(t, "CPI × 1000", 1000*a.node(t, "CPI"), 1000, -0.001, 0.02)
			for _, zero := range []string{"NOTHING_DISPATCHED_CPI", "ISSUE_STALL_CPI", "EXECUTION_STALL_CPI"} {
				if v := a.node(t, zero); v != 0 {
					t.Errorf("%s = %g, want 0", zero, v)
				}
			}
			for _, e := range a.Counts {
				if c.separate && e.Coverage != 1 {
					t.Errorf("%s was counted for %g of the time", e.Event, e.Coverage)
				}
				if e.Value > 0 && e.Coverage > 0.05 {
					between(t, e.Event, e.Value, n, -0.03, 0.03)
				}
			}
			t.Log(d.Source.How)
		})
	}
}

// A process is counted until it ends, in one account or with one for each thread.
func TestPMUStatProcess(t *testing.T) {
	process := func(args ...string) document {
		t.Helper()
		task := startTask(t, "threads", "20000000", "30000000", "50000000")
		task.line()
		file := filepath.Join(t.TempDir(), "stat.json")
		cmd := exec.Command(statProgram, append([]string{"stat", "-v", "--user", "--nodes", rate, "--format", "json", "-o", file, "-p", strconv.Itoa(task.pid())}, args...)...)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitForCounters(t, cmd.Process.Pid)
		task.tell()
		task.line()
		task.tell()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return readDocument(t, file)
	}
	// Each with what the Go runtime does.
	d := process()
	if len(d.Accounts) != 1 {
		t.Fatalf("%d accounts, want one", len(d.Accounts))
	}
	between(t, "instructions", d.Accounts[0].instructions(t), 100*million, 0, 0.03)

	var threads []float64
	d = process("--per-thread")
	for i := range d.Accounts {
		if kind := d.Accounts[i].Scope.Kind; kind != "thread" {
			t.Errorf("an account is of a %s", kind)
		}
		threads = append(threads, d.Accounts[i].instructions(t))
	}
	slices.Sort(threads)
	slices.Reverse(threads)
	if len(threads) < 3 {
		t.Fatalf("%d threads, want three at least", len(threads))
	}
	for i, want := range []float64{50 * million, 30 * million, 20 * million} {
		between(t, fmt.Sprint("thread ", i), threads[i], want, 0, 0.03)
	}
}

// waitForCounters waits until a process has opened counters, and no more of them.
func waitForCounters(t *testing.T, pid int) {
	t.Helper()
	for last, same, tries := 0, 0, 0; same < 3; tries++ {
		if tries > 1000 {
			t.Fatal("no counters are opened")
		}
		time.Sleep(10 * time.Millisecond)
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		n := 0
		for _, link := range links {
			if to, _ := os.Readlink(link); strings.Contains(to, "perf_event") {
				n++
			}
		}
		if same++; n == 0 || n != last {
			last, same = n, 0
		}
	}
}

func TestPMUStatCgroups(t *testing.T) {
	one, two := cgroup(t, "one"), cgroup(t, "two")
	name, n := program(t, instructions)
	long, m := program(t, 3*instructions)
	d := stat(t, "--user", "--nodes", rate, "-a", "-G", "one,two", "--", "/bin/inside", "cgroups", one, name, two, long, one, long)
	got := map[string]float64{}
	for i := range d.Accounts {
		got[filepath.Base(d.Accounts[i].Scope.Cgroup)] = d.Accounts[i].instructions(t)
	}
	within(t, "cgroup one", got["one"], n+m, 0.005)
	within(t, "cgroup two", got["two"], m, 0.005)
}

// TestPMUStatTimes checks the thread times next to the PMU's account.
func TestPMUStatTimes(t *testing.T) {
	long, _ := program(t, 100*instructions)
	for _, tt := range []struct {
		name    string
		args    []string
		waits   bool
		running float64 // processors, at least
	}{
		{"sleeps", []string{"--", "/bin/inside", "sleep", "300ms"}, true, 0},
		{"computes", []string{"--", long}, false, 0.8},
		{"several runs", []string{"-r", "2", "--", "/bin/inside", "sleep", "300ms"}, true, 0},
	} {
		a := &stat(t, append([]string{"--nodes", rate}, tt.args...)...).Accounts[0]
		if a.Times == nil {
			t.Errorf("%s: nothing of what threads did", tt.name)
			continue
		}
		all, ran := a.Times.node(t, "Threads"), a.Times.node(t, "CPUs_Utilised")
		blocked, queued := a.Times.node(t, "Blocked"), a.Times.node(t, "Runqueue_Wait")
		if sum := ran + blocked + queued; !(sum > all-1e-6) || !(sum < all+1e-6) {
			t.Errorf("%s: %v running, %v blocked and %v waiting are not %v threads", tt.name, ran, blocked, queued, all)
		}
		if waits := slices.Contains(a.Times.Bottleneck, "Threads.Blocked"); waits != tt.waits || !(ran >= tt.running) {
			t.Errorf("%s: the bottleneck is %q, with %v processors in use", tt.name, a.Times.Bottleneck, ran)
		}
	}
}

// Without a PMU stat says what the operating system counts, and passes the
// program's status on.
func TestNoPMUStat(t *testing.T) {
	name := write(t, loop.Program{Loops: 1000, Status: 7})
	d, status, text := statStatus(t, "--", name)
	if status != 7 || text != "" {
		t.Errorf("status %d, want 7; printed %q", status, text)
	}
	if d.Model.Name != "os-time" || !strings.Contains(d.Source.How, "sampled by the clock, as the kernel shows no core PMU") || len(d.Accounts) != 1 {
		t.Errorf("%+v, want an account of the operating system's", d)
	}

	// What needs the PMU is refused, before the program runs.
	for _, args := range [][]string{{"--source", "pmu"}, {"--model", "topdown"}, {"--user"}, {"--drilldown"}} {
		_, status, text := statStatus(t, append(args, "--", name)...)
		if status != 4 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "no core PMU") {
			t.Errorf("%s: status %d, want 4; printed %q, want a line on the PMU", args[0], status, text)
		}
	}
}

func TestNoPMUDoctor(t *testing.T) {
	out, err := exec.Command(statProgram, "doctor").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 4 {
		t.Errorf("doctor: %v, want status 4", err)
	}
	if !strings.Contains(string(out), "no core PMU") {
		t.Errorf("doctor does not say that there is no PMU:\n%s", out)
	}
}

func TestPMUDoctor(t *testing.T) {
	out, err := exec.Command(statProgram, "doctor").Output()
	if err != nil || !strings.Contains(string(out), "general counters at one time") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
}

// TestPMUStatCost limits the processor time of counting every 100 ms, relative to
// perf with the same events. In a guest time is instructions, so the limit is exact.
func TestPMUStatCost(t *testing.T) {
	sys := system(t)
	// In milliseconds, for starting and ending, and for each second between.
	cost := func(args ...string) (once, second float64) {
		t.Helper()
		spent := func(d time.Duration) float64 {
			table := measureOne(t, sys, perfevent.Spec{
				Always: group(t, sys, "task-clock"),
				Target: command(slices.Concat(args, []string{"--", "/bin/inside", "sleep", d.String()})...),
			}, nil)
			return value(table.Cell(0, 0)) / 1e6
		}
		spent(0) // what it will find in caches from now on
		short, long := spent(time.Second), spent(11*time.Second)
		second = (long - short) / 10
		return short - second, second
	}
	events := map[string]string{"arm64": "{r11,r8}", "ppc64le": "{r600f4,r500fa}", "riscv64": "{cycles,instructions}"}[runtime.GOARCH]
	perfOnce, perfSecond := cost(slices.Concat(perfCommand, []string{"stat", "-a", "-I", "100", "-x,", "-o", "/dev/null", "-e", events})...)
	once, second := cost(statProgram, "stat", "-a", "-I", "100", "--nodes", rate, "--format", "csv", "-o", "/dev/null")
	t.Logf("cyclestack takes %.2f ms a second, and perf %.2f; to start and end %.1f and %.1f", second, perfSecond, once, perfOnce)
	if !(second <= 4*perfSecond) {
		t.Errorf("each second costs %.2f ms, and perf's %.2f", second, perfSecond)
	}
}

// Samples of the clock name the code next to what the PMU counts, and take none of its
// counts away.
func TestPMUStatPlaces(t *testing.T) {
	name, want := program(t, instructions)
	d := stat(t, "--user", "--nodes", rate, "--", name)
	a := &d.Accounts[0]
	within(t, "instructions", a.instructions(t), want, 0.001)
	if a.Hotspots == nil || len(a.Hotspots.Places) == 0 || !(a.Hotspots.Places[0].Share > 0.5) {
		t.Errorf("%+v, want the loop's place; notes %q", a.Hotspots, a.Notes)
	}
	if d = stat(t, "--user", "--nodes", rate, "--no-places", "--", name); d.Accounts[0].Hotspots != nil {
		t.Errorf("%+v without places", d.Accounts[0].Hotspots)
	}
}

// Events of the user's own are counted instead of a plan's: the PMU's, those of groups and
// software's.
func TestPMUStatEvents(t *testing.T) {
	name, want := program(t, instructions)
	d := stat(t, "-e", "{cycles:u,instructions:u}", "-e", "page-faults", "--", name)
	list := d.Accounts[0].Events
	if len(list) != 3 || list[1].Event != "instructions:u" && list[1].As != "instructions:u" || list[2].Event != "page-faults" {
		t.Fatalf("%+v", list)
	}
	within(t, "instructions:u", *list[1].Value, want, 0.001)
	within(t, "cycles:u", *list[0].Value, want, 0.001) // a cycle each
	if *list[2].Value < 1 {
		t.Errorf("%v page faults", *list[2].Value)
	}
}
