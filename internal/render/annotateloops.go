package render

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/page"
)

// The loops of an annotated function, and how often its code was executed.

// loops writes the table of the loops that have samples.
func (t *annotation) loops() {
	var rows []int
	for i := range t.c.Loops {
		if t.c.Loops[i].Row > 0 {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		return
	}
	what := t.d.what(t.clock())
	if page.Runes(what) > 10 {
		what = "share"
	}
	places := make([]string, len(t.c.Loops))
	width := 24
	for _, i := range rows {
		places[i] = t.loopPlace(i)
		width = max(width, min(page.Runes(places[i])+gap, t.Width-76))
	}
	head := "loop  " + page.Padded("lines", width) + pad(what, 10)
	if t.c.Executions != "" {
		head += fmt.Sprintf("%18s%20s", "iterations", "trips")
	}
	t.Out.WriteString(t.Paint(head, faint) + "\n")
	for _, i := range rows {
		t.loop(i, page.Padded(page.Cut(places[i], width-gap), width))
	}
	t.iterations(rows)
	t.inCore()
	if t.c.Executions == "" {
		t.Paragraph("", "iterations are not known: sample retired instructions precisely, or branch stacks", 0, faint)
	}
	t.Out.WriteByte('\n')
}

// loopPlace is the lines of a loop, indented by how deep it lies.
func (t *annotation) loopPlace(i int) string {
	l := &t.c.Loops[i]
	where := "–"
	if l.First > 0 {
		where = fmt.Sprintf("%s:%d–%d", page.Printable(path.Base(l.File)), l.First, l.Last)
		if l.First == l.Last {
			where = fmt.Sprintf("%s:%d", page.Printable(path.Base(l.File)), l.First)
		}
	}
	return strings.Repeat("  ", min(loopsDrawn, t.c.Graph.Loops[i].Depth)-1) + where
}

func (t *annotation) loop(i int, place string) {
	l := &t.c.Loops[i]
	line := fmt.Sprintf("%4d  %s%s", i+1, place, pad(page.PercentOf(l.Share), 10))
	if t.c.Executions != "" {
		line += pad(plusMinus(l.Executed.Iterations.Value, l.Executed.Iterations.Error()), 18) + pad(t.trips(i), 20)
	}
	st := plain
	if account.IsHotspot(l.Share) {
		st = bold
	}
	t.Out.WriteString(t.Paint(strings.TrimRight(line, " "), st) + "\n")
}

// iterations writes what the events come to in one iteration of each loop.
func (t *annotation) iterations(rows []int) {
	const name, width = 34, 11
	rows = slices.DeleteFunc(rows, func(i int) bool { return len(t.c.Loops[i].PerIter) == 0 })
	rows = rows[:min(len(rows), max(0, t.Width-name)/width)]
	if len(rows) == 0 {
		return
	}
	head := fmt.Sprintf("\n%-*s", name, "in each iteration of loop")
	for _, i := range rows {
		head += pad(strconv.Itoa(i+1), width-1) + " "
	}
	t.Out.WriteString(t.Paint(strings.TrimRight(head, " "), faint) + "\n")
	for col := range t.c.Table.Columns {
		line, any := page.Padded(page.Cut(page.Printable(t.c.Table.Columns[col].Event), name-gap), name), false
		for _, i := range rows {
			text := " "
			for _, p := range t.c.Loops[i].PerIter {
				if p.Event == t.c.Table.Columns[col].Event {
					text, any = t.perIteration(p), true
				}
			}
			line += pad(text, width)
		}
		if any {
			t.Out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
}

func (t *annotation) perIteration(p annotate.PerIteration) string {
	if p.Error >= p.Value {
		t.grey = true
		return trim3(p.Value) + "?"
	}
	return trim3(p.Value) + " "
}

func pad(s string, width int) string { return strings.Repeat(" ", max(0, width-page.Runes(s))) + s }

// trips is a loop's average trip count.
func (t *annotation) trips(i int) string {
	l := &t.c.Loops[i]
	switch {
	case !math.IsNaN(l.Executed.Trips) && l.Executed.Error >= l.Executed.Trips:
		t.grey = true
		return plusMinus(l.Executed.Trips, l.Executed.Error) + "?"
	case !math.IsNaN(l.Executed.Trips):
		return plusMinus(l.Executed.Trips, l.Executed.Error)
	case !math.IsNaN(l.Executed.Least):
		return "at least " + trim3(l.Executed.Least)
	}
	return "–"
}

func plusMinus(v, e float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsNaN(e):
		return counted(v)
	}
	return counted(v) + " ± " + counted(e)
}

// counted is how often something happened, in few columns.
func counted(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.size {
			return trim3(v/u.size) + " " + u.name
		}
	}
	return trim3(v)
}

// executed is how often a block was executed.
func (t *annotation) executed(block int) string {
	e := t.c.Blocks[block].Executions
	if math.IsNaN(e.Value) || e.Samples == 0 {
		return ""
	}
	if text := counted(e.Value); e.Error() < e.Value {
		return text
	}
	t.grey = true
	return counted(e.Value) + "?"
}
