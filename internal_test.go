package cyclestack

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// on has the test measure on another kernel.
func on(t testing.TB, k *testkernel.Kernel) *testkernel.Kernel {
	t.Helper()
	before := thisKernel
	t.Cleanup(func() { thisKernel = before })
	thisKernel = k.Kernel
	return k
}

// TestMeasureFake measures on a machine whose counters are known.
func TestMeasureFake(t *testing.T) {
	k := on(t, testkernel.Skylake(1))
	calls := 0
	a, err := Measure(func() { calls++ }, Options{})
	if err != nil || calls != 1 {
		t.Fatalf("%v, after %d calls", err, calls)
	}
	for name, want := range map[string]float64{"Backend_Bound": 0.70, "Frontend_Bound": 0.05, "Retiring": 0.25, "Bad_Speculation": 0} {
		if got := a.Value(name); math.Abs(got-want) > 0.01 {
			t.Errorf("%s is %.3f, want %.2f", name, got, want)
		}
	}
	if !math.IsNaN(a.Value("DRAM_Bound")) {
		t.Error("a node of level 3 was counted")
	}
	if a.Count("cycles") != 1e9 || a.Count("instructions") != 0.9e9 {
		t.Errorf("%g cycles and %g instructions", a.Count("cycles"), a.Count("instructions"))
	}
	var text bytes.Buffer
	if err := Print(&text, a); err != nil || !strings.Contains(text.String(), "Backend_Bound") {
		t.Errorf("printed %q, %v", text.String(), err)
	}
	spec := k.Specs[0]
	if len(spec.Target.PIDs) != 1 || len(spec.Target.TIDs) != 0 || spec.Observer != nil || len(spec.Groups) < 2 || spec.Interval == 0 {
		t.Errorf("counted as %+v", spec)
	}
}

// TestMeasureOptions looks at what is counted with some options.
func TestMeasureOptions(t *testing.T) {
	everything := func(spec perfevent.Spec) (list []perfevent.Event) {
		for _, g := range spec.Groups {
			list = append(list, g...)
		}
		return append(list, spec.Always...)
	}
	k := on(t, testkernel.Skylake(1))
	if _, err := Measure(func() {}, Options{Thread: true, User: true, Level: 1}); err != nil {
		t.Fatal(err)
	}
	spec := k.Specs[0]
	if len(spec.Target.TIDs) != 1 || len(spec.Target.PIDs) != 0 || len(spec.Groups) != 1 {
		t.Errorf("counted as %+v", spec)
	}
	for _, e := range everything(spec) {
		if e.PMU != nil && !e.Attr.ExcludeKernel {
			t.Errorf("%s counts the kernel", e.Name)
		}
	}
	a, err := Measure(func() {}, Options{Nodes: "DRAM_Bound"})
	if err != nil || !(a.Value("DRAM_Bound") > 0) {
		t.Errorf("DRAM_Bound: %v", err)
	}
}

// TestStopTwice: Stop returns the same account again.
func TestStopTwice(t *testing.T) {
	on(t, testkernel.Skylake(1))
	m, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	one, err := m.Stop()
	two, again := m.Stop()
	if err != nil || again != nil || one == nil || one != two {
		t.Errorf("%p, %v and %p, %v", one, err, two, again)
	}
}

// TestMeasureErrors: f is not called where nothing can be counted.
func TestMeasureErrors(t *testing.T) {
	refusing := testkernel.Skylake(1)
	refusing.Refuse = func(perfevent.Spec) error {
		return &perfevent.OpenError{Event: "cycles", Errno: fs.ErrPermission, Advice: "ask"}
	}
	for _, tt := range []struct {
		name   string
		kernel *testkernel.Kernel
		o      Options
		noPMU  bool
		want   string
	}{
		{"no PMU", &testkernel.Kernel{Root: testkernel.Intel(85, 2, 1, nil)}, Options{}, true, "no core PMU"},
		{"a refusal", refusing, Options{}, true, "permission denied: ask"},
		{"no such method", testkernel.Skylake(1), Options{Model: "nosuch"}, false, "nosuch"},
		{"no such processor", testkernel.Skylake(1), Options{CPU: "nosuch"}, false, "nosuch"},
		{"no such node", testkernel.Skylake(1), Options{Nodes: "Nosuch"}, false, "Nosuch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			on(t, tt.kernel)
			called := false
			_, err := Measure(func() { called = true }, tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrNoPMU) != tt.noPMU || called {
				t.Errorf("%v, f called: %t", err, called)
			}
		})
	}
}

// TestHybrid: of several types of cores the first is counted, and a note says so.
func TestHybrid(t *testing.T) {
	on(t, &testkernel.Kernel{Root: testkernel.Intel(151, 4, 1, map[string]string{"cpu_core": "0-1", "cpu_atom": "2-3"}),
		Probe: perfevent.Probe{Supported: true, Counters: 6, CapPerfmon: true}, Value: testkernel.BackEndBound})
	a, err := Measure(func() {}, Options{Level: 1})
	if err != nil {
		t.Fatal(err)
	}
	if a.CPU().Name != "alderlake:core" || a.Scope.Label != "" || !slices.ContainsFunc(a.Notes, func(n counts.Note) bool { return strings.Contains(n.Text, "cores of type cpu_core") }) {
		t.Errorf("of %s, %q: %q", a.CPU().Name, a.Scope.Label, a.Notes)
	}
}

// TestPlanErrata checks that nothing is planned for that Linux would never count.
func TestPlanErrata(t *testing.T) {
	k := on(t, testkernel.Skylake(2))
	const haswellServer = 63
	k.Root = testkernel.Intel(haswellServer, 4, 2, map[string]string{"cpu": ""})
	a, err := Measure(func() {}, Options{Level: 6})
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(a.Notes, func(n counts.Note) bool { return strings.Contains(n.Text, "will not be counted") }); i >= 0 {
		t.Error(a.Notes[i])
	}
}

// TestHalfCores checks that values about whole cores are not reliable where logical
// processors share the cores, and are reliable otherwise.
func TestHalfCores(t *testing.T) {
	for _, threads := range []int{1, 2} {
		on(t, testkernel.Skylake(threads))
		a, err := Measure(func() {}, Options{Level: 1})
		if err != nil {
			t.Fatal(err)
		}
		smt := threads == 2
		for _, name := range []string{"Backend_Bound", "Retiring"} {
			i := slices.IndexFunc(a.Model().Nodes, func(n model.Node) bool { return n.Name == name })
			if v := &a.Nodes[i]; !v.Known() || v.Reliable() == smt || smt && v.Doubt != account.DoubtCore {
				t.Errorf("SMT %t: %s is %g, doubt %q", smt, name, v.Value, v.Doubt)
			}
		}
		if said := slices.Contains(a.Notes, measure.HalfCores); said != smt {
			t.Errorf("SMT %t: notes %q", smt, a.Notes)
		}
	}
}

// TestBenchmarkMetrics looks at what a benchmark reports.
func TestBenchmarkMetrics(t *testing.T) {
	on(t, testkernel.Skylake(1))
	r := testing.Benchmark(func(b *testing.B) {
		Benchmark(b, Options{Level: 1})
		for range b.N {
		}
	})
	n := float64(r.N)
	if got := r.Extra["cycles/op"] * n; math.Abs(got/1e9-1) > 0.01 {
		t.Errorf("%g cycles in all: %v", got, r.Extra)
	}
	if !(r.Extra["Backend_Bound-cycles/op"] > r.Extra["Retiring-cycles/op"]) {
		t.Errorf("%v", r.Extra)
	}
}

// TestBenchmarkTimer checks that the timer of a benchmark stands still while the counting
// starts, and runs afterwards: testing.B.Loop fails otherwise.
func TestBenchmarkTimer(t *testing.T) {
	k := on(t, testkernel.Skylake(1))
	testing.Benchmark(func(b *testing.B) {
		k.Refuse = func(perfevent.Spec) error {
			before := b.Elapsed()
			if time.Sleep(time.Millisecond); b.Elapsed() != before {
				t.Error("the timer runs while the counting starts")
			}
			return nil
		}
		Benchmark(b, Options{})
		before := b.Elapsed()
		if time.Sleep(time.Millisecond); b.Elapsed()-before < time.Millisecond {
			t.Error("the timer does not run")
		}
	})
	if len(k.Specs) == 0 {
		t.Error("nothing was counted")
	}
}
