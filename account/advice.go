package account

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/metric"
)

// Advice lists what to try about a node: first the advice whose condition the counts
// meet, then what holds in general. A condition on what is not known is not met.
func (a *Account) Advice(node int) []string {
	n := &a.Model().Nodes[node]
	if len(n.Advice) == 0 {
		return n.Try
	}
	in := slices.Clone(a.in)
	copy(in[len(a.Binding.Method.inputs):], a.values) // conditions speak of values, as thresholds do
	var list []string
	for k, when := range a.Binding.Method.advice[node] {
		program, err := metric.Compile(a.Binding.fold(when), a.Binding.slotIn)
		if err != nil {
			continue
		}
		if v := program.Eval(in); !math.IsNaN(v) && v != 0 {
			list = append(list, n.Advice[k].Try)
		}
	}
	return append(list, n.Try...)
}
