//go:build linux && guest

package inside

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/cgroups"
	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
	"github.com/cyclestack/cyclestack/internal/source/switches"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// echo sends back each byte that it reads.
func echo([]string) {
	var b [1]byte
	for {
		if n, err := syscall.Read(0, b[:]); n < 1 || err != nil {
			return
		}
		if _, err := syscall.Write(1, b[:]); err != nil {
			return
		}
	}
}

// turns has a byte go to a process in a cgroup and back, many times. Each turn is two changes
// of the processor's cgroup.
func turns(t *testing.T, dir string) (turn func(n int)) {
	t.Helper()
	fd, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	var in, out [2]int
	if err := errors.Join(syscall.Pipe2(in[:], syscall.O_CLOEXEC), syscall.Pipe2(out[:], syscall.O_CLOEXEC)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "echo")
	cmd.Stdin, cmd.Stdout = os.NewFile(uintptr(in[0]), "in"), os.NewFile(uintptr(out[1]), "out")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, end := range []int{in[1], out[0]} {
			_ = syscall.Close(end)
		}
	})
	return func(n int) {
		var b [1]byte
		for range n {
			if _, err := syscall.Write(in[1], b[:]); err != nil {
				t.Fatal(err)
			}
			if _, err := syscall.Read(out[0], b[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPMUSwitchCost measures what a record of a change of cgroup takes, by the number of
// counters in it. The kernel's own instructions are counted, and there are no others but
// those of the changes themselves. The agent charges what is measured here.
func TestPMUSwitchCost(t *testing.T) {
	if runtime.GOARCH != "arm64" {
		t.Skip("other guests do not count the kernel's instructions on so many counters")
	}
	sys := system(t)
	turn := turns(t, cgroup(t, "echo"))
	mount, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	count := func() (kernel, user float64) {
		kernel = math.Inf(1)
		for range 3 { // the kernel works in the background as well
			turn(100)
			table := measureOne(t, sys, perfevent.Spec{Always: group(t, sys, "instructions:k", "instructions:u"), Target: perfevent.Target{All: true}}, func() { turn(n) })
			if k := value(table.Cell(0, 0)); k < kernel {
				kernel, user = k, value(table.Cell(0, 1))
			}
		}
		return kernel, user
	}
	with := func(counters int) (kernel, user, records float64) {
		groups := [][]perfevent.Event{group(t, sys, "context-switches")}
		if counters > 0 {
			groups = [][]perfevent.Event{group(t, sys, slices.Repeat([]string{raw}, counters)...)}
		}
		o := switches.Options{Cgroups: cgroupfs.At(mount), Name: func(path string) string { return path }, Share: func(float64) float64 { return 1 },
			Took: func(n int, _ uint64) { records += float64(n) }}
		const long = 5 * time.Second // one burst
		run, err := o.Start(t.Context(), sys, perfevent.Spec{Groups: groups, Target: perfevent.Target{All: true}, Interval: long})
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		done := make(chan bool)
		go func() { done <- run.Next() }()
		time.Sleep(100 * time.Millisecond) // until the burst has begun
		kernel, user = count()
		if !<-done {
			t.Fatal(run.Err())
		}
		return kernel, user, records
	}
	kernel, user := count()
	t.Logf("a turn: %.0f instructions of the kernel, %.0f of programs", kernel/n, user/n)
	for _, counters := range []int{0, 1, 4} {
		k, u, records := with(counters)
		cost, charged := (k-kernel)/(2*n), float64(switches.Cost(counters).Nanoseconds())
		t.Logf("%d counters: %.0f instructions of the kernel for a record, %.0f are charged; %.0f of ours (%.0f records)", counters, cost, charged, (u-user)/(2*n), records)
		if cost > 1.4*charged || cost < 0.6*charged {
			t.Errorf("%d counters: a record takes %.0f instructions, and %.0f ns are charged", counters, cost, charged)
		}
	}
}
