package plan_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/plan"
)

// BenchmarkNew makes plans of the whole tree, and of all nodes, for processors
// with many events. A plan is to take less than a second.
func BenchmarkNew(b *testing.B) {
	for _, cpu := range []string{"sandybridge", "skylakex", "icelakex", "sapphirerapids", "lunarlake:core"} {
		m, events := load(b, cpu, "tma")
		for _, tt := range []struct {
			name string
			opt  plan.Options
		}{
			{"tree", plan.Options{}},
			{"tree-smt", plan.Options{SMT: true}},
			{"all", plan.Options{Nodes: everything(m)}},
		} {
			b.Run(cpu+"/"+tt.name, func(b *testing.B) {
				b.ReportAllocs()
				var p *plan.Plan
				for b.Loop() {
					var err error
					if p, err = plan.New(m, events, tt.opt); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(p.Groups)), "groups")
				b.ReportMetric(float64(p.LowerBound), "bound")
			})
		}
	}
}
