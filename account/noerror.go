package account

import (
	"fmt"
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

const (
	intervalsMost = 2    // that are too few for an error
	coarse        = 4    // times the recommended interval
	wideError     = 0.01 // of the whole: an error that shorter intervals are worth recording for
)

// NoError says why a value that is known has no error, and what would give it one; "" if it has
// one or needs none. A value whose events were counted all of the time needs none. bound is
// then a share's largest error at a constant rate of cycles or slots, whatever happened between
// windows; NaN for other values.
func (a *Account) NoError(node int) (why string, bound float64) {
	v := &a.Nodes[node]
	if !v.Known() || !math.IsNaN(v.Error) || !v.counted {
		return "", math.NaN()
	}
	if a.table.NoError != "" {
		return "not known, because " + a.table.NoError, math.NaN()
	}
	if !(v.Coverage < alwaysCounted) {
		return "", math.NaN()
	}
	bound = math.NaN()
	if a.Model().Share(node) && v.Value >= 0 && v.Value <= 1 {
		bound = (1 - v.Coverage) * max(v.Value, 1-v.Value)
	}
	return a.whyNoError(node), bound
}

func (a *Account) whyNoError(node int) string {
	switch {
	case a.Interval:
		return "not known, because one interval does not show how its multiplexed counts vary"
	case a.apart(node):
		return "not known, because its events were counted in different runs"
	}
	switch n := a.intervals(); {
	case n <= 1:
		return fmt.Sprintf("not known, because one block of multiplexed counts does not show how they vary; intervals of %.0f ms would", 1000*a.interval())
	case n <= intervalsMost:
		return fmt.Sprintf("not known, because %d intervals do not show how multiplexed counts vary; more and shorter ones would", n)
	}
	return "not known, because one of its groups was counted in too few intervals"
}

// apart reports whether a node rests on events of different runs of the same work.
func (a *Account) apart(node int) bool {
	for _, at := range a.Binding.nodes[node].deps {
		for _, col := range a.Binding.columnsOf(a.Binding.slotAt(at)) {
			if a.Binding.Layout.Columns[col].Parts > 1 {
				return true
			}
		}
	}
	return false
}

// intervals is the number of intervals of the recording that have counts.
func (a *Account) intervals() int {
	n := 0
	for col := range a.Binding.Layout.Columns {
		if c := a.table.Course(a.place.Self, col); c != nil && !c.Runs {
			n = max(n, c.Intervals)
		}
	}
	return n
}

// interval is how long intervals should be for these counts, in seconds: two turns of
// each group, and no less than perf takes.
func (a *Account) interval() float64 {
	groups := map[int]bool{}
	for col, c := range a.Binding.Layout.Columns {
		if cell := a.table.Cell(a.place.Self, col); cell.Ok() && cell.Coverage() < alwaysCounted {
			if c.Group > 0 {
				groups[c.Group] = true
			} else {
				groups[-1-col] = true
			}
		}
	}
	const step, most = 0.01, 0.1
	return min(max(math.Ceil(2*turnSeconds*float64(len(groups))/step), 2)*step, most)
}

// narrower says that the errors are upper bounds that shorter intervals would narrow, and
// how short; the zero Note if the intervals are short or the errors small. What a
// program does within an interval does not show.
func (a *Account) narrower() counts.Note {
	a.Finer = 0
	n := a.intervals()
	if a.Interval || n <= intervalsMost || !(a.Duration > 0) || a.repeated || a.sampled {
		return counts.Note{}
	}
	length, want := a.Duration/float64(n), a.interval()
	if length < coarse*want {
		return counts.Note{}
	}
	for i := range a.Nodes {
		node := &a.Model().Nodes[i]
		if v := &a.Nodes[i]; node.Section == "" && a.Model().Share(i) && v.Error > wideError {
			a.Finer = want
			return counts.Notef("errors may be too large: intervals of %.3g s hide changes within them. Intervals of %.0f ms show more", length, 1000*want)
		}
	}
	return counts.Note{}
}
