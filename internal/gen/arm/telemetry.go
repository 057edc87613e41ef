package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"
)

// A spec has what is needed here of a telemetry file about a processor.
type spec struct {
	files   []string
	sha     string // of the vendor's sources
	date    string // of the file, 2006-01-02
	slots   int    // in a cycle
	events  map[string]json.RawMessage
	metrics map[string]metricSpec
	groups  map[string]groupSpec
	first   []string // groups of the first stage: those of the tree
	tree    decisionTree
}

type metricSpec struct {
	Title        string
	Formula      string
	Description  string
	Units        string
	Events       []string
	SampleEvents []string `json:"sample_events"`
}

type groupSpec struct {
	Title       string
	Description string
	Metrics     []string
}

type decisionTree struct {
	RootNodes []string `json:"root_nodes"`
	Metrics   []struct {
		Name         string
		Group        string
		NextItems    []string `json:"next_items"`
		SampleEvents []string `json:"sample_events"`
	}
}

// readRevisions reads the files of a processor's revisions, which must be the
// same in everything that matters here.
func readRevisions(dir string, p *processor) (*spec, error) {
	var first *spec
	for _, name := range p.Files {
		path := filepath.Join(dir, "pmu", "cpu", filepath.FromSlash(name)+".json")
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s, err := parseSpec(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if first == nil {
			first = s
		} else if diff := first.differs(s); diff != "" {
			return nil, fmt.Errorf("%s: %s differ from those of %s: it needs a model of its own", name, diff, p.Files[0])
		}
		first.files = append(first.files, name+".json")
	}
	return first, nil
}

// differs says in what two revisions differ, "" if in nothing.
func (s *spec) differs(o *spec) string {
	switch {
	case s.slots != o.slots:
		return "slots"
	case !reflect.DeepEqual(s.tree, o.tree):
		return "decision trees"
	case !slices.Equal(keys(s.metrics), keys(o.metrics)):
		return "metrics"
	}
	for name, m := range s.metrics {
		if other := o.metrics[name]; m.Formula != other.Formula || m.Units != other.Units {
			return "formulas of " + name
		}
	}
	return ""
}

func parseSpec(data []byte) (*spec, error) {
	var doc struct {
		Document struct {
			SHA1      string
			Timestamp string
			License   string
		}
		Product struct {
			Slots int `json:"num_slots"`
		} `json:"product_configuration"`
		Events  map[string]json.RawMessage
		Metrics map[string]metricSpec
		Groups  struct {
			Metrics map[string]groupSpec
		}
		Methodologies struct {
			Topdown struct {
				Grouping struct {
					First []string `json:"stage_1"`
				} `json:"metric_grouping"`
				Tree decisionTree `json:"decision_tree"`
			} `json:"topdown_methodology"`
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if doc.Document.License != "Apache-2.0" {
		return nil, fmt.Errorf("its licence is %q", doc.Document.License)
	}
	t, err := time.Parse("02 Jan 15:04:05 2006", doc.Document.Timestamp)
	if err != nil {
		return nil, err
	}
	s := &spec{
		sha: doc.Document.SHA1, date: t.Format("2006-01-02"), slots: doc.Product.Slots,
		events: doc.Events, metrics: doc.Metrics, groups: doc.Groups.Metrics,
		first: doc.Methodologies.Topdown.Grouping.First, tree: doc.Methodologies.Topdown.Tree,
	}
	if len(s.metrics) == 0 || len(s.tree.RootNodes) == 0 {
		return nil, fmt.Errorf("no metrics, or no decision tree")
	}
	return s, nil
}

// groupsOf returns the groups that a metric is in, sorted by name.
func (s *spec) groupsOf(metric string) []string {
	var in []string
	for name, g := range s.groups {
		if slices.Contains(g.Metrics, metric) {
			in = append(in, name)
		}
	}
	slices.Sort(in)
	return in
}

// parents returns the parent of each metric below the roots of the decision tree:
// the last metric on the shortest path to it. If the tree continues with a group
// of the first stage, its metrics are the children.
func (s *spec) parents() map[string]string {
	next := map[string][]string{}
	for _, m := range s.tree.Metrics {
		for _, item := range m.NextItems {
			switch {
			case s.metrics[item].Formula != "":
				next[m.Name] = append(next[m.Name], item)
			case slices.Contains(s.first, item):
				next[m.Name] = append(next[m.Name], s.groups[item].Metrics...)
			}
		}
	}
	parents := map[string]string{}
	for queue := slices.Clone(s.tree.RootNodes); len(queue) > 0; queue = queue[1:] {
		for _, child := range next[queue[0]] {
			if _, seen := parents[child]; seen || slices.Contains(s.tree.RootNodes, child) {
				continue
			}
			parents[child] = queue[0]
			queue = append(queue, child)
		}
	}
	return parents
}
