package pipeline

import (
	"strings"
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

// TestStoresTogether has blocks of BHive, unrolled with equal registers, and their cycles on
// Zen 4. Stores reach the cache together if they follow each other in the same 32 bytes,
// however many there are. New code takes a store's data for a load's if the registers of both
// addresses are the same, unchanged.
func TestStoresTogether(t *testing.T) {
	tests := []struct {
		name, code string
		measured   float64
	}{
		{"16, 8 and 0: in 32 bytes", "4c8960 10 48c74008a0798d00 48c70001000000 4585f6", 1.5},
		{"24, 32 and 40 bytes", "4801da 4d39f7 49899c24d8000000 49899c24e0000000 49899424e8000000", 2},
		{"44, 20 and 40: the middle one is apart", "c744242c01000000 c7442414c8000000 c744242801000000", 2},
		{"0, 16 and 8, and another line", "4c8b4c2470 488b8c2490000000 48890424 c744241001000000 31c0 c744240806000000 4d89f8 4489542478", 2.04},
		{"2, another page, 32, 3, another line, 36", "c6430200 89442410 c7432000000000 c6430300 8b842400010000 48896b50 85c0 894324", 5.99},
		{"an addition to memory by the same register", "48830601 488b7b20 4885ff", 1.05},
		{"by a register that was moved", "4983450001 4d89ec 4d89e5", 6.89},
		{"a copy between two registers' memory", "498b3e 49893f 4885ff", 5.93},
	}
	m := NewMachine(CoreOf("amdzen4"))
	for _, test := range tests {
		b, err := NewBlock(bytesOf(t, test.code), false)
		if err != nil {
			t.Fatal(err)
		}
		b.Same()
		if got := m.Cycles(b); got < 0.9*test.measured || got > 1.1*test.measured {
			t.Errorf("%s: %.2f cycles, measured %.2f", test.name, got, test.measured)
		}
	}
}

// TestLocks checks that a locked instruction waits for lines on their way, as on Zen 4. There it
// took 7.2 cycles, 11.5 behind a store that hit the second level, and 14.0 behind two of these.
func TestLocks(t *testing.T) {
	const store, locked = "48894708", "f0830601" // mov %rax,0x8(%rdi); lock addl $0x1,(%rsi)
	for _, tt := range []struct {
		stores   int
		measured float64
	}{{0, 7.2}, {1, 11.5}, {2, 14}} {
		const n = 2000
		ops := assemble(t, bytesOf(t, strings.Repeat(store, tt.stores)+locked), 0x1000)
		m, cycles := NewMachine(CoreOf("amdzen4")), 0.0
		for range n {
			for i := range ops {
				if i < tt.stores {
					m.LateStore(10)
				}
				cycles += m.Execute(&ops[i], false, false)
			}
		}
		if got := cycles / n; got < 0.9*tt.measured || got > 1.15*tt.measured {
			t.Errorf("%.1f cycles behind %d stores that miss, measured %.1f", got, tt.stores, tt.measured)
		}
	}
}
