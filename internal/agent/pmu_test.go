package agent

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// onFake returns an agent of a fake machine, after one turn of a level.
func onFake(t *testing.T, k *testkernel.Kernel, level int) *Agent {
	t.Helper()
	a, err := New(Options{Root: t.TempDir(), Kernel: k.Kernel(), Source: measure.PMU, Settings: Usual})
	if err != nil {
		t.Fatal(err)
	}
	a.s.r.hold = 0
	r := &rotation{a: a, kept: map[int]*kept{}, duty: map[string]*counter{}, settled: a.live}
	if err := r.turn(t.Context(), level, nil); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPlanned: a second agent on the machine plans anew, as plans that are kept lack what it
// asks of them.
func TestPlanned(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		k := testkernel.Skylake(1)
		k.Left = 1
		kernel := k.Kernel()
		kernel.Cache = func() (string, error) { return dir, nil }
		a, err := New(Options{Root: t.TempDir(), Kernel: kernel, Source: measure.PMU, Settings: Usual})
		if err != nil {
			t.Fatal(err)
		}
		r := &rotation{a: a, kept: map[int]*kept{}, duty: map[string]*counter{}, settled: a.live}
		if err := r.turn(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := a.value(series.Windows, skylake("l1", series.Result, series.OK)...); got != 1 {
			t.Errorf("%g windows", got)
		}
	}
}

// skylake are the labels of the fake machine's accounts.
func skylake(group string, more ...string) []string {
	return append([]string{series.Scope, series.Host, series.Model, "tma", series.ModelVersion, "5.01", series.Processor, "skylakex",
		series.Method, series.PMU, series.Group, group}, more...)
}

// TestTurn: the counters are what the machine counted, which is known: a billion cycles of
// four slots for each window.
func TestTurn(t *testing.T) {
	k := testkernel.Skylake(1)
	k.Left = 3
	a := onFake(t, k, 1)
	const slots = 4e9 * 3
	for name, want := range map[string]float64{"Backend_Bound": 0.70, "Frontend_Bound": 0.05, "Retiring": 0.25, "Bad_Speculation": 0} {
		if got := a.value("cyclestack_l1_slots_total", skylake("l1", series.Node, name)...); math.Abs(got-want*slots) > 0.01*slots {
			t.Errorf("%s: %g slots, want %g", name, got, want*slots)
		}
	}
	if got := a.value(series.Slots.Whole, skylake("l1")...); got != slots {
		t.Errorf("%g slots, want %g", got, slots)
	}
	if got := a.value(series.Instructions, skylake("l1")...); got != 0.9e9*3 {
		t.Errorf("%g instructions", got)
	}
	if got := a.value(series.Windows, skylake("l1", series.Result, series.OK)...); got != 3 {
		t.Errorf("%g windows", got)
	}
	if got := a.value("cyclestack_l2_slots_total", skylake("l2", series.Node, "Memory_Bound")...); got != -1 {
		t.Error("level 2 has series before its turn")
	}
	if e, r := a.value(series.Enabled, skylake("l1")...), a.value(series.Running, skylake("l1")...); !(e > 0 && r > 0 && r <= e) {
		t.Errorf("enabled for %g s, running for %g s", e, r)
	}
}

// TestUnscheduled: what never ran is no zero, and what cannot be is not added.
func TestUnscheduled(t *testing.T) {
	idle := testkernel.Skylake(1)
	idle.Left, idle.Idle = 2, true
	odd := testkernel.Skylake(1)
	odd.Left = 2
	odd.Value = func(e perfevent.Event) float64 { // more instructions than cycles have room for, all of the time
		if e.Name == "INST_RETIRED.ANY" || e.Name == "instructions" {
			return 1e11
		}
		return testkernel.BackEndBound(e)
	}
	for result, k := range map[string]*testkernel.Kernel{series.Unscheduled: idle, series.Implausible: odd} {
		a := onFake(t, k, 1)
		if got := a.value(series.Windows, skylake("l1", series.Result, result)...); got != 2 {
			t.Errorf("%s: %g windows", result, got)
		}
		if got := a.value(series.Slots.Whole, skylake("l1")...); got != 0 {
			t.Errorf("%s: %g slots", result, got)
		}
	}
}

// TestVirtualPMU: a virtual PMU counts next to nothing, and says that its events were on
// counters all of the time.
func TestVirtualPMU(t *testing.T) {
	k := testkernel.Skylake(1)
	k.Left = 2
	k.Value = func(e perfevent.Event) float64 { return testkernel.BackEndBound(e) / 1e6 }
	a, err := New(Options{Root: t.TempDir(), Kernel: k.Kernel(), Source: measure.PMU, Settings: Usual})
	if err != nil {
		t.Fatal(err)
	}
	r := &rotation{a: a, kept: map[int]*kept{}, duty: map[string]*counter{}, settled: a.live}
	p, err := r.prepared(1)
	if err != nil {
		t.Fatal(err)
	}
	w := r.windows(p, 1)
	w.busy = func() (float64, bool) { return 3, true } // seconds of processors that ran something
	p.m, err = measure.New(k.Kernel(), measure.Options{Source: measure.PMU, Target: perfevent.Target{All: true}, By: counts.By(0).With(counts.Interval), NoTimes: true,
		Period: measure.Period{Interval: time.Second}, Choice: resolve.Choice{Level: 1},
		Client: measure.Client{Writer: func(report.Options) (report.Writer, error) { return w, nil }}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.m.Plan(); err != nil {
		t.Fatal(err)
	}
	if err := r.count(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if got := a.value(series.Windows, skylake("l1", series.Result, series.Implausible)...); got != 2 {
		t.Errorf("%g implausible windows", got)
	}
	if got := a.value(series.Slots.Whole, skylake("l1")...); got != 0 {
		t.Errorf("%g slots", got)
	}
}

// TestRefused: an agent whose counters the kernel refuses exports the rest, and says so.
func TestRefused(t *testing.T) {
	t.Parallel()
	k := testkernel.Skylake(1)
	k.Refuse = func(perfevent.Spec) error { return &perfevent.OpenError{Event: "cycles", Errno: os.ErrPermission} }
	a, err := New(Options{Root: t.TempDir(), Kernel: k.Kernel(), Source: measure.Auto, Settings: Usual})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go func() {
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			a.s.r.mu.Lock()
			if a.value(series.Errors, "part", "pmu") >= 1 {
				cancel()
			}
			a.s.r.mu.Unlock()
		}
	}()
	if err := a.rotate(ctx); err != nil {
		t.Error(err)
	}
	if a.value(series.Errors, "part", "pmu") < 1 {
		t.Error("the refusal is not counted")
	}
}

// TestReplay: the counters of a recording give the account that report makes of it.
func TestReplay(t *testing.T) {
	o := Options{Root: t.TempDir(), Kernel: testkernel.Skylake(1).Kernel(), Source: measure.OS, Settings: Usual,
		Replay: filepath.Join("..", "..", "examples", "core2.txt"), Once: true}
	o.Interval = 100 * time.Millisecond
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	go func() {
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			_ = a.text()
			a.s.r.mu.Lock()
			c := a.s.r.find("cyclestack_cycles_total", core2("l2")...)
			done := c != nil && c.value > 0
			a.s.r.mu.Unlock()
			if done {
				cancel()
			}
		}
	}()
	if err := a.replay(ctx); err != nil {
		t.Fatal(err)
	}
	// The recording's own numbers: cycles, and those without a dispatch.
	const cycles, stalls = 144036683052, 79078538972
	whole, part := a.value("cyclestack_cycles_total", core2("l1")...), a.value("cyclestack_l1_cycles_total", core2("l1", series.Node, "Stalls")...)
	if whole != cycles || math.Abs(part/whole-float64(stalls)/cycles) > 0.005 {
		t.Errorf("%g of %g cycles are stalls", part, whole)
	}
	sum := 0.0
	for _, n := range []string{"Retired", "Non_Retired", "Stalls"} {
		sum += a.value("cyclestack_l1_cycles_total", core2("l1", series.Node, n)...)
	}
	if math.Abs(sum-whole) > 0.01*whole {
		t.Errorf("the parts sum to %g, the whole is %g", sum, whole)
	}
}

func core2(group string, more ...string) []string {
	return append([]string{series.Scope, series.Host, series.Model, "core2-cycles", series.ModelVersion, "1", series.Processor, "core2",
		series.Method, series.Replayed, series.Group, group}, more...)
}

// TestCounter: no counter falls. Nothing is lost to rounding, or to a part that is less
// than zero for a while.
func TestCounter(t *testing.T) {
	c := &counter{family: &family{}}
	sum, last := 0.0, uint64(0)
	for i := range 10000 {
		v := 0.3
		if i%7 == 0 {
			v = -1.25
		}
		c.add(v)
		sum += v
		if c.value < last {
			t.Fatalf("it fell from %d to %d", last, c.value)
		}
		last = c.value
	}
	if got := float64(c.value) + c.rest; math.Abs(got-sum) > 1e-6 {
		t.Errorf("%g, want %g", got, sum)
	}
	c.value = math.MaxUint64 - 5
	c.add(10 - c.rest)
	if c.value != 10 {
		t.Errorf("it wraps to %d: a store takes that for a restart, and adds all of it", c.value)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		c.add(v)
	}
	if c.value != 10 {
		t.Errorf("%d after what is no number", c.value)
	}
}

// TestSettings: a file is read anew, and one that is wrong changes nothing.
func TestSettings(t *testing.T) {
	h := newFakeHost(t)
	file := filepath.Join(t.TempDir(), "agent.toml")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("interval = \"20s\"\ncontainers = 3\n")
	a := h.agent(func(o *Options) { o.Config = file })
	a.tick(t.Context())
	if o, _ := a.settings(); o.Interval != 20*time.Second || o.Containers != 3 || o.Budget != Usual.Budget {
		t.Errorf("%+v", o)
	}
	put("interval = \"30s\"\nbudget = \"0.5%\"\ncontainers = 7\n")
	_, changed := a.settings()
	if err := a.Reload(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody is told")
	}
	if o, _ := a.settings(); o.Interval != 30*time.Second || o.Budget != 0.005 || a.single.most != 7 {
		t.Errorf("%+v", o)
	}
	for _, bad := range []string{"intervall = 1", "interval = 5", "interval = \"1ns\"", "budget = \"no\"", "x", "[a]\nb = 1", "level = 99"} {
		put(bad)
		if err := a.Reload(); err == nil {
			t.Errorf("%q is taken", bad)
		}
		if o, _ := a.settings(); o.Interval != 30*time.Second {
			t.Errorf("%q changed something", bad)
		}
	}
	if ok, failed := a.value(series.Reloads, series.Result, "ok"), a.value(series.Reloads, series.Result, "failed"); ok != 1 || failed != 7 {
		t.Errorf("%g good and %g bad", ok, failed)
	}
}

// FuzzPods: whatever a kubelet answers.
func FuzzPods(f *testing.F) {
	pods, _ := json.Marshal(map[string]any{"items": []any{map[string]any{"metadata": map[string]any{"name": "web-7d4b9c6f5d-x2x8v", "namespace": "prod",
		"ownerReferences": []any{map[string]any{"kind": "ReplicaSet", "name": "web-7d4b9c6f5d"}}},
		"status": map[string]any{"containerStatuses": []any{map[string]any{"name": "main", "containerID": "containerd://" + idA}}}}}})
	f.Add(pods, "web-0_prod_main-"+idA+".log", "/docker/"+idA)
	f.Fuzz(func(t *testing.T, text []byte, log, path string) {
		file := filepath.Join(t.TempDir(), "pods")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		n := namer{kubelet: file}
		found := names{}
		_ = n.pods(t.Context(), found)
		if id, l, ok := parseLog(log); ok {
			found[id] = l
		}
		i, _ := identify(path)
		_ = i.labels(found)
		_ = labelText(i.labels(found).single())
	})
}

// TestNames: the names that runtimes and a kubelet give.
func TestNames(t *testing.T) {
	h := newFakeHost(t)
	h.write("var/log/containers/db-0_data_postgres-"+idB+".log", "")
	h.write("var/lib/docker/containers/"+idA+"/config.v2.json", `{"Name":"/shop","Config":{"Labels":{"com.docker.compose.service":"web","com.docker.compose.project":"p"}}}`)
	h.write("var/lib/containers/storage/overlay-containers/containers.json", `[{"id":"`+idOf(1)+`","names":["pod man"]}]`)
	h.write("pods.json", `{"items":[{"metadata":{"name":"api-x","namespace":"prod","ownerReferences":[{"kind":"ReplicaSet","name":"api-7d4b9c6f5d"}]},"status":{"containerStatuses":[{"name":"main","containerID":"containerd://`+idOf(2)+`"}]}}]}`)
	n := newNamer(h.root, &Settings{Kubelet: filepath.Join(h.root, "pods.json")})
	if err := n.refresh(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]labels{
		idA:     {service: "web", namespace: "p", container: "shop"},
		idB:     {service: "db", namespace: "data", pod: "db-0", container: "postgres"},
		idOf(1): {service: "pod man", container: "pod man"},
		idOf(2): {service: "api", namespace: "prod", pod: "api-x", container: "main"},
	} {
		if n.known[id] != want {
			t.Errorf("%s: %+v, want %+v", id, n.known[id], want)
		}
	}
	h.write("pods.json", "{")
	if err := n.refresh(t.Context(), time.Now()); err == nil || len(n.known) == 0 {
		t.Errorf("%v, %d names", err, len(n.known))
	}
}

// TestBudget: twice over the budget halves the time that groups are counted, and then the
// agent reads less often. Below half of it that is taken back.
func TestBudget(t *testing.T) {
	a := newFakeHost(t).agent(nil)
	a.host.online = 2
	c := a.cost
	minute := func(spent time.Duration) {
		c.spent = spent
		c.judge(time.Minute)
	}
	minute(time.Second)
	if c.duty != 1 {
		t.Errorf("one minute changes the share to %g", c.duty)
	}
	minute(time.Second)
	if c.duty != 0.5 {
		t.Errorf("the share is %g", c.duty)
	}
	for range 40 {
		minute(time.Second)
	}
	if c.duty != leastDuty || c.stretch(time.Second) != mostFactor*time.Second {
		t.Errorf("the share is %g, the interval %v times as long", c.duty, c.stretch(time.Second))
	}
	if got := a.value(series.CostRatio); math.Abs(got-1./120) > 1e-9 {
		t.Errorf("the ratio is %g: one of 120 seconds of two processors", got)
	}
	for range 100 {
		minute(time.Millisecond)
	}
	if c.duty != 1 || c.stretch(time.Second) != time.Second {
		t.Errorf("the share is %g, the interval %v", c.duty, c.stretch(time.Second))
	}
}

// TestHotplug: after processors came or went, the next turn counts those that are there.
func TestHotplug(t *testing.T) {
	k := testkernel.Skylake(1)
	a, err := New(Options{Root: t.TempDir(), Kernel: k.Kernel(), Source: measure.PMU, Settings: Usual})
	if err != nil {
		t.Fatal(err)
	}
	r := &rotation{a: a, kept: map[int]*kept{}, duty: map[string]*counter{}, settled: a.live}
	a.s.r.hold = 0
	turn := func() *measure.Measurement {
		if err := r.turn(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		return r.kept[1].m
	}
	first := turn()
	if turn() != first {
		t.Error("it is planned again without a reason")
	}
	k.Root["sys/devices/system/cpu/online"].Data = []byte("0-2\n")
	if turn() == first {
		t.Error("it goes on with processors that are gone")
	}
	if got := a.value(series.Slots.Whole, skylake("l1")...); got != 3*4e9 {
		t.Errorf("%g slots of three windows", got)
	}
}

// TestBurstNames: the counts of a cgroup belong to the nearest entity, and to others where
// it has no series.
func TestBurstNames(t *testing.T) {
	h := newFakeHost(t)
	h.use("docker/"+idA+"/init.scope", 1, 0)
	h.use("system.slice/nginx.service", 1, 0)
	a := h.agent(nil)
	a.tick(t.Context())
	b := &burstCounting{a: a}
	for path, want := range map[string]string{
		"/docker/" + idA + "/init.scope": `{scope="workload",service="docker"}{scope="container",service="docker",container="` + idA[:12] + `"}`,
		"/system.slice/nginx.service":    `{scope="workload",service="nginx"}`,
		"/":                              `{scope="workload",service="root"}`,
		"":                               `{scope="workload",service="root"}`,
		"/gone/long/ago":                 `{scope="workload",service="root"}`,
	} {
		if got := b.name(path); got != want || len(b.scopes[got]) != strings.Count(want, "{") {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
	a.single.most = 0
	a.single.own = map[string]*bundle{}
	if got := b.name("/docker/" + idA); !strings.HasSuffix(got, `{scope="container",container="other"}`) {
		t.Errorf("%s", got)
	}
}
