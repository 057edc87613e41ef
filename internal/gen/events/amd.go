package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A zen is a generation of AMD's processors.
type zen struct {
	key, linux, libpfm string
	generic            []generic
}

// A generic is a name of the kernel's for one code.
type generic struct {
	config uint64
	names  []string
}

// The kernel's names, from arch/x86/events/amd/core.c.
var (
	zenGenerics = []generic{
		{0x76, []string{"cycles", "cpu-cycles"}},
		{0xc0, []string{"instructions"}},
		{0xff60, []string{"cache-references"}},
		{0x964, []string{"cache-misses"}},
		{0xc2, []string{"branches", "branch-instructions"}},
		{0xc3, []string{"branch-misses"}},
	}
	zen1Generics = append(zenGenerics[:len(zenGenerics):len(zenGenerics)],
		generic{0x287, []string{"stalled-cycles-frontend"}}, generic{0x187, []string{"stalled-cycles-backend"}})
	zen2Generics = append(zenGenerics[:len(zenGenerics):len(zenGenerics)],
		generic{0xa9, []string{"stalled-cycles-frontend"}})
	zen4Generics = append(zen2Generics[:len(zen2Generics):len(zen2Generics)],
		generic{0x100000120, []string{"ref-cycles"}})
)

var zens = []zen{
	{"zen1", "amdzen1", "amd64_fam17h_zen1", zen1Generics},
	{"zen2", "amdzen2", "amd64_fam17h_zen2", zen2Generics},
	{"zen3", "amdzen3", "amd64_fam19h_zen3", zen2Generics},
	{"zen4", "amdzen4", "amd64_fam19h_zen4", zen4Generics},
	{"zen5", "amdzen5", "amd64_fam1ah_zen5", zen4Generics},
	{"zen6", "amdzen6", "", zen4Generics},
}

// readAMD reads the core events of the Zen processors: names and codes of
// Linux's lists (the mnemonics of AMD's processor programming references in
// lower case), and after them the events that only libpfm4 has.
func readAMD(vendor string, c *corrections) (*table, error) {
	t := &table{comment: []string{
		"Core events of AMD's processors since Zen.",
		"",
		"Made by internal/gen/events; corrections belong there, not here. The format is",
		"described in docs/format/event-tables.md.",
		"",
		"Names are the mnemonics of AMD's processor programming references as Linux",
		"spells them; those in capitals are events that only libpfm4 lists, by its names.",
		"Codes are those of Linux " + linuxVersion + "; nearly all of libpfm4's are among them. Event codes",
		"have twelve bits: the low eight are bits 0 to 7 of config, the others bits 32 to",
		"35. Every event can use any of the six counters, but for the floating-point",
		"operations (code 0x3): they can count more than fifteen per cycle and therefore",
		"take an even counter and the next one, which the flag \"pair\" says.",
	}}
	for _, z := range zens {
		p, err := z.read(vendor)
		if err != nil {
			return nil, err
		}
		if err := c.apply(p); err != nil {
			return nil, err
		}
		if err := c.merge(p); err != nil {
			return nil, err
		}
		for _, g := range z.generic {
			p.name(g.config, g.names...)
		}
		for _, e := range p.events {
			e.unit = lowerUnit(amdUnits, e.name)
			if e.config&0xf000000ff == 0x3 {
				e.counters = "0,2,4"
				e.addFlag("pair")
			}
		}
		t.processors = append(t.processors, p)
	}
	return t, nil
}

func (z *zen) read(vendor string) (*processor, error) {
	list, err := readLinux(filepath.Join(linuxDir(vendor), "x86", z.linux), nil)
	if err != nil {
		return nil, err
	}
	p := &processor{key: z.key}
	for _, l := range list {
		if l.Unit != "" {
			continue
		}
		config, err := zenConfig(l)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", z.linux, l.EventName, err)
		}
		p.events = append(p.events, &event{name: l.EventName, config: config, deprecated: l.Deprecated == "1"})
	}
	if z.libpfm == "" {
		return p, nil
	}
	more, err := readLibpfm(vendor, z.libpfm)
	if err != nil {
		return nil, err
	}
	for _, e := range more {
		// ANY is a sum of the others, NONE the empty selection.
		if p.core(e.config) == nil && !strings.HasSuffix(e.name, ":ANY") && !strings.HasSuffix(e.name, "_NONE") {
			p.events = append(p.events, e)
		}
	}
	return p, nil
}

// zenConfig is the value of config for an event of the lists.
func zenConfig(l linuxEvent) (uint64, error) {
	if l.CounterMask != "" || l.Invert != "" || l.EdgeDetect != "" || l.MSRIndex != "" || l.ConfigCode != "" {
		return 0, fmt.Errorf("has more than a code and a unit mask")
	}
	code, err := linuxNumber(l.EventCode)
	if err != nil {
		return 0, err
	}
	umask, err := linuxNumber(l.UMask)
	if err != nil {
		return 0, err
	}
	if code > 0xfff || umask > 0xff {
		return 0, fmt.Errorf("code %s or unit mask %s out of range", hex(code), hex(umask))
	}
	return code&0xff | umask<<8 | code>>8<<32, nil
}
