//go:build linux

package perfevent_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cgroups"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// machine is the system that the tests run on. Tests that count are skipped
// where nothing can be counted.
func machine(t testing.TB) *perfevent.System {
	t.Helper()
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	if sys.PMU("software") == nil {
		t.Skip("the kernel has no perf_event_open")
	}
	return sys
}

func events(t testing.TB, sys *perfevent.System, names ...string) []perfevent.Event {
	t.Helper()
	var list []perfevent.Event
	for _, n := range names {
		e, err := sys.Resolve(n)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// role is a command that plays a role.
func role(text string) perfevent.Target {
	return perfevent.Target{Command: []string{os.Args[0]}, Env: append(os.Environ(), roleEnv+"="+text)}
}

// start starts a count, which ends with the test.
func start(t testing.TB, sys *perfevent.System, spec perfevent.Spec) *perfevent.Run {
	t.Helper()
	r, err := perfevent.Start(context.Background(), sys, spec)
	if e := (*perfevent.OpenError)(nil); errors.As(err, &e) && errors.Is(e, syscall.EACCES) {
		t.Skipf("not allowed here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// one counts until the end and returns the only table.
func one(t testing.TB, sys *perfevent.System, spec perfevent.Spec) (*counts.Table, *perfevent.Run) {
	t.Helper()
	r := start(t, sys, spec)
	if !r.Next() {
		t.Fatalf("no table: %v", r.Err())
	}
	table := r.Table().Clone()
	if r.Next() {
		t.Fatal("a second table")
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return table, r
}

// column returns the cell of an event in a scope.
func column(t testing.TB, table *counts.Table, scope int, event string) *counts.Cell {
	t.Helper()
	i := slices.IndexFunc(table.Columns, func(c counts.Column) bool { return c.Event == event })
	if i < 0 {
		t.Fatalf("no column %s", event)
	}
	return table.Cell(scope, i)
}

// near fails unless a value is within a share of another.
func near(t testing.TB, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*math.Abs(want)) {
		t.Errorf("%s: got %.0f, want %.0f within %g %%", what, got, want, 100*share)
	}
}

// whole fails unless what was counted of a command is what the kernel's account
// of it says.
func whole(t *testing.T, what string, table *counts.Table, r *perfevent.Run) {
	t.Helper()
	used := usageOf(r.State().SysUsage().(*syscall.Rusage)) // of it and of the children that it waited for
	// The account has what was before exec, too.
	near(t, what+": page-faults", column(t, table, 0, "page-faults").Value, float64(used.faults), 0.1)
	clock := column(t, table, 0, "task-clock")
	if least := 0.9*float64(used.time) - 2e6; clock.Value < least || clock.Value > 1.1*table.Duration*1e9*float64(runtime.NumCPU()) {
		t.Errorf("%s: task-clock %.0f, the account says %v in %v s", what, clock.Value, used.time, table.Duration)
	}
	near(t, what+": time enabled", clock.Enabled, clock.Value, 0.01)
}

func TestCommand(t *testing.T) {
	sys := machine(t)
	table, r := one(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{events(t, sys, "page-faults", "context-switches"), events(t, sys, "task-clock")},
		Always: events(t, sys, "duration_time", "minor-faults"),
		Target: role("spin 200000000"),
	})
	if !r.State().Success() {
		t.Fatal(r.State())
	}
	whole(t, "the command", table, r)
	clock := column(t, table, 0, "task-clock")
	if faults, minor := column(t, table, 0, "page-faults"), column(t, table, 0, "minor-faults"); faults.Value < 50 || minor.Value < 50 {
		t.Errorf("%v page faults, %v minor ones, of a program of Go", faults.Value, minor.Value)
	}
	if c := clock.Coverage(); c != 1 {
		t.Errorf("coverage %v", c)
	}
	near(t, "duration_time", column(t, table, 0, "duration_time").Value, table.Duration*1e9, 1e-9)
	var groups []int
	for _, c := range table.Columns {
		groups = append(groups, c.Group)
	}
	if want := []int{1, 1, 2, 0, 0}; !slices.Equal(groups, want) {
		t.Errorf("groups %v, want %v", groups, want)
	}
	if table.Scopes[0].Kind != counts.Run || table.Interval || table.Start != 0 {
		t.Errorf("the table is %+v of %+v", table.Interval, table.Scopes)
	}
}

// TestOnlyTheCommand has this program start others while it counts one: those are not
// counted.
func TestOnlyTheCommand(t *testing.T) {
	sys := machine(t)
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	target := role("idle 0 200000000") // it spins long, so what was before exec is a small part
	target.Stdin = in
	if target.Stdout, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	defer target.Stdout.Close()
	r := start(t, sys, perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "page-faults", "task-clock")}, Target: target})
	in.Close()
	for range 4 {
		other := exec.Command(os.Args[0])
		other.Env = role("spin 1").Env
		if err := other.Run(); err != nil {
			t.Fatal(err)
		}
	}
	hold.Close()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	table := r.Table().Clone()
	if r.Next() {
		t.Fatal("a second table")
	}
	whole(t, "beside others", table, r)
}

// Children are counted, and are not with NoInherit.
func TestInherit(t *testing.T) {
	sys := machine(t)
	spec := perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "task-clock", "page-faults")}, Target: role("fork 3 80000000")}
	all, r := one(t, sys, spec)
	whole(t, "with children", all, r)
	spec.NoInherit = true
	alone, _ := one(t, sys, spec)
	if a, b := column(t, alone, 0, "page-faults").Value, column(t, all, 0, "page-faults").Value; a > b/3 || a <= 0 {
		t.Errorf("%.0f page faults without the children, %.0f with them", a, b)
	}
}

func TestIntervalsSumToTotal(t *testing.T) {
	sys := machine(t)
	r := start(t, sys, perfevent.Spec{
		Groups:   [][]perfevent.Event{events(t, sys, "task-clock", "page-faults")},
		Target:   role("fork 4 60000000"),
		Interval: 15 * time.Millisecond,
	})
	total := counts.NewTotal(0)
	n := 0
	end := 0.0
	var layout *counts.Layout
	for r.Next() {
		table := r.Table()
		if !table.Interval || table.Scopes[0].Kind != counts.Interval {
			t.Error("an interval does not say so")
		}
		if layout != nil && layout != table.Layout {
			t.Error("the layout changed")
		}
		if math.Abs(table.Start-end) > 1e-9 {
			t.Errorf("an interval starts at %v, the last ended at %v", table.Start, end)
		}
		layout, end = table.Layout, table.Start+table.Duration
		if err := total.Add(table); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 3 {
		t.Fatalf("%d intervals", n)
	}
	whole(t, "the sum", total.Table(), r)
}

func TestProcessors(t *testing.T) {
	sys := machine(t)
	spec := perfevent.Spec{
		Groups:  [][]perfevent.Event{events(t, sys, "cpu-clock", "context-switches")},
		Target:  perfevent.Target{All: true},
		Timeout: time.Duration(testlong.Size(100, 1000)) * time.Millisecond,
		Keep:    counts.By(0).With(counts.CPU),
	}
	began := time.Now()
	table, r := one(t, sys, spec)
	// A clock runs from its enabling, which other load may delay, to its reading.
	least, most := float64(spec.Timeout)/2, float64(time.Since(began))
	if r.State() != nil {
		t.Error("a state of no command")
	}
	if len(table.Scopes) != len(sys.CPUs) {
		t.Fatalf("%d scopes of %d processors", len(table.Scopes), len(sys.CPUs))
	}
	for i, s := range table.Scopes {
		if s.Kind != counts.CPU || s.CPU != sys.CPUs[i] || s.CPUs != 1 {
			t.Errorf("scope %+v", s)
		}
		clock := column(t, table, i, "cpu-clock")
		near(t, "cpu-clock", clock.Value, clock.Enabled, 0.01)
		if clock.Value < least || clock.Value > most {
			t.Errorf("cpu-clock %.0f, want %.0f to %.0f", clock.Value, least, most)
		}
	}
	spec.Keep = 0
	began = time.Now()
	sum, _ := one(t, sys, spec)
	most = float64(time.Since(began))
	if len(sum.Scopes) != 1 || sum.Scopes[0].CPUs != len(sys.CPUs) {
		t.Fatalf("scopes %+v", sum.Scopes)
	}
	n := float64(len(sys.CPUs))
	if all := column(t, sum, 0, "cpu-clock").Value; all < least*n || all > most*n {
		t.Errorf("all cpu-clocks %.0f, want %.0f to %.0f", all, least*n, most*n)
	}
}

// The time stamp counter counts on all processors at one rate.
func TestTSC(t *testing.T) {
	sys := machine(t)
	if sys.PMU("msr") == nil {
		t.Skip("no msr PMU")
	}
	table, _ := one(t, sys, perfevent.Spec{
		Always:  events(t, sys, "msr/tsc/"),
		Target:  perfevent.Target{All: true},
		Timeout: 100 * time.Millisecond,
		Keep:    counts.By(0).With(counts.CPU),
	})
	first := table.Cell(0, 0).Value / table.Cell(0, 0).Enabled
	for i := range table.Scopes {
		c := table.Cell(i, 0)
		if rate := c.Value / c.Enabled; rate < 0.1 || rate > 10 || math.Abs(rate-first) > 0.01*first {
			t.Errorf("%s: %v cycles per nanosecond, the first processor has %v", table.Scopes[i].Label, rate, first)
		}
	}
}

// A process's threads that come and go are all counted, and each once: also
// those that come while the counters are opened.
func TestProcess(t *testing.T) {
	sys := machine(t)
	for _, threads := range []string{"threads 1 3000000", "threads 5 1000000", "threads 20 10000"} {
		a := cast(t, threads)
		for range testlong.Size(2, 4) {
			before := a.step()
			r := start(t, sys, perfevent.Spec{
				Groups: [][]perfevent.Event{events(t, sys, "task-clock"), events(t, sys, "page-faults", "context-switches")},
				Target: perfevent.Target{PIDs: []int{a.cmd.Process.Pid}},
			})
			from := a.step()
			to := a.busy(from)
			r.Stop()
			if !r.Next() {
				t.Fatal(r.Err())
			}
			after := a.step()
			got := int(column(t, r.Table(), 0, "page-faults").Value)
			if least, most := to.since(from).faults, after.since(before).faults; got < least*99/100 || got > most*101/100 {
				t.Errorf("%s: counted %d page faults, it had %d at least and %d at most; %q", threads, got, least, most, r.Table().Notes)
			}
			if r.Next() {
				t.Error("a second table")
			}
			r.Close()
		}
		a.end()
	}
}

// A process that is just starting makes threads while the counters are opened.
func TestProcessStarting(t *testing.T) {
	sys := machine(t)
	for range testlong.Size(4, 10) {
		a := launch(t, "steps 4 5000000")
		r := start(t, sys, perfevent.Spec{
			Groups: [][]perfevent.Event{events(t, sys, "task-clock"), events(t, sys, "page-faults"), events(t, sys, "context-switches")},
			Target: perfevent.Target{PIDs: []int{a.cmd.Process.Pid}},
		})
		a.line()
		before := a.step()
		after := a.step()
		r.Stop()
		if !r.Next() {
			t.Fatal(r.Err())
		}
		got := int(column(t, r.Table(), 0, "page-faults").Value)
		// Faults while it was starting may be counted, and those of the two steps.
		if all := after.faults; got < 2*after.since(before).faults*95/100 || got > all*101/100 {
			t.Errorf("counted %d page faults, a step had %d, and all %d: %q", got, after.since(before).faults, all, r.Table().Notes)
		}
		r.Close()
		a.end()
	}
}

// Threads are kept apart, also those that come later.
func TestThreads(t *testing.T) {
	sys := machine(t)
	for range 20 {
		if countLaterThreads(t, sys) >= 5 {
			return
		}
	}
	t.Error("most of the threads that came later had ended before they could be counted, each time")
}

// countLaterThreads counts ten threads that come later and returns how many of them
// were seen. On a busy machine some may have ended before: a note says how many.
func countLaterThreads(t *testing.T, sys *perfevent.System) int {
	t.Helper()
	a := cast(t, "steps 5 60000000")
	a.step()
	r := start(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{events(t, sys, "task-clock")},
		Target: perfevent.Target{PIDs: []int{a.cmd.Process.Pid}},
		Keep:   counts.By(0).With(counts.Thread),
	})
	go func() {
		a.step()
		a.step()
		r.Stop()
	}()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	table := r.Table()
	var times []float64
	for i, s := range table.Scopes {
		if s.Kind != counts.Thread || s.TID <= 0 {
			t.Errorf("scope %+v", s)
		}
		times = append(times, table.Cell(i, 0).Value)
	}
	missed := 0
	for _, note := range table.Notes {
		if strings.Contains(note.Text, "had ended before they could be counted") {
			if _, err := fmt.Sscan(note.Text, &missed); err != nil {
				t.Error(note.Text, err)
			}
		}
	}
	slices.Sort(times)
	slices.Reverse(times)
	const workers = 10 // two steps of five
	seen := max(0, workers-missed)
	if len(times) < seen {
		t.Fatalf("%d threads, want %d of %d: %q", len(times), seen, workers, table.Notes)
	}
	rest, all := 0.0, 0.0
	for i, ns := range times {
		all += ns
		if i >= workers {
			rest += ns // of the Go runtime's threads
		}
	}
	if seen > 0 && times[seen-1] < 1e6 || rest > all/workers {
		t.Errorf("threads ran for %.0f ns, want %d with more than the others together: %q", times, seen, table.Notes)
	}
	r.Close()
	a.end()
	return seen
}

// A command's threads are kept apart from the beginning.
func TestThreadsOfCommand(t *testing.T) {
	sys := machine(t)
	target := role("steps 5 20000000")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	target.Stdin = in
	if _, err := out.WriteString("\n\n"); err != nil {
		t.Fatal(err)
	}
	out.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	target.Stdout = null
	table, r := one(t, sys, perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "task-clock", "page-faults")}, Target: target, Keep: counts.By(0).With(counts.Thread)})
	sum := 0.0
	for i := range table.Scopes {
		sum += column(t, table, i, "page-faults").Value
	}
	if len(table.Scopes) < 11 || !r.State().Success() {
		t.Errorf("%d threads, %v", len(table.Scopes), r.State())
	}
	// Threads that come are counted from a moment after their beginning.
	if all := float64(usageOf(r.State().SysUsage().(*syscall.Rusage)).faults); sum > 1.01*all || sum < 0.3*all {
		t.Errorf("all threads have %.0f page faults, the account says %.0f", sum, all)
	}
	t.Log(table.Notes)
}

// Counting a process ends with it.
func TestProcessEnds(t *testing.T) {
	sys := machine(t)
	a := cast(t, "steps 1 1000")
	r := start(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{events(t, sys, "task-clock")},
		Target: perfevent.Target{PIDs: []int{a.cmd.Process.Pid}},
	})
	ended := make(chan struct{})
	go func() {
		a.end()
		close(ended)
	}()
	if !r.Next() || r.Table().Duration > 10 || r.Next() || r.Err() != nil {
		t.Errorf("counted for %v s: %v", r.Table().Duration, r.Err())
	}
	<-ended
}

// A task is counted only while it is on the processors it is limited to, and
// these together are all.
func TestOnCPUs(t *testing.T) {
	sys := machine(t)
	if len(sys.CPUs) < 2 {
		t.Skip("one processor")
	}
	target := role("fork 4 60000000")
	target.OnCPUs = ids(sys)
	all, r := one(t, sys, perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "task-clock", "page-faults")}, Target: target})
	whole(t, "on all processors", all, r)
}

func TestRepeat(t *testing.T) {
	sys := machine(t)
	table, r := one(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{events(t, sys, "task-clock"), events(t, sys, "page-faults")},
		Always: events(t, sys, "minor-faults"),
		Target: role("spin 10000000"), Repeat: 3, Separate: true,
	})
	if !r.State().Success() || table.Elapsed <= 0 || len(table.Notes) == 0 {
		t.Errorf("%v, ± %v s, %q", r.State(), table.Elapsed, table.Notes)
	}
	for event, repeats := range map[string]int32{"task-clock": 3, "page-faults": 3, "minor-faults": 6} {
		c := column(t, table, 0, event)
		coverage := float64(repeats) / 6 // of the time of all runs
		if c.Repeats != repeats || !(c.Variance >= 0) || c.Coverage() != coverage || c.Value <= 0 {
			t.Errorf("%s: %+v", event, *c)
		}
	}
	for _, c := range table.Columns {
		if parts := map[bool]int{false: 2}[c.Event == "minor-faults"]; c.Parts != parts {
			t.Errorf("%s is of %d runs", c.Event, c.Parts)
		}
	}
	if c := column(t, table, 0, "task-clock"); c.Variance <= 0 || math.Sqrt(c.Variance) > c.Value {
		t.Errorf("task-clock: %+v", *c)
	}
}

func TestDelayAndTimeout(t *testing.T) {
	sys := machine(t)
	wait := time.Duration(testlong.Size(200, 1000)) * time.Millisecond
	spec := perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "task-clock")}, Target: role("spin 40000000000"),
		Delay: wait, Timeout: wait}
	table, r := one(t, sys, spec)
	if r.State() != nil {
		t.Error("the command has ended")
	}
	// One thread cannot run for longer than the counting, whose end is read a moment before
	// the counters.
	if c := table.Cell(0, 0); c.Value <= 0 || c.Value > (table.Duration+0.5)*1e9 || table.Duration < wait.Seconds() {
		t.Errorf("%+v in %v s", *c, table.Duration)
	}
	r.Close()
	spec.Target, spec.Timeout, spec.Delay = role("sleep 1"), 0, time.Hour
	table, r = one(t, sys, spec)
	if c := table.Cell(0, 0); c.Ok() && c.Enabled > 0 || r.State() == nil || len(table.Notes) == 0 {
		t.Errorf("%+v of a command that ended before counting began, %q", *c, table.Notes)
	}
}

func TestState(t *testing.T) {
	sys := machine(t)
	spec := perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "task-clock")}}
	for _, tt := range []struct {
		role   string
		code   int
		signal syscall.Signal
	}{{"exit 0", 0, -1}, {"exit 7", 7, -1}, {"suicide", -1, syscall.SIGKILL}} {
		for _, apart := range []bool{false, true} {
			spec.Target, spec.NoInherit = role(tt.role), apart
			_, r := one(t, sys, spec)
			ws := r.State().Sys().(syscall.WaitStatus)
			if r.State().ExitCode() != tt.code || tt.code < 0 && ws.Signal() != tt.signal {
				t.Errorf("%s: %v", tt.role, r.State())
			}
		}
	}
	spec.NoInherit = false
	spec.Target = role("sleep 60000")
	r := start(t, sys, spec)
	if err := r.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !r.Next() || r.Next() || r.State().Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("after SIGTERM: %v", r.State())
	}
	if err := r.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to what has ended: %v", err)
	}
}

// Nothing is left behind: no process, no file.
func TestNothingIsLeft(t *testing.T) {
	sys := machine(t)
	before := openFiles(t)
	spec := perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "task-clock", "page-faults")}, Target: role("sleep 60000")}
	for range 3 {
		r := start(t, sys, spec)
		r.Stop()
		for r.Next() {
		}
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		_ = r.Signal(syscall.SIGTERM)
	}
	for _, command := range [][]string{{"/does/not/exist"}, {"no-such-program-anywhere"}, {"/etc/passwd"}, {"/"}, {""}} {
		for _, apart := range []bool{false, true} {
			spec.Target, spec.NoInherit = perfevent.Target{Command: command}, apart
			r, err := perfevent.Start(context.Background(), sys, spec)
			if e := (*exec.Error)(nil); !errors.As(err, &e) {
				t.Errorf("%q: %v, %v", command, r, err)
			}
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// A script that does not say by what it is run, is run by the shell.
func TestScript(t *testing.T) {
	sys := machine(t)
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no shell")
	}
	name := t.TempDir() + "/script"
	if err := os.WriteFile(name, []byte("exit $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, r := one(t, sys, perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "task-clock")}, Target: perfevent.Target{Command: []string{name, "5"}}})
	if r.State().ExitCode() != 5 {
		t.Error(r.State())
	}
}

func TestContext(t *testing.T) {
	sys := machine(t)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	r, err := perfevent.Start(ctx, sys, perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "task-clock")}, Target: role("sleep 60000")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cancel(cause)
	if !r.Next() || r.Next() || r.Err() != cause {
		t.Errorf("ended with %v", r.Err())
	}
	if _, err := perfevent.Start(ctx, sys, perfevent.Spec{Target: role("sleep 60000")}); err != cause {
		t.Errorf("started with %v", err)
	}
}

// An event that the kernel does not have becomes a gap, with a note; if it has
// none, that is an error with an advice.
func TestNotSupported(t *testing.T) {
	sys := machine(t)
	bad := perfevent.Event{Name: "nonsense", Attr: perfevent.Attr{Type: 1, Config: 12345}}
	table, _ := one(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{append([]perfevent.Event{bad}, events(t, sys, "task-clock", "page-faults")...)},
		Target: role("spin 1000"),
	})
	if c := column(t, table, 0, "nonsense"); c.State != counts.NotSupported {
		t.Errorf("%+v", *c)
	}
	if c := column(t, table, 0, "page-faults"); !c.Ok() || table.Columns[1].Group != 1 || table.Columns[2].Group != 1 {
		t.Errorf("%+v in groups %v", *c, table.Columns)
	}
	if !slices.ContainsFunc(table.Notes, func(n counts.Note) bool { return strings.Contains(n.Text, "nonsense") }) {
		t.Errorf("notes %q", table.Notes)
	}
	_, err := perfevent.Start(context.Background(), sys, perfevent.Spec{Groups: [][]perfevent.Event{{bad}}, Target: role("spin 1000")})
	if e := (*perfevent.OpenError)(nil); !errors.As(err, &e) || e.Event != "nonsense" || e.Advice == "" {
		t.Errorf("%v", err)
	}
}

func TestTargetErrors(t *testing.T) {
	sys := machine(t)
	group := [][]perfevent.Event{events(t, sys, "task-clock")}
	for name, spec := range map[string]perfevent.Spec{
		"nothing to count":       {},
		"no process 4194305":     {Target: perfevent.Target{PIDs: []int{4194305}}},
		"no thread 4194305":      {Target: perfevent.Target{TIDs: []int{4194305}}},
		"not online":             {Target: perfevent.Target{CPUs: []int{60000}}},
		"together with":          {Target: perfevent.Target{PIDs: []int{1}, All: true}},
		"counted on processors":  {Target: perfevent.Target{PIDs: []int{1}, Cgroups: []string{"/"}}},
		"limits tasks":           {Target: perfevent.Target{All: true, OnCPUs: []int{0}}},
		"only a command":         {Target: perfevent.Target{All: true}, Repeat: 2},
		"intervals or runs":      {Target: role("exit 0"), Repeat: 2, Interval: time.Second},
		"threads or runs":        {Target: role("exit 0"), Separate: true, Keep: counts.By(0).With(counts.Thread)},
		"not for processors":     {Target: perfevent.Target{All: true}, Keep: counts.By(0).With(counts.Thread)},
		"no cgroups":             {Target: perfevent.Target{All: true}, Keep: counts.By(0).With(counts.Cgroup)},
		"cannot be split by cpu": {Target: role("exit 0"), Keep: counts.By(0).With(counts.CPU)},
		"no-such-cgroup":         {Target: perfevent.Target{All: true, Cgroups: []string{"no-such-cgroup"}}},
	} {
		spec.Groups = group
		_, err := perfevent.Start(context.Background(), sys, spec)
		if e := (*perfevent.TargetError)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		} else if flag.MatchString(err.Error()) {
			t.Errorf("%q names a flag", err)
		} else if fix := e.Fix.Action == counts.CountProcessors; fix != (name == "counted on processors" || name == "cannot be split by cpu") {
			t.Errorf("%s: fix %v", name, e.Fix)
		}
	}
}

// flag is a flag of a command line.
var flag = regexp.MustCompile(`(^|[ (])--?[a-zA-Z]`)

// What perf counts within the time that this package does, it counts as well.
func TestAgainstPerf(t *testing.T) {
	sys := machine(t)
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Skip("no perf")
	}
	out, err := os.Create(t.TempDir() + "/perf.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	names := []string{"page-faults", "context-switches", "cpu-clock", "msr/tsc/"}
	if sys.PMU("msr") == nil {
		names = names[:3]
	}
	target := role("fork 20 10000000")
	target.All = true
	target.Command = []string{perf, "stat", "-a", "-x,", "-o", out.Name(), "-e", "{" + strings.Join(names, ",") + "}", os.Args[0]}
	table, r := one(t, sys, perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, names...)}, Target: target})
	text, err := io.ReadAll(out)
	if err != nil || !r.State().Success() {
		t.Skipf("perf cannot count here: %s", text)
	}
	perfs := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(line, ",")
		if len(f) < 3 || !slices.Contains(names, f[2]) {
			continue
		}
		want, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		if f[1] == "msec" {
			want *= 1e6
		}
		perfs[f[2]] = want
		// Perf starts and ends within this package's time, and prints hundredths of milliseconds.
		if got := column(t, table, 0, f[2]).Value; got < want-1e4 {
			t.Errorf("%s: got %.0f, perf %.0f", f[2], got, want)
		}
	}
	if len(perfs) != len(names) {
		t.Fatalf("perf printed %s", text)
	}
	if len(names) == 4 {
		rate := column(t, table, 0, "msr/tsc/").Value / column(t, table, 0, "cpu-clock").Value
		// The events of a group are enabled and read one after the other on each
		// processor. At most a timer interrupt is in between.
		const between = 100e3 // ns
		near(t, "cycles of the time stamp counter per second", rate*1e9, perfs["msr/tsc/"]/perfs["cpu-clock"]*1e9,
			4*between*float64(len(sys.CPUs))/perfs["cpu-clock"])
	}
}

// A cgroup's processes are counted, and nothing else.
func TestCgroup(t *testing.T) {
	sys := machine(t)
	mount := cgroupMount(t)
	if os.Getenv(guestEnv) != "" {
		// The kernel gives perf_event to children when this is first written.
		if err := os.WriteFile(mount+"/cgroup.subtree_control", []byte("+pids"), 0); err != nil {
			t.Skip(err)
		}
	}
	name := "perfevent-test-" + strconv.Itoa(os.Getpid())
	dir := mount + "/" + name
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip(err)
	}
	a := cast(t, "steps 3 30000000")
	defer func() {
		a.end()
		for range 100 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(a.cmd.Process.Pid)), 0o644); err != nil {
		t.Skip(err)
	}
	r := start(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{events(t, sys, "task-clock", "page-faults")},
		Target: perfevent.Target{All: true, Cgroups: []string{name, "/"}},
		Keep:   counts.By(0).With(counts.Cgroup),
	})
	from := a.step()
	used := a.step().since(from).faults
	r.Stop()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	table := r.Table()
	if s := table.Scopes; len(s) != 2 || s[0].Kind != counts.Cgroup || s[0].Cgroup != name || s[1].Cgroup != "/" || s[0].CPUs != len(sys.CPUs) {
		t.Fatalf("scopes %+v", s)
	}
	if table.Cell(0, 0).State == counts.NotSupported {
		t.Skip(table.Notes)
	}
	own, all := column(t, table, 0, "page-faults").Value, column(t, table, 1, "page-faults").Value
	if own < 1.8*float64(used) || own > 3*float64(used) {
		t.Errorf("two steps had %v page faults, of which one %v", own, used)
	}
	if all < own {
		t.Errorf("the cgroup has %v, all have %v", own, all)
	}
}

// cgroupMount returns where the cgroups of perf_event are.
func cgroupMount(t *testing.T) string {
	t.Helper()
	dir, err := cgroups.Mount()
	if err != nil {
		t.Skip(err)
	}
	return dir
}

// What is not allowed, and what there are no files for, is told in one line
// with the way out.
func TestLimits(t *testing.T) {
	sys := machine(t)
	if os.Getuid() != 0 {
		t.Skip("privileges are dropped from root's")
	}
	setuid := ""
	if st, err := os.Stat("/bin/su"); err == nil && st.Mode()&os.ModeSetuid != 0 {
		setuid = "the command was not counted"
	}
	own, threads := "only user mode is counted", "threads began later"
	if sys.Probe(os.DirFS("/")).Paranoid > 2 { // as Debian and Android have it
		setuid = ""
		own, threads = "kernel.perf_event_paranoid is", "kernel.perf_event_paranoid is"
	}
	for _, tt := range []struct{ role, want string }{
		{"limited files", "too many open files"},
		{"limited files", "ulimit -n"},
		{"limited user system", "kernel.perf_event_paranoid is"},
		{"limited user own", own},
		{"limited user threads", threads},
		{"limited user setuid", setuid},
	} {
		if tt.want == "" {
			continue
		}
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), roleEnv+"="+tt.role)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", tt.role, err, out)
		}
		if strings.Contains(string(out), "allowed anyway") {
			t.Logf("%s: %s", tt.role, out)
			continue
		}
		if !strings.Contains(string(out), tt.want) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: got %q, want %q in one line", tt.role, out, tt.want)
		}
	}
}

// limitedThreads follows the threads of another process without privileges, and
// prints what was noted of them.
func limitedThreads(sys *perfevent.System, spec perfevent.Spec) {
	c := exec.Command("/proc/self/exe")
	c.Env = []string{roleEnv + "=steps 3 100000000"}
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	spec.Target, spec.Timeout, spec.Keep = perfevent.Target{PIDs: []int{c.Process.Pid}}, 0, counts.By(0).With(counts.Thread)
	r, err := perfevent.Start(context.Background(), sys, spec)
	if err != nil {
		println(err.Error())
		return
	}
	go func() {
		_, _ = io.WriteString(in, "\n")
		lines.Scan()
		in.Close()
	}()
	for r.Next() {
	}
	println(strings.Join(counts.Texts(r.Table().Notes), "; "))
	r.Close()
	_ = c.Wait()
}

// limited counts under a limit and prints what comes of it.
func limited(args []string) {
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		panic(err)
	}
	e, err := sys.Resolve("task-clock")
	if err != nil {
		panic(err)
	}
	spec := perfevent.Spec{Groups: [][]perfevent.Event{{e}}, Target: perfevent.Target{All: true}, Timeout: time.Millisecond}
	if args[0] == "files" {
		l := syscall.Rlimit{Cur: 20, Max: 30}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
			panic(err)
		}
		spec.Groups = slices.Repeat(spec.Groups, 50)
	} else {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			panic(err)
		}
		switch args[1] {
		case "threads":
			limitedThreads(sys, spec)
			return
		case "setuid":
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				panic(err)
			}
			spec.Target, spec.Timeout = perfevent.Target{Command: []string{"/bin/su", "--version"}, Stdout: null}, 0
		case "own":
			spec.Target, spec.Timeout = perfevent.Target{Command: []string{"/proc/self/exe"}, Env: []string{roleEnv + "=exit 0"}}, 0
		}
	}
	r, err := perfevent.Start(context.Background(), sys, spec)
	if err != nil {
		println(err.Error())
		return
	}
	defer r.Close()
	for r.Next() {
		if t := r.Table(); len(t.Notes) > 0 {
			println(t.Cell(0, 0).State.String(), strings.Join(counts.Texts(t.Notes), "; "))
			return
		}
	}
	println("allowed anyway")
}
