package cli

import (
	"bytes"
	"context"
	"fmt"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A fakeKernel is a machine with a PMU for tests on machines that have none.
type fakeKernel struct {
	root   fstest.MapFS
	probe  perfevent.Probe
	refuse func(perfevent.Spec) error    // what Start fails with; nil for nothing
	value  func(perfevent.Event) float64 // what an event counts
	lacks  func(perfevent.Event) bool    // what the kernel does not open
	idle   bool                          // what is counted does not run
	cache  string                        // directory of what can be forgotten; "" for none
	lives  func(perfevent.Observer)      // starts a command that is watched, and ends with it; nil for none
	under  fs.FS                         // what the root does not have; nil for nothing
	left   int                           // how many tables a run has; one if it is 0
	specs  []perfevent.Spec              // that were started
}

func (k *fakeKernel) kernel() kernel {
	var cache func() (string, error)
	if k.cache != "" {
		cache = func() (string, error) { return k.cache, nil }
	}
	var root fs.FS = k.root
	if k.under != nil {
		root = overlay{k.root, k.under}
	}
	return kernel{
		cache: cache,
		root:  root,
		probe: func(*perfevent.System, fs.FS) *perfevent.Probe { return &k.probe },
		limit: func(*perfevent.System, fs.FS) *perfevent.Probe { return &k.probe },
		start: func(_ context.Context, sys *perfevent.System, spec perfevent.Spec) (counting, error) {
			k.specs = append(k.specs, spec)
			if k.refuse != nil {
				if err := k.refuse(spec); err != nil {
					return nil, err
				}
			}
			return &fakeRun{k: k, sys: sys, spec: spec, left: max(1, k.left)}, nil
		},
	}
}

// An overlay is a file system over another one.
type overlay struct{ over, under fs.FS }

func (o overlay) Open(name string) (fs.File, error) {
	f, err := o.over.Open(name)
	if err != nil {
		return o.under.Open(name)
	}
	return f, nil
}

// A fakeRun counts what the fake kernel says, at once.
type fakeRun struct {
	k     *fakeKernel
	sys   *perfevent.System
	spec  perfevent.Spec
	table *counts.Table
	seen  *counts.Table // with what was seen beside it
	left  int
	now   float64
}

func (r *fakeRun) Next() bool {
	if r.left == 0 {
		return false
	}
	r.left--
	seconds := 1.0
	if r.k.lives != nil && r.spec.Observer != nil {
		begin := time.Now()
		r.k.lives(r.spec.Observer)
		seconds = time.Since(begin).Seconds()
	}
	if r.k.left > 0 {
		seconds = r.spec.Interval.Seconds()
	}
	if r.table == nil {
		r.table = counts.NewTable(r.layout())
	}
	t := r.table
	t.Reset(t.Layout)
	t.Start, t.Duration, t.Interval = r.now, seconds, r.spec.Interval > 0
	r.now += seconds
	for i := range t.Scopes {
		row := t.Row(i)
		k := 0
		for _, group := range r.spec.Groups {
			for _, e := range group {
				row[k] = r.cell(e, len(r.spec.Groups))
				k++
			}
		}
		for _, e := range r.spec.Always {
			row[k] = r.cell(e, 1)
			k++
		}
	}
	if r.seen = t; r.spec.Observer != nil && r.k.under != nil {
		r.seen = r.spec.Observer.Join(t)
	}
	return true
}

func (r *fakeRun) cell(e perfevent.Event, turns int) counts.Cell {
	if r.k.idle {
		return counts.Cell{State: counts.NotCounted}
	}
	if r.k.lacks != nil && r.k.lacks(e) {
		return counts.Cell{State: counts.NotSupported}
	}
	return counts.Cell{State: counts.Counted, Value: r.k.value(e), Enabled: 1e9, Running: 1e9 / float64(turns)}
}

func (r *fakeRun) layout() *counts.Layout {
	l := &counts.Layout{}
	for g, group := range r.spec.Groups {
		for _, e := range group {
			l.Columns = append(l.Columns, counts.Column{Event: e.Name, Group: g + 1})
		}
	}
	for _, e := range r.spec.Always {
		l.Columns = append(l.Columns, counts.Column{Event: e.Name})
	}
	if !r.spec.Keep.Has(counts.CPU) && !r.spec.Keep.Has(counts.Core) {
		l.Scopes = []counts.Scope{counts.RunScope("")}
		return l
	}
	topology, err := r.sys.Topology()
	if err != nil {
		panic(err)
	}
	for _, cpu := range topology {
		if only := r.spec.Target.CPUs; only != nil && !slices.Contains(only, cpu.ID) {
			continue
		}
		s := counts.RunScope(fmt.Sprintf("CPU%d", cpu.ID))
		s.Kind, s.CPU, s.Core, s.Die, s.Socket = counts.CPU, cpu.ID, cpu.Core, cpu.Die, cpu.Socket
		l.Scopes = append(l.Scopes, s)
	}
	return l
}

func (r *fakeRun) Table() *counts.Table    { return r.seen }
func (r *fakeRun) Err() error              { return nil }
func (r *fakeRun) Kind() string            { return "perf-event" }
func (r *fakeRun) Stop()                   {}
func (r *fakeRun) Signal(os.Signal) error  { return nil }
func (r *fakeRun) State() *os.ProcessState { return nil }
func (r *fakeRun) Close() error            { return nil }

// intelFormat is the format of the event codes of Intel's core PMU.
var intelFormat = map[string]string{"event": "config:0-7", "umask": "config:8-15", "edge": "config:18", "any": "config:21",
	"inv": "config:23", "cmask": "config:24-31", "offcore_rsp": "config1:0-63", "ldlat": "config1:0-15", "frontend": "config1:0-23"}

// intelMachine is a machine of one socket with Intel's PMUs of the names given,
// and so many CPUs; those n and n + cpus/2 share a core if threads is 2.
func intelMachine(model int, cpus, threads int, pmus map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	put := func(name, text string) { root[name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	put("proc/cpuinfo", fmt.Sprintf("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: %d\nstepping\t: 4", model))
	put("sys/devices/system/cpu/online", fmt.Sprintf("0-%d", cpus-1))
	for i := range cpus {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", i)
		put(dir+"core_id", fmt.Sprint(i%(cpus/threads)))
		put(dir+"die_id", "0")
		put(dir+"physical_package_id", "0")
	}
	kind := 4
	for _, name := range slices.Sorted(maps.Keys(pmus)) {
		dir := "sys/bus/event_source/devices/" + name + "/"
		put(dir+"type", fmt.Sprint(kind))
		kind += 4
		if list := pmus[name]; list != "" {
			put(dir+"cpus", list)
		}
		for term, bits := range intelFormat {
			put(dir+"format/"+term, bits)
		}
	}
	put("sys/bus/event_source/devices/software/type", "1")
	put("sys/bus/event_source/devices/msr/type", "20")
	put("sys/bus/event_source/devices/msr/format/event", "config:0-63")
	put("sys/bus/event_source/devices/msr/events/tsc", "event=0x00")
	return root
}

// skylake is a Skylake server of four logical processors.
func skylake(threads int) *fakeKernel {
	const model = 85
	return &fakeKernel{
		root:  intelMachine(model, 4, threads, map[string]string{"cpu": ""}),
		probe: perfevent.Probe{Supported: true, Counters: 8 / threads, SMT: threads == 2, CapPerfmon: true, Paranoid: 2},
		value: backEndBound,
	}
}

// backEndBound are the counts of a program that waits for memory.
func backEndBound(e perfevent.Event) float64 {
	name, _, _ := strings.Cut(e.Name, " on ")
	name = strings.TrimSuffix(strings.TrimSuffix(name, ":u"), ":k")
	switch name {
	case "CPU_CLK_UNHALTED.THREAD", "CPU_CLK_UNHALTED.THREAD_ANY", "CPU_CLK_UNHALTED.CORE":
		return 1e9
	case "UOPS_ISSUED.ANY", "UOPS_RETIRED.RETIRE_SLOTS", "TOPDOWN_RETIRING.ALL":
		return 1e9
	case "INST_RETIRED.ANY":
		return 0.9e9
	case "IDQ_UOPS_NOT_DELIVERED.CORE":
		return 0.2e9
	case "CYCLE_ACTIVITY.STALLS_MEM_ANY", "CYCLE_ACTIVITY.STALLS_TOTAL":
		return 0.7e9
	case "CYCLE_ACTIVITY.STALLS_L1D_MISS":
		return 0.65e9
	case "CYCLE_ACTIVITY.STALLS_L2_MISS":
		return 0.6e9
	case "CYCLE_ACTIVITY.STALLS_L3_MISS":
		return 0.55e9
	}
	return 1e6
}

// call runs the program on a kernel and returns its output and exit status.
func call(k *fakeKernel, args ...string) (stdout, stderr string, status int) {
	var out, err bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &err, kernel: k.kernel()}
	status = a.main(context.Background(), args)
	return out.String(), err.String(), status
}

// TestStat looks at accounts of machines with PMUs of several kinds.
func TestStat(t *testing.T) {
	hybrid := func() *fakeKernel {
		const alderlake = 151
		return &fakeKernel{
			root:  intelMachine(alderlake, 4, 1, map[string]string{"cpu_core": "0-1", "cpu_atom": "2-3"}),
			probe: perfevent.Probe{Supported: true, Counters: 6, CapPerfmon: true},
			value: backEndBound,
		}
	}
	refusing := skylake(1)
	refusing.refuse = func(spec perfevent.Spec) error {
		if spec.Groups[0][0].PMU != nil {
			return &perfevent.OpenError{Event: "cycles", Errno: fs.ErrPermission, Advice: "ask"}
		}
		return nil
	}
	lacking := skylake(1)
	lacking.lacks = func(e perfevent.Event) bool { return e.Name == "IDQ_UOPS_NOT_DELIVERED.CORE" }
	sealed := &fakeKernel{root: intelMachine(85, 2, 1, nil), value: backEndBound}
	sealed.refuse = func(spec perfevent.Spec) error {
		if len(spec.Groups) > 0 {
			return &perfevent.OpenError{Errno: fs.ErrPermission, Advice: "ask"}
		}
		return nil
	}
	idle := skylake(1)
	idle.idle = true
	unprivileged := skylake(1)
	unprivileged.probe.CapPerfmon = false
	unknown := skylake(1)
	unknown.root["proc/cpuinfo"] = &fstest.MapFile{Data: []byte("vendor_id : GenuineIntel\ncpu family : 99\nmodel : 1\nstepping : 1\n")}
	for _, tt := range []struct {
		name   string
		kernel *fakeKernel
		args   string
		status int
		want   []string // in standard error, in this order
		not    []string
	}{
		{"a program", skylake(1), "-- ./app", 0, []string{"./app, 1.00 s, on skylakex, tma ", "counted by the PMU in 7 groups (14 % each)",
			"Backend_Bound", "Memory_Bound", "bottleneck", "next", "cyclestack explain"}, []string{"whole core"}},
		{"a level", skylake(1), "--level 1 ./app -v", 0, []string{"./app -v, ", "counted by the PMU in one group\n", "Backend_Bound"}, []string{"  Memory_Bound"}},
		{"nodes", skylake(1), "--nodes DRAM_Bound -- ./app", 0, []string{"Backend_Bound", "Memory_Bound", "DRAM_Bound"}, []string{"L3_Bound  "}},
		{"one thread of a core", skylake(2), "--level 1 -- ./app", 0, []string{"Backend_Bound", "uncertain", "--smt off", "about a whole core, of which only one"}, nil},
		{"the other idle", skylake(2), "--level 1 --smt off -- ./app", 0, []string{"Backend_Bound"}, []string{"whole core"}},
		{"both threads", skylake(2), "--level 1 -a -- ./app", 0, []string{"the whole machine", "Backend_Bound"}, []string{"whole core"}},
		{"one core's threads", skylake(2), "--level 1 -C 1,3 -- ./app", 0, []string{"CPU 1,3", "Backend_Bound"}, []string{"whole core"}},
		{"half a core", skylake(2), "--level 1 -C 0,1 -- ./app", 0, []string{"whole core"}, nil},
		{"each core", skylake(2), "--level 1 -a --per-core -- ./app", 0, []string{"S0-D0-C0", "S0-D0-C1"}, []string{"?"}},
		{"two types of cores", hybrid(), "--level 1 -- ./app", 0, []string{"./app, cpu_core, 1.00 s, on alderlake:core, ", "Backend_Bound",
			"./app, cpu_atom, 1.00 s, on alderlake:atom, ", "Backend_Bound"}, []string{"unused", "other "}},
		{"one of them", hybrid(), "--level 1 --cpu alderlake:atom -- ./app", 0, []string{"./app, 1.00 s, on alderlake:atom, "}, []string{"alderlake:core"}},
		{"intervals of both", hybrid(), "--format csv -I 100 -- ./app", 2, []string{"choose one"}, nil},
		{"user and kernel", skylake(1), "--split --level 1 -- ./app", 0, []string{"./app, user mode, ", "./app, the kernel, "}, nil},
		{"no privilege", unprivileged, "--level 1 -- ./app", 0, []string{"./app, user mode, ", "only user mode was counted", "perf_event_paranoid=1"}, nil},
		{"a refusal", refusing, "-- ./app", 0, []string{"os-time", "counted by the operating system, as the kernel refuses", "CPUs_Utilised"}, nil},
		{"a refusal that matters", refusing, "--source pmu -- ./app", 4, []string{"cycles: permission denied: ask"}, nil},
		{"nothing but times", sealed, "-- ./app", 0, []string{"the kernel shows no core PMU", "CPUs_Utilised", "User_Time", "only user and system time is known"}, nil},
		{"nothing at all", sealed, "-a -- ./app", 4, []string{"permission denied: ask"}, nil},
		{"an event that is missing", lacking, "--level 1 -- ./app", 0, []string{"Frontend_Bound   –", "IDQ_UOPS_NOT_DELIVERED.CORE", "Retiring"}, nil},
		{"an unknown processor", unknown, "-- ./app", 0, []string{"on generic, generic 1", "IPC", "the catalogue does not have this processor (GenuineIntel-99-1-1)"}, nil},
		{"a process that sleeps", idle, "-p 1", 0, []string{"process 1, ", "it did not run while it was counted"}, nil},
		{"no such node", skylake(1), "--nodes Foo -- ./app", 2, []string{"no node of tma matches"}, nil},
		{"no such method", skylake(1), "--model foo -- ./app", 2, []string{"foo"}, nil},
		{"no such parameter", skylake(1), "-P foo=1 -- ./app", 2, []string{"foo"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, status := call(tt.kernel, append([]string{"stat"}, strings.Fields(tt.args)...)...)
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
	k := skylake(1)
	call(k, "stat", "--split", "--level", "1", "--", "./app", "x")
	if len(k.specs) != 1 {
		t.Fatalf("started %d times", len(k.specs))
	}
	spec := k.specs[0]
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
	k = skylake(1)
	call(k, "stat", "--level", "1", "--", "./app")
	if i := k.specs[0].Interval; i != 0 {
		t.Errorf("one group is read every %v", i)
	}
}

// TestStatTogether checks that intervals that go to a file, where they are evaluated together, are
// those that are written one by one elsewhere, each beside the operating system's account of its
// own time.
func TestStatTogether(t *testing.T) {
	const (
		intervals = 23 // ten of 100 ms at a time
		long      = 14 // of the operating system's time this one has most, but for the first, which has what was before
	)
	machine := func() *fakeKernel {
		k, n, turn := skylake(1), 0.0, 0
		k.left = intervals
		k.value = func(perfevent.Event) float64 { n++; return 1e6 * n }
		k.under = os.DirFS("/")
		k.lives = func(w perfevent.Observer) {
			if turn++; turn == 1 {
				w.Started(os.Getpid())
			}
			if turn == long {
				time.Sleep(500 * time.Millisecond)
			}
		}
		return k
	}
	args := []string{"stat", "--level", "1", "-I", "100", "--format", "csv"}
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

func TestWatched(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	reader, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer pipe.Close()
	for _, tt := range []struct {
		name string
		out  io.Writer
		want bool
	}{{"a file", file, false}, {"nowhere", null, false}, {"a pipe", pipe, true}, {"a buffer", &bytes.Buffer{}, true}} {
		if got := watched(tt.out); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestStatDepth checks that an account is as deep as there is time for.
func TestStatDepth(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		groups int
	}{
		{[]string{"-I", "100"}, 2},
		{[]string{"-I", "5s"}, 7},
		{[]string{"--timeout", "30s"}, 16},
		{nil, 7},
	} {
		k := skylake(1)
		call(k, append(append([]string{"stat"}, tt.args...), "./app")...)
		if got := len(k.specs[0].Groups); got != tt.groups {
			t.Errorf("stat %v: %d groups, want %d", tt.args, got, tt.groups)
		}
	}
}

// TestErrata checks that of a group with an event of an erratum no more is asked for
// than what Linux's workaround leaves it: it would open the group, and never count it.
func TestErrata(t *testing.T) {
	haswell := func() *fakeKernel {
		const model = 63
		k := skylake(2)
		k.root = intelMachine(model, 4, 2, map[string]string{"cpu": ""})
		return k
	}
	stat := func(args ...string) [][]perfevent.Event {
		k := haswell()
		if _, stderr, status := call(k, append([]string{"stat"}, args...)...); status != 0 || len(k.specs) != 1 {
			t.Fatalf("stat %v: status %d: %s", args, status, stderr)
		}
		return k.specs[0].Groups
	}
	record := func(args ...string) [][]perfevent.Event {
		f := recordFlags{source: sourceAuto, given: func(string) bool { return false }}
		f.all = true
		a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, kernel: haswell().kernel()}
		r, err := a.recorder(&common{level: 6}, &f, args)
		if err != nil {
			t.Fatal(err)
		}
		return r.spec.Groups
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

// TestWatchdog checks that the watchdog's counter is left to it once: how many there
// are to be had was found out while it held it, unless that is a fixed one.
func TestWatchdog(t *testing.T) {
	zen4 := skylake(1)
	zen4.root["proc/cpuinfo"] = &fstest.MapFile{Data: []byte("vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nstepping : 1\n")}
	zen4.root["sys/bus/event_source/devices/cpu/format/event"] = &fstest.MapFile{Data: []byte("config:0-7,32-35\n")}
	zen4.probe.Counters = 5
	for _, tt := range []struct {
		name   string
		kernel *fakeKernel
		same   bool // with and without it
	}{{"amdzen4", zen4, true}, {"skylakex", skylake(2), false}} {
		asked := map[bool]string{}
		for _, on := range []bool{false, true} {
			k := tt.kernel
			k.probe.Watchdog = on
			if _, stderr, status := call(k, "stat", "--level", "2", "./app"); status != 0 || !strings.Contains(stderr, "on "+tt.name) {
				t.Fatalf("%s: status %d: %s", tt.name, status, stderr)
			}
			asked[on] = fmt.Sprint(names(k.specs[len(k.specs)-1]))
		}
		if (asked[false] == asked[true]) != tt.same {
			t.Errorf("%s: without the watchdog %s\nwith it %s", tt.name, asked[false], asked[true])
		}
	}
}

// TestDrillDown follows a bottleneck.
func TestDrillDown(t *testing.T) {
	k := skylake(1)
	_, stderr, status := call(k, "stat", "--drilldown", "--", "./app")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if len(k.specs) < 4 {
		t.Errorf("%d runs:\n%s", len(k.specs), stderr)
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
	k := skylake(2)
	k.root["sys/devices/system/cpu/cpu0/cpufreq/base_frequency"] = &fstest.MapFile{Data: []byte("2000000\n")}
	k.value = func(e perfevent.Event) float64 {
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
	if _, stderr, status := call(skylake(1), "smt", "-a", "--", "./app"); status != 4 || !strings.Contains(stderr, "one logical processor") {
		t.Errorf("without SMT: status %d: %s", status, stderr)
	}
}

// TestStatJSON holds what is printed for programs to the schema.
func TestStatJSON(t *testing.T) {
	_, stderr, status := call(skylake(2), "stat", "--format", "json", "--", "./app")
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

// TestRemember checks that a plan that is remembered is the plan that was made,
// and that nothing else is taken for it.
func TestRemember(t *testing.T) {
	k := skylake(1)
	k.cache = t.TempDir()
	files := func() []string {
		list, err := filepath.Glob(filepath.Join(k.cache, "cyclestack", "plans", "*", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	asked := func() string { return fmt.Sprint(names(k.specs[len(k.specs)-1])) }
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
	before := k.probe
	for i, change := range []func(){func() { k.probe.Watchdog = true }, func() { k.probe.Counters = 3 }, func() { k.probe.SMT = true }} {
		change()
		if call(k, "stat", "./app"); asked() == want || len(files()) != 4+i {
			t.Errorf("%d files of plans: the one for %+v was taken for that of %+v: %s", len(files()), before, k.probe, asked())
		}
		k.probe = before
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
	stale := filepath.Join(k.cache, "cyclestack", "plans", "0000")
	if err := os.Rename(filepath.Dir(files()[0]), stale); err != nil {
		t.Fatal(err)
	}
	call(k, "stat", "./app")
	if _, err := os.Stat(stale); err == nil || len(files()) != 1 {
		t.Errorf("plans of another version were kept: %v", files())
	}
	k.cache = filepath.Join(files()[0], "no", "directory")
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

// TestOSEvents checks that what the operating system is asked for is what its
// method needs.
func TestOSEvents(t *testing.T) {
	cat, err := (&common{}).catalogue()
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model(osModel, resolve.GenericCPU)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range m.EventSets[0].Events {
		want = append(want, e.Event)
	}
	if !slices.Equal(osEvents, want) {
		t.Errorf("counted %v, the method has %v", osEvents, want)
	}
}
