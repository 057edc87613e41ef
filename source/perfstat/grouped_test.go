package perfstat

import "testing"

// TestUngrouped checks that a comma before three digits separates thousands, and any
// other decimals.
func TestUngrouped(t *testing.T) {
	for in, want := range map[string]string{
		"1,000":         "1000",
		"12,345,678":    "12345678",
		"1,234.56":      "1234.56",
		"8286,88":       "8286,88",
		"1,234567":      "1,234567",
		"1234,567":      "1234,567",
		"1,000,00":      "1,000,00",
		"1000":          "1000",
		",000":          ",000",
		"<not counted>": "<not counted>",
	} {
		if got := string(ungrouped([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
