package pipeline

import (
	"strings"
	"testing"
)

// TestExplain: the text names the sources of a core and of those that it extends. It fits
// 100 columns.
func TestExplain(t *testing.T) {
	text := CoreOf("ivybridge").Explain()
	for _, want := range []string{"The core ivybridge", "reorder buffer 168", "skylake:", "sandybridge:", "Not modelled", "replays"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q", want)
		}
	}
	for line := range strings.Lines(text) {
		if len(line) > 101 {
			t.Errorf("%q is too wide", line)
		}
	}
}

// TestTrust: figures that were measured on one core are not measured on those that extend it.
func TestTrust(t *testing.T) {
	ops := assemble(t, bytesOf(t, "4801c0"), 0) // add
	for cpu, want := range map[string]Trust{"amdzen4": Measured, "amdzen3": ClassDefault, "skylake": Imported, "graniterapids": Measured} {
		if got := CoreOf(cpu).Trust(&ops[0]); got != want {
			t.Errorf("%s: an addition is %v, want %v", cpu, got, want)
		}
	}
}

// TestSame executes a block whose loads and stores are in one place only if all registers
// are equal: 9.01 cycles were measured on Zen 4 by BHive's method.
func TestSame(t *testing.T) {
	for same, want := range map[bool]float64{false: 1, true: 9} {
		b, err := NewBlock(bytesOf(t, "c4c17a100424 41c7430400000000 c4c17a1103 49ffcf 75e9"), true)
		if err != nil {
			t.Fatal(err)
		}
		if same {
			b.Same()
		}
		m := NewMachine(CoreOf("amdzen4"))
		if got := m.Cycles(b); !near(got, want) {
			t.Errorf("same registers %t: %.2f cycles, want %.2f", same, got, want)
		}
	}
}
