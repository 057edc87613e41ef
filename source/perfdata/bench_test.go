package perfdata_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// faultsEnv makes the test binary the program that the benchmarks record: it
// touches as many pages, at changing depths of calls.
const faultsEnv = "CYCLESTACK_TEST_FAULTS"

func TestMain(m *testing.M) {
	if pages, err := strconv.Atoi(os.Getenv(faultsEnv)); err == nil {
		faultPages(pages)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func faultPages(pages int) {
	const page, chunk = 4096, 1024
	for round := 0; pages > 0; round++ {
		mem, err := unix.Mmap(-1, 0, chunk*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			os.Exit(1)
		}
		_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
		pages -= descend(mem, page, round%32)
		if unix.Munmap(mem) != nil {
			os.Exit(1)
		}
	}
}

//go:noinline
func descend(mem []byte, page, depth int) int {
	if depth > 0 {
		return descend(mem, page, depth-1) + len(mem) - cap(mem)
	}
	n := 0
	for i := 0; i < len(mem); i += page {
		mem[i] = 1
		n++
	}
	return n
}

// bigFile returns a recording with callchains of at least 200 MB, made here. The
// environment variable CYCLESTACK_PERF_DATA names one to use instead.
func bigFile(b *testing.B) string {
	b.Helper()
	if path := os.Getenv("CYCLESTACK_PERF_DATA"); path != "" {
		return path
	}
	perf := needPerf(b)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "big.data")
	c := exec.Command(perf, "record", "-q", "-e", "page-faults", "-c", "1", "-g", "-m", "2048", "-o", path, "--", self)
	c.Env = append(os.Environ(), faultsEnv+"=1200000")
	if out, err := c.CombinedOutput(); err != nil {
		b.Skipf("perf cannot record here: %v: %.300s", err, out)
	}
	return path
}

// cpuTime measures the processor time, of this process and of those it started,
// that the rest of a benchmark takes, which other load does not change: call the
// result at its end.
func cpuTime(b *testing.B, size int64) func() {
	used := func() float64 {
		sum := 0.0
		for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
			var u unix.Rusage
			if err := unix.Getrusage(who, &u); err != nil {
				b.Fatal(err)
			}
			sum += float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
		}
		return sum
	}
	before := used()
	return func() {
		b.ReportMetric(float64(size)*float64(b.N)/1e6/(used()-before), "MB/cpu-s")
	}
}

// BenchmarkBig reads a recording of 200 MB or more: all records with every frame
// of every callchain, and as a table by thread; and has perf walk it once and
// print it, which is what there is to compare with.
func BenchmarkBig(b *testing.B) {
	path := bigFile(b)
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	size := st.Size()
	b.Run("frames", func(b *testing.B) { benchmarkFrames(b, path, size) })
	b.Run("table", func(b *testing.B) { benchmarkTable(b, path, size) })
	for name, args := range map[string][]string{
		"perf report --stats": {"report", "--stats", "-i", path},
		"perf script":         {"script", "-i", path, "-F", "comm,tid,time,event,period,ip"},
	} {
		b.Run(name, func(b *testing.B) {
			perf := needPerf(b)
			b.SetBytes(size)
			defer cpuTime(b, size)()
			for b.Loop() {
				run(b, perf, args...)
			}
		})
	}
}

func benchmarkFrames(b *testing.B, path string, size int64) {
	b.SetBytes(size)
	b.ReportAllocs()
	defer cpuTime(b, size)()
	samples, frames := 0, 0
	for b.Loop() {
		samples, frames = 0, 0
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		r, err := perfdata.NewReader(f, path, perfdata.Options{})
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
		f.Close()
	}
	b.ReportMetric(float64(samples), "samples")
	b.ReportMetric(float64(frames), "frames")
}

func benchmarkTable(b *testing.B, path string, size int64) {
	b.SetBytes(size)
	b.ReportAllocs()
	defer cpuTime(b, size)()
	for b.Loop() {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		r := perfdata.NewTableReader(f, path, perfdata.TableOptions{By: counts.By(0).With(counts.Thread)})
		for r.Next() {
			sink += uint64(r.Table().Cell(0, 0).Samples)
		}
		if err := r.Err(); err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

// BenchmarkCompressed reads one zstd stream in records of 64 KiB.
func BenchmarkCompressed(b *testing.B) {
	r := samplesPipe(little())
	plain := rawSamples(little(), 500_000)
	for _, piece := range zstdPieces(b, plain, 200_000) {
		compressed(r, perfdata.RecordCompressed, piece)
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
