package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A fixedEvent is what the kernel takes for an event that only a fixed counter counts. The
// vendor's codes of such events differ by generation (00/01…07, 0, 0xa), and mean something
// else to the kernel.
type fixedEvent struct {
	counter string
	config  uint64
}

// fixedEvents are facts from arch/x86/events/intel/core.c: 0x100, 0x300 and 0x400 are pseudo codes of the kernel; the
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

// Names is a line of names.csv: the kernel's names for an encoding.
type names struct {
	processors []string // all if empty
	config     uint64
	names      []string
	otherwise  string // what is done where no event has the encoding
}

func readNames(vendor string) (all []names, err error) {
	return all, eachRow("names.csv", "processors,config,names,otherwise", vendor, func(r []string) error {
		config, err := strconv.ParseUint(r[1], 0, 64)
		all = append(all, names{strings.Fields(r[0]), config, strings.Fields(r[2]), r[3]})
		return err
	})
}

// apply gives the names to a processor's event, or to a new one.
func (n *names) apply(p *processor) error {
	if len(n.processors) > 0 && !slices.Contains(n.processors, p.key) {
		return nil
	}
	e := p.core(n.config)
	added := strings.Fields(n.otherwise)
	switch {
	case e != nil:
		e.aliases = append(e.aliases, n.names...)
	case n.otherwise == "":
		counters, smt := p.generalCounters()
		p.events = append(p.events, &event{name: n.names[0], config: n.config, counters: counters, smt: smt, aliases: n.names[1:]})
	case len(added) == 3:
		p.events = append(p.events, &event{name: added[0], config: n.config, counters: added[1], flags: added[2:], aliases: n.names})
	case n.otherwise != "skip":
		return fmt.Errorf("the kernel has %s as %s, the vendor has no such event", n.names[0], hex(n.config))
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

// generalCounters returns the counters that the least limited event can use.
func (p *processor) generalCounters() (counters, smt string) {
	for _, e := range p.events {
		if !strings.HasPrefix(e.counters, "fixed") && len(e.counters) > len(counters) {
			counters, smt = e.counters, e.smt
		}
	}
	return counters, smt
}
