package calibrate

import (
	"math"
	"testing"

	"github.com/cyclestack/cyclestack/internal/penalties"
)

// TestThirdSize gives the latencies of random cycles of lines in a cache that replaces any line.
func TestThirdSize(t *testing.T) {
	const third, memory = 80, 400
	for _, size := range []float64{5e6, 11e6, 30e6} {
		r := &Result{Levels: []Level{{Name: "L3", Cycles: third}, {Name: "memory", Cycles: memory}}}
		for bytes := 1 << 20; bytes <= 128<<20; bytes += bytes / 4 {
			hit := 0.0
			for range 1000 {
				hit = math.Exp(-(1 - hit) * float64(bytes) / size)
			}
			r.Curve = append(r.Curve, Point{Bytes: bytes, Cycles: Number(hit*third + (1-hit)*memory)})
		}
		p := r.thirdSize()
		if p.Name != penalties.ThirdSize || !(p.Value > 0.93*size && p.Value < 1.07*size) {
			t.Errorf("%.3g bytes: found %.3g", size, p.Value)
		}
	}
}

// TestThirdSizeOfLifetime gives the latencies of a cache whose unused lines leave it: of one that is
// large, where the size cannot be seen, and of a small one.
func TestThirdSizeOfLifetime(t *testing.T) {
	const third, memory, half = 50, 530, 40e6
	for _, size := range []float64{3e6, 6e6, 64e6} {
		r := &Result{Levels: []Level{{Name: "L3", Cycles: third}, {Name: "memory", Cycles: memory}},
			Costs: []Figure{{Name: "third-lifetime", Value: half}}}
		for bytes := 1 << 20; bytes <= 128<<20; bytes += bytes / 8 {
			hit, cycles := 1.0, 0.0
			for range 3000 {
				cycles = hit*third + (1-hit)*memory
				hit = math.Exp(-(1-hit)*float64(bytes)/size) * (1 - leftAfter(float64(bytes)/usualLine*cycles, half))
			}
			r.Curve = append(r.Curve, Point{Bytes: bytes, Cycles: Number(cycles)})
		}
		p := r.thirdSize()
		if size > 32e6 {
			if p.Why == "" {
				t.Errorf("%.3g bytes: found %.3g, which cannot be seen", size, p.Value)
			}
			continue
		}
		if !(p.Value > 0.85*size && p.Value < 1.15*size) {
			t.Errorf("%.3g bytes: found %.3g %s", size, p.Value, p.Why)
		}
	}
}

// TestLifetime finds half-lives.
func TestLifetime(t *testing.T) {
	var rounds []float64
	for _, half := range []float64{9e6, 10e6, 11e6, 10e6, 30e6} {
		got := halfLife(func(ns float64) float64 { return leftAfter(ns, half) })
		if math.Abs(got/half-1) > 0.1 {
			t.Errorf("half-life %.3g ns: found %.3g", half, got)
		}
		rounds = append(rounds, got)
	}
	f := lifetime(rounds, 4e9)
	if f.Why != "" || math.Abs(float64(f.Value)/40e6-1) > 0.1 || !(f.Error >= 0.5e6 && f.Error < 4e6) {
		t.Errorf("five rounds around 10 ms at 4 GHz: %+v", f)
	}
	if !math.IsNaN(halfLife(func(float64) float64 { return math.NaN() })) {
		t.Error("a disturbed round has a half-life")
	}
	none := halfLife(func(float64) float64 { return 0.01 })
	for _, rounds := range [][]float64{{none, none, none, none, none}, rounds[:2]} {
		if f := lifetime(rounds, 4e9); f.Known() || f.Why == "" {
			t.Errorf("%v: %+v", rounds, f)
		}
	}
}
