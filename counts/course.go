package counts

import "math"

// A Course says how a count came about: of a recording in intervals, or of the
// runs of a repetition, one after the other.
type Course struct {
	Runs      bool // what follows is about runs and not intervals
	Intervals int  // the number of intervals with a count
	// Still is the most intervals in a row with exactly the same count, where that
	// is not 0.
	Still int
	// Idle is how many intervals at the end of the recording had nothing, after
	// one that had.
	Idle int
	Peak float64 // the largest rate of an interval, per nanosecond

	last, rate       float64 // of the last interval: count, rate
	still            int
	mean, about      float64 // of the rates, by Welford (1962)
	products, number float64 // of the rate with the one before, of the rate with the interval's number
}

// add adds an interval's cell.
func (c *Course) add(cell *Cell) {
	if !cell.Ok() || cell.Enabled <= 0 {
		return
	}
	v := cell.Value
	c.Intervals++
	switch {
	case v == 0:
		c.still = 0
		if c.mean > 0 {
			c.Idle++
		}
	case c.Intervals > 1 && v == c.last:
		c.still++
		c.Idle = 0
	default:
		c.still = 1
		c.Idle = 0
	}
	c.Still = max(c.Still, c.still)
	rate := cell.Estimate() / cell.Enabled
	if c.Intervals > 1 {
		c.products += (rate - c.mean) * (c.rate - c.mean)
	}
	c.Peak = max(c.Peak, rate)
	d := rate - c.mean
	c.mean += d / float64(c.Intervals)
	c.about += d * (rate - c.mean)
	c.number += float64(c.Intervals) * rate
	c.last, c.rate = v, rate
}

// Trend returns the rise of the rate from the first interval to the last, with its standard
// error. Both are parts of the mean. It fits a straight line. Intervals that are like the ones
// before them count for less: of n with a correlation of r from one to the next, n (1 − r)/(1 +
// r) do (G. V. Bayley and J. M. Hammersley, The effective number of independent observations in
// an autocorrelated time series, 1946). NaN if there are too few.
func (c *Course) Trend() (rise, sd float64) {
	const least = 10
	n := float64(c.Intervals)
	if c.Intervals < least || c.mean <= 0 {
		return math.NaN(), math.NaN()
	}
	spread := n * (n*n - 1) / 12 // of the intervals' numbers
	slope := (c.number - c.mean*n*(n+1)/2) / spread
	rest := max(c.about-slope*slope*spread, 0)
	r := 0.0
	if c.about > 0 {
		r = min(max(c.products/c.about, 0), 0.98)
	}
	effective := max(n*(1-r)/(1+r)-2, 1)
	return slope * (n - 1) / c.mean, math.Sqrt(rest/spread/effective) * (n - 1) / c.mean
}

// Outlier reports whether one interval alone makes most of the rate's variance:
// how many times the mean its rate is, 0 if none does.
func (c *Course) Outlier() float64 {
	const least, most, times = 8, 0.8, 3
	n := float64(c.Intervals)
	if c.Intervals < least || c.mean <= 0 || c.Peak < times*c.mean {
		return 0
	}
	if d := c.Peak - c.mean; d*d*n/(n-1) < most*c.about {
		return 0
	}
	return c.Peak / c.mean
}

// Course returns how the count of a scope and a column came about. It is nil unless the
// table sums intervals, or is the mean of separate runs.
func (t *Table) Course(scope, column int) *Course {
	if t.courses == nil {
		return nil
	}
	return &t.courses[scope*len(t.Columns)+column]
}
