package counts

import "math"

// Confidence is the number of standard errors in the half-width of a 95 % interval of a
// normal distribution.
const Confidence = 1.959964

// An Estimate is a value with its 95 % confidence interval, Value ± Error.
type Estimate struct {
	Value float64 // NaN if it is not known
	Error float64 // the half-width; NaN if it is not known
}

// Reliable reports whether the interval is narrower than the value. An interval that is
// not known does not speak against the value.
func (e Estimate) Reliable() bool { return !(e.Error >= math.Abs(e.Value)) }
