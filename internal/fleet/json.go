package fleet

import (
	"time"

	"github.com/cyclestack/cyclestack/internal/page"
)

// schemaName is that of all documents of the fleet.
const schemaName = "cyclestack.fleet/v1"

type document struct {
	Schema     string         `json:"schema"`
	Source     source         `json:"source"`
	Accounts   []docAccount   `json:"accounts,omitempty"`
	Combined   []docCombined  `json:"combined,omitempty"`
	Comparison *docComparison `json:"comparison,omitempty"`
	Notes      []string       `json:"notes,omitempty"`
}

type source struct {
	Store    string   `json:"store,omitempty"`
	By       string   `json:"by"`
	Scope    string   `json:"scope"`
	At       string   `json:"at"`
	Range    float64  `json:"range_s"`
	Where    []string `json:"where,omitempty"`
	Rules    bool     `json:"rules"`
	Windows  int      `json:"windows,omitempty"`
	Seen     int      `json:"hosts_seen"`
	Expected int      `json:"hosts_expected,omitempty"`
	Queries  []string `json:"queries"`
}

type docAccount struct {
	By       string       `json:"by"`
	CPU      string       `json:"cpu"`
	Model    string       `json:"model"`
	Version  string       `json:"model_version"`
	Method   string       `json:"method"`
	Unit     string       `json:"unit"`
	Hosts    int          `json:"hosts"`
	CPUs     *page.Number `json:"cpus"`
	Coverage *page.Number `json:"coverage"`
	Lost     *page.Number `json:"lost"`
	Saved    *page.Number `json:"saved"`
	Whole    *page.Number `json:"whole"`
	Path     []string     `json:"bottleneck"`
	Nodes    []docNode    `json:"nodes"`
}

type docNode struct {
	Path    string       `json:"path"`
	Name    string       `json:"name"`
	Level   int          `json:"level"`
	Value   *page.Number `json:"value"`
	Unit    string       `json:"unit"`
	Error   *page.Number `json:"error,omitempty"`
	Flagged bool         `json:"flagged,omitempty"`
	Doubt   string       `json:"doubt,omitempty"`
}

type docCombined struct {
	By    string       `json:"by,omitempty"`
	Over  []string     `json:"over"`
	CPUs  *page.Number `json:"cpus"`
	Lost  *page.Number `json:"lost"`
	Error *page.Number `json:"lost_error,omitempty"`
	Saved *page.Number `json:"saved"`
	Nodes []docNode    `json:"nodes"`
}

type docComparison struct {
	Old     string      `json:"old"`
	New     string      `json:"new"`
	Tests   int         `json:"tests"`
	Changes []docChange `json:"changes"`
}

type docChange struct {
	By      string       `json:"by"`
	Node    string       `json:"node"`
	Level   int          `json:"level"`
	CPUs    []string     `json:"cpus"`
	Old     *page.Number `json:"old"`
	New     *page.Number `json:"new"`
	Delta   *page.Number `json:"delta"`
	Error   *page.Number `json:"error,omitempty"`
	P       *page.Number `json:"p,omitempty"`
	Detects *page.Number `json:"detects,omitempty"`
	Hosts   [2]float64   `json:"hosts"`
	Verdict string       `json:"verdict,omitempty"`
}

// source is where an answer is from.
func (a *Answer) source(store string) source {
	s := source{Store: store, By: a.By, Scope: a.scope(), At: a.At.UTC().Format(time.RFC3339), Range: a.Range.Seconds(), Rules: a.Rules,
		Windows: a.Windows, Seen: a.Seen, Expected: a.Expected, Queries: a.Queries}
	for _, m := range a.Where {
		s.Where = append(s.Where, m.String())
	}
	return s
}

// document is the report as JSON.
func (r Report) document() document {
	d := document{Schema: schemaName, Source: r.Answer.source(r.Store.String()), Notes: r.notes(), Accounts: []docAccount{}}
	list, of := r.ranked()
	for _, a := range list {
		m := of[a].Model
		x := docAccount{By: a.By, CPU: a.processor(), Model: m.Name, Version: m.Version, Method: a.Method, Unit: a.Unit.Name, Hosts: a.Row.Hosts(), CPUs: page.Known(a.CPUs),
			Coverage: page.Known(a.Cover), Lost: page.Known(a.Lost), Saved: page.Known(a.Saved), Whole: page.Known(a.first()), Path: []string{}, Nodes: []docNode{}}
		for _, i := range a.Bottleneck {
			x.Path = append(x.Path, m.Nodes[i].Path)
		}
		for i := range m.Nodes {
			v := &a.Account.Nodes[i]
			n := docNode{Path: m.Nodes[i].Path, Name: m.Nodes[i].Name, Level: m.Nodes[i].Level, Value: page.Known(v.Value), Unit: m.Unit, Error: page.Known(v.Error), Flagged: v.Flagged}
			if v.Known() && !v.Reliable() {
				n.Doubt = v.Doubt.String()
			}
			x.Nodes = append(x.Nodes, n)
		}
		d.Accounts = append(d.Accounts, x)
	}
	for _, c := range append(r.Together, r.Total...) {
		x := docCombined{By: c.By, Over: c.Over, CPUs: page.Known(c.CPUs), Lost: page.Known(c.Lost), Error: page.Known(c.Error), Saved: page.Known(c.Saved), Nodes: []docNode{}}
		for _, n := range c.Nodes {
			x.Nodes = append(x.Nodes, docNode{Path: n.Name, Name: n.Name, Level: 1, Value: page.Known(n.Share), Unit: "CPU time", Error: page.Known(n.Error)})
		}
		d.Combined = append(d.Combined, x)
	}
	return d
}

// document is the comparison as JSON.
func (c *Comparison) document() document {
	d := document{Schema: schemaName, Source: c.New.source(""), Notes: append(c.Notes, c.loads()...)}
	x := &docComparison{Old: c.What[0], New: c.What[1], Tests: c.Tests, Changes: []docChange{}}
	for i := range c.Changes {
		h := &c.Changes[i]
		x.Changes = append(x.Changes, docChange{By: h.By, Node: h.Node, Level: h.Level, CPUs: h.CPUs, Old: page.Known(h.Old), New: page.Known(h.New), Delta: page.Known(h.Delta),
			Error: page.Known(h.Error), P: page.Known(h.P), Detects: page.Known(h.Seen), Hosts: h.Hosts, Verdict: h.verdict()})
	}
	d.Comparison = x
	return d
}
