package account

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/metric"
)

// Advice lists what to try about a node: first the advice whose condition the counts meet, then
// what holds in general. A condition on what is not known, or not reliable, is not met. A node
// below its threshold has only advice whose condition is on the node itself.
func (a *Account) Advice(node int) []string {
	b, n := a.Binding, &a.Model().Nodes[node]
	in := slices.Clone(a.in)
	copy(in[len(b.Method.inputs):], a.values) // conditions speak of values, as thresholds do
	over := b.limits[node] == nil || !a.Nodes[node].Known() || b.overBy(a, node, in)
	if !over {
		_, standing := a.Expected(node)
		over = standing == Above
	}
	for i := range a.Nodes {
		if a.Nodes[i].Known() && !a.Nodes[i].Reliable() {
			in[len(b.Method.inputs)+i] = math.NaN()
		}
	}
	var list []string
	for k, when := range b.Method.advice[node] {
		if !over && (n.Advice[k].Unless != "" || !slices.Contains(when.Names(), n.Name)) {
			continue
		}
		met := false
		if program, err := metric.Compile(b.fold(when), b.slotIn); err == nil {
			v := program.Eval(in)
			met = !math.IsNaN(v) && v != 0
		}
		if met == (n.Advice[k].Unless == "") {
			list = append(list, n.Advice[k].Try)
		}
	}
	if !over {
		return list
	}
	return append(list, n.Try...)
}
