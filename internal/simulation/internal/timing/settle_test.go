package timing

import (
	"math"
	"testing"
)

// TestSettle settles instructions that retire at different times in each machine.
func TestSettle(t *testing.T) {
	t.Parallel()
	inst := func(ideal, real, late float64) *instruction {
		return &instruction{timed: 1, executed: 1, ideal: ticksOf(ideal), real: ticksOf(real), waited: ticksOf(late) - ticksOf(real)}
	}
	for _, tt := range []struct {
		name                 string
		insts                []*instruction
		cycles, lost, waited float64 // of all of them
	}{
		{"a cycle that shows elsewhere", []*instruction{inst(1, 0, 0), inst(0, 1, 0), inst(1, 0, 1), inst(0, 1, 1)}, 2, 0, 0},
		{"mispredictions and misses", []*instruction{inst(1, 5, 0), inst(1, 0, 20), inst(1, 1, 4)}, 3, 3, 18},
		{"sooner with misses", []*instruction{inst(2, 4, 3), inst(2, 2, 2)}, 3, 2, 0},
		{"sooner with mispredictions", []*instruction{inst(5, 4, 4), inst(1, 1, 3)}, 5, 0, 2},
		{"less than nothing with misses", []*instruction{inst(1, 1, -1.5), inst(3, 3, 4)}, 2.5, 0, 0},
		{"less than nothing, and more", []*instruction{inst(1, 1, -1), inst(1, 3, 9)}, 2, 2, 4},
		{"less than nothing in all", []*instruction{inst(1, 2, -2), inst(1, 1, 1)}, 0, 0, 0},
	} {
		p := &Rates{waits: waits{scale: 1}}
		p.settleFunction(tt.insts)
		var got parts
		for _, in := range tt.insts {
			for _, v := range []float64{in.parts.cycles, in.parts.lost, in.parts.waited} {
				if v < 0 {
					t.Errorf("%s: a part is negative: %v", tt.name, in.parts)
				}
			}
			got.cycles += in.parts.cycles
			got.lost += in.parts.lost
			got.waited += in.parts.waited
		}
		for _, v := range []struct{ got, want float64 }{{got.cycles, tt.cycles}, {got.lost, tt.lost}, {got.waited, tt.waited}} {
			if math.Abs(v.got-v.want) > 1e-5 {
				t.Errorf("%s: %.3f cycles, %.3f lost, %.3f waited, want %v, %v, %v", tt.name, got.cycles, got.lost, got.waited, tt.cycles, tt.lost, tt.waited)
				break
			}
		}
	}
}
