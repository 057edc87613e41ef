package core

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/model"
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
	var sum [parts]counts.Cell
	for _, r := range pieces {
		n := cycles(r)
		if whole := r.Main().Cycles; r.Loop > 0 && n > 0 && whole > 0 {
			for i, v := range r.Split() {
				sum[i].Value += n * v / whole
			}
		}
	}
	return withSplit(t, sum, run)
}

// SplitNodes adds to the table of a run how the model divides nodes of its method: those
// that have parts, by the shares that each has in hot loops. run are the cycles of all code.
// It reports whether a loop has a share that is divided.
func SplitNodes(t *counts.Table, pieces []*Result, m *model.Model, run float64) (*counts.Table, bool) {
	var sum [parts]counts.Cell
	divided := false
	for parent, group := range partsOf(m) {
		for _, r := range pieces {
			share, ok := r.Nodes[parent]
			if !ok || math.IsNaN(share.Value) || r.Loop == 0 || len(r.Cores) == 0 {
				continue
			}
			divided = divided || len(group) > 1
			for part, of := range r.Split().among(group) {
				sum[part].Value += of * share.Value * run
				if e := of * share.Error * run / counts.Confidence; !math.IsNaN(e) {
					sum[part].Variance += e * e
				}
			}
		}
	}
	return withSplit(t, sum, run), divided
}

// partsOf returns the nodes of a method that are divided by parts, and these parts.
func partsOf(m *model.Model) map[string][]int {
	parts := map[string]int{} // by the name in formulas
	for i := range m.Inputs {
		if at := slices.Index(splitEvents[:], m.Inputs[i].Events[0]); at >= 0 {
			parts[m.Inputs[i].Name] = at
		}
	}
	of := map[string][]int{}
	for i := range m.Nodes {
		expr, err := m.Nodes[i].Expr()
		if err != nil {
			continue // a rest
		}
		for _, name := range expr.Names() {
			if at, ok := parts[name]; ok {
				of[m.Nodes[i].Parent] = append(of[m.Nodes[i].Parent], at)
			}
		}
	}
	return of
}

// among returns the shares of some parts in what the model has of them. Without any, all is
// in the part for other limits, if that is one of them.
func (s Split) among(group []int) (shares Split) {
	sum := 0.0
	for _, part := range group {
		sum += s[part]
	}
	switch {
	case sum > 0:
		for _, part := range group {
			shares[part] = s[part] / sum
		}
	case slices.Contains(group, otherLimits):
		shares[otherLimits] = 1
	}
	return shares
}

// withSplit returns a table with the parts as further columns, and the cycles of the run;
// NaN is left out.
func withSplit(t *counts.Table, sum [parts]counts.Cell, run float64) *counts.Table {
	l := *t.Layout
	l.Columns = slices.Clone(t.Columns)
	add := slices.Clone(sum[:])
	for _, event := range splitEvents {
		l.Columns = append(l.Columns, counts.Column{Event: event, Unit: "cycles"})
	}
	if !math.IsNaN(run) {
		l.Columns = append(l.Columns, counts.Column{Event: splitRun, Unit: "cycles"})
		add = append(add, counts.Cell{Value: run})
	}
	out := counts.NewTable(&l)
	out.Label, out.CPU, out.Start, out.Duration, out.Notes, out.NoError, out.Line = t.Label, t.CPU, t.Start, t.Duration, t.Notes, t.NoError, t.Line
	for row := range t.Scopes {
		copy(out.Row(row), t.Row(row))
	}
	for i, c := range add {
		c.State = counts.Counted
		*out.Cell(0, len(t.Columns)+i) = c
	}
	return out
}
