package pipeline

import "testing"

// TestHostCoreOf: a virtual machine that calls its Sapphire Rapids a Rocket Lake has a
// Golden Cove all the same.
func TestHostCoreOf(t *testing.T) {
	for _, test := range []struct {
		cpu      string
		features []string
		want     string
	}{
		{"rocketlake", nil, "icelake"},
		{"rocketlake", []string{"avx512f", "avx_vnni"}, "icelake"},
		{"rocketlake", []string{"avx512f", "amx_tile", "avx512_fp16"}, "goldencove"},
		{"rocketlake", []string{"amx_tile", "avx512_fp16", "l1i=64K"}, "redwoodcove"},
		{"rocketlake", []string{"l1i=64K"}, "icelake"},
		{"skylakex", []string{"amx_tile"}, "goldencove"},
		{"sapphirerapids", []string{"amx_tile"}, "goldencove"},
		{"amdzen4", []string{"amx_tile"}, "amdzen4"}, // of another family
	} {
		if got := HostCoreOf(test.cpu, test.features).Name; got != test.want {
			t.Errorf("%s with %v has the core %s, want %s", test.cpu, test.features, got, test.want)
		}
	}
}
