package recorded

import (
	"cmp"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/source/samples"
)

// filter leaves what is in a place.
func (p *place) filter() samples.Filter {
	return samples.Filter{Modules: []string{p.module}, Addresses: []samples.Range{p.Range}}
}

// holds reports whether an instruction is in the place.
func (p *place) holds(c *counts.Code) bool {
	return c.Module == p.module && c.Addr >= p.From && c.Addr <= p.To
}

// intervals annotates functions in each interval that has samples of them. The recording is read
// once for all.
func (n *annotator) intervals(list []*Annotated) {
	var only samples.Filter
	var found []*Annotated
	for _, x := range list {
		if x.Err == nil && x.listing != nil {
			found = append(found, x)
			only.Addresses = append(only.Addresses, x.from.Range)
			if !slices.Contains(only.Modules, x.from.module) {
				only.Modules = append(only.Modules, x.from.module)
			}
		}
	}
	if len(found) == 0 {
		return
	}
	t, err := n.table(samples.Options{By: counts.Instruction, Within: counts.By(0).With(counts.Interval), Interval: n.a.Interval, Filter: only})
	for _, x := range found {
		if x.Err = err; err == nil {
			x.Code.Intervals, x.Err = n.intervalsOf(t, x)
		}
	}
}

// intervalsOf annotates a function in each interval of a table that has samples of it. Executions
// from branch stacks are left out: they are of the whole recording.
func (n *annotator) intervalsOf(t *counts.Table, x *Annotated) ([]render.CodeInterval, error) {
	rows := map[float64][]int{} // by the beginning of an interval
	run, one := slices.Clone(t.Row(0)), make([]float64, len(t.Columns))
	for col := range run {
		run[col].Value, run[col].Variance, run[col].Samples = 0, 0, 0
	}
	for row := range t.Scopes {
		s := &t.Scopes[row]
		if row == 0 || s.Code == nil || math.IsNaN(s.Start) || !x.from.holds(s.Code) {
			continue
		}
		rows[s.Start] = append(rows[s.Start], row)
		for col := range run {
			if c := t.Cell(row, col); c.Samples > 0 {
				run[col].Value, run[col].Variance, run[col].Samples = run[col].Value+c.Value, run[col].Variance+c.Variance, run[col].Samples+c.Samples
			}
		}
	}
	for col := range run {
		one[col] = run[col].Variance / float64(max(1, run[col].Samples)) // see samples.Reader
	}
	opts := x.opts
	if opts.Branches != nil {
		opts.Branches, opts.Retired = nil, -1
	}
	if n.flat == "" {
		opts.Method = n.method.Account
	}
	var list []render.CodeInterval
	for start, of := range rows {
		layout := &counts.Layout{Columns: t.Columns, Scopes: []counts.Scope{t.Scopes[0]}}
		for _, row := range of {
			layout.Scopes = append(layout.Scopes, t.Scopes[row])
		}
		part := counts.NewTable(layout)
		copy(part.Row(0), run)
		for i, row := range of {
			to := part.Row(i + 1)
			copy(to, t.Row(row))
			for col := range to {
				if to[col].Ok() && to[col].Samples == 0 {
					to[col].Variance = one[col]
				}
			}
		}
		own := *x.listing // addresses without code are those of the samples
		code, err := annotate.New(part, &own, opts)
		if err != nil {
			return nil, fault.Inputf("%s: %w", n.file, err)
		}
		opts.Spare = code
		short := code.Short()
		short.Account = x.Code.Code.Account // each has much of its own, and only the model is needed
		list = append(list, render.CodeInterval{Start: start, Duration: t.Scopes[of[0]].Duration, Code: short})
	}
	sorting.Stable(list, func(x, y render.CodeInterval) int { return cmp.Compare(x.Start, y.Start) })
	return list, nil
}
