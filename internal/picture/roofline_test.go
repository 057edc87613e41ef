package picture_test

import (
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// roofed has the elements of a roofline.
type roofed struct {
	Circles []struct {
		X     float64 `xml:"cx,attr"`
		Y     float64 `xml:"cy,attr"`
		Title string  `xml:"title"`
	} `xml:"circle"`
	Lines []struct {
		X1    float64 `xml:"x1,attr"`
		X2    float64 `xml:"x2,attr"`
		Y1    float64 `xml:"y1,attr"`
		Y2    float64 `xml:"y2,attr"`
		Style string  `xml:"style,attr"`
	} `xml:"line"`
	Texts []struct {
		X    float64 `xml:"x,attr"`
		Y    float64 `xml:"y,attr"`
		Text string  `xml:",chardata"`
	} `xml:"text"`
}

// at returns what a position on an axis stands for, by two of the axis's labels.
func (r *roofed) at(pos float64, across bool) float64 {
	type label struct{ pos, log float64 }
	var list []label
	for _, t := range r.Texts {
		v, err := strconv.ParseFloat(t.Text, 64)
		switch {
		case err != nil:
		case across && t.Y == 538:
			list = append(list, label{t.X, math.Log10(v)})
		case !across && t.X == 82:
			list = append(list, label{t.Y - 4, math.Log10(v)})
		}
	}
	a, b := list[0], list[len(list)-1]
	return math.Pow(10, a.log+(b.log-a.log)*(pos-a.pos)/(b.pos-a.pos))
}

// words are all texts of the picture.
func (r *roofed) words() (all string) {
	for _, x := range r.Texts {
		all += x.Text + "\n"
	}
	return all
}

// roofOf draws a roofline of counts with a calibration.
func roofOf(t *testing.T, calibration string, files ...string) roofed {
	t.Helper()
	dir := t.TempDir()
	args := []string{"--cpu", "skylakex", "--penalties", "none"}
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	if calibration != "" {
		args[3] = write("penalties.toml", calibration)
	}
	for i, text := range files {
		args = append(args, write(fmt.Sprintf("%d.csv", i), text))
	}
	var r roofed
	if err := xml.Unmarshal([]byte(draw(t, "roofline", args...)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRoofline: points and ceilings are where the counts and the calibration put them, as
// the axes' own labels say.
func TestRoofline(t *testing.T) {
	const calibration = "MEMORY_BANDWIDTH = 2e10\nFREQUENCY = 4e9\n"
	counted := func(event string, n float64) string { return fmt.Sprintf("%.0f,,%s,1000000000,100.00,,\n", n, event) }
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	base := counted("CPU_CLK_UNHALTED.THREAD", 8e9) + counted("INST_RETIRED.ANY", 6e9) + counted("LONGEST_LAT_CACHE.MISS", 46875000)
	// 6 G instructions in 2 s of 4 GHz, 3 GB.
	r := roofOf(t, calibration, base)
	near("the rate", r.at(r.Circles[0].Y, false), 3)
	near("the intensity", r.at(r.Circles[0].X, true), 2)
	var slopes, levels []float64
	for _, l := range r.Lines {
		switch {
		case l.Style == "":
		case l.Y1 == l.Y2:
			levels = append(levels, r.at(l.Y1, false))
		default:
			for _, end := range [][2]float64{{l.X1, l.Y1}, {l.X2, l.Y2}} {
				slopes = append(slopes, r.at(end[1], false)/r.at(end[0], true))
			}
		}
	}
	if len(slopes) != 2 || len(levels) != 2 {
		t.Fatalf("%d ends of slopes, %d levels", len(slopes), len(levels))
	}
	near("the slope at its beginning, in GB/s", slopes[0], 20)
	near("the slope at its end, in GB/s", slopes[1], 20)
	near("four instructions a cycle", levels[0], 16)
	near("one instruction a cycle", levels[1], 4)

	// 0.5 G scalar operations and 0.25 G of four each.
	r = roofOf(t, calibration, base+counted("FP_ARITH_INST_RETIRED.SCALAR_DOUBLE", 5e8)+counted("FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE", 2.5e8))
	near("the rate of floating-point operations", r.at(r.Circles[0].Y, false), 0.75)
	near("their intensity", r.at(r.Circles[0].X, true), 0.5)
	if all := r.words(); !strings.Contains(all, "Not known: the peak of floating-point operations") {
		t.Errorf("without a peak the picture says %s", all)
	}
	r = roofOf(t, calibration+"FLOP_PEAK = 1.28e11\n", base+counted("FP_ARITH_INST_RETIRED.SCALAR_DOUBLE", 5e8)+counted("FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE", 2.5e8))
	levels = nil
	for _, l := range r.Lines {
		if l.Style != "" && l.Y1 == l.Y2 {
			levels = append(levels, r.at(l.Y1, false))
		}
	}
	if len(levels) != 1 || strings.Contains(r.words(), "Not known") {
		t.Fatalf("levels %v: %s", levels, r.words())
	}
	near("the peak of floating-point operations", levels[0], 128)
	near("the rate below it", r.at(r.Circles[0].Y, false), 0.75)

	// Without a calibration the time is that of the processor, and there are no ceilings.
	r = roofOf(t, "", base+"2000.00,msec,task-clock,2000000000,100.00,,\n")
	near("the rate without a calibration", r.at(r.Circles[0].Y, false), 3)
	for _, l := range r.Lines {
		if l.Style != "" {
			t.Error("a ceiling without a calibration")
		}
	}
	if all := r.words(); !strings.Contains(all, "Not known: bandwidth, clock") || !strings.Contains(all, "G instructions for each byte") && !strings.Contains(all, "instructions for each byte to and from memory") {
		t.Errorf("the picture says %s", all)
	}
}
