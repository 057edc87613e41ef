package paint_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/paint"
	"github.com/cyclestack/cyclestack/internal/testbrowser"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestMain(m *testing.M) { os.Exit(testbrowser.Main(m)) }

// pictures are one of each kind that cyclestack draws.
func pictures(t testing.TB) map[string][]byte {
	t.Helper()
	t.Chdir("../..")
	defer t.Chdir("internal/paint")
	list := map[string][]byte{}
	for name, args := range map[string]string{
		"tree":     "report --format svg --level 3 examples/walk/columns-1.txt",
		"hatched":  "report --format svg --sysroot examples/annotate examples/annotate.data",
		"course":   "report --by interval --format svg --sysroot examples/functions examples/levels.data",
		"roofline": "report --format roofline --penalties examples/roofline/penalties.toml examples/roofline/chase.callgrind",
		"latency":  "latency --format svg examples/loop-latency-case1.txt",
		"pipeline": "core --trace --format svg --sysroot examples/annotate examples/annotate.data",
	} {
		var out, msg bytes.Buffer
		if status := cli.Main(t.Context(), strings.Fields(args), strings.NewReader(""), &out, &msg); status != 0 {
			t.Fatalf("%s: status %d: %s", args, status, msg.String())
		}
		list[name] = out.Bytes()
	}
	return list
}

func drawn(t testing.TB, svg []byte) *image.RGBA {
	t.Helper()
	img, err := paint.Draw(bytes.NewReader(svg), 1)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

var texts = regexp.MustCompile(`<text[^>]*>[^<]*</text>`)

// TestLikeChromium: without their labels, whose fonts differ, pictures are those that
// Chromium draws, apart from edges.
func TestLikeChromium(t *testing.T) {
	b := testbrowser.New(t)
	for name, svg := range pictures(t) {
		bare := texts.ReplaceAll(svg, nil)
		img := drawn(t, bare)
		size := img.Bounds().Size()
		tab := b.File([]byte("<!DOCTYPE html><style>body{margin:0}svg{display:block;width:" + strconv.Itoa(size.X) + "px}</style>" + string(bare)))
		tab.Resize(int64(size.X), int64(size.Y))
		other, err := png.Decode(bytes.NewReader(tab.Screenshot()))
		if err != nil {
			t.Fatal(err)
		}
		differs := 0
		for y := range size.Y {
			for x := range size.X {
				if distance(img.At(x, y), other.At(x, y)) > 48 {
					differs++
				}
			}
		}
		if share := float64(differs) / float64(size.X*size.Y); share > 0.02 {
			t.Errorf("%s: %.1f %% of the pixels differ from Chromium's", name, 100*share)
		}
	}
}

// distance is the largest difference of two colours in one of red, green and blue.
func distance(a, b color.Color) int {
	r, g, bl, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	d := func(x, y uint32) int { return max(int(x>>8)-int(y>>8), int(y>>8)-int(x>>8)) }
	return max(d(r, r2), d(g, g2), d(bl, b2))
}

// TestText: labels are drawn where they stand, and in both directions.
func TestText(t *testing.T) {
	img := drawn(t, []byte(`<svg viewBox="0 0 200 100"><text x="10" y="20">label</text><text transform="translate(150 90) rotate(-90)">upright</text></svg>`))
	ink := func(r image.Rectangle) (n int) {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				if distance(img.At(x, y), color.White) > 128 {
					n++
				}
			}
		}
		return n
	}
	all := ink(img.Bounds())
	if a, b := ink(image.Rect(10, 8, 50, 25)), ink(image.Rect(135, 30, 155, 92)); a < 20 || b < 20 || a+b != all {
		t.Errorf("%d and %d dots of ink, %d in all", a, b, all)
	}
}

// TestSixel: another program reads the sixels, and sees the picture.
func TestSixel(t *testing.T) {
	path, err := exec.LookPath("sixel2png")
	if err != nil {
		t.Skip("there is no sixel2png: apt-get install libsixel-bin")
	}
	img := drawn(t, pictures(t)["tree"])
	var b bytes.Buffer
	if err := paint.Sixel(&b, img); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tree.png")
	cmd := exec.Command(path, "-o", file)
	cmd.Stdin = &b
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	size, got := img.Bounds().Size(), other.Bounds().Size()
	if got.X != size.X || got.Y < size.Y || got.Y >= size.Y+6 { // whole bands of six lines
		t.Fatalf("%v, want %v", got, size)
	}
	const step = 255 / 5 / 2 // of the palette
	for y := range size.Y {
		for x := range size.X {
			if distance(img.At(x, y), other.At(x, y)) > step+3 {
				t.Fatalf("at %d,%d the colour is %v, want %v", x, y, other.At(x, y), img.At(x, y))
			}
		}
	}
}

// TestKitty: the pieces of kitty's protocol are the picture as PNG.
func TestKitty(t *testing.T) {
	img := drawn(t, pictures(t)["pipeline"])
	var b bytes.Buffer
	if err := paint.Kitty(&b, img); err != nil {
		t.Fatal(err)
	}
	text, n := "", 0
	for piece := range strings.SplitSeq(b.String(), "\x1b\\") {
		head, data, ok := strings.Cut(strings.TrimPrefix(piece, "\x1b_G"), ";")
		if !ok {
			continue
		}
		if n++; n == 1 != strings.Contains(head, "f=100,a=T") || len(data) > 4096 {
			t.Fatalf("piece %d has %q and %d letters", n, head, len(data))
		}
		text += data
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || n < 2 {
		t.Fatal(n, err)
	}
	other, err := png.Decode(bytes.NewReader(data))
	if err != nil || other.Bounds() != img.Bounds() || distance(other.At(400, 60), img.At(400, 60)) > 0 {
		t.Errorf("%v: the picture is another", err)
	}
}

// TestRefused: what is no picture of cyclestack is an error with its line.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "no element svg",
		"<html/>":                    `"html"`,
		"<svg/>":                     "viewBox",
		`<svg viewBox="0 0 1e9 1"/>`: "too large",
		`<svg viewBox="0 0 NaN 1"/>`: "too small",
		`<svg viewBox="0 0 9 9"><g>`: "line 1",
		"<svg viewBox=\"0 0 9 9\">\n<image href=\"x\"/></svg>":      "line 2: <image>",
		`<svg viewBox="0 0 9 9"><path d="M1 2C3 4"/></svg>`:         "<path>",
		`<svg viewBox="0 0 9 9"><rect fill="red" width="2"/></svg>`: `"red"`,
	} {
		_, err := paint.Draw(strings.NewReader(text), 1)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// drawables are elements that cyclestack draws.
var drawables = []string{`<rect x="1" y="2" width="9" height="8" fill="#123456" stroke="#fff"/>`, `<g class="a"><line x1="1" y1="2" x2="30" y2="4" stroke="#000" stroke-dasharray="3 3"/></g>`,
	`<circle cx="9" cy="9" r="4" fill-opacity="0.5"/>`, `<polyline points="1,2 3,4 9,9" stroke="#000" fill="none"/>`, `<path d="M1 2L3 4H9V8Z"/>`, `<rect width="9" height="9" fill="url(#h)"/>`,
	`<style>.a{fill:#abc}</style><text x="1" y="20" class="a" text-anchor="middle">name</text>`, `<text transform="translate(9 9) rotate(-90)">name</text>`}

func FuzzDraw(f *testing.F) {
	for _, name := range []string{"tree.svg", "roofline.svg"} {
		svg, err := os.ReadFile("../../docs/pictures/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(svg)
	}
	for _, element := range drawables {
		f.Add([]byte(`<svg viewBox="0 0 40 40">` + element + `</svg>`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<13 {
			return
		}
		if img, err := paint.Draw(bytes.NewReader(data), 0.2); (img == nil) == (err == nil) {
			t.Errorf("%v, %v", img, err)
		}
	})
}
