package page

import "testing"

// TestBytes checks bytes with the unit of their size.
func TestBytes(t *testing.T) {
	for v, want := range map[float64]string{0: "0 bytes", 512: "512 bytes", 1536: "1.536 kB", 12e6: "12 MB", 3.2e9: "3.2 GB"} {
		if got := Bytes(v); got != want {
			t.Errorf("Bytes(%v) = %q, want %q", v, got, want)
		}
	}
}

// TestTrim checks which digits a number keeps, and its unit.
func TestTrim(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 29580: "29580", 99999.4: "99999", 100000: "100 k", 512625e3: "512.6 M",
		999.96e6: "1 G", 84092282119: "84.09 G", -2.5e6: "-2.5 M", 1e21: "1000 E", 0.25: "0.25"} {
		if got := Trim(v); got != want {
			t.Errorf("Trim(%v) = %q, want %q", v, got, want)
		}
	}
}
