// Package picture writes accounts as SVG: one as a tree, those of intervals as a course over
// time. It registers the format svg with package report. The pictures have no scripts, and
// print their values, so that they say the same in a document.
package picture

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

func init() {
	report.RegisterWriter("svg", func(w io.Writer, o report.Options) report.Writer { return &writer{w: w, o: o} })
}

// The size of pictures, in pixels.
const (
	width     = 1000
	rowHeight = 30
	margin    = 20
	letter    = 7.4 // of a label, on average
	least     = 1.5 // width of a box that is drawn
)

// most is the number of intervals that a picture has.
const most = 10000

// A writer gathers what a picture shows of accounts.
type writer struct {
	w      io.Writer
	o      report.Options
	h      report.Header
	first  *drawing // of the first account
	course []moment
}

// A moment is an interval.
type moment struct {
	start, duration float64
	values          []float64
}

func (p *writer) Begin(h report.Header) error {
	p.h = h
	return nil
}

func (p *writer) Account(a *account.Account) error {
	if p.first == nil {
		p.first = draw(p.h, a, p.o)
	}
	if a.Scope.Kind != counts.Interval {
		return nil
	}
	if len(p.course) == most {
		return fmt.Errorf("--format svg: more than %d intervals", most)
	}
	m := moment{a.Start, a.Duration, nil}
	for _, i := range bands(a.Model()) {
		m.values = append(m.values, a.Nodes[i].Value)
	}
	p.course = append(p.course, m)
	return nil
}

func (p *writer) End() error {
	var text string
	switch {
	case len(p.course) > 1:
		text = p.timeline()
	case p.first != nil:
		text = p.first.String()
	default:
		return fmt.Errorf("there is no account to draw")
	}
	_, err := io.WriteString(p.w, text)
	return err
}

// bands are the nodes of a timeline: the highest, or the parts of the only one.
func bands(m *model.Model) []int {
	var roots, parts []int
	for i := range m.Nodes {
		switch n := &m.Nodes[i]; {
		case n.Section != "":
		case n.Above < 0:
			roots = append(roots, i)
		case m.Nodes[n.Above].Above < 0:
			parts = append(parts, i)
		}
	}
	if len(roots) == 1 && len(parts) > 0 {
		return parts
	}
	return roots
}

// tones are the colours of the highest nodes: different to the colour-blind and in grey.
var tones = []string{"#f0b95c", "#c27aa8", "#79b3e0", "#cdeac0"}

// tone is the colour of a node: that of the band it is in.
func tone(m *model.Model, i int) string {
	list := bands(m)
	for j := i; j >= 0; j = m.Nodes[j].Above {
		if at := slices.Index(list, j); at >= 0 {
			return tones[at%len(tones)]
		}
	}
	return "#d5d9e2"
}

const style = `<style>text{font:13px sans-serif;fill:#14161a}.title{font-weight:bold;font-size:15px}.soft{fill:#565b66}.path{font-weight:bold}rect{stroke:#fff}.way{stroke:#14161a;stroke-width:2}line{stroke:#c9ced8}</style>` +
	`<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x2="0" y2="6" stroke="#fff" stroke-width="3"/></pattern></defs>` + "\n"

// A drawing is a picture that is being drawn.
type drawing struct {
	strings.Builder
}

func (d *drawing) begin(height float64, title, about string) {
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" role="img" aria-label="%s">`+"\n<title>%s</title>\n<desc>%s</desc>\n", width, height, escape(title), escape(title), escape(about))
	d.WriteString(style)
	fmt.Fprintf(d, `<rect width="%d" height="%.0f" fill="#fff"/>`+"\n", width, height)
	d.text(margin, 26, "title", "start", title)
}

func (d *drawing) text(x, y float64, class, anchor, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, anchor, escape(text))
}

// escape makes a name text: bounded, printable, without markup.
func escape(name string) string {
	return html.EscapeString(page.Printable(page.Cut(strings.ToValidUTF8(name, "?"), 200)))
}

// heading is what a picture is of.
func heading(h report.Header, a *account.Account) string {
	parts := []string{a.Label}
	if !math.IsNaN(a.Duration) {
		parts = append(parts, page.Duration(a.Duration))
	}
	return strings.Trim(strings.Join(append(parts, "on "+h.CPU.Name, h.Model.Name+" "+h.Model.Version), ", "), ", ")
}

// A box is a node in the tree.
type box struct {
	node, row int
	x, w      float64 // in parts of the whole
	squeezed  bool
}

// draw draws the tree of an account as an icicle.
func draw(h report.Header, a *account.Account, o report.Options) *drawing {
	d := &drawing{}
	list := boxes(a, a.Model().Shown(o.Nodes, o.Level))
	rows := 0
	for _, b := range list {
		rows = max(rows, b.row+1)
	}
	about := "the tree of the account; hatched nodes are uncertain, framed ones lead to the bottleneck"
	d.begin(float64(56+rows*rowHeight+30), heading(h, a), about)
	m := a.Model()
	for _, b := range list {
		x, w, y := margin+b.x*(width-2*margin), b.w*(width-2*margin), float64(44+b.row*rowHeight)
		if w < least {
			continue
		}
		v := &a.Nodes[b.node]
		label := m.Nodes[b.node].Name + " " + page.Figure(m, b.node, v.Value)
		full := label
		if !math.IsNaN(v.Error) {
			full += " ± " + page.Figure(m, b.node, v.Error)
		}
		if unit := m.Nodes[b.node].Unit; unit != "" && unit != m.Unit && m.Share(b.node) {
			full += " of " + unit
		}
		title := full
		if !v.Reliable() {
			title += ", uncertain: " + v.Doubt.String()
		}
		class := ""
		if slices.Contains(a.Bottleneck, b.node) {
			class = ` class="way"`
		}
		fmt.Fprintf(d, `<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"%s/>`, escape(title), x, y, w, rowHeight-1, tone(m, b.node), class)
		if !v.Reliable() {
			fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="url(#hatch)"/>`, x, y, w, rowHeight-1)
		}
		switch {
		case float64(page.Runes(full))*letter+8 < w:
			label = full
		case float64(page.Runes(label))*letter+8 < w:
		default:
			label = ""
		}
		if label != "" {
			d.text(x+5, y+19, "", "start", label)
		}
		d.WriteString("</g>\n")
	}
	d.text(margin, float64(44+rows*rowHeight+20), "soft", "start", about)
	d.WriteString("</svg>\n")
	return d
}

// boxes lays the nodes out. Siblings that add up to more than their parent are squeezed into
// it.
func boxes(a *account.Account, shown []bool) []box {
	m := a.Model()
	at := map[int]*box{}
	below := map[int][]int{}
	var list []int
	for i := range m.Nodes {
		n, v := &m.Nodes[i], &a.Nodes[i]
		if n.Section != "" || !v.Known() || !shown[i] || n.Above >= 0 && at[n.Above] == nil {
			continue
		}
		b := &box{node: i, w: max(0, v.Value)}
		if n.Above >= 0 {
			b.row = at[n.Above].row + 1
		}
		at[i] = b
		below[n.Above] = append(below[n.Above], i)
		list = append(list, i)
	}
	sum := func(nodes []int) (t float64) {
		for _, i := range nodes {
			t += at[i].w
		}
		return t
	}
	scale := sum(below[-1])
	if len(below[-1]) > 0 && m.Share(below[-1][0]) {
		scale = max(1, scale)
	}
	var place func(nodes []int, x, room float64)
	place = func(nodes []int, x, room float64) {
		total, squeeze := sum(nodes), 1.0
		if total > room && total > 0 {
			squeeze = room / total
		}
		for _, i := range nodes {
			b := at[i]
			b.w, b.x, b.squeezed = b.w*squeeze, x, squeeze < 0.995
			x += b.w
			place(below[i], b.x, b.w)
		}
	}
	for _, b := range at {
		b.w /= scale
	}
	place(below[-1], 0, 1)
	var out []box
	for _, i := range list {
		out = append(out, *at[i])
	}
	return out
}

// The plot of a timeline.
const (
	plotLeft, plotTop = 70.0, 70.0
	plotRight         = width - margin
	plotHeight        = 240.0
	plotBottom        = plotTop + plotHeight
	ticks             = 6
)

// timeline draws the shares of the highest nodes over time.
func (p *writer) timeline() string {
	d := &drawing{}
	m := p.h.Model
	list := bands(m)
	first, last := p.course[0], p.course[len(p.course)-1]
	end := last.start + last.duration
	full := 0.0
	for _, c := range p.course {
		t := 0.0
		for _, v := range c.values {
			if v > 0 {
				t += v
			}
		}
		full = max(full, t)
	}
	share := m.Share(list[0])
	if share {
		full = max(1, full)
	}
	d.begin(plotBottom+60, fmt.Sprintf("%d intervals on %s, %s %s", len(p.course), p.h.CPU.Name, m.Name, m.Version), "the shares of the highest nodes over time")
	x := func(t float64) float64 { return plotLeft + (plotRight-plotLeft)*(t-first.start)/(end-first.start) }
	y := func(v float64) float64 { return plotBottom - plotHeight*v/full }
	below := make([]float64, len(p.course))
	at := margin + 0.0
	for k, i := range list {
		var path strings.Builder
		for c, mo := range p.course {
			v := mo.values[k]
			if math.IsNaN(v) || v <= 0 {
				continue
			}
			fmt.Fprintf(&path, "M%.1f %.1fV%.1fH%.1fV%.1fz", x(mo.start), y(below[c]), y(below[c]+v), x(mo.start+mo.duration), y(below[c]))
			below[c] += v
		}
		name := m.Nodes[i].Name
		fmt.Fprintf(d, `<path d="%s" fill="%s"><title>%s</title></path>`+"\n", path.String(), tones[k%len(tones)], escape(name))
		fmt.Fprintf(d, `<rect x="%.1f" y="42" width="12" height="12" fill="%s"/>`, at, tones[k%len(tones)])
		d.text(at+17, 53, "", "start", name)
		at += 17 + float64(page.Runes(name))*letter + 20
	}
	for i := range 5 {
		v := full * float64(i) / 4
		label := page.Trim(v)
		if share {
			label = page.Rounded(v*100, 0) + " %"
		}
		fmt.Fprintf(d, `<line x1="%.1f" x2="%d" y1="%.1f" y2="%.1f"/>`, plotLeft, int(plotRight), y(v), y(v))
		d.text(plotLeft-8, y(v)+4, "", "end", label)
	}
	for i := range ticks + 1 {
		t := first.start + (end-first.start)*float64(i)/ticks
		d.text(x(t), plotBottom+20, "", "middle", page.Trim(math.Round(t*1e4)/1e4))
	}
	d.text((plotLeft+plotRight)/2, plotBottom+42, "soft", "middle", "seconds")
	d.WriteString("</svg>\n")
	return d.String()
}
