package main

import (
	"fmt"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
)

// A metricFile is one of Intel's metric files.
type metricFile struct {
	Header struct {
		TmaVersion string
	}
	Metrics []*vendorMetric
}

// A vendorMetric is one entry of a metric file. Fields that say nothing the models
// need (texts, groups, resolution levels) are left out.
type vendorMetric struct {
	MetricName     string
	LegacyName     string // "metric_TMA_....DRAM_Bound(%)": how thresholds call it
	Level          int
	ParentCategory string
	UnitOfMeasure  string
	Events         []alias
	Constants      []alias
	Formula        string // over aliases, with every other metric written out
	BaseFormula    string // over events and "tma_" names of other metrics
	Category       string // "TMA" for those of top-down analysis
	CountDomain    string // what it is a share of: "Slots", "Clocks", …
	Threshold      struct{ BaseFormula string }
	LocateWith     string // events to sample, separated by semicolons

	addition *addition // set if additions.toml has it, and not the file
}

// An alias is an event or a constant with the name that Formula has for it.
type alias struct{ Name, Alias string }

// isTree reports whether a metric is a node of the main tree.
func (m *vendorMetric) isTree() bool { return !m.isBottleneck() && !m.isInfo() }

func (m *vendorMetric) isBottleneck() bool { return strings.HasPrefix(m.MetricName, "Bottleneck_") }

func (m *vendorMetric) isInfo() bool { return strings.HasPrefix(m.MetricName, "Info_") }

// readMetrics reads the top-down metrics of a metric file.
func readMetrics(name string) (*metricFile, error) {
	var f metricFile
	if err := gen.ReadJSON(name, &f); err != nil {
		return nil, err
	}
	var tma []*vendorMetric
	for _, m := range f.Metrics {
		if m.Category == "TMA" {
			tma = append(tma, m)
		}
	}
	f.Metrics = tma
	if len(tma) == 0 || f.Header.TmaVersion == "" {
		return nil, fmt.Errorf("%s: it has no top-down metrics", name)
	}
	return &f, nil
}

// readEventNames reads the names of a core event file: by name in upper case,
// as the vendor spells them.
func readEventNames(name string) (map[string]string, error) {
	var f struct {
		Events []struct{ EventName string }
	}
	if err := gen.ReadJSON(name, &f); err != nil {
		return nil, err
	}
	names := make(map[string]string, len(f.Events))
	for _, e := range f.Events {
		names[strings.ToUpper(e.EventName)] = e.EventName
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: it has no events", name)
	}
	return names, nil
}

// Latencies are the mean retire latencies of events, in cycles.
type latencies struct {
	means  map[string]float64
	source string
}

// readLatencies reads the vendor's file of retire latencies.
func readLatencies(name string) (latencies, error) {
	var f struct {
		Data map[string]struct{ MEAN *float64 }
	}
	if err := gen.ReadJSON(name, &f); err != nil {
		return latencies{}, err
	}
	l := latencies{means: make(map[string]float64, len(f.Data)), source: "Intel's retire latencies for this processor, the mean"}
	for event, v := range f.Data {
		if v.MEAN == nil {
			return latencies{}, fmt.Errorf("%s: %s has no mean", name, event)
		}
		l.means[event] = *v.MEAN
	}
	return l, nil
}
