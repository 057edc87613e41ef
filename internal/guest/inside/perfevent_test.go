//go:build linux && guest

package inside

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cgroups"
	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
	"github.com/cyclestack/cyclestack/internal/source/switches"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// raw is the code of an event that counts instructions on several counters, and general is how
// many these are.
var raw, general = func() (string, int) {
	switch runtime.GOARCH {
	case "arm64":
		return "r8", 6
	case "ppc64le":
		return "r2", 5
	}
	return "", 0 // RISC-V's has a counter of its own
}()

// system reads what the guest's kernel shows.
func system(t *testing.T) *perfevent.System {
	t.Helper()
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// group resolves events.
func group(t *testing.T, sys *perfevent.System, names ...string) []perfevent.Event {
	t.Helper()
	var list []perfevent.Event
	for _, name := range names {
		e, err := sys.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// measure counts to the end and returns the tables. When counting has begun, it calls
// during, which may be nil.
func measure(t *testing.T, sys *perfevent.System, spec perfevent.Spec, during func()) []*counts.Table {
	t.Helper()
	run, err := perfevent.Start(context.Background(), sys, spec)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if during != nil {
		during()
		run.Stop()
	}
	var tables []*counts.Table
	for run.Next() {
		tables = append(tables, run.Table().Clone())
	}
	if err := run.Err(); err != nil {
		t.Fatal(err)
	}
	if len(tables) == 0 {
		t.Fatal("no table")
	}
	for _, note := range tables[len(tables)-1].Notes {
		t.Log("note:", note)
	}
	return tables
}

// measureOne counts and returns the only table.
func measureOne(t *testing.T, sys *perfevent.System, spec perfevent.Spec, during func()) *counts.Table {
	t.Helper()
	tables := measure(t, sys, spec, during)
	if len(tables) != 1 {
		t.Fatalf("%d tables, want one", len(tables))
	}
	return tables[0]
}

// value returns a cell's count, NaN if it has none.
func value(c *counts.Cell) float64 {
	if !c.Ok() {
		return math.NaN()
	}
	return c.Value
}

func command(name ...string) perfevent.Target { return perfevent.Target{Command: name} }

func TestPMUInstructions(t *testing.T) {
	sys := system(t)
	name, want := program(t, instructions)
	count := func(events ...string) []counts.Cell {
		table := measureOne(t, sys, perfevent.Spec{Always: group(t, sys, events...), Target: command(name)}, nil)
		for i := range events {
			if c := table.Cell(0, i).Coverage(); c != 1 {
				t.Errorf("%s was counted for %g of the time", events[i], c)
			}
		}
		return table.Row(0)
	}
	row := count("instructions:u", "cycles:u", "task-clock")
	within(t, "instructions:u", value(&row[0]), want, 0.001)
	// The machine executes an instruction a cycle, and a cycle is a nanosecond.
	within(t, "cycles:u", value(&row[1]), want, 0.001)
	between(t, "task-clock", value(&row[2]), want, 0, 0.02)
	row = count("instructions")
	between(t, "instructions, the kernel's too", value(&row[0]), want, 0.0001, 0.02)
}

// What the kernel's own perf counts is what we count.
func TestPMUPerf(t *testing.T) {
	sys := system(t)
	name, _ := program(t, instructions)
	for _, events := range [][]string{{"instructions:u", "cycles:u"}, {"instructions", "cycles"}} {
		table := measureOne(t, sys, perfevent.Spec{Groups: [][]perfevent.Event{group(t, sys, events...)}, Target: command(name)}, nil)
		want := map[string]float64{}
		for line := range strings.Lines(perf(t, "stat", "-x,", "-e", "{"+strings.Join(events, ",")+"}", name)) {
			if f := strings.Split(line, ","); len(f) > 4 {
				want[f[2]], _ = strconv.ParseFloat(f[0], 64)
			}
		}
		for i, e := range events {
			tolerance := 0.02 // the kernel does not do the same work twice
			if exact && strings.HasSuffix(e, ":u") {
				tolerance = 1e-6
			}
			between(t, e+" as perf counts them", value(table.Cell(0, i)), want[e], -tolerance, tolerance)
		}
	}
}

// Events of a group are counted together, in the same windows.
func TestPMUGroup(t *testing.T) {
	sys := system(t)
	name, want := program(t, instructions)
	table := measureOne(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{group(t, sys, "cycles:u", "instructions:u"), group(t, sys, "task-clock")},
		Target: command(name),
	}, nil)
	c := table.Columns
	if c[0].Group == 0 || c[0].Group != c[1].Group || c[0].Group == c[2].Group {
		t.Errorf("groups %d %d %d, want two the same and one other", c[0].Group, c[1].Group, c[2].Group)
	}
	cycles, n := table.Cell(0, 0), table.Cell(0, 1)
	if cycles.Enabled != n.Enabled || cycles.Running != n.Running {
		t.Errorf("times differ in a group: %v, %v", *cycles, *n)
	}
	within(t, "instructions", value(n), want, 0.001)
	within(t, "cycles", value(cycles), value(n), 0.0001)
}

// A group with more events than there are counters is divided, and a note says so. Other
// groups are counted all the same.
func TestPMUGroupTooLarge(t *testing.T) {
	needRaw(t)
	sys := system(t)
	name, want := program(t, 300*million)
	large := make([]string, general+3)
	for i := range large {
		large[i] = raw
	}
	table := measureOne(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{group(t, sys, large...), group(t, sys, "instructions:u")},
		Target: command(name),
	}, nil)
	within(t, "instructions:u", value(table.Cell(0, len(large))), want, 0.01)
	together := 0
	for i := range large {
		c := table.Cell(0, i)
		if c.Ok() {
			within(t, fmt.Sprint("event ", i), c.Value, want, 0.01)
		}
		if c.Ok() && table.Columns[i].Group == table.Columns[0].Group {
			together++
		}
		if c.State == counts.Absent {
			t.Errorf("the cell of event %d is absent", i)
		}
	}
	if together > general {
		t.Errorf("%d events are said to have been counted together, by %d counters", together, general)
	}
	if len(table.Notes) == 0 {
		t.Error("no note says that the group does not fit")
	}
}

func needRaw(t *testing.T) {
	t.Helper()
	if raw == "" {
		t.Skip("no event counts on every counter here")
	}
}

// TestPMUMultiplexing counts more groups than fit. They are multiplexed and scaled.
func TestPMUMultiplexing(t *testing.T) {
	needRaw(t)
	sys := system(t)
	name, want := program(t, 400*million)
	for _, size := range []int{1, 4, general - 1} {
		t.Run(fmt.Sprintf("groups of %d", size), func(t *testing.T) {
			var groups [][]perfevent.Event
			for range (3*general + size - 1) / size {
				events := make([]string, size)
				for i := range events {
					events[i] = raw
				}
				groups = append(groups, group(t, sys, events...))
			}
			table := measureOne(t, sys, perfevent.Spec{Groups: groups, Target: command(name)}, nil)
			least, most := 1.0, 0.0
			for i := range table.Columns {
				c := table.Cell(0, i)
				if off := value(c)/want - 1; !(math.Abs(off) < 0.01) {
					t.Errorf("event %d: %.0f, want %.0f within 1 %%, with coverage %g", i, value(c), want, c.Coverage())
				}
				least, most = min(least, c.Coverage()), max(most, c.Coverage())
				if j := i / size * size; *c != *table.Cell(0, j) && c.Running != table.Cell(0, j).Running {
					t.Errorf("event %d was counted for another time than the first of its group", i)
				}
			}
			t.Logf("%d events, counted for %.0f to %.0f %% of the time", len(table.Columns), 100*least, 100*most)
			if most >= 1 || least <= 0.05 {
				t.Error("they did not take turns")
			}
		})
	}
}

// Runs of the command for each group need no turns.
func TestPMUSeparate(t *testing.T) {
	needRaw(t)
	sys := system(t)
	name, want := program(t, instructions)
	events := make([]string, general)
	for i := range events {
		events[i] = raw
	}
	g := group(t, sys, events...)
	table := measureOne(t, sys, perfevent.Spec{Groups: [][]perfevent.Event{g, g, g}, Separate: true, Target: command(name)}, nil)
	for i := range table.Columns {
		c := table.Cell(0, i)
		between(t, fmt.Sprint("event ", i), value(c), want, 0, 0.02) // the kernel's own are among them
		if parts := table.Columns[i].Parts; parts != 3 || math.Abs(c.Coverage()*3-1) > 1e-9 {
			t.Errorf("event %d has coverage %g of %d runs", i, c.Coverage(), parts)
		}
	}
}

func TestPMURepeat(t *testing.T) {
	sys := system(t)
	name, want := program(t, instructions)
	table := measureOne(t, sys, perfevent.Spec{Always: group(t, sys, "instructions:u"), Repeat: 5, Target: command(name)}, nil)
	c := table.Cell(0, 0)
	within(t, "mean of five runs", value(c), want, 0.001)
	if c.Repeats != 5 || !(math.Sqrt(c.Variance) < 0.001*want) {
		t.Errorf("%d runs with a standard error of %.0f", c.Repeats, math.Sqrt(c.Variance))
	}
}

// The intervals' counts add up to the total.
func TestPMUIntervals(t *testing.T) {
	sys := system(t)
	name, want := program(t, 300*million)
	spec := perfevent.Spec{Groups: [][]perfevent.Event{group(t, sys, "instructions:u", "cycles:u")}, Interval: 50 * time.Millisecond, Target: command(name)}
	tables := measure(t, sys, spec, nil)
	sum, at := 0.0, 0.0
	for i, table := range tables {
		if !table.Interval {
			t.Errorf("table %d is of no interval", i)
		}
		c := table.Cell(0, 0)
		if c.Ok() {
			sum += c.Value
		}
		if math.Abs(table.Start-at) > 1e-6 {
			t.Errorf("interval %d begins at %g s, and the one before it ended at %g s", i, table.Start, at)
		}
		at = table.Start + table.Duration
	}
	if n := at / spec.Interval.Seconds(); math.Abs(float64(len(tables))-n) > 1 {
		t.Errorf("%d intervals in %.1f times an interval", len(tables), n)
	}
	within(t, fmt.Sprintf("sum of %d intervals", len(tables)), sum, want, 0.001)
	total := counts.NewTotal(0)
	for _, table := range tables {
		if err := total.Add(table); err != nil {
			t.Fatal(err)
		}
	}
	if got := value(total.Table().Cell(0, 0)); math.Abs(got-sum) > 1 {
		t.Errorf("their total is %.0f, and the sum %.0f", got, sum)
	}
}

// TestPMUIntervalsMultiplexed scales each interval of multiplexed events by itself.
// The sum must be as good as the whole.
func TestPMUIntervalsMultiplexed(t *testing.T) {
	needRaw(t)
	sys := system(t)
	name, want := program(t, 400*million)
	var groups [][]perfevent.Event
	for range 3 {
		groups = append(groups, group(t, sys, raw, raw, raw, raw))
	}
	tables := measure(t, sys, perfevent.Spec{Groups: groups, Interval: 100 * time.Millisecond, Target: command(name)}, nil)
	total := counts.NewTotal(0)
	for _, table := range tables {
		if err := total.Add(table); err != nil {
			t.Fatal(err)
		}
	}
	table := total.Table()
	for i := range table.Columns {
		within(t, fmt.Sprint("event ", i), table.Cell(0, i).Estimate(), want, 0.01)
	}
}

// A command's children are counted with it, unless they are not to be.
func TestPMUChildren(t *testing.T) {
	sys := system(t)
	name, n := program(t, 2*instructions)
	children := func(times int, alone bool) float64 {
		t.Helper()
		table := measureOne(t, sys, perfevent.Spec{
			Always:    group(t, sys, "instructions:u"),
			Target:    command("/proc/self/exe", "children", strconv.Itoa(times), name),
			NoInherit: alone,
		}, nil)
		return value(table.Cell(0, 0))
	}
	// What the Go program itself executes is not known, but is much the same.
	one, four := children(1, false), children(4, false)
	within(t, "three children", four-one, 3*n, 0.01)
	if alone := children(4, true); !(alone < n) {
		t.Errorf("without its children the command executes %.0f instructions; each of them has %.0f", alone, n)
	}
}

// Threads are counted each by itself.
func TestPMUThreads(t *testing.T) {
	sys := system(t)
	work := []uint64{40 * million, 20 * million, 80 * million}
	args := []string{}
	for _, n := range work {
		args = append(args, strconv.FormatUint(n, 10))
	}
	for _, by := range []string{"PIDs", "TIDs"} {
		t.Run(by, func(t *testing.T) {
			task := startTask(t, "threads", args...)
			tids := task.numbers()
			spec := perfevent.Spec{
				Groups: [][]perfevent.Event{group(t, sys, "instructions:u", "cycles:u")},
				Target: perfevent.Target{PIDs: []int{task.pid()}},
				Keep:   counts.By(0).With(counts.Thread),
			}
			if by == "TIDs" {
				spec.Target = perfevent.Target{TIDs: []int{tids[2], tids[0]}}
				tids[1] = 0
			}
			table := measureOne(t, sys, spec, func() {
				task.tell()
				task.line()
			})
			got := map[int]float64{}
			for i, s := range table.Scopes {
				if s.Kind != counts.Thread {
					t.Errorf("scope %+v is no thread", s)
				}
				got[s.TID] = value(table.Cell(i, 0))
			}
			for i, tid := range tids {
				if tid != 0 {
					within(t, fmt.Sprintf("thread %d", i), got[tid], float64(work[i]), 0.005)
				}
			}
			if by == "TIDs" && len(got) != 2 {
				t.Errorf("%d threads, want two", len(got))
			}
		})
	}
}

// Of a process whose threads come and go nothing is lost, and nothing is counted
// twice: neither of the threads that come when counting has begun, nor of those that
// do while it begins.
func TestPMUChurn(t *testing.T) {
	sys := system(t)
	for _, when := range []string{"starting", "settled", "amid"} {
		t.Run(when, func(t *testing.T) {
			task := startTask(t, "churn")
			executed := func() float64 {
				task.tell()
				return float64(task.numbers()[0])
			}
			wait := func(until float64) (n float64) {
				for n = executed(); n < until; n = executed() {
					time.Sleep(10 * time.Millisecond)
				}
				return n
			}
			// Before counting begins, at its beginning, before and after its end.
			var at [4]float64
			switch when {
			case "settled":
				time.Sleep(100 * time.Millisecond)
			case "amid":
				task.tell()
				wait(20 * million)
				at[0] = executed()
			}
			table := measureOne(t, sys, perfevent.Spec{
				Groups: [][]perfevent.Event{group(t, sys, "instructions:u", "cycles:u")},
				Target: perfevent.Target{PIDs: []int{task.pid()}},
			}, func() {
				if when == "amid" {
					at[1] = executed()
				} else {
					task.tell()
				}
				at[2] = wait(at[1] + 200*million)
			})
			at[3] = executed()

			// The chunks that were being worked on are known to have been in part.
			const partly = churnThreads * churnChunk
			got, least, most := value(table.Cell(0, 0)), at[2]-at[1]-partly, at[3]-at[0]+partly
			t.Logf("%.0f instructions counted, of %.0f to %.0f, and what the Go runtime needs for some %.0f threads",
				got, least, most, least/churnChunks/churnChunk)
			if !(got >= least) {
				t.Errorf("%.0f instructions, and there were at least %.0f: some are lost", got, least)
			}
			if !(got <= 1.1*most) {
				t.Errorf("%.0f instructions, and there were at most %.0f: some are counted twice", got, most)
			}
		})
	}
}

// cgroup makes a cgroup and returns its name.
func cgroup(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("/sys/fs/cgroup", name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestPMUCgroups(t *testing.T) {
	sys := system(t)
	dirs := []string{cgroup(t, "one"), cgroup(t, "two")}
	short, n := program(t, instructions)
	long, m := program(t, 3*instructions)
	table := measureOne(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{group(t, sys, "instructions:u", "cycles:u")},
		Target: perfevent.Target{Cgroups: []string{"one", "two"}, All: true},
		Keep:   counts.By(0).With(counts.Cgroup),
	}, func() {
		err := errors.Join(runIn(dirs[0], short), runIn(dirs[1], long), runIn(dirs[0], long))
		if err != nil {
			t.Error(err)
		}
	})
	got := map[string]float64{}
	for i, s := range table.Scopes {
		got[filepath.Base(s.Cgroup)] = value(table.Cell(i, 0))
	}
	within(t, "cgroup one", got["one"], n+m, 0.002)
	within(t, "cgroup two", got["two"], m, 0.002)
}

// Counts that are written when a processor changes its cgroup are those of the programs in
// them: one that is never switched away from as well, and two that alternate.
func TestPMUSwitches(t *testing.T) {
	if !exact || runtime.GOARCH == "riscv64" {
		t.Skip("the kernel's instructions are counted too, or a group's second event is not")
	}
	sys := system(t)
	dirs := []string{cgroup(t, "one"), cgroup(t, "two")}
	short, n := program(t, 10*instructions)
	long, m := program(t, 30*instructions)
	mount, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	o := switches.Options{Cgroups: cgroupfs.At(mount), Name: func(path string) string { return filepath.Base(path) }, Share: func(float64) float64 { return 1 }, Took: func(int, uint64) {}}
	run, err := o.Start(t.Context(), sys, perfevent.Spec{Groups: [][]perfevent.Event{group(t, sys, "instructions:u", "cycles:u")},
		Target: perfevent.Target{All: true}, Interval: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	failed := make(chan error, 2)
	go func() {
		time.Sleep(500 * time.Millisecond)
		failed <- runIn(dirs[0], short)
	}()
	go func() {
		time.Sleep(500 * time.Millisecond)
		failed <- errors.Join(runIn(dirs[1], long), runIn(dirs[1], short))
	}()
	if !run.Next() {
		t.Fatal(run.Err())
	}
	if err := errors.Join(<-failed, <-failed); err != nil {
		t.Error(err)
	}
	table := run.Table()
	got := map[string]float64{}
	for i, s := range table.Scopes {
		got[s.Cgroup] = value(table.Cell(i, 0))
		t.Logf("%s: %.0f instructions, %.0f cycles", s.Cgroup, got[s.Cgroup], value(table.Cell(i, 1)))
	}
	within(t, "cgroup one", got["one"], n, 0.002)
	within(t, "cgroup two", got["two"], n+m, 0.002)
}

// A machine's counts have those of each program.
func TestPMUSystemWide(t *testing.T) {
	sys := system(t)
	name, want := program(t, 5*instructions)
	table := measureOne(t, sys, perfevent.Spec{
		Groups: [][]perfevent.Event{group(t, sys, "instructions:u", "cycles:u")},
		Target: perfevent.Target{All: true},
		Keep:   counts.By(0).With(counts.CPU),
	}, func() {
		if err := exec.Command(name).Run(); err != nil {
			t.Error(err)
		}
	})
	if len(table.Scopes) != 1 || table.Scopes[0].CPU != 0 {
		t.Errorf("scopes %+v, want CPU 0", table.Scopes)
	}
	// The test's own work is among them, and on POWER the kernel's.
	if got := value(table.Cell(0, 0)); !(got >= want && got < 1.1*want) {
		t.Errorf("%.0f instructions on the machine, and the program's are %.0f", got, want)
	}
}

// An event that the kernel refuses costs no other.
func TestPMURefused(t *testing.T) {
	sys := system(t)
	name, want := program(t, instructions)
	table := measureOne(t, sys, perfevent.Spec{
		Always: group(t, sys, "bus-cycles", "instructions:u", "ref-cycles"),
		Target: command(name),
	}, nil)
	for _, i := range []int{0, 2} {
		if s := table.Cell(0, i).State; s != counts.NotSupported {
			t.Errorf("%s is %v, want not supported", table.Columns[i].Event, s)
		}
	}
	if len(table.Notes) == 0 {
		t.Error("no note says why")
	}
	within(t, "instructions:u", value(table.Cell(0, 1)), want, 0.001)
}

func TestPMUProbe(t *testing.T) {
	probe := system(t).Probe(os.DirFS("/"))
	t.Logf("%+v", *probe)
	if raw != "" && probe.Counters < general-1 || probe.Counters > 32 {
		t.Errorf("%d counters, want %d", probe.Counters, general)
	}
	if probe.SMT {
		t.Error("a machine with one logical processor has SMT")
	}
	if len(probe.Errors) > 0 {
		t.Errorf("root meets %v", probe.Errors)
	}
}

// Counting leaves no files open.
func TestPMUNothingLeft(t *testing.T) {
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	sys := system(t)
	name, _ := program(t, 1000)
	spec := perfevent.Spec{Groups: [][]perfevent.Event{group(t, sys, "instructions", "cycles")}, Target: command(name)}
	measure(t, sys, spec, nil)
	before := files()
	for range 3 {
		measure(t, sys, spec, nil)
	}
	if after := files(); after > before {
		t.Errorf("%d files are open after counting, and %d were before", after, before)
	}
}

// Where there is no PMU, software events are counted as ever, and others are
// refused.
func TestNoPMU(t *testing.T) {
	sys := system(t)
	if core := sys.Core(); len(core) > 0 {
		t.Errorf("the core has the PMU %s", core[0].Name)
	}
	if probe := sys.Probe(os.DirFS("/")); probe.Counters != 0 {
		t.Errorf("%d counters", probe.Counters)
	}
	name, want := program(t, 50*million)
	spec := perfevent.Spec{Always: group(t, sys, "task-clock", "instructions"), Target: command(name)}
	table := measureOne(t, sys, spec, nil)
	between(t, "task-clock", value(table.Cell(0, 0)), want, 0, 0.05)
	if s := table.Cell(0, 1).State; s != counts.NotSupported {
		t.Errorf("instructions are %v, want not supported", s)
	}

	spec.Always = spec.Always[1:]
	run, err := perfevent.Start(context.Background(), sys, spec)
	var refused *perfevent.OpenError
	if !errors.As(err, &refused) || refused.Advice == "" {
		t.Errorf("without anything to count, Start = %v, want an error with advice", err)
	}
	if err == nil {
		run.Close()
	}
}
