package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/model"
)

// A Head is what JSON documents begin with.
type Head struct {
	Schema string     `json:"schema"`
	CPU    jsonCPU    `json:"cpu"`
	Model  jsonModel  `json:"model"`
	Source jsonSource `json:"source"`

	Workload string `json:"workload,omitempty"`
}

type jsonCPU struct {
	ID     string `json:"id,omitempty"`
	Name   string `json:"name"`
	Vendor string `json:"vendor"`
}

type jsonModel struct {
	Name    string             `json:"name"`
	Version string             `json:"version"`
	Params  map[string]float64 `json:"params,omitempty"`
	// Penalties are the parameters that were measured.
	Penalties *account.Measured `json:"penalties,omitempty"`
}

type jsonSource struct {
	Kind     string   `json:"kind"`
	Measured bool     `json:"measured"`
	How      string   `json:"how,omitempty"`
	Files    []string `json:"files,omitempty"`
}

// Head returns what a document of a schema says of where its figures are from.
func (h Header) Head(schema string) Head {
	return Head{
		Schema:   schema,
		CPU:      jsonCPU{ID: h.CPUID, Name: h.CPU.Name, Vendor: h.CPU.Vendor},
		Model:    jsonModel{Name: h.Model.Name, Version: h.Model.Version, Params: h.Params, Penalties: h.Measured},
		Source:   jsonSource{Kind: h.Kind, Measured: !h.From.Simulated, How: h.How, Files: h.Files},
		Workload: string(h.Workload),
	}
}

type jsonAccount struct {
	Scope      jsonScope     `json:"scope"`
	Nodes      []jsonNode    `json:"nodes"`
	Bottleneck []string      `json:"bottleneck"`
	Rivals     []jsonRival   `json:"ambiguous,omitempty"`
	Branching  *jsonBranches `json:"branching,omitempty"`
	Try        []string      `json:"try,omitempty"`
	Next       []Step        `json:"next,omitempty"`
	Audit      []jsonCheck   `json:"audit"`
	Missing    []jsonMissing `json:"missing"`
	Counts     []jsonCount   `json:"counts"`
	Unused     []string      `json:"unused,omitempty"`
	Unknown    []string      `json:"unknown,omitempty"`
	Other      []string      `json:"other_cores,omitempty"`
	Notes      []string      `json:"notes,omitempty"`
	Times      *jsonTimes    `json:"times,omitempty"`
	Hotspots   *jsonHotspots `json:"hotspots,omitempty"`
	Also       []jsonFurther `json:"also,omitempty"`
	Rates      []jsonRate    `json:"rates,omitempty"`
	Events     []jsonRate    `json:"events,omitempty"`
}

// A jsonTimes is what the threads did with their time, in the scope of an account.
type jsonTimes struct {
	Model      jsonModel     `json:"model"`
	Nodes      []jsonNode    `json:"nodes"`
	Bottleneck []string      `json:"bottleneck"`
	Missing    []jsonMissing `json:"missing"`
	Notes      []string      `json:"notes,omitempty"`
}

// A jsonRival is a node that the bottleneck path could as well go through.
type jsonRival struct {
	Path   string       `json:"path"`
	Of     string       `json:"of"`
	Margin *page.Number `json:"margin"`
}

// jsonBranches is what decides the program's way.
type jsonBranches struct {
	Dominance      string       `json:"dominance"`
	Instructions   *page.Number `json:"instructions"`
	Branches       *page.Number `json:"branches"`
	Mispredictions *page.Number `json:"mispredictions"`
	BlockLength    *page.Number `json:"instructions_per_branch,omitempty"`
	Trips          *page.Number `json:"branches_per_misprediction,omitempty"`
}

type jsonExpected struct {
	Low      page.Number `json:"low"`
	High     page.Number `json:"high"`
	Standing string      `json:"standing,omitempty"`
}

type jsonScope struct {
	Kind     string       `json:"kind"`
	Label    string       `json:"label,omitempty"`
	Start    *page.Number `json:"start_s,omitempty"`
	Duration *page.Number `json:"duration_s,omitempty"`
	jsonCPUs
	jsonTask
	jsonCode
	jsonShare
	Runs int `json:"runs,omitempty"`
}

// jsonCPUs is where in the machine a scope is.
type jsonCPUs struct {
	CPU    *int `json:"cpu,omitempty"`
	CPUs   int  `json:"cpus,omitempty"`
	Core   *int `json:"core,omitempty"`
	Die    *int `json:"die,omitempty"`
	Socket *int `json:"socket,omitempty"`
	Node   *int `json:"node,omitempty"`
}

// jsonTask is the thread, process or cgroup of a scope.
type jsonTask struct {
	PID     *int   `json:"pid,omitempty"`
	TID     *int   `json:"tid,omitempty"`
	Process string `json:"process,omitempty"`
	Thread  string `json:"thread,omitempty"`
	Comm    string `json:"comm,omitempty"`
	Cgroup  string `json:"cgroup,omitempty"`
}

// jsonCaller is the line of the user's that calls a place most often.
type jsonCaller struct {
	File  string      `json:"file"`
	Line  int         `json:"line"`
	Share page.Number `json:"share"`
}

// callerOf is that of a place; nil if it is not known.
func callerOf(c *counts.Code, share float64) *jsonCaller {
	if c == nil {
		return nil
	}
	return &jsonCaller{c.File, c.Line, page.Number(share)}
}

// jsonCode is the place in the code of a scope.
type jsonCode struct {
	Module   string `json:"module,omitempty"`
	BuildID  string `json:"build_id,omitempty"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Addr     string `json:"addr,omitempty"`

	Caller *jsonCaller `json:"caller,omitempty"`
}

// jsonShare is a scope's share of the whole.
type jsonShare struct {
	Of      string       `json:"share_of,omitempty"`
	Share   *page.Number `json:"share,omitempty"`
	Error   *page.Number `json:"share_error,omitempty"`
	Samples int64        `json:"share_samples,omitempty"`
	Hotspot bool         `json:"hotspot,omitempty"`
	Self    *page.Number `json:"self,omitempty"`
}

type jsonNode struct {
	Path     string       `json:"path"`
	Name     string       `json:"name"`
	Level    int          `json:"level"`
	Section  string       `json:"section,omitempty"`
	Value    *page.Number `json:"value"`
	Unit     string       `json:"unit"`
	Error    *page.Number `json:"error,omitempty"`
	NoError  string       `json:"error_reason,omitempty"`
	Bound    *page.Number `json:"error_bound,omitempty"`
	Coverage *page.Number `json:"coverage,omitempty"`
	Together bool         `json:"together"`
	Reliable bool         `json:"reliable"`
	Doubt    string       `json:"doubt,omitempty"`
	Flagged  bool         `json:"flagged"`
	Assumed  []string     `json:"assumed,omitempty"`

	Includes []string      `json:"includes,omitempty"`
	Expected *jsonExpected `json:"expected,omitempty"`
	Linked   []string      `json:"linked,omitempty"`
	Skids    []string      `json:"skids,omitempty"`
}

type jsonCheck struct {
	Name      string       `json:"name"`
	Op        string       `json:"op"`
	Left      *page.Number `json:"left,omitempty"`
	Right     *page.Number `json:"right,omitempty"`
	Residual  *page.Number `json:"residual,omitempty"`
	Tolerance page.Number  `json:"tolerance"`
	State     string       `json:"state"`
	OK        bool         `json:"ok"`
	Identity  bool         `json:"identity,omitempty"`
	Text      string       `json:"text,omitempty"`
	Why       string       `json:"why,omitempty"`

	Kind   string      `json:"kind,omitempty"`
	Events []string    `json:"events,omitempty"`
	For    int         `json:"for,omitempty"`
	Error  page.Number `json:"error,omitempty"`
	Slack  string      `json:"slack,omitempty"`
	Source string      `json:"source,omitempty"`
}

type jsonMissing struct {
	Node string `json:"node"`
	Why  string `json:"why"`
}

type jsonCount struct {
	Event    string       `json:"event"`
	As       string       `json:"as,omitempty"`
	LP       *int         `json:"lp,omitempty"`
	Value    *page.Number `json:"value"`
	Unit     string       `json:"unit,omitempty"`
	Coverage *page.Number `json:"coverage,omitempty"`
	State    string       `json:"state,omitempty"`
	Samples  int64        `json:"samples"`
}

// jsonWriter writes one document, account by account.
type jsonWriter struct {
	w     io.Writer
	o     Options
	shown []bool
	first bool
	buf   bytes.Buffer

	h     Header
	parts *parts // nil if accounts are not of parts
}

func (j *jsonWriter) Begin(h Header) error {
	j.shown, j.h, j.parts = j.o.shown(h.Model), h, partsOf(h)
	head, err := json.Marshal(h.Head("cyclestack.account/v1"))
	if err != nil {
		return err
	}
	// The document is left open for the accounts.
	head = append(head[:len(head)-1], ",\n\"accounts\":[\n"...)
	_, err = j.w.Write(head)
	return err
}

// Account writes an account's line whole: who reads the lines as they come needs no
// other one to know that it has ended. The comma is in front of the next.
func (j *jsonWriter) Account(a *account.Account) error {
	j.buf.Reset()
	if !j.first {
		j.buf.WriteByte(',')
	}
	j.first = false
	e := json.NewEncoder(&j.buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(j.account(a)); err != nil {
		return err
	}
	_, err := j.w.Write(j.buf.Bytes())
	return err
}

func (j *jsonWriter) End() error {
	_, err := io.WriteString(j.w, "]}\n")
	return err
}

func (j *jsonWriter) account(a *account.Account) jsonAccount {
	m := a.Model()
	list := a.Counts()
	out := jsonAccount{Scope: scope(a, list, j.parts), Nodes: []jsonNode{}, Bottleneck: []string{}, Audit: []jsonCheck{},
		Missing: []jsonMissing{}, Counts: []jsonCount{}, Unused: a.Binding.Unused, Unknown: a.Binding.Unknown, Other: a.Binding.Other, Notes: j.o.Texts(a.Notes)}
	for _, c := range list {
		out.Counts = append(out.Counts, count(c))
	}
	if p := j.parts; p != nil && p.Flat != "" {
		if a.Scope.Kind == counts.Run {
			out.Notes = append(out.Notes, p.Flat)
		}
		return out
	}
	out.Nodes, out.Missing = j.nodes(a, j.shown)
	out.Times, out.Hotspots = j.times(a.Times), hotspots(a.Hotspots)
	named, rest := leftOver(a)
	out.Also, out.Rates, out.Events = j.also(a), rates(rest), rates(named)
	for _, note := range []counts.Note{j.h.Unknown, j.h.Assumed} {
		if note.Text != "" {
			out.Notes = append(out.Notes, "processor: "+j.o.note(note))
		}
	}
	out.Bottleneck = append(out.Bottleneck, paths(m, a.Bottleneck)...)
	for _, r := range a.Rivals {
		out.Rivals = append(out.Rivals, jsonRival{m.Nodes[r.Node].Path, m.Nodes[r.Of].Path, page.Known(r.Margin)})
	}
	out.Branching, out.Next = branching(a), j.o.steps(j.h, a)
	if last := len(a.Bottleneck) - 1; last >= 0 && len(out.Next) > 0 {
		out.Try = a.Advice(a.Bottleneck[last])
	}
	for i := range a.Checks {
		c := &a.Checks[i]
		if j.o.Checks || c.State == account.Fails && (!c.Common || c.Contradicts()) {
			out.Audit = append(out.Audit, checkInFull(c, j.o.note(a.WhySkipped(i))))
		} else if !c.Common {
			out.Audit = append(out.Audit, check(c, j.o.note(a.WhySkipped(i))))
		}
	}
	return out
}

// nodes are the nodes that are shown, and those of them that are not known.
func (j *jsonWriter) nodes(a *account.Account, shown []bool) (nodes []jsonNode, missing []jsonMissing) {
	m := a.Model()
	nodes, missing = []jsonNode{}, []jsonMissing{}
	for i := range m.Nodes {
		if !shown[i] {
			continue
		}
		n, v := &m.Nodes[i], &a.Nodes[i]
		why, bound := a.NoError(i)
		nodes = append(nodes, jsonNode{Path: n.Path, Name: n.Name, Level: n.Level, Section: n.Section,
			Value: page.Known(v.Value), Unit: page.Unit(m, i), Error: page.Known(v.Error), NoError: why, Bound: page.Known(bound), Coverage: page.Share(v.Coverage),
			Together: v.Together, Reliable: v.Reliable(), Doubt: v.Doubt.String(), Flagged: v.Flagged, Assumed: v.Assumed,
			Includes: a.Includes(i), Expected: expected(a, i), Linked: paths(m, a.Linked(i)), Skids: j.skids(a, i)})
		if !v.Known() {
			missing = append(missing, jsonMissing{n.Path, j.o.note(a.Why(i))})
		}
	}
	return nodes, missing
}

// times is what the threads did, nil where nobody asked.
func (j *jsonWriter) times(a *account.Account) *jsonTimes {
	if a == nil {
		return nil
	}
	m := a.Model()
	out := &jsonTimes{Model: jsonModel{Name: m.Name, Version: m.Version}, Bottleneck: append([]string{}, paths(m, a.Bottleneck)...), Notes: j.o.Texts(a.Notes)}
	out.Nodes, out.Missing = j.nodes(a, timesShown(a))
	return out
}

func paths(m *model.Model, nodes []int) []string {
	var list []string
	for _, i := range nodes {
		list = append(list, m.Nodes[i].Path)
	}
	return list
}

func expected(a *account.Account, i int) *jsonExpected {
	e := a.Model().Nodes[i].Expected
	if e == nil {
		return nil
	}
	r, standing := a.Expected(i)
	return &jsonExpected{page.Number(r.Low), page.Number(r.High), standing.String()}
}

func branching(a *account.Account) *jsonBranches {
	b := a.Branching()
	d := b.Dominance()
	if d == account.DominanceUnknown {
		return nil
	}
	return &jsonBranches{d.String(), page.Known(b.Instructions), page.Known(b.Branches), page.Known(b.Mispredictions), page.Known(b.BlockLength()), page.Known(b.Trips())}
}

func check(c *account.Check, why string) jsonCheck {
	return jsonCheck{Name: c.Name, Op: c.Op, Left: page.Known(c.Left), Right: page.Known(c.Right), Residual: page.Known(c.Residual),
		Tolerance: page.Number(c.Tolerance), State: c.State.String(), OK: c.State == account.Holds,
		Identity: c.Identity, Text: c.Text, Why: why}
}

// checkInFull is a check with what a reader needs to judge its outcome.
func checkInFull(c *account.Check, why string) jsonCheck {
	out := check(c, why)
	out.Kind, out.Events, out.For, out.Error = c.Side.String(), c.Events, c.For, page.Number(c.Error)
	out.Slack, out.Source = c.Slack, c.Source
	return out
}

func count(c account.Count) jsonCount {
	out := jsonCount{Event: c.Event, As: c.As, Value: page.Known(c.Value), Unit: c.Unit, Coverage: page.Share(c.Coverage), Samples: c.Samples}
	if c.LP >= 0 {
		out.LP = &c.LP
	}
	if c.State != counts.Counted {
		out.State = c.State.String()
	}
	return out
}

func scope(a *account.Account, list []account.Count, p *parts) jsonScope {
	s := jsonScope{Kind: a.Scope.Kind.String(), Label: a.Label, Start: page.Known(a.Start), Duration: page.Known(a.Duration)}
	s.CPUs, s.Cgroup, s.Comm = a.Scope.CPUs, a.Scope.Cgroup, a.Scope.Comm
	if a.Scope.Kind != counts.Run && (a.Scope.Kind != counts.Interval || a.Scope.Label != "") {
		s.Label = a.Scope.Label
	}
	number(&s.CPU, a.Scope.CPU)
	number(&s.Core, a.Scope.Core)
	number(&s.Die, a.Scope.Die)
	number(&s.Socket, a.Scope.Socket)
	number(&s.Node, a.Scope.Node)
	if a.Runs > 1 {
		s.Runs = a.Runs
	}
	if c := a.Scope.Code; c != nil {
		s.jsonCode = jsonCode{Module: c.Module, BuildID: c.BuildID, Function: c.Function, File: c.File, Line: c.Line}
		s.Caller = callerOf(a.Scope.Caller, a.Scope.CallerShare)
		if c.Addr > 0 {
			s.Addr = fmt.Sprintf("%#x", c.Addr)
		}
	}
	if p != nil {
		part := p.share(a, list)
		s.Of, s.Share, s.Error, s.Samples, s.Hotspot = p.Event, page.Known(part.Value), page.Known(part.Error), part.samples, p.hot(a, &part)
		if p.Calls != nil {
			s.Self = page.Known(part.self)
		}
		if s.Process, s.Thread = a.Scope.Process, a.Scope.Thread; s.Process != "" || s.Thread != "" {
			number(&s.PID, a.Scope.PID)
		}
		if s.Thread != "" {
			number(&s.TID, a.Scope.TID)
		}
	}
	return s
}

// skids lists the events of a node that skid, if the accounts are of places so small that
// it matters.
func (j *jsonWriter) skids(a *account.Account, node int) []string {
	if j.parts == nil {
		return nil
	}
	return j.parts.skids(a, node)
}

// number sets a part of a scope that is known.
func number(to **int, n int) {
	if n != counts.Unknown {
		*to = &n
	}
}
