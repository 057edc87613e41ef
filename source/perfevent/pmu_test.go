//go:build linux

package perfevent_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// pmu skips a test where the processor has no PMU that counts, as in most
// virtual machines. Guests under emulation have one.
func pmu(t *testing.T) *perfevent.System {
	t.Helper()
	sys := machine(t)
	if len(sys.Core()) == 0 {
		t.Skip("no PMU of the cores")
	}
	r, err := perfevent.Start(context.Background(), sys, perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "instructions")}, Target: role("spin 1")})
	if e := (*perfevent.OpenError)(nil); errors.As(err, &e) {
		t.Skipf("the PMU does not count: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	return sys
}

// copies returns groups of one event under several names.
func copies(t *testing.T, sys *perfevent.System, event string, groups, each int) [][]perfevent.Event {
	t.Helper()
	if runtime.GOARCH == "riscv64" {
		t.Skip("the emulator's PMU counts an event once: its copies stay 0")
	}
	var all [][]perfevent.Event
	for g := range groups {
		var group []perfevent.Event
		for i := range each {
			e := events(t, sys, event)[0]
			e.Name = fmt.Sprintf("%s-%d-%d", event, g, i)
			group = append(group, e)
		}
		all = append(all, group)
	}
	return all
}

// instructions counts the instructions of a loop in user mode.
func instructions(t *testing.T, sys *perfevent.System, rounds int) float64 {
	t.Helper()
	table, _ := one(t, sys, perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "instructions:u", "cycles:u")}, Target: role(fmt.Sprintf("spin %d", rounds))})
	if c := table.Cell(0, 0); !c.Ok() || c.Coverage() != 1 {
		t.Fatalf("%+v, %q", *c, table.Notes)
	}
	return table.Cell(0, 0).Value
}

// each returns how many instructions a round of the loop has: a whole number,
// as a longer loop tells from a shorter.
func each(t *testing.T, sys *perfevent.System) float64 {
	t.Helper()
	const n = 20e6
	within := 0.001
	if runtime.GOARCH == "ppc64le" || os.Getenv(guestEnv) != "" && runtime.NumCPU() > 1 {
		within = 0.01 // emulated PMUs count the kernel, too, though they are told not to, or the other processor
	}
	per := (instructions(t, sys, 3*n) - instructions(t, sys, n)) / (2 * n)
	if math.Abs(per-math.Round(per)) > within*per || per < 1 {
		t.Errorf("%v instructions a round", per)
	}
	return math.Round(per)
}

func TestInstructions(t *testing.T) {
	sys := pmu(t)
	t.Logf("%v instructions a round", each(t, sys))
}

// A group that the counters cannot hold is parted, and a group that they can is
// not.
func TestGroupTooLarge(t *testing.T) {
	sys := pmu(t)
	n := sys.Probe(os.DirFS("/")).Counters
	if n < 2 {
		t.Skipf("%d counters", n)
	}
	for _, tt := range []struct{ size, groups int }{{n, 1}, {n + 3, 2}} {
		table, _ := one(t, sys, perfevent.Spec{Groups: copies(t, sys, "instructions:u", 1, tt.size), Target: role("spin 100000000")})
		groups := map[int]bool{}
		for i, c := range table.Columns {
			groups[c.Group] = true
			near(t, c.Event, table.Cell(0, i).Value, table.Cell(0, 0).Value, 0.02)
		}
		if len(groups) != tt.groups || len(table.Notes) != tt.groups-1 {
			t.Errorf("%d events in groups %v, %q", tt.size, groups, table.Notes)
		}
	}
}

// More groups than the counters hold are multiplexed, and scaled to the truth.
func TestMultiplexing(t *testing.T) {
	sys := pmu(t)
	n := sys.Probe(os.DirFS("/")).Counters
	if n < 2 {
		t.Skipf("%d counters", n)
	}
	const rounds = 300e6
	want := rounds * each(t, sys)
	groups := copies(t, sys, "instructions:u", 3, n)
	for _, tt := range []struct {
		name   string
		slots  []int
		shares []float64
		spec   perfevent.Spec
	}{
		{"equal slots", nil, []float64{1. / 3, 1. / 3, 1. / 3}, perfevent.Spec{}},
		{"more slots for the first", []int{0, 1, 0, 2}, []float64{1. / 2, 1. / 4, 1. / 4}, perfevent.Spec{}},
		{"in intervals", nil, []float64{1. / 3, 1. / 3, 1. / 3}, perfevent.Spec{Interval: 50 * time.Millisecond}},
		{"a task on each processor", nil, []float64{1. / 3, 1. / 3, 1. / 3}, perfevent.Spec{Target: perfevent.Target{OnCPUs: ids(sys)}}},
		{"processors", nil, []float64{1. / 3, 1. / 3, 1. / 3}, perfevent.Spec{Target: perfevent.Target{All: true}}},
	} {
		spec := tt.spec
		spec.Groups, spec.Rotation = groups, tt.slots
		spec.Target.Command, spec.Target.Env = role("").Command, role(fmt.Sprintf("spin %.0f", rounds)).Env
		r := start(t, sys, spec)
		total := counts.NewTotal(0)
		for r.Next() {
			if err := total.Add(r.Table()); err != nil {
				t.Fatal(err)
			}
		}
		table := total.Table()
		for i, c := range table.Columns {
			cell := table.Cell(0, i)
			near(t, tt.name+": "+c.Event, cell.Estimate(), want, 0.02)
			if got, want := cell.Coverage(), tt.shares[i/n]; math.Abs(got-want) > 0.08 {
				t.Errorf("%s: %s was counted for %.2f of the time, want %.2f", tt.name, c.Event, got, want)
			}
		}
		t.Logf("%s: %.4f %.4f %.4f of the truth", tt.name, table.Cell(0, 0).Value/want, table.Cell(0, n).Value/want, table.Cell(0, 2*n).Value/want)
		r.Close()
	}
}

// ids returns the numbers of all processors.
func ids(sys *perfevent.System) []int {
	return slices.Clone(sys.CPUs)
}

// Pinned groups are not multiplexed.
func TestPinned(t *testing.T) {
	sys := pmu(t)
	n := sys.Probe(os.DirFS("/")).Counters
	if n < 1 {
		t.Skip("no counters")
	}
	table, _ := one(t, sys, perfevent.Spec{Groups: copies(t, sys, "instructions:u", 2, n), Target: role("spin 20000000"), Pinned: true})
	if a, b := table.Cell(0, 0), table.Cell(0, n); !a.Ok() || a.Coverage() != 1 || b.State != counts.NotCounted {
		t.Errorf("%+v and %+v", *a, *b)
	}
}

// What a process does in threads that come later is counted as if it were one.
func TestInstructionsOfThreads(t *testing.T) {
	sys := pmu(t)
	const threads, rounds = 5, 20e6
	want := threads * rounds * each(t, sys)
	a := cast(t, fmt.Sprintf("steps %d %.0f", threads, rounds))
	a.step()
	for _, apart := range []bool{false, true} {
		spec := perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, "instructions:u", "cycles:u")}, Target: perfevent.Target{PIDs: []int{a.cmd.Process.Pid}}}
		if apart {
			spec.Keep = spec.Keep.With(counts.Thread)
		}
		r := start(t, sys, spec)
		go func() {
			a.step()
			r.Stop()
		}()
		if !r.Next() {
			t.Fatal(r.Err())
		}
		table := r.Table()
		sum, long := 0.0, 0
		for i := range table.Scopes {
			v := table.Cell(i, 0).Value
			sum += v
			if v > want/threads/2 {
				long++
			}
		}
		near(t, fmt.Sprintf("instructions, threads apart: %v", apart), sum, want, 0.01)
		if apart && long != threads {
			t.Errorf("%d of %d threads counted, want %d", long, len(table.Scopes), threads)
		}
		t.Logf("%.5f of the truth, %d scopes, %q", sum/want, len(table.Scopes), table.Notes)
		r.Close()
	}
}

// guestEnv says that the machine is the tests' own: they may take processors
// offline and change settings, which is not done to a machine that others use.
const guestEnv = "CYCLESTACK_TEST_GUEST"

// A processor that goes offline is a gap from then on.
func TestOffline(t *testing.T) {
	sys := machine(t)
	const control = "/sys/devices/system/cpu/cpu1/online"
	if os.Getenv(guestEnv) == "" {
		t.Skipf("takes a processor offline: allowed with %s=1", guestEnv)
	}
	if _, err := os.Stat(control); err != nil {
		t.Skip(err)
	}
	set := func(text string) {
		if err := os.WriteFile(control, []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	group := events(t, sys, "cpu-clock", "context-switches")
	if len(sys.Core()) > 0 {
		group = append(group, events(t, sys, "cycles")...)
	}
	r := start(t, sys, perfevent.Spec{
		Groups:   [][]perfevent.Event{group},
		Target:   perfevent.Target{All: true},
		Keep:     counts.By(0).With(counts.CPU),
		Interval: 100 * time.Millisecond, Timeout: 400 * time.Millisecond,
	})
	defer set("1")
	for n := 0; r.Next(); n++ {
		table := r.Table()
		first, second := table.Cell(0, 0), table.Cell(1, 0)
		t.Log(*first, *second, table.Notes)
		// The interval after n = 1 may have a moment before it went.
		if !first.Ok() || n != 2 && second.Ok() != (n < 2) {
			t.Errorf("interval %d: %+v and %+v", n, *first, *second)
		}
		if n == 1 {
			set("0")
		}
		if n > 2 && !slices.ContainsFunc(table.Notes, func(n counts.Note) bool { return strings.Contains(n.Text, "processor 1 went offline") }) {
			t.Errorf("notes %q", table.Notes)
		}
	}
}

func TestProbe(t *testing.T) {
	sys := machine(t)
	p := sys.Probe(os.DirFS("/"))
	t.Logf("%+v", *p)
	if !p.Supported {
		t.Errorf("%+v", *p)
	}
	if os.Getuid() == 0 && (len(p.Errors) > 0 && len(sys.Core()) > 0 || !p.CapPerfmon) {
		t.Errorf("root: %+v", *p)
	}
	if (p.Counters > 0) != (len(sys.Core()) > 0) {
		t.Errorf("%d counters of %d PMUs", p.Counters, len(sys.Core()))
	}
}
