package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/testkernel"

	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A fakeKernel is a machine with a PMU for tests on machines that have none.
type fakeKernel = testkernel.Kernel

// call runs the program on a kernel and returns its output and exit status.
func call(k *fakeKernel, args ...string) (stdout, stderr string, status int) {
	var out, err bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &err, kernel: k.Kernel()}
	status = a.main(context.Background(), args)
	return out.String(), err.String(), status
}

// TestStat looks at accounts of machines with PMUs of several kinds.
func TestStat(t *testing.T) {
	t.Parallel()
	hybrid := func() *fakeKernel {
		const alderlake = 151
		return &fakeKernel{
			Root:  testkernel.Intel(alderlake, 4, 1, map[string]string{"cpu_core": "0-1", "cpu_atom": "2-3"}),
			Probe: perfevent.Probe{Supported: true, Counters: 6, CapPerfmon: true},
			Value: testkernel.BackEndBound,
		}
	}
	refusing := testkernel.Skylake(1)
	refusing.Refuse = func(spec perfevent.Spec) error {
		if spec.Groups[0][0].PMU != nil {
			return &perfevent.OpenError{Event: "cycles", Errno: fs.ErrPermission, Advice: "ask"}
		}
		return nil
	}
	lacking := testkernel.Skylake(1)
	lacking.Lacks = func(e perfevent.Event) bool { return e.Name == "IDQ_UOPS_NOT_DELIVERED.CORE" }
	sealed := &fakeKernel{Root: testkernel.Intel(85, 2, 1, nil), Value: testkernel.BackEndBound}
	sealed.Refuse = func(spec perfevent.Spec) error {
		if len(spec.Groups) > 0 {
			return &perfevent.OpenError{Errno: fs.ErrPermission, Advice: "ask"}
		}
		return nil
	}
	idle := testkernel.Skylake(1)
	idle.Idle = true
	unprivileged := testkernel.Skylake(1)
	unprivileged.Probe.CapPerfmon = false
	unknown := testkernel.Skylake(1)
	unknown.Root["proc/cpuinfo"] = &fstest.MapFile{Data: []byte("vendor_id : GenuineIntel\ncpu family : 99\nmodel : 1\nstepping : 1\n")}
	for _, tt := range []struct {
		name   string
		kernel *fakeKernel
		args   string
		status int
		want   []string // in standard error, in this order
		not    []string
	}{
		{"a program", testkernel.Skylake(1), "-- ./app", 0, []string{"./app, 1.00 s, on skylakex, tma ", "counted by the PMU in 7 groups (14 % each)",
			"Backend_Bound", "Memory_Bound", "bottleneck", "next", "cyclestack explain"}, []string{"whole core"}},
		{"a level", testkernel.Skylake(1), "--level 1 ./app -v", 0, []string{"./app -v, ", "counted by the PMU in one group\n", "Backend_Bound"}, []string{"  Memory_Bound"}},
		{"nodes", testkernel.Skylake(1), "--nodes DRAM_Bound -- ./app", 0, []string{"Backend_Bound", "Memory_Bound", "DRAM_Bound"}, []string{"L3_Bound  "}},
		{"one thread of a core", testkernel.Skylake(2), "--level 1 -- ./app", 0, []string{"Backend_Bound", "uncertain", "--smt off", "about a whole core, but only one"}, nil},
		{"the other idle", testkernel.Skylake(2), "--level 1 --smt off -- ./app", 0, []string{"Backend_Bound"}, []string{"whole core"}},
		{"both threads", testkernel.Skylake(2), "--level 1 -a -- ./app", 0, []string{"the whole machine", "Backend_Bound"}, []string{"whole core"}},
		{"one core's threads", testkernel.Skylake(2), "--level 1 -C 1,3 -- ./app", 0, []string{"CPU 1,3", "Backend_Bound"}, []string{"whole core"}},
		{"half a core", testkernel.Skylake(2), "--level 1 -C 0,1 -- ./app", 0, []string{"whole core"}, nil},
		{"each core", testkernel.Skylake(2), "--level 1 -a --per-core -- ./app", 0, []string{"S0-D0-C0", "S0-D0-C1"}, []string{"?"}},
		{"two types of cores", hybrid(), "--level 1 -- ./app", 0, []string{"./app, cpu_core, 1.00 s, on alderlake:core, ", "Backend_Bound",
			"./app, cpu_atom, 1.00 s, on alderlake:atom, ", "Backend_Bound"}, []string{"unused", "other "}},
		{"one of them", hybrid(), "--level 1 --cpu alderlake:atom -- ./app", 0, []string{"./app, 1.00 s, on alderlake:atom, "}, []string{"alderlake:core"}},
		{"intervals of both", hybrid(), "--format csv -I 100 -- ./app", 2, []string{"choose one"}, nil},
		{"user and kernel", testkernel.Skylake(1), "--split --level 1 -- ./app", 0, []string{"./app, user mode, ", "./app, the kernel, "}, nil},
		{"no privilege", unprivileged, "--level 1 -- ./app", 0, []string{"./app, user mode, ", "only user mode was counted", "perf_event_paranoid=1"}, nil},
		{"a refusal", refusing, "-v -- ./app", 0, []string{"os-time", "sampled by the clock, as the kernel refuses", "CPUs_Utilised"}, nil},
		{"a refusal that matters", refusing, "--source pmu -- ./app", 4, []string{"cycles: permission denied: ask"}, nil},
		{"nothing but times", sealed, "-v -- ./app", 0, []string{"the kernel shows no core PMU", "CPUs_Utilised", "User_Time", "only user and system time are known"}, nil},
		{"nothing at all", sealed, "-a -- ./app", 4, []string{"permission denied: ask"}, nil},
		{"an event that is missing", lacking, "--level 1 -- ./app", 0, []string{"Frontend_Bound   –", "IDQ_UOPS_NOT_DELIVERED.CORE", "Retiring"}, nil},
		{"an unknown processor", unknown, "-- ./app", 0, []string{"on generic, generic 1", "IPC", "the catalogue does not have this processor (GenuineIntel-99-1-1)"}, nil},
		{"a process that sleeps", idle, "-p 1", 0, []string{"process 1, ", "it did not run while it was counted"}, nil},
		{"no such node", testkernel.Skylake(1), "--nodes Foo -- ./app", 2, []string{"no node of tma matches"}, nil},
		{"no such method", testkernel.Skylake(1), "--model foo -- ./app", 2, []string{"foo"}, nil},
		{"no such parameter", testkernel.Skylake(1), "-P foo=1 -- ./app", 2, []string{"foo"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, status := call(tt.kernel, append([]string{"stat", "-v"}, strings.Fields(tt.args)...)...)
			if status != tt.status || stdout != "" {
				t.Errorf("status %d, want %d; standard output %q", status, tt.status, stdout)
			}
			rest := strings.Join(strings.Fields(stderr), " ")
			for _, w := range tt.want {
				w = strings.Join(strings.Fields(w), " ")
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("standard error has no %q, or not in this order:\n%s", w, stderr)
				}
				rest = after
			}
			for _, n := range tt.not {
				if strings.Contains(stderr, n) {
					t.Errorf("standard error has %q:\n%s", n, stderr)
				}
			}
		})
	}
}

// TestStatSpec looks at what the kernel is asked for.
func TestStatSpec(t *testing.T) {
	t.Parallel()
	k := testkernel.Skylake(1)
	call(k, "stat", "--split", "--level", "1", "--", "./app", "x")
	if len(k.Specs) != 1 {
		t.Fatalf("started %d times", len(k.Specs))
	}
	spec := k.Specs[0]
	if got := spec.Target.Command; !slices.Equal(got, []string{"./app", "x"}) {
		t.Errorf("command %q", got)
	}
	if len(spec.Groups) != 2 {
		t.Fatalf("%d groups, want one for each mode", len(spec.Groups))
	}
	for i, group := range spec.Groups {
		for _, e := range group {
			user, kernel := e.Attr.ExcludeKernel, e.Attr.ExcludeUser
			if user != (i == 0) || kernel != (i == 1) {
				t.Errorf("group %d: %s: exclude kernel %t, exclude user %t", i, e.Name, user, kernel)
			}
		}
	}
	if spec.Interval < 20*time.Millisecond || spec.Interval%(4*time.Millisecond) != 0 {
		t.Errorf("groups that take turns are read every %v, which are no whole turns", spec.Interval)
	}
	if got, want := spec.Rotation, []int{0, 1}; !slices.Equal(got, want) {
		t.Errorf("turns %v, want %v", got, want)
	}
	k = testkernel.Skylake(1)
	call(k, "stat", "--level", "1", "--", "./app")
	if i := k.Specs[0].Interval; i != 0 {
		t.Errorf("one group is read every %v", i)
	}
}

// TestStatTogether compares intervals that go to a file, and are evaluated together, with
// intervals that are written one by one. Each has the operating system's account of its own
// time.
func TestStatTogether(t *testing.T) {
	const (
		intervals = 23 // ten of 100 ms at a time
		long      = 14 // of the operating system's time this one has most, but for the first, which has what was before
	)
	machine := func() *fakeKernel {
		k, n, turn := testkernel.Skylake(1), 0.0, 0
		k.Left = intervals
		k.Value = func(perfevent.Event) float64 { n++; return 1e6 * n }
		k.Under = os.DirFS("/")
		k.Lives = func(w perfevent.Observer) {
			if turn++; turn == 1 {
				w.Started(os.Getpid())
			}
			if turn == long {
				time.Sleep(500 * time.Millisecond)
			}
		}
		return k
	}
	args := []string{"stat", "--level", "1", "-I", "100", "--format", "csv", "-v"}
	_, want, status := call(machine(), append(args, "./app")...)
	if status != 0 {
		t.Fatalf("status %d: %s", status, want)
	}
	name := filepath.Join(t.TempDir(), "account.csv")
	if _, stderr, status := call(machine(), append(args, "-o", name, "./app")...); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// What this process did meanwhile is not the same twice: so of the operating system's account
	// there is only how many threads there were.
	counted := func(text string) (rows []string, threads []float64) {
		for row := range strings.Lines(text) {
			switch f := strings.Split(row, ","); {
			case !strings.HasPrefix(f[4], "os-time:"):
				rows = append(rows, row)
			case f[4] == "os-time:Threads":
				v, err := strconv.ParseFloat(f[6], 64)
				if err != nil {
					t.Fatal(err)
				}
				threads = append(threads, v)
			}
		}
		return rows, threads
	}
	rows, threads := counted(string(text))
	wantRows, wantThreads := counted(want)
	if !slices.Equal(rows, wantRows) {
		t.Errorf("%d rows:\n%s\nwant %d:\n%s", len(rows), text, len(wantRows), want)
	}
	for _, list := range [][]float64{threads, wantThreads} {
		if len(list) != intervals || slices.Index(list, slices.Max(list[1:])) != long-1 {
			t.Errorf("threads of intervals of which number %d is longest: %v", long, list)
		}
	}
}

// TestStatDepth checks that an account is as deep as there is time for.
func TestStatDepth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   []string
		groups int
	}{
		{[]string{"-I", "100"}, 2},
		{[]string{"-I", "5s"}, 7},
		{[]string{"--timeout", "30s"}, 16},
		{nil, 7},
	} {
		k := testkernel.Skylake(1)
		call(k, append(append([]string{"stat"}, tt.args...), "./app")...)
		if got := len(k.Specs[0].Groups); got != tt.groups {
			t.Errorf("stat %v: %d groups, want %d", tt.args, got, tt.groups)
		}
	}
}

// TestErrata checks that a group with an event of an erratum asks for no more than Linux's
// workaround leaves it: it would open the group, and never count it.
func TestErrata(t *testing.T) {
	haswell := func() *fakeKernel {
		const model = 63
		k := testkernel.Skylake(2)
		k.Root = testkernel.Intel(model, 4, 2, map[string]string{"cpu": ""})
		return k
	}
	stat := func(args ...string) [][]perfevent.Event {
		k := haswell()
		if _, stderr, status := call(k, append([]string{"stat"}, args...)...); status != 0 || len(k.Specs) != 1 {
			t.Fatalf("stat %v: status %d: %s", args, status, stderr)
		}
		return k.Specs[0].Groups
	}
	record := func(args ...string) [][]perfevent.Event {
		f := recordFlags{source: string(measure.Auto), given: func(string) bool { return false }}
		f.all = true
		a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, kernel: haswell().Kernel()}
		r, err := a.recorder(&common{level: 6}, &f, args)
		if err != nil {
			t.Fatal(err)
		}
		return r.plan.Spec().Groups
	}
	for what, groups := range map[string][][]perfevent.Event{
		"stat":           stat("--level", "6", "./app"),
		"stat --smt off": stat("--level", "6", "--smt", "off", "./app"),
		"record":         record(),
	} {
		with := 0
		for _, group := range groups {
			general, erratum := 0, false
			for _, e := range group {
				const anyThread = 1 << 21
				switch code := e.Attr.Config &^ anyThread; code {
				case 0x3c, 0xc0, 0x300: // on fixed counters
				default:
					general++
					erratum = erratum || 0xd0 <= code&0xff && code&0xff <= 0xd3
				}
			}
			if erratum {
				with++
			}
			if erratum && general > 2 {
				t.Errorf("%s: %d general counters for %s", what, general, names(perfevent.Spec{Groups: [][]perfevent.Event{group}}))
			}
		}
		if with == 0 {
			t.Errorf("%s: of %d groups none has such an event", what, len(groups))
		}
	}
}

// TestWatchdog checks that the watchdog's counter is subtracted once. The probe for free
// counters ran while the watchdog held it, unless it is a fixed counter.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	zen4 := testkernel.Skylake(1)
	zen4.Root["proc/cpuinfo"] = &fstest.MapFile{Data: []byte("vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nstepping : 1\n")}
	zen4.Root["sys/bus/event_source/devices/cpu/format/event"] = &fstest.MapFile{Data: []byte("config:0-7,32-35\n")}
	zen4.Probe.Counters = 5
	for _, tt := range []struct {
		name   string
		kernel *fakeKernel
		same   bool // with and without it
	}{{"amdzen4", zen4, true}, {"skylakex", testkernel.Skylake(2), false}} {
		asked := map[bool]string{}
		for _, on := range []bool{false, true} {
			k := tt.kernel
			k.Probe.Watchdog = on
			if _, stderr, status := call(k, "stat", "--level", "2", "./app"); status != 0 || !strings.Contains(stderr, "on "+tt.name) {
				t.Fatalf("%s: status %d: %s", tt.name, status, stderr)
			}
			asked[on] = fmt.Sprint(names(k.Specs[len(k.Specs)-1]))
		}
		if (asked[false] == asked[true]) != tt.same {
			t.Errorf("%s: without the watchdog %s\nwith it %s", tt.name, asked[false], asked[true])
		}
	}
}

// TestDrillDown follows a bottleneck.
func TestDrillDown(t *testing.T) {
	t.Parallel()
	k := testkernel.Skylake(1)
	_, stderr, status := call(k, "stat", "-v", "--drilldown", "--", "./app")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if len(k.Specs) < 4 {
		t.Errorf("%d runs:\n%s", len(k.Specs), stderr)
	}
	for _, w := range []string{"Backend_Bound", "Memory_Bound", "DRAM_Bound", "bottleneck", "stopped, as"} {
		if !strings.Contains(stderr, w) {
			t.Errorf("no %s in\n%s", w, stderr)
		}
	}
	if strings.Contains(stderr, "Fetch_Latency") {
		t.Errorf("it counted what is not on the path:\n%s", stderr)
	}
}

// TestLiveSMT divides the time of the fake machine's cores.
func TestLiveSMT(t *testing.T) {
	t.Parallel()
	k := testkernel.Skylake(2)
	k.Root["sys/devices/system/cpu/cpu0/cpufreq/base_frequency"] = &fstest.MapFile{Data: []byte("2000000\n")}
	k.Value = func(e perfevent.Event) float64 {
		switch e.Name {
		case "tsc":
			return 2e9
		case "CPU_CLK_UNHALTED.REF_TSC":
			return 1e9
		case "CPU_CLK_UNHALTED.REF_XCLK_ANY":
			return 1.5e9 / 80 // 25 MHz, of 2000
		}
		return 0.5e9 / 80
	}
	stdout, stderr, status := call(k, "smt", "-a", "--", "./app")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, w := range []string{"core of CPU0 and CPU2", "core of CPU1 and CPU3", "Neither_Active       25.0 %", "Both_Active          25.0 %"} {
		if !strings.Contains(stdout, w) {
			t.Errorf("no %q in\n%s", w, stdout)
		}
	}
	if _, stderr, status := call(k, "smt", "-C", "0-1", "--", "./app"); status != 2 || !strings.Contains(stderr, "no core has both") {
		t.Errorf("half of each core: status %d: %s", status, stderr)
	}
	if _, stderr, status := call(testkernel.Skylake(1), "smt", "-a", "--", "./app"); status != 4 || !strings.Contains(stderr, "one logical processor") {
		t.Errorf("without SMT: status %d: %s", status, stderr)
	}
}

// TestStatJSON holds what is printed for programs to the schema.
func TestStatJSON(t *testing.T) {
	t.Parallel()
	_, stderr, status := call(testkernel.Skylake(2), "stat", "--format", "json", "--", "./app")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if err := testschema.Validate(t, report.Schema[report.Accounts](), stderr); err != nil {
		t.Errorf("%#v", err)
	}
	for _, w := range []string{`"kind":"perf-event"`, `"how":"counted by the PMU in 4 groups`, `"doubt":"about a whole core`} {
		if !strings.Contains(stderr, w) {
			t.Errorf("no %s in %s", w, stderr)
		}
	}
}

// TestRemember checks that a remembered plan is the plan that was made, and that nothing else
// is taken for it.
func TestRemember(t *testing.T) {
	t.Parallel()
	k := testkernel.Skylake(1)
	k.Cache = t.TempDir()
	files := func() []string {
		list, err := filepath.Glob(filepath.Join(k.Cache, "cyclestack", "plans", "*", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	asked := func() string { return fmt.Sprint(names(k.Specs[len(k.Specs)-1])) }
	_, first, _ := call(k, "stat", "./app")
	want := asked()
	if n := len(files()); n != 1 {
		t.Fatalf("%d files of plans, want one", n)
	}
	if _, again, _ := call(k, "stat", "./app"); again != first || asked() != want {
		t.Errorf("as planned:\n%s\n%s\nas remembered:\n%s\n%s", want, first, asked(), again)
	}
	if call(k, "stat", "--level", "1", "./app"); asked() == want {
		t.Errorf("the plan for another level was taken for that of level 1: %s", asked())
	}
	call(k, "stat", "--nodes", "DRAM_Bound", "./app")
	if n := len(files()); n != 3 {
		t.Errorf("%d files of plans, want 3", n)
	}
	before := k.Probe
	for i, change := range []func(){func() { k.Probe.Watchdog = true }, func() { k.Probe.Counters = 3 }, func() { k.Probe.SMT = true }} {
		change()
		if call(k, "stat", "./app"); asked() == want || len(files()) != 4+i {
			t.Errorf("%d files of plans: the one for %+v was taken for that of %+v: %s", len(files()), before, k.Probe, asked())
		}
		k.Probe = before
	}
	for _, text := range []string{"", "{", "[{}]", `[{"Plan":{"Rotation":[7]}}]`, `[{"Plan":{"Nodes":[{"Groups":[-1]}]}}]`, `[{"Plan":{}}]`} {
		for _, f := range files() {
			if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, again, _ := call(k, "stat", "./app"); again != first {
			t.Errorf("after %q was remembered:\n%s", text, again)
		}
	}
	stale := filepath.Join(k.Cache, "cyclestack", "plans", "0000")
	if err := os.Rename(filepath.Dir(files()[0]), stale); err != nil {
		t.Fatal(err)
	}
	call(k, "stat", "./app")
	if _, err := os.Stat(stale); err == nil || len(files()) != 1 {
		t.Errorf("plans of another version were kept: %v", files())
	}
	k.Cache = filepath.Join(files()[0], "no", "directory")
	if _, again, status := call(k, "stat", "./app"); again != first || status != 0 {
		t.Errorf("where nothing can be remembered: status %d:\n%s", status, again)
	}
}

// names are the names of the events of a spec's groups.
func names(spec perfevent.Spec) (groups [][]string) {
	for _, group := range spec.Groups {
		var list []string
		for _, e := range group {
			list = append(list, e.Name)
		}
		groups = append(groups, list)
	}
	return groups
}
