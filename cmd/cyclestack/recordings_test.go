//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recordSeconds is how long the benchmarks record the machine.
const recordSeconds = "60"

// recordMachine has perf record the whole machine while Go's standard library is built: some
// hundred MB of samples by the clock. CYCLESTACK_PERF_DATA names a recording to use instead.
func recordMachine(b *testing.B, perf string, args ...string) (path string) {
	b.Helper()
	if path = os.Getenv("CYCLESTACK_PERF_DATA"); path != "" {
		return path
	}
	path = filepath.Join(b.TempDir(), "machine.data")
	args = append([]string{"record", "-q", "-a", "-N", "-B", "-F", "25000", "-e", "cpu-clock", "-m", "2048", "-o", path}, args...)
	c := exec.Command(perf, append(args, "--", look(b, "timeout"), recordSeconds, look(b, "go"), "build", "-a", "-o", os.DevNull, "std", "cmd/...")...)
	c.Env = append(os.Environ(), "GOCACHE="+b.TempDir(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput() // timeout ends it, with a status of its own
	if info, statErr := os.Stat(path); statErr != nil || info.Size() < 1<<20 {
		b.Skipf("perf cannot record the machine here: %v: %.300s", err, out)
	}
	return path
}

// A command is one to measure.
type command struct {
	name string
	argv []string
}

// compare measures commands in turn, each with the file. It reports processor time, elapsed time and
// memory. It also reports how many times less of both the others take than the first.
func compare(b *testing.B, file string, commands []command) {
	b.Helper()
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	var list [][]string
	for _, c := range commands {
		list = append(list, append(append([]string{look(b, "env")}, c.argv...), file))
	}
	all := medians(b, list...)
	b.ReportMetric(float64(info.Size())/1e6, "file-MB")
	for i, c := range all {
		b.ReportMetric(c.cpu.Seconds(), commands[i].name+"-cpu-s")
		b.ReportMetric(c.real.Seconds(), commands[i].name+"-s")
		b.ReportMetric(float64(c.memory)/1e6, commands[i].name+"-MB")
		if i > 0 {
			b.ReportMetric(all[0].cpu.Seconds()/c.cpu.Seconds(), commands[i].name+"-times-less")
			b.ReportMetric(all[0].real.Seconds()/c.real.Seconds(), commands[i].name+"-times-faster")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRecordings compares reports of recordings with perf's: of the whole machine, with
// callchains and without, and of a Go program whose debug information is compressed. The
// index of inlined calls is absent in "first", and was made by a run before in "again".
//
//	go test ./cmd/cyclestack -run '^$' -bench Recordings -benchtime 3x
func BenchmarkRecordings(b *testing.B) {
	perf, own := look(b, "perf"), program(b)
	kept := b.TempDir()
	first, again := "XDG_CACHE_HOME="+os.DevNull, "XDG_CACHE_HOME="+kept
	report := func(file string) []command {
		by := []string{own, "report", "--by", "function"}
		if err := exec.Command(look(b, "env"), append(append([]string{again}, by...), file)...).Run(); err != nil {
			b.Fatal(err)
		}
		return []command{
			{"perf", []string{perf, "report", "--no-children", "-g", "none", "--stdio", "-i"}},
			{"first-1", append([]string{first, "GOMAXPROCS=1"}, by...)},
			{"again-1", append([]string{again, "GOMAXPROCS=1"}, by...)},
			{"again-2", append([]string{again, "GOMAXPROCS=2"}, by...)},
		}
	}
	machine := ""
	for _, kind := range []struct{ name, flags string }{{"machine", ""}, {"machine-callchains", "-g"}} {
		b.Run(kind.name, func(b *testing.B) {
			machine = recordMachine(b, perf, strings.Fields(kind.flags)...)
			b.ResetTimer()
			compare(b, machine, report(machine))
		})
	}
	b.Run("go-program", func(b *testing.B) {
		file := filepath.Join(b.TempDir(), "go.data")
		plain := filepath.Join(b.TempDir(), "plain")
		if out, err := exec.Command("go", "build", "-o", plain, ".").CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		began := time.Now()
		c := exec.Command(perf, "record", "-q", "-F", "5000", "-e", "cpu-clock", "-g", "-o", file, "--", plain, "plan", "--cpu", "sapphirerapids")
		if out, err := c.CombinedOutput(); err != nil {
			b.Skipf("perf cannot record here: %v: %.300s", err, out)
		}
		b.Logf("recorded %v", time.Since(began))
		compare(b, file, report(file))
	})
}

// BenchmarkExports measures what else a recording of the whole machine is made into.
//
//	go test ./cmd/cyclestack -run '^$' -bench Exports -benchtime 3x
func BenchmarkExports(b *testing.B) {
	perf, own := look(b, "perf"), program(b)
	file := recordMachine(b, perf, "-g")
	out := filepath.Join(b.TempDir(), "out")
	first, again := "XDG_CACHE_HOME="+os.DevNull, "XDG_CACHE_HOME="+b.TempDir()
	list := []command{{"perf-script", []string{perf, "script", "-i"}}}
	for _, format := range []string{"collapsed", "pprof"} {
		export := []string{own, "report", "--format", format, "-o", out}
		if err := exec.Command(look(b, "env"), append(append([]string{again}, export...), file)...).Run(); err != nil {
			b.Fatal(err)
		}
		list = append(list, command{format + "-first", append([]string{first}, export...)}, command{format + "-again", append([]string{again}, export...)})
	}
	for _, by := range []string{"line", "instruction", "process,function"} {
		list = append(list, command{strings.ReplaceAll(by, ",", "-"), []string{first, own, "report", "--by", by}})
	}
	b.ResetTimer()
	compare(b, file, list)
}
