package pipeline

import (
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// TestLateStores checks that stores that miss overlap: as many at a time as the core has
// room for misses, and not one more.
func TestLateStores(t *testing.T) {
	core := CoreOf("amdzen4")
	decoder, err := NewDecoder(disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	asm, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	code := []byte{0x48, 0x89, 0x07} // mov %rax,(%rdi)
	op := decoder.Op(asm.Decode(code, 0x1000), code)
	const late, n = 300, 10_000
	m, cycles := NewMachine(core), 0.0
	for range n {
		m.LateStore(late)
		cycles += m.Execute(&op, false, false)
	}
	if want := late * float64(n) / float64(core.misses); cycles < 0.95*want || cycles > 1.05*want {
		t.Errorf("%v cycles for %d stores, want about %v", cycles, n, want)
	}
	m, cycles = NewMachine(core), 0
	for range n {
		cycles += m.Execute(&op, false, false)
	}
	if cycles > 1.1*n {
		t.Errorf("%v cycles for %d stores that hit", cycles, n)
	}
}
