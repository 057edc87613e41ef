package latency

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// A Histogram collects the latencies of sampled loads. The zero value is empty and ready
// for use.
//
// Each sample stands for as many loads as its period says. Latencies up to 4096 cycles are
// kept exactly, longer ones to 12 binary digits. So memory is bounded, and a quantile is
// exact or at most 1 part in 2048 too small; see [Groups] for fewer digits.
type Histogram struct {
	cells map[uint64]cell // by the latency, rounded down
	fewer int             // digits less than exactBits that are kept

	samples       int64
	loads, square float64 // the sums of periods and of their squares
	cycles        float64 // the sum of period × latency
	spread        float64 // the sum of period² × latency²
	mixed         float64 // the sum of period² × latency
	least, most   uint64
}

// A cell is the samples of one latency.
type cell struct {
	samples int64
	loads   float64
	square  float64
}

// exactBits are the binary digits that are kept of a latency.
const exactBits = 12

// Add adds a sample: a load's latency in cycles, and how many loads it stands for.
func (h *Histogram) Add(latency uint64, loads float64) {
	if h.samples == 0 {
		h.cells, h.least = map[uint64]cell{}, latency
	}
	h.merge(latency, cell{1, loads, loads * loads})
	h.samples++
	x, w := float64(latency), loads*loads
	h.loads += loads
	h.square += w
	h.cycles += loads * x
	h.mixed += w * x
	h.spread += w * x * x
	h.least, h.most = min(h.least, latency), max(h.most, latency)
}

// merge adds samples to the cell of a latency.
func (h *Histogram) merge(latency uint64, more cell) {
	if n := bits.Len64(latency) - exactBits + h.fewer; n > 0 {
		latency = latency >> n << n
	}
	c := h.cells[latency]
	c.samples += more.samples
	c.loads += more.loads
	c.square += more.square
	h.cells[latency] = c
}

// coarsen keeps one digit less from now on.
func (h *Histogram) coarsen() {
	h.fewer++
	cells := h.cells
	h.cells = make(map[uint64]cell, len(cells)/2)
	for latency, c := range cells {
		h.merge(latency, c)
	}
}

// A Measured is the distribution of the sampled loads. Its errors are sampling errors:
// half-widths of 95 % intervals for samples that were drawn independently of each other.
type Measured struct {
	Samples  int64
	Loads    float64 // loads that the samples stand for
	Cycles   float64 // the sum of their latencies
	Least    uint64  // the least of the sampled latencies, cycles
	Most     uint64
	Mean     counts.Estimate
	Quantile []Quantile // in the order of Quantiles
	Bins     []LogBin   // without gaps, the shortest latencies first
}

// A Quantile is a latency that a part of the loads does not exceed.
type Quantile struct {
	Of    float64 // the part, 0…1
	Value float64 // cycles
	// Low and High bound it with 95 % confidence. With too few samples on that side Low is
	// NaN, and High is +Inf: loads that are so rare may not have been sampled.
	Low, High float64
}

// Quantiles are the parts of the loads of the quantiles in a [Measured].
var Quantiles = []float64{0.5, 0.9, 0.99, 0.999}

// A LogBin is the loads with latencies from From to below To, which is twice From.
type LogBin struct {
	From, To float64 // cycles
	Samples  int64
	Share    counts.Estimate // of the loads, 0…1
}

// Measured returns the distribution; nil if there are no samples.
func (h *Histogram) Measured() *Measured {
	if h.samples == 0 || !(h.loads > 0) {
		return nil
	}
	m := &Measured{Samples: h.samples, Loads: h.loads, Cycles: h.cycles, Least: h.least, Most: h.most}
	m.Mean = counts.Estimate{Value: h.cycles / h.loads, Error: math.NaN()}
	if h.samples > 1 {
		// The error of a ratio of two sums that both have errors (W. G. Cochran, Sampling
		// Techniques, section 2.11).
		mean := m.Mean.Value
		m.Mean.Error = student95(h.effective()-1) * math.Sqrt(max(0, h.spread-2*mean*h.mixed+mean*mean*h.square)) / h.loads
	}
	keys := h.sorted()
	for _, q := range Quantiles {
		m.Quantile = append(m.Quantile, h.quantile(keys, q))
	}
	m.Bins = h.bins(keys)
	return m
}

// student95 is Student's factor of a 95 % interval for a number of degrees of freedom. The
// formula is 26.7.5 of Abramowitz and Stegun, Handbook of Mathematical Functions. Below 3 the
// exact values are used. Freedom need not be whole here. From 3 to 4 degrees the third digit differs from
// the exact quantile in package account.
func student95(freedom float64) float64 {
	const p, z = 0.975, counts.Confidence
	switch {
	case freedom < 1.5:
		return math.Tan(math.Pi * (p - 0.5))
	case freedom < 2.5:
		return (2*p - 1) / math.Sqrt(2*p*(1-p))
	}
	z3, z5, z7 := z*z*z, math.Pow(z, 5), math.Pow(z, 7)
	return z + (z3+z)/(4*freedom) + (5*z5+16*z3+3*z)/(96*freedom*freedom) + (3*z7+19*z5+17*z3-15*z)/(384*freedom*freedom*freedom)
}

func (h *Histogram) sorted() []uint64 {
	keys := make([]uint64, 0, len(h.cells))
	for k := range h.cells {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// effective is the number of samples of equal periods with the same information: the square
// of the sum of the periods by the sum of their squares (L. Kish, Survey Sampling, 1965).
func (h *Histogram) effective() float64 { return h.loads * h.loads / h.square }

// quantile finds a quantile and the ranks that bound it with 95 % confidence. The number of
// n samples below it is binomial, whatever the distribution is (H. A. David, Order
// Statistics, section 2.5).
func (h *Histogram) quantile(keys []uint64, q float64) Quantile {
	n := int(math.Round(h.effective()))
	out := Quantile{Of: q, Value: h.at(keys, q), Low: math.NaN(), High: math.Inf(1)}
	low, high := ranks(n, q)
	if low > 0 {
		out.Low = h.at(keys, (float64(low)-0.5)/float64(n))
	}
	if high <= n {
		out.High = h.at(keys, (float64(high)-0.5)/float64(n))
	}
	return out
}

// ranks returns the ranks below and above a quantile of a population, with 97.5 % confidence
// each: 0 and n+1 if none is. The sample of rank r is above the quantile if fewer than r
// samples are below it.
func ranks(n int, q float64) (low, high int) {
	const tail = 0.025
	mean := float64(n) * q
	deviation := math.Sqrt(mean * (1 - q))
	if deviation > normalEnough {
		return int(math.Floor(mean - counts.Confidence*deviation)), int(math.Ceil(mean+counts.Confidence*deviation)) + 1
	}
	sum := 0.0 // the probability that so many or fewer are below
	low, high = 0, n+1
	for below := max(0, int(mean-10*deviation-10)); below < n; below++ {
		sum += math.Exp(logBinomial(n, below, q))
		if sum <= tail {
			low = below + 1
		}
		if sum >= 1-tail {
			return low, below + 1
		}
	}
	return low, high
}

// normalEnough is the deviation above that the normal distribution is as good as the
// binomial one.
const normalEnough = 30

// logBinomial is the logarithm of the probability of k successes in n trials.
func logBinomial(n, k int, p float64) float64 {
	lgamma := func(x int) float64 {
		v, _ := math.Lgamma(float64(x))
		return v
	}
	return lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
}

// at returns the latency that a part of the loads does not exceed.
func (h *Histogram) at(keys []uint64, part float64) float64 {
	sum, want := 0.0, part*h.loads
	for _, k := range keys {
		if sum += h.cells[k].loads; sum >= want*(1-1e-12) {
			return float64(k)
		}
	}
	return float64(h.most)
}

// bins divides the latencies by powers of two.
func (h *Histogram) bins(keys []uint64) []LogBin {
	first, last := octave(keys[0]), octave(keys[len(keys)-1])
	sums := make([]cell, last-first+1)
	for _, k := range keys {
		c, s := h.cells[k], &sums[octave(k)-first]
		s.samples += c.samples
		s.loads += c.loads
		s.square += c.square
	}
	var out []LogBin
	for i, s := range sums {
		b := LogBin{From: edge(first + i), To: edge(first + i + 1), Samples: s.samples}
		b.Share = h.share(s.loads)
		out = append(out, b)
	}
	return out
}

// octave numbers the powers of two: 0 for the latency 0, 1 for 1, 2 for 2 and 3, ….
func octave(latency uint64) int { return bits.Len64(latency) }

// edge is the smallest latency of an octave.
func edge(octave int) float64 {
	if octave == 0 {
		return 0
	}
	return math.Ldexp(1, octave-1)
}

// share is a part of the loads, with the half-width of the interval of E. B. Wilson (1927),
// which is also meaningful for few samples and for none.
func (h *Histogram) share(loads float64) counts.Estimate {
	p, n, z := loads/h.loads, h.effective(), counts.Confidence
	if h.samples < 2 {
		return counts.Estimate{Value: p, Error: math.NaN()}
	}
	return counts.Estimate{Value: p, Error: z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))}
}
