package render

import (
	"fmt"
	"io"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/report"
)

type jsonCores struct {
	Schema string      `json:"schema"`
	Title  string      `json:"title"`
	Of     string      `json:"of,omitempty"`
	Pieces []jsonPiece `json:"pieces"`
	More   int         `json:"more,omitempty"`
	Notes  []string    `json:"notes"`
}

type jsonPiece struct {
	Module    string           `json:"module,omitempty"`
	Function  string           `json:"function,omitempty"`
	Loop      int              `json:"loop,omitempty"`
	File      string           `json:"file,omitempty"`
	First     int              `json:"first_line,omitempty"`
	Last      int              `json:"last_line,omitempty"`
	Share     *page.Number     `json:"share,omitempty"`
	Samples   int64            `json:"samples,omitempty"`
	Unrolled  bool             `json:"unrolled,omitempty"`
	Code      []jsonCode       `json:"instructions"`
	Cores     []jsonCoreResult `json:"cores"`
	Measured  *jsonMeasured    `json:"measured,omitempty"`
	WhatIfs   []jsonWhatIf     `json:"what_ifs"`
	Advice    []jsonAdvice     `json:"advice"`
	PieceNote []string         `json:"notes"`
	Picture   string           `json:"picture,omitempty"`
}

type jsonCode struct {
	Addr  string `json:"addr"`
	Bytes string `json:"bytes"`
	Text  string `json:"text"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
}

type jsonCoreResult struct {
	Core      string            `json:"core"`
	Cycles    *page.Number      `json:"cycles"`
	Uops      *page.Number      `json:"uops"`
	Limits    []jsonLimit       `json:"limits"`
	Chain     []jsonLink        `json:"chain"`
	ChainSpan int               `json:"chain_iterations,omitempty"`
	Ports     []jsonPortUse     `json:"ports"`
	Code      []jsonInstruction `json:"instructions"`
}

type jsonLimit struct {
	Kind   string       `json:"kind"`
	Cycles *page.Number `json:"cycles"`
	Ports  []string     `json:"ports,omitempty"`
	Queue  string       `json:"queue,omitempty"`
}

type jsonLink struct {
	Instruction int          `json:"instruction"`
	Latency     *page.Number `json:"latency"`
	By          string       `json:"by"`
	Blocked     bool         `json:"blocked,omitempty"`
	Aliased     bool         `json:"aliased,omitempty"`
}

type jsonPortUse struct {
	Port   string       `json:"port"`
	Cycles *page.Number `json:"cycles"`
}

type jsonInstruction struct {
	Uops    *page.Number  `json:"uops"`
	Fused   bool          `json:"fused,omitempty"`
	Latency *page.Number  `json:"latency"`
	Chained bool          `json:"in_chain,omitempty"`
	Trust   string        `json:"trust"`
	Ports   []jsonPortUse `json:"ports"`
}

type jsonMeasured struct {
	Cycles *page.Number `json:"cycles"`
	Error  *page.Number `json:"error,omitempty"`
	How    string       `json:"how"`
	Why    string       `json:"difference,omitempty"`
}

type jsonWhatIf struct {
	If     string       `json:"if"`
	Cycles *page.Number `json:"cycles"`
}

type jsonAdvice struct {
	Fault       string `json:"fault"`
	Text        string `json:"text"`
	Instruction *int   `json:"instruction,omitempty"`
}

func writeCoresJSON(w io.Writer, d Cores, _ report.Options) error {
	doc := jsonCores{Schema: "cyclestack.core/v1", Title: d.Title, Of: d.Of, Pieces: []jsonPiece{}, More: d.More, Notes: list(d.Notes)}
	for i, r := range d.Pieces {
		p := pieceOf(r, d.Of != "")
		if i < len(d.pictures) {
			p.Picture = d.pictures[i]
		}
		doc.Pieces = append(doc.Pieces, p)
	}
	return page.JSON(w, doc)
}

// list is an empty list rather than null.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func pieceOf(r *core.Result, shares bool) jsonPiece {
	p := jsonPiece{Module: r.Module, Function: r.Function, Loop: r.Loop, File: r.File, First: r.First, Last: r.Last, Samples: r.Samples,
		Unrolled: r.Unrolled, WhatIfs: []jsonWhatIf{}, Advice: []jsonAdvice{}, PieceNote: list(r.Notes)}
	if shares {
		p.Share = page.Share(r.Weight)
	}
	for i := range r.Insts {
		in := &r.Insts[i]
		p.Code = append(p.Code, jsonCode{fmt.Sprintf("%#x", in.Addr), fmt.Sprintf("%x", in.Code), in.Text, in.File, in.Line})
	}
	for _, a := range r.Cores {
		p.Cores = append(p.Cores, resultOf(a))
	}
	if m := r.Measured; m != nil {
		p.Measured = &jsonMeasured{page.Known(m.Cycles), page.Known(m.Error), m.How, m.Why}
	}
	for _, wi := range r.WhatIfs {
		p.WhatIfs = append(p.WhatIfs, jsonWhatIf{wi.If, page.Known(wi.Cycles)})
	}
	for _, adv := range r.Advice {
		j := jsonAdvice{Fault: string(adv.Fault), Text: adv.Text}
		if adv.At >= 0 {
			j.Instruction = &adv.At
		}
		p.Advice = append(p.Advice, j)
	}
	return p
}

func resultOf(a *simulation.Analysis) jsonCoreResult {
	out := jsonCoreResult{Core: a.Core, Cycles: page.Known(a.Cycles), Uops: page.Known(a.Slots), ChainSpan: a.ChainSpan,
		Limits: []jsonLimit{}, Chain: []jsonLink{}, Ports: portsOf(a.Ports, a.PortUse)}
	for _, l := range a.Limits {
		out.Limits = append(out.Limits, jsonLimit{string(l.Kind), page.Known(l.Cycles), l.Ports, l.Queue})
	}
	for _, l := range a.Chain {
		out.Chain = append(out.Chain, jsonLink{l.Instruction, page.Known(l.Latency), l.By, l.Blocked, l.Aliased})
	}
	for i := range a.Instructions {
		in := &a.Instructions[i]
		out.Code = append(out.Code, jsonInstruction{page.Known(in.Slots), in.Fused, page.Known(in.Latency), in.Chained, in.Trust.String(), portsOf(a.Ports, in.Ports)})
	}
	return out
}

// portsOf lists the ports that are used.
func portsOf(names []string, use []float64) []jsonPortUse {
	out := []jsonPortUse{}
	for i, u := range use {
		if u > 0 {
			out = append(out, jsonPortUse{names[i], page.Known(u)})
		}
	}
	return out
}

func init() {
	report.Register("text", writeCores)
	report.Register("json", writeCoresJSON)
	report.Register("csv", writeCoresCSV)
}
