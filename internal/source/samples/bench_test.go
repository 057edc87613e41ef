//go:build linux

package samples_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/testperf"
	"github.com/cyclestack/cyclestack/source"
)

func TestMain(m *testing.M) { testperf.Main(m) }

// BenchmarkBig makes the flat profile of recordings of over 200 MB, with one processor and two,
// as does perf: the symbolised functions, without callchains, and a line for each sample. It
// says how many times the processor time of the flat profile per function perf takes.
func BenchmarkBig(b *testing.B) {
	for _, kind := range []testperf.Kind{testperf.Plain, testperf.Callchains} {
		b.Run(kind.Name, func(b *testing.B) { benchmarkBig(b, kind) })
	}
}

func benchmarkBig(b *testing.B, kind testperf.Kind) {
	path, size := testperf.Record(b, kind)
	peers := []struct {
		name string
		args []string
		took float64 // seconds
	}{
		{"perf report", []string{"report", "--no-children", "-g", "none", "--stdio", "-i", path}, 0},
		{"perf script", []string{"script", "-i", path}, 0},
	}
	for i := range peers {
		p := &peers[i]
		b.Run(p.name, func(b *testing.B) { p.took = testperf.Perf(b, size, p.args...) })
	}
	for _, by := range samples.Kinds {
		for procs := 1; procs <= min(2, runtime.NumCPU()); procs++ {
			b.Run(fmt.Sprintf("%v/processors=%d", by, procs), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				took := testperf.Measure(b, size, func() { readTable(b, path, by) })
				for _, p := range peers {
					b.ReportMetric(p.took/took, "×"+p.name[len("perf "):])
				}
			})
		}
	}
}

func readTable(b *testing.B, path string, by counts.Kind) {
	rec, err := source.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer rec.Close()
	r := rec.Samples(samples.Options{By: by})
	if !r.Next() {
		b.Fatal(r.Err())
	}
	b.ReportMetric(float64(r.Table().Cell(0, 0).Samples), "samples")
	b.ReportMetric(float64(len(r.Table().Scopes)-1), "places")
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}
