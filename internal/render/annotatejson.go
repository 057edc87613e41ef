package render

import (
	"encoding/csv"
	"fmt"
	"math"
	"strconv"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/internal/page"
)

type jsonAnnotation struct {
	Schema       string       `json:"schema"`
	CPU          any          `json:"cpu,omitempty"`
	Model        any          `json:"model,omitempty"`
	Source       any          `json:"source"`
	Clock        string       `json:"clock"`
	Function     jsonFunction `json:"function"`
	Costs        []jsonCost   `json:"costs"`
	Lines        []jsonLine   `json:"lines"`
	Instructions []jsonInst   `json:"instructions"`
	Blocks       []jsonBlock  `json:"blocks"`
	Loops        []jsonLoop   `json:"loops"`
	Executions   string       `json:"executions,omitempty"`
	Relative     bool         `json:"relative,omitempty"`
	Notes        []string     `json:"notes"`
}

type jsonPart struct {
	Share   *page.Number `json:"share,omitempty"`
	OfRun   *page.Number `json:"share_of_run,omitempty"`
	Error   *page.Number `json:"error,omitempty"`
	Samples int64        `json:"samples"`
	Nodes   []jsonFigure `json:"nodes,omitempty"`
	Counts  []jsonEvents `json:"counts,omitempty"`
}

type jsonFigure struct {
	Node     string       `json:"node"`
	Value    *page.Number `json:"value"`
	Unit     string       `json:"unit"`
	Error    *page.Number `json:"error,omitempty"`
	Amount   *page.Number `json:"amount,omitempty"`
	Samples  int64        `json:"samples"`
	Reliable bool         `json:"reliable"`
	Verdict  string       `json:"verdict,omitempty"`
}

type jsonEvents struct {
	Event   string  `json:"event"`
	Value   float64 `json:"value"`
	Samples int64   `json:"samples"`
}

type jsonFunction struct {
	Name    string `json:"name"`
	Symbol  string `json:"symbol,omitempty"`
	Module  string `json:"module"`
	BuildID string `json:"build_id,omitempty"`
	Start   string `json:"start,omitempty"`
	End     string `json:"end,omitempty"`
	jsonPart
}

type jsonCost struct {
	Node   string      `json:"node"`
	Stalls string      `json:"stalls"`
	Hidden page.Number `json:"hidden"`
}

type jsonLine struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line"`
	Text string `json:"text,omitempty"`
	jsonPart
}

type jsonInst struct {
	Addr string `json:"addr"`
	Text string `json:"text,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	jsonPart
}

type jsonBlock struct {
	Start      string       `json:"start"`
	Insts      int          `json:"instructions"`
	Loop       int          `json:"loop,omitempty"` // counted from 1
	Executions *jsonCounted `json:"executions,omitempty"`
	Cycles     *jsonCounted `json:"cycles,omitempty"`
	Branch     *jsonEnd     `json:"branch,omitempty"`
	jsonPart
}

type jsonEnd struct {
	Taken int64        `json:"taken"`
	Share *page.Number `json:"mispredicted"`
	Error *page.Number `json:"error"`
}

func endOf(e flow.End) *jsonEnd {
	if e.Taken == 0 {
		return nil
	}
	share, err := e.Share()
	return &jsonEnd{e.Taken, page.Known(share), page.Known(err)}
}

type jsonCounted struct {
	Value   *page.Number `json:"value"`
	Error   *page.Number `json:"error,omitempty"`
	Samples int64        `json:"samples"`
}

type jsonLoop struct {
	Loop       int           `json:"loop"`
	Header     string        `json:"header"`
	Depth      int           `json:"depth"`
	Inside     int           `json:"inside,omitempty"`
	File       string        `json:"file,omitempty"`
	First      int           `json:"first_line,omitempty"`
	Last       int           `json:"last_line,omitempty"`
	Inner      *page.Number  `json:"share_outside_inner_loops,omitempty"`
	Iterations *jsonCounted  `json:"iterations,omitempty"`
	Entries    *jsonCounted  `json:"entries,omitempty"`
	Trips      *page.Number  `json:"trips,omitempty"`
	TripsError *page.Number  `json:"trips_error,omitempty"`
	Least      *page.Number  `json:"trips_at_least,omitempty"`
	Why        string        `json:"why,omitempty"`
	PerIter    []jsonPerIter `json:"per_iteration,omitempty"`
	Cycles     *jsonCounted  `json:"cycles_per_iteration,omitempty"`
	InCore     *jsonInCore   `json:"in_core,omitempty"`
	jsonPart
}

type jsonPerIter struct {
	Event   string       `json:"event"`
	Value   page.Number  `json:"value"`
	Error   *page.Number `json:"error,omitempty"`
	Samples int64        `json:"samples"`
}

func (t *annotation) document() any {
	c := t.c
	head := t.d.Head("cyclestack.annotation/v1")
	out := jsonAnnotation{
		Schema: head.Schema, Source: head.Source, Clock: t.clock(),
		Function: jsonFunction{Name: c.Function, Symbol: c.Symbol, Module: c.Module, BuildID: c.BuildID, jsonPart: t.part(&c.Whole)},
		Costs:    []jsonCost{}, Lines: []jsonLine{}, Instructions: []jsonInst{}, Blocks: []jsonBlock{}, Loops: []jsonLoop{},
		Executions: c.Executions, Relative: c.Relative, Notes: []string{},
	}
	if !c.ByLine {
		out.Function.Start, out.Function.End = hexOf(c.Start), hexOf(c.End)
	}
	if t.d.Flat == "" {
		out.CPU, out.Model = &head.CPU, &head.Model
	} else {
		out.Notes = append(out.Notes, t.d.Flat)
	}
	for _, k := range c.Costs {
		nodes := c.Account.Model().Nodes
		out.Costs = append(out.Costs, jsonCost{nodes[k.Node].Path, nodes[k.Stalls].Path, page.Number(k.Hidden)})
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		text, _ := t.sourceLine(l.File, l.Line)
		out.Lines = append(out.Lines, jsonLine{l.File, l.Line, text, t.part(&l.Part)})
	}
	for i := range t.insts() {
		in := &c.Insts[i]
		out.Instructions = append(out.Instructions, jsonInst{hexOf(in.Addr), page.Printable(in.Text), in.File, in.Line, t.part(&c.Parts[i])})
	}
	for i := range c.Blocks {
		b := &c.Blocks[i]
		out.Blocks = append(out.Blocks, jsonBlock{hexOf(c.Insts[b.First].Addr), b.Last - b.First + 1, c.Graph.Blocks[i].Loop + 1, countedOf(b.Executions), countedOf(b.Cycles), endOf(b.End), t.part(&b.Part)})
	}
	for i := range c.Loops {
		out.Loops = append(out.Loops, t.jsonLoop(i))
	}
	out.Notes = append(out.Notes, t.notes()...)
	return out
}

// insts are the instructions, if any are known.
func (t *annotation) insts() []annotate.Inst {
	if t.c.ByLine {
		return nil
	}
	return t.c.Insts
}

func hexOf(addr uint64) string { return fmt.Sprintf("%#x", addr) }

func countedOf(c flow.Count) *jsonCounted {
	if math.IsNaN(c.Value) {
		return nil
	}
	return &jsonCounted{page.Known(c.Value), page.Known(c.Error()), c.Samples}
}

func (t *annotation) jsonLoop(i int) jsonLoop {
	l, g := &t.c.Loops[i], &t.c.Graph.Loops[i]
	out := jsonLoop{Loop: i + 1, Header: hexOf(t.c.Insts[t.c.Blocks[g.Header].First].Addr), Depth: g.Depth, Inside: g.Parent + 1,
		File: l.File, First: l.First, Last: l.Last, Inner: page.Known(l.Inner), InCore: t.inCoreOf(i), Cycles: countedOf(l.Cycles), jsonPart: t.part(&l.Part)}
	if t.c.Executions == "" {
		return out
	}
	out.Iterations, out.Entries = countedOf(l.Executed.Iterations), countedOf(l.Executed.Entries)
	out.Trips, out.TripsError, out.Least, out.Why = page.Known(l.Executed.Trips), page.Known(l.Executed.Error), page.Known(l.Executed.Least), l.Executed.Why
	for _, p := range l.PerIter {
		out.PerIter = append(out.PerIter, jsonPerIter{p.Event, page.Number(p.Value), page.Known(p.Error), p.Samples})
	}
	return out
}

// part is what is known of a part.
func (t *annotation) part(p *annotate.Part) jsonPart {
	if p.Row == 0 {
		return jsonPart{}
	}
	out := jsonPart{Share: page.Known(p.Share), OfRun: page.Known(p.OfRun), Error: page.Known(p.Error), Samples: p.Samples}
	for col, c := range t.c.Table.Row(p.Row) {
		if c.State == counts.Counted && (c.Samples > 0 || c.Value != 0) {
			out.Counts = append(out.Counts, jsonEvents{t.c.Table.Columns[col].Event, c.Value, c.Samples})
		}
	}
	t.eachFigure(p, func(node int, f *annotate.Figure, verdict string) {
		m := t.c.Account.Model()
		out.Nodes = append(out.Nodes, jsonFigure{m.Nodes[node].Path, page.Known(f.Value), page.Unit(m, node), page.Known(f.Error), page.Known(f.Amount), f.Samples, f.Reliable, verdict})
	})
	return out
}

// eachFigure calls do with the figures of a part that are known, of the nodes that
// are asked for.
func (t *annotation) eachFigure(p *annotate.Part, do func(node int, f *annotate.Figure, verdict string)) {
	if p.Figures == nil {
		return
	}
	m := t.c.Account.Model()
	for i := range p.Figures {
		f := &p.Figures[i]
		if math.IsNaN(f.Value) || t.o.Level > 0 && m.Nodes[i].Level > t.o.Level || !m.Nodes[i].Match(t.o.Nodes) {
			continue
		}
		verdict := ""
		for k := range p.Hidden {
			if t.c.Costs[k].Node == i {
				verdict = p.Hidden[k].String()
			}
		}
		do(i, f, verdict)
	}
}

// annotationColumns are the headings of the csv format: one row for each node of
// each part, or one without a node where there is no method.
var annotationColumns = []string{"kind", "addr", "file", "line", "text", "share", "share_of_run", "share_error", "samples",
	"node", "value", "unit", "error", "amount", "reliable", "verdict", "executions"}

func (t *annotation) csv() error {
	c := t.c
	w := csv.NewWriter(&t.Out)
	_ = w.Write(annotationColumns)
	row := func(kind, addr, file string, line int, text string, p *annotate.Part, executions float64) {
		if p.Row == 0 && !t.d.Full {
			return
		}
		number := ""
		if line > 0 {
			number = strconv.Itoa(line)
		}
		head := []string{kind, addr, file, number, text, page.Decimal(p.Share), page.Decimal(p.OfRun), page.Decimal(p.Error), strconv.FormatInt(p.Samples, 10)}
		any := false
		t.eachFigure(p, func(node int, f *annotate.Figure, verdict string) {
			any = true
			m := c.Account.Model()
			_ = w.Write(append(head[:len(head):len(head)], m.Nodes[node].Path, page.Decimal(f.Value), page.Unit(m, node), page.Decimal(f.Error), page.Decimal(f.Amount),
				strconv.FormatBool(f.Reliable), verdict, page.Decimal(executions)))
		})
		if !any {
			_ = w.Write(append(head[:len(head):len(head)], "", "", "", "", "", "", "", page.Decimal(executions)))
		}
	}
	nan := math.NaN()
	row("function", hexOf(c.Start), "", 0, c.Function, &c.Whole, nan)
	for i := range c.Lines {
		l := &c.Lines[i]
		text, _ := t.sourceLine(l.File, l.Line)
		row("line", "", l.File, l.Line, text, &l.Part, nan)
	}
	for i := range t.insts() {
		in := &c.Insts[i]
		row("instruction", hexOf(in.Addr), in.File, in.Line, page.Printable(in.Text), &c.Parts[i], nan)
	}
	for i := range c.Blocks {
		row("block", hexOf(c.Insts[c.Blocks[i].First].Addr), "", 0, "", &c.Blocks[i].Part, c.Blocks[i].Executions.Value)
	}
	for i := range c.Loops {
		l := &c.Loops[i]
		iterations := nan
		if c.Executions != "" {
			iterations = l.Executed.Iterations.Value
		}
		row("loop", hexOf(c.Insts[c.Blocks[c.Graph.Loops[i].Header].First].Addr), l.File, l.First, fmt.Sprintf("loop %d", i+1), &l.Part, iterations)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return t.Flush()
}
