package account

import (
	"fmt"
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// What intervals and repeats are judged by.
const (
	stillMost    = 5    // intervals in a row with one and the same count
	stillCount   = 1000 // of at least so much: small counts are equal by chance
	trendLeast   = 0.1  // of the mean rate, from the first interval to the last
	trendSure    = 3.5  // standard errors
	repeatsApart = 0.05 // standard error of the mean of repeats, relative to it
)

// checkCourse checks how the counts of a recording in intervals came about, and
// how far repeats lie apart: a counter that stands still did not count, and
// rates that change are something the program and the machine did.
func (b *Binding) checkCourse(a *Account) {
	if a.Scope.Code != nil {
		return
	}
	row := a.place.Self
	var trends, peaks, stopped, repeats []string
	runs, went := false, false // on to the end
	for col := range b.Layout.Columns {
		if !b.core[col] && !b.taskClock[col] {
			continue
		}
		c, ok := b.scaled(a.table, row, col)
		if !ok {
			continue
		}
		if c.Repeats > 1 && c.Variance > 0 {
			if sd := math.Sqrt(c.Variance) / c.Value; sd > repeatsApart {
				repeats = append(repeats, fmt.Sprintf("%s (± %.0f %%)", b.Names[col], 100*sd))
			}
		}
		if course := a.table.Course(row, col); course != nil && b.core[col] {
			runs = course.Runs
			if !runs { // a program may well do the same in each run
				b.checkStill(a, col, course)
			}
			went = went || course.Idle == 0
			if per := c.Value / float64(course.Intervals-course.Idle); course.Idle >= stillMost && per >= stillCount {
				stopped = append(stopped, fmt.Sprintf("%s (%d intervals)", b.Names[col], course.Idle))
			}
			if rise, sd := course.Trend(); math.Abs(rise) > trendLeast && math.Abs(rise) > trendSure*sd {
				trends = append(trends, fmt.Sprintf("%s (%+.0f %%)", b.Names[col], 100*rise))
			}
			if times := course.Outlier(); times > 0 {
				peaks = append(peaks, fmt.Sprintf("%s (%.0f times its mean)", b.Names[col], times))
			}
		}
	}
	if runs {
		a.found("later runs count at the rates of earlier ones", Machine, trends,
			"The rates rise or fall from run to run: the machine warms up or slows down, or runs leave something behind. The mean is of all runs.")
		a.found("no run stands out", Machine, peaks,
			"One run has most of the variation: something happened once. The mean includes it.")
	} else {
		a.found("the rates stay the same over the recording", Machine, trends,
			"The rates rise or fall over the recording: the program warms up, or does something else. The account is of all of it.")
		a.found("no interval stands out", Machine, peaks,
			"One interval has most of the variation: something happened once. The account is of all intervals; -I shows which.")
	}
	if went {
		a.found("counters count to the end", Measurement, stopped,
			"From some interval on they counted nothing: the counters stopped, or the program no longer does this.")
	}
	a.found("repeats agree", Machine, repeats,
		"The runs differ more than counters do: other programs ran, or the program varies. Count more runs, or on a quiet machine.")
}

// checkErrata says which counts the vendor says may be wrong.
func (b *Binding) checkErrata(a *Account) {
	if a.Scope.Code != nil {
		return
	}
	a.found("counts without documented errata", Measurement, b.errata,
		"On some steppings of this processor these events count wrongly, mostly too much, as the vendor's specification update says. Do not rely on small differences.")
}

// checkStill checks that a count changes from interval to interval.
func (b *Binding) checkStill(a *Account, col int, c *counts.Course) {
	if per := a.table.Cell(a.place.Self, col).Value / float64(c.Intervals); c.Still < stillMost || per < stillCount {
		return
	}
	b.countFails(a, col, still, "=", math.NaN(), math.NaN())
}

// found adds a finding about some events; nothing if there are none.
func (a *Account) found(name string, side Side, events []string, text string) {
	if len(events) == 0 {
		return
	}
	nan := math.NaN()
	a.Checks = append(a.Checks, Check{Name: name, Op: "=", Left: nan, Right: nan, Residual: nan, State: Fails, Common: true, Side: side,
		Events: events, Text: text, rule: -1})
}
