package main

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
	"github.com/cyclestack/cyclestack/metric"
)

// Parameters that stand for numbers in the vendor's formulas.
const (
	widthParameter    = "Pipeline_Width"
	spuriousParameter = "Spurious_Slots"
)

// A conversion is what becomes of a formula on its way into a model.
type conversion struct {
	percent  bool // the vendor's value is a percentage; the model's a share
	slots    int  // write this number as Pipeline_Width; 0 for none
	spurious bool // write the slot taken off in every cycle as Spurious_Slots
	amount   bool // the model divides by the cycles itself
}

// mispredictions matches what formulas of slots take off or add for mispredicted branches. It
// is left out where they were not counted, as with the first metrics that perf had for these
// processors.
var mispredictions = regexp.MustCompile(`\bBR_MIS_PRED( \* \d)? / CPU_CYCLES\b`)

// convert returns the formula as the model has it.
func (c conversion) convert(vendor string) (string, error) {
	s := vendor
	if c.percent {
		s = withoutPercent(s)
	}
	if c.slots != 0 {
		s = regexp.MustCompile(fmt.Sprintf(`\b%d\b`, c.slots)).ReplaceAllString(s, widthParameter)
	}
	if c.spurious {
		s = regexp.MustCompile(`\b(STALL_SLOT|STALL_SLOT_FRONTEND) - CPU_CYCLES\b`).
			ReplaceAllString(s, "$1 - "+spuriousParameter+" * CPU_CYCLES")
	}
	s = mispredictions.ReplaceAllString(s, "($0 if has_event(BR_MIS_PRED) else 0)")
	if c.amount {
		var found bool
		if s, found = strings.CutSuffix(s, " / CPU_CYCLES"); !found {
			return "", fmt.Errorf("%q does not divide by the cycles", vendor)
		}
	}
	e, err := metric.Parse(s)
	if err != nil {
		return "", err
	}
	return e.String(), c.check(vendor, e)
}

// withoutPercent takes the factor 100 away: that of the whole formula, or those
// of the terms of a sum.
func withoutPercent(s string) string {
	if factor, ok := strings.CutPrefix(s, "100 * "); ok {
		if inner, ok := gen.InParentheses(factor); ok {
			return inner
		}
	}
	return strings.ReplaceAll(s, " * 100", "")
}

// check evaluates the vendor's formula and the model's with random counts.
func (c conversion) check(vendor string, ours *metric.Expr) error {
	theirs, err := metric.Parse(vendor)
	if err != nil {
		return err
	}
	ours = ours.Fold(metric.Constants{HasEvent: func(string) bool { return true }})
	vals := map[string]float64{widthParameter: float64(c.slots), spuriousParameter: 1}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		for _, name := range slices.Sorted(slices.Values(theirs.Names())) {
			vals[name] = math.Exp(20 * rng.Float64())
		}
		want, err := evaluate(theirs, vals)
		if err != nil {
			return err
		}
		got, err := evaluate(ours, vals)
		if err != nil {
			return err
		}
		if c.percent {
			got *= 100
		}
		if c.amount {
			got /= vals["CPU_CYCLES"]
		}
		if math.Abs(got-want) > 1e-9*max(math.Abs(got), math.Abs(want), 1) {
			return fmt.Errorf("%q became %q, which is %v instead of %v", vendor, ours, got, want)
		}
	}
	return nil
}

func evaluate(e *metric.Expr, vals map[string]float64) (float64, error) {
	names := e.Names()
	for _, name := range names {
		if _, ok := vals[name]; !ok {
			return 0, fmt.Errorf("%s is not in the vendor's formula", name)
		}
	}
	p, err := metric.Compile(e, func(name string) int { return slices.Index(names, name) })
	if err != nil {
		return 0, err
	}
	in := make([]float64, len(names))
	for i, name := range names {
		in[i] = vals[name]
	}
	return p.Eval(in), nil
}

// keys returns the keys of a map in order.
func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
