package measure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// TestRecordApart looks at what is sampled where samples of inherited events cannot
// have the counts of their group: all events take samples, each by its own period.
func TestRecordApart(t *testing.T) {
	o := measure.SampleOptions{Options: measure.Options{Choice: resolve.Choice{Nodes: "Retiring"}, Source: measure.Auto,
		Target: perfevent.Target{Command: []string{"./app"}}}}
	r, err := measure.NewRecording(testkernel.Skylake(1).Kernel(), o)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, g := range r.SampledGroups(true) {
		for _, e := range g {
			list = append(list, fmt.Sprintf("%s/%d", e.Name, e.Attr.Sample))
		}
	}
	if got, want := strings.Join(list, " "), "CPU_CLK_UNHALTED.THREAD/2000003 UOPS_RETIRED.RETIRE_SLOTS/2000003"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOSEvents checks that what the operating system is asked for is what its
// method needs.
func TestOSEvents(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model(resolve.OSModel, resolve.GenericCPU)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range m.EventSets[0].Events {
		want = append(want, e.Event)
	}
	if !slices.Equal(measure.OSEvents, want) {
		t.Errorf("counted %v, the method has %v", measure.OSEvents, want)
	}
}

// BenchmarkPlan works out plans, which the cache of plans saves.
func BenchmarkPlan(b *testing.B) {
	for _, name := range []string{"skylakex", "icelakex", "sapphirerapids", "amdzen4", "power7"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cat, err := model.Embedded()
				if err != nil {
					b.Fatal(err)
				}
				cpu, err := cat.CPU(name)
				if err != nil {
					b.Fatal(err)
				}
				m, err := cat.Model("", name)
				if err != nil {
					b.Fatal(err)
				}
				events, err := cat.Events(cpu)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := measure.Deepest(m, events, plan.Options{SMT: true, Errata: true}, 6); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
