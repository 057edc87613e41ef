package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/testfleet"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

var (
	hosts    = flag.Int("hosts", 0, "hosts; 0 is 400, and 2,000 with -long")
	services = flag.Int("services", 50, "with -hosts: services on each host")
	levels   = flag.Int("levels", 1, "with -hosts: levels of the tree that services export, 1 or 2")
	minutes  = flag.Int("minutes", 5, "minutes that are written, a scrape in each")
	rules    = flag.String("rules", "../../../deploy/prometheus/cyclestack.rules.yml", "recording rules; without them the counters answer")
	fresh    = flag.Bool("new", false, "all exporters began with the first minute; else they have counted for hours or weeks")
	keep     = flag.Duration("keep", 0, "the store goes on for so long")
)

// TestTrial: with recording rules, the account of a simulated fleet equals the truth within
// its errors, and the canary is found. With -long it has 2,000 hosts with 50 services.
func TestTrial(t *testing.T) {
	o := Options{Fleet: testfleet.Fleet{Hosts: 400, Services: 4, Levels: 2, Spread: 0.05, Seed: 3, Worse: 0.1, WorseService: 2, CanaryEvery: 4, LostEvery: 100, RestartEvery: 50, RestartStep: 3, New: *fresh},
		Minutes: *minutes, Rules: *rules}
	switch {
	case *hosts > 0:
		o.Fleet = testfleet.Fleet{Hosts: *hosts, Services: *services, Levels: *levels, Spread: 0.05, Seed: 1, Worse: 0.03, WorseService: min(7, *services-1), CanaryEvery: 20, LostEvery: 5000, New: *fresh}
	case testlong.Enabled():
		o.Fleet.Hosts, o.Fleet.Services, o.Fleet.Levels, o.Fleet.Worse, o.Fleet.WorseService = 2000, 50, 1, 0.03, 7
	}
	o.Then = func(ctx context.Context, s *testfleet.Server, at time.Time) error {
		if *keep > 0 {
			fmt.Printf("cyclestack fleet --prom %s --at %d --range %dm\n", s.URL, at.Unix(), o.Minutes-1)
			time.Sleep(*keep)
		}
		dashboard(t, s, at, o.Fleet.Levels)
		return nil
	}
	var out bytes.Buffer
	r, err := Try(context.Background(), o, &out)
	if errors.Is(err, testfleet.ErrNone) {
		t.Skipf("%v: apt-get install prometheus", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	if r.Inexact > 0 || r.Outside*12 > r.Values || r.Values == 0 {
		t.Errorf("%d of %d values are further from the truth than their errors, %d are not what hosts counted", r.Outside, r.Values, r.Inexact)
	}
	if x := r.First; x.By != testfleet.Service(o.Fleet.WorseService) || x.Node != "Backend_Bound" && x.Node != "Memory_Bound" || !x.Worse() {
		t.Errorf("the canary is not found: first is %+v", x)
	}
	if r.Others > 0 {
		t.Errorf("%d changes in services without any", r.Others)
	}
}

// dashboard has the real Prometheus evaluate each query of the dashboard. Each finds something. The first level's shares sum to 1.
func dashboard(t *testing.T, s *testfleet.Server, at time.Time, levels int) {
	text, err := os.ReadFile("../../../deploy/grafana/cyclestack.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	store, err := fleet.Open(fleet.Access{URL: s.URL, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("$service", ".*", "$cpu", ".*", "$node", "Backend_Bound")
	queries := 0
	for _, p := range d.Panels {
		for _, x := range p.Targets {
			queries++
			expr := values.Replace(x.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: a variable without a value in %s", p.Title, expr)
			}
			samples, err := store.Query(context.Background(), expr, at)
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
			sum := 0.0
			for _, v := range samples {
				sum += v.Value
			}
			switch p.Title {
			case "Slots, first level":
				if math.Abs(sum-1) > 1e-6 {
					t.Errorf("%s: the shares sum to %g", p.Title, sum)
				}
			case "Slots, second level": // Memory_Bound and Core_Bound, which Backend_Bound is the sum of
				if levels == 1 && len(samples) == 0 {
					continue
				}
				if levels == 1 || len(samples) != len(testfleet.Nodes[1]) || sum < 0.2 || sum > 0.7 {
					t.Errorf("%s: the shares of %d nodes sum to %g", p.Title, len(samples), sum)
				}
			case "Time that the counters ran":
				if len(samples) != len(testfleet.CPUs) || math.Abs(samples[0].Value-testfleet.Coverage) > 1e-6 {
					t.Errorf("%s: %v", p.Title, samples)
				}
			}
			if len(samples) == 0 {
				t.Errorf("%s: nothing for %s", p.Title, expr)
			}
		}
	}
	if queries < 10 {
		t.Errorf("%d queries", queries)
	}
	for _, v := range d.Templating.List {
		if metric, _, ok := strings.Cut(strings.TrimPrefix(v.Query, "label_values("), ", "+v.Name+")"); ok {
			if samples, err := store.Query(context.Background(), metric, at); err != nil || len(samples) == 0 || samples[0].Labels[v.Name] == "" {
				t.Errorf("variable %s: %v, %v", v.Name, samples, err)
			}
		}
	}
}

// TestRules: promtool finds nothing wrong with the recording rules, and their tests pass.
func TestRules(t *testing.T) {
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "cyclestack.rules.yml"}, {"test", "rules", "cyclestack_test.yml"}} {
		cmd := exec.Command(path, args...)
		cmd.Dir = "../../../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
}
