package report

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/page"
)

// The timeline of a recording: one row of small bars for the whole and for each node. It stands
// above the intervals' lines, or instead of too many.

const (
	sparksFrom = 8  // the least number of intervals with bars
	rowsMost   = 60 // lines of intervals, more than that are not printed
	sparkLabel = 30 // width of what stands before the bars
	piecesMost = 4  // lines of bars for each node
)

// bars are the heights of a bar.
var bars = []rune("▁▂▃▄▅▆▇█")

// sparks writes the bars of all intervals, in pieces if they do not fit into a line. Where the pieces
// would be too many, a bar is the largest of some neighbours: a mean would hide what is short.
func (p *profile) sparks() {
	parts := p.lines[1:]
	step := 0.0
	for i := range parts {
		step = math.Max(step, parts[i].end-parts[i].start)
	}
	first := parts[0].start
	last := first
	for i := range parts {
		last = math.Max(last, parts[i].end)
	}
	number := func(end float64) int { return max(1, int((end-first)/step+0.5)) - 1 }
	if !((last-first)/step < math.MaxInt32) {
		return
	}
	room := max(20, p.Width-sparkLabel)
	each := number(last)/(piecesMost*room) + 1
	n := number(last)/each + 1
	series := func(of func(*profileLine) beat) []beat {
		list := make([]beat, n)
		for i := range list {
			list[i].value = math.NaN()
		}
		for i := range parts {
			list[number(parts[i].end)/each].largest(of(&parts[i]))
		}
		return list
	}
	width, of := step*float64(each), ""
	if each > 1 {
		of = ", the largest of " + strconv.Itoa(each) + " intervals"
	}
	for from := 0; from < n; from += room {
		to := min(n, from+room)
		p.Out.WriteString(p.Paint(fmt.Sprintf("%-*s%s", sparkLabel, "", page.Trim(first+float64(from)*width)+" s, "+page.Duration(width)+" each"+of), faint) + "\n")
		p.spark(p.parts.what(), series(func(l *profileLine) beat { return beat{l.part.Value, l.part.Reliable()} }), from, to, page.PercentOf)
		for k, i := range p.columns {
			p.spark(p.h.Model.Nodes[i].Name, series(func(l *profileLine) beat { return beat{l.cells[k].value, l.cells[k].st != dim} }), from, to,
				func(v float64) string { return page.Figure(p.h.Model, i, v) })
		}
		for k := range p.events {
			c := &p.events[k]
			p.spark(cmp.Or(c.As, c.Event), series(func(l *profileLine) beat { x := &l.cells[len(p.columns)+k]; return beat{x.value, x.st != dim} }), from, to, page.PercentOf)
		}
		p.Out.WriteByte('\n')
	}
}

// A beat is what one bar shows.
type beat struct {
	value    float64
	reliable bool
}

// largest makes a bar the larger of itself and another. A reliable one is larger than any other.
func (b *beat) largest(o beat) {
	if math.IsNaN(b.value) || o.reliable && !b.reliable || o.reliable == b.reliable && o.value > b.value {
		*b = o
	}
}

// spark writes one row of bars, from 0 to the largest reliable value. An interval
// without a value has none, and one with an unreliable value has a dot.
func (p *profile) spark(name string, list []beat, from, to int, text func(float64) string) {
	top := 0.0
	for _, b := range list {
		if b.reliable && b.value > top {
			top = b.value
		}
	}
	var row strings.Builder
	for _, b := range list[from:to] {
		switch {
		case math.IsNaN(b.value):
			row.WriteByte(' ')
		case !b.reliable || !(b.value > 0):
			row.WriteRune('·')
		default:
			row.WriteRune(bars[max(0, int(math.Ceil(b.value/top*float64(len(bars))))-1)])
		}
	}
	scale := "≤ " + text(top)
	if !(top > 0) {
		scale = ""
	}
	label := fmt.Sprintf("  %s%*s  ", page.Padded(page.Cut(name, 16), 16), sparkLabel-20, scale)
	p.Out.WriteString(p.Paint(label, faint) + strings.TrimRight(row.String(), " ") + "\n")
}
