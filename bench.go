package cyclestack

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/account"
)

// topNodes is how many nodes a benchmark reports.
const topNodes = 4

// Benchmark measures the rest of a benchmark. It reports cycles and instructions for each
// operation, and the cycles of the largest nodes, as metrics for benchstat:
//
//	func BenchmarkSort(b *testing.B) {
//		cyclestack.Benchmark(b, cyclestack.Options{})
//		for b.Loop() {
//			sort()
//		}
//	}
//
//	BenchmarkSort-8   1203  99131 ns/op  301254 cycles/op  412201 instructions/op  120111 Bad_Speculation-cycles/op …
//
// All that the process does from the call to the benchmark's end is counted: call it after any
// preparation. The benchmark's time does not include the call; the timer runs when it returns.
// Runs have metrics of the same nodes if these are the largest in all, or if Options.Nodes
// names them. The account's notes are in the benchmark's log. If nothing can be counted, the
// benchmark runs without, and says why once.
func Benchmark(b *testing.B, o Options) {
	b.Helper()
	b.StopTimer()
	m, err := Start(o)
	b.StartTimer()
	if err != nil {
		b.Logf("cyclestack: %v", err)
		return
	}
	b.Cleanup(func() {
		a, err := m.Stop()
		if err != nil {
			b.Logf("cyclestack: %v", err)
			return
		}
		for _, note := range a.Notes {
			b.Logf("cyclestack: %s", note)
		}
		for _, v := range metrics(a, float64(b.N), o.Nodes != "") {
			b.ReportMetric(v.value, v.unit)
		}
	})
}

// A benchMetric is a value that a benchmark reports.
type benchMetric struct {
	value float64
	unit  string
}

// metrics are what is reported of an account of n operations: of the deepest
// nodes that were counted the largest, or all.
func metrics(a *account.Account, n float64, all bool) []benchMetric {
	r, err := a.Reading(n)
	if err != nil {
		return nil
	}
	list := []benchMetric{{r.Total, "cycles/op"}}
	if i := a.Instructions(); !math.IsNaN(i) {
		list = append(list, benchMetric{i / n, "instructions/op"})
	}
	var nodes []int
	for i := range r.Nodes {
		if !math.IsNaN(r.Nodes[i]) && (all || deepest(a, r, i)) {
			nodes = append(nodes, i)
		}
	}
	slices.SortStableFunc(nodes, func(i, j int) int { return cmp.Compare(r.Nodes[j], r.Nodes[i]) })
	if !all {
		nodes = nodes[:min(len(nodes), topNodes)]
	}
	for _, i := range nodes {
		list = append(list, benchMetric{r.Nodes[i], a.Model().Nodes[i].Name + "-cycles/op"})
	}
	return list
}

// deepest reports whether none of a node's children is known.
func deepest(a *account.Account, r account.Reading, i int) bool {
	return !slices.ContainsFunc(a.Model().Nodes[i].Children, func(c int) bool { return !math.IsNaN(r.Nodes[c]) })
}
