package render_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/cyclestack/cyclestack/internal/calibrate"
	"github.com/cyclestack/cyclestack/internal/penalties"
	"github.com/cyclestack/cyclestack/internal/render"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/report"
)

func calibration(t *testing.T) *calibrate.Result {
	t.Helper()
	f, err := os.Open("../../examples/calibration-zen4.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := calibrate.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spoil makes everything of a calibration that can be absent absent.
func spoil(r *calibrate.Result) {
	nan, why := calibrate.Number(math.NaN()), "too busy"
	for i := range r.Curve {
		r.Curve[i].Cycles, r.Curve[i].Nanos, r.Curve[i].Error, r.Curve[i].Why = nan, nan, nan, why
	}
	for i := range r.Levels {
		r.Levels[i].Cycles, r.Levels[i].Nanos, r.Levels[i].Error, r.Levels[i].Why = nan, nan, nan, why
	}
	for i := range r.Costs {
		r.Costs[i].Value, r.Costs[i].Error, r.Costs[i].Why = nan, nan, why
	}
	for i := range r.Bandwidth {
		r.Bandwidth[i].Value, r.Bandwidth[i].Error, r.Bandwidth[i].Why = nan, nan, why
	}
	for i := range r.Loaded {
		r.Loaded[i].Bandwidth, r.Loaded[i].Cycles, r.Loaded[i].Nanos, r.Loaded[i].Error, r.Loaded[i].Why = nan, nan, nan, nan, why
	}
}

// TestCalibrationSchema checks the JSON of a calibration, and of one that could measure
// nothing, against the schema. It also checks that the schema can fail.
func TestCalibrationSchema(t *testing.T) {
	r := calibration(t)
	for range 2 {
		var out bytes.Buffer
		if err := report.Write(&out, "json", render.Calibration{Result: r}, report.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := testschema.Validate(t, testschema.Rendered(t, "calibration"), out.String()); err != nil {
			t.Errorf("%#v", err)
		}
		if testschema.Validate(t, testschema.Rendered(t, "calibration"), strings.Replace(out.String(), `"page_bytes":`, `"bytes_of_page":`, 1)) == nil {
			t.Error("a misspelt key passes")
		}
		again, err := calibrate.Read(&out)
		if err != nil {
			t.Errorf("what was written cannot be read: %v", err)
		} else if len(again.Curve) != len(r.Curve) {
			t.Errorf("read %d points again, want %d", len(again.Curve), len(r.Curve))
		}
		spoil(r)
	}
}

// TestCalibration checks that all figures are printed, those that were not measured with the
// reason, and nothing beyond the edge.
func TestCalibration(t *testing.T) {
	r := calibration(t)
	for _, width := range []int{0, 60} {
		var out bytes.Buffer
		if err := report.Write(&out, "text", render.Calibration{Result: r}, report.Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for _, l := range r.Levels {
			if !strings.Contains(text, "\n  "+l.Name+" ") {
				t.Errorf("the level %s is missing", l.Name)
			}
		}
		for _, f := range r.Costs {
			if !strings.Contains(text, f.Title) {
				t.Errorf("%q is missing", f.Title)
			}
		}
		if strings.Contains(text, "NaN") {
			t.Errorf("NaN is printed:\n%s", text)
		}
		points := 0
		for _, p := range r.Curve {
			if p.Why == "" {
				points++
			}
		}
		if got := strings.Count(text, "•"); got != points {
			t.Errorf("the picture has %d points, want %d", got, points)
		}
	}
	spoil(r)
	var out bytes.Buffer
	if err := report.Write(&out, "text", render.Calibration{Result: r}, report.Options{}); err != nil {
		t.Fatal(err)
	}
	want := len(r.Levels) + len(r.Costs) + len(r.Bandwidth) + len(r.Loaded)
	if got := strings.Count(out.String(), "too busy"); got != want {
		t.Errorf("the reason is given %d times, want %d:\n%s", got, want, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(line) > 101 {
			t.Errorf("wider than 100 columns: %s", line)
		}
	}
}

// TestPenalties reads the file again: it has what is wanted, as numbers, and the
// rest as comments.
func TestPenalties(t *testing.T) {
	r := calibration(t)
	var out bytes.Buffer
	wanted := func(p penalties.Penalty) bool { return p.Name != "FREQUENCY" }
	if err := report.Write(&out, "toml", render.Calibration{Result: r, Wanted: wanted}, report.Options{}); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	if err := toml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	for _, p := range r.Penalties() {
		value, ok := got[p.Name]
		if want := p.Why == "" && wanted(p); ok != want {
			t.Errorf("%s is in the file: %v, want %v", p.Name, ok, want)
		}
		if ok && math.Abs(value-p.Value) > max(0.005, 5e-4*p.Value) { // four digits
			t.Errorf("%s = %v, want %v", p.Name, value, p.Value)
		}
		if !strings.Contains(out.String(), p.Name) {
			t.Errorf("%s is not even mentioned", p.Name)
		}
	}
	if !strings.Contains(out.String(), "# FREQUENCY = ") {
		t.Errorf("what no model asks for is no comment:\n%s", out.String())
	}
}

// TestCalibrationSVG checks that the picture is XML with all points in it, within
// its frame.
func TestCalibrationSVG(t *testing.T) {
	r := calibration(t)
	r.CPU = "<&\">\x01\xff" // of a file that somebody else wrote
	var out bytes.Buffer
	if err := report.Write(&out, "svg", render.Calibration{Result: r}, report.Options{}); err != nil {
		t.Fatal(err)
	}
	points := 0
	d := xml.NewDecoder(&out)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local != "circle" {
			continue
		}
		points++
		for _, a := range e.Attr {
			var v float64
			if a.Name.Local == "cx" || a.Name.Local == "cy" {
				if err := json.Unmarshal([]byte(a.Value), &v); err != nil || v < 0 || v > 860 {
					t.Errorf("a point is at %s = %s", a.Name.Local, a.Value)
				}
			}
		}
	}
	want := 0
	for _, p := range r.Curve {
		if p.Why == "" {
			want++
		}
	}
	if points != want {
		t.Errorf("the picture has %d points, want %d", points, want)
	}
	spoil(r)
	if err := report.Write(io.Discard, "svg", render.Calibration{Result: r}, report.Options{}); err == nil {
		t.Error("there is a picture of nothing")
	}
}
