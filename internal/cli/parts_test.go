package cli

import (
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// threaded is a program with two threads and a child process. Each goes through two
// functions.
var threaded = workload{name: "threads.c", source: `
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#define STEPS(n) unsigned long x = 1; for (long i = 0; i < (n); i++) x = x * 6364136223846793005ul + 1442695040888963407ul; return x
__attribute__((noinline)) unsigned long heavy(long n) { STEPS(4 * n); }
__attribute__((noinline)) unsigned long light(long n) { STEPS(n); }
static void *work(void *name) {
	unsigned long sum = 0;
	prctl(PR_SET_NAME, (char *)name);
	for (int i = 0; i < ROUNDS / 4; i++) sum += heavy(200000 + i) ^ light(200000 + i);
	return (void *)sum;
}
int main(void) {
	pthread_t t[2];
	pthread_create(&t[0], 0, work, "first");
	pthread_create(&t[1], 0, work, "second");
	pid_t child = fork();
	if (child == 0) { work("child"); _exit(0); }
	pthread_join(t[0], 0); pthread_join(t[1], 0); waitpid(child, 0, 0);
	return 0;
}
`, build: []string{"gcc", "-g", "-O1", "-pthread", "-o"}}

// A scripted sample is one as perf script prints it.
type scripted struct {
	comm, pid, tid, cpu string
	time, period        float64
}

var scriptLine = regexp.MustCompile(`^\s*(.+?)\s+(\d+)/(\d+)\s+\[(\d+)\]\s+([\d.]+):\s+(\d+)\s`)

// perfScript are the samples of cpu-clock in a recording, and the time of the first
// sample of any event.
func perfScript(t testing.TB, file string) (list []scripted, first float64) {
	t.Helper()
	c := exec.Command("perf", "script", "--ns", "-F", "comm,pid,tid,cpu,time,period,event", "-i", file)
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first = math.Inf(1)
	for line := range strings.Lines(string(out)) {
		m := scriptLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		first = min(first, number(m[5]))
		if !strings.Contains(line, "cpu-clock") {
			continue
		}
		list = append(list, scripted{m[1], m[2], m[3], strings.TrimLeft(m[4][:len(m[4])-1], "0") + m[4][len(m[4])-1:], number(m[5]), number(m[6])})
	}
	if len(list) == 0 {
		t.Fatalf("perf script prints no samples:\n%.500s", out)
	}
	return list, first
}

// TestReportParts records threads and processes, and splits them into parts. It compares
// each part with the sum of what perf script prints of it.
func TestReportParts(t *testing.T) {
	t.Parallel()
	file := recordWorkload(t, threaded, "-e", "cpu-clock", "-e", "page-faults", "--sample-cpu", "--all-cgroups")
	list, first := perfScript(t, file)
	middle := list[len(list)/2].time
	for _, tt := range []struct {
		args []string
		part func(s *scripted) string // "" for one that does not count
	}{
		{[]string{"--by", "process"}, func(s *scripted) string { return s.pid }},
		{[]string{"--by", "thread"}, func(s *scripted) string { return s.tid }},
		{[]string{"--by", "cpu"}, func(s *scripted) string { return "CPU" + s.cpu }},
		{[]string{"--by", "cpu,thread"}, func(s *scripted) string { return s.tid + " CPU" + s.cpu }},
		{[]string{"--by", "thread", "--thread", "first,child"}, func(s *scripted) string {
			if s.comm != "first" && s.comm != "child" {
				return ""
			}
			return s.tid
		}},
		{[]string{"--by", "cpu", "-C", "0"}, func(s *scripted) string {
			if s.cpu != "0" {
				return ""
			}
			return "CPU0"
		}},
		{[]string{"--by", "cpu", "--time", strconv.FormatFloat(middle, 'f', 9, 64) + ","}, func(s *scripted) string {
			if s.time < middle {
				return ""
			}
			return "CPU" + s.cpu
		}},
		{[]string{"--by", "interval", "-I", "20"}, func(s *scripted) string {
			return strconv.FormatFloat(math.Floor((s.time-first)/0.02+1e-7)*0.02, 'g', 6, 64) + " s"
		}},
	} {
		want, whole := map[string]float64{}, 0.0
		for i := range list {
			if part := tt.part(&list[i]); part != "" {
				want[part] += list[i].period
				whole += list[i].period
			}
		}
		if whole == 0 {
			continue // nothing ran there
		}
		got, sum := map[string]float64{}, 0.0
		for _, a := range reportPlaces(t, append(tt.args, file)...).Accounts[1:] {
			if a.Scope.Share == 0 {
				continue // it has samples of the other event
			}
			label := a.Scope.Label // without the name, which may have changed
			got[label[strings.LastIndex(label, "-")+1:]] += a.Scope.Share * whole
			sum += a.Scope.Share
		}
		if !(math.Abs(sum-1) <= 1e-9) {
			t.Errorf("%v: shares of %v together", tt.args, sum)
		}
		for part, value := range want {
			if !(math.Abs(got[part]-value) <= 1e-6*whole) {
				t.Errorf("%v: %s has %.0f, perf script says %.0f of %.0f", tt.args, part, got[part], value, whole)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%v: %d parts, perf script has %d: %v", tt.args, len(got), len(want), got)
		}
	}
	// And each thread goes through the functions as the whole does.
	byThread := reportPlaces(t, "--by", "thread,function", file)
	shares := map[string]float64{}
	for _, a := range byThread.Accounts[1:] {
		thread, _, _ := strings.Cut(a.Scope.Label, "-")
		shares[thread+" "+a.Scope.Function] += a.Scope.Share
	}
	for _, thread := range []string{"first", "second", "child"} {
		if ratio := shares[thread+" heavy"] / shares[thread+" light"]; !(ratio > 2 && ratio < 8) {
			t.Errorf("in %s heavy has %.2f times the share of light, want 4", thread, ratio)
		}
	}
}

// TestReportGroupReads compares the counts of groups with sums of perf's. The groups are
// read with each sample of their leader (:S).
func TestReportGroupReads(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-e", "{cpu-clock,page-faults,minor-faults,context-switches}:S"},
		{"-e", "{page-faults,cpu-clock,task-clock}:S", "--per-thread"},
		{"-e", "{cpu-clock,page-faults}:S", "-e", "context-switches", "--no-inherit"},
	} {
		file := recordWorkload(t, threaded, args...)
		c := exec.Command("perf", "script", "-F", "event,period", "-i", file)
		c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			if len(f) != 2 {
				t.Fatalf("perf script prints %q", line)
			}
			period, err := strconv.ParseFloat(f[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			want[strings.TrimSuffix(f[1], ":")] += period
		}
		for _, by := range []string{"module", "thread"} {
			r := reportPlaces(t, "--by", by, file)
			got := map[string]float64{}
			for _, a := range r.Accounts[1:] {
				for _, c := range a.Counts {
					if c.Value != nil {
						got[c.Event] += *c.Value
					}
				}
			}
			for event, value := range want {
				if !(math.Abs(got[event]-value) <= 1e-6*value) {
					t.Errorf("%v by %s: %s is %v, perf has %v", args, by, event, got[event], value)
				}
			}
		}
	}
}

// TestReportLost has a recording with more samples than its buffer takes: what was lost
// is said, as many as perf says. Records of the buffer can count more than the event: they
// also have the lost records that are no samples.
func TestReportLost(t *testing.T) {
	t.Parallel()
	file := recordWorkload(t, faulting, "-c", "1", "-e", "page-faults", "-m", "1", "-g")
	perf := func(args ...string) string {
		c := exec.Command("perf", append(args, "-i", file)...)
		c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	samples := regexp.MustCompile(`Total Lost Samples: (\d+)`).FindStringSubmatch(perf("report", "--stdio", "-g", "none"))
	if samples == nil {
		t.Fatal("perf report says nothing of what was lost")
	}
	want, records := atoi(t, samples[1]), 0
	for _, m := range regexp.MustCompile(`PERF_RECORD_LOST lost (\d+)`).FindAllStringSubmatch(perf("script", "--show-lost-events"), -1) {
		records += atoi(t, m[1])
	}
	want = max(want, records)
	text := runMain(t, "report", "-v", "--by", "module", file)
	got := 0
	if note := regexp.MustCompile(`(\d+) records were lost while recording`).FindStringSubmatch(text); note != nil {
		got = atoi(t, note[1])
	}
	if got != want {
		t.Errorf("the report says that %d records were lost, perf %s samples and %d records", got, samples[1], records)
	}
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// faulting is a program of threads that touch memory for the first time.
var faulting = workload{name: "faults.c", source: `
#include <pthread.h>
#include <sys/mman.h>
static void *touch(void *arg) {
	for (int round = 0; round < 20; round++) {
		char *p = mmap(0, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED) return arg;
		madvise(p, 1 << 22, MADV_NOHUGEPAGE);
		for (int i = 0; i < 1 << 22; i += 4096) p[i] = 1;
		munmap(p, 1 << 22);
	}
	return 0;
}
int main(void) {
	pthread_t t[3];
	for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, touch, 0);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	return 0;
}
`, build: []string{"gcc", "-g", "-O1", "-pthread", "-o"}}

// TestPerfKinds: --by takes the names that perf report --sort has.
func TestPerfKinds(t *testing.T) {
	t.Parallel()
	for perf, want := range map[string]string{"pid,dso": "process,module", "tid": "thread", "sym": "function", "symbol": "function", "srcline": "line"} {
		split, err := parseSplit(perf)
		if err != nil || split.String() != want {
			t.Errorf("--by %s is %s, %v; want %s", perf, split, err, want)
		}
	}
	if _, err := parseSplit("dsos"); err == nil {
		t.Error("--by dsos is a kind")
	}
}

// TestNoCallers: a function that no callchain has is named in the error.
func TestNoCallers(t *testing.T) {
	t.Chdir("../..")
	for flag, want := range map[string]string{"--callers=nosuch": "nosuch", "--callees=hsah": "hsah; did you mean hash?"} {
		var out, msg strings.Builder
		status := Main(t.Context(), []string{"report", flag, "--sysroot", "examples/stacks", "examples/stacks.data"}, strings.NewReader(""), &out, &msg)
		if want := "cyclestack report: examples/stacks.data: no callchain has a function " + want + "\n"; status != exitInput || out.String() != "" || msg.String() != want {
			t.Errorf("%s: status %d, %q, %q", flag, status, out.String(), msg.String())
		}
	}
}
