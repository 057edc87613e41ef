package perfstat

import (
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// always is the coverage above which an event counts as counted all the time.
const always = 0.9999

// group gives the columns their groups. These are the braces on the command line. If the
// running times contradict them, the groups are what those show.
func (a *assembler) group(t *counts.Table, recs []record, b *block) {
	cols := t.Columns
	if groups := b.cmd.groupsOf(cols); groups != nil {
		broken := false
		for i, g := range groups {
			cols[i].Group = g
		}
		for i := 1; i < len(cols); i++ {
			if cols[i].Group > 0 && cols[i].Group == cols[i-1].Group && contradict(t, i-1, i) {
				broken = true
				dissolve(cols, cols[i].Group)
			}
		}
		if broken {
			b.notes.add("a group of the command line was not counted as one: its events have different running times")
		}
		return
	}
	if len(recs) > 0 && recs[0].times == relative {
		groupByShare(t)
		return
	}
	groupByRunning(t)
}

// groupsOf returns the groups that the command line gives to columns. It is nil unless
// that has braces and names all columns in order.
func (c *command) groupsOf(cols []counts.Column) []int {
	if c == nil || c.groups == 0 || len(c.events) != len(cols) {
		return nil
	}
	groups := make([]int, len(cols))
	for i, q := range c.events {
		if !q.prints(cols[i].Event) {
			return nil
		}
		groups[i] = q.group
	}
	return groups
}

func dissolve(cols []counts.Column, group int) {
	for i := range cols {
		if cols[i].Group == group {
			cols[i].Group = 0
		}
	}
}

// contradict reports whether two columns have running times that events of one
// group cannot have.
func contradict(t *counts.Table, i, j int) bool {
	for s := range t.Scopes {
		a, b := t.Cell(s, i), t.Cell(s, j)
		if ca, cb := a.Coverage(), b.Coverage(); a.Ok() && b.Ok() && math.Abs(ca-cb) > 0.001*max(ca, cb) {
			return true
		}
	}
	return false
}

// groupByRunning puts together neighbouring columns that were on counters for
// the same number of nanoseconds in every scope: the kernel reads one clock for
// the events that it switches together, and no two others agree to the
// nanosecond.
func groupByRunning(t *counts.Table) {
	group := 0
	for i := 1; i < len(t.Columns); i++ {
		if !sameRunning(t, i-1, i) {
			continue
		}
		if t.Columns[i-1].Group == 0 {
			group++
			t.Columns[i-1].Group = group
		}
		t.Columns[i].Group = group
	}
}

func sameRunning(t *counts.Table, i, j int) bool {
	shared := false
	for s := range t.Scopes {
		a, b := t.Cell(s, i), t.Cell(s, j)
		if !a.Ok() || !b.Ok() {
			if a.State != b.State {
				return false
			}
			continue
		}
		if a.Running != b.Running || a.Running == 0 {
			return false
		}
		shared = shared || a.Coverage() < always && b.Coverage() < always
	}
	return shared
}

// groupByShare puts neighbouring columns with equal percentages into groups.
// Percentages have only two decimals, and events that are multiplexed one by one easily
// have equal ones. But groups are multiplexed as a whole: their shares, one for each
// group, add up to a whole number of counter sets. Shares of single events do so only
// by chance.
func groupByShare(t *counts.Table) {
	if len(t.Scopes) != 1 {
		return
	}
	row := t.Row(0)
	group, sets, sum, joined := 0, 0, 0.0, false
	last := -1 // the last column that was multiplexed
	for i := range row {
		if !row[i].Ok() || !(row[i].Coverage() < always) {
			last = -1
			continue
		}
		if last >= 0 && row[i].Running == row[last].Running {
			if t.Columns[last].Group == 0 {
				group++
				t.Columns[last].Group = group
			}
			t.Columns[i].Group = group
			joined = true
		} else {
			sum += row[i].Coverage()
			sets++
		}
		last = i
	}
	const tolerance = 0.01
	if whole := math.Round(sum); !joined || sets < 2 || whole < 1 || math.Abs(sum-whole) > tolerance {
		for i := range t.Columns {
			t.Columns[i].Group = 0
		}
	}
}
