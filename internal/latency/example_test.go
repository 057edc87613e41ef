package latency_test

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/latency"
)

// Loads that were sampled, one of ten thousand: most hit a cache.
func ExampleHistogram() {
	var h latency.Histogram
	for range 90 {
		h.Add(5, 10_000)
	}
	for range 10 {
		h.Add(300, 10_000)
	}
	m := h.Measured()
	fmt.Printf("%.0f loads, %.1f ± %.1f cycles on average\n", m.Loads, m.Mean.Value, m.Mean.Error)
	for _, q := range m.Quantile[:2] {
		fmt.Printf("p%g: %g, between %g and %g\n", 100*q.Of, q.Value, q.Low, q.High)
	}
	// Output:
	// 1000000 loads, 34.5 ± 17.6 cycles on average
	// p50: 5, between 5 and 5
	// p90: 5, between 5 and 300
}
