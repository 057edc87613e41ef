package report

import (
	"github.com/cyclestack/cyclestack/model"
)

type jsonCatalogue struct {
	Schema string            `json:"schema"`
	CPUs   []*model.CPU      `json:"cpus"`
	Models []model.ModelInfo `json:"models"`
}

type jsonTrees struct {
	Schema string       `json:"schema"`
	CPUs   []*model.CPU `json:"cpus"`
	Models []jsonMethod `json:"models"`
}

type jsonMethod struct {
	model.ModelInfo
	About      string             `json:"about,omitempty"`
	Source     string             `json:"source,omitempty"`
	Unit       string             `json:"unit"`
	Of         string             `json:"of,omitempty"`
	Nodes      []jsonMethodNode   `json:"nodes"`
	Parameters []model.Parameter  `json:"parameters,omitempty"`
	Inputs     []model.Input      `json:"inputs,omitempty"`
	Relations  []model.Relation   `json:"relations,omitempty"`
	EventSets  []model.EventSet   `json:"event_sets,omitempty"`
	Issues     []jsonMethodIssues `json:"issues,omitempty"`
}

type jsonMethodNode struct {
	*model.Node
	Expected *jsonExpectations `json:"expected,omitempty"`
}

// jsonExpectations are the ranges that a node is expected in, by kind of program.
type jsonExpectations struct {
	Client jsonLowHigh `json:"client"`
	Server jsonLowHigh `json:"server"`
	HPC    jsonLowHigh `json:"hpc"`
	Source string      `json:"source"`
}

type jsonLowHigh struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// jsonMethodIssues is something that several nodes show.
type jsonMethodIssues struct {
	Name   string   `json:"name"`
	Lead   string   `json:"lead,omitempty"`
	Nodes  []string `json:"nodes"`
	Source string   `json:"source,omitempty"`
}

type jsonEventList struct {
	Schema string           `json:"schema"`
	CPU    string           `json:"cpu"`
	Events []jsonEventFacts `json:"events"`
}

type jsonEventFacts struct {
	Name        string   `json:"name"`
	Perf        string   `json:"perf"`
	Config      *uint64  `json:"config,omitempty"`
	Config1     uint64   `json:"config1,omitempty"`
	PMU         string   `json:"pmu,omitempty"`
	Aliases     []string `json:"aliases,omitempty"`
	Counters    string   `json:"counters,omitempty"`
	CountersSMT string   `json:"counters_smt,omitempty"`
	Unit        string   `json:"unit,omitempty"`
	SampleAfter uint64   `json:"sample_after,omitempty"`
	Flags       string   `json:"flags,omitempty"`
}

type jsonFindings struct {
	Schema   string          `json:"schema"`
	Findings []model.Finding `json:"findings"`
}

// methodsDocument is a list of methods in the form of modelsSchema.
func methodsDocument(d Methods, _ Options) any {
	return jsonCatalogue{modelsName, append([]*model.CPU{}, d.CPUs...), append([]model.ModelInfo{}, d.List...)}
}

// treesDocument is all that models say in the form of modelsSchema.
func treesDocument(d Trees, o Options) any {
	cpu, list, level := d.CPU, d.List, o.Level
	doc := jsonTrees{Schema: modelsName, CPUs: []*model.CPU{cpu}, Models: []jsonMethod{}}
	for _, m := range list {
		doc.Models = append(doc.Models, methodJSON(m, level))
	}
	return doc
}

// eventsDocument is a list of events in the form of eventsSchema.
func eventsDocument(d Events, _ Options) any {
	cpu, list := d.CPU, d.List
	doc := jsonEventList{Schema: "cyclestack.events/v1", CPU: cpu.Name, Events: []jsonEventFacts{}}
	for _, e := range list {
		facts := jsonEventFacts{Name: e.Name, Perf: model.Spell(cpu, e), PMU: e.PMU, Aliases: e.Aliases, Counters: e.Counters,
			CountersSMT: e.CountersSMT, Unit: e.Unit, SampleAfter: e.SampleAfter, Flags: e.Flags}
		if !e.NoCode {
			facts.Config, facts.Config1 = &e.Config, e.Config1
		}
		doc.Events = append(doc.Events, facts)
	}
	return doc
}

// findingsDocument is what is wrong with models in the form of lintSchema.
func findingsDocument(d Findings, _ Options) any {
	return jsonFindings{"cyclestack.lint/v1", append([]model.Finding{}, d.List...)}
}

const modelsName = "cyclestack.models/v1"

func methodJSON(m *model.Model, level int) jsonMethod {
	out := jsonMethod{ModelInfo: model.ModelInfo{Name: m.Name, Version: m.Version, Title: m.Title, CPUs: m.CPUs, File: m.File},
		About: m.About, Source: m.Source, Unit: m.Unit, Of: m.Of, Nodes: []jsonMethodNode{},
		Parameters: m.Parameters, Inputs: m.Inputs, Relations: m.Relations, EventSets: m.EventSets}
	for i := range m.Nodes {
		if level == 0 || m.Nodes[i].Level <= level {
			out.Nodes = append(out.Nodes, methodNodeJSON(&m.Nodes[i]))
		}
	}
	for _, issue := range m.Issues {
		s := jsonMethodIssues{Name: issue.Name, Source: issue.Source}
		if issue.Lead >= 0 {
			s.Lead = m.Nodes[issue.Lead].Path
		}
		for _, i := range issue.Nodes {
			s.Nodes = append(s.Nodes, m.Nodes[i].Path)
		}
		out.Issues = append(out.Issues, s)
	}
	return out
}

func methodNodeJSON(n *model.Node) jsonMethodNode {
	out := jsonMethodNode{Node: n}
	if e := n.Expected; e != nil {
		out.Expected = &jsonExpectations{jsonLowHigh(e.Ranges[model.Client]), jsonLowHigh(e.Ranges[model.Server]), jsonLowHigh(e.Ranges[model.HPC]), e.Source}
	}
	return out
}
