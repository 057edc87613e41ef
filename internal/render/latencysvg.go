package render

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

// registerHistograms adds the format svg of latencies, behind those for people.
func registerHistograms() {
	report.Register("svg", func(w io.Writer, list Latencies, _ report.Options) error {
		var all []histogram
		for i := range list {
			h := histogram{title: latencyTitle(list[i].Label, "load latency", list[i].CPU), about: "cycles of a load; share of the loads slower than the first threshold"}
			for _, b := range list[i].Bins {
				h.bars = append(h.bars, histogramBar{binName(b), b.Share})
			}
			all = append(all, h)
		}
		return drawHistograms(w, all)
	})
	report.Register("svg", func(w io.Writer, list SampledLatencies, _ report.Options) error {
		var all []histogram
		for i := range list {
			h := histogram{title: latencyTitle(list[i].Label, "load latency from samples of "+list[i].Event, list[i].CPU), about: "cycles of a load; share of the sampled loads"}
			for _, b := range list[i].All.Measured().Bins {
				h.bars = append(h.bars, histogramBar{logBinName(b), b.Share.Value})
			}
			all = append(all, h)
		}
		return drawHistograms(w, all)
	})
}

func latencyTitle(label, what, cpu string) string {
	title := strings.TrimPrefix(label+", "+what, ", ")
	if cpu != "" {
		title += " on " + cpu
	}
	return title
}

// A histogram is a distribution as a picture shows it.
type histogram struct {
	title, about string
	bars         []histogramBar
}

type histogramBar struct {
	name  string
	share float64
}

// The picture of distributions, in pixels.
const (
	barsWidth   = 860
	barsLeft    = 130 // of the bars
	barsRow     = 22
	barsTop     = 44
	barsBetween = 40 // distributions
	barsValue   = 80 // for the figure behind a bar
)

// drawHistograms draws distributions as SVG, a bar for each range.
func drawHistograms(w io.Writer, list []histogram) error {
	height := 0
	for _, h := range list {
		height += barsTop + barsRow*len(h.bars) + barsBetween
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+"\n", barsWidth, height)
	b.WriteString(`<title>Load latencies</title><style>text{font:13px sans-serif;fill:#14161a}.title{font-weight:bold;font-size:15px}.soft{fill:#565b66}.bar{fill:#79b3e0;stroke:#565b66}</style>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", barsWidth, height)
	y := 0
	for _, h := range list {
		y = h.draw(&b, y)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// draw draws a distribution from a line on, and returns where it ends.
func (h *histogram) draw(b *strings.Builder, y int) int {
	text := func(x float64, y int, class, anchor, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, anchor, html.EscapeString(page.Printable(page.Cut(s, 200))))
	}
	text(20, y+24, "title", "start", h.title)
	most := 0.0
	for _, bar := range h.bars {
		if !math.IsNaN(bar.share) {
			most = math.Max(most, bar.share)
		}
	}
	y += barsTop
	for _, bar := range h.bars {
		width := 0.0
		if most > 0 && bar.share > 0 {
			width = (barsWidth - barsLeft - barsValue) * bar.share / most
		}
		text(barsLeft-8, y+15, "", "end", bar.name)
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" class="bar"/>`+"\n", barsLeft, y+2, width, barsRow-6)
		text(barsLeft+width+6, y+15, "", "start", page.PercentOf(bar.share))
		y += barsRow
	}
	text(barsLeft, y+16, "soft", "start", h.about)
	return y + barsBetween
}
