// Package paint makes pixels of the pictures that cyclestack draws as SVG: for PNG, and for
// terminals that show pictures, as sixels or in kitty's protocol.
//
//	img, err := paint.Draw(svg, 1)
//	err = paint.Sixel(os.Stdout, img)
//
// It reads the part of SVG that these pictures use: rectangles, lines, circles, paths of
// straight lines, text, groups, hatches, and styles by element and class. Another element is
// an error.
package paint

import (
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/f64"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	xdraw "golang.org/x/image/draw"
)

// Bounds of what a file can ask for.
const (
	bytesMost    = 64 << 20
	sideMost     = 16384
	areaMost     = 1 << 26
	elementsMost = 1 << 20
	depthMost    = 64
)

// A style is the properties of an element, by name.
type style map[string]string

// A painter draws a picture.
type painter struct {
	img    *image.RGBA
	scale  float64
	rules  map[string]style // by element, or by class with a dot
	faces  map[string]font.Face
	raster *vector.Rasterizer
	n      int // elements
}

// Draw draws a picture of SVG, larger by a factor.
func Draw(r io.Reader, scale float64) (*image.RGBA, error) {
	in := &io.LimitedReader{R: r, N: bytesMost}
	d := xml.NewDecoder(in)
	d.Strict = true
	p := &painter{scale: scale, rules: map[string]style{}, faces: map[string]font.Face{}}
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it has no element svg")
		}
		if err != nil {
			return nil, unreadable(d, err)
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != "svg" {
			return nil, fmt.Errorf("it begins with the element %q, and not with svg", start.Name.Local)
		}
		if err := p.begin(&start); err != nil {
			return nil, err
		}
		if err := p.children(d, style{}, 0); err != nil {
			return nil, unreadable(d, err)
		}
		return p.img, nil
	}
}

// unreadable says where reading failed.
func unreadable(d *xml.Decoder, err error) error {
	line, _ := d.InputPos()
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %s", syntax.Line, syntax.Msg)
	}
	return fmt.Errorf("line %d: %w", line, err)
}

// begin makes the image.
func (p *painter) begin(e *xml.StartElement) error {
	box := strings.Fields(attribute(e, "viewBox"))
	if len(box) != 4 || box[0] != "0" || box[1] != "0" {
		return errors.New("its viewBox is not 0 0 WIDTH HEIGHT")
	}
	w, err := strconv.ParseFloat(box[2], 64)
	h, err2 := strconv.ParseFloat(box[3], 64)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("its viewBox: %w", err)
	}
	w, h = math.Ceil(w*p.scale), math.Ceil(h*p.scale)
	if !(w >= 1 && h >= 1 && w <= sideMost && h <= sideMost && w*h <= areaMost) {
		return fmt.Errorf("it has %g × %g pixels, which is too small or too large", w, h)
	}
	p.img = image.NewRGBA(image.Rect(0, 0, int(w), int(h)))
	draw.Draw(p.img, p.img.Bounds(), image.White, image.Point{}, draw.Src)
	p.raster = vector.NewRasterizer(int(w), int(h))
	return nil
}

// children draws what is in an element.
func (p *painter) children(d *xml.Decoder, above style, depth int) error {
	if depth > depthMost {
		return errors.New("its elements are nested too deeply")
	}
	for {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if p.n++; p.n > elementsMost {
				return fmt.Errorf("it has more than %d elements", elementsMost)
			}
			if err := p.element(d, &t, above, depth); err != nil {
				return err
			}
		}
	}
}

// element draws an element, and reads its end.
func (p *painter) element(d *xml.Decoder, e *xml.StartElement, above style, depth int) error {
	s := p.style(e, above)
	switch e.Name.Local {
	case "title", "desc", "defs":
		return d.Skip()
	case "style":
		text, err := textOf(d)
		if err != nil {
			return err
		}
		p.sheet(text)
		return nil
	case "g":
		return p.children(d, s, depth+1)
	case "text":
		text, err := textOf(d)
		if err != nil {
			return err
		}
		return p.text(e, s, text)
	}
	if err := p.shape(e, s); err != nil {
		return fmt.Errorf("<%s>: %w", e.Name.Local, err)
	}
	return d.Skip()
}

// textOf is the text of an element, to its end.
func textOf(d *xml.Decoder) (string, error) {
	var b strings.Builder
	for {
		t, err := d.Token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.StartElement:
			if err := d.Skip(); err != nil {
				return "", err
			}
		case xml.EndElement:
			return b.String(), nil
		}
	}
}

func attribute(e *xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// number is an attribute in pixels of the picture; 0 without it.
func number(e *xml.StartElement, name string) (float64, error) {
	text := attribute(e, name)
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(v) > 1e6 || math.IsNaN(v) {
		return 0, fmt.Errorf("%s=%q is no number of pixels", name, text)
	}
	return v, nil
}

func numbers(e *xml.StartElement, names ...string) ([]float64, error) {
	var list []float64
	for _, n := range names {
		v, err := number(e, n)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// sheet reads a style sheet.
func (p *painter) sheet(text string) {
	for rule := range strings.SplitSeq(text, "}") {
		if selector, body, ok := strings.Cut(rule, "{"); ok {
			p.rules[strings.TrimSpace(selector)] = declarations(body)
		}
	}
}

func declarations(text string) style {
	s := style{}
	for d := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(d, ":"); ok {
			s[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return s
}

// inherited are the properties that an element has from the one around it.
var inherited = []string{"fill", "stroke", "font", "font-size", "font-weight"}

// drawn are the attributes that are properties.
var drawn = []string{"fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "text-anchor", "opacity"}

// style is that of an element: the group's, then attributes, rules, and its own.
func (p *painter) style(e *xml.StartElement, above style) style {
	s := style{}
	put := func(from style) { maps.Copy(s, from) }
	for _, k := range inherited {
		if v, ok := above[k]; ok {
			s[k] = v
		}
	}
	for _, k := range drawn {
		if v := attribute(e, k); v != "" {
			s[k] = v
		}
	}
	put(p.rules[e.Name.Local])
	for class := range strings.FieldsSeq(attribute(e, "class")) {
		put(p.rules["."+class])
	}
	put(declarations(attribute(e, "style")))
	return s
}

// colour reads a colour; nil is none.
func colour(text string) (color.Color, error) {
	switch {
	case text == "none" || text == "":
		return nil, nil
	case len(text) == 4 && text[0] == '#':
		text = "#" + strings.Repeat(text[1:2], 2) + strings.Repeat(text[2:3], 2) + strings.Repeat(text[3:4], 2)
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(text, "#"), 16, 32)
	if err != nil || len(text) != 7 {
		return nil, fmt.Errorf("%q is no colour", text)
	}
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255}, nil
}

// A pen is a place in pixels of the image.
type pen struct{ x, y float32 }

func (p *painter) at(x, y float64) pen { return pen{float32(x * p.scale), float32(y * p.scale)} }

// paint fills outlines with a colour.
func (p *painter) paint(c color.Color, opacity string, outlines ...[]pen) {
	if c == nil {
		return
	}
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	if v, err := strconv.ParseFloat(opacity, 64); err == nil {
		n.A = uint8(255 * max(0, min(1, v)))
	}
	box := around(outlines).Intersect(p.img.Bounds())
	if box.Empty() {
		return
	}
	p.raster.Reset(box.Dx(), box.Dy()) // no larger, for speed
	for _, list := range outlines {
		for i, at := range list {
			x, y := at.x-float32(box.Min.X), at.y-float32(box.Min.Y)
			if i == 0 {
				p.raster.MoveTo(x, y)
			} else {
				p.raster.LineTo(x, y)
			}
		}
		p.raster.ClosePath()
	}
	p.raster.Draw(p.img, box, image.NewUniform(n), image.Point{})
}

// around is the smallest rectangle of pixels that has all outlines.
func around(outlines [][]pen) (box image.Rectangle) {
	for _, list := range outlines {
		for _, at := range list {
			x, y := int(math.Floor(float64(at.x))), int(math.Floor(float64(at.y)))
			box = box.Union(image.Rect(x, y, x+1, y+1))
		}
	}
	return box
}

// text draws text.
func (p *painter) text(e *xml.StartElement, s style, text string) error {
	at, err := numbers(e, "x", "y")
	if err != nil {
		return err
	}
	c, err := colour(s["fill"])
	if err != nil {
		return err
	}
	face, err := p.face(s)
	if err != nil {
		return err
	}
	if c == nil {
		c = color.Black
	}
	move, turn, err := transformOf(attribute(e, "transform"))
	if err != nil {
		return err
	}
	const most = 1000 // letters
	if r := []rune(text); len(r) > most {
		text = string(r[:most])
	}
	width := float64(font.MeasureString(face, text)) / 64
	shift := map[string]float64{"middle": -width / 2, "end": -width}[s["text-anchor"]]
	x, y := (at[0]+move[0])*p.scale, (at[1]+move[1])*p.scale
	drawer := font.Drawer{Dst: p.img, Src: image.NewUniform(c), Face: face, Dot: fixed.Point26_6{X: fixed.Int26_6(64 * (x + shift)), Y: fixed.Int26_6(64 * y)}}
	if turn == 0 {
		drawer.DrawString(text)
		return nil
	}
	m := face.Metrics()
	up, down := m.Ascent.Ceil(), m.Descent.Ceil()
	label := image.NewRGBA(image.Rect(0, 0, int(width)+2, up+down))
	drawer.Dst, drawer.Dot = label, fixed.P(0, up)
	drawer.DrawString(text)
	sin, cos := math.Sincos(turn * math.Pi / 180)
	xdraw.BiLinear.Transform(p.img, f64.Aff3{cos, -sin, x + cos*shift + sin*float64(up), sin, cos, y + sin*shift - cos*float64(up)}, label, label.Bounds(), draw.Over, nil)
	return nil
}

// transformOf reads a translation and a rotation in degrees.
func transformOf(text string) (move [2]float64, turn float64, err error) {
	for part := range strings.SplitSeq(text, ")") {
		name, list, ok := strings.Cut(strings.TrimSpace(part), "(")
		if !ok {
			continue
		}
		var v []float64
		for f := range strings.FieldsSeq(strings.ReplaceAll(list, ",", " ")) {
			n, err := strconv.ParseFloat(f, 64)
			if err != nil || math.Abs(n) > 1e6 || math.IsNaN(n) {
				return move, 0, fmt.Errorf("transform=%q", text)
			}
			v = append(v, n)
		}
		switch {
		case name == "translate" && len(v) == 2:
			move = [2]float64{v[0], v[1]}
		case name == "rotate" && len(v) == 1:
			turn = v[0]
		default:
			return move, 0, fmt.Errorf("transform=%q is not a translation and a rotation", text)
		}
	}
	return move, turn, nil
}

// face is the font of a style.
func (p *painter) face(s style) (font.Face, error) {
	size, data := 12.0, goregular.TTF
	for f := range strings.FieldsSeq(s["font"]) {
		switch v, ok := strings.CutSuffix(f, "px"); {
		case ok:
			if n, err := strconv.ParseFloat(v, 64); err == nil {
				size = n
			}
		case f == "bold":
			data = gobold.TTF
		case f == "monospace":
			data = gomono.TTF
		}
	}
	if v, ok := strings.CutSuffix(s["font-size"], "px"); ok {
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			size = n
		}
	}
	if s["font-weight"] == "bold" {
		data = gobold.TTF
	}
	size = max(1, min(200, size*p.scale))
	key := fmt.Sprint(size, len(data))
	if face, ok := p.faces[key]; ok {
		return face, nil
	}
	f, err := opentype.Parse(data)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	p.faces[key] = face
	return face, err
}
