//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// The events that stat counts where there is no PMU, as perf names them: of a program,
// and of the machine.
const (
	programEvents = "task-clock,context-switches,cpu-migrations,page-faults,major-faults"
	machineEvents = "context-switches,cpu-migrations,page-faults,major-faults"
)

// A cost is what one run of a command took: real time, processor time of it and of what it
// started, and its largest resident memory.
type cost struct {
	real, cpu time.Duration
	memory    int64 // bytes
}

// run runs a command without output.
func run(tb testing.TB, argv []string) cost {
	tb.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer null.Close()
	began := time.Now()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Files: []*os.File{null, null, null}, Env: os.Environ()})
	if err != nil {
		tb.Fatal(err)
	}
	state, err := p.Wait()
	if err != nil || !state.Success() {
		tb.Fatalf("%s: %v, %v", strings.Join(argv, " "), state, err)
	}
	c := cost{real: time.Since(began), cpu: state.UserTime() + state.SystemTime()}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		c.memory = usage.Maxrss << 10
	}
	return c
}

// medians runs commands in alternation, so that they share other load. It returns the median
// costs of each, and the most memory.
func medians(b *testing.B, commands ...[]string) []cost {
	b.Helper()
	real, cpu := make([][]time.Duration, len(commands)), make([][]time.Duration, len(commands))
	memory := make([]int64, len(commands))
	for b.Loop() {
		for i, argv := range commands {
			c := run(b, argv)
			real[i], cpu[i], memory[i] = append(real[i], c.real), append(cpu[i], c.cpu), max(memory[i], c.memory)
		}
	}
	all := make([]cost, len(commands))
	for i := range all {
		slices.Sort(real[i])
		slices.Sort(cpu[i])
		all[i] = cost{real[i][len(real[i])/2], cpu[i][len(cpu[i])/2], memory[i]}
	}
	return all
}

// program builds the program as it is released.
func program(b *testing.B) string {
	b.Helper()
	name := filepath.Join(b.TempDir(), "cyclestack")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", name, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return name
}

// look returns where a program is, and skips the benchmark if it is not there.
func look(b *testing.B, name string) string {
	b.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		b.Skip(err)
	}
	return path
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkStart measures what stat, and perf stat with the same events, add to a
// program that does nothing. 200 turns are enough on a machine with something else to
// do: go test ./cmd/cyclestack -run '^$' -bench Start -benchtime 200x
func BenchmarkStart(b *testing.B) {
	nothing, perf := look(b, "true"), look(b, "perf")
	stat := program(b)
	all := medians(b, []string{nothing}, []string{stat, "stat", "--source", "os", "--", nothing},
		[]string{perf, "stat", "-e", programEvents, "--", nothing})
	b.ReportMetric(milliseconds(all[0].real), "true-ms")
	for i, name := range []string{"stat", "perf"} {
		b.ReportMetric(milliseconds(all[i+1].real-all[0].real), name+"-adds-ms")
		b.ReportMetric(milliseconds(all[i+1].cpu-all[0].cpu), name+"-cpu-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkIntervals measures the processor time of stat -I 100, and of perf's: four seconds of
// the machine and of a program, into a file: go test ./cmd/cyclestack -run '^$' -bench
// Intervals -benchtime 5x
func BenchmarkIntervals(b *testing.B) {
	sleep, perf := look(b, "sleep"), look(b, "perf")
	stat := program(b)
	file := filepath.Join(b.TempDir(), "account")
	all := medians(b, []string{sleep, "4"},
		[]string{stat, "stat", "-a", "-I", "100", "-o", file, "--source", "os", "--", sleep, "4"},
		[]string{perf, "stat", "-a", "-I", "100", "-o", file, "-e", machineEvents, "--", sleep, "4"},
		[]string{stat, "stat", "-I", "100", "-o", file, "--source", "os", "--", sleep, "4"},
		[]string{perf, "stat", "-I", "100", "-o", file, "-e", programEvents, "--", sleep, "4"})
	for i, name := range []string{"stat-a", "perf-a", "stat", "perf"} {
		b.ReportMetric(milliseconds(all[i+1].cpu-all[0].cpu), name+"-cpu-ms")
	}
	b.ReportMetric(0, "ns/op")
}
