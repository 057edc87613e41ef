package counts

import (
	"fmt"
	"math"
	"slices"
)

// JoinRuns returns one table of several runs of the same work that counted different
// events: those of a plan whose groups have a run each. The table is about one run:
// values are those of the runs, and the duration is their mean.
//
// An event that several runs counted has several columns, never in one group. The
// events that a run counted all of the time are a group. A count's coverage is that
// in its own run, divided by the number of runs. So counts of different runs are
// known not to have been counted together.
//
// A note says how many runs there were. They must have the same scopes.
func JoinRuns(runs []*Table) (*Table, error) {
	l := &Layout{Scopes: slices.Clone(runs[0].Scopes)}
	first := make([]int, len(runs)) // column of each run
	for k, t := range runs {
		if !slices.EqualFunc(l.Scopes, t.Scopes, same) {
			return nil, errLayout
		}
		for i := range l.Scopes {
			l.Scopes[i].CPUs = max(l.Scopes[i].CPUs, t.Scopes[i].CPUs)
		}
		first[k] = len(l.Columns)
		l.Columns = append(l.Columns, t.runColumns(l.Columns)...)
	}
	all := NewTable(l)
	all.Label, all.CPU = runs[0].Label, runs[0].CPU
	known := 0
	for k, t := range runs {
		for i := range t.Scopes {
			copy(all.Row(i)[first[k]:], t.Row(i))
		}
		all.Relative = all.Relative || t.Relative
		all.note(t.Notes...)
		if !math.IsNaN(t.Duration) {
			known++
			if math.IsNaN(all.Duration) {
				all.Duration = 0
			}
			all.Duration += (t.Duration - all.Duration) / float64(known)
		}
	}
	for j := range l.Columns {
		for i := range l.Scopes {
			all.Cell(i, j).OfRuns(len(runs))
		}
		l.Columns[j].Parts = len(runs)
	}
	if len(runs) > 1 {
		all.note(Notef("counted in %d runs, each with other events: a figure of events of several runs is of the same work only if these did the same", len(runs)))
	}
	return all, nil
}

// OfRuns makes a cell of one run that of one of several: it was counted for a part of the
// time of all.
func (c *Cell) OfRuns(n int) {
	c.Enabled *= float64(n)
	c.Lost *= float64(n)
}

// note adds notes that are not there yet.
func (t *Table) note(notes ...Note) {
	for _, n := range notes {
		if len(t.Notes) < notesMost && !slices.Contains(t.Notes, n) {
			t.Notes = append(t.Notes, n)
		}
	}
}

// runColumns returns the columns of one of several runs. Its groups are numbered after the
// others'. Events that were always counted are a group of their own, or join the run's only
// group.
func (t *Table) runColumns(others []Column) []Column {
	group, whole := 0, 0
	for _, c := range others {
		group, whole = max(group, c.Group), max(whole, c.Whole)
	}
	columns := slices.Clone(t.Columns)
	always := group + 1
	turns := map[int]bool{}
	for i := range columns {
		c := &columns[i]
		if c.Whole > 0 {
			c.Whole += whole
		}
		switch {
		case t.always(i):
			c.Group = always
		case c.Group > 0:
			c.Group += always
			turns[c.Group] = true
		}
	}
	if len(turns) == 1 {
		for i := range columns {
			if columns[i].Group > always {
				columns[i].Group = always
			}
		}
	}
	return columns
}

// always reports whether a column was counted all of the time, wherever it was counted.
func (t *Table) always(column int) bool {
	any := false
	for i := range t.Scopes {
		c := t.Cell(i, column)
		if !c.Ok() {
			continue
		}
		if any = c.Coverage() >= 0.9999; !any { // perf prints two decimals of a percentage
			return false
		}
	}
	return any
}

// Apart says how far apart the runs' counts of an event are that several of them
// counted: of the one that the most did, and if there are several such, that differs
// most. It is "" if there is none.
func Apart(runs []*Table) string {
	type extent struct {
		n         int // runs
		low, high float64
	}
	counted := map[string]*extent{}
	var names []string
	for _, r := range runs {
		seen := map[string]bool{}
		for j, c := range r.Columns {
			cell := r.Cell(0, j)
			if !cell.Ok() || seen[c.Event] {
				continue
			}
			seen[c.Event] = true
			v := cell.Estimate()
			if counted[c.Event] == nil {
				names = append(names, c.Event)
				counted[c.Event] = &extent{low: v, high: v}
			}
			x := counted[c.Event]
			x.n++
			x.low, x.high = min(x.low, v), max(x.high, v)
		}
	}
	best, most, apart := "", 1, -1.0
	for _, name := range names {
		x := counted[name]
		if share := (x.high - x.low) / x.high; x.high > 0 && (x.n > most || x.n == most && x.n > 1 && share > apart) {
			best, most, apart = name, x.n, share
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("%s was counted in %d of the runs, and differs by %.2g %% at most", best, most, 100*apart)
}
