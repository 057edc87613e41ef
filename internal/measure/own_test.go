package measure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// counted counts on a fake machine, and returns the document in a format.
func counted(t *testing.T, k *testkernel.Kernel, o measure.Options, format string) (string, error) {
	t.Helper()
	var b bytes.Buffer
	o.Client.Writer = func(shown report.Options) (report.Writer, error) { return report.New(format, &b, shown) }
	m, err := measure.New(k.Kernel(), o)
	if err != nil {
		return "", err
	}
	if err := m.Plan(); err != nil {
		return "", err
	}
	run, err := m.Start(t.Context())
	if err != nil {
		return "", err
	}
	defer run.Close()
	err = errors.Join(run.Count(), run.Finish(context.Background()))
	return b.String(), err
}

// spelledOut names the events that a run was asked for, by group, with their codes.
func spelledOut(s *perfevent.Spec) string {
	var groups []string
	for _, g := range s.Groups {
		var names []string
		for _, e := range g {
			mode := ""
			if e.Attr.ExcludeKernel {
				mode = " user"
			}
			if e.Attr.ExcludeUser {
				mode = " kernel"
			}
			names = append(names, fmt.Sprintf("%s %d:%#x%s", e.Name, e.Attr.Type, e.Attr.Config, mode))
		}
		groups = append(groups, strings.Join(names, " "))
	}
	return strings.Join(groups, " | ")
}

// TestOwnEvents checks which events the kernel is asked for by -e: names of the kernel and
// of the vendor, codes, groups and modifiers.
func TestOwnEvents(t *testing.T) {
	target := perfevent.Target{Command: []string{"./app"}}
	value := func(perfevent.Event) float64 { return 1000 }
	none := func() *testkernel.Kernel {
		return &testkernel.Kernel{Root: testkernel.Intel(85, 2, 1, nil), Value: value,
			Lacks: func(e perfevent.Event) bool { return e.Attr.Type != perffile.TypeSoftware }}
	}
	with := func() *testkernel.Kernel { k := testkernel.Skylake(1); k.Value = value; return k }
	for _, tt := range []struct {
		name   string
		kernel *testkernel.Kernel
		events string
		mode   measure.Mode
		want   string
	}{
		{"names", with(), "cycles,page-faults", "", "cycles 0:0x0 | page-faults 1:0x2"},
		{"vendor", with(), "INST_RETIRED.ANY_P,inst_retired.any_p:u", "", "INST_RETIRED.ANY_P 4:0xc0 | inst_retired.any_p:u 4:0xc0 user"},
		{"codes", with(), "r1c2,cpu/event=0xc2,umask=0x1/k", "", "r1c2 4:0x1c2 | cpu/event=0xc2,umask=0x1/k 4:0x1c2 kernel"},
		{"groups", with(), "{cycles,instructions}:u", "", "cycles 0:0x0 user instructions 0:0x1 user"},
		{"mode", with(), "cycles,instructions:k", measure.UserMode, "cycles 0:0x0 user | instructions:k 0:0x1 kernel"},
		{"periods", with(), "cpu/event=0xc2,period=1000/", "", "cpu/event=0xc2,period=1000/ 4:0xc2"},
		{"no PMU", none(), "cycles,INST_RETIRED.ANY_P,page-faults:u", "", "cycles 0:0x0 | INST_RETIRED.ANY_P 4:0xc0 | page-faults:u 1:0x2 user"},
	} {
		if _, err := counted(t, tt.kernel, measure.Options{Target: target, Source: measure.Auto, Events: tt.events, Mode: tt.mode, NoTimes: true}, "json"); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := spelledOut(&tt.kernel.Specs[0]); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
	_, err := counted(t, with(), measure.Options{Target: target, Events: "page-faults,nonsense"}, "json")
	if option := (*fault.OptionError)(nil); !errors.As(err, &option) || option.Option != "event" {
		t.Errorf("an event that does not exist: %v", err)
	}
}

// TestOwnFormats checks that every format has the user's own events, counted or not, and the
// plan's with a level.
func TestOwnFormats(t *testing.T) {
	kernel := func() *testkernel.Kernel {
		k := testkernel.Skylake(1)
		k.Value = func(e perfevent.Event) float64 { return 2.5e9 }
		k.Lacks = func(e perfevent.Event) bool { return e.Name == "r1c2" }
		return k
	}
	o := measure.Options{Target: perfevent.Target{Command: []string{"./app"}}, Events: "r1c2,page-faults", NoTimes: true}
	text, err := counted(t, kernel(), o, "tree")
	if err != nil || !strings.Contains(text, "page-faults          2.5 G  2.5 G") || !strings.Contains(text, "r1c2         not supported") {
		t.Errorf("%v:\n%s", err, text)
	}
	text, err = counted(t, kernel(), o, "csv")
	if err != nil || !strings.Contains(text, ",page-faults,,2.5e+09,events,,") || !strings.Contains(text, ",r1c2,,,events,,") || !strings.Contains(text, "not supported\n") {
		t.Errorf("%v:\n%s", err, text)
	}
	o.Choice = resolve.Choice{Level: 1}
	k := kernel()
	if text, err = counted(t, k, o, "json"); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Model    struct{ Name string }
		Accounts []struct {
			Events []struct {
				Event, State string
				Value        *float64
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	e := d.Accounts[0].Events
	if d.Model.Name != "tma" || len(e) != 2 || e[0].State != "not supported" || e[0].Value != nil || e[1].Event != "page-faults" || *e[1].Value != 2.5e9 {
		t.Errorf("%s: %+v", d.Model.Name, e)
	}
	if n := len(k.Specs[0].Groups); n < 2 {
		t.Errorf("%d groups: not the plan's and the user's", n)
	}
}

// A sampler notes what it is asked for.
type sampler struct {
	targets []perfevent.Target
	ended   int
}

func (s *sampler) Begin(_ *measure.Machine, t perfevent.Target) { s.targets = append(s.targets, t) }
func (s *sampler) End()                                         { s.ended++ }
func (s *sampler) Hotspots(*account.Account) *account.Hotspots {
	return &account.Hotspots{Running: 1, Samples: 2, States: []account.TimeShare{{State: "user", Share: 1}}}
}
func (s *sampler) Places() *account.Hotspots {
	return &account.Hotspots{Running: 1, Samples: 2, Places: []account.Hot{{Function: "hot", Share: 1, Samples: 2}}}
}
func (s *sampler) Notes() []counts.Note { return nil }

// TestSampled checks which targets are sampled as well as counted, and that an account of the
// counters has the places.
func TestSampled(t *testing.T) {
	none := func() *testkernel.Kernel { return &testkernel.Kernel{Root: testkernel.Intel(85, 2, 1, nil)} }
	pmu := func() *testkernel.Kernel { return testkernel.Skylake(1) }
	app := perfevent.Target{Command: []string{"./app"}}
	for _, tt := range []struct {
		name   string
		kernel *testkernel.Kernel
		o      measure.Options
		want   string // the targets that are sampled
		place  bool
	}{
		{"program", pmu(), measure.Options{Target: app}, "next", true},
		{"program without a PMU", none(), measure.Options{Target: app}, "next", false},
		{"process", pmu(), measure.Options{Target: perfevent.Target{PIDs: []int{7}}}, "pids [7]", true},
		{"thread without a PMU", none(), measure.Options{Target: perfevent.Target{TIDs: []int{8}}}, "tids [8]", false},
		{"machine", pmu(), measure.Options{Target: perfevent.Target{All: true, Command: []string{"sleep"}}}, "all", true},
		{"a CPU without a PMU", none(), measure.Options{Target: perfevent.Target{CPUs: []int{1}}}, "cpus [1]", true},
		{"intervals", pmu(), measure.Options{Target: app, Period: measure.Period{Interval: 1e9}}, "", false},
		{"repeats", pmu(), measure.Options{Target: app, Runs: measure.Runs{Repeat: 2}}, "", false},
		{"own events", pmu(), measure.Options{Target: app, Events: "cycles"}, "", false},
		{"the operating system", pmu(), measure.Options{Target: app, Source: measure.OS}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, k := &sampler{}, tt.kernel
			k.Value = func(perfevent.Event) float64 { return 1e9 }
			launched := false
			k.Refuse = func(spec perfevent.Spec) error { // it is about to begin
				if spec.Launching != nil {
					launched = true
					spec.Launching()
				}
				return nil
			}
			tt.o.NoTimes, tt.o.Client.Sampler = true, s
			text, err := counted(t, k, tt.o, "json")
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, target := range s.targets {
				switch {
				case target.Next && launched:
					list = append(list, "next")
				case target.All:
					list = append(list, "all")
				case target.CPUs != nil:
					list = append(list, fmt.Sprint("cpus ", target.CPUs))
				case target.PIDs != nil:
					list = append(list, fmt.Sprint("pids ", target.PIDs))
				case target.TIDs != nil:
					list = append(list, fmt.Sprint("tids ", target.TIDs))
				}
			}
			if got := strings.Join(list, ", "); got != tt.want || len(list) > 0 != (s.ended > 0) {
				t.Errorf("sampled %q, ended %d times; want %q", got, s.ended, tt.want)
			}
			if got := strings.Contains(text, `"hot"`); got != tt.place {
				t.Errorf("a place: %v", got)
			}
			if slices.ContainsFunc(s.targets, func(t perfevent.Target) bool { return len(t.Command) > 0 }) {
				t.Error("a program that only says for how long was sampled")
			}
		})
	}
}
