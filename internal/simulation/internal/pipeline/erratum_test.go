package pipeline

import (
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// TestErratum moves a loop through 32 bytes of code. Where its jump crosses their end, or ends
// there, it takes longer with the microcode update of Skylake. Elsewhere it does not.
func TestErratum(t *testing.T) {
	code := bytesOf(t, "4801d8 4801d9 4801da 4801de 49ffcf 75ef") // four additions, dec %r15; jne
	skylake := CoreOf("skylake")
	if CoreOf("icelake").WithErratum() != nil || CoreOf("haswell").WithErratum() != nil {
		t.Error("Haswell and Ice Lake do not have the erratum")
	}
	affected := 0
	for at := range uint64(jumpWindow) {
		d, err := disasm.New(disasm.AMD64, disasm.ATT)
		if err != nil {
			t.Fatal(err)
		}
		var steps []Step
		for rest, addr := code, 0x1000+at; len(rest) > 0; {
			i := d.Decode(rest, addr)
			steps = append(steps, Step{Inst: i, Code: rest[:i.Len], Taken: len(rest) == i.Len})
			rest, addr = rest[i.Len:], i.Next()
		}
		b, err := NewPath(disasm.AMD64, steps)
		if err != nil {
			t.Fatal(err)
		}
		pair := at + uint64(len(code)) - 5 // where dec and jne begin
		want := pair/jumpWindow != (pair+5)/jumpWindow
		cached, updated := NewMachine(skylake).Cycles(b), NewMachine(skylake.WithErratum()).Cycles(b)
		if b.CrossesJumps() != want || (updated > cached+0.2) != want || updated < cached {
			t.Errorf("at %d: %.2f cycles, %.2f with the update, jumps cross: %t, want %t", at, cached, updated, b.CrossesJumps(), want)
		}
		if want {
			affected++
		}
	}
	if affected != 5 {
		t.Errorf("at %d places of %d", affected, jumpWindow)
	}
}
