package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
)

// A fix is a table of fixes.toml: what is wrong in a metric file, or does not fit the models,
// and what is put in its place.
type fix struct {
	Models  []string // stems; empty for all that have the metric
	Metric  string
	Metrics []string // instead of Metric: several that are mended in the same way
	Field   string   // one of fixFields
	From    string   // what the file has: if that changes, the fix must be looked at again
	To      string
	Input   string // of "either": the name and explanation of the input
	About   string
	Reason  string

	// Unchecked fixes change the value on purpose: it is not held against the
	// vendor's expanded formula, nor are the values computed from it.
	Unchecked bool

	used map[[2]string]bool // by stem and metric
}

// fixFields are what a fix can change. "part" replaces a part of BaseFormula, "formula" all
// of it, by one in the spelling of the models; so does "threshold". "optional" takes
// uncounted events of a pattern for none, and "either" takes another event in place of an
// uncounted one. "about" is a text of the node's own. "drop" leaves the metric out.
var fixFields = []string{"parent", "part", "formula", "threshold", "optional", "either", "about", "drop"}

type fixes []*fix

func parseFixes(data []byte) (fixes, error) {
	var f struct{ Fix fixes }
	if err := gen.ParseTOML("fixes.toml", data, &f); err != nil {
		return nil, err
	}
	for _, x := range f.Fix {
		if x.Metric != "" {
			x.Metrics = append(x.Metrics, x.Metric)
		}
		if len(x.Metrics) == 0 || x.Reason == "" || !slices.Contains(fixFields, x.Field) {
			return nil, fmt.Errorf("fixes.toml: a fix of %q: it needs a metric, a reason and one of the fields %q", x.Metrics, fixFields)
		}
		if x.Field == "either" && (x.Input == "" || x.About == "") {
			return nil, fmt.Errorf("fixes.toml: a fix of %q: the input needs a name and an about", x.Metrics)
		}
		x.used = map[[2]string]bool{}
	}
	return f.Fix, nil
}

// find returns the fixes of a metric's field and marks them as used.
func (all fixes) find(stem, metric, field string) fixes {
	var found fixes
	for _, x := range all {
		if slices.Contains(x.Metrics, metric) && x.Field == field && (len(x.Models) == 0 || slices.Contains(x.Models, stem)) {
			x.used[[2]string{stem, metric}] = true
			found = append(found, x)
		}
	}
	return found
}

// unchecked reports whether a metric's value differs from the vendor's on
// purpose.
func (all fixes) unchecked(stem, metric string) bool {
	return slices.ContainsFunc(all, func(x *fix) bool { return x.Unchecked && x.used[[2]string{stem, metric}] })
}

// unused returns an error if a fix mends nothing.
func (all fixes) unused() error {
	var errs []error
	for _, x := range all {
		if len(x.used) == 0 {
			errs = append(errs, fmt.Errorf("fixes.toml: there is no %s to mend any more", strings.Join(x.Metrics, ", ")))
		}
		for _, stem := range x.Models {
			for _, metric := range x.Metrics {
				if !x.used[[2]string{stem, metric}] {
					errs = append(errs, fmt.Errorf("fixes.toml: %s: there is nothing to mend in %s any more", metric, stem))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// replace applies the fixes of a field that holds one value.
func (all fixes) replace(stem, metric, field, value string) (string, error) {
	for _, x := range all.find(stem, metric, field) {
		if x.From != value {
			return "", fmt.Errorf("%s: %s is %q, and not %q as fixes.toml expects", metric, field, value, x.From)
		}
		value = x.To
	}
	return value, nil
}

// An info is what info.csv says about an informational metric.
type info struct {
	section string
	unit    string // "" for a share
	percent bool   // the vendor multiplies it by 100
	order   int    // of the section
}

func (g *generator) readInfos() error {
	sections := map[string]int{}
	return eachRow("info.csv", "name,section,unit", func(r []string) error {
		if _, ok := sections[r[1]]; !ok {
			sections[r[1]] = len(sections)
		}
		i := info{section: r[1], unit: r[2], percent: r[2] == "percent", order: sections[r[1]]}
		if i.percent || r[2] == "share" {
			i.unit = ""
		}
		if _, ok := g.infos[r[0]]; ok {
			return fmt.Errorf("%s is there twice", r[0])
		}
		g.infos[r[0]] = i
		return nil
	})
}

// spellings are what is counted for an event that a formula cannot name, by
// model and event.
type spellings map[[2]string][]string

func (g *generator) readSpellings() error {
	return eachRow("inputs.csv", "models,event,perf", func(r []string) error {
		for _, stem := range strings.Fields(r[0]) {
			key := [2]string{stem, strings.ToUpper(r[1])}
			if g.spelled[key] != nil {
				return fmt.Errorf("%s of %s is there twice", r[1], stem)
			}
			g.spelled[key] = strings.Fields(r[2])
		}
		return nil
	})
}

func (g *generator) readLatencies() error {
	return eachRow("latency.csv", "model,event,mean", func(r []string) error {
		if g.latency[r[0]].means == nil {
			g.latency[r[0]] = latencies{means: map[string]float64{}, source: "the mean of measurements of the project pmu-tools; measure your own"}
		}
		mean, err := strconv.ParseFloat(r[2], 64)
		g.latency[r[0]].means[r[1]] = mean
		return err
	})
}

func (g *generator) readThresholds() error {
	return eachRow("thresholds.csv", "name,above", func(r []string) error {
		g.atom[r[0]] = r[0] + " > " + r[1]
		return nil
	})
}
