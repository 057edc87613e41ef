package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	hierarchy "github.com/cyclestack/cyclestack/internal/cgroups"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
	"github.com/cyclestack/cyclestack/internal/source/switches"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A place is where the counts of a cgroup go.
type place struct {
	work, single string // keys; "" for none
	labels       labels
}

// A burstCounting counts by cgroup, part of the time.
type burstCounting struct {
	a      *Agent
	scopes map[string][][]string // by the names of scopes: labels
	duty   map[string]*counter
	kept   map[int]*keptBursts // by level: planning takes long
	online string
	order  []int // of the levels, from 0
}

// A keptBursts is the counting of a level, which can be started again.
type keptBursts struct {
	level    int
	m        *measure.Measurement // nil if the level has no nodes
	writer   *windows
	counters int // of the largest group
}

// Bursts may take half of the budget, and are at first a hundredth of the time.
const (
	burstBudget = 0.5
	mostShare   = 0.5
	firstShare  = 0.01
)

// burst counts by cgroup until the context is done. It needs a PMU, and a kernel
// that tells when a processor changes its cgroup.
func (a *Agent) burst(ctx context.Context) error {
	if a.o.Source == measure.OS || a.groups == nil {
		return nil
	}
	mount := a.groups.reader.Dir()
	if filepath.Clean(a.o.Root) == "/" || a.groups.reader.Version() == 1 {
		var err error
		if mount, err = hierarchy.Mount(); err != nil {
			a.o.Log.Info("no counters by cgroup", "reason", err)
			return nil
		}
	}
	b := &burstCounting{a: a, duty: map[string]*counter{}}
	var settled Settings
	for turn := 0; ctx.Err() == nil; turn++ {
		o, changed := a.settings()
		if online := a.onlineList(); o != settled || online != b.online {
			b.kept, settled, b.online = map[int]*keptBursts{}, o, online
		}
		err := b.turn(ctx, o, mount, turn, changed)
		var none *measure.NoPMUError
		var unknown *perfevent.EventError
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &none):
			return nil
		case errors.As(err, &unknown):
			a.o.Log.Info("no counters by cgroup", "reason", err)
			return nil
		case err != nil:
			a.failed("pmu", err)
			pause(ctx, changed, retryAfter)
		}
	}
	return nil
}

// turn counts a level for some windows. Levels follow each other without a pattern, as those
// of the host do. One that is alone goes on until the settings or the processors change.
func (b *burstCounting) turn(ctx context.Context, o Settings, mount string, turn int, changed <-chan struct{}) error {
	if turn%o.CgroupLevels == 0 {
		b.order = rand.Perm(o.CgroupLevels)
	}
	k, err := b.prepared(b.order[turn%len(b.order)]+1, o, mount)
	if err != nil {
		return err
	}
	if k.m == nil {
		if o.CgroupLevels == 1 {
			pause(ctx, changed, retryAfter)
		}
		return nil
	}
	run, err := k.m.Start(ctx)
	if err != nil {
		return err
	}
	defer run.Close()
	return b.a.counted(ctx, run, o.Interval, b.online, changed)
}

// prepared returns the counting of a level, planned once.
func (b *burstCounting) prepared(level int, o Settings, mount string) (*keptBursts, error) {
	if k := b.kept[level]; k != nil {
		return k, nil
	}
	k := &keptBursts{level: level}
	kernel := b.a.o.Kernel
	s := switches.Options{Cgroups: cgroupfs.At(mount), Name: b.name, Share: func(records float64) float64 { return b.share(k, records, o) },
		Took: func(records int, lost uint64) {
			b.a.cost.charge(time.Duration(records) * switches.Cost(k.counters))
			if lost > 0 && k.writer != nil { // what followed the loss was not counted
				k.writer.lost()
			}
		}}
	kernel.Start = func(ctx context.Context, sys *perfevent.System, spec perfevent.Spec) (measure.Counters, error) {
		run, err := s.Start(ctx, sys, spec)
		if err != nil {
			return nil, err
		}
		return run, nil
	}
	choice := b.a.o.Choice
	choice.Level = level
	period := measure.Period{Interval: o.Interval}
	if o.CgroupLevels > 1 {
		period.Timeout = min(turnWindows*o.Interval, max(mostTurn, o.Interval))
	}
	m, err := measure.New(kernel, measure.Options{
		Choice: choice, Source: measure.PMU, Target: perfevent.Target{All: true}, Label: "agent", NoTimes: true,
		By: counts.By(0).With(counts.Interval).With(counts.Cgroup), Period: period,
		Client: measure.Client{Writer: func(report.Options) (report.Writer, error) {
			k.writer = &windows{s: b.a.s, method: series.Bursts, level: level, bursts: true, scope: func(s *counts.Scope) [][]string { return b.scopes[s.Cgroup] },
				plan: func(cpu string) *plan.Plan { return k.m.Plans()[cpu] }}
			return k.writer, nil
		}},
	})
	if err != nil {
		return nil, err
	}
	if err := m.Plan(); err != nil {
		return nil, err
	}
	for _, p := range m.Plans() {
		for i := range p.Groups {
			k.counters = max(k.counters, len(p.Groups[i].Events))
		}
		if len(groupsOf(p.Model, p, level)) > 0 {
			k.m = m
		}
	}
	b.kept[level] = k
	return k, nil
}

// share returns for how much of the time the budget allows to count a level.
func (b *burstCounting) share(k *keptBursts, records float64, o Settings) float64 {
	share := firstShare
	if records > 0 {
		allowed := burstBudget * o.Budget * float64(max(1, b.a.host.online))
		share = min(mostShare, allowed/(records*switches.Cost(k.counters).Seconds()))
	}
	share *= b.a.cost.share()
	reg := b.a.s.r
	reg.mu.Lock()
	defer reg.mu.Unlock()
	name := fmt.Sprintf("l%d", k.level)
	if b.duty[name] == nil {
		b.duty[name] = reg.get(reg.family(series.Duty, "share of the time that a group is counted in", gauge), series.Scope, series.Workload, series.Group, name)
	}
	b.duty[name].set(share / float64(o.CgroupLevels))
	return share
}

// name returns the scope of a cgroup, and keeps its labels: those of the nearest entity that
// the last scan saw.
func (b *burstCounting) name(path string) string {
	a := b.a
	a.s.r.mu.Lock()
	defer a.s.r.mu.Unlock()
	if len(b.scopes) > 2*a.s.r.most {
		b.scopes = nil
	}
	if b.scopes == nil {
		b.scopes = map[string][][]string{}
	}
	p, known := a.placeOf(path)
	var list [][]string
	if !known || !a.work.has(p.work) {
		list = append(list, a.work.labels(labels{service: series.Other}))
	} else {
		list = append(list, a.work.labels(p.labels))
	}
	switch {
	case a.single == nil || p.single == "":
	case a.single.has(p.single):
		list = append(list, a.single.labels(p.labels))
	default:
		list = append(list, a.single.labels(labels{container: series.Other}))
	}
	var key strings.Builder
	for _, l := range list {
		key.WriteString(labelText(l))
	}
	b.scopes[key.String()] = list
	return key.String()
}

// placeOf returns where what belongs to a cgroup goes: to the nearest entity that the last
// scan saw. The caller must hold the registry's lock.
func (a *Agent) placeOf(path string) (p place, known bool) {
	p, known = a.places[strings.TrimSuffix(path, "/")]
	for at := path; !known && at != ""; {
		at = at[:max(0, strings.LastIndexByte(at, '/'))]
		p, known = a.places[at]
	}
	return p, known
}

// has reports whether a key has series of its own that count.
func (t *table) has(key string) bool {
	b := t.own[key]
	return b != nil && b.leaves.IsZero()
}

// publish notes where the counts of each cgroup go. The caller must hold the registry's
// lock.
func (a *Agent) publish() {
	clear(a.places)
	for _, e := range a.groups.order {
		a.places[e.path] = place{e.work, e.single, e.labels}
	}
}
