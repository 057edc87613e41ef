package agent

import (
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
)

// usage is what a cgroup took in an interval, in nanoseconds. Less than zero makes up for
// too much before.
type usage struct {
	user, system, throttled int64
	pressure                [cgroupfs.Resources][2]int64 // some, full
}

// resources are the values of the label, by index of cgroupfs.Pressure.
var resources = [cgroupfs.Resources]string{cgroupfs.PressureCPU: "cpu", cgroupfs.PressureIO: "io", cgroupfs.PressureMemory: "memory"}

// A bundle is the series of one workload or container.
type bundle struct {
	key      string
	scope    []string // labels
	all      []*counter
	user     *counter // cyclestack_cpu_seconds_total
	system   *counter
	stopped  *counter
	whole    *counter // of the account
	nodes    [4]*counter
	pressure [cgroupfs.Resources][2]*counter

	rate   float64 // processor time for each second, over the last minutes
	taken  int64   // nanoseconds since the last ranking
	born   time.Time
	used   time.Time // when there was last something of it
	leaves time.Time // when it lost its place; zero if it has one
	ready  bool      // a store has seen its first value
}

// The nodes of the account of a workload or container, see the model os-time.
const (
	nodeUtilised = iota
	nodeThrottled
	nodeUser
	nodeSystem
)

// newBundle makes the series with labels of a scope. They are 0.
func (s *sink) newBundle(key string, scope []string, now time.Time) *bundle {
	b := &bundle{key: key, scope: scope, born: now, used: now}
	get := func(f *family, more ...string) *counter {
		c := s.r.get(f, slices.Concat(scope, more)...)
		b.all = append(b.all, c)
		return c
	}
	method := []string{series.Processor, s.processor, series.Method, series.OS}
	b.user = get(s.cpu, append(method, series.Mode, "user")...)
	b.system = get(s.cpu, append(method, series.Mode, "system")...)
	b.stopped = get(s.throttled, method...)
	account := []string{series.Model, osModel, series.ModelVersion, s.osVersion, series.Processor, s.processor, series.Method, series.OS, series.Group, osGroup}
	b.whole = get(s.wholeSeconds, account...)
	for i, n := range [...]struct {
		level int
		name  string
	}{nodeUtilised: {1, "CPUs_Utilised"}, nodeThrottled: {1, "Throttled"}, nodeUser: {2, "User_Time"}, nodeSystem: {2, "System_Time"}} {
		b.nodes[i] = get(s.secondsOf(n.level), append(account, series.Node, n.name)...)
	}
	if s.pressures {
		for i, resource := range resources {
			for k, kind := range [...]string{"some", "full"} {
				b.pressure[i][k] = get(s.pressure, append(method, series.Resource, resource, series.Kind, kind)...)
			}
		}
	}
	return b
}

// bundleSeries is how many series a bundle has: its own, and those of the first level of a
// processor's account.
const bundleSeries = 14 + 8

// bundle is how many it has with the levels that are counted by cgroup.
func (o *Settings) bundle() int { return bundleSeries + [...]int{0, 12, 36}[o.CgroupLevels-1] }

// add adds what was taken.
func (b *bundle) add(u *usage) {
	b.user.addNanos(u.user)
	b.system.addNanos(u.system)
	b.stopped.addNanos(u.throttled)
	b.whole.addNanos(u.user + u.system + u.throttled)
	b.nodes[nodeUtilised].addNanos(u.user + u.system)
	b.nodes[nodeThrottled].addNanos(u.throttled)
	b.nodes[nodeUser].addNanos(u.user)
	b.nodes[nodeSystem].addNanos(u.system)
	for i := range b.pressure {
		for k, c := range b.pressure[i] {
			if c != nil {
				c.addNanos(u.pressure[i][k])
			}
		}
	}
}

// A table has the bundles of a scope: at most so many, and one for all others.
type table struct {
	sink  *sink
	scope string
	most  int
	own   map[string]*bundle // with a place, and those that lost it and are still shown
	wait  map[string]*bundle // without series: their rates only
	other *bundle
	rank  time.Time // when places were last given
}

// Times of the ranking, and for how long the final value of a series is kept. Stores that
// scrape once a minute see it three times.
const (
	rankEvery   = time.Minute
	rateOver    = 5 * time.Minute
	keepFinal   = 4 * time.Minute
	waitForZero = time.Minute
)

func newTable(s *sink, scope string, most int) *table {
	return &table{sink: s, scope: scope, most: most, own: map[string]*bundle{}, wait: map[string]*bundle{}}
}

// labels of a bundle of the scope.
func (t *table) labels(l labels) []string {
	list := []string{series.Scope, t.scope}
	if t.scope == series.ByContainer {
		return append(list, l.single()...)
	}
	return append(list, l.workload()...)
}

// others returns the bundle of all that have none of their own.
func (t *table) others(now time.Time) *bundle {
	if t.other == nil {
		l := labels{service: series.Other}
		if t.scope == series.ByContainer {
			l = labels{container: series.Other}
		}
		t.other = t.sink.newBundle(series.Other, t.labels(l), now)
	}
	return t.other
}

// add adds what an entity took to the series of its labels, or to those of all others.
func (t *table) add(key string, l labels, u *usage, now time.Time) {
	b := t.own[key]
	if b == nil {
		b = t.enter(key, l, now)
	}
	b.used = now
	b.taken += u.user + u.system
	if b.all == nil || !b.leaves.IsZero() || !t.counts(b) {
		b = t.others(now)
	}
	b.add(u)
}

// enter gives labels that are new a bundle, with series if there is room.
func (t *table) enter(key string, l labels, now time.Time) *bundle {
	if b := t.wait[key]; b != nil {
		return b
	}
	if len(t.own) < t.most {
		b := t.sink.newBundle(key, t.labels(l), now)
		t.own[key] = b
		return b
	}
	b := &bundle{key: key, scope: t.labels(l), born: now}
	t.wait[key] = b
	t.sink.r.dropped += bundleSeries
	return b
}

// counts reports whether a bundle's series may rise. A store sees each new series as 0
// first: it would not know what the first value it sees has risen from.
func (t *table) counts(b *bundle) bool {
	b.ready = b.ready || t.sink.r.shown(b.whole)
	return b.ready
}

// settle ends a scan: it forgets what has gone, and gives the places to those that take the
// most.
func (t *table) settle(now time.Time) {
	t.others(now)
	for key, b := range t.own {
		gone := now.Sub(b.used) > keepFinal
		if gone || !b.leaves.IsZero() && now.Sub(b.leaves) > keepFinal {
			t.sink.drop(b)
			delete(t.own, key)
		}
	}
	since := now.Sub(t.rank)
	if t.rank.IsZero() {
		t.rank = now
	}
	if since < rankEvery {
		return
	}
	t.rank = now
	t.replace(now, since)
	for key, b := range t.wait {
		if now.Sub(b.used) > rankEvery {
			delete(t.wait, key)
		}
	}
}

// replace gives the places of those that take little to others that take more. A quarter
// more is asked for, so that two of the same size do not change places all the time.
func (t *table) replace(now time.Time, since time.Duration) {
	weight := min(1, float64(since)/float64(rateOver))
	mean := func(b *bundle) {
		b.rate += weight * (float64(b.taken)/float64(since) - b.rate)
		b.taken = 0
	}
	var inside, outside []*bundle
	for _, b := range t.own {
		if mean(b); b.leaves.IsZero() {
			inside = append(inside, b)
		}
	}
	for _, b := range t.wait {
		mean(b)
		outside = append(outside, b)
	}
	byRate := func(a, b *bundle) int {
		switch {
		case a.rate > b.rate:
			return -1
		case a.rate < b.rate:
			return 1
		}
		return 0
	}
	sorting.Sort(inside, byRate)
	sorting.Sort(outside, byRate)
	for len(inside) > t.most { // the settings allow fewer now
		last := len(inside) - 1
		inside[last].leaves = now
		inside = inside[:last]
	}
	for _, b := range outside {
		if len(t.own) >= t.most { // the place is free when its final value has been seen
			last := len(inside) - 1
			if last < 0 || b.rate <= 1.25*inside[last].rate {
				break
			}
			inside[last].leaves = now
			inside = inside[:last]
			continue
		}
		delete(t.wait, b.key)
		fresh := t.sink.newBundle(b.key, b.scope, now)
		fresh.rate, fresh.used = b.rate, b.used
		t.own[b.key] = fresh
	}
}
