package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
)

// linuxVersion is the kernel whose event lists are read.
const linuxVersion = "7.3"

func linuxDir(vendor string) string {
	return filepath.Join(vendor, "reference-only", "linux-pmu-events", linuxVersion)
}

// A linuxEvent is an entry of Linux's event lists, tools/perf/pmu-events/arch.
// Only names and codes are read.
type linuxEvent map[string]string

// linuxKeys are the keys that are read.
var linuxKeys = []string{
	"EventName", "EventCode", "ConfigCode", "UMask", "CounterMask", "Invert", "EdgeDetect", "AnyThread",
	"MSRIndex", "MSRValue", "Unit", "Deprecated", "ArchStdEvent",
}

// linuxIgnored are the keys of the lists that do not matter here: descriptions
// (also misspelt ones), and keys of metrics and of events outside the core.
var linuxIgnored = []string{
	"BriefDescription", "PublicDescription", "BriefDescript6ion", "PublicDescrition", "PEBS", "Errata", "Data_LA",
	"L1_Hit_Indication", "PerPkg", "Experimental", "ScaleUnit", "MetricExpr", "MetricName", "MetricGroup", "MetricThreshold",
	"MetricConstraint", "MetricgroupNoGroup", "DefaultMetricgroupName", "DefaultShowEvents", "Compat", "AggregationMode",
	"EnAllCores", "EnAllSlices", "SliceId", "ThreadMask", "RdWrMask", "FCMask", "PortMask", "Filter", "ELLC", "TakenAlone",
	"RetirementLatencyMax", "RetirementLatencyMean", "RetirementLatencyMin", "SampleAfterValue", "CollectPEBSRecord",
	"Offcore", "UMaskExt", "Speculative", "PDISTCounter", "Counter", "CounterHTOff",
}

// readLinux reads all lists of a folder of a processor: its events, without
// metrics and without what other units than the core count. Entries that refer
// to the common list of the architecture get their name and code from it.
func readLinux(dir string, common map[string]linuxEvent) ([]linuxEvent, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no event lists", dir)
	}
	var events []linuxEvent
	for _, f := range files {
		switch filepath.Base(f) {
		case "counter.json", "metrics.json", "metricgroups.json":
			continue
		}
		list, err := readLinuxFile(f)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if name := e["ArchStdEvent"]; name != "" {
				std, ok := common[name]
				if !ok {
					return nil, fmt.Errorf("%s: no event %s in the architecture's list", f, name)
				}
				e["EventName"], e["EventCode"] = std["EventName"], std["EventCode"]
			}
			if e["EventName"] != "" {
				events = append(events, e)
			}
		}
	}
	return events, nil
}

// readLinuxFile reads one list.
func readLinuxFile(file string) ([]linuxEvent, error) {
	var raw []map[string]any
	if err := gen.ReadJSON(file, &raw); err != nil {
		return nil, err
	}
	var events []linuxEvent
	for _, fields := range raw {
		e := linuxEvent{}
		for key, value := range fields {
			s, isString := value.(string)
			switch {
			case isString && slices.Contains(linuxKeys, key):
				e[key] = s
			case !slices.Contains(linuxIgnored, key):
				return nil, fmt.Errorf("%s: %v: unknown key %s", file, fields["EventName"], key)
			}
		}
		events = append(events, e)
	}
	return events, nil
}

// linuxNumber reads a number of an event list; absent is 0.
func linuxNumber(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.ParseUint(strings.ToLower(s), 0, 64)
}
