package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
)

// An addition is a node of additions.toml, which no metric file has for the
// processor.
type addition struct {
	Models    []string // stems
	Name      string
	Parent    string
	Level     int
	Domain    string // as CountDomain
	Formula   string // in the spelling of the models
	Threshold string // likewise, with what its ancestors' say
	Sample    []string
	Source    string
	Optional  bool
	Reason    string
}

func parseAdditions(data []byte) ([]*addition, error) {
	var f struct{ Node []*addition }
	if err := gen.ParseTOML("additions.toml", data, &f); err != nil {
		return nil, err
	}
	for _, a := range f.Node {
		if len(a.Models) == 0 || a.Name == "" || a.Formula == "" || a.Source == "" || a.Reason == "" {
			return nil, fmt.Errorf("additions.toml: %q: it needs models, a formula, its source and a reason", a.Name)
		}
		if err := knownStems(a.Models); err != nil {
			return nil, fmt.Errorf("additions.toml: %s: %w", a.Name, err)
		}
	}
	return f.Node, nil
}

// added returns the metrics of a file with those that are added to it.
func (g *generator) added(stem string, metrics []*vendorMetric) []*vendorMetric {
	for _, a := range g.additions {
		if slices.Contains(a.Models, stem) {
			metrics = append(metrics, &vendorMetric{
				MetricName: a.Name, Level: a.Level, ParentCategory: a.Parent, CountDomain: a.Domain,
				LocateWith: strings.Join(a.Sample, ";"), addition: a,
			})
		}
	}
	return metrics
}
