package render

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/page"
)

// The lines of an annotated function: its instructions, and its source.

// mixed writes the instructions below their lines, in the order of their
// addresses. A line has its figures where it comes first.
func (t *annotation) mixed() {
	lines := t.lineOf()
	seen := map[int]bool{}
	shown := t.shownInsts()
	for i, last := 0, -1; i < len(t.c.Insts); i++ {
		if !shown[i] {
			i = t.skip(shown, i)
			last = -1
			continue
		}
		if n := lines[i]; n != last {
			last = n
			t.lineHead(&t.c.Lines[n], seen[n])
			seen[n] = true
		}
		t.inst(i)
	}
}

func (t *annotation) assembly() {
	shown := t.shownInsts()
	for i := 0; i < len(t.c.Insts); i++ {
		if !shown[i] {
			i = t.skip(shown, i)
			continue
		}
		t.inst(i)
	}
}

// lineOf returns the lines of the instructions.
func (t *annotation) lineOf() []int {
	of := make([]int, len(t.c.Insts))
	for n := range t.c.Lines {
		for _, i := range t.c.Lines[n].Insts {
			of[i] = n
		}
	}
	return of
}

// contextInsts is how many instructions without samples are shown around those
// with some.
const contextInsts = 4

// shownInsts says which instructions are shown: those with samples, those around
// them, and gaps too small to be worth a word.
func (t *annotation) shownInsts() []bool {
	n := len(t.c.Insts)
	shown := make([]bool, n)
	for i := range t.c.Parts {
		if t.c.Parts[i].Row > 0 || t.d.Full {
			for j := max(0, i-contextInsts); j <= min(n-1, i+contextInsts); j++ {
				shown[j] = true
			}
		}
	}
	return shown
}

// skip writes that instructions are left out, and returns the last of them.
func (t *annotation) skip(shown []bool, i int) int {
	end := i
	for end < len(shown) && !shown[end] {
		end++
	}
	text := fmt.Sprintf("⋮ %d instructions without a sample", end-i)
	if end-i == 1 {
		text = "⋮ 1 instruction without a sample"
	}
	t.row(&annotate.Part{}, "", t.loopMarks(i, true)+text, faint)
	return end - 1
}

// lineHead writes a line of the source above its instructions.
func (t *annotation) lineHead(l *annotate.Line, again bool) {
	p := &l.Part
	if again {
		p = &annotate.Part{}
	}
	st := bold
	if again || p.Row == 0 {
		st = faint
	}
	t.row(p, "", page.Cut(t.lineText(l.File, l.Line), t.room), st)
}

// lineText is a line of the source with its number.
func (t *annotation) lineText(file string, line int) string {
	if line == 0 {
		return "(no line)"
	}
	text, ok := t.sourceLine(file, line)
	if !ok {
		return fmt.Sprintf("%s:%d", page.Printable(path.Base(file)), line)
	}
	number := fmt.Sprintf("%4d  ", line)
	if file != t.mainFile() {
		number = fmt.Sprintf("%s:%d  ", page.Printable(path.Base(file)), line)
	}
	return number + strings.TrimPrefix(text, strings.Repeat(" ", max(0, min(t.margin, indentOf(text)))))
}

// sourceLine reads a line of the source, ready to be printed.
func (t *annotation) sourceLine(file string, line int) (string, bool) {
	if t.d.Text == nil || file == "" {
		return "", false
	}
	text, err := t.d.Text(file, line)
	if err != nil {
		if t.texts[file] == nil {
			t.texts[file] = err
		}
		return "", false
	}
	return page.Printable(strings.ReplaceAll(text, "\t", "    ")), true
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// indentation is what all lines of the function have, -1 if there are none to read.
func (t *annotation) indentation() int {
	least := math.MaxInt
	for i := range t.c.Lines {
		l := &t.c.Lines[i]
		if l.File != t.mainFile() || l.Line == 0 {
			continue
		}
		if text, ok := t.sourceLine(l.File, l.Line); ok && strings.TrimSpace(text) != "" {
			least = min(least, indentOf(text))
		}
	}
	if least == math.MaxInt {
		return -1
	}
	return least
}

// mainFile is the file that the function begins in.
func (t *annotation) mainFile() string {
	for i := range t.c.Lines {
		if t.c.Lines[i].Line > 0 {
			return t.c.Lines[i].File
		}
	}
	return ""
}

// inst writes an instruction.
func (t *annotation) inst(i int) {
	in := &t.c.Insts[i]
	text := fmt.Sprintf("%x", in.Addr)
	if t.numbers && !t.d.Assembly && in.Line > 0 {
		name := ""
		if in.File != t.mainFile() {
			name = page.Printable(path.Base(in.File))
		}
		text = fmt.Sprintf("%x %s:%d", in.Addr, name, in.Line)
	}
	if in.Text != "" {
		text += "  " + page.Printable(in.Text)
	}
	executed := ""
	block := t.blockAt(i)
	if block >= 0 && t.c.Blocks[block].First == i && t.c.Executions != "" {
		executed = t.executed(block)
	}
	// What does not fit goes in this order: how often the loop is run through and
	// what is hidden, where the instruction goes, the rest of its text.
	lead, mark := t.loopMarks(i, false), t.coreMark(in.Addr)+t.mark(i, block, true)
	room := t.room - page.Runes(lead)
	if page.Runes(text)+page.Runes(mark) > room {
		mark = t.mark(i, block, false)
	}
	if in.Note != "" && page.Runes(text)+1+page.Runes(page.Printable(in.Note))+page.Runes(mark) <= room {
		text += " " + page.Printable(in.Note)
	}
	text = page.Cut(text, max(12, room-page.Runes(mark)))
	st := plain
	if p := &t.c.Parts[i]; p.Row == 0 {
		st = faint
	}
	t.row(&t.c.Parts[i], executed, lead+text+mark, st)
}

// mark is what stands behind an instruction: what is hidden there, and that a loop
// begins; in full also which events are hidden, and how often the loop is run
// through.
func (t *annotation) mark(i, block int, full bool) string {
	var words []string
	if block >= 0 && t.c.Blocks[block].First == i {
		for n := range t.c.Loops {
			if t.c.Graph.Loops[n].Header == block {
				words = append(words, t.loopMark(n, full))
			}
		}
	}
	if block >= 0 && t.c.Blocks[block].Last == i && full {
		words = append(words, outcome(&t.c.Blocks[block])...)
	}
	p := &t.c.Parts[i]
	var names []string
	for k := range p.Hidden {
		if p.Hidden[k].IsHidden() && slices.ContainsFunc(t.columns, func(c annotationColumn) bool { return c.cost == k }) {
			names = append(names, t.c.Account.Model().Nodes[t.c.Costs[k].Node].Name)
		}
	}
	switch {
	case len(names) > 0 && full:
		words = append(words, strings.Join(names, ", ")+" hidden")
	case len(names) > 0:
		words = append(words, "hidden")
	}
	if len(words) == 0 {
		return ""
	}
	return "  ◄ " + strings.Join(words, ", ")
}

func (t *annotation) loopMark(n int, trips bool) string {
	l := &t.c.Loops[n]
	text := fmt.Sprintf("loop %d", n+1)
	if trips && !math.IsNaN(l.Executed.Trips) && t.c.Executions != "" {
		text += ": " + trim3(l.Executed.Trips) + " trips"
		if l.Executed.Error >= l.Executed.Trips {
			text += "?"
		}
	}
	if trips && l.Cycles.Samples > 0 {
		text += ", " + trim3(l.Cycles.Value) + " cycles each"
	}
	return text
}

// outcome is what branch stacks say of the branch at the end of a block.
func outcome(b *annotate.Block) []string {
	var words []string
	if b.Cycles.Samples > 0 {
		words = append(words, trim3(b.Cycles.Value)+" cycles")
	}
	if share, _ := b.End.Share(); b.End.Mispredicted > 0 {
		words = append(words, page.PercentOf(share)+" mispredicted")
	}
	return words
}

func (t *annotation) blockAt(i int) int {
	n, ok := slices.BinarySearchFunc(t.c.Blocks, i, func(b annotate.Block, i int) int { return b.First - i })
	if !ok {
		n--
	}
	return n
}

// loopMarks draws the loops around an instruction: a line for each, from its first
// instruction to its last.
func (t *annotation) loopMarks(i int, gap bool) string {
	const out = "  "
	if t.depth == 0 {
		return out
	}
	marks := []rune(strings.Repeat(" ", t.depth+1))
	block := t.blockAt(i)
	if block >= 0 {
		for l := t.c.Graph.Blocks[block].Loop; l >= 0; l = t.c.Graph.Loops[l].Parent {
			loop := &t.c.Graph.Loops[l]
			if loop.Depth > loopsDrawn {
				continue
			}
			first := t.c.Blocks[loop.Blocks[0]].First
			last := t.c.Blocks[loop.Blocks[len(loop.Blocks)-1]].Last
			mark := '│'
			switch {
			case gap:
			case i == first && i == last:
				mark = '∘'
			case i == first:
				mark = '┌'
			case i == last:
				mark = '└'
			}
			marks[loop.Depth-1] = mark
		}
	}
	return out + string(marks)
}

// source writes the lines of the source in their order, file by file.
func (t *annotation) source() {
	order := make([]int, len(t.c.Lines))
	for i := range order {
		order[i] = i
	}
	main := t.mainFile()
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &t.c.Lines[i], &t.c.Lines[j]
		switch {
		case a.File != b.File && a.File == main:
			return -1
		case a.File != b.File && b.File == main:
			return 1
		case a.File != b.File:
			return strings.Compare(a.File, b.File)
		}
		return a.Line - b.Line
	})
	file, last := "", 0
	for k, i := range order {
		l := &t.c.Lines[i]
		if k == 0 || l.File != file {
			file, last = l.File, 0
			if l.File != "" {
				t.row(&annotate.Part{}, "", page.Printable(l.File), faint)
			}
		}
		if _, ok := t.sourceLine(file, l.Line); !ok && l.Row == 0 && !t.d.Full {
			continue
		}
		t.between(file, last, l.Line)
		last = l.Line
		st := plain
		if l.Row == 0 {
			st = faint
		}
		text, mark := t.plainLine(file, l.Line), t.coreLine(file, l.Line)+t.lineMark(l)
		if room := t.room - page.Runes(mark); mark != "" && room >= markedLeast {
			text = page.Cut(text, room)
		}
		t.row(&l.Part, "", page.Cut(text+mark, t.room), st)
	}
}

// markedLeast is how much of a line must be left to see for the marks behind it.
const markedLeast = 24

// lineMark says what is hidden at a line.
func (t *annotation) lineMark(l *annotate.Line) string {
	var names []string
	for k := range l.Hidden {
		if l.Hidden[k].IsHidden() {
			names = append(names, t.c.Account.Model().Nodes[t.c.Costs[k].Node].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "  ◄ " + strings.Join(names, ", ") + " hidden"
}

func (t *annotation) plainLine(file string, line int) string {
	if line == 0 {
		return "(no line)"
	}
	text, _ := t.sourceLine(file, line)
	return fmt.Sprintf("%4d  %s", line, strings.TrimPrefix(text, strings.Repeat(" ", max(0, min(t.margin, indentOf(text))))))
}

// contextLines is how many lines without code are shown between others.
const contextLines = 8

// between writes the lines without code between two with some.
func (t *annotation) between(file string, from, to int) {
	if from == 0 || to-from <= 1 {
		return
	}
	if to-from-1 > contextLines && !t.d.Full {
		t.row(&annotate.Part{}, "", "   ⋮", faint)
		return
	}
	for n := from + 1; n < to; n++ {
		if _, ok := t.sourceLine(file, n); !ok {
			return // a file is as long as it is, whatever the debug information says
		}
		t.row(&annotate.Part{}, "", page.Cut(t.plainLine(file, n), t.room), faint)
	}
}
