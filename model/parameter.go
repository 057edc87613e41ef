package model

import (
	"fmt"
	"math"
)

// Check says why a value makes no sense for the parameter: it is not finite, or
// outside its range. It is nil if there is nothing against the value. What a
// user gives (--param, --penalties) is to be checked before it is used; the
// values and choices of model files are when they are loaded.
func (p *Parameter) Check(v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("%v is not a usable number", v)
	case p.Min != nil && v < *p.Min:
		return fmt.Errorf("%v is less than %v, the least that it can be", v, *p.Min)
	case p.Max != nil && v > *p.Max:
		return fmt.Errorf("%v is more than %v, the most that it can be", v, *p.Max)
	}
	return nil
}
