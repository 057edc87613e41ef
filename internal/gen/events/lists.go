package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// libpfmVariants are names of libpfm4 for what the tables have under a better one, or
// need not have: on AMD, sums of an event's other unit masks and the empty selection;
// on POWER, the same event on a given counter, and reserved codes.
var libpfmVariants = regexp.MustCompile(`:ANY$|_NONE$|_ALT\d*$|^PM_SPACEHOLDER_`)

// readLists reads the processors of an architecture that Linux and libpfm4 have: names
// and codes of Linux's lists, and after them the events that only libpfm4 has.
func readLists(dir, arch string, t *table, config func(linuxEvent) (uint64, error)) error {
	for _, s := range t.sources {
		list, err := readLinux(filepath.Join(linuxDir(dir), arch, s.files[0]), nil)
		if err != nil {
			return err
		}
		p := &processor{key: s.key}
		for _, l := range list {
			if l["Unit"] != "" {
				continue
			}
			code, err := config(l)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", s.files[0], l["EventName"], err)
			}
			p.events = append(p.events, &event{name: l["EventName"], config: code, deprecated: l["Deprecated"] == "1"})
		}
		t.processors = append(t.processors, p)
		if s.libpfm == "" {
			continue
		}
		more, err := readLibpfm(dir, s.libpfm)
		if err != nil {
			return err
		}
		for _, e := range more {
			if p.find(e.name) == nil && p.core(e.config) == nil && !libpfmVariants.MatchString(e.name) {
				p.events = append(p.events, e)
			}
		}
	}
	return nil
}

// readAMD reads the core events of the Zen processors.
func readAMD(dir string, t *table) error { return readLists(dir, "x86", t, zenConfig) }

func finishAMD(e *event, units []unitRule) {
	e.unit = unitOf(units, strings.ToLower(e.name))
	if e.config&0xf000000ff == 0x3 {
		e.counters = "0,2,4"
		e.addFlag("pair")
	}
}

// zenConfig is the value of config for an event of the lists.
func zenConfig(l linuxEvent) (uint64, error) {
	if l["CounterMask"] != "" || l["Invert"] != "" || l["EdgeDetect"] != "" || l["MSRIndex"] != "" || l["ConfigCode"] != "" {
		return 0, fmt.Errorf("has more than a code and a unit mask")
	}
	code, err := linuxNumber(l["EventCode"])
	if err != nil {
		return 0, err
	}
	umask, err := linuxNumber(l["UMask"])
	if err != nil {
		return 0, err
	}
	if code > 0xfff || umask > 0xff {
		return 0, fmt.Errorf("code %s or unit mask %s out of range", hex(code), hex(umask))
	}
	return code&0xff | umask<<8 | code>>8<<32, nil
}

// readPower reads the events of POWER8 to POWER10.
func readPower(dir string, t *table) error {
	return readLists(dir, "powerpc", t, func(l linuxEvent) (uint64, error) {
		config, err := linuxNumber(l["EventCode"])
		if err == nil && config == 0 && l["EventName"] != "PM_SUSPENDED" {
			err = fmt.Errorf("code %q", l["EventCode"])
		}
		return config, err
	})
}

func finishPower(e *event, units []unitRule) {
	e.unit = unitOf(units, e.name)
	if pmc := e.config >> 16 & 0xf; pmc != 0 {
		e.counters = strconv.FormatUint(pmc, 10)
	}
}
