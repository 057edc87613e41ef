package calibrate

import (
	"math"
	"testing"
)

// curveOf makes a curve from sizes in KiB and cycles.
func curveOf(pairs ...float64) []Point {
	var curve []Point
	for i := 0; i < len(pairs); i += 2 {
		p := Point{Bytes: int(pairs[i] * 1024), Cycles: Number(pairs[i+1]), Nanos: Number(pairs[i+1] / 4)}
		if math.IsNaN(pairs[i+1]) {
			p.Why = "too busy"
		}
		curve = append(curve, p)
	}
	return curve
}

var nan = math.NaN()

func TestFindLevels(t *testing.T) {
	type want struct {
		name     string
		cycles   float64 // NaN: absent
		from, to float64 // KiB
	}
	for _, tt := range []struct {
		name  string
		curve []Point
		want  []want
	}{
		{
			// A Zen 4 server, bare: three caches, each with a soft edge.
			"three caches",
			curveOf(4, 4, 6, 4, 8, 4, 12, 4, 16, 4, 24, 4.01, 32, 4.2, 48, 13.8, 64, 14, 96, 14, 128, 14, 192, 14, 256, 14.1, 384, 14.6, 512, 15.8, 768, 18, 1024, 25,
				1536, 47, 2048, 49, 3072, 50, 4096, 50.5, 8192, 51, 16384, 53, 32768, 120, 65536, 350, 131072, 380, 262144, 400),
			[]want{{"L1", 4, 4, 32}, {"L2", 14, 48, 768}, {"L3", 50, 1536, 16384}, {"memory", 380, 65536, 262144}},
		},
		{
			"two caches, as on Core 2",
			curveOf(4, 3, 8, 3, 16, 3, 24, 3, 32, 3.1, 64, 14, 128, 14, 256, 14, 512, 14, 1024, 14.2, 2048, 14.5, 4096, 40, 8192, 165, 16384, 166, 32768, 168),
			[]want{{"L1", 3, 4, 32}, {"L2", 14, 64, 2048}, {"memory", 165, 8192, 32768}},
		},
		{
			// What is measured on a virtual machine whose neighbours use the third
			// cache: it is there for the eye, but on no level ground.
			"a cache that others use",
			curveOf(4, 4, 8, 4, 16, 4, 32, 4, 48, 13.9, 64, 14, 128, 14, 256, 14, 512, 17, 1024, 30, 2048, 88, 3072, 250, 4096, 400, 8192, 500, 16384, 520, 32768, 530, 65536, 560),
			[]want{{"L1", 4, 4, 32}, {"L2", 14, 48, 512}, {"L3", nan, 0, 0}, {"memory", 520, 4096, 65536}},
		},
		{
			// Working sets just above those that fit are in part in the cache.
			"a bend before memory",
			curveOf(4, 4, 8, 4, 16, 4, 32, 4, 64, 14, 128, 14, 256, 14, 512, 14, 2048, 380, 3072, 385, 4096, 390, 6144, 500, 8192, 540, 16384, 545, 32768, 550),
			[]want{{"L1", 4, 4, 32}, {"L2", 14, 64, 512}, {"L3", nan, 0, 0}, {"memory", 545, 6144, 32768}},
		},
		{
			// A larger share of page walks within a cache is no level of its own.
			"small pages",
			curveOf(4, 5, 8, 5, 16, 5, 32, 5, 64, 14, 128, 14, 256, 14.5, 512, 20, 768, 20.3, 1024, 20.5, 1536, 20.8, 2048, 80, 4096, 82, 8192, 84, 32768, 400, 65536, 410, 131072, 420),
			[]want{{"L1", 5, 4, 32}, {"L2", 14, 64, 1536}, {"L3", 80, 2048, 8192}, {"memory", 400, 32768, 131072}},
		},
		{
			"one point far off, others not measured",
			curveOf(4, 4, 6, 4, 8, 9, 12, 4, 16, nan, 24, 4, 32, 4, 48, 14, 64, 14, 96, nan, 128, 14, 256, 14, 512, 14, 1024, 200, 2048, 210, 4096, 215, 8192, nan),
			[]want{{"L1", 4, 4, 32}, {"L2", 14, 48, 512}, {"memory", 210, 1024, 4096}},
		},
		{
			"ends in the third cache",
			curveOf(4, 4, 8, 4, 16, 4, 32, 4, 64, 14, 128, 14, 256, 14, 512, 14, 1024, 50, 2048, 90, 4096, 300),
			[]want{{"L1", 4, 4, 32}, {"L2", 14, 64, 512}, {"memory", nan, 0, 0}},
		},
		{
			"what may be a cache or memory",
			curveOf(4, 4, 8, 4, 16, 4, 32, 4, 64, 14, 128, 14, 256, 14, 512, 14, 1024, 200, 2048, 210, 4096, 215, 8192, nan, 16384, nan, 32768, nan, 65536, nan),
			[]want{{"L1", 4, 4, 32}, {"L2", 14, 64, 512}, {"L3", nan, 0, 0}, {"memory", nan, 0, 0}},
		},
		{
			"nothing beyond L2",
			curveOf(4, 4, 8, 4, 16, 4, 32, 4, 64, 14, 128, 14, 256, 14, 512, 14, 1024, nan, 2048, nan, 4096, nan),
			[]want{{"L1", 4, 4, 32}, {"L2", 14, 64, 512}, {"memory", nan, 0, 0}},
		},
		{
			"larger working sets had no time",
			curveOf(4, 4, 8, 4, 16, 4, 32, 4, 64, 14, 128, 14, 256, 14, 512, 15.8, 768, 18, 1024, 28, 1536, 47, 2048, 46, 3072, 47, 4096, 48, 6144, 50, 8192, 51),
			[]want{{"L1", 4, 4, 32}, {"L2", 14, 64, 768}, {"L3", 47, 1536, 8192}, {"memory", nan, 0, 0}},
		},
		{"nothing", nil, []want{{"memory", nan, 0, 0}}},
		{"nothing measured", curveOf(4, nan, 8, nan), []want{{"memory", nan, 0, 0}}},
	} {
		got := findLevels(tt.curve)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %d levels %+v, want %d", tt.name, len(got), got, len(tt.want))
			continue
		}
		for i, w := range tt.want {
			g := got[i]
			if math.IsNaN(w.cycles) {
				if g.Name != w.name || g.Why == "" || !math.IsNaN(float64(g.Cycles)) {
					t.Errorf("%s: level %d is %+v, want %s absent with a reason", tt.name, i, g, w.name)
				}
				continue
			}
			if g.Name != w.name || float64(g.Cycles) != w.cycles || g.From != int(w.from*1024) || g.To != int(w.to*1024) {
				t.Errorf("%s: level %d is %+v, want %+v", tt.name, i, g, w)
			}
		}
	}
}

// TestUncertain leaves out points that are less certain than others, and refuses a cache
// without certain points.
func TestUncertain(t *testing.T) {
	curve := curveOf(4, 4, 8, 5, 16, 5, 32, 5)
	for i := range curve[1:] {
		curve[i+1].Error = 1
	}
	if got := findLevels(curve)[0]; got.Cycles != 4 || got.Error != 0 {
		t.Errorf("L1 is %v ± %v, want 4 ± 0", got.Cycles, got.Error)
	}
	curve[0].Error = 1
	if got := findLevels(curve)[0]; got.Why == "" || !math.IsNaN(float64(got.Cycles)) {
		t.Errorf("L1 is %v (%s), want that it is too uncertain", got.Cycles, got.Why)
	}
}

// TestMostlyUncertain is of machines that were busy all the time: certainty alone makes
// no point stand for it: one may be on a level's edge, or disturbed throughout.
func TestMostlyUncertain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		curve  []Point
		errors []Number
		want   Number
	}{
		{"the lower edge is certain", curveOf(4, 4, 8, 4, 16, 4, 32, 4, 48, 13.7, 64, 14, 96, 15, 128, 14.7, 192, 16.3, 256, 17, 512, 17.4, 8192, 400, 16384, 400, 32768, 400),
			[]Number{0, 0, 0, 0, 0.02, 0.7, 0.7, 0.5, 0.8, 1, 0.25}, 14},
		{"the upper edge is certain", curveOf(4, 4, 8, 4, 16, 4, 32, 4, 48, 13.6, 64, 14, 96, 14.2, 128, 14.4, 192, 14.5, 256, 14.2, 384, 16.1, 8192, 400, 16384, 400, 32768, 400),
			[]Number{0, 0, 0, 0, 1, 0.6, 1.8, 0.9, 1.2, 0.8, 0.1}, 14},
	} {
		for i, e := range tt.errors {
			tt.curve[i].Error = e
		}
		if got := findLevels(tt.curve)[1]; got.Name == "memory" || got.Cycles != tt.want {
			t.Errorf("%s: %+v, want L2 of %v cycles", tt.name, got, tt.want)
		}
	}
}

func TestTypical(t *testing.T) {
	for _, tt := range []struct {
		list []float64
		want float64
	}{
		{[]float64{7}, 7},
		{[]float64{4, 4.4}, 4},
		{[]float64{4.06, 4.35, 4.08, 4.43}, 4.08},
		{[]float64{13, 13.8, 14, 14.01, 14.02, 14.02, 15, 16, 17}, 14.01},
	} {
		if got := typical(tt.list); got != tt.want {
			t.Errorf("typical(%v) = %v, want %v", tt.list, got, tt.want)
		}
	}
}

func TestPageCosts(t *testing.T) {
	curve := func(pairs ...float64) []PagePoint {
		var points []PagePoint
		for i := 0; i < len(pairs); i += 2 {
			p := PagePoint{Pages: int(pairs[i]), Cycles: Number(pairs[i+1])}
			if math.IsNaN(pairs[i+1]) {
				p.Why = "too busy"
			}
			points = append(points, p)
		}
		return points
	}
	for _, tt := range []struct {
		name         string
		points       []PagePoint
		second, walk float64
	}{
		{"two TLBs", curve(8, 0, 16, 0, 32, 0, 64, 0, 96, 7, 128, 7, 256, 7, 512, 7, 1024, 7, 2048, 7.2, 3072, 20, 4096, 35, 8192, 36, 16384, 37), 7, 35},
		{"walks that cost more and more", curve(8, -0.1, 16, 0, 32, 0, 64, 0, 96, 7, 128, 7, 256, 7, 512, 7, 1024, 7, 2048, 7.2, 3072, 40, 4096, 80, 8192, 110, 12288, 130, 16384, 136), 7, 136},
		{"walks that never come to an end", curve(8, 0, 16, 0, 32, 0, 64, 0, 96, 7, 128, 7, 256, 7, 512, 7, 1024, 7, 2048, 40, 4096, 80, 8192, 160), 7, nan},
		{"one TLB", curve(8, 0, 16, 0, 32, 0, 64, 30, 128, 30, 256, 30, 512, 30), nan, 30},
		{"more pages than the machine let us measure", curve(8, 0, 16, 0, 32, 0, 64, 7, 128, 7, 256, 7, 512, nan, 1024, nan, 2048, nan), nan, nan},
		{"none to be seen", curve(8, 0, 16, 0, 32, 0, 64, 0, 128, 0), nan, nan},
		{"nothing", nil, nan, nan},
	} {
		second, walk := pageCosts(tt.points, 4)
		for _, x := range []struct {
			got  Figure
			want float64
		}{{second, tt.second}, {walk, tt.walk}} {
			known := !math.IsNaN(x.want)
			if x.got.Known() != known || known && math.Abs(float64(x.got.Value)-x.want) > 1e-9 || !known && x.got.Why == "" {
				t.Errorf("%s: %s: got %v (%s), want %v", tt.name, x.got.Name, x.got.Value, x.got.Why, x.want)
			}
		}
	}
}
