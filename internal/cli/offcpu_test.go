package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A waitScript is what perf script says of switches between threads.
type waitScript struct {
	begun, ended map[string]float64            // by thread: ns, of its exec or first run, and of its end
	waited       map[string]map[string]float64 // by thread and by function in the stack: ns
}

var (
	scriptHead  = regexp.MustCompile(`^\s*\S.*?\s+(\d+)\s+\[\d+\]\s+(\d+)\.(\d{9}):\s+(.*)$`)
	scriptFrame = regexp.MustCompile(`^\s+[0-9a-f]+ (\w+)\+0x`)
)

// readWaits reads what perf script prints of switches, with stacks.
func readWaits(text string) *waitScript {
	s := &waitScript{begun: map[string]float64{}, ended: map[string]float64{}, waited: map[string]map[string]float64{}}
	left, frames := map[string]float64{}, map[string]map[string]bool{}
	var open map[string]bool // the stack that is being printed
	returns := func(tid string, now float64) {
		if from, ok := left[tid]; ok {
			for f := range frames[tid] {
				if s.waited[tid] == nil {
					s.waited[tid] = map[string]float64{}
				}
				s.waited[tid][f] += now - from
			}
			delete(left, tid)
		}
	}
	for line := range strings.Lines(text) {
		if m := scriptFrame.FindStringSubmatch(line); m != nil {
			if open != nil {
				open[m[1]] = true
			}
			continue
		}
		m := scriptHead.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		tid, what := m[1], m[4]
		now, _ := strconv.ParseFloat(m[2]+m[3], 64)
		open = nil
		switch {
		case strings.Contains(what, "PERF_RECORD_COMM exec"):
			s.begun[tid] = now
		case strings.Contains(what, "PERF_RECORD_SWITCH IN"):
			if s.begun[tid] == 0 {
				s.begun[tid] = now
			}
			returns(tid, now)
		case strings.Contains(what, "PERF_RECORD_EXIT"):
			returns(tid, now)
			s.ended[tid] = now
		case strings.Contains(what, "sched:sched_switch:"):
			left[tid], open = now, map[string]bool{}
			frames[tid] = open
		}
	}
	return s
}

// wallTimes are the times of threads of a report's rows, ns.
func wallTimes(t *testing.T, args ...string) map[string]map[string]float64 {
	t.Helper()
	var out, msg bytes.Buffer
	if status := Main(context.Background(), append([]string{"report", "--format", "json"}, args...), nil, &out, &msg); status != 0 {
		t.Fatalf("report %q: status %d: %s", args, status, &msg)
	}
	var doc struct {
		Accounts []struct {
			Scope  struct{ Label string }
			Counts []struct {
				Event string
				Value float64
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]float64{}
	for _, a := range doc.Accounts {
		row := map[string]float64{}
		for _, c := range a.Counts {
			if name, ok := strings.CutPrefix(c.Event, "wall."); ok {
				row[name] = c.Value
			}
		}
		name, _, _ := strings.Cut(a.Scope.Label, "  (")
		rows[name] = row
	}
	return rows
}

// TestOffCPU records where threads run and wait. Each thread's times add up to its life;
// waits by function are those that perf script shows; running is what the kernel accounts
// for the thread.
func TestOffCPU(t *testing.T) {
	needSampling(t, false)
	if _, err := os.Stat("/sys/kernel/tracing/events/sched/sched_switch/id"); err != nil {
		t.Skip("tracepoints cannot be read here")
	}
	perf := needPerf(t)
	dir := t.TempDir()
	program, file := filepath.Join(dir, "waits"), filepath.Join(dir, "perf.data")
	if out, err := exec.Command("gcc", "-g", "-O1", "-fno-omit-frame-pointer", "-pthread", "-o", program, "testdata/waits.c").CombinedOutput(); err != nil {
		t.Skipf("gcc: %v\n%s", err, out)
	}
	said := recordHere(t, "--off-cpu", "--source", "os", "-m", "8M", "-o", file, "--", program, filepath.Join(dir, "kernel"))
	if !strings.Contains(said, "none lost") {
		t.Skipf("records were lost: %s", said)
	}
	script := readWaits(perf.output(t, "script", "-i", file, "--ns", "--show-switch-events", "--show-task-events", "-F", "+comm,+tid,+cpu,+time,+event,+ip,+sym,+symoff"))
	threads, calls := wallTimes(t, "--by", "thread", "--all", file), wallTimes(t, "--children", "--all", file)
	printed, err := os.ReadFile(filepath.Join(dir, "kernel"))
	kernel := regexp.MustCompile(`(?m)^thread (\d+) (\d+) `).FindAllStringSubmatch(string(printed), -1)
	if len(kernel) != 4 {
		t.Fatalf("%d threads: %s, %v", len(kernel), printed, err)
	}
	for _, m := range kernel {
		row := threads["waits-"+m[1]]
		if row == nil {
			t.Errorf("no row of thread %s among %v", m[1], slices.Sorted(maps.Keys(threads)))
			continue
		}
		// A thread's first wait in the run queue has no place. That a thread comes next
		// is known some microseconds before its own record, longer on a busy machine.
		life := script.ended[m[1]] - script.begun[m[1]]
		if math.Abs(row["time"]-life) > 20e3+0.01*life || life == 0 {
			t.Errorf("thread %s: %.0f ns of time, and it lived for %.0f", m[1], row["time"], life)
		}
		// The kernel adds the switches themselves, and perf the end of the thread.
		if run, _ := strconv.ParseFloat(m[2], 64); math.Abs(row["running"]-run) > 0.2*run+2e6 {
			t.Errorf("thread %s ran for %.0f ns, and for the kernel %.0f", m[1], row["running"], run)
		}
	}
	// The frames of naps and locked are missing: libc keeps no frame pointers.
	for _, name := range []string{"sleeper", "locker"} {
		want := 0.0
		for _, by := range script.waited {
			want += by[name]
		}
		row := calls[name]
		if got := row["queue"] + row["blocked"] + row["disk"]; math.Abs(got-want) > 0.02*want || want == 0 {
			t.Errorf("%s waits for %.0f ns, and for perf script %.0f", name, got, want)
		}
	}
}
