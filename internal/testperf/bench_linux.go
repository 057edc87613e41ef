package testperf

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// faultsEnv makes a test binary the program that its benchmarks record: it touches as
// many pages, at changing depths of calls.
const faultsEnv = "CYCLESTACK_TEST_FAULTS"

// Main is the TestMain of packages that call [Record]: it runs the tests, or is the
// program that is recorded.
func Main(m *testing.M) {
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

// A Kind is a kind of recording, of more than 200 MB.
type Kind struct {
	Name   string
	faults int
	args   []string // of perf record
}

// The kinds of recordings: many small samples, and samples with callchains.
var (
	Plain      = Kind{"plain", 7_000_000, nil}
	Callchains = Kind{"callchains", 1_200_000, []string{"-g", "-m", "2048"}} // with room for them
)

// Record returns a recording and its size, made here by perf of page faults, which are
// counted everywhere. The environment variable CYCLESTACK_PERF_DATA names one to use
// instead.
func Record(b *testing.B, kind Kind) (path string, size int64) {
	b.Helper()
	path = os.Getenv("CYCLESTACK_PERF_DATA")
	if path == "" {
		path = filepath.Join(b.TempDir(), "big.data")
		self, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		args := append([]string{"record", "-q", "-e", "page-faults", "-c", "1", "-o", path}, kind.args...)
		c := perf(b, append(args, "--", self)...)
		c.Env = append(c.Env, faultsEnv+"="+strconv.Itoa(kind.faults))
		if out, err := c.CombinedOutput(); err != nil {
			b.Skipf("perf cannot record here: %v: %.300s", err, out)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return path, info.Size()
}

func perf(b *testing.B, args ...string) *exec.Cmd {
	b.Helper()
	path, err := exec.LookPath("perf")
	if err != nil {
		b.Skip(err)
	}
	c := exec.Command(path, args...)
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
	return c
}

// Perf measures perf with a recording: what it prints is thrown away. It returns the
// processor time in seconds.
func Perf(b *testing.B, size int64, args ...string) (seconds float64) {
	return Measure(b, size, func() {
		if err := perf(b, args...).Run(); err != nil {
			b.Skip(err)
		}
	})
}

// Measure measures a function that reads a recording of so many bytes. It reports
// elapsed time and the processor time of this process and its children, which other
// load changes less. It returns the processor time of one call, in seconds.
func Measure(b *testing.B, size int64, read func()) (seconds float64) {
	b.SetBytes(size)
	b.ReportAllocs()
	before := used(b)
	for b.Loop() {
		read()
	}
	seconds = (used(b) - before) / float64(b.N)
	b.ReportMetric(seconds, "cpu-s/op")
	b.ReportMetric(float64(size)/1e6/seconds, "MB/cpu-s")
	return seconds
}

// used returns the processor time that was used so far, in seconds.
func used(b *testing.B) float64 {
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
