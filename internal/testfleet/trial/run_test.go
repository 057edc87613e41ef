// Package trial writes a simulated fleet with a known truth into a real Prometheus. It
// measures what that takes, and what the command fleet takes:
//
//	go test ./internal/testfleet/trial -run Trial -v -hosts 10000 -services 50 -timeout 2h
//
// The Prometheus is started on the loopback interface in a temporary directory, and ended at
// the end. The minutes of the fleet pass as fast as it can take them.
package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/testfleet"
	"github.com/cyclestack/cyclestack/report"
)

// Options say what is tried.
type Options struct {
	Fleet   testfleet.Fleet
	Minutes int
	Rules   string // a file of recording rules; "" for none
	// Then is called with the store before it ends, and the time of the last scrape.
	Then func(ctx context.Context, s *testfleet.Server, at time.Time) error
}

// Results are what was measured.
type Results struct {
	Series, Samples  int
	Write            time.Duration
	Memory, MemoryAt float64 // bytes: at most, and after the writing
	StoreCPU         time.Duration
	Evaluation       time.Duration // of all recording rules once
	Busy             float64       // part of the time that they are evaluated, by their intervals
	Recorded         int           // their series
	Answer, Canary   time.Duration
	Outside, Values  int // values whose 95 % interval does not have the truth
	Inexact          int // values that are not the quotient of the sums
	First            fleet.Change
	Others           int // changes found besides those of the canary's service
}

// Try tries and returns what it measures.
func Try(ctx context.Context, o Options, out io.Writer) (*Results, error) {
	dir, err := os.MkdirTemp("", "cyclestack-fleet-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := testfleet.Prometheus(dir, "global: {}\n", "--query.max-samples=200000000", "--query.timeout=10m")
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	r, f := &Results{}, &o.Fleet
	r.Series = f.Series()
	fmt.Fprintf(out, "%d hosts, %d services: %s series\n", f.Hosts, f.Services, mega(float64(r.Series)))
	times := testfleet.Times(time.Now().Add(-time.Second), o.Minutes)
	if r.Write, err = write(ctx, f, s, times, out); err != nil {
		return nil, err
	}
	r.Samples = f.Written
	_, r.MemoryAt = s.Memory()
	r.StoreCPU = s.CPU()
	rate := float64(r.Samples) / r.Write.Seconds()
	fmt.Fprintf(out, "wrote %s samples in %.0f s: %s samples/s, where a scrape each minute needs %s; the store used %.0f s of processor time\n",
		mega(float64(r.Samples)), r.Write.Seconds(), mega(rate), mega(float64(r.Series)/60), r.StoreCPU.Seconds())
	fmt.Fprintf(out, "memory %.2f GB after writing, %.0f bytes for each series\n", r.MemoryAt/1e9, r.MemoryAt/float64(r.Series))
	q := fleet.Options{Access: fleet.Access{URL: s.URL, Timeout: 2 * time.Minute}, By: "service", Range: time.Duration(o.Minutes-1) * time.Minute, Level: f.Levels,
		At: strconv.FormatInt(times[len(times)-1].Unix(), 10)}
	if o.Rules != "" {
		used := s.CPU()
		if err := evaluate(ctx, s, dir, o.Rules, times[len(times)-1], r); err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "recording rules: %d series from all of them once, in %.1f s with %.1f s of processor time; by their intervals %.1f %% of the time\n", r.Recorded,
			r.Evaluation.Seconds(), (s.CPU() - used).Seconds(), 100*r.Busy)
	}
	if err := r.ask(ctx, f, q, times, out); err != nil {
		return nil, err
	}
	r.Memory, _ = s.Memory()
	fmt.Fprintf(out, "memory %.2f GB at most\n", r.Memory/1e9)
	if o.Then != nil {
		return r, o.Then(ctx, s, times[len(times)-1])
	}
	return r, nil
}

// write writes the counters of all times.
func write(ctx context.Context, f *testfleet.Fleet, s *testfleet.Server, times []time.Time, out io.Writer) (time.Duration, error) {
	start := time.Now()
	w := testfleet.NewWriter(s.Write, 2)
	for i, at := range times {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		from := time.Now()
		if err := f.Step(w, at); err != nil {
			return 0, err
		}
		fmt.Fprintf(out, "  scrape %d of %d in %.1f s\n", i+1, len(times), time.Since(from).Seconds())
	}
	return time.Since(start), nil
}

// evaluate evaluates recording rules at a time, one by one as a store does, and writes their
// results. The store reads the rules, but would evaluate them only now.
func evaluate(ctx context.Context, s *testfleet.Server, dir, rules string, at time.Time, r *Results) error {
	text, err := os.ReadFile(rules)
	if err != nil {
		return err
	}
	own := strings.NewReplacer("interval: 5m", "interval: 500h", "interval: 15m", "interval: 1500h").Replace(string(text)) // never by itself
	if err := os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(own), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte("rule_files: [rules.yml]\n"), 0o600); err != nil {
		return err
	}
	if err := s.Reload(); err != nil {
		return err
	}
	list, err := loaded(s)
	if err != nil {
		return err
	}
	store, err := fleet.Open(fleet.Access{URL: s.URL, Timeout: 10 * time.Minute})
	if err != nil {
		return err
	}
	w := testfleet.NewWriter(s.Write, 1)
	for _, rule := range list {
		start := time.Now()
		samples, err := store.Query(ctx, rule.Query, at)
		if err != nil {
			return fmt.Errorf("%s: %w", rule.Name, err)
		}
		took := time.Since(start)
		r.Evaluation += took
		r.Busy += took.Hours() / rule.Every.Hours()
		for _, x := range samples {
			labels := maps.Clone(rule.Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, x.Labels)
			labels["__name__"] = rule.Name
			w.Add(labels, x.Value, at)
			r.Recorded++
		}
	}
	return w.Flush()
}

// hundredHours are in seconds what evaluate makes of a minute of an interval.
const hundredHours = 100 * 3600

// A rule is a recording rule as the store has it.
type rule struct {
	Name, Query string
	Labels      map[string]string
	Every       time.Duration
}

// loaded returns the rules that the store has.
func loaded(s *testfleet.Server) (list []rule, err error) {
	res, err := http.Get(s.URL + "/api/v1/rules")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var a struct {
		Data struct {
			Groups []struct {
				Interval float64 // seconds
				Rules    []rule
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return nil, err
	}
	for _, g := range a.Data.Groups {
		for _, rule := range g.Rules {
			rule.Every = time.Duration(g.Interval/hundredHours) * time.Minute
			list = append(list, rule)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the store has no recording rules")
	}
	return list, nil
}

// ask asks for the account and the canary.
func (r *Results) ask(ctx context.Context, f *testfleet.Fleet, q fleet.Options, times []time.Time, out io.Writer) error {
	start := time.Now()
	document, err := fleet.Run(ctx, q)
	if err != nil {
		return err
	}
	r.Answer = time.Since(start)
	accounts := document.(fleet.Report)
	if err := report.Write(out, "tree", accounts, report.Options{Lines: 24, Width: 80}); err != nil {
		return err
	}
	r.check(f, accounts, times)
	fmt.Fprintf(out, "answered in %.2f s, from %s\n", r.Answer.Seconds(), accounts.Answer)
	fmt.Fprintf(out, "%d of %d values are further from the truth than their 95 %% errors; %d are not what the hosts counted\n", r.Outside, r.Values, r.Inexact)
	q.Against = "version=canary"
	start = time.Now()
	if document, err = fleet.Run(ctx, q); err != nil {
		return err
	}
	r.Canary = time.Since(start)
	c := document.(*fleet.Comparison)
	for _, x := range c.Changes {
		if x.Changed() && x.By != testfleet.Service(f.WorseService) {
			r.Others++
		}
	}
	if len(c.Changes) > 0 {
		r.First = c.Changes[0]
	}
	if err := report.Write(out, "tree", c, report.Options{Lines: 24, Width: 80}); err != nil {
		return err
	}
	fmt.Fprintf(out, "answered in %.2f s; %d changes found in other services, where there are none\n", r.Canary.Seconds(), r.Others)
	return nil
}

// extrapolated is how far a share may be from what hosts counted, relative to it. A store
// extrapolates all counters of a scrape alike. It has no more digits than a float64.
const extrapolated = 1e-6

// check compares accounts with the truth, and with the sums of what hosts counted.
func (r *Results) check(f *testfleet.Fleet, accounts fleet.Report, times []time.Time) {
	sums := f.Sums(times, 0)
	for _, set := range accounts.Sets {
		cpu := slices.IndexFunc(testfleet.CPUs, func(c testfleet.CPU) bool { return c.Name == set.CPU.Name })
		for _, a := range set.Accounts {
			service, err := strconv.Atoi(strings.TrimPrefix(a.By, "service-"))
			if err != nil || cpu < 0 || service == f.WorseService {
				continue
			}
			truth, sum := f.Truth(service, cpu, false), sums[[2]int{service, cpu}]
			for i, v := range a.Values() {
				name := set.Model.Nodes[i].Name
				r.Values++
				if !(math.Abs(v.Value-truth.Shares[name]) <= v.Error) {
					r.Outside++
				}
				if want := sum.Nodes[name] / sum.Whole; !(math.Abs(v.Value-want) <= extrapolated*want) {
					r.Inexact++
				}
			}
		}
	}
}

// mega is a number as people read it.
func mega(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.0f k", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}
