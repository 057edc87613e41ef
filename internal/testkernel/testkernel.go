// Package testkernel has machines with counters for tests on machines that have none.
package testkernel

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A Kernel is a machine with a PMU for tests on machines that have none.
type Kernel struct {
	Root   fstest.MapFS
	Probe  perfevent.Probe
	Refuse func(perfevent.Spec) error    // what Start fails with; nil for nothing
	Value  func(perfevent.Event) float64 // what an event counts
	Lacks  func(perfevent.Event) bool    // what the kernel does not open
	Idle   bool                          // what is counted does not run
	Cache  string                        // the user's cache directory; "" for none
	Lives  func(perfevent.Observer)      // starts a command that is watched, and ends with it; nil for none
	Under  fs.FS                         // what the root does not have; nil for nothing
	Left   int                           // how many tables a run has; one if it is 0
	Specs  []perfevent.Spec              // that were started
}

// Kernel returns the kernel for package measure.
func (k *Kernel) Kernel() measure.Kernel {
	var cache func() (string, error)
	if k.Cache != "" {
		cache = func() (string, error) { return k.Cache, nil }
	}
	var root fs.FS = k.Root
	if k.Under != nil {
		root = overlay{k.Root, k.Under}
	}
	return measure.Kernel{
		Cache: cache,
		Root:  root,
		Probe: func(*perfevent.System, fs.FS) *perfevent.Probe { return &k.Probe },
		Limit: func(*perfevent.System, fs.FS) *perfevent.Probe { return &k.Probe },
		Start: func(_ context.Context, sys *perfevent.System, spec perfevent.Spec) (measure.Counters, error) {
			k.Specs = append(k.Specs, spec)
			if k.Refuse != nil {
				if err := k.Refuse(spec); err != nil {
					return nil, err
				}
			}
			return &run{k: k, sys: sys, spec: spec, left: max(1, k.Left)}, nil
		},
	}
}

// An overlay is a file system over another one.
type overlay struct{ over, under fs.FS }

func (o overlay) Open(name string) (fs.File, error) {
	f, err := o.over.Open(name)
	if err != nil {
		return o.under.Open(name)
	}
	return f, nil
}

// A run counts what its kernel says, at once.
type run struct {
	k     *Kernel
	sys   *perfevent.System
	spec  perfevent.Spec
	table *counts.Table
	seen  *counts.Table // with what the observer saw
	left  int
	now   float64
}

func (r *run) Next() bool {
	if r.left == 0 {
		return false
	}
	r.left--
	seconds := 1.0
	if r.k.Lives != nil && r.spec.Observer != nil {
		begin := time.Now()
		r.k.Lives(r.spec.Observer)
		seconds = time.Since(begin).Seconds()
	}
	if r.k.Left > 0 {
		seconds = r.spec.Interval.Seconds()
	}
	if r.table == nil {
		r.table = counts.NewTable(r.layout())
	}
	t := r.table
	t.Reset(t.Layout)
	t.Start, t.Duration, t.Interval = r.now, seconds, r.spec.Interval > 0
	r.now += seconds
	for i := range t.Scopes {
		row := t.Row(i)
		k := 0
		for _, group := range r.spec.Groups {
			for _, e := range group {
				row[k] = r.cell(e, len(r.spec.Groups))
				k++
			}
		}
		for _, e := range r.spec.Always {
			row[k] = r.cell(e, 1)
			k++
		}
	}
	if r.seen = t; r.spec.Observer != nil && r.k.Under != nil {
		r.seen = r.spec.Observer.Join(t)
	}
	return true
}

func (r *run) cell(e perfevent.Event, turns int) counts.Cell {
	if r.k.Idle {
		return counts.Cell{State: counts.NotCounted}
	}
	if r.k.Lacks != nil && r.k.Lacks(e) {
		return counts.Cell{State: counts.NotSupported}
	}
	return counts.Cell{State: counts.Counted, Value: r.k.Value(e), Enabled: 1e9, Running: 1e9 / float64(turns)}
}

func (r *run) layout() *counts.Layout {
	l := &counts.Layout{}
	for g, group := range r.spec.Groups {
		for _, e := range group {
			l.Columns = append(l.Columns, counts.Column{Event: e.Name, Group: g + 1, Named: e.Named})
		}
	}
	for _, e := range r.spec.Always {
		l.Columns = append(l.Columns, counts.Column{Event: e.Name, Named: e.Named})
	}
	if !r.spec.Keep.Has(counts.CPU) && !r.spec.Keep.Has(counts.Core) && !r.spec.Keep.Has(counts.Socket) {
		l.Scopes = []counts.Scope{counts.RunScope("")}
		return l
	}
	topology, err := r.sys.Topology()
	if err != nil {
		panic(err)
	}
	for _, cpu := range topology {
		if only := r.spec.Target.CPUs; only != nil && !slices.Contains(only, cpu.ID) {
			continue
		}
		s := counts.RunScope(fmt.Sprintf("CPU%d", cpu.ID))
		s.Kind, s.CPU, s.Core, s.Die, s.Socket = counts.CPU, cpu.ID, cpu.Core, cpu.Die, cpu.Socket
		l.Scopes = append(l.Scopes, s)
	}
	return l
}

func (r *run) Table() *counts.Table    { return r.seen }
func (r *run) Err() error              { return nil }
func (r *run) Kind() string            { return "perf-event" }
func (r *run) Stop()                   {}
func (r *run) Signal(os.Signal) error  { return nil }
func (r *run) State() *os.ProcessState { return nil }
func (r *run) Close() error            { return nil }

// intelFormat is the format of the event codes of Intel's core PMU.
var intelFormat = map[string]string{"event": "config:0-7", "umask": "config:8-15", "edge": "config:18", "any": "config:21",
	"inv": "config:23", "cmask": "config:24-31", "offcore_rsp": "config1:0-63", "ldlat": "config1:0-15", "frontend": "config1:0-23"}

// Intel is a machine of one socket with Intel's PMUs of the names given,
// and so many CPUs; those n and n + cpus/2 share a core if threads is 2.
func Intel(model int, cpus, threads int, pmus map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	put := func(name, text string) { root[name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	put("proc/cpuinfo", fmt.Sprintf("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: %d\nstepping\t: 4", model))
	put("sys/devices/system/cpu/online", fmt.Sprintf("0-%d", cpus-1))
	for i := range cpus {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", i)
		put(dir+"core_id", fmt.Sprint(i%(cpus/threads)))
		put(dir+"die_id", "0")
		put(dir+"physical_package_id", "0")
	}
	kind := 4
	for _, name := range slices.Sorted(maps.Keys(pmus)) {
		dir := "sys/bus/event_source/devices/" + name + "/"
		put(dir+"type", fmt.Sprint(kind))
		kind += 4
		if list := pmus[name]; list != "" {
			put(dir+"cpus", list)
		}
		for term, bits := range intelFormat {
			put(dir+"format/"+term, bits)
		}
	}
	put("sys/bus/event_source/devices/software/type", "1")
	put("sys/bus/event_source/devices/msr/type", "20")
	put("sys/bus/event_source/devices/msr/format/event", "config:0-63")
	put("sys/bus/event_source/devices/msr/events/tsc", "event=0x00")
	return root
}

// Skylake is a Skylake server of four logical processors.
func Skylake(threads int) *Kernel {
	const model = 85
	return &Kernel{
		Root:  Intel(model, 4, threads, map[string]string{"cpu": ""}),
		Probe: perfevent.Probe{Supported: true, Counters: 8 / threads, SMT: threads == 2, CapPerfmon: true, Paranoid: 2},
		Value: BackEndBound,
	}
}

// BackEndBound returns the counts of a program that waits for memory.
func BackEndBound(e perfevent.Event) float64 {
	name, _, _ := strings.Cut(e.Name, " on ")
	name = strings.TrimSuffix(strings.TrimSuffix(name, ":u"), ":k")
	switch name {
	case "CPU_CLK_UNHALTED.THREAD", "CPU_CLK_UNHALTED.THREAD_ANY", "CPU_CLK_UNHALTED.CORE", "cycles":
		return 1e9
	case "UOPS_ISSUED.ANY", "UOPS_RETIRED.RETIRE_SLOTS", "TOPDOWN_RETIRING.ALL":
		return 1e9
	case "INST_RETIRED.ANY", "instructions":
		return 0.9e9
	case "IDQ_UOPS_NOT_DELIVERED.CORE":
		return 0.2e9
	case "CYCLE_ACTIVITY.STALLS_MEM_ANY", "CYCLE_ACTIVITY.STALLS_TOTAL":
		return 0.7e9
	case "CYCLE_ACTIVITY.STALLS_L1D_MISS":
		return 0.65e9
	case "CYCLE_ACTIVITY.STALLS_L2_MISS":
		return 0.6e9
	case "CYCLE_ACTIVITY.STALLS_L3_MISS":
		return 0.55e9
	}
	return 1e6
}
