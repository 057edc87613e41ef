package report

import (
	_ "embed" // for the schemas

	"github.com/cyclestack/cyclestack/model"
)

// The JSON Schemas of the documents that the json formats of [Methods] and [Trees],
// [Events] and [Findings] write.
var (
	//go:embed schema/models.v1.json
	modelsSchema []byte
	//go:embed schema/events.v1.json
	eventsSchema []byte
	//go:embed schema/lint.v1.json
	lintSchema []byte
)

type jsonCatalogue struct {
	Schema string           `json:"schema"`
	CPUs   []jsonProcessor  `json:"cpus"`
	Models []jsonMethodInfo `json:"models"`
}

type jsonTrees struct {
	Schema string          `json:"schema"`
	CPUs   []jsonProcessor `json:"cpus"`
	Models []jsonMethod    `json:"models"`
}

type jsonProcessor struct {
	Name     string             `json:"name"`
	Title    string             `json:"title"`
	Vendor   string             `json:"vendor"`
	IDs      []string           `json:"ids,omitempty"`
	Aliases  []string           `json:"aliases,omitempty"`
	CoreType string             `json:"core_type,omitempty"`
	PMUs     []string           `json:"pmus,omitempty"`
	Width    int                `json:"width,omitempty"`
	Threads  int                `json:"threads,omitempty"`
	Caches   string             `json:"caches,omitempty"`
	Model    string             `json:"model,omitempty"`
	Params   map[string]float64 `json:"params,omitempty"`
}

type jsonMethodInfo struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Title   string   `json:"title"`
	CPUs    []string `json:"cpus"`
	File    string   `json:"file"`
	Own     bool     `json:"own,omitempty"`
}

type jsonMethod struct {
	jsonMethodInfo
	About      string             `json:"about,omitempty"`
	Source     string             `json:"source,omitempty"`
	Unit       string             `json:"unit"`
	Of         string             `json:"of,omitempty"`
	Nodes      []jsonMethodNode   `json:"nodes"`
	Parameters []jsonParameter    `json:"parameters,omitempty"`
	Inputs     []jsonInput        `json:"inputs,omitempty"`
	Relations  []jsonRelation     `json:"relations,omitempty"`
	EventSets  []jsonEventSet     `json:"event_sets,omitempty"`
	Issues     []jsonMethodIssues `json:"issues,omitempty"`
}

type jsonMethodNode struct {
	Path       string   `json:"path"`
	Name       string   `json:"name"`
	Level      int      `json:"level"`
	Section    string   `json:"section,omitempty"`
	Formula    string   `json:"formula,omitempty"`
	Rest       bool     `json:"rest,omitempty"`
	Unit       string   `json:"unit,omitempty"`
	Domain     string   `json:"domain,omitempty"`
	Threshold  string   `json:"threshold,omitempty"`
	Standalone bool     `json:"standalone,omitempty"`
	Min        *float64 `json:"min,omitempty"`
	Max        *float64 `json:"max,omitempty"`
	Negative   string   `json:"negative,omitempty"`
	Overlap    bool     `json:"overlap,omitempty"`
	Optional   bool     `json:"optional,omitempty"`
	jsonNodeTexts
	Expected *jsonExpectations `json:"expected,omitempty"`
}

// jsonNodeTexts is what a method says of a node in words.
type jsonNodeTexts struct {
	Title  string       `json:"title,omitempty"`
	About  string       `json:"about,omitempty"`
	Causes []string     `json:"causes,omitempty"`
	Try    []string     `json:"try,omitempty"`
	Advice []jsonAdvice `json:"advice,omitempty"`
	Source string       `json:"source,omitempty"`
	Sample []string     `json:"sample,omitempty"`
}

// A jsonAdvice is what to try under a condition.
type jsonAdvice struct {
	Try  string `json:"try"`
	When string `json:"when"`
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

type jsonParameter struct {
	Name    string             `json:"name"`
	Value   *float64           `json:"value,omitempty"`
	Unit    string             `json:"unit,omitempty"`
	About   string             `json:"about,omitempty"`
	Source  string             `json:"source,omitempty"`
	Choices map[string]float64 `json:"choices,omitempty"`
	Min     *float64           `json:"min,omitempty"`
	Max     *float64           `json:"max,omitempty"`
}

type jsonInput struct {
	Name   string   `json:"name"`
	Events []string `json:"events"`
	LP     *int     `json:"lp,omitempty"`
	Any    bool     `json:"any,omitempty"`
	About  string   `json:"about,omitempty"`
}

type jsonRelation struct {
	Name      string   `json:"name"`
	Left      string   `json:"left"`
	Op        string   `json:"op"`
	Right     string   `json:"right"`
	Tolerance float64  `json:"tolerance"`
	Identity  bool     `json:"identity"`
	When      string   `json:"when,omitempty"`
	Slack     string   `json:"slack,omitempty"`
	Holds     string   `json:"holds,omitempty"`
	Fails     string   `json:"fails,omitempty"`
	Source    string   `json:"source,omitempty"`
	Each      []string `json:"each,omitempty"`
}

type jsonEventSet struct {
	Name   string         `json:"name"`
	About  string         `json:"about,omitempty"`
	Runs   int            `json:"runs,omitempty"`
	Events []jsonSetEvent `json:"events"`
}

type jsonSetEvent struct {
	Event       string `json:"event"`
	SampleAfter uint64 `json:"sample_after,omitempty"`
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
	list, cpus := d.List, d.CPUs
	doc := jsonCatalogue{Schema: modelsName, CPUs: []jsonProcessor{}, Models: []jsonMethodInfo{}}
	for _, c := range cpus {
		doc.CPUs = append(doc.CPUs, processorJSON(c))
	}
	for _, m := range list {
		doc.Models = append(doc.Models, jsonMethodInfo(m))
	}
	return doc
}

// treesDocument is all that models say in the form of modelsSchema.
func treesDocument(d Trees, o Options) any {
	cpu, list, level := d.CPU, d.List, o.Level
	doc := jsonTrees{Schema: modelsName, CPUs: []jsonProcessor{processorJSON(cpu)}, Models: []jsonMethod{}}
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

func processorJSON(c *model.CPU) jsonProcessor {
	return jsonProcessor{Name: c.Name, Title: c.Title, Vendor: c.Vendor, IDs: c.IDs, Aliases: c.Aliases, CoreType: c.CoreType, PMUs: c.PMUs,
		Width: c.Width, Threads: c.Threads, Caches: c.Caches, Model: c.Model, Params: c.Params}
}

func methodJSON(m *model.Model, level int) jsonMethod {
	out := jsonMethod{jsonMethodInfo: jsonMethodInfo{Name: m.Name, Version: m.Version, Title: m.Title, CPUs: m.CPUs, File: m.File},
		About: m.About, Source: m.Source, Unit: m.Unit, Of: m.Of, Nodes: []jsonMethodNode{}}
	for i := range m.Nodes {
		if level == 0 || m.Nodes[i].Level <= level {
			out.Nodes = append(out.Nodes, methodNodeJSON(&m.Nodes[i]))
		}
	}
	for _, p := range m.Parameters {
		out.Parameters = append(out.Parameters, jsonParameter{p.Name, p.Value, p.Unit, p.About, p.Source, p.Choices, p.Min, p.Max})
	}
	for _, in := range m.Inputs {
		out.Inputs = append(out.Inputs, jsonInput{in.Name, in.Events, in.LP, in.Any, in.About})
	}
	for i := range m.Relations {
		out.Relations = append(out.Relations, relationJSON(&m.Relations[i]))
	}
	for _, s := range m.EventSets {
		set := jsonEventSet{Name: s.Name, About: s.About, Runs: s.Runs}
		for _, e := range s.Events {
			set.Events = append(set.Events, jsonSetEvent(e))
		}
		out.EventSets = append(out.EventSets, set)
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
	out := jsonMethodNode{Path: n.Path, Name: n.Name, Level: n.Level, Section: n.Section, Formula: n.Formula, Rest: n.Rest, Unit: n.Unit,
		Domain: n.Domain, Threshold: n.Threshold, Standalone: n.Standalone, Min: n.Min, Max: n.Max, Negative: n.Negative,
		Overlap: n.Overlap, Optional: n.Optional,
		jsonNodeTexts: jsonNodeTexts{Title: n.Title, About: n.About, Causes: n.Causes, Try: n.Try, Source: n.Source, Sample: n.Sample}}
	for _, a := range n.Advice {
		out.Advice = append(out.Advice, jsonAdvice{a.Try, a.When})
	}
	if e := n.Expected; e != nil {
		out.Expected = &jsonExpectations{jsonLowHigh(e.Ranges[model.Client]), jsonLowHigh(e.Ranges[model.Server]), jsonLowHigh(e.Ranges[model.HPC]), e.Source}
	}
	return out
}

func relationJSON(r *model.Relation) jsonRelation {
	out := jsonRelation{Name: r.Name, Left: r.Left, Op: r.Op, Right: r.Right, Tolerance: r.Tolerance, Identity: r.Identity, When: r.When,
		Slack: r.Slack, Holds: r.Holds, Fails: r.Fails, Source: r.Source, Each: r.Each}
	if out.Op == "" {
		out.Op = "="
	}
	return out
}
