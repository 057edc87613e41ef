package metric

import "testing"

// benchFormula has 16 operations: bad speculation on Skylake, with SMT.
const benchFormula = `max(0, (UOPS_ISSUED.ANY - UOPS_RETIRED.RETIRE_SLOTS + 4 * (INT_MISC.RECOVERY_CYCLES_ANY / 2)) / (4 * (CPU_CLK_UNHALTED.THREAD_ANY / 2)))
 * (BR_MISP_RETIRED.ALL_BRANCHES / (BR_MISP_RETIRED.ALL_BRANCHES + MACHINE_CLEARS.COUNT))
 + INT_MISC.CLEAR_RESTEER_CYCLES / CPU_CLK_UNHALTED.THREAD - (1 - FP_ASSIST.ANY / INST_RETIRED.ANY)`

var benchInputs = []float64{9.1e8, 7.2e8, 1.1e7, 8.0e8, 4.1e6, 2.2e5, 3.3e7, 4.0e8, 0, 6.6e8}

// benchThreshold is the threshold of a node on the fourth level.
const benchThreshold = `Mispredicts_Resteers > 0.05 & (Branch_Resteers > 0.05 & (Fetch_Latency > 0.1 & Frontend_Bound > 0.15))`

func mustParse(tb testing.TB, src string) *Expr {
	tb.Helper()
	e, err := Parse(src)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// mustCompile compiles a formula; its names have the slots 0, 1, … in the order
// of their appearance.
func mustCompile(tb testing.TB, e *Expr) *Program {
	tb.Helper()
	slots := make(map[string]int)
	for i, name := range e.Names() {
		slots[name] = i
	}
	p, err := Compile(e, func(name string) int { return slots[name] })
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(benchFormula)))
	for b.Loop() {
		if _, err := Parse(benchFormula); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	e := mustParse(b, benchFormula)
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, e)
	}
}

func BenchmarkEval(b *testing.B) {
	for _, bench := range []struct{ name, src string }{
		{"Formula", benchFormula},
		{"Threshold", benchThreshold},
		{"Ratio", "CMPLU_STALL / RUN_INST_CMPL"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			p := mustCompile(b, mustParse(b, bench.src))
			b.ReportAllocs()
			for b.Loop() {
				if v := p.Eval(benchInputs); v != v {
					b.Fatal("unknown")
				}
			}
		})
	}
}
