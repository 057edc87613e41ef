package paint

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// shape draws an element without text.
func (p *painter) shape(e *xml.StartElement, s style) error {
	var outlines [][]pen
	closed := true
	switch e.Name.Local {
	case "rect":
		v, err := numbers(e, "x", "y", "width", "height")
		if err != nil {
			return err
		}
		x, y, w, h := v[0], v[1], max(0, v[2]), max(0, v[3])
		outlines = [][]pen{{p.at(x, y), p.at(x+w, y), p.at(x+w, y+h), p.at(x, y+h)}}
		if strings.HasPrefix(s["fill"], "url(") {
			return p.hatch(x, y, w, h)
		}
	case "line":
		v, err := numbers(e, "x1", "y1", "x2", "y2")
		if err != nil {
			return err
		}
		outlines, closed = [][]pen{{p.at(v[0], v[1]), p.at(v[2], v[3])}}, false
	case "circle":
		v, err := numbers(e, "cx", "cy", "r")
		if err != nil {
			return err
		}
		outlines = [][]pen{p.circle(v[0], v[1], max(0, v[2]))}
	case "polyline":
		list, err := pairs(attribute(e, "points"))
		if err != nil {
			return err
		}
		var line []pen
		for i := 0; i+1 < len(list); i += 2 {
			line = append(line, p.at(list[i], list[i+1]))
		}
		outlines, closed = [][]pen{line}, false
	case "path":
		var err error
		if outlines, err = p.path(attribute(e, "d")); err != nil {
			return err
		}
	default:
		return fmt.Errorf("this element is none of those that cyclestack draws")
	}
	if closed {
		fill, ok := s["fill"]
		if !ok {
			fill = "#000000"
		}
		c, err := colour(fill)
		if err != nil {
			return err
		}
		p.paint(c, s["fill-opacity"], outlines...)
	}
	return p.stroke(s, outlines, closed)
}

// circleSides is the number of sides of a polygon for a circle.
const circleSides = 48

func (p *painter) circle(x, y, r float64) (list []pen) {
	for i := range circleSides {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / circleSides)
		list = append(list, p.at(x+r*cos, y+r*sin))
	}
	return list
}

// hatch draws white stripes over a rectangle.
func (p *painter) hatch(x, y, w, h float64) error {
	const step, thick = 6.0, 2.1
	c, _ := colour("#ffffff")
	size := p.img.Bounds().Size() // there is nothing to see outside
	w, h = min(w, float64(size.X)/p.scale+max(0, -x)), min(h, float64(size.Y)/p.scale+max(0, -y))
	var outlines [][]pen
	for d := 0.0; d < w+h; d += step * math.Sqrt2 {
		// The stripe from the upper edge at d down to the left, cut at the edges.
		var list []pen
		for _, off := range []float64{d, d + thick} {
			x0, y0, x1, y1 := x+off, y, x, y+off
			if x0 > x+w {
				x0, y0 = x+w, y+off-w
			}
			if y1 > y+h {
				x1, y1 = x+off-h, y+h
			}
			if off == d {
				list = append(list, p.at(x0, y0), p.at(x1, y1))
			} else {
				list = append(list, p.at(min(x1, x+w), min(y1, y+h)), p.at(min(x0, x+w), min(y0, y+h)))
			}
		}
		outlines = append(outlines, list)
	}
	p.paint(c, "", outlines...)
	return nil
}

// pairs are numbers by blanks and commas.
func pairs(text string) ([]float64, error) {
	var list []float64
	for f := range strings.FieldsSeq(strings.ReplaceAll(text, ",", " ")) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || math.Abs(v) > 1e6 || math.IsNaN(v) {
			return nil, fmt.Errorf("%q is no number of pixels", f)
		}
		list = append(list, v)
	}
	return list, nil
}

// path reads the outlines of a path: absolute moves and straight lines.
func (p *painter) path(text string) (outlines [][]pen, err error) {
	var list []pen
	x, y := 0.0, 0.0
	end := func() {
		if len(list) > 0 {
			outlines = append(outlines, list)
		}
		list = nil
	}
	for i := 0; i < len(text); {
		c := text[i]
		next := i + 1
		for next < len(text) && !strings.ContainsRune("MLHVZz", rune(text[next])) {
			next++
		}
		v, err := pairs(text[i+1 : next])
		if err != nil {
			return nil, err
		}
		switch {
		case c == 'M' && len(v) == 2:
			end()
			x, y = v[0], v[1]
		case c == 'L' && len(v) == 2:
			x, y = v[0], v[1]
		case c == 'H' && len(v) == 1:
			x = v[0]
		case c == 'V' && len(v) == 1:
			y = v[0]
		case (c == 'z' || c == 'Z') && len(v) == 0:
			end()
			i = next
			continue
		default:
			return nil, fmt.Errorf("a path with %q", text[i:min(next, i+20)])
		}
		list = append(list, p.at(x, y))
		i = next
	}
	end()
	return outlines, nil
}

// stroke draws along outlines.
func (p *painter) stroke(s style, outlines [][]pen, closed bool) error {
	c, err := colour(s["stroke"])
	if err != nil || c == nil {
		return err
	}
	width := 1.0
	if v, err := strconv.ParseFloat(s["stroke-width"], 64); err == nil {
		width = v
	}
	dashes, err := pairs(s["stroke-dasharray"])
	if err != nil {
		return err
	}
	half := float32(max(0.1, width*p.scale) / 2)
	var sides [][]pen
	for _, list := range outlines {
		for i := range list {
			k := i + 1
			if k == len(list) {
				if !closed {
					break
				}
				k = 0
			}
			for _, piece := range dashed(list[i], list[k], dashes, p.scale) {
				sides = append(sides, side(piece[0], piece[1], half))
			}
		}
	}
	p.paint(c, "", sides...)
	return nil
}

// side is a line with a width, as an outline.
func side(a, b pen, half float32) []pen {
	dx, dy := b.x-a.x, b.y-a.y
	long := float32(math.Hypot(float64(dx), float64(dy)))
	if long == 0 {
		return nil
	}
	nx, ny := -dy/long*half, dx/long*half
	return []pen{{a.x + nx, a.y + ny}, {b.x + nx, b.y + ny}, {b.x - nx, b.y - ny}, {a.x - nx, a.y - ny}}
}

// dashesMost bounds the pieces of a line.
const dashesMost = 10000

// dashed are the pieces of a line.
func dashed(a, b pen, dashes []float64, scale float64) [][2]pen {
	if len(dashes) != 2 || !(dashes[0] > 0 && dashes[1] > 0) {
		return [][2]pen{{a, b}}
	}
	long := math.Hypot(float64(b.x-a.x), float64(b.y-a.y))
	point := func(at float64) pen {
		f := float32(min(1, at/long))
		return pen{a.x + f*(b.x-a.x), a.y + f*(b.y-a.y)}
	}
	var list [][2]pen
	for at := 0.0; at < long && len(list) < dashesMost; at += (dashes[0] + dashes[1]) * scale {
		list = append(list, [2]pen{point(at), point(at + dashes[0]*scale)})
	}
	return list
}
