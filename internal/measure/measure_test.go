package measure_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/report"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
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

// collector is a report.Writer that keeps labels and values of accounts.
type collector struct {
	node  string
	list  []string
	how   string
	ended bool
}

func (c *collector) Begin(h report.Header) error { c.how = h.How; return nil }

func (c *collector) Account(a *account.Account) error {
	c.list = append(c.list, fmt.Sprintf("%s %.2f", a.Label, a.Value(c.node)))
	return nil
}

func (c *collector) End() error { c.ended = true; return nil }

// options are those of a program, whose accounts a collector takes.
func options(c *collector) measure.Options {
	return measure.Options{Source: measure.Auto, Label: "./app", Target: perfevent.Target{Command: []string{"./app"}}, NoTimes: true,
		Client: measure.Client{Writer: func(report.Options) (report.Writer, error) { return c, nil }}}
}

// TestRun counts a program, at once and by intervals.
func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tables int
		period measure.Period
		by     counts.By
		want   []string
	}{
		{"a run", 1, measure.Period{}, 0, []string{"./app 0.70"}},
		{"intervals", 3, measure.Period{Interval: time.Second}, counts.By(0).With(counts.Interval), []string{"./app 0.70", "./app 0.70", "./app 0.70"}},
		{"intervals that are kept back", 3, measure.Period{Interval: time.Second, Batch: 2 * time.Second}, counts.By(0).With(counts.Interval),
			[]string{"./app 0.70", "./app 0.70", "./app 0.70"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := testkernel.Skylake(1)
			if tt.tables > 1 {
				k.Left = tt.tables
			}
			c := &collector{node: "Backend_Bound"}
			o := options(c)
			o.Period, o.By = tt.period, tt.by
			m, err := measure.New(k.Kernel(), o)
			if err == nil {
				err = m.Plan()
			}
			if err != nil {
				t.Fatal(err)
			}
			run, err := m.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			if err := errors.Join(run.Count(), run.Finish(t.Context())); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(c.list, tt.want) || !c.ended || !strings.HasPrefix(c.how, "counted by the PMU in ") {
				t.Errorf("%q, %s, ended: %t; want %q", c.list, c.how, c.ended, tt.want)
			}
		})
	}
}

// TestFound checks that what is found of the machine does not become the user's choice.
func TestFound(t *testing.T) {
	m, err := measure.New(testkernel.Skylake(2).Kernel(), options(nil))
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Resolver()
	if err != nil {
		t.Fatal(err)
	}
	if m.Options().Choice.SMT != "" || r.Choice.SMT != "on" {
		t.Errorf("SMT is %q in the options, %q in the methods", m.Options().Choice.SMT, r.Choice.SMT)
	}
}

// TestPlanErrors: errors have kinds, and name options and not flags.
func TestPlanErrors(t *testing.T) {
	none := &testkernel.Kernel{Root: testkernel.Intel(85, 2, 1, nil)}
	for _, tt := range []struct {
		name   string
		kernel *testkernel.Kernel
		change func(*measure.Options)
		kind   fault.Kind
		want   string
	}{
		{"no PMU", none, func(o *measure.Options) { o.Source = measure.PMU }, fault.Machine, "the kernel shows no core PMU"},
		{"cores without siblings", testkernel.Skylake(1), func(o *measure.Options) { o.Cores = true }, fault.Machine, "every core of this machine has one"},
		{"another method", none, func(o *measure.Options) { o.Source, o.Choice.Model = measure.OS, "tma" }, fault.Usage, "source os: its method is os-time"},
		{"no such node", testkernel.Skylake(1), func(o *measure.Options) { o.Choice.Nodes = "Nothing" }, fault.Usage, "nodes Nothing: no node of tma matches"},
		{"no such processor", testkernel.Skylake(1), func(o *measure.Options) { o.Choice.CPU = "nosuch" }, fault.Usage, "cpu: "},
	} {
		o := options(nil)
		tt.change(&o)
		m, err := measure.New(tt.kernel.Kernel(), o)
		if err == nil {
			err = m.Plan()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || fault.Of(err) != tt.kind {
			t.Errorf("%s: %v, kind %d; want %q, %d", tt.name, err, fault.Of(err), tt.want, tt.kind)
		}
	}
}
