package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A rotation counts the levels of the tree one after the other.
type rotation struct {
	a       *Agent
	kept    map[int]*kept // by level: planning takes long
	online  string
	duty    map[string]*counter
	settled Settings
}

// A kept measurement is one that can be started again.
type kept struct {
	m       *measure.Measurement // nil if the level has no nodes
	windows []*windows
	groups  int // that are multiplexed
}

// turnWindows is how many windows a level has before it is the next one's turn. mostTurn is
// how long that is at most.
const (
	turnWindows = 6
	mostTurn    = 5 * time.Minute
	retryAfter  = 5 * time.Minute
)

// rotate counts until the context is done. A machine without a PMU has only the operating
// system's account.
func (a *Agent) rotate(ctx context.Context) error {
	if a.o.Source == measure.OS {
		return nil
	}
	r := &rotation{a: a, kept: map[int]*kept{}, duty: map[string]*counter{}}
	for ctx.Err() == nil {
		o, changed := a.settings()
		if o != r.settled {
			r.kept, r.settled = map[int]*kept{}, o
		}
		// Programs that repeat what they do should not meet the same level each time.
		for _, level := range rand.Perm(o.Levels) {
			err := r.turn(ctx, level+1, changed)
			var none *measure.NoPMUError
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.As(err, &none) && a.o.Source == measure.Auto:
				a.o.Log.Info("only the operating system's account is exported", "reason", err)
				return nil
			case errors.As(err, &none), fault.Of(err) == fault.Usage:
				return err
			case err != nil:
				a.failed("pmu", err)
				clear(r.kept)
				pause(ctx, changed, retryAfter)
			}
		}
		if r.empty() {
			return fault.Machinef("the method has no nodes that add up: %s chooses another one", fault.Name("model"))
		}
	}
	return nil
}

// empty reports whether no level has nodes.
func (r *rotation) empty() bool {
	for _, k := range r.kept {
		if k.m != nil {
			return false
		}
	}
	return len(r.kept) == r.settled.Levels
}

// pause waits, unless the context ends or the settings change.
func pause(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-time.After(d):
	}
}

// turn counts a level for some windows, and then rests as long as the budget wants.
func (r *rotation) turn(ctx context.Context, level int, changed <-chan struct{}) error {
	if online := r.a.onlineList(); online != r.online { // processors came or went
		r.online = online
		clear(r.kept)
	}
	k, err := r.prepared(level)
	if err != nil {
		return err
	}
	if k.m == nil {
		return nil
	}
	share := r.a.cost.share()
	r.export(level, share)
	begin := time.Now()
	err = r.count(ctx, k, changed)
	spent := time.Since(begin)
	if share < 1 {
		pause(ctx, changed, time.Duration(float64(spent)*(1/share-1)))
	}
	return err
}

// count runs a measurement until its time is over.
func (r *rotation) count(ctx context.Context, k *kept, changed <-chan struct{}) error {
	k.windows = k.windows[:0]
	run, err := k.m.Start(ctx)
	if err != nil {
		return err
	}
	defer run.Close()
	before := time.Now()
	err = r.a.counted(ctx, run, r.settled.Interval, r.online, changed)
	if k.groups > 1 {
		r.a.cost.charge(muxCost(time.Since(before), r.a.host.online))
	}
	if err != nil && ctx.Err() == nil {
		for _, w := range k.windows {
			w.lost()
		}
		return err
	}
	return nil
}

// Multiplexing switches a processor's groups at each slot of time. A switch is estimated at
// the time of writing and reading a handful of counters.
const (
	muxSlot   = 4 * time.Millisecond
	muxSwitch = 2 * time.Microsecond
)

// muxCost estimates what the kernel takes to multiplex groups.
func muxCost(d time.Duration, processors int) time.Duration {
	return time.Duration(int64(d/muxSlot) * int64(max(1, processors)) * int64(muxSwitch))
}

// counted counts a run to its end, or until settings or the online processors change.
func (a *Agent) counted(ctx context.Context, run *measure.Run, every time.Duration, online string, changed <-chan struct{}) error {
	over := make(chan struct{})
	defer close(over)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-ctx.Done():
			case <-changed:
			case <-tick.C:
				if a.onlineList() == online {
					continue
				}
			}
			run.Stop()
			return
		}
	}()
	return errors.Join(run.Count(), run.Finish(ctx))
}

// prepared returns the measurement of a level, planned once.
func (r *rotation) prepared(level int) (*kept, error) {
	if k := r.kept[level]; k != nil {
		return k, nil
	}
	o := &r.a.o
	by := counts.By(0).With(counts.Interval)
	if r.settled.Sockets {
		by = by.With(counts.Socket)
	}
	k := &kept{}
	choice := o.Choice
	choice.Level = level
	m, err := measure.New(o.Kernel, measure.Options{
		Choice: choice, Source: measure.PMU, Target: perfevent.Target{All: true}, Label: "agent", By: by, NoTimes: true, Generic: []string{"cycles", "instructions"},
		Period: measure.Period{Interval: r.settled.Interval, Timeout: min(turnWindows*r.settled.Interval, max(mostTurn, r.settled.Interval))},
		Client: measure.Client{Writer: func(report.Options) (report.Writer, error) { return r.windows(k, level), nil }},
	})
	if err != nil {
		return nil, err
	}
	if err := m.Plan(); err != nil {
		return nil, err
	}
	for _, p := range m.Plans() {
		k.groups = max(k.groups, len(p.Groups))
		if len(groupsOf(p.Model, p, level)) > 0 {
			k.m = m
		}
	}
	r.kept[level] = k
	return k, nil
}

// windows makes a writer of a part's accounts.
func (r *rotation) windows(k *kept, level int) *windows {
	w := &windows{s: r.a.s, method: series.PMU, level: level, busy: busyTime(r.a.o.Kernel.Root),
		plan: func(cpu string) *plan.Plan { return k.m.Plans()[cpu] }}
	if len(k.m.Processors()) > 1 { // the time of one type of core is not known
		w.busy = nil
	}
	if r.settled.Sockets {
		w.busy = nil
		w.scope = func(s *counts.Scope) [][]string {
			list := []string{series.Scope, series.Host}
			if s.Socket != counts.Unknown {
				list = append(list, series.Socket, fmt.Sprint(s.Socket))
			}
			return [][]string{list}
		}
	}
	k.windows = append(k.windows, w)
	return w
}

// export says how much of the time a level is counted.
func (r *rotation) export(level int, share float64) {
	reg := r.a.s.r
	reg.mu.Lock()
	defer reg.mu.Unlock()
	name := fmt.Sprintf("l%d", level)
	if r.duty[name] == nil {
		r.duty[name] = reg.get(reg.family(series.Duty, "share of the time that a group is counted in", gauge), series.Scope, series.Host, series.Group, name)
	}
	r.duty[name].set(share / float64(r.settled.Levels))
}

// onlineList returns which processors are online, as the kernel writes it.
func (a *Agent) onlineList() string {
	text, err := fs.ReadFile(a.o.Kernel.Root, "sys/devices/system/cpu/online")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
