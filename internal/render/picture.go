package render

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/report"
)

// Pictures is a document: the way of micro-ops through the pipeline, cycle by cycle.
type Pictures struct{ *core.Pictures }

func init() {
	report.Register("text", writePictures)
	report.Register("svg", writePicturesSVG)
	report.Register("konata", writeKonata)
	report.Register("o3pipeview", writeO3PipeView)
	report.Register("csv", writePicturesCSV)
}

// The states of a micro-op in a cycle.
const (
	stateFetch    = 'F'
	stateDispatch = 'D'
	stateWaits    = '·' // for its operands
	statePort     = ':' // its operands are known, but its port is taken
	stateExecutes = 'E'
	stateGoesOn   = '='
	stateDone     = '-'
	stateRetires  = 'R'
)

// state returns the state of a row in a cycle, blank before and after it.
func state(r *simulation.PictureRow, cycle int) rune {
	switch {
	case cycle < r.Fetched || cycle > r.Retired:
		return ' '
	case cycle == r.Retired:
		return stateRetires
	case cycle == r.Dispatched:
		return stateDispatch
	case cycle < r.Dispatched:
		if cycle == r.Fetched {
			return stateFetch
		}
		return '.'
	case r.Port == "":
		return stateDone
	case cycle >= r.Done:
		return stateDone
	case cycle == r.Issued:
		return stateExecutes
	case cycle > r.Issued:
		return stateGoesOn
	case cycle >= r.Ready:
		return statePort
	}
	return stateWaits
}

// styles of the states.
var stateStyles = map[rune]style{stateExecutes: hot, stateGoesOn: hot, stateDispatch: bold, statePort: bold, stateWaits: faint, stateDone: dim, '.': faint}

// A pictureWriter writes pictures as text.
type pictureWriter struct{ page.Page }

// label is the columns in front of the cycles: iteration, instruction, port.
const label = 3 + 29 + 8

func writePictures(w io.Writer, d Pictures, o report.Options) error {
	t := &pictureWriter{page.New(w, o.Width, o.Color)}
	for _, p := range d.List {
		t.picture(p)
	}
	return t.Flush()
}

// picture writes the pages of a picture: each has as many cycles as the width has room for.
func (t *pictureWriter) picture(p *core.Picture) {
	t.Paragraph("", fmt.Sprintf("%s on %s, from an empty pipeline: %.2f cycles an iteration in the long run, limited by %s",
		page.Printable(p.Name()), p.Core, p.Main().Cycles, sayLimits(p.Main())), 0, bold)
	t.Paragraph("", "F fetched  . queued  D dispatched  · waits for operands  : for a port  E= executes  - done  R retired", 0, faint)
	wide := max(20, t.Width-label)
	for from := 0; from < p.End; from += wide {
		to := min(from+wide, p.End)
		t.Out.WriteByte('\n')
		t.axis(from, to)
		for i := range p.Rows {
			r := &p.Rows[i]
			if r.Retired < from || r.Fetched >= to {
				continue
			}
			t.row(p, r, from, to)
		}
	}
	t.Out.WriteByte('\n')
}

// axis writes the numbers of cycles: every tenth one.
func (t *pictureWriter) axis(from, to int) {
	line := []rune(strings.Repeat(" ", label+to-from+8))
	for c := (from + 9) / 10 * 10; c < to; c += 10 {
		copy(line[label+c-from:], []rune(strconv.Itoa(c)))
	}
	t.Out.WriteString(t.Paint(strings.TrimRight(string(line), " "), faint) + "\n")
}

// what names a micro-op behind the first of its instruction.
func what(r *simulation.PictureRow) string {
	switch r.Kind {
	case simulation.LoadsData:
		return "load"
	case simulation.StoresAddress:
		return "store address"
	case simulation.StoresData:
		return "store data"
	}
	return "compute"
}

// rowName is the text of a row's instruction, or instructions, or the part of one.
func rowName(p *core.Picture, r *simulation.PictureRow) string {
	name := p.Texts[r.Instruction]
	switch {
	case !r.First:
		name = "  " + what(r)
	case r.Fused && r.Instruction+1 < len(p.Texts):
		name += "; " + p.Texts[r.Instruction+1]
	}
	return page.Printable(name)
}

func (t *pictureWriter) row(p *core.Picture, r *simulation.PictureRow, from, to int) {
	number := ""
	if r.First && r.Instruction == 0 {
		number = strconv.Itoa(r.Iteration + 1)
	}
	t.Out.WriteString(page.Padded(number, 3) + page.Padded(page.Cut(rowName(p, r), 28), 29) + t.Paint(page.Padded(page.Cut(r.Port, 7), 8), faint))
	line := strings.Builder{}
	for c := from; c < to; c++ {
		line.WriteRune(state(r, c))
	}
	text := strings.TrimRight(line.String(), " ")
	if !t.Color {
		t.Out.WriteString(text + "\n")
		return
	}
	for _, s := range text {
		t.Out.WriteString(t.Paint(string(s), stateStyles[s]))
	}
	t.Out.WriteByte('\n')
}

// Layout of the picture as SVG, in pixels.
const (
	pictureLabel = 330
	pictureCycle = 12
	pictureRow   = 18
	pictureTop   = 56
	pictureLeast = 980 // the width of the legend
)

// pictureColors are the fills of states; cells without one are lines.
var pictureColors = map[rune]string{stateFetch: "#9ab", '.': "#dde3e8", stateDispatch: "#4a7fb5", stateWaits: "#e8e2cf", statePort: "#e0a040",
	stateExecutes: "#c0392b", stateGoesOn: "#d9705f", stateDone: "#dfe8df", stateRetires: "#5b8c5a"}

// writePicturesSVG draws the first picture.
func writePicturesSVG(w io.Writer, d Pictures, _ report.Options) error {
	if len(d.List) == 0 {
		return fmt.Errorf("there is no picture of no loop")
	}
	p := d.List[0]
	const most = 4000 // rows or cycles that a viewer can show
	if p.End > most || len(p.Rows) > most {
		return fault.Errorf("%d cycles of %d micro-ops are too large for a picture: fewer %s", p.End, len(p.Rows), fault.Name("iterations"))
	}
	b := &strings.Builder{}
	width, height := max(pictureLabel+p.End*pictureCycle+20, pictureLeast), pictureTop+len(p.Rows)*pictureRow+40
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	b.WriteString(`<style>text{font:12px monospace;fill:#222}.t{font:bold 14px sans-serif}.n{fill:#777}.g{stroke:#eee}</style>` + "\n")
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	svgText(b, 10, 20, "t", fmt.Sprintf("%s on %s: %.2f cycles an iteration, limited by %s", p.Name(), p.Core, p.Main().Cycles, sayLimits(p.Main())))
	for c := 0; c < p.End; c += 5 {
		x := pictureLabel + c*pictureCycle
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%d" y2="%d" class="g"/>`+"\n", x, x, pictureTop-6, height-36)
		svgText(b, x, pictureTop-10, "n", strconv.Itoa(c))
	}
	for i := range p.Rows {
		svgRow(b, p, &p.Rows[i], pictureTop+i*pictureRow)
	}
	svgLegend(b, height-12)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func svgText(b *strings.Builder, x, y int, class, text string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" class="%s">%s</text>`+"\n", x, y, class, html.EscapeString(page.Printable(text)))
}

// svgRow draws a micro-op: a rectangle for each state that it is in.
func svgRow(b *strings.Builder, p *core.Picture, r *simulation.PictureRow, y int) {
	name := rowName(p, r)
	svgText(b, 10, y+13, "", fmt.Sprintf("%3d  %s", r.Iteration+1, page.Cut(name, 34)))
	svgText(b, pictureLabel-44, y+13, "n", page.Cut(r.Port, 6))
	for c := r.Fetched; c <= r.Retired; {
		s, from := state(r, c), c
		for c <= r.Retired && state(r, c) == s {
			c++
		}
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"><title>%s: %s, cycle %d to %d</title></rect>`+"\n",
			pictureLabel+from*pictureCycle, y+2, (c-from)*pictureCycle-1, pictureRow-4, pictureColors[s],
			html.EscapeString(page.Printable(name)), stateNames[s], from, c-1)
	}
}

// stateNames are the states in words, in their order.
var stateNames = map[rune]string{stateFetch: "fetched", '.': "queued", stateDispatch: "dispatched", stateWaits: "waits for operands",
	statePort: "waits for its port", stateExecutes: "executes", stateGoesOn: "executes", stateDone: "done", stateRetires: "retired"}

func svgLegend(b *strings.Builder, y int) {
	x := 10
	for _, s := range []rune{stateFetch, '.', stateDispatch, stateWaits, statePort, stateExecutes, stateDone, stateRetires} {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/>`+"\n", x, y-10, pictureColors[s])
		svgText(b, x+16, y, "n", stateNames[s])
		x += 36 + 8*len(stateNames[s])
	}
}

// writeKonata writes the first picture in the format of the viewer Konata: Kanata log
// format, version 4.
func writeKonata(w io.Writer, d Pictures, _ report.Options) error {
	if len(d.List) == 0 {
		return fmt.Errorf("there is no picture of no loop")
	}
	p := d.List[0]
	type event struct {
		cycle, row, order int
		text              string
	}
	var events []event
	for i := range p.Rows {
		r := &p.Rows[i]
		name := strings.TrimSpace(rowName(p, r))
		add := func(cycle int, format string, args ...any) {
			events = append(events, event{cycle, i, len(events), fmt.Sprintf(format, args...)})
		}
		add(r.Fetched, "I\t%d\t%d\t0", i, i)
		add(r.Fetched, "L\t%d\t0\t%#x: %s", i, p.Insts[r.Instruction].Addr, tabless(name))
		add(r.Fetched, "L\t%d\t1\titeration %d, port %s", i, r.Iteration+1, cmp.Or(r.Port, "none"))
		add(r.Fetched, "S\t%d\t0\tF", i)
		add(r.Dispatched, "S\t%d\t0\tDi", i)
		if r.Port != "" {
			add(max(r.Issued, r.Dispatched), "S\t%d\t0\tX", i)
		}
		add(max(r.Done, r.Dispatched), "S\t%d\t0\tCm", i)
		add(r.Retired, "R\t%d\t%d\t0", i, i)
	}
	sorting.Stable(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.cycle, b.cycle), cmp.Compare(a.order, b.order)) })
	b := &strings.Builder{}
	b.WriteString("Kanata\t0004\nC=\t0\n")
	now := 0
	for _, e := range events {
		if e.cycle > now {
			fmt.Fprintf(b, "C\t%d\n", e.cycle-now)
			now = e.cycle
		}
		b.WriteString(e.text + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func tabless(s string) string { return page.Printable(strings.ReplaceAll(s, "\t", " ")) }

// writeO3PipeView writes the first picture as gem5's O3 processor model traces a pipeline,
// with 1000 ticks a cycle. Cycles begin at 1, because 0 means that a stage was not reached.
func writeO3PipeView(w io.Writer, d Pictures, _ report.Options) error {
	if len(d.List) == 0 {
		return fmt.Errorf("there is no picture of no loop")
	}
	p := d.List[0]
	b := &strings.Builder{}
	part := 0
	for i := range p.Rows {
		r := &p.Rows[i]
		name := strings.TrimSpace(rowName(p, r))
		if part++; r.First {
			part = 0
		}
		tick := func(cycle int) int { return (cycle + 1) * 1000 }
		issue, complete := tick(max(r.Issued, r.Dispatched)), tick(max(r.Done, r.Dispatched))
		text := strings.ReplaceAll(tabless(name), ":", ".") // the colon ends a field
		fmt.Fprintf(b, "O3PipeView:fetch:%d:0x%08x:%d:%d:%s\n", tick(r.Fetched), p.Insts[r.Instruction].Addr, part, i+1, text)
		fmt.Fprintf(b, "O3PipeView:decode:0\nO3PipeView:rename:0\nO3PipeView:dispatch:%d\n", tick(r.Dispatched))
		stored := 0
		if r.Stores {
			stored = tick(r.Retired)
		}
		fmt.Fprintf(b, "O3PipeView:issue:%d\nO3PipeView:complete:%d\nO3PipeView:retire:%d:store:%d\n", issue, complete, tick(r.Retired), stored)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writePicturesCSV writes one row for each micro-op.
func writePicturesCSV(w io.Writer, d Pictures, _ report.Options) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"piece", "iteration", "instruction", "addr", "text", "uop", "port", "fetched", "dispatched", "ready", "issued", "done", "retired"})
	for _, p := range d.List {
		for i := range p.Rows {
			r := &p.Rows[i]
			row := []string{p.Name(), strconv.Itoa(r.Iteration + 1), strconv.Itoa(r.Instruction), fmt.Sprintf("%#x", p.Insts[r.Instruction].Addr), p.Texts[r.Instruction], what(r), r.Port}
			for _, c := range []int{r.Fetched, r.Dispatched, r.Ready, r.Issued, r.Done, r.Retired} {
				row = append(row, strconv.Itoa(c))
			}
			_ = out.Write(row)
		}
	}
	out.Flush()
	return out.Error()
}
