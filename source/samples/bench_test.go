package samples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/samples"
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
	touch := []func([]byte){touchFirst, touchLast}
	for round := 0; pages > 0; round++ {
		mem, err := unix.Mmap(-1, 0, chunk*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			os.Exit(1)
		}
		_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
		pages -= descend(mem, page, round%32, touch[round%2])
		if unix.Munmap(mem) != nil {
			os.Exit(1)
		}
	}
}

//go:noinline
func touchFirst(page []byte) { page[0] = 1 }

//go:noinline
func touchLast(page []byte) { page[len(page)-1] = 1 }

//go:noinline
func descend(mem []byte, page, depth int, touch func([]byte)) int {
	if depth > 0 {
		return descend(mem, page, depth-1, touch) + len(mem) - cap(mem)
	}
	n := 0
	for i := 0; i < len(mem); i += page {
		touch(mem[i : i+page])
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
	perf, err := exec.LookPath("perf")
	if err != nil {
		b.Skip(err)
	}
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
func cpuTime(b *testing.B) func() {
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
	return func() { b.ReportMetric((used()-before)/float64(b.N), "cpu-s/op") }
}

// BenchmarkBig makes the flat profile of a recording of 200 MB or more, and has
// perf do so: the symbolised functions, without callchains.
func BenchmarkBig(b *testing.B) {
	path := bigFile(b)
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	for _, by := range samples.Kinds {
		b.Run(by.String(), func(b *testing.B) { benchmarkTable(b, path, st.Size(), by) })
	}
	b.Run("perf report", func(b *testing.B) {
		b.SetBytes(st.Size())
		defer cpuTime(b)()
		for b.Loop() {
			c := exec.Command("perf", "report", "--no-children", "-g", "none", "--stdio", "-i", path)
			c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
			if err := c.Run(); err != nil {
				b.Skip(err)
			}
		}
	})
}

func benchmarkTable(b *testing.B, path string, size int64, by counts.Kind) {
	b.SetBytes(size)
	b.ReportAllocs()
	defer cpuTime(b)()
	for b.Loop() {
		r, done, err := samples.Open(path, samples.Options{By: by})
		if err != nil {
			b.Fatal(err)
		}
		if !r.Next() {
			b.Fatal(r.Err())
		}
		b.ReportMetric(float64(r.Table().Cell(0, 0).Samples), "samples")
		b.ReportMetric(float64(len(r.Table().Scopes)-1), "places")
		if err := done(); err != nil {
			b.Fatal(err)
		}
	}
}
