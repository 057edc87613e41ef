//go:build linux

package samples_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/testperf"
	"github.com/cyclestack/cyclestack/source"
)

// BenchmarkUnwind unwinds the stacks of recordings with copies of them, and has perf script
// do so. It says how many times the processor time perf takes.
func BenchmarkUnwind(b *testing.B) {
	for _, p := range []struct{ name, build, source string }{
		{"c", "gcc -O2 -fomit-frame-pointer", "signals.c"},
		{"c++", "g++ -O2", "throws.cc"},
	} {
		b.Run(p.name, func(b *testing.B) {
			data := recordStacksOf(b, p.build, p.source, "-c", "20000")
			info, err := os.Stat(data)
			if err != nil {
				b.Fatal(err)
			}
			took := 0.0
			b.Run("perf script", func(b *testing.B) {
				took = testperf.Perf(b, info.Size(), "script", "-i", data, "--no-inline", "-F", "comm,ip,sym")
			})
			for procs := 1; procs <= min(2, runtime.NumCPU()); procs++ {
				b.Run(fmt.Sprintf("stacks/processors=%d", procs), func(b *testing.B) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
					own := testperf.Measure(b, info.Size(), func() { readUnwound(b, data) })
					b.ReportMetric(took/own, "×script")
				})
			}
		})
	}
}

func readUnwound(b *testing.B, path string) {
	rec, err := source.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer rec.Close()
	s, err := rec.Stacks(samples.Options{By: counts.Function, NoInline: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(s.Table().Cell(0, 0).Samples), "samples")
	b.ReportMetric(float64(s.Len()), "stacks")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
