package plan_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/plan"
)

// TestRecord compares commands that take samples with ones written by hand.
func TestRecord(t *testing.T) {
	for _, tt := range []struct {
		cpu  string
		opt  plan.Options
		runs bool
		want []string
	}{
		{"sandybridge", plan.Options{Level: 1}, false, []string{"perf record -a -o sandybridge.data " +
			"-e '{cpu/event=0x3c,name=CPU_CLK_UNHALTED.THREAD,period=2000003/,cpu/event=0x9c,umask=0x1,name=IDQ_UOPS_NOT_DELIVERED.CORE/," +
			"cpu/event=0xe,umask=0x1,name=UOPS_ISSUED.ANY/,cpu/event=0xc2,umask=0x2,name=UOPS_RETIRED.RETIRE_SLOTS/," +
			"cpu/event=0xd,umask=0x3,cmask=0x1,name=INT_MISC.RECOVERY_CYCLES/}:S' -- sleep 10"}},
		// The metrics of slots are led by slots, which cannot take samples.
		{"icelakex", plan.Options{Level: 1}, true, []string{"perf record -a -o icelakex-1.data " +
			"-e '{cpu/event=0x0,umask=0x4,name=TOPDOWN.SLOTS/,cpu/event=0x3c,name=CPU_CLK_UNHALTED.THREAD,period=2000003/," +
			"cpu/event=0x0,umask=0x82,name=PERF_METRICS.FRONTEND_BOUND/,cpu/event=0x0,umask=0x81,name=PERF_METRICS.BAD_SPECULATION/," +
			"cpu/event=0x0,umask=0x80,name=PERF_METRICS.RETIRING/,cpu/event=0x0,umask=0x83,name=PERF_METRICS.BACKEND_BOUND/," +
			"cpu/event=0xd,umask=0x10,name=INT_MISC.UOP_DROPPING/,cpu/event=0xd,umask=0x1,cmask=0x1,edge=0x1,name=INT_MISC.CLEARS_COUNT/}:S' -- sleep 10"}},
		// The event set of the source has the periods of its events, and two runs.
		{"core2", plan.Options{Set: "big-4"}, false, []string{"perf record -a -o core2-1.data " +
			"-e '{cpu/event=0x3c,name=CPU_CLK_UNHALTED.CORE,period=2000000/,cpu/event=0xa0,cmask=0x1,inv=0x1,name=RS_UOPS_DISPATCHED.CYCLES_NONE,period=2000000/," +
			"cpu/event=0x70,umask=0x40,name=BUS_TRANS_ANY.SELF,period=100000/}:u' -- sleep 10",
			"perf record -a -o core2-2.data -e cpu/event=0xcb,umask=0x8,name=MEM_LOAD_RETIRED.L2_LINE_MISS,period=10000/u -- sleep 10"}},
		{"neoverse-v1", plan.Options{Level: 1}, false, []string{"perf record -a -o neoverse-v1.data " +
			"-e '{r11/period=2000000/,r3e,r10,r3d,r3f,r3a,r3b}:S' -- sleep 10"}},
		{"power8", plan.Options{Level: 1}, true, []string{"perf record -a -o power8-1.data -e '{r1e/period=2000000/,r600f4,r500fa,r4000a,r2001a,r1001c}:S' -- sleep 10"}},
	} {
		commands := planFor(t, tt.cpu, "", tt.opt).Record(tt.runs)
		for i, want := range tt.want {
			if i >= len(commands) {
				t.Errorf("%s: %d commands, want %d", tt.cpu, len(commands), len(tt.want))
				break
			}
			if got := commands[i].String(); got != want {
				t.Errorf("%s: command %d is\n%s\nwant\n%s", tt.cpu, i+1, got, want)
			}
		}
	}
}

// TestRecordTurns checks that multiplexed groups are recorded with their running
// times, and that each group is there once.
func TestRecordTurns(t *testing.T) {
	for _, cpu := range []string{"skylakex", "sapphirerapids", "power7", "amdzen4"} {
		p := planFor(t, cpu, "", plan.Options{SMT: true})
		commands := p.Record(false)
		if len(commands) != 1 || strings.Count(commands[0].String(), " -e ") != len(p.Groups) || !slices.Contains(commands[0].Args, "--running-time") {
			t.Errorf("%s: %d commands for %d groups: %s", cpu, len(commands), len(p.Groups), commands[0].String())
		}
		if runs := p.Record(true); len(runs) != len(p.Groups) {
			t.Errorf("%s: %d runs for %d groups", cpu, len(runs), len(p.Groups))
		}
	}
	if commands := planFor(t, "generic", "", plan.Options{Nodes: []int{}}).Record(false); len(commands) > 0 {
		t.Errorf("for nothing there are %v", commands)
	}
}

// TestRecordEveryPlan checks every processor's plan. One event samples each group,
// and it is not a part of slots. The group has all events of the plan's. The
// processor can count them together with the sampling event. Without -long it takes
// the sampled processors.
func TestRecordEveryPlan(t *testing.T) {
	for _, cpu := range processors(t) {
		for _, info := range catalogue(t).Models(cpu.Name) {
			m, events := load(t, cpu.Name, info.Name)
			for _, opt := range []plan.Options{{}, {SMT: cpu.Threads > 1, Watchdog: true, Errata: true}, {Watchdog: true, Counters: 3}} {
				opt.Level = 2
				p, err := plan.New(m, events, opt)
				if err != nil {
					t.Fatal(err)
				}
				v := newVerifier(events)
				v.p = p
				for i, c := range p.Record(true) {
					checkRecorded(t, v, &p.Groups[i], c.Args[slices.Index(c.Args, "-e")+1])
				}
			}
		}
	}
}

func checkRecorded(t *testing.T, v *verifier, g *plan.Group, text string) {
	t.Helper()
	for i := range g.Events {
		stem := strings.TrimSuffix(g.Events[i].PerfName(), "/")
		if stem, _, _ = strings.Cut(stem, ":"); !strings.Contains(text, stem) {
			t.Errorf("%s, %s: no %s in %s", v.p.CPU.Name, v.p.Model.Name, stem, text)
		}
	}
	if n := strings.Count(text, "period="); n > 1 {
		t.Errorf("%s, %s: %d events take samples: %s", v.p.CPU.Name, v.p.Model.Name, n, text)
	}
	if m := regexp.MustCompile(`name=(TOPDOWN\.SLOTS|PERF_METRICS)[^/]*period=`).FindString(text); m != "" {
		t.Errorf("%s, %s: slots take samples: %s", v.p.CPU.Name, v.p.Model.Name, text)
	}
	inner := regexp.MustCompile(`(:S?u?|u)$`).ReplaceAllString(text, "")
	inner = strings.Trim(inner, "{}")
	members := regexp.MustCompile(`,?([^/,]+(/[^/]*/[a-zA-Z]*)?)`).FindAllStringSubmatch(inner, -1)
	switch len(members) {
	case len(g.Events):
	case len(g.Events) + 1: // cycles, too
		more, _ := v.events.Lookup("cycles")
		var claims []claim
		events := slices.Clone(g.Events)
		events = append(events, plan.Event{Name: more.Name, ID: v.identity(more.Name), Core: true})
		for i := range events {
			claims = append(claims, v.claim(&events[i]))
		}
		if claims = append(claims, v.watchdog()...); !v.fits(claims) || v.linuxRefuses(events, claims) != "" {
			t.Errorf("%s, %s: there is no room for cycles in %s", v.p.CPU.Name, v.p.Model.Name, text)
		}
	default:
		t.Errorf("%s, %s: %d members for %d events: %s", v.p.CPU.Name, v.p.Model.Name, len(members), len(g.Events), text)
	}
}

// TestPerfTakes lets perf read commands. Events that any machine has replace the
// processor's.
func TestPerfTakes(t *testing.T) {
	t.Parallel()
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Skip("needs perf")
	}
	if err := exec.Command(perf, "record", "--dry-run", "-e", "cpu-clock/period=1/", "--", "true").Run(); err != nil {
		t.Skipf("this perf reads no commands: %v", err)
	}
	event := regexp.MustCompile(`cpu/[^/]*?(,name=[^/]*)?/|\br[0-9a-f]+\b(/[^/]*/)?`)
	for _, tt := range []struct {
		cpu string
		opt plan.Options
	}{
		{"skylakex", plan.Options{Level: 2}},
		{"icelakex", plan.Options{Level: 2}},
		{"core2", plan.Options{Set: "big-4"}},
		{"power9", plan.Options{Level: 1}},
		{"neoverse-v1", plan.Options{}},
	} {
		p := planFor(t, tt.cpu, "", tt.opt)
		for _, c := range append(p.Record(false), p.Record(true)...) {
			args := slices.Insert(slices.Clone(c.Args[1:]), 1, "--dry-run")
			for i := range args {
				if args[i] == "-e" {
					args[i+1] = event.ReplaceAllStringFunc(args[i+1], standIn)
				}
			}
			if out, err := exec.Command(perf, args...).CombinedOutput(); err != nil {
				t.Errorf("%s: perf %s: %v\n%s", tt.cpu, strings.Join(args, " "), err, out)
			}
		}
	}
}

// standIn returns a software event with the terms of another that are perf's own.
func standIn(event string) string {
	var terms []string
	for _, term := range strings.FieldsFunc(event, func(r rune) bool { return r == ',' || r == '/' }) {
		if key, _, ok := strings.Cut(term, "="); ok && !slices.Contains([]string{"event", "umask", "cmask", "inv", "edge", "any"}, key) {
			terms = append(terms, term)
		}
	}
	if len(terms) == 0 {
		return "page-faults"
	}
	return "cpu-clock/" + strings.Join(terms, ",") + "/"
}
