package recorded

import (
	"cmp"
	"math"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/source/samples"
)

// intervals annotates a function in each interval that has samples of it. The recording is read
// once. Executions from branch stacks are left out: they are of the whole recording.
func (n *annotator) intervals(listing *annotate.Listing, opts annotate.Options, filter samples.Filter) ([]render.CodeInterval, error) {
	t, err := n.table(samples.Options{By: counts.Instruction, Within: counts.By(0).With(counts.Interval), Interval: n.a.Interval, Filter: filter})
	if err != nil {
		return nil, err
	}
	rows := map[float64][]int{} // by the beginning of an interval
	for row := range t.Scopes {
		if s := &t.Scopes[row]; row > 0 && s.Code != nil && !math.IsNaN(s.Start) {
			rows[s.Start] = append(rows[s.Start], row)
		}
	}
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
		copy(part.Row(0), t.Row(0))
		for i, row := range of {
			copy(part.Row(i+1), t.Row(row))
		}
		own := *listing // addresses without code are those of the samples
		code, err := annotate.New(part, &own, opts)
		if err != nil {
			return nil, fault.Inputf("%s: %w", n.file, err)
		}
		list = append(list, render.CodeInterval{Start: start, Duration: t.Scopes[of[0]].Duration, Code: code})
	}
	sorting.Stable(list, func(x, y render.CodeInterval) int { return cmp.Compare(x.Start, y.Start) })
	return list, nil
}
