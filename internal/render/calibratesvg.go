package render

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/internal/calibrate"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

// The picture of a curve, in pixels.
const (
	svgWidth, svgHeight          = 860, 480
	svgLeft, svgRight            = 70, 20
	svgTop, svgBottom            = 50, 60
	svgInnerW, svgInnerH         = svgWidth - svgLeft - svgRight, svgHeight - svgTop - svgBottom
	svgMostLabels                = 12 // on the axis of working sets
	svgPointRadius       float64 = 2.5
)

// writeSVG draws the curve of latencies by working set as an SVG document, with the levels
// found on it. Both axes are logarithmic.
func writeSVG(w io.Writer, d Calibration, _ report.Options) error {
	r := d.Result
	points := measuredPoints(r.Curve)
	if len(points) < 2 {
		return fmt.Errorf("there is no picture of %d points", len(points))
	}
	s := svg{r: r}
	s.low, s.high = cyclesRange(points)
	s.low, s.high = s.low/1.3, s.high*1.3
	s.from, s.to = float64(points[0].Bytes), float64(points[len(points)-1].Bytes)
	s.frame()
	s.levels()
	s.curve(points)
	s.b.WriteString("</svg>\n")
	_, err := io.WriteString(w, s.b.String())
	return err
}

type svg struct {
	r         *calibrate.Result
	b         strings.Builder
	low, high float64 // cycles
	from, to  float64 // bytes
}

func (s *svg) x(bytes float64) float64 {
	return svgLeft + svgInnerW*math.Log(bytes/s.from)/math.Log(s.to/s.from)
}

func (s *svg) y(cycles float64) float64 {
	return svgTop + svgInnerH*(1-math.Log(cycles/s.low)/math.Log(s.high/s.low))
}

func (s *svg) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class, html.EscapeString(page.Printable(text)))
}

// frame draws the title, the grid and the axes.
func (s *svg) frame() {
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+"\n", svgWidth, svgHeight)
	s.b.WriteString(`<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold;font-size:14px}.level{fill:#a33}` +
		`.grid{stroke:#ddd}.curve{fill:none;stroke:#26b;stroke-width:1.5}.point{fill:#26b}.ground{stroke:#a33;stroke-dasharray:4 3}</style>` + "\n")
	fmt.Fprintf(&s.b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", svgWidth, svgHeight)
	s.text(svgLeft, 22, "start", "title", "Load-to-use latency by working set, "+s.r.CPU)
	s.text(svgLeft, 40, "start", "", fmt.Sprintf("%.3f GHz, %s of %s, %s", s.r.Clock.Value/1e9, s.r.Pages, calibrate.Size(s.r.PageBytes), s.r.Time.Format("2006-01-02")))
	for _, c := range decades(s.low, s.high) {
		fmt.Fprintf(&s.b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" class="grid"/>`+"\n", svgLeft, svgWidth-svgRight, s.y(c), s.y(c))
		s.text(svgLeft-8, s.y(c)+4, "end", "", fmt.Sprintf("%g", c))
	}
	step := math.Pow(2, math.Max(1, math.Ceil(math.Log2(s.to/s.from)/svgMostLabels)))
	for size := s.from; size <= s.to; size *= step {
		fmt.Fprintf(&s.b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" class="grid"/>`+"\n", s.x(size), s.x(size), svgTop, svgHeight-svgBottom)
		s.text(s.x(size), svgHeight-svgBottom+18, "middle", "", calibrate.Size(int(size)))
	}
	s.text(svgLeft+svgInnerW/2, svgHeight-14, "middle", "", "working set, visited in random order")
	fmt.Fprintf(&s.b, `<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">cycles</text>`+"\n", svgTop+svgInnerH/2)
}

func (s *svg) levels() {
	for _, l := range s.r.Levels {
		if l.Why != "" {
			continue
		}
		from, to, y := s.x(float64(l.From)), s.x(float64(l.To)), s.y(float64(l.Cycles))
		fmt.Fprintf(&s.b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="ground"/>`+"\n", from, to, y, y)
		s.text((from+to)/2, y-8, "middle", "level", l.Name+" "+short(l.Cycles))
	}
}

func (s *svg) curve(points []calibrate.Point) {
	var path []string
	for _, p := range points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", s.x(float64(p.Bytes)), s.y(float64(p.Cycles))))
	}
	fmt.Fprintf(&s.b, `<polyline points="%s" class="curve"/>`+"\n", strings.Join(path, " "))
	for _, p := range points {
		fmt.Fprintf(&s.b, `<circle cx="%.1f" cy="%.1f" r="%.1f" class="point"><title>%s: %s cycles, %s ns</title></circle>`+"\n",
			s.x(float64(p.Bytes)), s.y(float64(p.Cycles)), svgPointRadius, calibrate.Size(p.Bytes), short(p.Cycles), short(p.Nanos))
	}
}
