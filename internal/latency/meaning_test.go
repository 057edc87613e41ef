package latency

import "testing"

// TestFacilityOf checks the facility of each vendor that has one.
func TestFacilityOf(t *testing.T) {
	for _, vendor := range []string{"intel", "amd", "arm", "ibm"} {
		if f, ok := FacilityOf(vendor); !ok || f.Name == "" || f.Meaning == "" || f.Chosen == "" {
			t.Errorf("%s: %+v, %v", vendor, f, ok)
		}
	}
	if f, ok := FacilityOf("riscv"); ok {
		t.Errorf("riscv: %+v", f)
	}
}
