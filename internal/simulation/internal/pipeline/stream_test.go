package pipeline

import (
	"math"
	"strings"
	"testing"
)

// TestStreams compares loops of nops with what they take on Redwood Cove, measured as the
// loops of loops-redwoodcove.txt: the number of micro-ops divided by 6.
func TestStreams(t *testing.T) {
	for nops, want := range map[int]float64{1: 1.02, 4: 1.02, 5: 1.02, 6: 1.19, 7: 1.36, 8: 1.52, 9: 1.69, 10: 1.85, 11: 2.02, 12: 2.19, 13: 2.35, 14: 2.52, 15: 2.69, 16: 3.02} {
		b, err := NewBlock(bytesOf(t, strings.Repeat("90", nops)+"49ffce75e0"), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := NewMachine(CoreOf("graniterapids")).Cycles(b); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%d nops: %.2f cycles, measured %.2f", nops, got, want)
		}
	}
}

// TestDecoders has loops of zero idioms that fit into Zen's cache of decoded instructions, and some
// that do not. Their speeds are those of dispatch and of the decoders.
func TestDecoders(t *testing.T) {
	for _, test := range []struct {
		core     string
		idioms   int
		ofACycle float64
	}{{"amdzen5", 5000, 8}, {"amdzen5", 7000, 4}, {"amdzen4", 5000, 6}, {"amdzen4", 7000, 4}, {"amdzen3", 5000, 4}, {"generic", 7000, 6}} {
		b, err := NewBlock(bytesOf(t, strings.Repeat("31c0", test.idioms)+"49ffce75e0"), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(test.idioms) / NewMachine(CoreOf(test.core)).Cycles(b); math.Abs(got/test.ofACycle-1) > 0.01 {
			t.Errorf("%s: %d micro-ops: %.2f in a cycle, want %.2f", test.core, test.idioms, got, test.ofACycle)
		}
	}
}
