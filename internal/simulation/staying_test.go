package simulation

import "testing"

// TestStaying limits the third level of a simulation without time by the lifetime of its lines.
func TestStaying(t *testing.T) {
	third := Cache{Size: 32 << 20, Ways: 16, Line: 64}
	for life, want := range map[float64][2]int{0: {32 << 20, 32 << 20}, 1e9: {32 << 20, 32 << 20}, 37e6: {5 << 20, 7 << 20}} {
		o := Options{Caches: Hierarchy{L3: third}, Latencies: Latencies{L3: 46, Memory: 537, Life: life}}
		if got := o.staying(); got.Size < want[0] || got.Size > want[1] || got.Line != third.Line {
			t.Errorf("lifetime %.3g: %+v, want %d to %d bytes", life, got, want[0], want[1])
		}
	}
}
