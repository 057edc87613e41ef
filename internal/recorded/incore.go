package recorded

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/core"
)

// coreNodes are the nodes for time in the core itself: those of the simulated account, of
// top-down analysis, and of the accounts of cycles. The model of the core says more of it.
var coreNodes = []string{"Issue", "Core_Bound", "Retiring", "Light_Operations", "Heavy_Operations", "Base", "Microcode_Sequencer",
	"Divider", "Ports_Utilization", "Ports_Utilized_0", "Ports_Utilized_1", "Ports_Utilized_2", "Ports_Utilized_3m", "Serializing_Operation",
	"FP_Arith", "FP_Scalar", "FP_Vector", "Int_Operations", "Memory_Operations", "Fused_Instructions", "Other_Light_Ops", "Few_Uops_Instructions",
	"Retired", "Unaccounted", "Stalls"}

// inCore adds what the model of the core says of the hottest loop of each place: where the
// account sees time in the core, and where nothing is known of the cause.
func (p *placeReport) inCore(h *account.Hotspots, d *core.Document) {
	asks := func(h *account.Hot) bool {
		return !h.Kernel && h.Function != "" && (h.Cause == nil || slices.Contains(coreNodes, h.Cause.Kind))
	}
	if h == nil || d == nil || !slices.ContainsFunc(h.Places, func(h account.Hot) bool { return asks(&h) }) {
		return
	}
	for i := range h.Places {
		place := &h.Places[i]
		if !asks(place) {
			continue
		}
		at := slices.IndexFunc(d.Pieces, func(r *core.Result) bool {
			return r.Loop > 0 && r.Function == place.Function && r.Module == place.Module
		})
		if at < 0 {
			continue
		}
		kind := core.InCore
		if place.Cause != nil {
			kind = place.Cause.Kind
		}
		place.Cause = d.Pieces[at].Cause(kind)
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
	d, err := p.Core(&CoreOptions{Symbols: p.o.Symbols})
	if err != nil || !slices.ContainsFunc(d.Pieces, func(r *core.Result) bool { return r.Loop > 0 }) {
		return nil
	}
	return d
}

// divided adds to the counts of a run how the model divides its hot loops. The method of a
// simulation has nodes for that; others get a further method.
func (p *placeReport) divided(t *counts.Table, d *core.Document) *counts.Table {
	switch {
	case d == nil:
		return t
	case accounting.Simulated(p.kind):
		return core.SplitColumns(t, d.Pieces, func(r *core.Result) float64 { return r.Issued }, math.NaN())
	}
	m, err := p.Generic(modelName)
	if err != nil {
		return t
	}
	p.method.Also = append(slices.Clip(p.method.Also), m)
	run := t.Cell(0, accounting.Clock(p.method, t)).Value
	return core.SplitColumns(t, d.Pieces, func(r *core.Result) float64 { return r.Weight * run }, run)
}
