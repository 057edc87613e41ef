// Package agent exports accounts as counters that add up: for Prometheus to scrape, or
// pushed as OTLP. It is a client of package measure for what processors count. The
// operating system's account comes from /proc and the files of cgroups.
//
// Nothing is a ratio. For each node it has the numerator and, for its group of events, the
// denominator of the same windows. What multiplexing scales is scaled in each window and
// then added, so that no counter falls.
//
//	a, err := agent.New(agent.Options{Root: "/", Listen: "127.0.0.1:9749"})
//	…
//	err = a.Run(ctx)
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
	"github.com/cyclestack/cyclestack/model"
)

// Options say what to export, and where to.
type Options struct {
	Root      string         // of the host's files: "/", or where a container has them
	Choice    resolve.Choice // processor and method
	Kernel    measure.Kernel // that counts
	Source    measure.Source // what counts
	Version   string         // of the program
	Log       *slog.Logger
	Listen    string // address of the HTTP server; "" for none
	WebConfig string // file with certificates and users, as Prometheus's exporters have it; "" for none

	Settings
	Config string   // a file with settings, which is read anew on reload; "" for none
	Labels []string // that all series have: NAME=VALUE
	Replay string   // a recording that is played in place of counters; "" for none
	Once   bool     // of the recording: do not begin again at its end
}

// Settings are the options that a file may have, and that are read anew on reload.
type Settings struct {
	Interval time.Duration // of one window
	Budget   float64       // share of all processors' time that the agent may take
	Levels   int           // deepest level of the tree that is counted
	// CgroupLevels is the deepest level that is counted by cgroup, with a PMU.
	CgroupLevels int
	Containers   int // how many containers have series of their own; 0 for no scope container
	MaxSeries    int
	Kubelet      string // URL or file with the list of pods
	Token        string // file with the kubelet's token
	OTLP         string // URL that metrics are pushed to
	Profiles     string // URL of a Pyroscope that profiles are pushed to
	Sockets      bool   // the host's accounts by socket
}

// Usual are the settings that hold if nobody says otherwise.
var Usual = Settings{Interval: 10 * time.Second, Budget: 0.001, Levels: 2, CgroupLevels: 1, MaxSeries: 5000}

// Check refuses settings that mean nothing.
func (o *Settings) Check() error {
	switch {
	case o.Interval < 100*time.Millisecond || o.Interval > time.Hour:
		return fault.Optionf("interval", o.Interval.String(), "it is from 100ms to 1h")
	case !(o.Budget > 0) || o.Budget > 1:
		return fault.Optionf("budget", fmt.Sprint(o.Budget), "it is a share of the processors' time, such as 0.1%%")
	case o.Levels < 1 || o.Levels > 8:
		return fault.Optionf("level", fmt.Sprint(o.Levels), "it is from 1 to 8")
	case o.CgroupLevels < 1 || o.CgroupLevels > 3:
		return fault.Optionf("cgroup-level", fmt.Sprint(o.CgroupLevels), "it is from 1 to 3")
	case o.MaxSeries < 200 || o.MaxSeries > 1_000_000:
		return fault.Optionf("max-series", fmt.Sprint(o.MaxSeries), "it is from 200 to 1000000")
	case o.Containers < 0 || o.Containers > 100_000:
		return fault.Optionf("containers", fmt.Sprint(o.Containers), "it is from 0 to 100000")
	}
	return errors.Join(checkURL("otlp", o.OTLP), checkURL("profiles", o.Profiles))
}

// ownSeries is how many series are kept for the host and the agent itself.
const ownSeries = 160

// places returns how many workloads and containers have series of their own.
func (o *Settings) places() (workloads, containers int) {
	room := max(0, o.MaxSeries-ownSeries)/o.bundle() - 2 // the others' bundles
	if o.Containers == 0 {
		return max(0, room), 0
	}
	containers = min(o.Containers, room/2)
	return max(0, room-containers), max(0, containers)
}

// An Agent exports.
type Agent struct {
	o      Options
	s      *sink
	host   *host
	groups *cgroups // nil without cgroups
	names  namer
	cost   *cost
	web    *web

	work, single *table           // of cgroups; nil without
	places       map[string]place // by the paths of cgroups

	mu      sync.Mutex // guards what follows
	live    Settings
	fresh   bool          // names are to be read anew
	changed chan struct{} // closed when they change

	errs     map[string]*counter
	reloads  map[bool]*counter
	gauges   map[string]*counter
	endings  *counter
	droppedC *counter
}

// New finds out what can be exported.
func New(o Options) (*Agent, error) {
	first := o.Settings
	if o.Config != "" {
		var err error
		if first, err = readSettings(o.Config, first); err != nil {
			return nil, err
		}
	}
	if err := first.Check(); err != nil {
		return nil, err
	}
	if s := o.Source; s != measure.Auto && s != measure.PMU && s != measure.OS {
		return nil, fault.Optionf("source", string(s), "it is auto, pmu or os")
	}
	o.Kernel.Cache = nil // a plan that was kept has no model, and is made once in a life
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Agent{o: o, live: first, changed: make(chan struct{}), places: map[string]place{},
		errs: map[string]*counter{}, reloads: map[bool]*counter{}, gauges: map[string]*counter{}}
	r := newRegistry(first.MaxSeries, time.Now)
	var err error
	if r.fixed, err = fixedLabels(o.Labels); err != nil {
		return nil, err
	}
	a.s = newSink(r, processorName(&o), osVersion(&o))
	a.names = newNamer(o.Root, &first)
	a.self()
	a.host = newHost(a.s, o.Kernel.Root)
	if o.Replay == "" {
		a.openCgroups()
	}
	if o.Listen != "" {
		if a.web, err = newWeb(a, o.Listen, o.WebConfig); err != nil {
			return nil, err
		}
	}
	a.cost = newCost(a)
	return a, nil
}

// openCgroups begins to follow the cgroups. An agent without exports the host alone.
func (a *Agent) openCgroups() {
	r, err := cgroupfs.Open(a.o.Root + "/sys/fs/cgroup")
	if err != nil {
		a.o.Log.Warn("no accounts of cgroups", "reason", err)
		return
	}
	a.groups = newCgroups(r, true)
	a.s.pressures = a.groups.pressures
	workloads, containers := a.live.places()
	a.work = newTable(a.s, series.Workload, workloads)
	if containers > 0 {
		a.single = newTable(a.s, series.ByContainer, containers)
	}
}

// processorName returns the catalogue's name of this machine's processor.
func processorName(o *Options) string {
	cat, err := o.Choice.Catalogue()
	if err != nil {
		return resolve.GenericCPU
	}
	id := o.Choice.CPU
	if id == "" {
		id, _ = model.HostID(o.Kernel.Root)
	}
	cpu, err := cat.CPU(id)
	if err != nil {
		return resolve.GenericCPU
	}
	return cpu.Name
}

// osVersion returns the version of the operating system's method.
func osVersion(o *Options) string {
	cat, err := o.Choice.Catalogue()
	if err != nil {
		return ""
	}
	m, err := cat.Model(osModel, resolve.GenericCPU)
	if err != nil {
		return ""
	}
	return m.Version
}

// self makes the series about the agent.
func (a *Agent) self() {
	r := a.s.r
	r.get(r.family(series.BuildInfo, "1; the release of the agent", gauge), "release", a.o.Version, "goversion", runtime.Version()).set(1)
	help := map[string]string{
		series.Active: "series that are exported", series.Memory: "resident memory of the agent",
		series.Containers: "containers that are there", series.Budget: "share of the processors' time that the agent may take",
		series.CostRatio: "share of the processors' time that it took in the last minute",
	}
	for _, name := range slices.Sorted(maps.Keys(help)) {
		a.gauges[name] = r.get(r.family(name, help[name], gauge))
	}
	a.endings = r.get(r.family(series.Ended, "containers that have ended", count))
	a.droppedC = r.get(r.family(series.Dropped, "series that were not made, for lack of room; their sums are in those of other", count))
	for _, part := range []string{"host", "cgroups", "names", "pmu", "push", "web", "profiles"} {
		a.errs[part] = r.get(r.family(series.Errors, "what could not be read or sent, by part of the agent", count), "part", part)
	}
	for ok, result := range map[bool]string{true: "ok", false: "failed"} {
		a.reloads[ok] = r.get(r.family(series.Reloads, "times that the settings were read anew", count), series.Result, result)
	}
	a.gauges[series.Budget].set(a.live.Budget)
}

// failed counts an error, and logs it.
func (a *Agent) failed(part string, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	a.s.r.mu.Lock()
	a.errs[part].add(1)
	a.s.r.mu.Unlock()
	a.o.Log.Warn(part, "error", err)
}

// Address returns where the server listens; "" without one.
func (a *Agent) Address() string {
	if a.web == nil {
		return ""
	}
	return a.web.url()
}

// memoryLimit is what the garbage collector keeps the heap below, as long as that is
// possible.
const memoryLimit = 24 << 20

// Run exports until the context is done.
func (a *Agent) Run(ctx context.Context) error {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	start := func(run func(context.Context) error) {
		parts.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	if a.web != nil {
		start(a.web.run)
	}
	start(a.collect)
	start(a.pushMetrics)
	start(a.pushProfiles)
	if a.o.Replay != "" {
		start(a.replay)
	} else {
		start(a.rotate)
		start(a.burst)
	}
	parts.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// settings returns those that hold now, and a channel that is closed when they change.
func (a *Agent) settings() (Settings, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live, a.changed
}

// collect reads the operating system's account at each interval.
func (a *Agent) collect(ctx context.Context) error {
	a.tick(ctx)
	for {
		o, changed := a.settings()
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-time.After(a.cost.stretch(o.Interval)):
			a.tick(ctx)
		}
	}
}

// tick reads everything once.
func (a *Agent) tick(ctx context.Context) {
	now := time.Now()
	a.host.read(a.s)
	if a.groups != nil {
		if err := a.groups.scan(); err != nil {
			a.failed("cgroups", err)
		} else {
			a.name(ctx, now)
		}
	}
	a.cost.measure(now)
	r := a.s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.groups != nil {
		a.groups.report(a.work, a.single, now)
		a.publish()
		a.groups.order = a.groups.order[:0]
		a.endings.value = a.groups.ended
		a.gauges[series.Containers].set(float64(a.groups.alive))
	}
	a.droppedC.value = r.dropped
	a.gauges[series.Active].set(float64(r.active))
	a.gauges[series.Memory].set(resident())
}

// name reads the names of containers if some have none.
func (a *Agent) name(ctx context.Context, now time.Time) {
	a.mu.Lock()
	fresh, o := a.fresh, a.live
	a.fresh = false
	a.mu.Unlock()
	if fresh {
		a.names.kubelet, a.names.token = o.Kubelet, o.Token
	}
	if !fresh && (!a.groups.nameless || !a.names.due(now)) {
		return
	}
	a.failed("names", a.names.refresh(ctx, now))
	a.groups.rename(a.names.known)
}

// resident returns the memory of the process, 0 where it is not known.
func resident() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages float64
	if n, _ := fmt.Sscan(string(text), &size, &pages); n < 2 {
		return 0
	}
	return pages * float64(os.Getpagesize())
}
