package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// readLibpfm reads what libpfm4 prints for one PMU: a line for each event with
// each unit mask,
//
//	PMU::EVENT:UMASK <tab> type=4 config=0x102 config1=0x0 config2=0x0 precise=0 <tab> …
//
// It returns the events in the file's order.
func readLibpfm(vendor, pmu string) ([]*event, error) {
	file := filepath.Join(vendor, "reference-only", "libpfm-dump", pmu+".tsv")
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var events []*event
	sc := bufio.NewScanner(f)
	for line := 1; sc.Scan(); line++ {
		if strings.HasPrefix(sc.Text(), "#") || strings.Contains(sc.Text(), "\tERR\t") { // an event that needs a unit mask
			continue
		}
		e, err := parseLibpfm(sc.Text())
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		events = append(events, e)
	}
	return events, sc.Err()
}

// parseLibpfm decodes one line.
func parseLibpfm(line string) (*event, error) {
	fields := strings.Split(line, "\t")
	if len(fields) < 2 {
		return nil, fmt.Errorf("%d fields, want at least 2", len(fields))
	}
	_, name, ok := strings.Cut(fields[0], "::")
	if !ok {
		return nil, fmt.Errorf("%q has no PMU", fields[0])
	}
	e := &event{name: name}
	for _, attr := range strings.Fields(fields[1]) {
		key, value, _ := strings.Cut(attr, "=")
		v, err := strconv.ParseUint(value, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		switch key {
		case "config":
			e.config = v
		case "config1":
			e.config1 = v
		case "type", "config2", "precise":
		default:
			return nil, fmt.Errorf("%s: unknown attribute %s", name, key)
		}
	}
	return e, nil
}
