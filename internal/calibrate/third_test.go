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
