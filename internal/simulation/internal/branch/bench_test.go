package branch

import "testing"

// BenchmarkConditional gives the predictor branches of three kinds: always the same,
// a pattern, and at random.
func BenchmarkConditional(b *testing.B) {
	p := New()
	b.ReportAllocs()
	x := uint32(1)
	for i := range b.N {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		var taken bool
		switch i % 8 {
		case 0:
			taken = i%(8*7) == 0
		case 1:
			taken = x&1 == 0
		default:
			taken = i%8 != 5
		}
		p.Conditional(0x401000+uint64(i%8)*64+uint64(i%4096/8)*1024, taken)
	}
}
