package main

import (
	"fmt"
	"slices"
	"strings"
)

// What the Linux kernel wants on Intel's processors: codes for the fixed
// counters, its own generic names, and the top-down events of its sysfs.
// Facts from arch/x86/events/intel/core.c.

// A fixedEvent is what the kernel takes for an event that only a fixed counter
// counts. In the vendor's files such events have codes that differ by
// generation (00/01…07, 0, 0xa) and mean something else to the kernel.
type fixedEvent struct {
	counter string
	config  uint64
}

// fixedEvents: 0x100, 0x300 and 0x400 are pseudo codes of the kernel; the
// others are those of the same event on a general counter.
var fixedEvents = map[string]fixedEvent{
	"INST_RETIRED.ANY":            {"fixed0", 0xc0},
	"INST_RETIRED.PREC_DIST":      {"fixed0", 0x100},
	"CPU_CLK_UNHALTED.THREAD":     {"fixed1", 0x3c},
	"CPU_CLK_UNHALTED.CORE":       {"fixed1", 0x3c},
	"CPU_CLK_UNHALTED.THREAD_ANY": {"fixed1", 0x3c | anyThread},
	"CPU_CLK_UNHALTED.REF":        {"fixed2", 0x300},
	"CPU_CLK_UNHALTED.REF_TSC":    {"fixed2", 0x300},
	"TOPDOWN.SLOTS":               {"fixed3", 0x400},
	"TOPDOWN_BAD_SPECULATION.ALL": {"fixed4", 0x73},
	"TOPDOWN_FE_BOUND.ALL":        {"fixed5", 0x19c},
	"TOPDOWN_RETIRING.ALL":        {"fixed6", 0x2c2},
}

// kernelCodes gives the events of the fixed counters the kernel's codes.
func kernelCodes(p *processor) error {
	for _, e := range p.events {
		if !strings.HasPrefix(e.counters, "fixed") {
			continue
		}
		f, ok := fixedEvents[e.name]
		if !ok || f.counter != e.counters {
			return fmt.Errorf("%s on %s: no such fixed event is known", e.name, e.counters)
		}
		e.config = f.config
	}
	return nil
}

// genericEvents are the kernel's names and their codes on all of Intel's
// processors.
var genericEvents = []struct {
	names  []string
	config uint64
}{
	{[]string{"cycles", "cpu-cycles"}, 0x3c},
	{[]string{"instructions"}, 0xc0},
	{[]string{"ref-cycles"}, 0x300},
	{[]string{"branches", "branch-instructions"}, 0xc4},
	{[]string{"branch-misses"}, 0xc5},
	{[]string{"cache-references"}, 0x4f2e},
	{[]string{"cache-misses"}, 0x412e},
	{[]string{"bus-cycles"}, 0x13c},
}

// Codes of stalled-cycles-frontend and stalled-cycles-backend.
var (
	nehalemStalls     = [2]uint64{0x180010e, 0x1803fb1}
	sandyBridgeStalls = [2]uint64{0x180010e, 0x18001b1}
	ivyBridgeStalls   = [2]uint64{0x180010e, 0}
)

// A topdown is a set of events for top-down analysis that the kernel offers in
// /sys/bus/event_source/devices/*/events.
type topdown struct {
	events []topdownEvent
	// metrics says that the events are not counted but read from a register next
	// to the counter of slots. Slots must lead their group.
	metrics bool
}

type topdownEvent struct {
	config uint64
	name   string // the kernel's
	vendor string // Intel's, where the event files do not have it
}

// The kernel's topdown-total-slots and topdown-recovery-bubbles of the same
// processors are not here: perf multiplies their counts, so that a count under
// such a name is not one of the event.
var topdownSlots = topdown{events: []topdownEvent{
	{0x10e, "topdown-slots-issued", ""},
	{0x2c2, "topdown-slots-retired", ""},
	{0x19c, "topdown-fetch-bubbles", ""},
}}

var topdownGoldmont = topdown{events: []topdownEvent{
	{0x0e, "topdown-slots-issued", ""},
	{0xc2, "topdown-slots-retired", ""},
	{0x9c, "topdown-fetch-bubbles", ""},
	{0x2ca, "topdown-recovery-bubbles", ""},
}}

var topdownTremont = atomTopdown(0xc2, 0x673, 0x71, 0x74)
var topdownGracemont = atomTopdown(0xc2, 0x73, 0x71, 0x74)
var topdownCrestmont = atomTopdown(0x72, 0x73, 0x71, 0x74)
var topdownSkymont = atomTopdown(0x2c2, 0x73, 0x19c, 0x2a4)

func atomTopdown(retiring, badSpec, feBound, beBound uint64) topdown {
	return topdown{events: []topdownEvent{
		{retiring, "topdown-retiring", ""},
		{badSpec, "topdown-bad-spec", ""},
		{feBound, "topdown-fe-bound", ""},
		{beBound, "topdown-be-bound", ""},
	}}
}

var topdownMetrics8 = topdown{metrics: true, events: []topdownEvent{
	{0x400, "slots", "TOPDOWN.SLOTS"},
	{0x8000, "topdown-retiring", "PERF_METRICS.RETIRING"},
	{0x8100, "topdown-bad-spec", "PERF_METRICS.BAD_SPECULATION"},
	{0x8200, "topdown-fe-bound", "PERF_METRICS.FRONTEND_BOUND"},
	{0x8300, "topdown-be-bound", "PERF_METRICS.BACKEND_BOUND"},
	{0x8400, "topdown-heavy-ops", "PERF_METRICS.HEAVY_OPERATIONS"},
	{0x8500, "topdown-br-mispredict", "PERF_METRICS.BRANCH_MISPREDICTS"},
	{0x8600, "topdown-fetch-lat", "PERF_METRICS.FETCH_LATENCY"},
	{0x8700, "topdown-mem-bound", "PERF_METRICS.MEMORY_BOUND"},
}}

var topdownMetrics4 = topdown{metrics: true, events: topdownMetrics8.events[:5]}

// addIntelGenerics adds the kernel's names to the events that they mean, and
// the events that only the kernel has a name for.
func addIntelGenerics(pl *platform, p *processor) error {
	for _, g := range genericEvents {
		p.name(g.config, g.names...)
	}
	for i, name := range []string{"stalled-cycles-frontend", "stalled-cycles-backend"} {
		if code := pl.stalled[i]; code != 0 {
			p.name(code, name)
		}
	}
	if pl.memAux {
		p.name(0x8203, "mem-loads-aux")
	}
	for i, td := range pl.topdown.events {
		e := p.core(td.config)
		if e == nil && td.vendor != "" {
			// The kernel calls the eight the fixed counters 16 to 23.
			e = &event{name: td.vendor, config: td.config, counters: fmt.Sprintf("fixed%d", 16+i-1), flags: []string{"metric"}}
			p.events = append(p.events, e)
		}
		if e == nil {
			return fmt.Errorf("the kernel has %s as %s, the vendor has no such event", td.name, hex(td.config))
		}
		e.aliases = append(e.aliases, td.name)
	}
	return nil
}

// core returns the core PMU's event of an encoding without extra register.
func (p *processor) core(config uint64) *event {
	i := slices.IndexFunc(p.events, func(e *event) bool { return e.encoding() == encoding{config: config} })
	if i < 0 {
		return nil
	}
	return p.events[i]
}

// name gives names to an encoding: to the event that has it, or to a new one.
func (p *processor) name(config uint64, names ...string) {
	if e := p.core(config); e != nil {
		e.aliases = append(e.aliases, names...)
		return
	}
	counters, smt := p.generalCounters()
	p.events = append(p.events, &event{name: names[0], config: config, counters: counters, smt: smt, aliases: names[1:]})
}

// generalCounters returns the counters that the least limited event can use.
func (p *processor) generalCounters() (counters, smt string) {
	for _, e := range p.events {
		if !strings.HasPrefix(e.counters, "fixed") && len(e.counters) > len(counters) {
			counters, smt = e.counters, e.smt
		}
	}
	return counters, smt
}
