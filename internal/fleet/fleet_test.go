package fleet_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/testfleet"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/report"
)

// stores are what the tests ask.
var stores = map[string]func(dir, config string) (*testfleet.Server, error){
	"prometheus":       func(dir, config string) (*testfleet.Server, error) { return testfleet.Prometheus(dir, config) },
	"victoria-metrics": testfleet.Victoria,
}

// start starts a store, or skips the test.
func start(t *testing.T, name, config string) *testfleet.Server {
	t.Helper()
	s, err := stores[name](t.TempDir(), config)
	if errors.Is(err, testfleet.ErrNone) {
		t.Skipf("%v: apt-get install %s", err, name)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// write writes a fleet's counters up to a time.
func write(t *testing.T, f *testfleet.Fleet, s *testfleet.Server, times []time.Time) {
	t.Helper()
	w := testfleet.NewWriter(s.Write, 1)
	for _, at := range times {
		if err := f.Step(w, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Wait(f.Series(), times[len(times)-1]); err != nil {
		t.Fatal(err)
	}
}

// small is a fleet for tests.
func small() *testfleet.Fleet {
	return &testfleet.Fleet{Hosts: 200, Services: 4, Levels: 2, Spread: 0.05, Seed: 7, Worse: 0.1, WorseService: 1, CanaryEvery: 4, LostEvery: 50, RestartEvery: 20, RestartStep: 7}
}

func options(s *testfleet.Server, at time.Time) fleet.Options {
	return fleet.Options{Access: fleet.Access{URL: s.URL, Timeout: time.Minute}, By: "service", Range: 10 * time.Minute, At: at.Format(time.RFC3339)}
}

func run[D any](t *testing.T, o fleet.Options) D {
	t.Helper()
	document, err := fleet.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return document.(D)
}

// print writes a document in each format. People get one screen, and JSON is as its schema says.
func print[D any](t *testing.T, document D) {
	t.Helper()
	for _, format := range report.Formats[D]() {
		var b strings.Builder
		if err := report.Write(&b, format, document, report.Options{Width: 80, Lines: 24, Note: func(n counts.Note) string { return n.Text }}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		switch text := b.String(); format {
		case "tree":
			t.Log("\n" + text)
			lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
			if len(lines) > 24 || slices.ContainsFunc(lines, func(l string) bool { return utf8.RuneCountInString(l) > 80 }) {
				t.Errorf("%d lines, want at most 24 of 80 columns", len(lines))
			}
		case "json":
			if err := testschema.Validate(t, report.Schema[D](), text); err != nil {
				t.Error(err)
			}
		case "csv":
			rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			if err != nil || len(rows) < 2 {
				t.Errorf("%d rows, %v", len(rows), err)
			}
		}
	}
}

// TestStores: in each store, shares are quotients of what the hosts have counted, and the
// errors are right.
func TestStores(t *testing.T) {
	t.Parallel()
	times := testfleet.Times(time.Now().Add(-time.Minute), 14)
	for name := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "prometheus" {
				testlong.Only(t)
			}
			s, f := start(t, name, ""), small()
			write(t, f, s, times)
			r := run[fleet.Report](t, options(s, times[len(times)-1]))
			if r.Answer.Seen != 196 || r.Answer.Expected != 200 {
				t.Errorf("%d of %d hosts, want 196 of 200", r.Answer.Seen, r.Answer.Expected)
			}
			checkTruth(t, f, r, times, len(times)-11)
			print(t, r)
			checkCanary(t, options(s, times[len(times)-1]))
		})
	}
}

// checkTruth holds accounts to what the hosts have counted, and to what they were made from.
func checkTruth(t *testing.T, f *testfleet.Fleet, r fleet.Report, times []time.Time, first int) {
	t.Helper()
	sums := f.Sums(times, first)
	outside, nodes, n := 0, 0, 0
	for _, set := range r.Sets {
		c := slices.IndexFunc(testfleet.CPUs, func(c testfleet.CPU) bool { return c.Name == set.CPU.Name })
		for _, a := range set.Accounts {
			n++
			service := -1
			fmt.Sscanf(a.By, "service-%d", &service)
			sum := sums[[2]int{service, c}]
			if sum == nil {
				t.Fatalf("no service %s on %s", a.By, set.CPU.Name)
			}
			if a.Row.Hosts() != sum.Hosts {
				t.Errorf("%s on %s: %d hosts, want %d", a.By, set.CPU.Name, a.Row.Hosts(), sum.Hosts)
			}
			if want := sum.CPU / r.Answer.Range.Seconds(); math.Abs(a.CPUs-want) > 0.25*want {
				t.Errorf("%s on %s: %g processors, want %g", a.By, set.CPU.Name, a.CPUs, want)
			}
			if math.Abs(a.Cover-testfleet.Coverage) > 1e-6 {
				t.Errorf("%s on %s: coverage %g, want %g", a.By, set.CPU.Name, a.Cover, testfleet.Coverage)
			}
			truth := f.Truth(service, c, false)
			for i := range set.Model.Nodes {
				name, v := set.Model.Nodes[i].Name, a.Values()[i]
				if want := sum.Nodes[name] / sum.Whole; math.Abs(v.Value-want) > 1e-6*want {
					t.Errorf("%s on %s: %s is %g, its hosts counted %g", a.By, set.CPU.Name, name, v.Value, want)
				}
				if service == f.WorseService {
					continue // a mixture of two truths
				}
				nodes++
				if !(math.Abs(v.Value-truth.Shares[name]) <= v.Error) {
					outside++
				}
			}
		}
	}
	if want := f.Services * len(testfleet.CPUs); n != want {
		t.Errorf("%d accounts, want %d", n, want)
	}
	if outside*5 > nodes {
		t.Errorf("%d of %d values are further from the truth than their 95 %% errors", outside, nodes)
	}
	t.Logf("%d of %d values outside of their 95 %% intervals", outside, nodes)
}

// checkCanary sees that of all nodes of all services the one is found that is worse.
func checkCanary(t *testing.T, o fleet.Options) {
	t.Helper()
	o.Against = "version=canary"
	c := run[*fleet.Comparison](t, o)
	if len(c.Changes) != 4*6 || c.Tests != 24 {
		t.Fatalf("%d changes, %d tests", len(c.Changes), c.Tests)
	}
	if x := c.Changes[0]; x.By != "service-01" || x.Node != "Memory_Bound" && x.Node != "Backend_Bound" || !x.Worse() {
		t.Errorf("first is %s %s: %+v", x.By, x.Node, x)
	}
	for _, x := range c.Changes {
		if x.Changed() && x.By != "service-01" {
			t.Errorf("%s of %s changed, p = %g", x.Node, x.By, x.P)
		}
	}
	print(t, c)
	for failOn, want := range map[string]string{"Memory_Bound>1%": "Memory_Bound of service-01 changed by +", "Memory_Bound>90%": "", "Memory_Bound<1%": ""} {
		o.FailOn = failOn
		if c := run[*fleet.Comparison](t, o); !strings.HasPrefix(c.Broken, want) || want == "" && c.Broken != "" {
			t.Errorf("--fail-on %s: %q, want %q", failOn, c.Broken, want)
		}
	}
}

// TestApart: accounts by different versions of a model stay apart. NaN is left out with a
// note. Hosts of unknown versions are refused if there are several. One account is a tree.
func TestApart(t *testing.T) {
	t.Parallel()
	times := testfleet.Times(time.Now().Add(-time.Minute), 8)
	s := start(t, "prometheus", "")
	f := &testfleet.Fleet{Hosts: 40, Services: 1, Levels: 2, Spread: 0.05, Seed: 5, Versions: [2]string{"5.01", "4.8"}}
	w := testfleet.NewWriter(s.Write, 1)
	for i, at := range times {
		if err := f.Step(w, at); err != nil {
			t.Fatal(err)
		}
		host := func(instance, metric, service, node, version string, v float64) {
			l := map[string]string{"__name__": metric, "scope": "workload", "service": service, "cpu": "skylakex", "model": "tma", "method": "pmu", "group": "l1", "instance": instance, "job": "x"}
			for name, value := range map[string]string{"node": node, "model_version": version} {
				if value != "" {
					l[name] = value
				}
			}
			w.Add(l, v, at)
		}
		n := float64(i)
		host("h1", series.Slots.Whole, "nan", "", "5.01", 100*n)
		host("h1", series.Slots.Node(1), "nan", "Retiring", "5.01", math.NaN())
		host("h1", series.Slots.Node(1), "nan", "Backend_Bound", "5.01", 60*n)
		host("h1", series.Slots.Node(1), "nan", "No_Such_Node", "5.01", 10*n)
		for k, version := range []string{"5.01", "4.8"} {
			instance := fmt.Sprintf("m%d", k)
			host(instance, series.Slots.Whole, "mixed", "", "", 100*n)
			host(instance, series.Slots.Node(1), "mixed", "Retiring", "", 50*n)
			w.Add(map[string]string{"__name__": series.ModelInfo, "cpu": "skylakex", "model": "tma", "model_version": version, "method": "pmu", "instance": instance, "job": "x"}, 1, at)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	o := options(s, times[len(times)-1])
	o.Range, o.Where = 5*time.Minute, []string{"service=service-00"}
	r := run[fleet.Report](t, o)
	versions, hosts := map[string]int{}, 0
	for _, set := range r.Sets {
		for _, a := range set.Accounts {
			versions[set.Key.Version]++
			hosts += a.Row.Hosts()
		}
	}
	if versions["5.01"] != 3 || versions["4.8"] != 1 || hosts != f.Hosts || len(r.Total) != 2 {
		t.Errorf("accounts by version: %v, of %d hosts, %d totals", versions, hosts, len(r.Total))
	}
	o.Where = append(o.Where, "cpu=icelakex")
	print(t, run[fleet.Report](t, o))

	o.Where = []string{"service=nan"}
	r = run[fleet.Report](t, o)
	a, m := r.Sets[0].Accounts[0], r.Sets[0].Model
	if len(m.Nodes) != 2 || math.Abs(a.Value("Backend_Bound")-0.6) > 1e-9 || !math.IsNaN(a.Value("Retiring")) || !math.IsNaN(a.Values()[0].Error) {
		t.Errorf("%d nodes, Backend_Bound %g, Retiring %g", len(m.Nodes), a.Value("Backend_Bound"), a.Value("Retiring"))
	}
	var b strings.Builder
	if err := report.Write(&b, "json", r, report.Options{}); err != nil || !strings.Contains(b.String(), "not numbers") || !strings.Contains(b.String(), "No_Such_Node") {
		t.Errorf("%v: %s", err, b.String())
	}

	o.Where = []string{"service=mixed"}
	if _, err := fleet.Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "versions 4.8 and 5.01 of tma") {
		t.Errorf("mixed versions: %v", err)
	}
	o.Where = []string{"service=none"}
	if _, err := fleet.Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "no counters of cyclestack") {
		t.Errorf("no series: %v", err)
	}
	o.Where, o.Before, o.Range = []string{"service!=mixed"}, 4*time.Minute, 3*time.Minute
	c := run[*fleet.Comparison](t, o)
	if len(c.Changes) == 0 || slices.ContainsFunc(c.Changes, fleet.Change.Changed) {
		t.Errorf("%d changes: %+v", len(c.Changes), c.Changes)
	}
}
