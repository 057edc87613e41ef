//go:build linux

package perfrecord_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/source/perfrecord"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// record records a shell's script into a file, and returns its name.
func record(t *testing.T, script string, limits perfrecord.Limits, change func(*perfevent.SampleSpec)) (string, perfrecord.Stats) {
	t.Helper()
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	spec := perfevent.SampleSpec{Target: perfevent.Target{Command: []string{"sh", "-c", script}}}
	if spec.Groups, err = sys.ResolveSampled("page-faults", 1, false); err != nil {
		t.Fatal(err)
	}
	change(&spec)
	name := filepath.Join(t.TempDir(), "perf.data")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := perfrecord.Start(context.Background(), sys, spec, f, perfrecord.Options{Limits: limits})
	if err != nil {
		t.Skipf("not here: %v", err)
	}
	defer r.Close()
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	return name, r.Stats()
}

// perf returns what perf says of a file.
func perf(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("perf")
	if err != nil {
		t.Skip("needs perf")
	}
	c := exec.Command(path, args...)
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null", "HOME="+t.TempDir())
	out, err := c.Output()
	if err != nil {
		t.Skipf("perf %q: %v", args, err) // Debian's 6.1 crashes now and then
	}
	return string(out)
}

// A recording that reaches its size ends, and the program with it. perf reads all of it.
func TestMaxSize(t *testing.T) {
	const most = 100 << 10
	name, stats := record(t, "while :; do ls / > /dev/null; done", perfrecord.Limits{MaxSize: most}, func(s *perfevent.SampleSpec) { s.RingSize = 64 << 10 })
	if !stats.Full || stats.Bytes < most || stats.Bytes > 2*most+64<<10*2*int64(len(allCPUs(t))) {
		t.Errorf("%+v with a limit of %d", stats, most)
	}
	if n := int64(strings.Count(perf(t, "script", "-i", name, "-F", "ip", "--no-inline"), "\n")); n != stats.Samples {
		t.Errorf("perf reads %d samples of %d", n, stats.Samples)
	}
}

func allCPUs(t *testing.T) []perfevent.CPU {
	t.Helper()
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := sys.Topology()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// buildID matches a build id as perf prints it of a record, or of the header.
var buildID = regexp.MustCompile(`(?m)<[0-9a-f]{40}>|^[0-9a-f]{40} `)

// perf finds the switches of a program's threads, and build ids unless they are left out.
func TestSwitchesBuildIDs(t *testing.T) {
	const script = "sleep 0.01; ls / > /dev/null; sleep 0.01"
	with, _ := record(t, script, perfrecord.Limits{}, func(s *perfevent.SampleSpec) { s.Switches = true })
	without, _ := record(t, script, perfrecord.Limits{}, func(s *perfevent.SampleSpec) { s.NoBuildIDs = true })
	for _, tt := range []struct {
		file     string
		switches bool
		ids      bool
	}{{with, true, true}, {without, false, false}} {
		dump := perf(t, "script", "-i", tt.file, "--show-switch-events", "--show-mmap-events")
		if in, out := strings.Contains(dump, "PERF_RECORD_SWITCH IN"), strings.Contains(dump, "PERF_RECORD_SWITCH OUT"); in != tt.switches || out != tt.switches {
			t.Errorf("switches: in %v, out %v, want %v", in, out, tt.switches)
		}
		// The kernel has them in records, or else they are in the header.
		list := dump + perf(t, "buildid-list", "-i", tt.file)
		if ids := buildID.MatchString(list); ids != tt.ids {
			t.Errorf("build ids: %v, want %v\n%s", ids, tt.ids, list)
		}
	}
}

// A policyWriter remembers the policy of the thread that writes to it.
type policyWriter struct {
	bytes.Buffer
	policy, priority uint32
}

func (w *policyWriter) Write(p []byte) (int, error) {
	if a, err := unix.SchedGetAttr(0, 0); err == nil && a.Policy == unix.SCHED_FIFO {
		w.policy, w.priority = a.Policy, a.Priority
	}
	return w.Buffer.Write(p)
}

// The thread that writes has the priority, and the program has not.
func TestRealtime(t *testing.T) {
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	spec := perfevent.SampleSpec{Target: perfevent.Target{Command: []string{"sh", "-c", `read x < /proc/self/sched; set -- $(cat /proc/self/stat); [ "${41}" = 0 ]`}}}
	if spec.Groups, err = sys.ResolveSampled("page-faults", 1, false); err != nil {
		t.Fatal(err)
	}
	for _, priority := range []int{-1, 100} {
		if _, err := perfrecord.Start(context.Background(), sys, spec, &bytes.Buffer{}, perfrecord.Options{Limits: perfrecord.Limits{Realtime: priority}}); err == nil {
			t.Errorf("priority %d is accepted", priority)
		}
	}
	var w policyWriter
	r, err := perfrecord.Start(context.Background(), sys, spec, &w, perfrecord.Options{Limits: perfrecord.Limits{Realtime: 7}})
	if err != nil {
		t.Skipf("not here: %v", err)
	}
	defer r.Close()
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	if w.policy != unix.SCHED_FIFO || w.priority != 7 {
		t.Errorf("written with policy %d, priority %d", w.policy, w.priority)
	}
	if !r.State().Success() {
		t.Errorf("the program has a priority: %v", r.State())
	}
}

// The clock has no branch records on any machine, and the error says so.
func TestNoBranches(t *testing.T) {
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	spec := perfevent.SampleSpec{Target: perfevent.Target{Command: []string{"true"}}, Branches: 1 << 3}
	if spec.Groups, err = sys.ResolveSampled("cpu-clock", 1000, true); err != nil {
		t.Fatal(err)
	}
	_, err = perfrecord.Start(context.Background(), sys, spec, &bytes.Buffer{}, perfrecord.Options{})
	if err == nil || !strings.Contains(err.Error(), "no branch records") {
		t.Errorf("%v", err)
	}
}

// A process that has ended is left out if the target says so, and an error otherwise.
func TestPresent(t *testing.T) {
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Skip(err)
	}
	defer sleep.Wait()
	defer sleep.Process.Kill()
	for _, present := range []bool{true, false} {
		target := perfevent.Target{PIDs: []int{1 << 30, sleep.Process.Pid}, Present: present}
		spec := perfevent.SampleSpec{Target: target, Timeout: 10 * time.Millisecond}
		if spec.Groups, err = sys.ResolveSampled("page-faults", 1, false); err != nil {
			t.Fatal(err)
		}
		r, err := perfrecord.Start(context.Background(), sys, spec, &bytes.Buffer{}, perfrecord.Options{})
		if target := (*perfevent.TargetError)(nil); !present && !errors.As(err, &target) {
			t.Errorf("a process that has ended: %v", err)
		}
		if err != nil {
			if present {
				t.Errorf("a process that has ended is not left out: %v", err)
			}
			continue
		}
		if err := r.Run(); err != nil {
			t.Error(err)
		}
		r.Close()
	}
}
