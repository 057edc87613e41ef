package top

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// Styles say more than their colours: terminals may have none.
var (
	plainStyle = tcell.StyleDefault
	boldStyle  = tcell.StyleDefault.Bold(true)
	dimStyle   = tcell.StyleDefault.Dim(true)
	wayStyle   = boldStyle.Foreground(tcell.ColorRed)
	barStyle   = plainStyle.Foreground(tcell.ColorTeal)
)

// coloured is a style for a screen. Without colours, tcell would draw it in reverse.
func coloured(s tcell.Screen, style tcell.Style) tcell.Style {
	if s.Colors() == 0 {
		return style.Foreground(tcell.ColorDefault)
	}
	return style
}

// draw draws the view.
func (v *View) draw(s tcell.Screen) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.Clear()
	width, height := s.Size()
	state := "q quits  p pauses  Tab view  Enter opens  Esc back  +/- depth  w keeps"
	if v.message != "" {
		state = page.Printable(v.message)
	}
	put(s, 0, 0, width, v.title(), boldStyle)
	v.drawViews(s, width)
	put(s, 0, height-1, width, state, dimStyle)
	switch {
	case len(v.now) == 0 && v.ended:
		put(s, 0, 3, width, "it has ended, and nothing was counted", plainStyle)
	case len(v.now) == 0:
		put(s, 0, 3, width, "counting, or waiting for a sample…", plainStyle)
	case v.list():
		v.drawList(s, width, height)
	default:
		v.drawTree(s, width, height)
	}
	s.Show()
}

// drawViews draws the names of the views, and the way to what is watched. The view that is
// shown is in reverse.
func (v *View) drawViews(s tcell.Screen, width int) {
	x := 0
	for i, k := range Views {
		style := dimStyle
		if k == v.scope().By {
			style = boldStyle.Reverse(true)
		}
		text := fmt.Sprintf("%d %s", i+1, names[k])
		put(s, x, 1, width-x, text, style)
		x += page.Runes(text) + 2
	}
	way := v.way()
	put(s, 0, 2, width, way, dimStyle)
}

// way is how what is watched was reached.
func (v *View) way() string {
	parts := []string{"all"}
	for i := range v.scopes[1:] {
		switch s, before := &v.scopes[i+1], &v.scopes[i]; {
		case s.Code != before.Code && s.Code.Function != "":
			parts = append(parts, s.Code.Function)
		case s.Code != before.Code:
			parts = append(parts, s.Code.Module)
		case s.Part != nil:
			parts = append(parts, s.Part.Kind.String()+" "+s.Part.Label)
		}
	}
	if s := v.scope(); !slices.Contains(Views, s.By) {
		parts = append(parts, "by "+s.By.String())
	}
	if v.of != "" {
		parts = append(parts, v.part().label)
	}
	return page.Printable(strings.Join(parts, " › "))
}

// title is the first line.
func (v *View) title() string {
	parts := []string{v.Name}
	if v.header.CPU != nil {
		parts = append(parts, "on "+v.header.CPU.Name, v.header.Model.Name+" "+v.header.Model.Version)
	}
	if v.header.How != "" {
		parts = append(parts, v.header.How)
	}
	if p := v.header.Profile; p != nil {
		parts = append(parts, fmt.Sprintf("%d samples of %s", p.Samples, p.Event))
	}
	if v.ended {
		parts = append([]string{"ENDED"}, parts...)
	}
	if v.paused {
		parts = append([]string{"PAUSED"}, parts...)
	}
	return page.Printable(strings.Join(parts, ", "))
}

// part returns the part whose tree is shown.
func (v *View) part() *part {
	for i := range v.now {
		if v.now[i].key == v.of {
			return &v.now[i]
		}
	}
	return &v.now[0]
}

// depth is that of a node in its tree, 1 for the highest.
func depth(path string) int { return strings.Count(path, ".") + 1 }

// top is the first line of what is shown, and the lines around it.
const (
	firstLine = 3
	otherLine = firstLine + 2
)

const (
	nameWidth  = 32
	valueWidth = 10
	errorWidth = 9
)

func (v *View) drawTree(s tcell.Screen, width, height int) {
	p := v.part()
	var shown []node
	for _, n := range p.nodes {
		if depth(n.path) <= v.level {
			shown = append(shown, n)
		}
	}
	room := max(0, height-otherLine)
	v.selected = min(v.selected, max(0, len(shown)-1))
	from := max(0, min(v.selected-room/2, len(shown)-room))
	spark := max(0, width-nameWidth-valueWidth-errorWidth-24)
	for i, n := range shown[from:min(len(shown), from+room)] {
		y, style := firstLine+i, plainStyle
		switch {
		case n.onWay:
			style = coloured(s, wayStyle)
		case !n.reliable:
			style = dimStyle
		case n.flagged:
			style = boldStyle
		}
		if from+i == v.selected {
			style = style.Reverse(true)
		}
		mark := ""
		if !n.reliable && n.value != "–" {
			mark = " ?"
		}
		if n.onWay {
			mark += " ◄"
		}
		put(s, 0, y, nameWidth, strings.Repeat("  ", strings.Count(n.path, "."))+n.name, style)
		put(s, nameWidth, y, valueWidth, fmt.Sprintf("%*s", valueWidth, n.value), style)
		put(s, nameWidth+valueWidth+1, y, errorWidth+3, plusMinus(n.err)+mark, style)
		put(s, nameWidth+valueWidth+errorWidth+4, y, 20, page.Bar(n.share, 1), coloured(s, barStyle))
		put(s, width-spark, y, spark, v.sparkline(p.key, n.path, spark), coloured(s, barStyle))
	}
	put(s, 0, height-2, width, fmt.Sprintf("%d of %d nodes, depth %d", len(shown), len(p.nodes), v.level), dimStyle)
}

func plusMinus(err string) string {
	if err == "" {
		return ""
	}
	return "± " + err
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// sparkline is the course of a node's value, a character for each interval.
func (v *View) sparkline(key, path string, width int) string {
	list := v.past[key]
	list = list[max(0, len(list)-width):]
	most := 0.0
	for _, r := range list {
		if x := r[path]; x > most {
			most = x
		}
	}
	var b strings.Builder
	for _, r := range list {
		x, ok := r[path]
		switch {
		case !ok || math.IsNaN(x) || most == 0:
			b.WriteByte(' ')
		default:
			b.WriteRune(blocks[max(0, min(len(blocks)-1, int(x/most*float64(len(blocks)))))])
		}
	}
	return b.String()
}

// heads are the nodes that a list has columns for: the highest, or the parts of the only one.
func (v *View) heads() []node {
	var heads []node
	for level := 1; level <= 2 && len(heads) <= 1; level++ {
		var list []node
		for _, n := range v.now[0].nodes {
			if depth(n.path) == level && n.value != "–" {
				list = append(list, n)
			}
		}
		if len(list) > 0 {
			heads = list
		}
	}
	return heads
}

// Widths of a list. What the columns leave is the name's.
const (
	listLeast   = 24
	listMost    = 72
	headWidth   = 12
	shareWidth  = 9
	sparkLeast  = 8
	sparkMost   = 40
	moduleWidth = 18
)

// drawList draws a line for each part.
func (v *View) drawList(s tcell.Screen, width, height int) {
	heads, sampled := v.heads(), v.header.Profile != nil
	shares := 0
	if sampled {
		shares = shareWidth
	}
	room := max(0, height-otherLine-1)
	v.point()
	from := max(0, min(v.selected-room/2, len(v.now)-room))
	heads = heads[:max(0, min(len(heads), (width-listLeast-shares)/headWidth))]
	module := 0
	if v.scope().By == counts.Function && width >= 2*listLeast+shares+moduleWidth {
		module = moduleWidth
	}
	left := width - shares - len(heads)*headWidth - module - 1
	nameWidth := max(listLeast, min(listMost, left-min(sparkMost, max(sparkLeast, left/3))))
	spark := min(sparkMost, left-nameWidth)
	columns := func(y int, style tcell.Style, name, share, module string, value func(head node) string) (end int) {
		put(s, 0, y, nameWidth-1, page.Cut(page.Shorter(name, nameWidth-1), nameWidth-1), style)
		x := nameWidth
		if sampled {
			put(s, x, y, shares, fmt.Sprintf("%*s", shares, share), style)
			x += shares
		}
		for _, h := range heads {
			put(s, x, y, headWidth, fmt.Sprintf("%*s", headWidth, page.Cut(value(h), headWidth-1)), style)
			x += headWidth
		}
		put(s, x+1, y, max(0, moduleWidth-2), page.Cut(module, moduleWidth-2), style)
		return x + 1
	}
	of := ""
	if module > 0 {
		of = "module"
	}
	columns(firstLine, dimStyle, v.scope().By.String(), "share", of, func(h node) string { return h.name })
	for i, p := range v.now[from:min(len(v.now), from+room)] {
		style := plainStyle
		if from+i == v.selected {
			style = style.Reverse(true)
		}
		of := ""
		if module > 0 && p.scope.Code != nil {
			of = page.Printable(p.scope.Code.Module[strings.LastIndexByte(p.scope.Code.Module, '/')+1:])
		}
		x := columns(firstLine+1+i, style, p.label, page.PercentOf(p.share), of, func(h node) string {
			for _, n := range p.nodes {
				if n.path == h.path {
					return n.value
				}
			}
			return "–"
		})
		if spark >= sparkLeast {
			course := shareKey
			if !sampled && len(heads) > 0 {
				course = heads[0].path
			}
			put(s, x+module, firstLine+1+i, spark, v.sparkline(p.key, course, spark), coloured(s, barStyle))
		}
	}
	put(s, 0, height-2, width, v.remark(), dimStyle)
}

// point selects the part that was selected, wherever it is now.
func (v *View) point() {
	if i := slices.IndexFunc(v.now, func(p part) bool { return p.key == v.pointed }); i >= 0 && v.pointed != "" {
		v.selected = i
	}
	v.selected = min(v.selected, len(v.now)-1)
	v.pointed = v.now[v.selected].key
}

// remark is the line below a list.
func (v *View) remark() string {
	text := page.Several(len(v.now), "line")
	if p := v.header.Profile; p != nil {
		text = fmt.Sprintf("%d of %d %s", len(v.now)-1, p.Places, names[v.scope().By])
		if p.Flat != "" {
			text += "; " + p.Flat
		}
	}
	return page.Printable(text)
}

// put writes text into a part of a line.
func put(s tcell.Screen, x, y, width int, text string, style tcell.Style) {
	for _, r := range text {
		if width <= 0 {
			return
		}
		s.SetContent(x, y, r, nil, style)
		x++
		width--
	}
}
