package switches

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// Options are what a client of the counting says.
type Options struct {
	// Cgroups reads the tree of cgroups that the kernel counts by.
	Cgroups *cgroupfs.Reader
	// Name returns the scope that a cgroup's counts belong to; several may share one. The
	// path is "" for one that nobody knows any more.
	Name func(path string) string
	// Share returns the part of the time that may be counted, 0…1. The argument is how many
	// records a second of counting made, 0 if nothing was counted before.
	Share func(records float64) float64
	// Took is told how many records an interval made, and how many found no room.
	Took func(records int, lost uint64)
}

// A Run counts in bursts. It is a Counters of package measure.
type Run struct {
	o     Options
	ctx   context.Context
	sys   *perfevent.System
	spec  perfevent.Spec
	begin time.Time
	end   time.Time // zero for none
	at    time.Time
	paths map[uint64]string
	rate  float64 // records in a second of counting
	table *counts.Table
	err   error
	stop  chan struct{}
	once  sync.Once
}

// Cost is what a record takes the kernel, with so many counters. The figures are instructions
// that a guest's kernel executed (TestPMUSwitchCost of internal/guest/inside), at one in a
// nanosecond. They include those for the reader of the ring. Processors execute more. That
// makes up for registers of counters, whose reading is slow.
func Cost(counters int) time.Duration {
	const record, counter = 3300, 240 // nanoseconds
	return record + time.Duration(counters)*counter
}

// Bounds of a burst.
const (
	leastSlot = 20 * time.Millisecond
	ring      = 256 << 10
)

// Start tries one burst, so that it fails where the kernel cannot do it.
func (o Options) Start(ctx context.Context, sys *perfevent.System, spec perfevent.Spec) (*Run, error) {
	if len(spec.Groups) == 0 {
		return nil, errors.New("nothing to count")
	}
	r := &Run{o: o, ctx: ctx, sys: sys, spec: spec, begin: time.Now(), stop: make(chan struct{}), paths: map[uint64]string{}}
	r.at = r.begin
	if spec.Timeout > 0 {
		r.end = r.begin.Add(spec.Timeout)
	}
	d, spent, err := r.burst(0, leastSlot)
	if err != nil {
		return nil, err
	}
	r.took(d.Records, spent)
	return r, nil
}

// took notices how many records a burst made.
func (r *Run) took(records int, spent time.Duration) {
	if s := spent.Seconds(); s > 0 {
		r.rate = max(1, float64(records)/s)
	}
}

// burst counts one group for a time.
func (r *Run) burst(group int, d time.Duration) (*decoder, time.Duration, error) {
	lead, err := r.sys.Resolve(switchEvent)
	if err != nil {
		return nil, 0, err
	}
	clock, err := r.sys.Resolve(clockEvent)
	if err != nil {
		return nil, 0, err
	}
	lead.Attr.Sample, clock.Attr.Sample = 1, clockEvery
	names := map[string]int{}
	events := []perfevent.Event{lead, clock}
	for i, e := range r.spec.Groups[group] {
		if i < maxEvents {
			names[e.Name] = i
			events = append(events, e)
		}
	}
	s, err := perfevent.Sample(r.ctx, r.sys, perfevent.SampleSpec{Groups: [][]perfevent.Event{events},
		Target: perfevent.Target{All: true}, Timeout: d, Cgroups: true, RingSize: ring})
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	begin := time.Now()
	dec := newDecoder(s.Events(), names)
	for s.Next() {
		if _, err := s.WriteTo(dec); err != nil {
			return nil, 0, err
		}
	}
	dec.lost += s.Lost()
	if dec.Records > 0 && dec.bad == dec.Records {
		return nil, 0, errors.New("the kernel's records are not as expected")
	}
	return dec, time.Since(begin), nil
}

// Next counts for an interval.
func (r *Run) Next() bool {
	if r.err != nil || r.over(r.at) {
		return false
	}
	next := r.at.Add(r.spec.Interval)
	if !r.end.IsZero() && next.After(r.end) {
		next = r.end
	}
	share := min(1, r.o.Share(r.rate))
	slot := time.Duration(share * float64(next.Sub(r.at)) / float64(len(r.spec.Groups)))
	if slot >= leastSlot {
		// At another time in each interval: what a program does regularly is met by chance.
		rest := next.Sub(r.at) - slot*time.Duration(len(r.spec.Groups))
		if !r.sleep(time.Now().Add(time.Duration(rand.Float64() * 0.9 * float64(rest)))) {
			return false
		}
	}
	parts := make([]*decoder, len(r.spec.Groups))
	records, lost, spent := 0, uint64(0), time.Duration(0)
	for g := range parts {
		if slot < leastSlot {
			break
		}
		d, took, err := r.burst(g, slot)
		if err != nil {
			if r.ctx.Err() == nil {
				r.err = err
			}
			return false
		}
		parts[g] = d
		records += d.Records
		lost += d.lost
		spent += took
	}
	if spent > 0 {
		r.took(records, spent)
		r.o.Took(records, lost)
	}
	if !r.sleep(next) {
		return false
	}
	r.fill(parts, next.Sub(r.at))
	r.at = next
	return true
}

func (r *Run) over(at time.Time) bool { return !r.end.IsZero() && !at.Before(r.end) }

// sleep waits for a time, and reports whether it came.
func (r *Run) sleep(until time.Time) bool {
	select {
	case <-r.ctx.Done():
		return false
	case <-r.stop:
		return false
	case <-time.After(time.Until(until)):
		return true
	}
}

// fill makes the table of an interval. Counts are as if the groups had been multiplexed:
// each for its part of the time, and scaled to all of it.
func (r *Run) fill(parts []*decoder, interval time.Duration) {
	r.learn(parts)
	sums := map[string][]tally{}
	var names []string
	for g, d := range parts {
		if d == nil {
			continue
		}
		for id, t := range d.groups {
			name := r.o.Name(r.paths[id])
			if sums[name] == nil {
				sums[name] = make([]tally, len(parts))
				names = append(names, name)
			}
			sum := &sums[name][g]
			sum.enabled += t.enabled
			sum.running += t.running
			for k := range sum.values {
				sum.values[k] += t.values[k]
			}
		}
	}
	slices.Sort(names)
	t := counts.NewTable(layout(&r.spec, names))
	t.Start, t.Duration, t.Interval, t.Label = r.at.Sub(r.begin).Seconds(), interval.Seconds(), true, "cgroups"
	groups := float64(len(parts))
	for i, name := range names {
		row, at := t.Row(i), 0
		for g := range parts {
			sum := &sums[name][g]
			for k := range r.spec.Groups[g] {
				row[at] = counts.Cell{State: counts.NotCounted}
				if sum.running > 0 && k < maxEvents {
					row[at] = counts.Cell{State: counts.Counted, Value: sum.values[k] * groups, Enabled: float64(sum.enabled) * groups, Running: float64(sum.running)}
				}
				at++
			}
		}
	}
	r.table = t
}

// learn finds the paths of cgroups that are new. Those that are gone are forgotten.
func (r *Run) learn(parts []*decoder) {
	known := true
	for _, d := range parts {
		if d == nil {
			continue
		}
		for id := range d.groups {
			_, ok := r.paths[id]
			known = known && ok
		}
	}
	if known {
		return
	}
	clear(r.paths)
	_ = r.o.Cgroups.Scan(func(g *cgroupfs.Group) { r.paths[g.ID] = "/" + trim(g.Path()) })
}

func trim(path string) string {
	for len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	return path
}

// Table returns the last interval's table.
func (r *Run) Table() *counts.Table { return r.table }

// Kind says what counted.
func (r *Run) Kind() string { return "perf-event" }

// Err returns what ended the counting.
func (r *Run) Err() error { return r.err }

// Stop ends the counting.
func (r *Run) Stop() { r.once.Do(func() { close(r.stop) }) }

// Signal returns an error: there is no program.
func (r *Run) Signal(os.Signal) error { return os.ErrProcessDone }

// State returns nil: there is no program.
func (r *Run) State() *os.ProcessState { return nil }

// Close ends the counting.
func (r *Run) Close() error {
	r.Stop()
	return nil
}
