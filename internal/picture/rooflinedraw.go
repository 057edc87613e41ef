package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// The plot of a roofline, in pixels.
const (
	roofLeft, roofTop     = 90.0, 70.0
	roofRight, roofBottom = width - 30.0, 520.0
	radiusLeast           = 4.0
	radiusMost            = 14.0
	keyRow                = 18.0
	labelsMost            = 12 // points that the key names
)

// An axis is logarithmic.
type axis struct{ low, high, from, to float64 }

func (x *axis) at(v float64) float64 {
	return x.from + (x.to-x.from)*math.Log(v/x.low)/math.Log(x.high/x.low)
}

// axisOf is an axis of whole decades around values.
func axisOf(values []float64, from, to float64) axis {
	low, high := math.Log10(slices.Min(values)/1.5), math.Log10(slices.Max(values)*1.5)
	return axis{math.Pow(10, math.Floor(low)), math.Pow(10, math.Ceil(high)), from, to}
}

// draw draws the picture.
func (r *roofline) draw() string {
	list, missing := r.ceilings()
	var across, up []float64
	total := 0.0
	for _, p := range r.points {
		across, up = append(across, p.intensity), append(up, p.rate)
		total += p.seconds
	}
	for _, c := range list {
		if c.rate > 0 {
			up = append(up, c.rate)
			if b := list[0].bytes; b > 0 { // the ridge is in the picture
				across = append(across, c.rate/b)
			}
		}
	}
	x, y := axisOf(across, roofLeft, roofRight), axisOf(up, roofBottom, roofTop)
	named := min(len(r.points), labelsMost)
	notes := r.notes(missing)
	d := &drawing{}
	title := fmt.Sprintf("Roofline of %s, %s", r.h.CPU.Name, page.Several(len(r.points), "point"))
	about := "operations in a second over operations for each byte of memory traffic; a point below the slope waits for memory's bandwidth at most, one below the level lines for the core"
	d.begin(roofBottom+70+keyRow*float64(named+len(notes)), title, about)
	r.grid(d, x, y)
	for _, c := range list {
		r.ceiling(d, &c, x, y)
	}
	order := slices.Clone(r.points)
	sorting.Stable(order, func(a, b point) int { return cmp.Compare(b.seconds, a.seconds) })
	for i, p := range slices.Backward(order) {
		size := radiusLeast + (radiusMost-radiusLeast)*math.Sqrt(p.seconds/total)
		at := fmt.Sprintf(`cx="%.1f" cy="%.1f"`, x.at(p.intensity), y.at(p.rate))
		fmt.Fprintf(d, `<circle %s r="%.1f" fill="%s" fill-opacity="0.8" stroke="#14161a"><title>%s</title></circle>`+"\n", at, size, tones[i%len(tones)], escape(p.text()))
		if i < named {
			d.text(x.at(p.intensity)+size+3, y.at(p.rate)+4, "", "start", fmt.Sprint(i+1))
		}
	}
	at := roofBottom + 58
	for i, p := range order[:named] {
		d.text(roofLeft, at, "", "start", fmt.Sprintf("%d  %s", i+1, p.text()))
		at += keyRow
	}
	for _, n := range notes {
		d.text(roofLeft, at, "soft", "start", n)
		at += keyRow
	}
	d.WriteString("</svg>\n")
	return d.String()
}

// text is what a point says.
func (p *point) text() string {
	return fmt.Sprintf("%s: %s %s/s, %s for each byte, %s of processor time", page.Cut(p.label, 60), page.Trim(p.rate/1e9), p.unit(), page.Trim(p.intensity), page.Duration(p.seconds))
}

// unit is that of a rate.
func (p *point) unit() string {
	if p.flop {
		return "GFLOP"
	}
	return "G instructions"
}

// notes say what the picture rests on, and lacks.
func (r *roofline) notes(missing []string) []string {
	p := &r.points[0]
	list := []string{"Operations: " + p.operations + ".", fmt.Sprintf("Bytes: %d for each of %s.", line, p.bytes),
		"Rates are of a second of processor time, and ceilings of one core."}
	if len(missing) > 0 {
		list = append(list, "Not known: "+strings.Join(missing, ", ")+". 'cyclestack calibrate' measures bandwidth, clock and peak.")
	}
	if r.left+r.more > 0 {
		list = append(list, fmt.Sprintf("Left out: %s (%s).", page.Several(r.left+r.more, "account"), cmp.Or(r.why, "too many")))
	}
	return list
}

// grid draws the axes.
func (r *roofline) grid(d *drawing, x, y axis) {
	unit := r.points[0].unit()
	for v := x.low; v <= x.high*1.001; v *= 10 {
		fmt.Fprintf(d, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x.at(v), x.at(v), roofTop, roofBottom)
		d.text(x.at(v), roofBottom+18, "", "middle", page.Trim(v))
	}
	for v := y.low; v <= y.high*1.001; v *= 10 {
		fmt.Fprintf(d, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, roofLeft, roofRight, y.at(v), y.at(v))
		d.text(roofLeft-8, y.at(v)+4, "", "end", page.Trim(v/1e9))
	}
	d.text((roofLeft+roofRight)/2, roofBottom+38, "soft", "middle", strings.TrimPrefix(unit, "G ")+" for each byte to and from memory")
	fmt.Fprintf(d, `<text transform="translate(22 %.0f) rotate(-90)" text-anchor="middle" class="soft">%s/s</text>`+"\n", (roofTop+roofBottom)/2, escape(unit))
}

// ceiling draws a ceiling, and its name along it.
func (r *roofline) ceiling(d *drawing, c *ceiling, x, y axis) {
	from, to := x.low, x.high
	if c.rate == 0 { // only what the plot has of the slope
		from, to = max(from, y.low/c.bytes), min(to, y.high/c.bytes)
	}
	if from >= to {
		return
	}
	x0, y0, x1, y1 := x.at(from), y.at(c.at(from)), x.at(to), y.at(c.at(to))
	fmt.Fprintf(d, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" style="stroke:#14161a;stroke-width:1.5"/>`, x0, x1, y0, y1)
	if c.rate > 0 {
		d.text(x1-4, y1-6, "", "end", c.name)
		return
	}
	angle := math.Atan2(y1-y0, x1-x0) * 180 / math.Pi
	fmt.Fprintf(d, `<text transform="translate(%.1f %.1f) rotate(%.1f)" text-anchor="middle">%s</text>`+"\n", (x0+x1)/2-6, (y0+y1)/2-6, angle, escape(c.name))
}
