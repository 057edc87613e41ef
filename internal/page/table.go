package page

import (
	"fmt"
	"math"
	"strings"
)

// Widths of bars.
const (
	barWidth = 16
	barLeast = 8 // what it shrinks to where the terminal is narrow
)

// A Line is one line of a table, in parts that are aligned with those of the others.
type Line struct {
	Name, Value, Unit, Bar, Error, Cover string
	Mark, Title                          string // behind the figures
	Why                                  string // stands in place of the figures
	Style                                Style
}

// Bar draws a share of the full width, to an eighth of a column. Values
// outside 0…1 are not drawn as if they were inside: a negative one has no bar
// and one beyond the scale ends in an arrow.
func Bar(value, full float64) string {
	share := value / full
	if math.IsNaN(share) || share <= 0 {
		return ""
	}
	if share > 1.005 {
		return strings.Repeat("█", barWidth-1) + "▶"
	}
	eighths := int(math.Round(share * barWidth * 8))
	s := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return s
}

// Columns of a Line that have headings or a place of their own.
const nameCol, valueCol, unitCol, barCol, errCol, coverCol = 0, 1, 2, 3, 4, 5

// Table writes lines with their parts aligned, and behind them as much of their titles
// as there is room for. Columns that no line uses are left out.
func (p *Page) Table(title string, lines []Line) {
	cols := []func(*Line) string{
		func(l *Line) string { return l.Name }, func(l *Line) string { return l.Value },
		func(l *Line) string { return l.Unit }, func(l *Line) string { return l.Bar },
		func(l *Line) string { return l.Error }, func(l *Line) string { return l.Cover },
	}
	heads := make([]string, len(cols))
	heads[nameCol] = title
	width := make([]int, len(cols))
	partial := false
	for i := range lines {
		l := &lines[i]
		for c, get := range cols {
			width[c] = max(width[c], Runes(get(l)))
		}
		partial = partial || l.Cover != "" && l.Cover != "100 %"
	}
	if !partial {
		width[coverCol] = 0
	} else {
		heads[coverCol] = "counted"
	}
	if width[errCol] > 0 {
		heads[errCol] = "±"
	}
	for c := range cols {
		if width[c] > 0 && c != nameCol {
			width[c] = max(width[c], Runes(heads[c]))
		}
	}
	width[nameCol] = max(width[nameCol], Runes(title)-width[valueCol]-Gap)
	if over := total(width) + Gap + remarkWidth(lines) - p.Width; over > 0 && width[barCol] > 0 {
		if width[barCol]-over < barLeast && total(width)-width[barCol]+barLeast+Gap+markWidth(lines) > p.Width {
			width[barCol] = 0 // marks are not cut
		} else {
			width[barCol] = max(barLeast, width[barCol]-over)
		}
		for i := range lines {
			lines[i].Bar = shrink(lines[i].Bar, width[barCol])
		}
	}
	if total(width)+Gap+markWidth(lines) > p.Width && width[unitCol] > 0 {
		width[coverCol] = 0 // an uncertain value says so
	}
	if over := total(width) + Gap + markWidth(lines) - p.Width; over > 0 && width[unitCol] > unitLeast {
		width[unitCol] = max(unitLeast, width[unitCol]-over)
		for i := range lines {
			lines[i].Unit = Cut(lines[i].Unit, width[unitCol])
		}
	}
	p.row(heads, width, nil, Faint)
	for i := range lines {
		l := &lines[i]
		parts := make([]string, len(cols))
		for c, get := range cols {
			if width[c] > 0 {
				parts[c] = get(l)
			}
		}
		p.row(parts, width, l, l.Style)
	}
}

// total is the width of a table's columns with the gaps between them.
func total(width []int) int {
	sum := Indent - Gap
	for _, w := range width {
		if w > 0 {
			sum += w + Gap
		}
	}
	return sum
}

// shrink redraws a bar for fewer columns.
func shrink(bar string, width int) string {
	full := []rune(bar)
	n := (len(full)*width + barWidth - 1) / barWidth
	return string(full[:min(n, len(full))])
}

// unknown writes a line with its Why.
func (p *Page) unknown(l *Line, width []int) {
	front := fmt.Sprintf("%*s%-*s%*s%*s  ", Indent, "", width[0], l.Name, Gap, "", width[1], l.Value)
	p.Out.WriteString(p.Paint(front+Cut(l.Why, max(20, p.Width-Runes(front))), l.Style) + "\n")
}

// unitLeast is the width that units are cut to at most.
const unitLeast = 12

// remarkLeast is the room that remarks behind the figures are given at least.
const remarkLeast = 24

// remarkWidth is the room that the lines' remarks want: that of the longest
// mark, and some for titles.
func remarkWidth(lines []Line) int {
	w := 0
	for i := range lines {
		w = max(w, Runes(lines[i].Mark))
		if lines[i].Title != "" {
			w = max(w, remarkLeast)
		}
	}
	return w
}

// markWidth is the width of the longest mark.
func markWidth(lines []Line) int {
	w := 0
	for i := range lines {
		w = max(w, Runes(lines[i].Mark))
	}
	return w
}

// row writes one line of a table: numbers to the right, the rest to the left. Behind them,
// where there is room, are the line's mark and title.
func (p *Page) row(parts []string, width []int, l *Line, st Style) {
	if l != nil && l.Why != "" {
		p.unknown(l, width)
		return
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", Indent))
	for c, part := range parts {
		if width[c] == 0 {
			continue
		}
		pad := strings.Repeat(" ", max(0, width[c]-Runes(part)))
		if right := c == valueCol || c == errCol || c == coverCol; right {
			b.WriteString(pad + part)
		} else {
			b.WriteString(part + pad)
		}
		b.WriteString(strings.Repeat(" ", Gap))
	}
	front := b.String()
	mark, title := "", ""
	if l != nil {
		mark = l.Mark
		title = l.title(p.Width - Runes(front) - Runes(mark))
	}
	switch {
	case mark+title == "":
		front = strings.TrimRight(front, " ")
	case mark != "" && title != "":
		title = ": " + title
	}
	p.Out.WriteString(p.Paint(front, st) + p.Paint(mark, st) + p.Paint(title, Faint) + "\n")
}

// title is a line's title as far as there is room; a few letters say nothing.
func (l *Line) title(room int) string {
	const least = 12
	if l.Title == "" {
		return ""
	}
	if l.Mark != "" {
		room -= len(": ")
	}
	if room < min(least, Runes(l.Title)) {
		return ""
	}
	return Cut(l.Title, room)
}

// Sizes are the widths of the columns of rows.
func Sizes(rows ...[]string) (sizes []int) {
	for _, row := range rows {
		for k, cell := range row {
			if k == len(sizes) {
				sizes = append(sizes, 0)
			}
			sizes[k] = max(sizes[k], Runes(cell))
		}
	}
	return sizes
}

// Aligned is a row of cells in columns of some sizes, with a gap behind each. Cells of the
// columns that are left begin there, others end at the right.
func Aligned(cells []string, sizes []int, gap int, left func(column int) bool) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", Indent))
	for k, cell := range cells {
		pad := strings.Repeat(" ", max(0, sizes[k]-Runes(cell)))
		if left(k) {
			b.WriteString(cell + pad)
		} else {
			b.WriteString(pad + cell)
		}
		b.WriteString(strings.Repeat(" ", gap))
	}
	return b.String()
}
