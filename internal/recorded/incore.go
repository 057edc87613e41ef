package recorded

import (
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/core"
)

// inCore adds what the model of the core says of hotspots.
func (p *placeReport) inCore(h *account.Hotspots, d *core.Document) {
	if d != nil {
		core.ExplainHotspots(h, d.Pieces)
	}
}

// modelName is the method of the core model's counts.
const modelName = "hot-loops"

// looped returns what the model of the core says of the hot loops of the recording; nil if it
// says nothing, such as of another architecture.
func (p *placeReport) looped() *core.Document {
	rec, err := p.recording(p.file)
	if err != nil {
		return nil
	}
	locates := p.locates(rec.Recording)
	rec.Close()
	if !locates {
		return nil
	}
	d, err := p.Core(&CoreOptions{Symbols: p.o.Symbols, nodes: true, first: p.first, insts: p.byInstruction()})
	if err != nil || !slices.ContainsFunc(d.Pieces, func(r *core.Result) bool { return r.Loop > 0 }) {
		return nil
	}
	return d
}

// divided adds to the counts of a run how the model divides its hot loops. The method of a
// simulation has nodes for that. Others get such nodes if samples tell how much of the
// core's own node is in each loop. The rest get a further method.
func (p *placeReport) divided(t *counts.Table, d *core.Document) *counts.Table {
	switch {
	case d == nil:
		return t
	case p.kind.Simulated:
		return core.SplitSimulated(t, d.Pieces)
	}
	run := t.Cell(0, accounting.Clock(p.method, t)).Value
	if m, err := p.method.WithLoops(); m != nil && err == nil {
		if whole, ok := core.SplitNodes(t, d.Pieces, m.Model, run); ok {
			p.method = m
			return whole
		}
	}
	m, err := p.Generic(modelName)
	if err != nil {
		return t
	}
	p.method.Also = append(slices.Clip(p.method.Also), m)
	return core.SplitColumns(t, d.Pieces, func(r *core.Result) float64 { return r.Weight * run }, run)
}
