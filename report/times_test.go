package report

import "github.com/cyclestack/cyclestack/internal/page"

import "testing"

func TestRounded(t *testing.T) {
	for _, tt := range []struct {
		v        float64
		decimals int
		want     string
	}{
		{-0.0004, 1, "0.0"}, {-0.06, 1, "-0.1"}, {0, 2, "0.00"}, {-1.5, 2, "-1.50"}, {100, 1, "100.0"}, {-0.001, 0, "0"},
	} {
		if got := page.Rounded(tt.v, tt.decimals); got != tt.want {
			t.Errorf("%v with %d decimals: %s, want %s", tt.v, tt.decimals, got, tt.want)
		}
	}
}
