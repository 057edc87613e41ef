//go:build linux

package perfdata_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/testperf"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

func TestMain(m *testing.M) { testperf.Main(m) }

// BenchmarkBig reads a recording of 200 MB or more: all records with every frame
// of every callchain, what is brief of the samples, and as a table by thread; and has
// perf walk it once and print it, which is what there is to compare with.
func BenchmarkBig(b *testing.B) {
	path, size := testperf.Record(b, testperf.Callchains)
	for _, read := range []struct {
		name string
		all  func(b *testing.B, f *os.File)
	}{{"frames", readFrames}, {"flat", readFlat}, {"table", readTables}} {
		b.Run(read.name, func(b *testing.B) {
			testperf.Measure(b, size, func() {
				f, err := os.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				read.all(b, f)
			})
		})
	}
	for _, p := range []struct {
		name string
		args []string
	}{
		{"perf report --stats", []string{"report", "--stats", "-i", path}},
		{"perf script", []string{"script", "-i", path, "-F", "comm,tid,time,event,period,ip"}},
	} {
		b.Run(p.name, func(b *testing.B) { testperf.Perf(b, size, p.args...) })
	}
}

func readFrames(b *testing.B, f *os.File) {
	samples, frames := 0, 0
	r, err := perfdata.NewReader(f, f.Name(), perfdata.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for r.Next() {
		s, ok := r.Record().(*perfdata.Sample)
		if !ok {
			continue
		}
		samples++
		sink += s.IP() + s.Time() + s.Period() + uint64(s.TID())
		chain := s.Callchain()
		for i := range chain.Len() {
			sink += chain.At(i)
		}
		frames += chain.Len()
	}
	if err := r.Err(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(samples), "samples")
	b.ReportMetric(float64(frames), "frames")
}

func readFlat(b *testing.B, f *os.File) {
	r, err := perfdata.NewReader(f, f.Name(), perfdata.Options{})
	if err != nil {
		b.Fatal(err)
	}
	list := make([]perfdata.FlatSample, 0, 1024)
	for more := true; more; more = len(list) == cap(list) || r.Next() {
		list = r.NextFlat(list[:0], nil)
		for i := range list {
			sink += list[i].IP
		}
	}
	if err := r.Err(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.Stats().Samples), "samples")
}

func readTables(b *testing.B, f *os.File) {
	r := perfdata.NewTableReader(f, f.Name(), perfdata.TableOptions{By: counts.By(0).With(counts.Thread)})
	for r.Next() {
		sink += uint64(r.Table().Cell(0, 0).Samples)
	}
	if err := r.Err(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCompressed reads one zstd stream in records of 64 KiB.
func BenchmarkCompressed(b *testing.B) {
	r := samplesPipe(little())
	plain := rawSamples(little(), 500_000)
	for _, piece := range zstdPieces(b, plain, 200_000) {
		compressed(r, perffile.RecordCompressed, piece)
	}
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := perfdata.NewReader(bytes.NewReader(r.b), "zstd.data", perfdata.Options{})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for d.Next() {
			if s, ok := d.Record().(*perfdata.Sample); ok {
				sink += s.IP()
				n++
			}
		}
		if n != 500_000 || d.Err() != nil {
			b.Fatal(n, d.Err())
		}
	}
}
