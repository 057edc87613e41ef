package limits_test

import (
	"math"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/limits"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// forms yields the beginning of every form of VEX, EVEX and REX2, which APX extends: all
// maps, prefixes, widths and opcodes, with a register and with memory.
func forms(yield func(code []byte) bool) {
	tail := []byte{0x44, 0x24, 0x08, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66} // SIB, displacement, immediate
	end := func(head ...byte) bool {
		for _, modrm := range []byte{0xc1, 0x44} { // a register; memory with a displacement
			if !yield(append(append(head[:len(head):len(head)], modrm), tail[1:]...)) {
				return false
			}
		}
		return true
	}
	for opcode := range 256 {
		op := byte(opcode)
		for pp := range byte(4) {
			for lw := range byte(4) {
				l, w := lw&1<<2, lw&2<<6
				for m := byte(1); m <= 7; m++ {
					if !end(0xc4, 0xe0|m, w|0x78|l|pp, op) || !end(0x62, 0xf0|m, w|0x7c|pp, 0x08|l<<3, op) || !end(0x62, 0xf0|m, w|0x74|pp, 0x18|l<<2, op) || !end(0x62, 0x70|m, w|0x7c|pp, 0x49|l<<3, op) {
						return
					}
				}
			}
		}
		for rex2 := range 8 {
			if !end(0xd5, byte(rex2)<<5|0x08, op) {
				return
			}
		}
	}
}

// TestForms decodes every form. Of what is an instruction some forms are executed, and more
// with -long. Unknown ones have a text and a mark.
func TestForms(t *testing.T) {
	testlong.Alone(t)
	every := 97
	if testlong.Enabled() {
		every = 7
	}
	list, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := pipeline.NewDecoder(disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	n, instructions, unknown := 0, 0, 0
	core := pipeline.CoreOf("graniterapids")
	analyser := limits.New(core)
	for code := range forms {
		n++
		i := list.Decode(code, 0x1000)
		if i.Bad {
			continue
		}
		instructions++
		op := decoder.Op(i, code)
		if core.Trust(&op) == pipeline.Unknown {
			unknown++
			if list.Text(i, code[:i.Len]) == "" {
				t.Errorf("%x has no text", code)
			}
		}
		if n%every != 0 {
			continue
		}
		b, err := pipeline.NewBlock(code[:i.Len], n/every%2 == 0)
		if err != nil {
			t.Fatalf("%x: %v", code, err)
		}
		a := analyser.Analyse(b, limits.Options{})
		if !(a.Cycles >= 0) || math.IsInf(a.Cycles, 0) || (a.Instructions[0].Trust == pipeline.Unknown) != (core.Trust(&op) == pipeline.Unknown) {
			t.Errorf("%x: %v cycles, %s", code, a.Cycles, a.Instructions[0].Trust)
		}
	}
	t.Logf("%d forms, %d are instructions, the model does not know %d of them", n, instructions, unknown)
}
