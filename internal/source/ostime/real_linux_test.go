package ostime_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
)

// watched runs a command and returns what it did, in seconds and by column.
func watched(t *testing.T, args ...string) map[string]float64 {
	t.Helper()
	all, _ := watchedFrom(t, args...)
	return all
}

// watchedFrom is watched, and says for how many seconds at most the command was there
// before it was watched: on a busy machine who starts it may have to wait.
func watchedFrom(t *testing.T, args ...string) (all map[string]float64, late float64) {
	t.Helper()
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("the kernel does not tell how long threads wait: ", err)
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skip(err)
	}
	w := ostime.New(os.DirFS("/"), ostime.Spec{})
	defer w.Close()
	before := time.Now()
	p, err := os.StartProcess(path, args, &os.ProcAttr{Files: []*os.File{nil, nil, os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	w.Started(p.Pid)
	late = time.Since(before).Seconds()
	if err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	w.Ended(p.Pid)
	state, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	w.Reaped(state)
	table := w.Join(counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}))
	all = map[string]float64{}
	for i, c := range table.Columns {
		if cell := table.Cell(0, i); cell.Ok() {
			all[c.Event] = cell.Value / 1e9
		} else {
			all[c.Event] = math.NaN()
		}
	}
	t.Log(args, all, strings.Join(counts.Texts(table.Notes), "; "))
	return all, late
}

const loop = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"

// A program that sleeps neither runs nor waits for a processor.
func TestSleep(t *testing.T) {
	const slept, inexact = 0.3, 0.001
	for range 10 {
		got, late := watchedFrom(t, "sleep", fmt.Sprint(slept))
		if late > slept/10 {
			continue // too little is left to be seen
		}
		least := slept - late - inexact
		if blocked := got["thread_time"] - got["thread_run"] - got["runqueue_wait"]; !(blocked >= least) {
			t.Errorf("blocked for %v s of %v, and slept for %v at least", blocked, got["thread_time"], least)
		}
		return
	}
	t.Skip("the machine is too busy")
}

// A program that computes is not blocked. What is left over is the time until this
// process, on a busy machine, learns that it has ended.
func TestLoop(t *testing.T) {
	got := watched(t, "sh", "-c", loop)
	if busy := got["thread_run"] + got["runqueue_wait"]; !(busy > 0.5*got["thread_time"]) || !(got["thread_run"] > 0) {
		t.Errorf("busy for %v s of %v", busy, got["thread_time"])
	}
}

// Of two programs that share a processor each waits about as long as the other runs.
func TestShared(t *testing.T) {
	var set unix.CPUSet
	runtime.LockOSThread() // whose processors a program inherits
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Skip(err)
	}
	for cpu := range 1024 {
		if before.IsSet(cpu) {
			set.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		t.Skip(err)
	}
	defer unix.SchedSetaffinity(0, &before)
	got := watched(t, "sh", "-c", "{ "+loop+"; } & { "+loop+"; }; wait")
	if !(got["runqueue_wait"] > 0.4*got["thread_run"]) {
		t.Errorf("ran for %v s and waited for %v", got["thread_run"], got["runqueue_wait"])
	}
}

// A tree of processes is found whole.
func TestTree(t *testing.T) {
	got := watched(t, "sh", "-c", "sh -c 'sleep 1.5; :' & sh -c 'sleep 1.5; :' & wait")
	// Five processes: four begin a little later, and are found at the next poll, which may be late.
	if v := got["thread_time"]; !(v > 4.5) || v > 25 {
		t.Errorf("threads were there for %v s, want about 7.5", v)
	}
}
