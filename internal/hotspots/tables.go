package hotspots

import (
	"cmp"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// Tables are the counts of a run by function, and by line within functions. The latter may
// be nil.
type Tables struct {
	Functions, Lines *counts.Table
	Column           int // the event that places are compared by, in both
	// Cause says what holds back the place of a row of Functions; nil for nothing.
	Cause func(row int) *account.Cause
}

// Hotspots returns the functions with most of the cycles. Running is the share of the
// whole that is in the tables.
func (t *Tables) Hotspots(running float64) *account.Hotspots {
	h := &account.Hotspots{Whole: account.Cycles, Seconds: math.NaN(), Running: running}
	total := t.Functions.Cell(0, t.Column).Value
	if !(total > 0) || math.IsNaN(running) {
		return nil
	}
	var rows []int
	for i := 1; i < len(t.Functions.Scopes); i++ {
		if t.Functions.Cell(i, t.Column).Value > 0 {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(i, j int) int {
		return cmp.Compare(t.Functions.Cell(j, t.Column).Value, t.Functions.Cell(i, t.Column).Value)
	})
	rest := 1.0
	for n, row := range rows {
		cell := t.Functions.Cell(row, t.Column)
		part := cell.Value / total
		if n >= placesMost || part < placesLeast {
			break
		}
		p := account.Hot{Share: running * part, Error: math.NaN(), Samples: cell.Samples}
		if cell.Variance > 0 {
			p.Error = running * counts.Confidence * math.Sqrt(cell.Variance*max(0, 1-part)) / total
		}
		if c := t.Functions.Scopes[row].Code; c != nil {
			p.Function, p.Module, p.Kernel, p.File, p.Line, p.Addr = c.Function, c.Module, InKernel(c.Module), c.File, c.Line, c.Addr
			t.line(&p, c)
		}
		if t.Cause != nil {
			p.Cause = t.Cause(row)
		}
		h.Places = append(h.Places, p)
		rest -= part
	}
	h.Left, h.Others = len(rows)-len(h.Places), running*max(0, rest)
	return h
}

// line finds the line with the most cycles of a function.
func (t *Tables) line(p *account.Hot, f *counts.Code) {
	if t.Lines == nil {
		return
	}
	most := 0.0
	for i := 1; i < len(t.Lines.Scopes); i++ {
		c := t.Lines.Scopes[i].Code
		if c == nil || c.Function != f.Function || c.Module != f.Module {
			continue
		}
		v := t.Lines.Cell(i, t.Column).Value
		switch {
		case c.Line > 0 && v > most:
			most, p.File, p.Line = v, c.File, c.Line
		case c.Line > 0 || most > 0:
			continue
		}
		p.Caller, p.CallerShare = t.Lines.Scopes[i].Caller, t.Lines.Scopes[i].CallerShare
	}
}

// CauseOf is the bottleneck of an account as a cause; nil if it has none.
func CauseOf(a *account.Account) *account.Cause {
	if len(a.Bottleneck) == 0 {
		return nil
	}
	return &account.Cause{Kind: a.Model().Nodes[a.Bottleneck[len(a.Bottleneck)-1]].Name}
}
