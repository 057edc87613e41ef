package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// A power is one of IBM's processors.
type power struct {
	key, linux, libpfm string
	generic            []generic
}

// The kernel's names, from arch/powerpc/perf/power{8,9,10}-pmu.c, and the other
// codes of the run state's instructions and cycles: counters 5 and 6 count nothing
// else, and counters 4 and 2 can count them too. POWER11 has the events of POWER10.
var powers = []power{
	{"POWER8", "power8", "power8", []generic{
		{0x1e, []string{"cycles", "cpu-cycles"}},
		{0x2, []string{"instructions"}},
		{0x10068, []string{"branches", "branch-instructions"}},
		{0x400f6, []string{"branch-misses"}},
		{0x100ee, []string{"cache-references"}},
		{0x3e054, []string{"cache-misses"}},
		{0x100f8, []string{"stalled-cycles-frontend"}},
		{0x4000a, []string{"stalled-cycles-backend"}},
		{0x500fa, []string{"r400fa"}},
		{0x600f4, []string{"r200f4"}},
	}},
	{"POWER9", "power9", "power9", []generic{
		{0x1e, []string{"cycles", "cpu-cycles"}},
		{0x2, []string{"instructions"}},
		{0x4d05e, []string{"branches", "branch-instructions"}},
		{0x400f6, []string{"branch-misses"}},
		{0x100fc, []string{"cache-references"}},
		{0x2c04e, []string{"cache-misses"}},
		{0x100f8, []string{"stalled-cycles-frontend"}},
		{0x1e054, []string{"stalled-cycles-backend"}},
		{0x400fa, []string{"r500fa"}},
		{0x200f4, []string{"r600f4"}},
	}},
	{"POWER10", "power10", "power10", []generic{
		{0x600f4, []string{"cycles", "cpu-cycles", "r200f4"}},
		{0x500fa, []string{"instructions", "r400fa"}},
		{0x2f04a, []string{"branches", "branch-instructions"}},
		{0x3e098, []string{"branch-misses"}},
		{0x100fc, []string{"cache-references"}},
		{0x400f0, []string{"cache-misses"}},
	}},
}

// powerVariants are names of libpfm4 for what the table has under a better one:
// the same event on a given counter, and codes that are reserved.
var powerVariants = regexp.MustCompile(`_ALT\d*$|^PM_SPACEHOLDER_`)

// readPower reads the events of POWER8 to POWER10: names and codes of Linux's
// lists, and after them the events that only libpfm4 has.
func readPower(vendor string, c *corrections) (*table, error) {
	t := &table{comment: []string{
		"Core events of IBM's POWER8, POWER9 and POWER10 processors.",
		"",
		"Made by internal/gen/events; corrections belong there, not here. The format is",
		"described in docs/format/event-tables.md.",
		"",
		"Names are IBM's. Codes are those of Linux " + linuxVersion + " (POWER8: of libpfm4, which agrees),",
		"as perf's raw events take them. Bits 16 to 19 of a code are the counter that can",
		"count it, 1 to 6; 0 leaves the choice to the kernel. Counters 5 and 6 count",
		"instructions and cycles only.",
	}}
	for _, pw := range powers {
		p, err := pw.read(vendor)
		if err != nil {
			return nil, err
		}
		if err := c.apply(p); err != nil {
			return nil, err
		}
		if err := c.merge(p); err != nil {
			return nil, err
		}
		for _, g := range pw.generic {
			p.name(g.config, g.names...)
		}
		for _, e := range p.events {
			e.unit = unitOf(powerUnits, e.name)
			if pmc := e.config >> 16 & 0xf; pmc != 0 {
				e.counters = strconv.FormatUint(pmc, 10)
			}
		}
		t.processors = append(t.processors, p)
	}
	return t, nil
}

func (pw *power) read(vendor string) (*processor, error) {
	list, err := readLinux(filepath.Join(linuxDir(vendor), "powerpc", pw.linux), nil)
	if err != nil {
		return nil, err
	}
	p := &processor{key: pw.key}
	for _, l := range list {
		if l.Unit != "" {
			continue
		}
		config, err := linuxNumber(l.EventCode)
		if err != nil || config == 0 && l.EventName != "PM_SUSPENDED" {
			return nil, fmt.Errorf("%s: %s: code %q", pw.linux, l.EventName, l.EventCode)
		}
		p.events = append(p.events, &event{name: l.EventName, config: config})
	}
	more, err := readLibpfm(vendor, pw.libpfm)
	if err != nil {
		return nil, err
	}
	for _, e := range more {
		if p.find(e.name) == nil && p.core(e.config) == nil && !powerVariants.MatchString(e.name) {
			p.events = append(p.events, e)
		}
	}
	return p, nil
}
