package valgrind

import (
	"slices"
	"strconv"

	"github.com/cyclestack/cyclestack/counts"
)

// varianceEvents are what sampling adds to sums of cycles: the variance of Ct, of Cbt, and of
// all waiting, in units of [VarianceUnit]. Those of instructions add up to that of their
// function, as the windows of the function differ. They are no counts, and have no columns.
var varianceEvents = [...]string{"Vt", "Vbt", "Vwt"}

// VarianceUnit is the unit of variances in files: the square of a thousand cycles.
const VarianceUnit = 1e6

// waitEvents are the parts of waiting for data.
var waitEvents = []string{"C2t", "C3t", "Cmt", pageEvent}

// shown returns the events that have columns: all but variances. A file of nothing else has
// all.
func (r *Reader) shown() (list []int) {
	for i, e := range r.events {
		if r.header.sampling == "" || !slices.Contains(varianceEvents[:], e) {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		for i := range r.events {
			list = append(list, i)
		}
	}
	return list
}

// mostRelative is more than any relative error of a sum of samples that says anything.
const mostRelative = 100

// sampled adds the error of sampling to the events that the file states it for. The header has
// that of the run. The error of a part comes from its variances. Of a part without any there
// were fewer samples than of the whole.
func (r *Reader) sampled(t *counts.Table, shown []int, sums [][]float64) {
	list := words([]byte(r.header.sampling))
	for i := 0; i+1 < len(list); i += 2 {
		relative, err := strconv.ParseFloat(list[i+1], 64)
		at := slices.Index(r.events, list[i])
		column := slices.Index(shown, at)
		if err != nil || column < 0 || !(relative > 0 && relative < mostRelative) {
			continue
		}
		whole := r.total()[at]
		for scope := range t.Scopes {
			c := t.Cell(scope, column)
			v, known := r.variance(sums[scope], at)
			if !known || t.Scopes[scope].Kind == counts.Run && r.opts.Only == nil {
				v = relative * relative * whole * c.Value
			}
			c.Variance = v
		}
	}
}

// variance returns that of an event in a part of the run, by the variances of its instructions;
// false without these. The parts of waiting have the same relative error.
func (r *Reader) variance(sums []float64, event int) (float64, bool) {
	of := func(name string) (float64, bool) {
		at := slices.Index(r.events, name)
		if at < 0 {
			return 0, false
		}
		return sums[at], true
	}
	switch name := r.events[event]; {
	case name == "Ct":
		v, ok := of(varianceEvents[0])
		return v * VarianceUnit, ok
	case name == "Cbt":
		v, ok := of(varianceEvents[1])
		return v * VarianceUnit, ok
	case slices.Contains(waitEvents, name):
		all := 0.0
		for _, e := range waitEvents {
			v, _ := of(e)
			all += v
		}
		v, ok := of(varianceEvents[2])
		if all == 0 {
			return 0, ok
		}
		share := sums[event] / all
		return v * VarianceUnit * share * share, ok
	}
	return 0, false
}
