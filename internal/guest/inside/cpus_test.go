//go:build linux && guest

package inside

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// onCPU runs a program on one logical processor.
func onCPU(t *testing.T, cpu int, name string) {
	t.Helper()
	if out, err := exec.Command("/bin/inside", "oncpu", fmt.Sprint(cpu), name).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Each logical processor has its own counts, and all of them together have them all.
func TestCPUsScopes(t *testing.T) {
	sys := system(t)
	short, n := program(t, instructions)
	long, m := program(t, 4*instructions)
	spec := perfevent.Spec{
		Groups: [][]perfevent.Event{group(t, sys, "instructions:u", "cycles:u")},
		Target: perfevent.Target{All: true},
		Keep:   counts.By(0).With(counts.CPU),
	}
	work := func() {
		onCPU(t, 0, short)
		onCPU(t, 1, long)
	}
	count := func() map[int]float64 {
		t.Helper()
		table := measureOne(t, sys, spec, work)
		got := map[int]float64{}
		for i, s := range table.Scopes {
			got[s.CPU] = value(table.Cell(i, 0))
		}
		return got
	}
	// Whatever else runs there is in it.
	got := count()
	between(t, "CPU 0", got[0], n, 0, 1)
	between(t, "CPU 1", got[1], m, 0, 0.5)

	spec.Target = perfevent.Target{CPUs: []int{1}}
	got = count()
	if _, ok := got[0]; ok || len(got) != 1 {
		t.Errorf("CPU 1 alone: %v", got)
	}
	between(t, "CPU 1 alone", got[1], m, 0, 0.5)

	spec.Target, spec.Keep = perfevent.Target{All: true}, 0
	table := measureOne(t, sys, spec, work)
	if len(table.Scopes) != 1 {
		t.Fatalf("scopes %v, want one for all", table.Scopes)
	}
	between(t, "both CPUs", value(table.Cell(0, 0)), n+m, 0, 0.5)
}

// What a program does on other processors is left out, if asked for.
func TestCPUsLimit(t *testing.T) {
	sys := system(t)
	short, _ := program(t, instructions)
	long, m := program(t, 4*instructions)
	table := measureOne(t, sys, perfevent.Spec{
		Always: group(t, sys, "instructions:u"),
		Target: perfevent.Target{Command: []string{"/bin/inside", "oncpu", "0", short, "1", long}, OnCPUs: []int{1}},
	}, nil)
	between(t, "on CPU 1", value(table.Cell(0, 0)), m, 0, 0.2)
}

// A processor that goes away takes what it had counted to the total, and nothing else.
func TestCPUsOffline(t *testing.T) {
	sys := system(t)
	const file = "/sys/devices/system/cpu/cpu1/online"
	power := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	name, n := program(t, 4*instructions)
	run, err := perfevent.Start(context.Background(), sys, perfevent.Spec{
		Groups:   [][]perfevent.Event{group(t, sys, "instructions:u", "cycles:u")},
		Target:   perfevent.Target{All: true},
		Interval: 20 * time.Millisecond,
		Timeout:  time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	onCPU(t, 1, name)
	time.Sleep(50 * time.Millisecond)
	power("0")
	t.Cleanup(func() { power("1") })
	onCPU(t, 0, name)
	sum := 0.0
	for run.Next() {
		if c := run.Table().Cell(0, 0); c.Ok() {
			sum += c.Value
		}
	}
	if err := run.Err(); err != nil {
		t.Error(err)
	}
	between(t, "on both", sum, 2*n, 0, 0.5)
}

func TestCPUsStat(t *testing.T) {
	name, n := program(t, 4*instructions)
	d := stat(t, "--nodes", rate, "-a", "-A", "--", "/bin/inside", "oncpu", "1", name)
	if len(d.Accounts) != 2 {
		t.Fatalf("%d accounts, want one for each CPU", len(d.Accounts))
	}
	for i, a := range d.Accounts {
		if a.Scope.Kind != "cpu" {
			t.Errorf("account %d is of a %s", i, a.Scope.Kind)
		}
	}
	between(t, "CPU 1", d.Accounts[1].instructions(t), n, 0, 0.5)
	d = stat(t, "--nodes", rate, "-C", "1", "--", "/bin/inside", "oncpu", "1", name)
	if len(d.Accounts) != 1 {
		t.Fatalf("%d accounts, want one", len(d.Accounts))
	}
	between(t, "CPU 1 alone", d.Accounts[0].instructions(t), n, 0, 0.5)
}
