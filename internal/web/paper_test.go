package web_test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testbrowser"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// TestPaper: what is printed has the rows of tables and no controls, on white paper also from
// a dark page. A long table prints its first rows, and says so. Afterwards the page is as
// before.
func TestPaper(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	text, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Skip("there is no pdftotext: apt-get install poppler-utils")
	}
	many, list := manyFunctions(t, 220)
	pages := map[string][]byte{"levels": htmlOf(t, "report", levels...), "many": many}
	if testlong.Enabled() {
		pages["annotate"] = htmlOf(t, "report", "--sysroot", "examples/annotate", "examples/annotate.data")
	}
	for name, html := range pages {
		tab := open(t, b, html)
		tab.Eval(`document.documentElement.dataset.theme = "dark"`, nil)
		tab.Frames()
		before := cells(tab, "#where-function")
		file := filepath.Join(t.TempDir(), name+".pdf")
		if err := os.WriteFile(file, tab.PDF(), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(text, "-layout", file, "-").Output()
		if err != nil {
			t.Fatal(err)
		}
		words := string(out)
		for _, want := range []string{"What", "Tree", "Retiring 17.5 %", "Where, by function", "Can I believe it"} {
			if !strings.Contains(words, want) && (name == "levels" || !strings.HasPrefix(want, "Retiring")) {
				t.Errorf("%s: the paper has no %q", name, want)
			}
		}
		if strings.Contains(words, "Light or dark") || strings.Contains(words, "Whole tree") {
			t.Errorf("%s: the paper has buttons", name)
		}
		for i := range min(len(before), 5) {
			row := before[i]
			if function := strings.Fields(strings.TrimPrefix(row["name"], "● "))[0]; !strings.Contains(words, function) {
				t.Errorf("%s: the paper has no %s", name, function)
			}
		}
		if name == "many" {
			if n := len(regexp.MustCompile(`function_\d+`).FindAllString(words, -1)); n < 200 || n > 220 || !strings.Contains(words, fmt.Sprintf("first 200 of %d rows", len(list))) {
				t.Errorf("the paper has %d functions of %d, or does not say that these are the first", n, len(list))
			}
			if pages := strings.Count(words, "\f"); pages > 20 {
				t.Errorf("%d pages", pages)
			}
		}
		tab.Frames()
		if after := cells(tab, "#where-function"); len(after) != len(before) || tab.Text("#where-function .rest") != "(no such element)" {
			t.Errorf("%s: the page has %d rows after printing, %d before", name, len(after), len(before))
		}
	}
}

// TestTones: the tones of the four parts of a tree differ by their lightness alone: they can
// be told in grey.
func TestTones(t *testing.T) {
	css, err := os.ReadFile("internal/web/src/page.css")
	if err != nil {
		t.Fatal(err)
	}
	palettes := regexp.MustCompile(`--front: (#\w{6}); --bad: (#\w{6}); --back: (#\w{6}); --work: (#\w{6});`).FindAllStringSubmatch(string(css), -1)
	if len(palettes) != 3 {
		t.Fatalf("%d palettes", len(palettes))
	}
	for _, p := range palettes {
		tones := slices.Clone(p[1:])
		slices.SortFunc(tones, func(a, b string) int { return cmp.Compare(lightness(t, a), lightness(t, b)) })
		for i := 1; i < len(tones); i++ {
			if d := lightness(t, tones[i]) - lightness(t, tones[i-1]); d < 7 {
				t.Errorf("%s and %s differ by %.1f of 100 in lightness", tones[i-1], tones[i], d)
			}
		}
	}
}

// lightness is L* of CIELAB.
func lightness(t *testing.T, colour string) float64 {
	t.Helper()
	v, err := strconv.ParseUint(colour[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	y := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(v>>(16-8*i)&255) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		y += weight * c
	}
	return 116*math.Cbrt(y) - 16
}
