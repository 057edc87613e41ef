package agent

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// socketed are the labels of the fake machine's accounts by socket.
func socketed(socket string, more ...string) []string {
	return append([]string{series.Scope, series.Host, series.Socket, socket, series.Model, "tma", series.ModelVersion, "5.01", series.Processor, "skylakex",
		series.Method, series.PMU, series.Group, "l1"}, more...)
}

// TestSockets: with per-socket each socket has series of its own: sums over its processors,
// which sysfs assigns to it. No series has a sum over both.
func TestSockets(t *testing.T) {
	k := testkernel.Skylake(1)
	k.Root["sys/devices/system/cpu/cpu3/topology/physical_package_id"] = &fstest.MapFile{Data: []byte("1\n")}
	k.Left = 2
	settings := Usual
	settings.Sockets = true
	a, err := New(Options{Root: t.TempDir(), Kernel: k.Kernel(), Source: measure.PMU, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	r := &rotation{a: a, kept: map[int]*kept{}, duty: map[string]*counter{}, settled: a.live}
	a.s.r.hold = 0
	if err := r.turn(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	for socket, cpus := range map[string]float64{"0": 3, "1": 1} {
		slots := 2 * cpus * 4e9 // of two windows
		if got := a.value(series.Slots.Whole, socketed(socket)...); got != slots {
			t.Errorf("socket %s: %g slots, want %g", socket, got, slots)
		}
		for node, share := range map[string]float64{"Backend_Bound": 0.70, "Retiring": 0.25} {
			if got := a.value(series.Slots.Node(1), socketed(socket, series.Node, node)...); math.Abs(got-share*slots) > 0.01*slots {
				t.Errorf("socket %s: %g slots of %s, want %g", socket, got, node, share*slots)
			}
		}
		if got := a.value(series.Instructions, socketed(socket)...); got != 2*cpus*0.9e9 {
			t.Errorf("socket %s: %g instructions", socket, got)
		}
	}
	for line := range strings.Lines(a.text()) {
		if strings.HasPrefix(line, "cyclestack_l1_slots_total{") && !strings.Contains(line, `,socket="`) {
			t.Errorf("a series would be counted twice: %s", line)
		}
	}
}

// TestCoreTypes: each type of core has series of its own, with its model. Its windows are
// judged by themselves.
func TestCoreTypes(t *testing.T) {
	amounts := map[string]float64{
		"TOPDOWN.SLOTS on cpu_core": 6e9, "PERF_METRICS.RETIRING on cpu_core": 3e9, "PERF_METRICS.FRONTEND_BOUND on cpu_core": 1.2e9,
		"PERF_METRICS.BAD_SPECULATION on cpu_core": 0.6e9, "PERF_METRICS.BACKEND_BOUND on cpu_core": 1.2e9, "INT_MISC.UOP_DROPPING on cpu_core": 0,
		"CPU_CLK_UNHALTED.THREAD on cpu_atom": 1e9, "TOPDOWN_RETIRING.ALL on cpu_atom": 1e9, "TOPDOWN_FE_BOUND.ALL on cpu_atom": 1.5e9,
		"TOPDOWN_BE_BOUND.ALL on cpu_atom": 2e9, "cycles": 1e9, "instructions": 2e9,
	}
	k := &testkernel.Kernel{
		Root:  testkernel.Intel(151, 4, 1, map[string]string{"cpu_core": "0-1", "cpu_atom": "2-3"}),
		Probe: perfevent.Probe{Supported: true, Counters: 6, CapPerfmon: true},
		Left:  2,
		Value: func(e perfevent.Event) float64 {
			v, ok := amounts[e.Name]
			if !ok {
				t.Errorf("%s was not expected", e.Name)
			}
			return v
		},
	}
	a := onFake(t, k, 1)
	for _, want := range []struct {
		core, version             string
		slots, retiring, frontend float64
	}{{"core", "5.1", 12e9, 0.5, 0.2}, {"atom", "3.6", 10e9, 0.2, 0.3}} {
		labels := func(more ...string) []string {
			return append([]string{series.Scope, series.Host, series.Model, "tma", series.ModelVersion, want.version, series.Processor, "alderlake",
				series.CoreType, want.core, series.Method, series.PMU, series.Group, "l1"}, more...)
		}
		if got := a.value(series.Slots.Whole, labels()...); got != want.slots {
			t.Errorf("%s: %g slots, want %g", want.core, got, want.slots)
		}
		for node, share := range map[string]float64{"Retiring": want.retiring, "Frontend_Bound": want.frontend} {
			if got := a.value(series.Slots.Node(1), labels(series.Node, node)...); math.Abs(got-share*want.slots) > 0.001*want.slots {
				t.Errorf("%s: %g slots of %s, want %g", want.core, got, node, share*want.slots)
			}
		}
		info := []string{series.Model, "tma", series.ModelVersion, want.version, series.Processor, "alderlake", series.CoreType, want.core, series.Method, series.PMU, "unit", "slots"}
		if got := a.value(series.ModelInfo, info...); got != 1 {
			t.Errorf("%s: model_info is %g", want.core, got)
		}
	}
}
