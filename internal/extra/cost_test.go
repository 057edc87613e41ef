//go:build linux

package extra_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkCost measures the processor time of top and serve, as a share of one processor.
// They follow the whole machine once a second:
//
//	go test ./internal/extra -run xxx -bench Cost -benchtime 1x
//
// The time to start is left out.
func BenchmarkCost(b *testing.B) {
	const span = 30 * time.Second
	functions := []string{"top", "-a", "--by", "function"}
	for name, args := range map[string][]string{"top": {"top", "-a"}, "serve": {"serve", "-a", "-I", "1000"}, "top by function": functions, "top by function beside 20 programs": functions} {
		b.Run(name, func(b *testing.B) {
			if strings.Contains(name, "20 programs") {
				busy(b, 20)
			}
			share := 0.0
			for range b.N {
				share += running(b, span+5*time.Second, args) - running(b, 5*time.Second, args)
			}
			b.ReportMetric(100*share/span.Seconds()/float64(b.N), "%cpu")
		})
	}
}

// busy runs programs until the end of the benchmark that leave the processors to others.
func busy(b *testing.B, n int) {
	b.Helper()
	for range n {
		program := exec.Command("nice", "-n", "19", "sh", "-c", "while :; do :; done")
		if err := program.Start(); err != nil {
			b.Skip(err)
		}
		b.Cleanup(func() {
			_ = program.Process.Kill()
			_ = program.Wait()
		})
	}
}

// running is the processor time in seconds of a command that runs in a terminal for so long.
func running(b *testing.B, span time.Duration, args []string) float64 {
	b.Helper()
	p := inTerminal(b, 24, 80, nil, args...)
	time.Sleep(span)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	<-p.done
	state := p.cmd.ProcessState
	return (state.UserTime() + state.SystemTime()).Seconds()
}
