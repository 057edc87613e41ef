package calibrate

import (
	"math"
	"slices"
)

// Lines of the third level are left alone for times from leastLife to mostLife, in ns. Each
// time is twice the one before.
const (
	leastLife = 0.5e6
	mostLife  = 128e6
)

// leftAfter is the share of lines that have left a cache after a time without use, by their
// half-life. Few leave at first: what others bring in has to become the most of a set before.
// See also the simulated caches.
func leftAfter(time, half float64) float64 { return 1 - math.Exp(-math.Ln2*(time/half)*(time/half)) }

// halfLife returns the half-life in ns, by the shares of lines that have left after each time.
// Where half of them never leaves, it is infinite.
func halfLife(left func(ns float64) float64) float64 {
	before := 0.0
	for ns := leastLife; ns <= mostLife; ns *= 2 {
		now := left(ns)
		if !(now < 0.5) { // or it was disturbed
			return ns / 2 * (1 + (0.5-before)/(now-before))
		}
		before = now
	}
	return math.Inf(1)
}

// fewLives are too few rounds.
const fewLives = 4

// lifetime is the half-life of unused lines in the third level, by the half-lives of all rounds.
func lifetime(rounds []float64, hertz Number) Figure {
	f := Figure{Name: "third-lifetime", Title: "half of the unused lines leave the third level", Unit: "cycles", Value: unknown, Error: unknown}
	slices.Sort(rounds)
	switch n := len(rounds); {
	case n < fewLives:
		f.Why = "the machine is too busy, or 4 MiB do not fit the caches"
	case rounds[n/2] > mostLife:
		f.Why = "half of the lines stay longer than 128 ms"
	default:
		f.Value = Number(rounds[n/2]/1e9) * hertz
		f.Error = Number((min(rounds[3*n/4], mostLife)-rounds[n/4])/2e9) * hertz
		if f.Error > f.Value/2 {
			f.Value, f.Error, f.Why = unknown, unknown, "the lifetime varies by more than half"
		}
	}
	return f
}
