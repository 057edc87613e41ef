package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/cli"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// draw runs report in the root of the repository.
func draw(t *testing.T, format string, args ...string) string {
	t.Helper()
	t.Chdir("../..")
	var out, msg bytes.Buffer
	status := cli.Main(t.Context(), append([]string{"report", "--format", format}, args...), strings.NewReader(""), &out, &msg)
	t.Chdir("internal/picture")
	if status != 0 {
		t.Fatalf("%v: status %d: %s", args, status, msg.String())
	}
	return out.String()
}

// TestUnits: a box says what its share is of, if that is not what those of the tree are of.
func TestUnits(t *testing.T) {
	svg := draw(t, "svg", "examples/walk/columns-1.txt", "--level", "3")
	for line := range strings.Lines(draw(t, "csv", "examples/walk/columns-1.txt", "--level", "3")) {
		f := strings.Split(line, ",")
		name := f[4][strings.LastIndexByte(f[4], '.')+1:]
		_, title, ok := strings.Cut(svg, "<title>"+name+" ")
		title, _, _ = strings.Cut(title, "<")
		if ok && (f[7] == "slots") == strings.Contains(title, " of ") || ok && f[7] != "slots" && !strings.Contains(title, " of "+f[7]) {
			t.Errorf("%s: %q, in %s", name, title, f[7])
		}
	}
	if !strings.Contains(svg, " % of cycles") {
		t.Error("no box has a share of cycles")
	}
}

// TestTree: the boxes of the picture are as wide as the shares of CSV say, and say them.
func TestTree(t *testing.T) {
	args := []string{"examples/walk/columns-1.txt", "--level", "3"}
	svg := draw(t, "svg", args...)
	var d struct {
		G []struct {
			Title string `xml:"title"`
			Rect  []struct {
				Width float64 `xml:"width,attr"`
			} `xml:"rect"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal([]byte(svg), &d); err != nil {
		t.Fatal(err)
	}
	widths := map[string]float64{}
	for _, g := range d.G {
		name, _, _ := strings.Cut(g.Title, " ")
		widths[name] = g.Rect[0].Width
	}
	roots := 0
	for line := range strings.Lines(draw(t, "csv", args...)) {
		for name, w := range widths {
			if strings.Contains(line, ","+name+",") && strings.Contains(line, ",1,") {
				for _, cell := range strings.Split(line, ",") {
					if v, err := strconv.ParseFloat(cell, 64); err == nil && math.Abs(v-w/960) < 0.001 && v > 0 {
						roots++
						break
					}
				}
			}
		}
	}
	if roots < 4 {
		t.Errorf("%d of the highest nodes have the width of their share: %v", roots, widths)
	}
	if strings.Contains(svg, "<script") || !strings.Contains(svg, "<desc>") {
		t.Error("a script, or no description")
	}
}

// TestTimeline: a band for each of the highest nodes, and axes with units.
func TestTimeline(t *testing.T) {
	svg := draw(t, "svg", "--by", "interval", "--sysroot", "examples/functions", "examples/levels.data")
	for _, want := range []string{">seconds</text>", ">0 %</text>", ">Backend_Bound</text>", "<title>Retiring</title>"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if n := strings.Count(svg, "<path "); n != 4 {
		t.Errorf("%d bands", n)
	}
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(fmt.Errorf("no XML: %w", err))
		}
	}
}
