// Package latency says how long loads took. From samples of load latencies it makes the
// distribution, its mean and its quantiles, with errors ([Histogram], [Groups]). From counts of
// loads slower than a threshold it makes the distribution, its drops, and bounds on the mean
// ([New]).
//
// The counts are those of MEM_TRANS_RETIRED.LOAD_LATENCY_GT_n. The processor draws a sample
// of the loads and counts those that took more than n cycles. The size of the sample is not
// known, so only ratios of counts mean something. Each threshold is usually counted in its
// own run, so the counts scatter and may even rise with the threshold.
//
// A load's latency runs from its first dispatch to the cycle that writes back its result, both
// included. So replays are part of it. It is therefore larger, by a cycle or more, than the
// latency that a waiting instruction sees (load to use).
package latency

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A Point is the count of loads slower than a threshold.
type Point struct {
	Threshold float64 // cycles; the count is of latencies > Threshold
	Count     float64
}

// A Bin is a range of latencies with the share of the loads in it.
type Bin struct {
	Over, UpTo float64 // cycles; latencies in (Over, UpTo]; UpTo is +Inf for the last
	Share      float64 // of the loads slower than the first threshold
}

// A Drop is a threshold whose count is markedly lower than that of the threshold before it.
type Drop struct {
	At    float64 // the threshold whose count is the lower one, cycles
	Share float64 // of the loads: those between the two thresholds
	Fall  float64 // the same relative to the count before the drop, 0…1
}

// A Distribution is what the counts say about the latencies.
type Distribution struct {
	Points []Point   // as measured, by threshold
	Fitted []float64 // the counts made non-increasing, by point
	Bins   []Bin
	Drops  []Drop

	// Scatter is the largest rise of a count over that of a smaller threshold, relative to
	// the first count. Counts of one sample would not rise.
	Scatter float64

	// Low and High bound the mean of the measured latencies in cycles, by the edges of the
	// bins. High leaves out the loads slower than the last threshold, a share of Tail:
	// nothing bounds their latencies.
	Low, High float64
	Tail      float64

	// Floor and First bound the mean latency from load to use, in cycles. It is not below
	// Floor, the latency of the fastest load. The largest group of fast loads ends at
	// First, the first drop. NearFirst says whether the mean is in the half next to First.
	// First is NaN if there is no drop.
	Floor, First float64
	NearFirst    bool
}

const (
	// dropLeast is how much a count must fall to be a drop: 10 % of the count before it. That
	// is twice the scatter of published counts from separate runs for each threshold (Stack
	// Overflow, answer to question 54084992).
	dropLeast = 0.10
	// dropSigma is how many standard deviations of a count a drop must exceed.
	dropSigma = 5
)

// ErrFew is returned for fewer than two thresholds.
var ErrFew = errors.New("a distribution needs counts at two thresholds at least")

// New makes the distribution from counts at thresholds, in any order. floor is
// the latency of the fastest load on that processor in cycles, 0 if it is not
// known.
func New(points []Point, floor float64) (*Distribution, error) {
	if len(points) < 2 {
		return nil, ErrFew
	}
	d := &Distribution{Points: slices.Clone(points), Floor: floor}
	sorting.Stable(d.Points, func(a, b Point) int {
		if a.Threshold < b.Threshold {
			return -1
		}
		return 1
	})
	for i, p := range d.Points {
		switch {
		case math.IsNaN(p.Count) || math.IsInf(p.Count, 0) || p.Count < 0:
			return nil, fmt.Errorf("the count at threshold %v is %v", p.Threshold, p.Count)
		case i > 0 && p.Threshold == d.Points[i-1].Threshold:
			return nil, fmt.Errorf("threshold %v is given twice", p.Threshold)
		}
	}
	d.fit()
	if d.Fitted[0] <= 0 {
		return nil, errors.New("no load was slower than the first threshold")
	}
	d.bins()
	d.drops()
	d.bound()
	return d, nil
}

// fit makes the counts non-increasing by pooling neighbours that rise into
// their mean: the least-squares fit of a decreasing function (pool adjacent
// violators).
func (d *Distribution) fit() {
	type block struct {
		sum float64
		n   int
	}
	var blocks []block
	for _, p := range d.Points {
		blocks = append(blocks, block{p.Count, 1})
		for k := len(blocks) - 1; k > 0; k-- {
			a, b := blocks[k-1], blocks[k]
			if a.sum/float64(a.n) >= b.sum/float64(b.n) {
				break
			}
			blocks[k-1] = block{a.sum + b.sum, a.n + b.n}
			blocks = blocks[:k]
		}
	}
	for _, b := range blocks {
		for range b.n {
			d.Fitted = append(d.Fitted, b.sum/float64(b.n))
		}
	}
	least := d.Points[0].Count
	for _, p := range d.Points {
		if d.Fitted[0] > 0 {
			d.Scatter = max(d.Scatter, (p.Count-least)/d.Fitted[0])
		}
		least = min(least, p.Count)
	}
}

func (d *Distribution) bins() {
	n := len(d.Points)
	for i := range d.Points {
		b := Bin{Over: d.Points[i].Threshold, UpTo: math.Inf(1), Share: d.Fitted[i] / d.Fitted[0]}
		if i+1 < n {
			b.UpTo = d.Points[i+1].Threshold
			b.Share -= d.Fitted[i+1] / d.Fitted[0]
		}
		d.Bins = append(d.Bins, b)
	}
	d.Tail = d.Bins[n-1].Share
}

func (d *Distribution) drops() {
	for i := 1; i < len(d.Points); i++ {
		fall := d.Fitted[i-1] - d.Fitted[i]
		if fall < dropLeast*d.Fitted[i-1] || fall < dropSigma*math.Sqrt(d.Fitted[i-1]) {
			continue
		}
		d.Drops = append(d.Drops, Drop{At: d.Points[i].Threshold, Share: fall / d.Fitted[0], Fall: fall / d.Fitted[i-1]})
	}
}

// bound computes the bounds on the means.
func (d *Distribution) bound() {
	inner := d.Bins[:len(d.Bins)-1]
	weight := 0.0
	for _, b := range inner {
		// Latencies are whole cycles, so the least in (Over, UpTo] is Over + 1.
		d.Low += b.Share * (b.Over + 1)
		d.High += b.Share * b.UpTo
		weight += b.Share
	}
	last := d.Bins[len(d.Bins)-1]
	d.Low += last.Share * (last.Over + 1)
	if weight > 0 {
		d.High /= weight
	} else {
		d.High = math.NaN()
	}
	d.First = math.NaN()
	if len(d.Drops) == 0 {
		return
	}
	d.First = d.Drops[0].At
	// The mean is nearer to the first drop if less than half of the decrease is in the lower
	// half.
	middle := (d.Floor + d.First) / 2
	below := 0.0
	for i, p := range d.Points {
		if p.Threshold <= middle {
			below = 1 - d.Fitted[i]/d.Fitted[0]
		}
	}
	d.NearFirst = below < 0.5
}
