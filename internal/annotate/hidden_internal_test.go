package annotate

import (
	"math"
	"testing"
)

// TestChance compares with the sum of the binomial distribution.
func TestChance(t *testing.T) {
	for _, n := range []float64{1, 2, 5, 30} {
		for _, s := range []float64{0, 1, 3, 10} {
			for _, r := range []float64{0.1, 1, 4} {
				p, want := r/(1+r), 0.0
				for k := 0.0; k <= s; k++ {
					a, _ := math.Lgamma(n + s + 1)
					b, _ := math.Lgamma(k + 1)
					c, _ := math.Lgamma(n + s - k + 1)
					want += math.Exp(a - b - c + k*math.Log(p) + (n+s-k)*math.Log(1-p))
				}
				if got := chance(n, s, r); !(math.Abs(got-want) <= 1e-9) {
					t.Errorf("n %v, s %v, r %v: got %v, want %v", n, s, r, got, want)
				}
			}
		}
	}
	if chance(10, 0, 0) != 1 || chance(10, 0, math.NaN()) != 1 {
		t.Error("without a rate nothing is rare")
	}
}
