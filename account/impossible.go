package account

import (
	"fmt"
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// What no count can pass, whatever is counted.
const (
	mostPerCycle  = 512     // of any event of a core: none counts more than the requests that can be outstanding
	mostPerSecond = 6.5e9   // cycles: the fastest cores reach 6.2 GHz
	mostCPUs      = 4096    // logical processors, where their number is not known
	longSeconds   = 0.25    // each of the multiplexed groups has had a time slice by then
	longCount     = 1e8     // the same, of the largest count, where the time that the program ran is not known
	wrapped       = 1 << 47 // more than half of what counters hold, on most processors
	alone         = 1000    // times as much as any other event of the core
	readingsApart = 0.02    // two readings of one event, relative to the larger, as they are not made at one moment
	never         = 0.0005  // of the time: less than perf's percentages show
)

// checkCounts checks what each count must satisfy by itself: that it is possible and was
// counted at all, and that several readings of one event agree.
func (b *Binding) checkCounts(a *Account) {
	if a.Scope.Code != nil {
		return
	}
	rows := a.place.LP
	if len(rows) == 0 {
		rows = []int{a.place.Self}
	}
	for _, row := range rows {
		b.checkRow(a, row)
	}
}

func (b *Binding) checkRow(a *Account, row int) {
	size := b.sizeOf(a, row)
	for col := range b.Layout.Columns {
		c, ok := b.scaled(a.table, row, col)
		if !ok || c.Coverage() < never {
			b.checkRan(a, row, col, &c, size.long)
			continue
		}
		b.checkPossible(a, col, &c, size)
		if !b.alone {
			b.checkReadings(a, row, col)
		}
	}
}

// A size says how large the counts of a row are.
type size struct {
	cycles float64 // of the core; 0 if there are none
	most   float64 // the largest count of an event of the core
	next   float64 // the second largest
	long   bool    // what was counted ran long enough for all groups to have had turns
	row    int
}

// sizeOf says how large the counts of a row are, which is worked out once.
func (b *Binding) sizeOf(a *Account, row int) size {
	for i := range a.sizes {
		if a.sizes[i].row == row {
			return a.sizes[i]
		}
	}
	s := b.measure(a, row)
	a.sizes = append(a.sizes, s)
	return s
}

func (b *Binding) measure(a *Account, row int) size {
	s := size{row: row}
	ran := math.NaN()
	for col := range b.Layout.Columns {
		c, ok := b.scaled(a.table, row, col)
		if !ok {
			continue
		}
		v := c.Estimate()
		if b.taskClock[col] {
			ran = v / 1e9
		}
		if !b.core[col] || b.ids[col].PMU == "msr" {
			continue
		}
		s.most, s.next = max(s.most, v), max(s.next, min(s.most, v))
		if b.cycles[col] {
			s.cycles = max(s.cycles, v)
		}
	}
	s.long = ran >= longSeconds || math.IsNaN(ran) && s.most >= longCount
	return s
}

// checkPossible checks that a count is a number that the time allows.
func (b *Binding) checkPossible(a *Account, col int, c *counts.Cell, s size) {
	value := c.Estimate()
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		b.countFails(a, col, negative, ">=", value, 0)
		return
	}
	if !b.core[col] {
		return
	}
	if most := b.mostInTime(a, col); value > most {
		b.countFails(a, col, timeless, "<=", value, most)
	} else if b.ids[col].PMU == "msr" && value <= mostPerSecond*c.Enabled/1e9 {
		return // clocks go on while processors are idle
	} else if most := alone * s.next; s.next > 0 && value > wrapped && value > most {
		b.countFails(a, col, foreign, "<=", value, most)
	} else if most := mostPerCycle * s.cycles; s.cycles > 0 && !b.cycles[col] && b.ids[col].PMU != "msr" && value > most {
		b.countFails(a, col, cycleless, "<=", value, most)
	}
}

// mostInTime is the most that a column can count in the time of the account.
func (b *Binding) mostInTime(a *Account, col int) float64 {
	if !(a.Duration > 0) {
		return math.Inf(1)
	}
	cpus := float64(mostCPUs)
	if a.Scope.CPUs > 0 {
		cpus = float64(a.Scope.CPUs)
	}
	most := mostPerSecond * a.Duration * cpus
	if !b.cycles[col] {
		most *= mostPerCycle
	}
	return most
}

// wrongs are the names of checks of single counts, and what it means if one fails:
// the name of the event comes before.
var wrongs = map[wrong][2]string{
	negative: {"counts are numbers from 0 up", " is not a number of events: a counter wrapped, or was read while it ran."},
	timeless: {"counts fit into the time", " is more than the clock of any core allows in the time: the counter wrapped, or was read wrongly."},
	foreign: {"counts are of one run",
		" is over a thousand times any other event of the core, and over half of what a counter holds: it wrapped, or was read wrongly."},
	cycleless: {"counts fit into the cycles", fmt.Sprintf(" is more than %d for each cycle: the counter wrapped, or was read wrongly.", mostPerCycle)},
	idle: {"each event had a counter", " was never on a counter, though the run was long enough: another user of the counters (the watchdog for hard lockups, " +
		"a profiler) kept it off, or its group needs too many. The count is unknown, not 0."},
	still: {"counts change from interval to interval",
		" has the same count in several intervals in a row, to the last digit: the counter stuck, or one reading was taken again and again."},
	twofold: {"readings of one event agree", " was counted more than once, with different results: at most one of them is right. " +
		"With multiplexed groups, a loop of the program may take as long as their rotation: each group then sees its own part of it."},
}

// wordsOf says what is wrong with the count of a column.
func (b *Binding) wordsOf(a *Account, what wrong, col int) *words {
	w, ok := a.said[finding{what, col}]
	if !ok {
		w = a.say(finding{what, col}, words{name: wrongs[what][0], text: b.Names[col] + wrongs[what][1], events: []string{b.Names[col]}})
	}
	return w
}

// countFails adds a check of a count that fails.
func (b *Binding) countFails(a *Account, col int, what wrong, op string, left, right float64) {
	w := b.wordsOf(a, what, col)
	c := Check{Name: w.name, Op: op, Left: left, Right: right, Identity: true, Common: true, Side: Measurement, State: Fails,
		Events: w.events, Text: w.text, Residual: math.NaN(), rule: -1}
	if scale := c.scale(); scale > 0 && !math.IsInf(scale, 0) {
		c.Residual = (left - right) / scale
	}
	a.Checks = append(a.Checks, c)
}

// checkRan checks that a requested event was on a counter, if the run was long enough to
// schedule each group. One that the kernel refused is another matter, and so is one that
// other groups have as well.
func (b *Binding) checkRan(a *Account, row, col int, c *counts.Cell, long bool) {
	inVain := c.State == counts.NotCounted || c.Ok() && c.Value == 0
	software := b.ids[col].PMU == "software"
	if !inVain || c.Ok() && software || !long || !b.core[col] && !software || b.otherCore[col] || b.elsewhere(a, row, col) {
		return
	}
	b.countFails(a, col, idle, ">=", math.NaN(), math.NaN())
}

// elsewhere reports whether an event was counted in another column.
func (b *Binding) elsewhere(a *Account, row, col int) bool {
	for k := range b.Layout.Columns {
		if c := a.table.Cell(row, k); k != col && b.ids[k] == b.ids[col] && c.Ok() && !(c.Coverage() < never) {
			return true
		}
	}
	return false
}

// checkReadings checks that the readings of an event that was counted in
// several groups agree with the first of them.
func (b *Binding) checkReadings(a *Account, row, col int) {
	first := b.firstReading(a, row, col)
	if first < 0 {
		return
	}
	x, _ := b.scaled(a.table, row, first)
	y, _ := b.scaled(a.table, row, col)
	low, high := min(x.Estimate(), y.Estimate()), max(x.Estimate(), y.Estimate())
	apart := (high - low) / high
	if !(high > 0) || apart <= readingsApart {
		return
	}
	w := b.wordsOf(a, twofold, col)
	c := Check{Name: w.name, Op: "=", Left: x.Estimate(), Right: y.Estimate(), Residual: (x.Estimate() - y.Estimate()) / high,
		Tolerance: readingsApart, Slack: "counters are read one after the other", Identity: true, Common: true, Side: Measurement, Events: w.events, Text: w.text, twice: true, rule: -1}
	if !b.sameWindow(first, col, &x, &y) {
		ex, _ := b.columnError(a, row, first, &x)
		ey, _ := b.columnError(a, row, col, &y)
		c.Error = certain * (ratio(ex*low, x.Estimate()) + ratio(ey*low, y.Estimate())) / high // as if the smaller were right
	}
	if apart > readingsApart+c.Error {
		c.State = Fails
		a.Checks = append(a.Checks, c)
	}
}

// sameWindow reports whether two columns were counted over the same windows.
func (b *Binding) sameWindow(i, j int, x, y *counts.Cell) bool {
	g := b.Layout.Columns[i].Group
	return g > 0 && g == b.Layout.Columns[j].Group || x.Coverage() >= alwaysCounted && y.Coverage() >= alwaysCounted
}

// firstReading is the first column of a row that counted the event of another.
func (b *Binding) firstReading(a *Account, row, col int) int {
	first := -1
	for k := b.earlier[col]; k >= 0; k = b.earlier[k] {
		if c := a.table.Cell(row, k); c.Ok() && c.Coverage() >= never {
			first = k
		}
	}
	return first
}
