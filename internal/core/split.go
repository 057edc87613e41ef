package core

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// A Split is what a loop's cycles in the core are for, by part. The parts add up to the
// cycles.
type Split [parts]float64

// The parts of a split.
const (
	usefulDispatch = iota // micro-ops divided by the width of dispatch
	chainLatency          // chains from one iteration to the next
	portContention        // busy ports, and their conflicts
	dividerBusy
	frontEnd          // fetch and taken branches
	partsOrForwarding // parts of registers, and stores that cannot forward
	otherLimits       // full queues, and several limits together
	parts
)

// splitEvents are the counts of the parts, in cycles of a run's hot loops.
var splitEvents = [parts]string{"core.useful", "core.chain", "core.ports", "core.divider", "core.frontend", "core.forwarding", "core.other"}

// splitRun is the event of all cycles of a run: of those loops and all other code.
const splitRun = "core.run"

// Split divides the model's cycles of an iteration: what dispatch needs at least, and the
// rest for the limit that explains it.
func (r *Result) Split() (s Split) {
	a := r.Main()
	if len(a.Limits) == 0 {
		s[otherLimits] = a.Cycles
		return s
	}
	for _, l := range a.Limits {
		if l.Kind == simulation.DispatchWidth {
			s[usefulDispatch] = min(l.Cycles, a.Cycles)
		}
	}
	s[r.part(a.Limits[0].Kind)] += a.Cycles - s[usefulDispatch]
	return s
}

// part returns the part that a limit's cycles are in.
func (r *Result) part(k simulation.LimitKind) int {
	if len(r.Advice) > 0 && r.Advice[0].Fault == PartialRegister {
		return partsOrForwarding
	}
	switch k {
	case simulation.DispatchWidth, simulation.Retirement:
		return usefulDispatch
	case simulation.Chain:
		return chainLatency
	case simulation.PortGroup, simulation.Conflicts:
		return portContention
	case simulation.Divider:
		return dividerBusy
	case simulation.FrontEnd, simulation.TakenBranches:
		return frontEnd
	case simulation.Forwarding:
		return partsOrForwarding
	}
	return otherLimits
}

// SplitSimulated adds the split of a simulation's hot loops to the table of its run. Without
// timed loops the table stays as it is.
func SplitSimulated(t *counts.Table, pieces []*Result) *counts.Table {
	if !slices.ContainsFunc(pieces, func(r *Result) bool { return r.Loop > 0 && r.Issued > 0 }) {
		return t
	}
	return SplitColumns(t, pieces, func(r *Result) float64 { return r.Issued }, math.NaN())
}

// SplitColumns adds the split of a run's hot loops to its table, as counts. cycles are those
// that a piece has in the core, and run those of all code; NaN if only pieces count.
func SplitColumns(t *counts.Table, pieces []*Result, cycles func(*Result) float64, run float64) *counts.Table {
	var sum Split
	for _, r := range pieces {
		n := cycles(r)
		if whole := r.Main().Cycles; r.Loop > 0 && n > 0 && whole > 0 {
			for i, v := range r.Split() {
				sum[i] += n * v / whole
			}
		}
	}
	l := *t.Layout
	l.Columns = slices.Clone(t.Columns)
	add := slices.Clone(sum[:])
	for _, event := range splitEvents {
		l.Columns = append(l.Columns, counts.Column{Event: event, Unit: "cycles"})
	}
	if !math.IsNaN(run) {
		l.Columns = append(l.Columns, counts.Column{Event: splitRun, Unit: "cycles"})
		add = append(add, run)
	}
	out := counts.NewTable(&l)
	out.Label, out.CPU, out.Start, out.Duration, out.Notes, out.Line = t.Label, t.CPU, t.Start, t.Duration, t.Notes, t.Line
	for row := range t.Scopes {
		copy(out.Row(row), t.Row(row))
	}
	for i, v := range add {
		*out.Cell(0, len(t.Columns)+i) = counts.Cell{Value: v, State: counts.Counted}
	}
	return out
}
