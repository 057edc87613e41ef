package valgrind

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
)

// varianceEvents are what sampling adds to sums of cycles: the variance of Ct, of Cbt, and of
// all waiting, in units of [VarianceUnit]. Those of instructions add up to that of their
// function, as the windows of the function differ. They are no counts, and have no columns.
var varianceEvents = [...]string{"Vt", "Vbt", "Vwt"}

// showsEvent is the cycles of a run where samples by the clock would be: at the instruction that
// waits for another. It is for other programs. Accounts have cycles where their causes are.
const showsEvent = "Cs"

// VarianceUnit is the unit of variances in files: the square of a thousand cycles.
const VarianceUnit = 1e6

// waitEvents are the parts of waiting for data.
var waitEvents = []string{"C2t", "C3t", "Cmt", pageEvent}

// shown returns the events that have columns: all but variances and showsEvent. A file of nothing
// else has all.
func (r *Reader) shown() (list []int) {
	for i, e := range r.events {
		if r.header.sampling == "" || e != showsEvent && !slices.Contains(varianceEvents[:], e) {
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
		whole, variance := r.total()[at], r.variance(at)
		for scope := range t.Scopes {
			c := t.Cell(scope, column)
			if variance == nil || t.Scopes[scope].Kind == counts.Run && r.opts.Only == nil {
				c.Variance = relative * relative * whole * c.Value
				continue
			}
			c.Variance = variance(sums[scope])
		}
	}
}

// few says why there is no error of sampling; "" if there is one.
func (r *Reader) few() string {
	windows, few := strings.CutPrefix(strings.TrimSpace(r.header.sampling), FewWindows+" ")
	if n, err := strconv.ParseUint(windows, 10, 31); few && err == nil {
		return fmt.Sprintf("the core was simulated in %d windows of the program, which is too short for more", n)
	}
	return ""
}

// variance returns a function of a part's sums: an event's variance there. It is nil if instructions
// have no variances. The parts of waiting have the same relative error.
func (r *Reader) variance(event int) func(sums []float64) float64 {
	waits := r.indices(waitEvents)
	which := slices.Index([]string{"Ct", "Cbt"}, r.events[event])
	if slices.Contains(waits, event) {
		which = len(varianceEvents) - 1
	}
	if which < 0 {
		return nil
	}
	at := slices.Index(r.events, varianceEvents[which])
	if at < 0 {
		return nil
	}
	return func(sums []float64) float64 {
		share := 1.0
		if which == len(varianceEvents)-1 {
			all := 0.0
			for _, i := range waits {
				all += sums[i]
			}
			if all == 0 {
				return 0
			}
			share = sums[event] / all
		}
		return sums[at] * VarianceUnit * share * share
	}
}

// indices returns the columns of events, as far as there are any.
func (r *Reader) indices(events []string) (list []int) {
	for i, e := range r.events {
		if slices.Contains(events, e) {
			list = append(list, i)
		}
	}
	return list
}
