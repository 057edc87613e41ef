package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
	"github.com/cyclestack/cyclestack/model"
)

//go:embed metrics.toml
var metricsFile []byte

// A text is what the models say about a metric.
type text struct {
	Name      string
	Title     string
	About     string
	Causes    []string
	Try       []string
	Advice    []model.Advice
	Threshold string
	Negative  string
	Parent    string
	Group     string
	Formula   string // of a metric that the vendor's files do not have
	Unit      string // of the same

	used bool
}

// advice is what to try under a condition.

type texts map[string]*text

func readTexts() (texts, error) {
	var doc struct{ Metric []text }
	if err := gen.ParseTOML("metrics.toml", metricsFile, &doc); err != nil {
		return nil, err
	}
	all := texts{}
	for i := range doc.Metric {
		t := &doc.Metric[i]
		if all[t.Name] != nil || t.Title == "" || t.About == "" {
			return nil, fmt.Errorf("metrics.toml: %s: it is there twice, or lacks a title or an about", t.Name)
		}
		t.About = strings.TrimSpace(t.About)
		all[t.Name] = t
	}
	return all, nil
}

// of returns the text for a metric.
func (all texts) of(metric string) (*text, error) {
	t := all[metric]
	if t == nil {
		return nil, fmt.Errorf("metrics.toml says nothing about %s", metric)
	}
	t.used = true
	return t, nil
}

// own lists the metrics that the vendor's files do not have.
func (all texts) own() []*text {
	var list []*text
	for _, name := range keys(all) {
		if all[name].Formula != "" {
			list = append(list, all[name])
		}
	}
	return list
}

// unused returns an error if there are texts for metrics that no processor has.
func (all texts) unused() error {
	for _, name := range keys(all) {
		if !all[name].used {
			return fmt.Errorf("metrics.toml: no processor has %s", name)
		}
	}
	return nil
}
