package report

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/model"
)

// TestConcerning checks what is left of texts that concern several processors.
func TestConcerning(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	const since = "Waiting for memory. Counted by the hardware since Golden Cove; before, it is what the others leave. It matters."
	for _, tt := range []struct{ cpu, text, want string }{
		{"skylakex", since, "Waiting for memory. It is what the others leave. It matters."},
		{"sapphirerapids", since, "Waiting for memory. Counted by the hardware since Golden Cove. It matters."},
		{"skylakex", "It is a share of cycles; on E-cores, of slots.", "It is a share of cycles."},
		{"alderlake:atom", "It is a share of cycles; on E-cores, of slots.", "It is a share of cycles; on E-cores, of slots."},
		{"haswellx", "Up to Broadwell it is a fixed cost. Slots.", "Up to Broadwell it is a fixed cost. Slots."},
		{"skylakex", "Up to Broadwell it is a fixed cost. Slots.", "Slots."},
		{"icelakex", "On Skylake to Ice Lake and Tiger Lake, the share of uops.", "On Skylake to Ice Lake and Tiger Lake, the share of uops."},
		{"broadwellx", "On Skylake to Ice Lake and Tiger Lake, the share of uops.", ""},
		{"skylakex", "Cycles with 4 ports, 3 on Ivy Bridge, 5 from Golden Cove.", "Cycles with 4 ports, 3 on Ivy Bridge, 5 from Golden Cove."},
		{"graniterapids", "32-bit operands, above all before Ice Lake", "32-bit operands, above all before Ice Lake"},
		{"lunarlake:core", "Only Arrow Lake counts it.", "Only Arrow Lake counts it."},
		{"icelakex", "Only Arrow Lake counts it.", ""},
		{"skylakex", "It is a share of cycles, of slots on E-cores.", "It is a share of cycles."},
		{"skylakex", "The mean latency (13 cycles on Ivy Bridge), which is too much.", "The mean latency, which is too much."},
		{"skylakex", "Cycles in PAUSE, which is rare, counted since Golden Cove; before, its number times 37.", "Cycles in PAUSE, which is rare; its number times 37."},
		{"skylakex", "On E-cores it is only the lost slots; all others are elsewhere.", ""},
		{"power7", "Up to Broadwell it is.\n\nMore.", "Up to Broadwell it is.\n\nMore."},
	} {
		cpu, err := cat.CPU(tt.cpu)
		if err != nil {
			t.Fatal(err)
		}
		if got := concerning(cpu, tt.text); got != tt.want {
			t.Errorf("%s: %q of %q, want %q", tt.cpu, got, tt.text, tt.want)
		}
	}
}

// TestConcerningKeeps checks all explanations of all processors: something is left of each,
// and nothing is made up.
func TestConcerningKeeps(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	shorter := 0
	for _, cpu := range cat.CPUs() {
		for _, info := range cat.Models(cpu.Name) {
			m, err := cat.Model(info.Name, cpu.Name)
			if err != nil {
				t.Fatal(err)
			}
			for i := range m.Nodes {
				about := strings.Join(strings.Fields(m.Nodes[i].About), " ")
				got := strings.Join(strings.Fields(concerning(cpu, m.Nodes[i].About)), " ")
				if about != "" && got == "" {
					t.Errorf("%s, %s: nothing is left of %q", cpu.Name, m.Nodes[i].Name, about)
				}
				if len(got) < len(about) {
					shorter++
				}
			}
		}
	}
	if shorter == 0 {
		t.Error("no text is shorter on any processor")
	}
}
