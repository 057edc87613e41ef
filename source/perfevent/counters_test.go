//go:build linux

package perfevent_test

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/source/perfevent"
)

// work spins on some threads that begin now.
func work(threads, rounds int) {
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() { thread(rounds) })
	}
	wg.Wait()
}

func TestCounters(t *testing.T) {
	sys := machine(t)
	names := []string{"page-faults", "task-clock"}
	if len(sys.Core()) > 0 {
		names = append(names, "instructions:u")
	}
	c, err := perfevent.Open(sys, perfevent.Spec{
		Groups: [][]perfevent.Event{events(t, sys, names...)},
		Always: events(t, sys, "duration_time"),
		Target: perfevent.Target{PIDs: []int{os.Getpid()}},
	})
	if e := (*perfevent.OpenError)(nil); errors.As(err, &e) && errors.Is(e, syscall.EACCES) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	work(3, 20e6) // does not count
	faults := func() float64 {
		t.Helper()
		table, err := c.Table()
		if err != nil {
			t.Fatal(err)
		}
		near(t, "duration_time", column(t, table, 0, "duration_time").Value, table.Duration*1e9, 1e-6)
		return table.Cell(0, 0).Value
	}
	if got := faults(); got != 0 {
		t.Errorf("%v before it was enabled", got)
	}
	sum := 0.0
	for range 2 {
		before := own()
		if err := errors.Join(c.Enable(), c.Enable()); err != nil {
			t.Fatal(err)
		}
		work(3, 50e6)
		if err := errors.Join(c.Disable(), c.Disable()); err != nil {
			t.Fatal(err)
		}
		sum += float64(own().since(before).faults)
		work(3, 20e6) // does not count
		near(t, "page-faults", faults(), sum, 0.02)
		near(t, "page-faults, read again", faults(), sum, 0.02)
	}
	c.Reset()
	if got := faults(); got != 0 {
		t.Errorf("%v after Reset", got)
	}
}

// A thread that is counted alone does not see others.
func TestCountersOfThread(t *testing.T) {
	sys := machine(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := perfevent.Open(sys, perfevent.Spec{
		Groups:    [][]perfevent.Event{events(t, sys, "page-faults")},
		Target:    perfevent.Target{TIDs: []int{unix.Gettid()}},
		NoInherit: true,
	})
	if err != nil {
		t.Skip(err)
	}
	defer c.Close()
	if err := c.Enable(); err != nil {
		t.Fatal(err)
	}
	before := own()
	touch(1000)
	used := own().since(before).faults
	work(3, 50e6)
	table, err := c.Table()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "page-faults", table.Cell(0, 0).Value, float64(used), 0.05)
	if _, err := perfevent.Open(sys, perfevent.Spec{Target: role("exit 0")}); err == nil {
		t.Error("a command was opened")
	}
}
