package page

import "testing"

func TestHuman(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 29580: "29580", 99999.4: "99999", 100000: "100 k", 512625e3: "512.6 M",
		999.96e6: "1 G", 84092282119: "84.09 G", -2.5e6: "-2.5 M", 1e21: "1000 E", 0.25: "0.25"} {
		if got := Human(v); got != want {
			t.Errorf("Human(%v) = %q, want %q", v, got, want)
		}
	}
}
