package web_test

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testbrowser"
)

// TestVision: as the colour-blind see the page, by Chromium's emulation, the parts of a tree
// still differ.
func TestVision(t *testing.T) {
	t.Parallel()
	tab := open(t, testbrowser.New(t), htmlOf(t, "report", levels...))
	for _, theme := range []string{"light", "dark"} {
		tab.Eval(fmt.Sprintf(`document.documentElement.dataset.theme = %q`, theme), nil)
		for _, deficiency := range []string{"none", "deuteranopia", "protanopia", "tritanopia", "achromatopsia"} {
			tab.Vision(deficiency)
			var places []struct {
				Node string
				X, Y float64
			}
			tab.Eval(`[...document.querySelectorAll("#tree .box")].filter(b => !b.dataset.node.includes(".")).map(b => { const r = b.querySelector("rect").getBoundingClientRect(); return {Node: b.dataset.node, X: r.right - 6, Y: r.bottom - 5}; })`, &places)
			if len(places) != 4 {
				t.Fatalf("%d parts", len(places))
			}
			picture, err := png.Decode(bytes.NewReader(tab.Screenshot()))
			if err != nil {
				t.Fatal(err)
			}
			var seen [][3]float64
			for _, p := range places {
				r, g, b, _ := picture.At(int(p.X), int(p.Y)).RGBA()
				seen = append(seen, lab(float64(r)/65535, float64(g)/65535, float64(b)/65535))
			}
			for i := range seen {
				for k := range i {
					if d := math.Hypot(math.Hypot(seen[i][0]-seen[k][0], seen[i][1]-seen[k][1]), seen[i][2]-seen[k][2]); d < 7 {
						t.Errorf("%s, %s: %s and %s differ by %.1f", theme, deficiency, places[i].Node, places[k].Node, d)
					}
				}
			}
		}
	}
	tab.Vision("none")
}

// lab is a colour of sRGB in CIELAB (D65).
func lab(r, g, b float64) [3]float64 {
	linear := func(c float64) float64 {
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	r, g, b = linear(r), linear(g), linear(b)
	f := func(v float64) float64 {
		if v > 216.0/24389 {
			return math.Cbrt(v)
		}
		return (24389.0/27*v + 16) / 116
	}
	x, y, z := f((0.4124564*r+0.3575761*g+0.1804375*b)/0.95047), f(0.2126729*r+0.7151522*g+0.072175*b), f((0.0193339*r+0.119192*g+0.9503041*b)/1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}
