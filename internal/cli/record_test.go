package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/testkernel"

	"github.com/cyclestack/cyclestack/internal/cgroups"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A samplesOf is what samples are of: a function in a file, or a thread by its number.
type samplesOf struct{ module, name string }

// A sampled is how many samples there are, and what their periods come to.
type sampled struct {
	samples int
	period  float64
}

// oneProgram is a program of one thread that computes, faults and reads files.
var oneProgram = []string{"sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read x < /etc/passwd; [ -d /usr/include ]"}

// programs is several programs, one after the other and at one time.
var programs = []string{"sh", "-c", "ls -R /usr/include > /dev/null & ls -R /etc > /dev/null; wait; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"}

// needSampling skips a test where samples cannot be taken, of programs or of the
// machine.
func needSampling(t *testing.T, wide bool) {
	t.Helper()
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	probe := sys.Probe(os.DirFS("/"))
	if n := len(probe.Errors); n > 1 || n > 0 && wide {
		t.Skipf("samples may not be taken here: %v", &probe.Errors[0])
	}
}

// needCgroups skips a test of cgroups where there are none.
func needCgroups(t *testing.T, args []string) {
	t.Helper()
	if _, err := cgroups.Mount(); err != nil && slices.Contains(args, "-G") {
		t.Skip(err)
	}
}

// A perfTool is perf with its own home directory. In the user's home, other perf processes
// change the cache of build ids, and perf can fail of that.
type perfTool struct{ path, home string }

// needPerf returns perf, or skips the test where there is none that records. Where
// the shared material is required perf is, too.
func needPerf(t *testing.T) perfTool {
	t.Helper()
	if testing.Short() {
		t.Skip("perf takes its time")
	}
	path, err := exec.LookPath("perf")
	if err != nil {
		if os.Getenv("CYCLESTACK_REQUIRE_SHARED") == "1" {
			t.Fatal("needs perf")
		}
		t.Skip("needs perf")
	}
	if err := perfTried(); err != nil {
		t.Skip(err)
	}
	return perfTool{path, t.TempDir()}
}

// perfTried tries once whether perf records here.
var perfTried = sync.OnceValue(func() error {
	home, err := os.MkdirTemp("", "perf")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	perf := perfTool{"perf", home}
	if out, err := perf.command("record", "-q", "-N", "-e", "cpu-clock", "-o", filepath.Join(home, "x"), "--", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("perf does not record here: %w: %.300s", err, out)
	}
	return nil
})

func (p perfTool) command(args ...string) *exec.Cmd {
	c := exec.Command(p.path, args...)
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null", "HOME="+p.home)
	return c
}

// output returns what perf prints.
func (p perfTool) output(t *testing.T, args ...string) string {
	t.Helper()
	var out, msg bytes.Buffer
	c := p.command(args...)
	c.Stdout, c.Stderr = &out, &msg
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 0 {
		t.Skipf("perf %q: %v", args, err) // Debian's 6.1 crashes now and then
	}
	if err != nil {
		t.Fatalf("perf %q: %v\n%s", args, err, msg.Bytes())
	}
	return out.String()
}

// scriptTotals are the samples of each event, according to perf script.
func scriptTotals(t *testing.T, perf perfTool, file string) map[string]sampled {
	t.Helper()
	totals := map[string]sampled{}
	for line := range strings.Lines(perf.output(t, "script", "-i", file, "-G", "-F", "period,event")) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		period, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			t.Fatalf("perf script prints %q", line)
		}
		name := strings.TrimSuffix(f[1], ":")
		x := totals[name]
		totals[name] = sampled{x.samples + 1, x.period + period}
	}
	return totals
}

// eventLine is what precedes the samples of an event in perf report.
var eventLine = regexp.MustCompile(`^# Samples: .* of events? '(.*)'`)

// reportTotals are perf report's samples of each event, of each function of a file or of each
// thread.
func reportTotals(t *testing.T, perf perfTool, file, by string) map[string]map[samplesOf]sampled {
	t.Helper()
	keys := map[string]string{"function": "dso,sym", "thread": "pid"}[by]
	text := perf.output(t, "report", "-i", file, "--stdio", "--no-children", "-g", "none", "--percent-limit", "0", "--no-group",
		"-F", "sample,period,"+keys, "-t", "|")
	totals := map[string]map[samplesOf]sampled{}
	event := ""
	for line := range strings.Lines(text) {
		if m := eventLine.FindStringSubmatch(line); m != nil {
			event = m[1]
			totals[event] = map[samplesOf]sampled{}
		}
		f := strings.Split(strings.TrimSpace(line), "|")
		if strings.HasPrefix(line, "#") || len(f) < 3 {
			continue
		}
		n, err1 := strconv.Atoi(strings.TrimSpace(f[0]))
		period, err2 := strconv.ParseFloat(strings.TrimSpace(f[1]), 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("perf report prints %q", line)
		}
		var at samplesOf
		if by == "thread" { // "1234:sh"
			tid, _, _ := strings.Cut(strings.TrimSpace(f[2]), ":")
			at.name = tid
		} else { // "[.] main"
			at = samplesOf{strings.TrimSpace(f[2]), strings.TrimSpace(f[3][strings.IndexByte(f[3], ']')+1:])}
		}
		x := totals[event][at]
		totals[event][at] = sampled{x.samples + n, x.period + period}
	}
	return totals
}

// A placesDocument is what report --format json says of a recording.
type placesDocument struct {
	Accounts []struct {
		Scope struct {
			Kind, Module, Function string
			TID                    int
		}
		Counts []struct {
			Event   string
			Value   float64
			Samples int
		}
	}
}

// ours reads a recording with report, by a kind of place.
func ours(t *testing.T, file, by string) placesDocument {
	t.Helper()
	var out, msg bytes.Buffer
	if status := Main(context.Background(), []string{"report", "--by", by, "--no-inline", "--format", "json", file}, nil, &out, &msg); status != 0 {
		t.Fatalf("report --by %s: status %d: %s", by, status, &msg)
	}
	var r placesDocument
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// totals returns the samples of each event in each function. The whole has an empty
// name.
func (d *placesDocument) totals(kind string) map[string]map[samplesOf]sampled {
	totals := map[string]map[samplesOf]sampled{}
	for _, a := range d.Accounts {
		if a.Scope.Kind != kind {
			continue
		}
		for _, c := range a.Counts {
			if c.Samples == 0 {
				continue
			}
			if totals[c.Event] == nil {
				totals[c.Event] = map[samplesOf]sampled{}
			}
			at := samplesOf{a.Scope.Module, a.Scope.Function}
			if kind == "thread" {
				at.name = strconv.Itoa(a.Scope.TID)
			}
			x := totals[c.Event][at]
			totals[c.Event][at] = sampled{x.samples + c.Samples, x.period + c.Value}
		}
	}
	return totals
}

func (x sampled) same(y sampled) bool {
	return x.samples == y.samples && math.Abs(x.period-y.period) <= 1e-9*y.period
}

// compareTotals compares what we read of a recording with perf script and perf report:
// the samples and periods of each event, each thread, and each function that perf has
// a name for. Of a recording of all CPUs it compares only the totals by name. Other
// programs may have ended before the second reader looks: their files are gone then,
// or their numbers belong to others. It returns perf script's totals.
func compareTotals(t *testing.T, perf perfTool, file string, wide bool) (script map[string]sampled) {
	t.Helper()
	script = scriptTotals(t, perf, file)
	if len(script) == 0 {
		t.Fatal("perf script shows nothing")
	}
	read := ours(t, file, "function")
	whole := read.totals("run")
	for event, want := range script {
		if got := whole[event][samplesOf{}]; !got.same(want) {
			t.Errorf("%s: %+v, want perf script's %+v", event, got, want)
		}
	}
	if len(whole) != len(script) {
		t.Errorf("events %v, want perf script's %v", whole, script)
	}
	comparePart(t, read.totals("function"), reportTotals(t, perf, file, "function"), wide)
	read = ours(t, file, "thread")
	comparePart(t, read.totals("thread"), reportTotals(t, perf, file, "thread"), wide)
	return script
}

// comparePart compares the samples of the functions, or threads, that perf has a
// name for, and of all together.
func comparePart(t *testing.T, all, wantAll map[string]map[samplesOf]sampled, wide bool) {
	t.Helper()
	for event, want := range wantAll {
		got := all[event]
		if !sum(got).same(sum(want)) {
			t.Errorf("%s: %+v, want perf report's %+v", event, sum(got), sum(want))
		}
		if wide {
			continue
		}
		named, found := 0, 0
		for at, x := range want {
			if strings.HasPrefix(at.name, "0x") {
				continue
			}
			named += x.samples
			if y, ok := got[at]; ok {
				found += x.samples
				if !y.same(x) {
					t.Errorf("%s, %s %s: %+v, want perf report's %+v", event, at.module, at.name, y, x)
				}
			}
		}
		// A name that perf spells differently, as of an alias, is not found. One such
		// function may have two of six samples.
		if (found+2)*10 < named*9 {
			t.Errorf("%s: what has a name in perf report has %d samples, of which %d have it here", event, named, found)
		}
	}
}

func sum(by map[samplesOf]sampled) (all sampled) {
	for _, x := range by {
		all.samples += x.samples
		all.period += x.period
	}
	return all
}

// tries is how often is recorded at most until nothing is foreign.
const tries = 4

// foreign reports whether a recording has samples of other programs' events. Linux 6.18
// writes some into our recordings and into perf's, if other programs open and close very
// many events meanwhile. Other tests do. Reports leave them out, and perf reads no further.
func foreign(t *testing.T, file string) bool {
	t.Helper()
	out, stderr, status := call(testkernel.Skylake(1), "report", "--by", "process", file)
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	return strings.Contains(strings.Join(strings.Fields(out), " "), "their ids are no event's")
}

// recordHere runs record, and returns what it says.
func recordHere(t *testing.T, args ...string) string {
	t.Helper()
	var out, msg bytes.Buffer
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if status := Main(context.Background(), append([]string{"record"}, args...), null, &out, &msg); status != 0 {
		t.Fatalf("record %q: status %d: %s", args, status, &msg)
	}
	return msg.String()
}

// TestRecordPerf records here, and has perf read it: it finds what we do. Eight kinds are
// recorded with -long only.
func TestRecordPerf(t *testing.T) {
	t.Parallel()
	needSampling(t, false)
	perf := needPerf(t)
	for _, tt := range []struct {
		name string
		wide bool
		args []string
	}{
		{"plain", false, []string{"--source", "os"}},
		{"programs, long", false, []string{"-e", "cpu-clock"}},
		{"callchains, long", false, []string{"-e", "cpu-clock", "-g"}},
		{"compressed", false, []string{"-e", "cpu-clock", "-g", "-z"}},
		{"per thread, long", false, []string{"--per-thread", "-e", "cpu-clock", "-z=19"}},
		{"several", false, []string{"-e", "cpu-clock,task-clock,page-faults,context-switches", "-F", "9000"}},
		{"fixed, long", false, []string{"-e", "page-faults", "-c", "3"}},
		{"data", false, []string{"-e", "page-faults", "-c", "1", "-d"}},
		{"cgroups, long", false, []string{"-e", "cpu-clock", "--all-cgroups"}},
		{"all CPUs", true, []string{"-a", "-e", "cpu-clock,page-faults"}},
		{"one CPU, long", true, []string{"-C", "0", "-e", "cpu-clock,page-faults", "-g"}},
		{"group", true, []string{"-a", "-e", "{cpu-clock,page-faults}:S"}},
		{"cgroup, long", true, []string{"-G", "/", "-e", "cpu-clock,page-faults"}},
		{"alone, long", false, []string{"-i", "-e", "cpu-clock,page-faults"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasSuffix(tt.name, "long") {
				testlong.Only(t)
			}
			needSampling(t, tt.wide)
			needCgroups(t, tt.args)
			file := filepath.Join(t.TempDir(), "perf.data")
			program := programs
			if tt.name == "alone, long" || tt.name == "per thread, long" {
				program = oneProgram
			}
			var said string
			for range tries {
				said = recordHere(t, append(append([]string{"-o", file}, tt.args...), append([]string{"--"}, program...)...)...)
				if !foreign(t, file) {
					break
				}
			}
			n := 0
			for _, x := range compareTotals(t, perf, file, tt.wide) {
				n += x.samples
			}
			// Of a group perf script has a line for each event.
			if tt.name != "group" && !strings.Contains(said, fmt.Sprintf(" %d samples, ", n)) {
				t.Errorf("it says %q, and perf finds %d samples", said, n)
			}
		})
	}
}

// TestRecordProcess records a process whose threads come and go: this one.
func TestRecordProcess(t *testing.T) {
	needSampling(t, false)
	perf := needPerf(t)
	ctx, cancel := context.WithCancel(t.Context())
	var threads sync.WaitGroup
	for range 4 {
		threads.Go(func() {
			for ctx.Err() == nil {
				var one sync.WaitGroup
				one.Go(func() {
					runtime.LockOSThread() // it ends with the goroutine
					for x := range 1 << 20 {
						runtime.KeepAlive(x)
					}
				})
				one.Wait()
			}
		})
	}
	file := filepath.Join(t.TempDir(), "perf.data")
	recordHere(t, "-o", file, "-e", "cpu-clock,page-faults", "-p", strconv.Itoa(os.Getpid()), "--timeout", "300")
	cancel()
	threads.Wait()
	compareTotals(t, perf, file, false)
	if n := strings.Count(perf.output(t, "script", "-i", file, "--show-task-events", "-F", "comm,tid,time,event"), "PERF_RECORD_FORK"); n < 4 {
		t.Errorf("%d threads have begun, want many", n)
	}
}

// TestDataMapped: with copies of stacks the mappings of data are recorded too, as perf finds
// .eh_frame_hdr by them. Without they are not.
func TestDataMapped(t *testing.T) {
	perf := needPerf(t)
	for _, what := range [][]string{{"--", "sleep", "0.01"}, {"--timeout", "50", "-p", strconv.Itoa(os.Getpid())}} {
		for graph, want := range map[string]bool{"dwarf": true, "fp": false} {
			file := filepath.Join(t.TempDir(), "perf.data")
			recordHere(t, append([]string{"-o", file, "-e", "cpu-clock", "--call-graph", graph}, what...)...)
			maps := perf.output(t, "script", "-i", file, "--show-mmap-events", "-F", "comm,tid,time,event")
			if got := strings.Contains(maps, "]: r--p /"); got != want {
				t.Errorf("%s, %q: data is mapped: %t, want %t\n%s", graph, what, got, want, maps)
			}
		}
	}
}

// TestPerfRecorded records with perf, and reads that: we find what perf does.
func TestPerfRecorded(t *testing.T) {
	t.Parallel()
	perf := needPerf(t)
	for _, tt := range []struct {
		name string
		pipe bool // also into a pipe
		args []string
	}{
		{"plain", true, []string{"-e", "cpu-clock"}},
		{"compressed", false, []string{"-e", "cpu-clock", "-g", "-z"}},
		{"per thread", false, []string{"--per-thread", "-e", "cpu-clock", "-z=19"}},
		{"several", false, []string{"-e", "cpu-clock,task-clock,page-faults,context-switches"}},
		{"callchains", false, []string{"-e", "cpu-clock,page-faults", "-g"}},
		{"compressed", true, []string{"-e", "cpu-clock", "-g", "-z"}},
		{"dwarf", false, []string{"-e", "cpu-clock", "--call-graph", "dwarf,1024"}},
		{"cgroups", false, []string{"-e", "cpu-clock,page-faults", "--all-cgroups"}},
		{"group", true, []string{"-e", "{cpu-clock,page-faults}:S"}},
		{"per thread", false, []string{"-e", "task-clock,page-faults", "--per-thread"}},
		{"all CPUs", false, []string{"-a", "-e", "cpu-clock,page-faults"}},
		{"cgroup", false, []string{"-a", "-e", "cpu-clock", "-G", "/"}},
	} {
		for _, pipe := range []bool{false, true} {
			if pipe && !tt.pipe {
				continue
			}
			if short := pipe && tt.name == "plain" || tt.name == "callchains" || tt.name == "all CPUs"; !short && !testlong.Enabled() {
				continue
			}
			t.Run(fmt.Sprintf("%s pipe=%t", tt.name, pipe), func(t *testing.T) {
				needCgroups(t, tt.args)
				file := filepath.Join(t.TempDir(), "perf.data")
				to := file
				if pipe {
					to = "-"
				}
				args := append([]string{"record", "-q", "-N", "-F", "9000", "-o", to}, tt.args...)
				program := programs
				if strings.HasPrefix(tt.name, "group") || tt.name == "per thread" {
					program = oneProgram // which these follow
				}
				for range tries {
					out := perf.output(t, append(append(args, "--"), program...)...)
					if pipe {
						if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
							t.Fatal(err)
						}
					}
					if !foreign(t, file) {
						break
					}
				}
				compareTotals(t, perf, file, slices.Contains(tt.args, "-a"))
			})
		}
	}
}

// TestRecordPlan looks at what is sampled on machines with PMUs: the events, their
// groups, and their sample-after values.
func TestRecordPlan(t *testing.T) {
	t.Parallel()
	hybrid := &fakeKernel{Root: testkernel.Intel(151, 4, 1, map[string]string{"cpu_core": "0-1", "cpu_atom": "2-3"}),
		Probe: perfevent.Probe{Supported: true, Counters: 6, CapPerfmon: true}}
	for _, tt := range []struct {
		name   string
		kernel *fakeKernel
		c      common
		f      recordFlags
		want   string
		status int
	}{
		{"level 1", testkernel.Skylake(1), common{}, recordFlags{}, "CPU_CLK_UNHALTED.THREAD/2000003 IDQ_UOPS_NOT_DELIVERED.CORE UOPS_ISSUED.ANY UOPS_RETIRED.RETIRE_SLOTS", 0},
		{"a node", testkernel.Skylake(1), common{nodes: "Retiring"}, recordFlags{}, "CPU_CLK_UNHALTED.THREAD/2000003 UOPS_RETIRED.RETIRE_SLOTS", 0},
		{"a period", testkernel.Skylake(1), common{nodes: "Retiring"}, recordFlags{period: 1000}, "CPU_CLK_UNHALTED.THREAD/1000 UOPS_RETIRED.RETIRE_SLOTS", 0},
		{"a rate", testkernel.Skylake(1), common{nodes: "Retiring"}, recordFlags{freq: "99"}, "CPU_CLK_UNHALTED.THREAD/99Hz UOPS_RETIRED.RETIRE_SLOTS", 0},
		{"events", testkernel.Skylake(1), common{}, recordFlags{sampled: measure.SampleOptions{Events: []string{"cycles,{cpu/event=0xc0/,page-faults/period=3/}:S"}}}, "cycles/3989Hz | cpu/event=0xc0/ page-faults/period=3//3", 0},
		{"the clock", testkernel.Skylake(1), common{}, recordFlags{source: string(measure.OS)}, "cpu-clock/3989Hz", 0},
		{"an event set", &fakeKernel{Root: testkernel.Intel(15, 2, 1, map[string]string{"cpu": ""}), Probe: perfevent.Probe{Supported: true, Counters: 2, CapPerfmon: true}},
			common{model: "core2-cycles"}, recordFlags{set: "big-4"}, "MEM_LOAD_RETIRED.L2_LINE_MISS/10000", 0},
		{"a hybrid", hybrid, common{}, recordFlags{}, " on cpu_core", 0},
		{"no such node", testkernel.Skylake(1), common{nodes: "Nothing"}, recordFlags{}, "no node of tma matches", exitUsage},
		{"no PMU", &fakeKernel{Root: testkernel.Intel(85, 2, 1, nil)}, common{}, recordFlags{}, "cpu-clock/3989Hz", 0},
		{"no PMU, though asked for", &fakeKernel{Root: testkernel.Intel(85, 2, 1, nil)}, common{}, recordFlags{source: string(measure.PMU)}, "no core PMU", exitMachine},
		{"no PMU for a model", &fakeKernel{Root: testkernel.Intel(85, 2, 1, nil)}, common{model: "tma"}, recordFlags{}, "no core PMU", exitMachine},
	} {
		if tt.f.source == "" {
			tt.f.source = string(measure.Auto)
		}
		tt.f.targetFlags.all = true
		tt.f.given = func(flag string) bool { return flag == "count" && tt.f.period > 0 }
		a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, kernel: tt.kernel.Kernel()}
		r, err := a.recorder(&tt.c, &tt.f, nil)
		got, status := "", 0
		switch own := false; {
		case err != nil:
			if status, own = statusOf(err); !own {
				t.Fatal(err)
			}
			got = spelled(err)
		default:
			got = sampledText(r.plan.Spec().Groups)
		}
		if status != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("%s: status %d, %q, want %d, %q", tt.name, status, got, tt.status, tt.want)
		}
	}
}

// sampledText is groups of events, with how often they take samples.
func sampledText(groups [][]perfevent.Event) string {
	var list []string
	for i, g := range groups {
		if i > 0 {
			list = append(list, "|")
		}
		for _, e := range g {
			text := e.Name
			switch {
			case e.Attr.Freq:
				text += fmt.Sprintf("/%dHz", e.Attr.Sample)
			case e.Attr.Sample > 0:
				text += fmt.Sprintf("/%d", e.Attr.Sample)
			}
			list = append(list, text)
		}
	}
	return strings.Join(list, " ")
}
