//go:build linux

package cli

import (
	"encoding/json"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// living runs a command that is watched.
func living(t *testing.T, args ...string) func(perfevent.Observer) {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("the kernel does not tell how long threads wait: ", err)
	}
	return func(w perfevent.Observer) {
		p, err := os.StartProcess(path, args, &os.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		w.Started(p.Pid)
		if err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
		w.Ended(p.Pid)
		state, err := p.Wait()
		if err != nil {
			t.Fatal(err)
		}
		w.Reaped(state)
	}
}

// waiting is a machine with a PMU and a program that sleeps.
func waiting(t *testing.T) *fakeKernel {
	k := testkernel.Skylake(1)
	k.Under, k.Lives = os.DirFS("/"), living(t, "sleep", "0.3")
	return k
}

// TestTimesIncluded checks that an account of the PMU's counts also has what the threads
// did with their time.
func TestTimesIncluded(t *testing.T) {
	t.Parallel()
	busy := testkernel.Skylake(1)
	busy.Under, busy.Lives = os.DirFS("/"), living(t, "sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done")
	blind := testkernel.Skylake(1)
	blind.Under = fstest.MapFS{}
	machine := testkernel.Skylake(1)
	machine.Under = os.DirFS("/")
	for _, tt := range []struct {
		name   string
		kernel *fakeKernel
		args   string
		want   []string // in this order
		not    []string
	}{
		{"one that waits", waiting(t), "-- ./app", []string{"./app, ", "counted by the PMU", "time no thread could run for ", " of the time: ",
			"blocked", "processors", "Threads", "CPUs_Utilised", "◄ bottleneck", "slots", "Backend_Bound"}, nil},
		{"one that computes", busy, "-- ./app", []string{"time ", " running", "slots"}, []string{"no thread could run"}},
		{"several runs", waiting(t), "-r 2 -- ./app", []string{"no thread could run", "blocked", "slots"}, nil},
		{"intervals", waiting(t), "-I 500 --level 1 --width 160 -- ./app", []string{"Backend_Bound", "CPUs_Utilised", "Blocked", "Runqueue_Wait", "0."}, nil},
		{"by steps", waiting(t), "--drilldown -- ./app", []string{"no thread could run", "slots"}, nil},
		{"a process", waiting(t), "-p 1", []string{"process 1", "time ", "slots"}, nil},
		{"the machine", machine, "-a --level 1 -- ./app", []string{"time ", "of ", " processors on the average", "running something", "idle", "slots"}, []string{"Runqueue_Wait"}},
		{"its processors", machine, "-a -A --level 1 --width 160 -- ./app", []string{"Backend_Bound", "Busy", "Idle", "CPU0"}, nil},
		{"a cgroup", waiting(t), "-G one --level 1", []string{"slots", "note not known: what threads did with their time, as the kernel does not count it for cgroups"}, []string{"time "}},
		{"where nobody can look", blind, "--level 1 -- ./app", []string{"time not known: what the threads did with their time (", "slots"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, status := call(tt.kernel, append([]string{"stat", "-v"}, strings.Fields(tt.args)...)...)
			if status != 0 {
				t.Fatalf("status %d: %s", status, stderr)
			}
			rest := strings.Join(strings.Fields(stderr), " ")
			if strings.Contains(rest, "(other load)") {
				t.Skip("other programs kept this one from running")
			}
			for _, w := range tt.want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("no %q, or not in this order:\n%s", w, stderr)
				}
				rest = after
			}
			for _, n := range tt.not {
				if strings.Contains(strings.Join(strings.Fields(stderr), " "), n) {
					t.Errorf("%q in\n%s", n, stderr)
				}
			}
		})
	}
}

// TestTimesData looks at the same for programs.
func TestTimesData(t *testing.T) {
	t.Parallel()
	_, text, status := call(waiting(t), "stat", "--format", "json", "--", "./app")
	if status != 0 {
		t.Fatalf("status %d: %s", status, text)
	}
	if err := testschema.Validate(t, report.Schema[report.Accounts](), text); err != nil {
		t.Errorf("%#v", err)
	}
	var d struct {
		Model    struct{ Name string }
		Accounts []struct {
			Times struct {
				Model      struct{ Name string }
				Bottleneck []string
				Nodes      []struct {
					Name  string
					Value *float64
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	times := d.Accounts[0].Times
	if d.Model.Name != "tma" || times.Model.Name != resolve.OSModel || len(times.Bottleneck) == 0 || times.Bottleneck[0] != "Threads.Blocked" {
		t.Errorf("%+v", d)
	}
	parts := map[string]float64{}
	for _, n := range times.Nodes {
		if n.Value != nil {
			parts[n.Name] = *n.Value
		}
	}
	sum := parts["CPUs_Utilised"] + parts["Runqueue_Wait"] + parts["Blocked"]
	if all := parts["Threads"]; !(all > 0.5) || sum < all-1e-9 || sum > all+1e-9 || !(parts["Blocked"] > 0.5*all) {
		t.Errorf("%v of %v threads: %v", sum, all, parts)
	}

	_, text, _ = call(waiting(t), "stat", "--format", "csv", "--level", "1", "--", "./app")
	for _, row := range []string{",Backend_Bound,1,", ",os-time:Threads,0,", ",os-time:Threads.Blocked,1,"} {
		if !strings.Contains(text, row) {
			t.Errorf("no %q in\n%s", row, text)
		}
	}
}
