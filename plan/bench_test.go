package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

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

// BenchmarkCatalogue makes the largest plans of every processor, and reports the
// slowest of them. It lists some of these.
func BenchmarkCatalogue(b *testing.B) {
	type made struct {
		what string
		took time.Duration
	}
	var all []made
	for b.Loop() {
		all = all[:0]
		for _, cpu := range catalogue(b).CPUs() {
			for _, info := range catalogue(b).Models(cpu.Name) {
				m, events := load(b, cpu.Name, info.Name)
				for _, smt := range []bool{false, true} {
					for _, nodes := range [][]int{nil, everything(m)} {
						begin := time.Now()
						if _, err := plan.New(m, events, plan.Options{SMT: smt, Nodes: nodes}); err != nil {
							b.Fatal(err)
						}
						all = append(all, made{fmt.Sprintf("%s, %s, SMT %t, all nodes %t", cpu.Name, m.Name, smt, nodes != nil), time.Since(begin)})
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(x, y made) int { return int(y.took - x.took) })
	for _, m := range all[:5] {
		b.Logf("%4d ms  %s", m.took.Milliseconds(), m.what)
	}
	b.ReportMetric(float64(all[0].took.Milliseconds()), "slowest-ms")
	b.ReportMetric(float64(len(all)), "plans")
}
