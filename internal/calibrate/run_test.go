//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestRun calibrates in so little time that the figures mean nothing. What they are
// depends on the machine; that each is there, or why it is not, does not.
func TestRun(t *testing.T) {
	defer func(before time.Duration) { quickTime = before }(quickTime)
	quickTime = 300 * time.Millisecond
	before, err := usable()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	r, err := Run(t.Context(), Options{Quick: true, MaxSize: 4 << 20, Progress: func(what string) { told = append(told, what) }})
	if err != nil {
		if strings.Contains(err.Error(), "samples") {
			t.Skipf("the machine is too busy even for its clock: %v", err)
		}
		t.Fatal(err)
	}
	if err := r.check(); err != nil {
		t.Error(err)
	}
	if len(told) != len(parts) {
		t.Errorf("%d parts were told of, want %d: %q", len(told), len(parts), told)
	}
	if !(r.Clock.Value > 1e6 && r.Clock.Value < 1e11) {
		t.Errorf("the clock is %v Hz", r.Clock.Value)
	}
	if got, want := len(r.Curve), len(workingSets(4<<20, true)); got != want {
		t.Errorf("the curve has %d points, want %d", got, want)
	}
	if got, want := len(r.Costs), 3+len(costTable)+len(costsHere())+max(0, len(nodes("/"))-1); got != want {
		t.Errorf("there are %d costs, want %d", got, want)
	}
	for _, f := range r.Costs {
		if f.Known() == math.IsNaN(float64(f.Value)) || f.Known() == (f.Why != "") {
			t.Errorf("%s: value %v, why %q", f.Name, f.Value, f.Why)
		}
	}
	if f := r.Peak; f == nil || f.Known() == math.IsNaN(float64(f.Value)) || f.Known() == (f.Why != "") || len(peaks()) == 0 && f.Known() {
		t.Errorf("the peak of floating-point operations: %+v", r.Peak)
	}
	all := movers()
	if got, want := len(r.Bandwidth), len(all[len(all)-1].kernels()); got < want {
		t.Errorf("there are %d bandwidths, want at least %d", got, want)
	}
	if len(r.Loaded) != len(loads(r.Threads)) || r.Loaded[0].Threads != 0 {
		t.Errorf("latencies under load: %+v", r.Loaded)
	}
	after, err := usable()
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("processors that may be used: %v before, %v after (%v)", before, after, err)
	}
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Options{Quick: true, MaxSize: 4 << 20}); !errors.Is(err, context.Canceled) && (err == nil || !strings.Contains(err.Error(), "samples")) {
		t.Errorf("got %v, want that the context has ended", err)
	}
	if _, err := Run(t.Context(), Options{Pin: true, CPU: 1 << 9}); err == nil || !strings.Contains(err.Error(), "processor 512") {
		t.Errorf("got %v, want that there is no processor 512", err)
	}
}

// TestTally keeps the best samples and says how far they are apart.
func TestTally(t *testing.T) {
	var a tally
	for _, x := range []float64{9, 3, 7, 5} {
		a.add(x)
	}
	if got := a.spread(); !math.IsNaN(got) {
		t.Errorf("spread of 4 samples: got %v, want NaN", got)
	}
	for _, x := range []float64{8, 4, 10, 3.5} {
		a.add(x)
	}
	want := [keptBest]float64{3, 3.5, 4, 5, 7}
	if a.best != want || a.count != 8 {
		t.Errorf("got %v of %d, want %v of 8", a.best, a.count, want)
	}
	if got, want := a.spread(), 7.0/3-1; math.Abs(got-want) > 1e-12 {
		t.Errorf("spread: got %v, want %v", got, want)
	}
}

// TestSample times a loop, without its leading iterations. A sample is disturbed if the
// thread does not run, in the leading iterations or in the loop.
func TestSample(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	timer := newTimer(t.Context(), time.Now().Add(time.Minute))
	var calls []uint64
	busy := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); {
		}
	}
	p := program{warm: 7, run: func(n uint64, _, _, _ unsafe.Pointer) {
		if calls = append(calls, n); n == 7 {
			busy(time.Millisecond)
		}
	}}
	least := math.Inf(1)
	for range 100 { // others may run in between
		took, _ := timer.sample(&p, 3)
		least = min(least, took)
	}
	if want := []uint64{7, 3}; !slices.Equal(calls[:2], want) || least > float64(time.Millisecond)/2 {
		t.Errorf("ran %v, want %v; took %g ns", calls[:2], want, least)
	}
	for _, asleep := range []uint64{7, 3} {
		p.run = func(n uint64, _, _, _ unsafe.Pointer) {
			if n == asleep {
				_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
			}
		}
		if _, undisturbed := timer.sample(&p, 3); undisturbed {
			t.Errorf("the thread slept in %d, and nothing came between", asleep)
		}
	}
}

func TestDoubt(t *testing.T) {
	for _, tt := range []struct {
		t    timing
		want string
	}{
		{timing{ns: 1, spread: 0.01, samples: 9}, ""},
		{timing{ns: 1, spread: nan, samples: 3}, "only 3 samples"},
		{timing{ns: 0, spread: 0, samples: 9}, "resolution"},
		{timing{ns: 1, spread: 0.5, samples: 9}, "50 % apart"},
	} {
		if got := doubt(tt.t); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("doubt(%+v) = %q, want %q", tt.t, got, tt.want)
		}
	}
}

func TestDifference(t *testing.T) {
	pays := timing{cycles: 10, spread: 0.01}
	value, err := difference(pays, []timing{{cycles: 1, spread: 0.1}, {cycles: 3, spread: 0}}, 0.5)
	if want := Number(16); math.Abs(float64(value-want)) > 1e-12 {
		t.Errorf("value: got %v, want %v", value, want)
	}
	if want := Number(0.3); math.Abs(float64(err-want)) > 1e-12 {
		t.Errorf("error: got %v, want %v", err, want)
	}
}

func TestWorkingSets(t *testing.T) {
	full, quick := workingSets(64<<20, false), workingSets(64<<20, true)
	if !slices.IsSorted(full) || full[0] != 4<<10 || full[len(full)-1] != 64<<20 {
		t.Errorf("working sets from 4 KiB to 64 MiB: %v", full)
	}
	for _, size := range quick {
		if !slices.Contains(full, size) {
			t.Errorf("%d is measured only when quick", size)
		}
	}
	if got, want := len(full), 13*4+2+1; got != want {
		t.Errorf("%d working sets, want %d", got, want)
	}
}

func TestLoads(t *testing.T) {
	if got := loads(1); len(got) != 1 {
		t.Errorf("one processor can be loaded by no other: %v", got)
	}
	want := []load{{0, 0}, {1, 0.25}, {1, 0.5}, {1, 1}, {2, 1}, {4, 1}, {7, 1}}
	if diff := cmp.Diff(want, loads(8), cmp.AllowUnexported(load{})); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
}

// TestSummary leaves out moments without reading by the others.
func TestSummary(t *testing.T) {
	var clock tally
	for range keptBest {
		clock.add(0.25)
	}
	moments := []moment{{50, 0}, {51, 1}, {500, 10}}
	for range 10 {
		moments = append(moments, moment{100, 95}, moment{104, 100})
	}
	got := summary(load{1, 1}, moments, clock)
	want := Loaded{Threads: 1, Share: 1, Bandwidth: 95, Nanos: 104, Cycles: 416, Error: 8}
	if diff := cmp.Diff(want, got, sameNumbers); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if got := summary(load{1, 1}, moments[:4], clock); got.Why == "" || !math.IsNaN(float64(got.Cycles)) {
		t.Errorf("summary of 4 moments: %+v, want that they are too few", got)
	}
	if got := summary(load{1, 1}, nil, clock); got.Why == "" {
		t.Errorf("summary of nothing: %+v", got)
	}
}

func TestRace(t *testing.T) {
	r := newRace(2)
	r.rounds[0] = []lap{{0, 1000000, 1000000}, {500, 1000500, 999000}}
	r.rounds[1] = []lap{{0, 1000000, 1000000}, {500, 3000500, 1000000}}
	if ns, ok := r.took(0); !ok || ns != 1000500 {
		t.Errorf("round 0: got %v, %v, want 1000500, true", ns, ok)
	}
	if _, ok := r.took(1); ok {
		t.Error("round 1 counts although a thread did not run for half of it")
	}
}

func TestPageCounts(t *testing.T) {
	want := []int{8, 12, 16, 24, 32, 48, 64, 96, 100}
	if got := pageCounts(100); !slices.Equal(got, want[:8]) {
		t.Errorf("got %v, want %v", got, want[:8])
	}
}

func TestAllocate(t *testing.T) {
	for _, huge := range []bool{false, true} {
		m, err := allocate(8<<20, -1, huge, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if len(m.bytes) != 8<<20 || m.pages == "" || m.page < os.Getpagesize() {
			t.Errorf("huge %v: %d bytes, pages of %d (%s)", huge, len(m.bytes), m.page, m.pages)
		}
		if !huge && m.page != os.Getpagesize() {
			t.Errorf("ordinary pages of %d bytes", m.page)
		}
		m.free()
	}
}

// TestHugeShare reads what /proc/self/smaps says: ../ of proc(5).
func TestHugeShare(t *testing.T) {
	const smaps = `7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
Rss:                4096 kB
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac hg
7f0000400000-7f0000800000 rw-p 00000000 00:00 0 [anon: x]
Rss:                4096 kB
AnonHugePages:      4096 kB
7f1000000000-7f1000001000 r--p 00000000 08:01 1234   /lib/x.so
Rss:                   x kB
`
	for _, tt := range []struct {
		from, to uint64
		want     float64
	}{
		{0x7f0000000000, 0x7f0000400000, 0.5},
		{0x7f0000400000, 0x7f0000800000, 1},
		{0x7f0000000000, 0x7f0000800000, 0.75},
		{0x7f1000000000, 0x7f1000001000, 0},
		{0, 0x1000, 0},
	} {
		if got := parseHugeShare(strings.NewReader(smaps), tt.from, tt.to); got != tt.want {
			t.Errorf("%x-%x: got %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestKilobytes(t *testing.T) {
	const meminfo = "MemTotal:       16384 kB\nHugepagesize:       2048 kB\nBad: x\nBad: 5\n"
	for key, want := range map[string]int{"Hugepagesize:": 2048, "Nothing:": 0, "Bad:": 0} {
		if got := kilobytes(strings.NewReader(meminfo), key); got != want {
			t.Errorf("%s: got %d, want %d", key, got, want)
		}
	}
}

// TestSpareMemory reads limits of control groups, of both versions, of the process's
// own and of those above.
func TestSpareMemory(t *testing.T) {
	const meminfo = "MemAvailable: 1000000 kB\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"no control groups", map[string]string{"proc/meminfo": meminfo}, 256000000},
		{"no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 256000000},
		{"a limit above", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "9000\n", "sys/fs/cgroup/a/memory.current": "1000\n", "sys/fs/cgroup/a/b/memory.max": "10000\n"}, 2000},
		{"a container", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/outside\n",
			"sys/fs/cgroup/memory.max": "9000\n", "sys/fs/cgroup/memory.current": "10000\n"}, 0},
		{"version 1", map[string]string{"proc/self/cgroup": "9:cpu,cpuacct:/a\n4:memory:/a\nx\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "8000\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "4000"}, 1000},
	} {
		root := t.TempDir()
		for name, text := range tt.files {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got := spareMemory(root); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestNodes reads a machine of two nodes with processors and one with memory alone.
// Nothing can be put on a fourth, which has no memory.
func TestNodes(t *testing.T) {
	root := t.TempDir()
	for node, files := range map[string][2]string{
		"node0": {"0-1,4\n", "Node 0 MemTotal:  1000 kB\n"},
		"node1": {"2-3\n", "Node 1 MemTotal:  1000 kB\nNode 1 MemFree: 10 kB\n"},
		"node2": {"\n", "Node 2 MemTotal:  1000 kB\n"},
		"node3": {"5\n", "Node 3 MemTotal:  0 kB\n"},
	} {
		dir := filepath.Join(root, "sys/devices/system/node", node)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"cpulist", "meminfo"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(files[i]), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := nodes(root)
	want := map[int][]int{0: {0, 1, 4}, 1: {2, 3}, 2: {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	for logical, want := range map[int]int{4: 0, 3: 1, 5: -1} {
		if got := nodeOf(got, logical); got != want {
			t.Errorf("node of %d: got %d, want %d", logical, got, want)
		}
	}
	if got := nodes(t.TempDir()); len(got) != 0 {
		t.Errorf("a machine that says nothing has nodes %v", got)
	}
}

// TestBind asks for memory of the node that every machine has, and of one that
// none has.
func TestBind(t *testing.T) {
	m, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(m) }()
	if err := bind(m, 0); err != nil && !errors.Is(err, unix.EPERM) {
		t.Errorf("node 0: %v", err)
	}
	if err := bind(m, 1000); err == nil {
		t.Skip("any node will do: there is no kernel for NUMA below, but perhaps an emulator")
	}
}

// TestBetter keeps the shorter of two measurements of a point. Of those that agree it
// keeps the one whose clock was disturbed less.
func TestBetter(t *testing.T) {
	b := &bench{timer: &timer{fastest: 0.25}}
	good := Point{Cycles: 4, Nanos: 1, Error: 0.01}
	for _, tt := range []struct {
		name   string
		p, old Point
		want   bool
	}{
		{"longer", Point{Cycles: 4.4, Nanos: 1.1, Error: 0.001}, good, false},
		{"shorter", Point{Cycles: 3.6, Nanos: 0.9, Error: 0.1}, good, true},
		{"as long, and more certain", Point{Cycles: 4, Nanos: 1.001, Error: 0.001}, good, true},
		{"as long, beside a disturbed clock", Point{Cycles: 3.8, Nanos: 0.999, Error: 0.001}, good, false},
		{"in place of nothing", good, absentPoint(4096, "busy"), true},
		{"nothing", absentPoint(4096, "busy"), good, false},
	} {
		if got := b.better(&tt.p, &tt.old); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	b.result = &Result{Curve: []Point{{Cycles: 3.8, Nanos: 1, Error: 0.01}}}
	if got := b.judged()[0].Error; math.Abs(float64(got)-0.21) > 1e-9 {
		t.Errorf("a clock that is 5 %% behind leaves %v of 3.8 cycles open, want 0.21", got)
	}
}
